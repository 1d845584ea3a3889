"""The command line and its journals: contents listed and told, taken over, refused, and never shown raw."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

import forks
from callboard import Event, EventName, FunctionModel, Outcome, Settings, Supervisor, Task, TaskResult
from callboard.journal import JournalFile, JournalReader, Row
from callboard.messages import JournalError, SupervisorStoppedError
from callboard.terminal import EXIT_CODES, INTERRUPTED, USAGE, TaskDisplay, app
from support import PATIENCE

Call = Callable[..., Result]
Folder = Callable[..., Path]

FINISH = {"Status": "FINISH", "Comment": "All done.", "Result": {"sum": 3}}
ASK = {"Status": "PENDING", "Questions": [{"text": "Which year?", "choices": ["last", "this"]}]}
CREATE = {"Status": "CONTINUE", "Function": "create_document", "Args": {"path": "new.xlsx"}, "Thought": "I make it"}
KEEPS = "the journal keeps the unfinished tasks; resume them with: "
NOD = [{"verdict": "approve", "tool": "create_document", "reason": "new files need a nod"}]


@pytest.fixture
def folder(folder: Folder) -> Folder:
    """Make a folder that can be run, with a journal."""
    return functools.partial(folder, journal={"path": "journal.db"})


@pytest.fixture
def working() -> Iterator[Callable[..., ExitStack]]:
    """Have a supervisor work on a task in a folder, until an event comes; it stops where the test says, or ends."""
    with ExitStack() as stack:

        def begin(place: Path, name: EventName, task: str = "t") -> ExitStack:
            settings = Settings.load(place / "callboard.yaml")
            own = stack.enter_context(ExitStack())
            handle = own.enter_context(Supervisor.start(settings)).submit(Task(id=task, request="do it"))
            next(event for event in handle.events() if event.name is name)
            return own

        yield begin


@pytest.fixture
def suspended(folder: Folder, working: Callable[..., ExitStack]) -> Folder:
    """Make a folder whose journal has a task that is not over: it waits for a person."""

    def make(*answers: dict[str, Any], name: EventName = EventName.QUESTION_ASKED, **settings: Any) -> Path:
        place = folder(*answers, **settings)
        working(place, name).close()
        return place

    return make


def listed(call: Call, journal: Path) -> dict[str, str | None]:
    return {task["id"]: task["outcome"] for task in json.loads(call("tasks", journal, "--json").stdout)}


def words(text: str) -> str:
    return " ".join(text.split())


# Where a run keeps its journal


def test_a_run_on_a_copy_keeps_its_journal_in_the_copy(call: Call, here: Path, folder: Folder) -> None:
    place = folder(FINISH)
    assert call("run", place).exit_code == 0
    assert listed(call, here / "runs/job-1") == {"job-1": "finished"}
    assert not (place / "journal.db").exists()


def test_a_copy_begins_with_no_journal_of_the_original(call: Call, here: Path, suspended: Folder) -> None:
    place = suspended(ASK, FINISH)
    assert call("run", place, "--no-input").exit_code == 0
    assert listed(call, here / "runs/job-1") == {"job-1": "finished"}
    assert listed(call, place) == {"t": None}


def test_the_journal_of_an_option_beats_that_of_the_settings(call: Call, here: Path, folder: Folder) -> None:
    assert call("run", folder(FINISH), "--journal", "mine.db").exit_code == 0
    assert listed(call, here / "mine.db") == {"job-1": "finished"}
    assert not (here / "runs/job-1/journal.db").exists()


def test_a_task_file_that_is_run_again_is_another_task_of_the_same_journal(
    call: Call, here: Path, folder: Folder
) -> None:
    place = folder(FINISH)
    arguments = ("run", place / "task.yaml", "--settings", place / "callboard.yaml")
    assert [call(*arguments).exit_code for _ in range(3)] == [0, 0, 0]
    assert listed(call, place) == {"task": "finished", "task-2": "finished", "task-3": "finished"}


def test_a_task_with_an_id_of_its_own_is_run_once(call: Call, here: Path, folder: Folder) -> None:
    place = folder(CREATE, FINISH)
    (place / "task.yaml").write_text("{id: mine, request: do it}", encoding="utf-8")
    arguments = ("run", place / "task.yaml", "--settings", place / "callboard.yaml")
    assert [call(*arguments).exit_code for _ in range(2)] == [0, 0]
    assert listed(call, place) == {"mine": "finished"}


def test_a_new_run_is_refused_where_tasks_are_not_over(call: Call, here: Path, suspended: Folder) -> None:
    place = suspended(ASK, FINISH)
    result = call("run", place, "--journal", place / "journal.db")
    assert result.exit_code == USAGE
    assert "has unfinished tasks: t; use another journal" in result.stderr
    journal = place / "journal.db"
    assert f"the settings of their run: callboard resume SETTINGS.yaml --journal {journal}\n" in result.stderr
    assert list((here / "runs").iterdir()) == []
    assert listed(call, place) == {"t": None}


@pytest.mark.parametrize("named", [".", "callboard.yaml", "journal.db", ""])
@pytest.mark.parametrize("inside", [False, True])
def test_the_command_to_resume_works_where_it_is_printed(
    call: Call, suspended: Folder, monkeypatch: pytest.MonkeyPatch, named: str, *, inside: bool
) -> None:
    place = suspended(ASK, FINISH)
    monkeypatch.chdir(place if inside else place.parent)
    where = [named if inside else str(Path(place.name, named))] if named or not inside else []
    shown = call("show", "t", *where).stdout
    command = shown.rpartition("resume it with: ")[2].split()
    assert command[:2] == ["callboard", "resume"]
    assert call(*command[1:], "--no-input").exit_code == EXIT_CODES[Outcome.CANCELLED]
    assert listed(call, place) == {"t": "cancelled"}


def test_a_task_file_names_the_command_that_resumes_its_journal(call: Call, here: Path, suspended: Folder) -> None:
    place = suspended(ASK, FINISH)
    told = call("run", place / "task.yaml", "--settings", place / "callboard.yaml").stderr
    command = told.rpartition("resume them first: ")[2].split()
    assert call(*command[1:], "--no-input").exit_code == EXIT_CODES[Outcome.CANCELLED]


def test_missing_journal_is_reported_with_the_latest_run(call: Call, here: Path, folder: Folder) -> None:
    place = folder(FINISH)
    assert call("run", place).exit_code == 0
    assert call("run", place).exit_code == 0
    told = call("tasks").stderr
    assert "name a run's folder, such as runs/job-2, or" in told
    assert told.count("\n") == 1
    told = call("tasks", place).stderr
    assert told.endswith("is not there; each run on a copy has its own: name the run's folder, such as runs/job-2\n")
    (here / "runs/job-1/journal.db").unlink()
    assert "runs/job-2" not in call("tasks", "runs/job-1").stderr


def test_a_run_on_a_copy_never_changes_documents_elsewhere(call: Call, here: Path, folder: Folder) -> None:
    elsewhere = here / "own files"
    elsewhere.mkdir()
    place = folder(CREATE, FINISH, documents={"workspace": str(elsewhere)})
    result = call("run", place)
    assert result.exit_code == USAGE
    command = shlex.split(result.stderr.rpartition("run the task in place: ")[2])
    assert f"leads to {elsewhere}, which is outside the copy: the run would change the original files" in result.stderr
    assert list((here / "runs").iterdir()) == list(elsewhere.iterdir()) == []
    assert call(*command[1:]).exit_code == 0
    assert [each.name for each in elsewhere.iterdir()] == ["new.xlsx"]


def test_a_task_without_any_model_is_refused(call: Call, here: Path) -> None:
    (here / "task.yaml").write_text("request: do it", encoding="utf-8")
    result = call("run", "task.yaml")
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert "task.yaml: no model is named: add --model NAME, or settings that name one" in result.stderr


def test_the_name_of_the_latest_run_is_quoted(call: Call, here: Path) -> None:
    (here / "runs/$(id) 1").mkdir(parents=True)
    (here / "runs/$(id) 1/callboard.yaml").touch()
    assert "name a run's folder, such as 'runs/$(id) 1', or" in call("tasks").stderr


def test_a_trial_of_the_policy_leaves_the_journal_alone(call: Call, here: Path, folder: Folder) -> None:
    place = folder(CREATE, FINISH, journal={"path": str(here / "kept.db")})
    assert call("policy", "check", place).exit_code == 0
    assert list(here.iterdir()) == []


def test_a_journal_that_breaks_while_a_task_runs_is_not_a_usage_error(
    call: Call, here: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def host(_request: object) -> dict[str, Any]:
        (here / "runs/job-1/journal.db").unlink()
        return FINISH

    models = {"host": FunctionModel(host)}
    monkeypatch.setattr(Supervisor, "start", functools.partial(Supervisor.start, models=models))
    result = call("run", folder())
    assert result.exit_code == EXIT_CODES[Outcome.ERROR]
    problem, how = result.stderr.splitlines()
    assert re.fullmatch(r"callboard: the journal \S+ .+", problem)
    assert how == f"callboard: {KEEPS}callboard resume runs/job-1"


# Listing


def test_tasks_are_listed_with_their_outcomes_and_requests(call: Call, folder: Folder) -> None:
    call("run", folder(FINISH))
    said = words(call("tasks", "runs/job-1").stdout)
    assert re.search(r"job-1 finished \d{4}-\d\d-\d\d \d\d:\d\d \d+\.\d s do it", said)
    assert said.endswith("1 task, 0 unfinished; no process has the journal open")


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--find", "SUM sal"], ["a"]),
        (["--label", "month=May"], ["a", "b"]),
        (["--label", "month=May", "--outcome", "unfinished"], ["b"]),
        (["--outcome", "finished", "--outcome", "unfinished"], ["a", "b"]),
        (["--find", '"'], ["a", "b"]),
    ],
)
def test_tasks_are_listed_by_words_labels_and_outcomes(
    call: Call, here: Path, options: list[str], ids: list[str]
) -> None:
    may = {"month": "May"}
    rows = [Task(id="a", request="sum the sales", labels=may), Task(id="b", request="print it", labels=may)]
    with contextlib.closing(JournalFile.open(here / "kept.db")) as journal:
        journal.write([Row(1.0, task.id, "", task) for task in rows])
        journal.write([Row(2.0, "a", "", TaskResult(task_id="a", outcome=Outcome.FINISHED))])
        journal.commit()
    listed_tasks = json.loads(call("tasks", "kept.db", *options, "--json").stdout)
    assert [(task["id"], task["labels"]) for task in listed_tasks] == [(task_id, may) for task_id in ids]


def test_task_is_found_by_its_key_which_is_shown(call: Call, here: Path, folder: Folder) -> None:
    place = folder(FINISH)
    (place / "task.yaml").write_text("{request: do it, key: daily report}", encoding="utf-8")
    call("run", place)
    assert call("show", "daily report", "runs/job-1").stdout.startswith("job-1  key daily report\n")
    assert "job-1 daily report finished" in words(call("tasks", "runs/job-1").stdout)
    assert json.loads(call("tasks", "runs/job-1", "--json").stdout)[0]["key"] == "daily report"
    told = call("show", "daily reprot", "runs/job-1")
    assert (told.exit_code, "did you mean daily report?" in told.stderr) == (USAGE, True)


def test_refused_task_uses_up_no_number_and_prints_no_head(call: Call, here: Path, folder: Folder) -> None:
    place = folder(FINISH)
    (place / "task.yaml").write_text("{request: do it, target: nowhere.docx}", encoding="utf-8")
    refused = call("run", place)
    assert (refused.exit_code, refused.stdout, list((here / "runs").iterdir())) == (USAGE, "", [])
    (place / "task.yaml").write_text("request: do it", encoding="utf-8")
    assert call("run", place).exit_code == 0
    assert [path.name for path in (here / "runs").iterdir()] == ["job-1"]


def test_wrong_filters_of_tasks_are_refused(call: Call) -> None:
    assert "there is no outcome 'finish'; did you mean 'finished'?" in call("tasks", "--outcome", "finish").stderr
    assert "a label is NAME=VALUE, not 'May'" in call("tasks", "--label", "May").stderr


@pytest.mark.parametrize("where", ["runs/job-1", "runs/job-1/callboard.yaml", "runs/job-1/journal.db"])
def test_a_journal_is_named_by_its_file_or_by_settings(call: Call, folder: Folder, where: str) -> None:
    call("run", folder(FINISH))
    assert listed(call, Path(where)) == {"job-1": "finished"}


def test_without_a_name_it_is_the_journal_of_the_current_folder(
    call: Call, here: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("run", folder(FINISH))
    monkeypatch.chdir(here / "runs/job-1")
    assert "job-1" in call("tasks").stdout
    assert "All done." in call("show", "job-1").stdout


def test_a_journal_in_use_is_read_too_and_its_holder_named(
    call: Call, folder: Folder, working: Callable[..., ExitStack]
) -> None:
    place = folder(ASK, FINISH)
    working(place, EventName.QUESTION_ASKED)
    assert f"1 task, 1 unfinished; process {os.getpid()} on " in words(call("tasks", place).stdout)
    shown = words(call("show", "t", place).stdout)
    assert "Which year? (last / this) not answered" in shown
    assert f"unfinished: process {os.getpid()} on " in shown


def test_a_journal_whose_lock_may_not_be_read_is_read_all_the_same(
    call: Call, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder(FINISH)
    call("run", place)

    def refused(reader: JournalReader) -> None:
        raise JournalError(reader.path, "can't be checked for a holder: Permission denied")

    monkeypatch.setattr(JournalReader, "holder", refused)
    journal = next(iter(tmp_path.rglob("journal.db")))
    for arguments in (["tasks", journal], ["show", "job-1", journal]):
        said = call(*arguments)
        assert said.exit_code == 0, said.output
    assert "1 task, 0 unfinished; can't find out which process has it open" in words(call("tasks", journal).stdout)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_list_fits_the_terminal(here: Path, folder: Folder, width: int) -> None:
    place = folder(FINISH)
    (place / "task.yaml").write_text(f"request: {'long ' * 50}", encoding="utf-8")
    for arguments in (["run", str(place)], ["tasks", "runs/job-1"], ["show", "job-1", "runs/job-1"]):
        result = CliRunner().invoke(app, arguments, env={"COLUMNS": str(width)})
        assert result.exit_code == 0, result.output
        if arguments[0] != "run":
            assert max(map(len, result.stdout.splitlines())) <= width


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_list_keeps_ids_and_outcomes_at_any_width(here: Path, folder: Folder, width: int) -> None:
    place = folder(FINISH)
    ids = {"quarterly_report_2026-of-the-northern-region-17": None, "sales_report-1": {"steps": 0}}
    with Supervisor.start(Settings.load(place / "callboard.yaml")) as supervisor:
        for task_id, budget in ids.items():
            task = Task.model_validate({"id": task_id, "request": "Add up all of the prices", "budget": budget or {}})
            supervisor.submit(task).result(PATIENCE)
    table = CliRunner().invoke(app, ["tasks", str(place)], env={"COLUMNS": str(width)}).stdout
    assert max(map(len, table.splitlines())) <= width
    assert all(task_id in "".join(line.split("  ")[0].strip() for line in table.splitlines()) for task_id in ids)
    assert all(word in table for word in ("finished", "out of", "budget"))
    assert len(re.findall(r" Add up ", table)) == len(ids)
    assert (re.search(r"20\d\d-\d\d-\d\d \d\d:\d\d ", table) is not None) is (width >= 80)


def test_an_empty_journal_is_listed_without_a_table(call: Call) -> None:
    JournalFile.open(Path("j.db")).close()
    assert call("tasks", "j.db").stdout == "0 tasks, 0 unfinished; no process has the journal open\n"


# Telling


def test_the_history_tells_what_was_asked_decided_and_done(call: Call, here: Path, folder: Folder) -> None:
    call("run", folder(CREATE, FINISH))
    said = words(call("show", "job-1", "runs/job-1").stdout)
    for told in (
        "job-1 do it submitted ",
        "host/job-1 begins round 1",
        'step 1, CONTINUE I make it create_document {"path": "new.xlsx"}: success {"id": "new.xlsx"',
        "step 2, CONTINUE → FINISH says: All done.",
        "host/job-1 ends its round: finished",
        'output {"sum": 3} used 2 steps, 2 model calls, 1 tool call made runs/job-1/workspace/new.xlsx',
    ):
        assert told in said, told


def test_the_history_tells_of_subtasks_and_their_agents(call: Call, here: Path) -> None:
    example = Path(__file__).resolve().parents[2] / "examples" / "sales_report"
    call("run", example)
    said = words(call("show", "sales_report-1", "runs/sales_report-1").stdout)
    for told in (
        "step 1, CONTINUE → ASSIGN sales.docx",
        "app/word/sales.docx is assigned subtask 1: Extract the sales table",
        "app/word/sales.docx ends subtask 1: finished",
        "app/excel/report.xlsx step 2, CONTINUE The table fills A1:E5;",
    ):
        assert told in said, told


def test_the_history_tells_who_approved(call: Call, folder: Folder) -> None:
    call("run", folder(CREATE, FINISH, policy=NOD), "--yes")
    said = words(call("show", "job-1", "runs/job-1").stdout)
    assert 'asks for approval: new files need a nod create_document {"path": "new.xlsx"} approved by --yes' in said
    assert "CONFIRM → CONTINUE, with the held actions" in said


def test_the_history_tells_who_rejected_and_why(call: Call, folder: Folder) -> None:
    call("run", folder(CREATE, FINISH, policy=NOD))
    said = words(call("show", "job-1", "runs/job-1").stdout)
    assert "rejected by callboard: no person could be asked, because there is no terminal" in said
    assert "rejected in " in said


def test_the_history_tells_why_a_step_failed(call: Call, folder: Folder) -> None:
    call("run", folder())
    said = words(call("show", "job-1", "runs/job-1").stdout)
    assert "a step failed while asking the model: error because " in said
    assert "has no answer 1 for host; it has 0: add the next one" in said


def test_the_history_tells_of_a_failed_action(call: Call, folder: Folder) -> None:
    call("run", folder({**CREATE, "Args": {"path": "../new.xlsx"}}, FINISH))
    said = words(call("show", "job-1", "runs/job-1").stdout)
    assert 'create_document {"path": "../new.xlsx"}: failure' in said


def test_json_holds_the_messages_of_the_journal_and_no_pictures(call: Call, folder: Folder) -> None:
    call("run", folder(CREATE, FINISH, policy=NOD), "--yes")
    said = json.loads(call("show", "job-1", "runs/job-1", "--json").stdout)
    assert TaskResult.model_validate_json(json.dumps(said["result"])).ok
    assert Task.model_validate_json(json.dumps(said["task"])).request == "do it"
    assert said["submitted"] <= said["ended"]
    kinds = [entry["message"]["kind"] for entry in said["history"]]
    assert kinds == ["assign", "step_done", "approval_request", "step_done", "step_done", "round_ended"]
    assert said["history"][2]["reply"]["by"] == "--yes"
    assert {entry["agent"] for entry in said["history"]} == {"host/job-1"}
    assert '"picture": "' not in json.dumps(said)
    assert said["broken_off"] == {}


def test_recorded_text_does_not_control_the_terminal(call: Call, folder: Folder) -> None:
    evil = "ok \x1b[2J\x07\u202e[bold]x[/bold]\r\n"
    failing = {**CREATE, "Thought": evil, "Args": {"path": f"../{evil}"}}
    asking = {"Status": "PENDING", "Thought": evil, "Questions": [evil]}
    place = folder(failing, asking, {**FINISH, "Comment": evil, "Result": evil})
    (place / "task.yaml").write_text(json.dumps({"request": evil}), encoding="utf-8")
    call("run", place, "--no-input")
    said = "".join(call(*arguments, "runs/job-1").stdout for arguments in (["tasks"], ["show", "job-1"]))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said)
    assert "[bold]x[/bold]" in said


def test_a_task_may_be_named_by_the_beginning_of_its_id(call: Call, folder: Folder) -> None:
    call("run", folder(FINISH))
    assert call("show", "jo", "runs/job-1").stdout.startswith("job-1\n")


def test_the_beginning_of_two_ids_names_none(call: Call, folder: Folder) -> None:
    place = folder(FINISH)
    for _ in range(2):
        call("run", place / "task.yaml", "--settings", place / "callboard.yaml")
    assert call("show", "task", place).exit_code == 0
    result = call("show", "tas", place)
    assert result.exit_code == USAGE
    assert result.stderr.endswith("has no task 'tas'; did you mean task or task-2?\n")


def test_unknown_task_is_reported_with_the_present_ones(call: Call, folder: Folder) -> None:
    call("run", folder(FINISH))
    result = call("show", "qqqq", "runs/job-1")
    assert result.exit_code == USAGE
    assert result.stderr.endswith("has no task 'qqqq'; there are: job-1\n")


# Taking over


def test_a_question_is_put_again_and_its_answer_counts(call: Call, suspended: Folder) -> None:
    place = suspended(ASK, FINISH)
    result = call("resume", place, "--no-input")
    assert result.exit_code == EXIT_CODES[Outcome.CANCELLED]
    assert "Which year? (last / this)" in result.stdout
    assert listed(call, place) == {"t": "cancelled"}


def test_an_approval_is_put_again_and_what_it_is_for_done_once(call: Call, suspended: Folder) -> None:
    place = suspended(CREATE, FINISH, name=EventName.APPROVAL_REQUESTED, policy=NOD)
    result = call("resume", place, "--yes")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("create_document: success") == 1
    assert result.stdout.count("asks for approval") == 1
    assert (place / "workspace/new.xlsx").exists()
    assert "resumed in another process" in call("show", "t", place).stdout


def test_resume_continues_all_unfinished_tasks(call: Call, folder: Folder, working: Callable[..., ExitStack]) -> None:
    place = folder({**CREATE, "Args": {"path": "${task.id}.xlsx"}}, FINISH, policy=NOD)
    settings = Settings.load(place / "callboard.yaml")
    with Supervisor.start(settings) as supervisor:
        handles = [supervisor.submit(Task(id=name, request=f"do {name}")) for name in ("one", "two")]
        for handle in handles:
            next(event for event in handle.events() if event.name is EventName.APPROVAL_REQUESTED)
    result = call("resume", place, "--json", "--yes")
    said = [TaskResult.model_validate_json(json.dumps(each)) for each in json.loads(result.stdout)]
    assert [(each.task_id, each.outcome) for each in said] == [("one", Outcome.FINISHED), ("two", Outcome.FINISHED)]
    assert [Path(path).name for each in said for path in each.artifacts] == ["one.xlsx", "two.xlsx"]
    assert result.exit_code == 0


def test_without_a_terminal_a_task_that_waits_for_a_person_is_left_alone(call: Call, suspended: Folder) -> None:
    place = suspended(ASK, FINISH)
    result = call("resume", place)
    assert result.exit_code == USAGE
    assert (
        "t waits for a person (Which year? (last / this)), and no person can be asked, because there is no terminal"
        in result.stderr
    )
    assert listed(call, place) == {"t": None}


def test_a_task_is_not_taken_over_without_its_model(call: Call, suspended: Folder) -> None:
    place = suspended(ASK, FINISH)
    other = place / "other.yaml"
    other.write_text("{documents: {workspace: workspace}, journal: {path: journal.db}}", encoding="utf-8")
    result = call("resume", other, "--no-input")
    assert result.exit_code == USAGE
    assert "t needs a model for host/t, and models.host names none" in result.stderr
    assert listed(call, place) == {"t": None}


def test_the_tasks_of_an_older_journal_are_resumed(call: Call, suspended: Folder) -> None:
    place = suspended(ASK, FINISH)
    with contextlib.closing(sqlite3.connect(place / "journal.db")) as older:
        older.executescript(
            "DROP INDEX tasks_routine; ALTER TABLE tasks DROP COLUMN routine;"
            "DROP TABLE ages; DROP TABLE search; DROP INDEX tasks_submitted; DROP INDEX tasks_outcome;"
            "DELETE FROM marks WHERE name = 'searched'; PRAGMA user_version = 7"
        )
    assert listed(call, place) == {"t": None}
    assert call("resume", place, "--no-input").exit_code == EXIT_CODES[Outcome.CANCELLED]
    assert listed(call, place) == {"t": "cancelled"}


def test_a_task_with_a_model_of_its_own_needs_none_in_the_settings(call: Call, folder: Folder) -> None:
    place = folder(CREATE, FINISH, models={}, policy=NOD)
    settings = Settings.load(place / "callboard.yaml")
    with Supervisor.start(settings) as supervisor:
        handle = supervisor.submit(Task(id="t", request="do it", model="scripted:script.yaml"))
        next(event for event in handle.events() if event.name is EventName.APPROVAL_REQUESTED)
    result = call("resume", place, "--yes")
    assert listed(call, place) == {"t": "finished"}, result.output


def test_resume_reports_that_all_tasks_are_over(call: Call, folder: Folder) -> None:
    call("run", folder(FINISH))
    result = call("resume", "runs/job-1")
    assert result.exit_code == 0
    assert result.stdout == "nothing to resume: the journal has no unfinished task\n"
    assert call("resume", "runs/job-1", "--json").stdout == "[]\n"


@pytest.mark.parametrize("command", ["resume", "run"])
def test_a_journal_in_use_is_not_taken_over_and_its_holder_named(
    call: Call, here: Path, folder: Folder, working: Callable[..., ExitStack], command: str
) -> None:
    place = folder(ASK, FINISH)
    working(place, EventName.QUESTION_ASKED)
    result = call(command, place, "--journal", place / "journal.db", "--no-input")
    assert result.exit_code == USAGE
    assert f"is in use by process {os.getpid()} on " in result.stderr
    assert result.stdout == ""


# A program that dies


PROGRAM = """
import asyncio, os, signal, sys
from callboard.models import ScriptedModel

