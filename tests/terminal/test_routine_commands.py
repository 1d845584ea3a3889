"""Finished tasks are saved as routines on the command line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from callboard import ScriptedModel, Settings, Supervisor, Task
from callboard.routines import load_routine
from support import PATIENCE

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Call = Callable[..., Result]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory) -> Path:
    """Run the first project's task."""
    from support import command_line

    folder = tmp_path_factory.mktemp("project") / "expenses"
    shutil.copytree(EXAMPLES / "expenses", folder)
    task = folder / "task.yaml"
    task.write_text(f"id: may\n{task.read_text(encoding='utf-8')}", encoding="utf-8")
    assert command_line("run", task, "--settings", folder).exit_code == 0
    return folder


def test_a_task_is_saved_with_its_parameters_and_remarks(call: Call, here: Path, run_folder: Path) -> None:
    told = call("routine", "save", "may", run_folder, "-o", "monthly.routine.yaml")
    assert told.exit_code == 0, told.output
    routine = load_routine(here / "monthly.routine.yaml")
    assert (routine.routine, list(routine.parameters)) == ("monthly", ["source"])
    assert "routine  monthly.routine.yaml\n  source = expenses.csv  (a document)\n" in told.stdout
    assert "  perhaps a parameter: --parameter file=expenses.xlsx\n" in told.stdout
    assert "callboard: warning: subtasks.2.steps.1.actions.2.arguments.formula quotes 'Amount'" in told.stderr


def test_proposals_and_named_values_become_parameters(call: Call, here: Path, run_folder: Path) -> None:
    told = call("routine", "save", "may", run_folder, "--yes", "--parameter", "title=Expenses", "--name", "m", "--json")
    assert told.exit_code == 0, told.output
    content = json.loads(told.stdout)
    assert content["file"] == "m.routine.yaml"
    assert content["parameters"] == {"title": "Expenses", "file": "expenses.xlsx", "source": "expenses.csv"}
    routine = load_routine(here / "m.routine.yaml")
    assert routine.subtasks[1].target == "${file}"
    assert routine.checks[0]["table"] == "${file}!${title}"


def test_without_a_name_the_request_names_the_file(call: Call, here: Path, run_folder: Path) -> None:
    assert call("routine", "save", "may", run_folder).exit_code == 0
    assert [path.name for path in here.iterdir()] == ["put-the-expenses-into-the-workbook.routine.yaml"]


def test_an_existing_file_is_replaced_only_with_force(call: Call, here: Path, run_folder: Path) -> None:
    file = here / "m.routine.yaml"
    file.write_text("mine", encoding="utf-8")
    told = call("routine", "save", "may", run_folder, "-o", file)
    assert (told.exit_code, file.read_text(encoding="utf-8")) == (2, "mine")
    assert "already exists; name another file with --output, or replace it with --force" in told.stderr
    assert call("routine", "save", "may", run_folder, "-o", file, "--force").exit_code == 0
    assert load_routine(file).routine == "m"
    assert "is a folder: name a file in it" in call("routine", "save", "may", run_folder, "-o", here).stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--parameter", "month"), "--parameter month: write NAME=VALUE"),
        (("--parameter", "a=Expenses", "--parameter", "a=Total"), "there is already a parameter a"),
        (("--parameter", "month=May"), "the parameter month: 'May' occurs in no request"),
        (("--parameter", "steps=Expenses"), "parameters: 'steps' has another meaning in references"),
        (("--name", "a b"), "routine: has the wrong form: it must match"),
    ],
)
def test_mistakes_are_reported_and_no_file_is_written(
    call: Call, here: Path, run_folder: Path, options: tuple[str, ...], says: str
) -> None:
    told = call("routine", "save", "may", run_folder, *options)
    assert (told.exit_code, list(here.iterdir())) == (2, [])
    assert says in " ".join(told.stderr.split())
    assert "has no task 'june'" in call("routine", "save", "june", run_folder).stderr


def test_a_task_whose_steps_hold_its_data_is_saved_only_on_request(call: Call, here: Path, tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    rows = [["Aarhus", "412.300"], ["Bergen", "298.050"], ["Delft", "184.900"]]
    (tmp_path / "workspace" / "cities.csv").write_text("\n".join(";".join(row) for row in [["City", "Nights"], *rows]))
    numbers = [[city, int(text.replace(".", ""))] for city, text in rows]
    read = {"Status": "CONTINUE", "Function": "read_table", "Args": {"numbers": False}}
    settings = Settings.load(documents={"workspace": tmp_path / "workspace"}, journal={"path": tmp_path / "journal.db"})
    model = ScriptedModel({"app/csv/cities.csv": [read, {"Status": "FINISH", "Result": {"rows": numbers}}]})
    with Supervisor.start(settings, models={"app": model}) as supervisor:
        assert supervisor.submit(Task(id="t", request="read it", target="cities.csv")).result(PATIENCE).ok
    told = call("routine", "save", "t", tmp_path / "journal.db", "-o", "c.routine.yaml")
    assert (told.exit_code, list(here.iterdir())) == (2, [])
    says = " ".join(told.stderr.split())
    assert "subtasks.1.steps.2.result.rows holds 3 values that were read in this run, such as 412300" in says
    assert "nothing is saved; --keep-data saves it as it is" in says
    told = call("routine", "save", "t", tmp_path / "journal.db", "-o", "c.routine.yaml", "--keep-data")
    assert told.exit_code == 0
    assert "warning: subtasks.1.steps.2.result.rows holds 3 values" in " ".join(told.stderr.split())
    assert load_routine(here / "c.routine.yaml").subtasks[0].steps[1].result["rows"][0][1] == 412_300
