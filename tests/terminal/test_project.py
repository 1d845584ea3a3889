"""The installed examples, and a first project: the files of `callboard init`."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

import forks
from callboard import Outcome, Settings, Task
from callboard.terminal import EXIT_CODES, app, demo_folder, demo_names

Call = Callable[..., Result]
FILES = {
    "callboard.yaml",
    "task.yaml",
    "script.yaml",
    "eval.yaml",
    "test_task.py",
    "conftest.py",
    "workspace/expenses.csv",
}
SCHEMAS = {f"schemas/{name}.json" for name in ("callboard", "eval", "routine", "script", "task")}


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def test_a_project_is_written_and_its_files_and_next_commands_printed(call: Call, here: Path) -> None:
    result = call("init", "my project")
    assert result.exit_code == 0, result.output
    assert files_of(here / "my project") == FILES | SCHEMAS
    for name in FILES:
        assert f"\n  {name} " in result.stdout
    assert "\n  callboard run 'my project'\n" in result.stdout


def test_dry_run_of_a_project_ends_where_its_workbook_was_not_made(call: Call, here: Path) -> None:
    call("init", "mine")
    result = call("run", "mine", "--dry-run")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "the dry run ends here: expenses.xlsx is not there, because create_document was not executed" in text
    assert 'planned create_document {"path": "expenses.xlsx"}' in text
    assert "create_document: dry run: not executed; the policy would have allowed it" in text
    assert "dry_run" not in text


@pytest.mark.parametrize("name", [name for name in demo_names() if name not in {"expenses", "sales_report_desktop"}])
def test_dry_run_of_an_example_is_no_failure(call: Call, here: Path, name: str) -> None:
    shutil.copytree(demo_folder(name), here / name)
    result = call("run", name, "--dry-run", "--no-input")
    assert result.exit_code == 0, result.output
    assert "the dry run ends here" in " ".join(result.stdout.split())


def test_without_a_folder_it_is_the_current_one(call: Call, here: Path) -> None:
    assert call("init").exit_code == 0
    assert files_of(here) == FILES | SCHEMAS


def test_a_project_runs_at_once(call: Call, here: Path) -> None:
    call("init", "mine")
    result = call("run", "mine")
    assert result.exit_code == 0, result.output
    assert "made    runs/mine-1/workspace/expenses.xlsx (17 cells)" in result.stdout


def test_a_second_run_in_place_ends_with_the_first_failure(call: Call, here: Path) -> None:
    call("init")
    arguments = ("run", "task.yaml", "--settings", ".")
    assert call(*arguments).exit_code == 0
    again = call(*arguments)
    assert again.exit_code == EXIT_CODES[Outcome.ERROR]
    because = " ".join(again.stdout.rpartition("because the model gave no usable answer")[2].split())
    assert "is None, not 'cells'; before, insert_table failed: A1:C5 is not empty" in because
    assert "unknown cost" not in because


def test_the_test_of_a_project_passes_in_a_process_of_its_own(call: Call, here: Path) -> None:
    call("init", ".")
    assert call("run", ".").exit_code == 0  # pytest stays out of its folder of runs
    assert call("eval", ".").exit_code == 0
    assert call("run", "task.yaml", "--settings", "callboard.yaml").exit_code == 0  # and the test out of its results
    words = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider", "."]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CALLBOARD_", "PYTEST_"))}
    done = forks.run(words, cwd=here, env=clean, timeout=300)
    assert (done.returncode, done.stdout.splitlines()[-1][:8]) == (0, "1 passed"), done.stdout + done.stderr


@pytest.mark.parametrize("name", ["task.yaml", "schemas/task.json", "workspace/expenses.csv"])
def test_existing_files_are_listed_and_nothing_is_written(call: Call, here: Path, name: str) -> None:
    (here / "my" / name).parent.mkdir(parents=True)
    (here / "my" / name).write_text("mine", encoding="utf-8")
    result = call("init", "my")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"my/{name}: already exists" in result.stderr
    assert "nothing was written" in result.stderr
    assert files_of(here) == {f"my/{name}"}
    assert (here / "my" / name).read_text(encoding="utf-8") == "mine"


def test_a_link_that_leads_nowhere_is_an_existing_file(call: Call, here: Path) -> None:
    (here / "task.yaml").symlink_to("elsewhere.yaml")
    assert "task.yaml: already exists" in call("init").stderr
    assert files_of(here) == {"task.yaml"}


@pytest.mark.parametrize("folder", ["file", "file/deep", "my"])
def test_file_in_place_of_a_folder_is_reported(call: Call, here: Path, folder: str) -> None:
    (here / "file").touch()
    (here / "my").mkdir()
    (here / "my" / "workspace").touch()
    result = call("init", folder)
    assert result.exit_code == 2
    assert "is no folder, and nothing was written" in result.stderr
    assert files_of(here) == {"file", "my/workspace"}


def test_a_failed_write_leaves_nothing(call: Call, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def full(path: str | Path, *more: Any, **others: Any) -> int:
        if Path(path).name == "task.json":
            raise OSError(28, "No space left on device", str(path))
        return opened(path, *more, **others)

    monkeypatch.setattr(os, "open", full)
    result = call("init", "deep/my")
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("columns", [60, 80])
def test_names_of_files_and_commands_are_not_wrapped(here: Path, columns: int) -> None:
    lines = CliRunner().invoke(app, ["init", "mine"], env={"COLUMNS": str(columns)}).stdout.splitlines()
    assert "  callboard run mine --model openai:gpt-5" in lines


# The templates


def uncommented(text: str) -> Any:
    """Parse a template with its commented-out settings enabled."""
    return yaml.safe_load(re.sub(r"^#(?=\s*[a-z_]+:)", "", text, flags=re.MULTILINE))


def commented(text: str) -> Any:
    return yaml.safe_load("\n".join(line[1:] for line in text.splitlines() if re.match(r"#\s*[a-z_]+: *(\S|$)", line)))


def defaults_in(part: Any, of: Any, where: str = "") -> list[str]:
    """List the values of a template that are no defaults."""
    if isinstance(part, dict) and isinstance(of, dict) and of:
        unknown = [f"{where}{key}: is unknown" for key in part if key not in of]
        return unknown + [
            each for key in part if key in of for each in defaults_in(part[key], of[key], f"{where}{key}.")
        ]
    return [] if part == of else [f"{where}: {part!r} is not the default {of!r}"]


@pytest.fixture
def project(call: Call, here: Path) -> Path:
    assert call("init").exit_code == 0
    return here


def test_each_setting_that_is_commented_out_has_its_default(project: Path) -> None:
    found = commented((project / "callboard.yaml").read_text(encoding="utf-8"))
    assert {"system", "policy", "limits", "budget", "log"} <= set(found)
    assert defaults_in(found, Settings().model_dump(mode="json")) == []


def test_each_field_of_a_task_that_is_commented_out_has_its_default(project: Path) -> None:
    found = commented((project / "task.yaml").read_text(encoding="utf-8"))
    assert {"target", "plan", "budget", "policy"} <= set(found)
    assert defaults_in(found, Task(request="x").model_dump(mode="json")) == []


def test_the_templates_are_valid_with_all_their_lines_in_force(project: Path) -> None:
    whole = uncommented((project / "callboard.yaml").read_text(encoding="utf-8"))
    (project / "whole.yaml").write_text(yaml.safe_dump(whole), encoding="utf-8")
    assert Settings.load(project / "whole.yaml").limits.steps == 50
    assert Task.model_validate(uncommented((project / "task.yaml").read_text(encoding="utf-8"))).priority == 0


@pytest.mark.parametrize("name", ["callboard", "task", "script", "eval"])
def test_each_file_names_its_schema_beside_it(project: Path, name: str) -> None:
    first = (project / f"{name}.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first == f"# yaml-language-server: $schema=schemas/{name}.json"
    assert (project / f"schemas/{name}.json").is_file()


# The installed examples


def test_the_first_demo_needs_no_arguments(call: Call, here: Path) -> None:
    result = call("demo")
    assert result.exit_code == 0, result.output
    assert (here / "runs/sales_report-1/workspace/report.xlsx").is_file()
    assert (
        "others: expenses, log_report, monthly_routine, quarterly_deck, sales_by_region, sales_report_desktop"
        in result.stdout
    )


def test_each_example_with_a_task_is_a_demo() -> None:
    assert demo_names() == [
        "expenses",
        "log_report",
        "monthly_routine",
        "quarterly_deck",
        "sales_by_region",
        "sales_report",
        "sales_report_desktop",
    ]


@pytest.mark.parametrize("name", ["sales_reprot", "../sales_report", "/etc", "", "own_agent.py", "\x1b[2J", "x" * 9000])
def test_a_name_that_is_not_listed_is_refused(call: Call, here: Path, name: str) -> None:
    result = call("demo", name)
    assert result.exit_code == 2
    assert "there is no example" in result.stderr
    assert "\x1b" not in result.output
    assert not (here / "runs").exists()


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_display_cuts_nothing_and_has_no_jargon(here: Path, columns: int) -> None:
    result = CliRunner().invoke(app, ["demo"], env={"COLUMNS": str(columns)})
    board = result.stdout[result.stdout.rindex("host/sales_report-1  finished") :]
    words = " ".join(board.replace("|", " ").split())
    for told in ("app/word/sales.docx", "app/excel/report.xlsx", "Write the table and create a bar chart"):
        assert told in words
    assert "…" not in board
    for word in ("CONTINUE", "ASSIGN", "not_done", "data_collection"):
        assert word not in result.stdout