answer = ScriptedModel.answer

async def slow(self, request):
    if request.call == 2:
        print("here", flush=True)
        try:
            await asyncio.Event().wait()
        finally:
            signal.raise_signal(signal.SIGINT)
    return await answer(self, request)

ScriptedModel.answer = slow
from callboard.__main__ import main
main()
"""
"""The command line with a model that does not answer a second time, and has Ctrl-C pressed when it is cancelled."""


@contextlib.contextmanager
def program(*arguments: object, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """Run it until its model is asked a second time."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    pipe = subprocess.PIPE
    with forks.Program(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert "here\n" in iter(process.stdout.readline, ""), "it ended before"
            yield process
        finally:
            process.kill()


def test_killed_run_continues_and_repeats_no_action(call: Call, here: Path, folder: Folder) -> None:
    with program("run", folder(CREATE, FINISH), cwd=here) as process:
        process.kill()
        process.wait(PATIENCE)
    assert listed(call, here / "runs/job-1") == {"job-1": None}
    shown = call("show", "job-1", "runs/job-1").stdout
    assert shown.endswith("no process works on it; resume it with: callboard resume runs/job-1\n")
    result = call("resume", "runs/job-1")
    assert result.exit_code == 0, result.output
    assert "create_document" not in result.stdout
    assert "resumed from the journal" in result.stdout
    assert "used    2 steps, 2 model calls, 1 tool call" in result.stdout
    assert result.stdout.endswith("history callboard show job-1 runs/job-1\n")


def test_run_of_a_folder_with_an_unfinished_task_prints_how_to_resume_it(call: Call, suspended: Folder) -> None:
    place = suspended(ASK, FINISH)
    result = call("run", place, "--no-input")
    assert f"{place} has unfinished tasks (t), and this runs another; to resume them: callboard resume {place}\n" in (
        result.stderr
    )
    assert listed(call, place) == {"t": None}


def test_an_error_of_the_start_names_no_tasks_to_resume(
    call: Call, here: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object, **__: object) -> None:
        msg = "\x1b[2J"
        raise ValueError(msg)

    monkeypatch.setattr(Supervisor, "start", start)
    told = call("run", folder(FINISH)).stderr
    assert "\x1b" not in told
    assert "\nTraceback" in f"\n{told}"
    assert "an unexpected error ended the command: ValueError" in told
    assert KEEPS not in told
    assert list((here / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("error", "first"),
    [
        (
            ValueError("boom"),
            "an unexpected error ended the command: ValueError: boom; please report it with the lines",
        ),
        (SupervisorStoppedError("it is stopped"), "it is stopped"),
        (typer.Exit(EXIT_CODES[Outcome.ERROR]), ""),
    ],
    ids=["a bug", "a stopped supervisor", "a lost journal"],
)
def test_an_error_in_a_run_names_the_command_that_continues(
    call: Call, folder: Folder, monkeypatch: pytest.MonkeyPatch, error: Exception, first: str
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr("callboard.terminal.play", fails)
    result = call("run", folder(FINISH))
    assert result.exit_code == EXIT_CODES[Outcome.ERROR]
    told = [line for line in result.stderr.splitlines() if line.startswith("callboard: ") and "warning" not in line]
    assert first in told[0]
    assert told[-1] == f"callboard: {KEEPS}callboard resume runs/job-1"
    assert ("Traceback" in result.stderr) is isinstance(error, ValueError)


def test_a_refused_start_has_no_tasks_to_resume(call: Call, folder: Folder) -> None:
    result = call("run", folder(FINISH, documents={"workspace": "nowhere"}))
    assert result.exit_code == USAGE
    assert "resume" not in result.stderr


def test_second_ctrl_c_keeps_unfinished_tasks_and_prints_how_to_resume(call: Call, here: Path, folder: Folder) -> None:
    with program("run", folder(CREATE, FINISH), cwd=here) as process:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == INTERRUPTED
    assert f"callboard: interrupted; {KEEPS}callboard resume runs/job-1\n" in errors
    ended = call("resume", "runs/job-1").exit_code  # the cancel may be written down by now, or not
    assert ended in {EXIT_CODES[Outcome.FINISHED], EXIT_CODES[Outcome.CANCELLED]}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_to_end_stops_a_run_and_prints_how_to_resume(
    call: Call, here: Path, folder: Folder, number: signal.Signals
) -> None:
    with program("run", folder(CREATE, FINISH), cwd=here) as process:
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 128 + number
    assert f"callboard: interrupted; {KEEPS}callboard resume runs/job-1\n" in errors
    assert call("resume", "runs/job-1").exit_code == EXIT_CODES[Outcome.FINISHED]


@pytest.fixture
def in_doubt(here: Path, folder: Folder) -> Path:
    """A run that died after the second action of its first step was done, and before that was written down."""
    actions = [{"function": "create_document", "arguments": {"path": f"{name}.xlsx"}} for name in "ab"]
    with program("run", folder({"Status": "CONTINUE", "Actions": actions}, FINISH), cwd=here) as process:
        process.kill()
        process.wait(PATIENCE)
    place = here / "runs/job-1"
    with contextlib.closing(sqlite3.connect(place / "journal.db")) as connection:
        (intent,) = connection.execute("SELECT max(id) FROM rows WHERE kind IN ('intent', 'foreseen')").fetchone()
        connection.execute("DELETE FROM rows WHERE id > ?", (intent,))
        connection.commit()
    return place


def test_step_in_progress_is_shown(call: Call, in_doubt: Path) -> None:
    said = words(call("show", "job-1", in_doubt).stdout)
    assert "host/job-1 step 1, in progress" in said
    assert 'create_document {"path": "a.xlsx"}: success' in said
    assert 'create_document {"path": "b.xlsx"}: started, no outcome yet' in said
    told = json.loads(call("show", "job-1", in_doubt, "--json").stdout)["broken_off"]["job-1~0"]
    assert told["in_doubt"]["arguments"] == {"path": "b.xlsx"}


def test_settled_doubt_is_shown_at_the_resume_and_in_the_history(call: Call, in_doubt: Path) -> None:
    result = call("resume", in_doubt)
    assert result.exit_code == 0, result.output
    doubt = "create_document may have been done before a crash: it was done"
    assert doubt in result.stdout
    assert doubt in call("show", "job-1", in_doubt).stdout
    assert sorted(path.name for path in (in_doubt / "workspace").iterdir()) == ["a.xlsx", "b.xlsx"]


# Unreadable journals


def damaged(path: Path) -> None:
    path.write_bytes(b"no journal" * 1000)


def newer(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 0x43616C62")
        connection.execute("PRAGMA user_version = 99")
        connection.execute("CREATE TABLE tasks (id)")


def empty(path: Path) -> None:
    path.touch()


@pytest.mark.parametrize(
    ("make", "told"),
    [(damaged, "is no journal, or a damaged one"), (newer, "was written by a newer callboard"), (empty, "is empty")],
)
@pytest.mark.parametrize("command", [("tasks",), ("show", "t"), ("resume",)])
def test_unreadable_journal_is_reported_in_a_line(
    call: Call, folder: Folder, make: Callable[[Path], None], told: str, command: tuple[str, ...]
) -> None:
    place = folder(FINISH)
    make(place / "journal.db")
    if (make, command) == (empty, ("resume",)):
        result = call(*command, place)
        assert (result.exit_code, result.stdout) == (
            0,
            "nothing to resume: the journal has no unfinished task\n",
        )
        return
    before = (place / "journal.db").read_bytes()
    result = call(*command, place)
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert (place / "journal.db").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tasks"], "this folder has no callboard.yaml that names one: name a run's folder, or a settings file"),
        (["tasks", "plain.yaml"], "plain.yaml: journal.path is not set: add it there, or set"),
        (["tasks", "nowhere"], "nowhere: there is no such file or folder"),
        (["tasks", "named.yaml"], "missing.db is not there"),
        (["resume", "named.yaml"], "missing.db is not there"),
        (["resume", "."], "callboard.yaml: can't be read"),
        (["resume", "named.yaml", "--yes", "--no-input"], "--yes and --no-input can't be combined"),
    ],
)
def test_journal_that_is_not_there_is_reported(call: Call, here: Path, arguments: list[str], told: str) -> None:
    (here / "plain.yaml").write_text("limits: {steps: 7}", encoding="utf-8")
    (here / "named.yaml").write_text("journal: {path: missing.db}", encoding="utf-8")
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert told in words(result.stderr.replace("│", " "))
    assert not (here / "missing.db").exists()


# The display


def test_display_leaves_out_the_time_between_processes() -> None:
    board = TaskDisplay("t", "do it")
    for at, name, data in (
        (10.0, EventName.TASK_SUBMITTED, {}),
        (10.0, EventName.ROUND_STARTED, {"request": "do it", "round": 1}),
        (12.0, EventName.STATE_CHANGED, {"source": "", "target": "CONTINUE", "by": "system"}),
        (90_000.0, EventName.TASK_RECOVERED, {"runs": 1}),
    ):
        run_id, agent = ("", "") if name in {EventName.TASK_SUBMITTED, EventName.TASK_RECOVERED} else ("t~0", "host/t")
        line = board.see(Event(seq=1, at=at, name=name, task_id="t", run_id=run_id, agent=agent, data=data))
    assert line is not None
    assert line.plain == "    2.00 s  supervisor  resumed from the journal"
    (row,) = board.rows.values()
    assert 90_001.0 - row.started == 3.0


def test_the_last_lines_count_the_actions_that_failed(call: Call, folder: Folder) -> None:
    missing = CREATE | {"Function": "open_document", "Args": {"path": "none.xlsx"}}
    place = folder(missing, CREATE, FINISH)
    result = call("run", place)
    assert result.exit_code == 0, result.output
    assert "failed  1 action on the way" in result.stdout.splitlines()
    assert "failed  1 action on the way" in call("show", "job-1", "runs/job-1").stdout.splitlines()
    told = json.loads(call("show", "job-1", "runs/job-1", "--json").stdout)
    assert told["result"]["failed_actions"] == 1
    (place / "script.yaml").write_text(json.dumps({"host": [CREATE, FINISH]}), encoding="utf-8")
    assert "on the way" not in call("run", place).stdout
