"""The command line as people and machines call it."""

from __future__ import annotations

import asyncio
import functools
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer
import yaml
from rich.console import Console
from typer.testing import CliRunner, Result

import forks
from callboard import Event, EventName, FunctionModel, Outcome, Settings, Supervisor, Task, TaskResult
from callboard.actors.processing import MACHINES
from callboard.actors.states import mermaid
from callboard.messages import AgentKind, Message
from callboard.terminal import (
    EXIT_CODES,
    INTERRUPTED,
    USAGE,
    Attendance,
    TaskDisplay,
    TaskSession,
    app,
    keep_inside,
    play,
)
from callboard.terminal._board import pictures
from support import PATIENCE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sales_report"

Call = Callable[..., Result]


FINISH = {"Status": "FINISH", "Comment": "All done.", "Result": {"sum": 3}}
FAIL = {"Status": "FAIL", "Comment": "It can't be done."}
ASK = {"Status": "PENDING", "Questions": [{"text": "Which year?", "choices": ["last", "this"]}]}
CREATE = {"Status": "FINISH", "Actions": [{"function": "create_document", "arguments": {"path": "new.xlsx"}}]}


# Running


def test_run_of_the_example_prints_its_end_and_the_path_of_the_workbook(call: Call, here: Path) -> None:
    result = call("run", EXAMPLE)
    assert result.exit_code == 0, result.output
    last = result.stdout.splitlines()
    assert any(line.startswith("finished in ") for line in last)
    assert last[-2:] == [
        "made    runs/sales_report-1/workspace/report.xlsx (25 cells, 1 chart)",
        "history callboard show sales_report-1 runs/sales_report-1",
    ]
    assert (here / "runs/sales_report-1/workspace/report.xlsx").is_file()


def test_a_secret_that_the_request_quotes_is_not_shown(call: Call, folder: Callable[..., Path]) -> None:
    place = folder(FINISH, secrets={"pw": "swordfish-4711"})
    (place / "task.yaml").write_text("request: log in with swordfish-4711\n", encoding="utf-8")
    result = call("run", place)
    assert "log in with ${secret:pw}" in result.stdout
    assert "swordfish" not in result.output


def test_each_run_works_on_a_fresh_copy(call: Call, here: Path) -> None:
    before = {path: path.read_bytes() for path in EXAMPLE.rglob("*") if path.is_file()}
    assert [call("run", EXAMPLE).exit_code for _ in range(2)] == [0, 0]
    assert sorted(path.name for path in (here / "runs").iterdir()) == ["sales_report-1", "sales_report-2"]
    assert {path: path.read_bytes() for path in EXAMPLE.rglob("*") if path.is_file()} == before


def test_a_folder_can_be_run_from_inside(
    call: Call, folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder(FINISH)
    monkeypatch.chdir(place)
    assert [call("run", ".").exit_code for _ in range(2)] == [0, 0]
    assert not (place / "runs" / "job-2" / "runs").exists()


def test_run_writes_its_copy_into_the_output_folder(call: Call, here: Path, folder: Callable[..., Path]) -> None:
    assert call("run", folder(CREATE), "--output", "deep/mine").exit_code == 0
    assert (here / "deep/mine/workspace/new.xlsx").is_file()


def test_a_task_file_runs_where_it_is(call: Call, folder: Callable[..., Path]) -> None:
    place = folder(CREATE)
    result = call("run", place / "task.yaml", "--settings", place)
    assert result.exit_code == 0, result.output
    assert "warning" not in result.stderr
    assert (place / "workspace/new.xlsx").is_file()


def test_a_task_file_without_settings_names_those_beside_it(call: Call, folder: Callable[..., Path]) -> None:
    place = folder(FINISH)
    result = call("run", place / "task.yaml", "--model", f"scripted:{place / 'script.yaml'}")
    assert result.exit_code == 0, result.output
    file = place / "callboard.yaml"
    assert f"warning: {file} is not used: to run a task file with it, add --settings {file}\n" in result.stderr


def test_links_are_copied_as_links(call: Call, here: Path, folder: Callable[..., Path], tmp_path: Path) -> None:
    place = folder(FINISH)
    (tmp_path / "outside.docx").write_bytes(b"secret")
    (place / "workspace" / "link.docx").symlink_to(tmp_path / "outside.docx")
    assert call("run", place).exit_code == 0
    assert (here / "runs/job-1/workspace/link.docx").is_symlink()


def test_virtual_environments_are_not_copied(call: Call, here: Path, folder: Callable[..., Path]) -> None:
    place = folder(FINISH)
    (place / ".venv/lib").mkdir(parents=True)
    (place / ".venv/pyvenv.cfg").touch()
    assert call("run", place).exit_code == 0
    assert (here / "runs/job-1/workspace").is_dir()
    assert not (here / "runs/job-1/.venv").exists()


def test_json_is_one_object_on_stdout_and_nothing_else(call: Call) -> None:
    result = call("run", EXAMPLE, "--json")
    assert result.exit_code == 0
    assert result.stderr == ""
    said = TaskResult.model_validate_json(result.stdout)
    assert said.outcome is Outcome.FINISHED
    assert [Path(path).name for path in said.artifacts] == ["report.xlsx"]


def test_progress_is_printed_line_by_line_without_a_terminal(call: Call) -> None:
    lines = call("run", EXAMPLE).stdout.splitlines()
    for told in (
        "host/sales_report-1  working → delegating",
        "1 app/word/sales.docx  starts: Extract the sales table",
        "2 app/excel/report.xlsx  insert_chart: success",
    ):
        assert any(line.endswith(f" s  {told}") for line in lines), told


def test_the_log_is_off_unless_it_is_asked_for(call: Call, folder: Callable[..., Path]) -> None:
    place = folder(FINISH)
    assert call("run", place).stderr == ""
    events = [json.loads(line)["event"] for line in call("run", place, "--log").stderr.splitlines()]
    assert events[0] == "supervisor.started"
    assert "task.ended" in events


def test_a_log_file_is_placed_from_the_current_folder(call: Call, here: Path, folder: Callable[..., Path]) -> None:
    assert call("run", folder(FINISH), "--log-file", "run.log").exit_code == 0
    events = [json.loads(line)["event"] for line in (here / "run.log").read_text(encoding="utf-8").splitlines()]
    assert "task.ended" in events


def test_text_of_documents_and_models_does_not_control_the_terminal(call: Call, folder: Callable[..., Path]) -> None:
    place = folder({**FINISH, "Comment": "ok \x1b[2J\x07[bold]x[/bold]"})
    said = call("run", place).stdout
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", said)
    assert "[bold]x[/bold]" in said


# Exit codes


def test_every_outcome_has_an_exit_code_of_its_own() -> None:
    assert set(EXIT_CODES) == set(Outcome)
    assert len({*EXIT_CODES.values(), USAGE, INTERRUPTED}) == len(Outcome) + 2
    assert EXIT_CODES[Outcome.FINISHED] == 0


@pytest.mark.parametrize("group", [[], ["policy"]])
def test_the_list_of_commands_fits_a_narrow_terminal(group: list[str]) -> None:
    told = CliRunner().invoke(app, [*group, "--help"], env={"COLUMNS": "60"}).stdout
    assert "..." not in told.partition("Commands:")[2]


def test_the_help_tells_every_exit_code(call: Call) -> None:
    said = " ".join(call("run", "--help").stdout.split())
    for outcome, code in EXIT_CODES.items():
        assert f"{code} {outcome.value.replace('_', ' ')}" in said


@pytest.mark.parametrize(
    ("answers", "settings", "outcome"),
    [
        ([FINISH], {}, Outcome.FINISHED),
        ([FAIL], {}, Outcome.FAILED),
        ([], {}, Outcome.ERROR),
        ([ASK, FINISH], {}, Outcome.FINISHED),
        ([{"Status": "CONTINUE"}, FINISH], {"limits": {"steps": 1}}, Outcome.OUT_OF_BUDGET),
    ],
)
def test_exit_code_is_that_of_the_outcome(
    call: Call, folder: Callable[..., Path], answers: list[Any], settings: Any, outcome: Outcome
) -> None:
    result = call("run", folder(*answers, **settings), "--json")
    assert TaskResult.model_validate_json(result.stdout).outcome is outcome
    assert result.exit_code == EXIT_CODES[outcome]


async def _never(_request: object) -> None:
    await asyncio.Event().wait()


def with_host(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any]) -> None:
    """Put a function in place of the HostAgents' model."""
    monkeypatch.setattr(
        Supervisor, "start", functools.partial(Supervisor.start, models={"host": FunctionModel(function)})
    )


def test_a_task_that_takes_too_long_exits_with_its_own_code(
    call: Call, folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_host(monkeypatch, _never)
    result = call("run", folder(limits={"task_seconds": 0.01}))
    assert result.exit_code == EXIT_CODES[Outcome.TIMED_OUT]
    assert "timed out in" in result.stdout
    assert "because the task took longer than 0.01 s" in result.stdout


def test_ctrl_c_cancels_the_task(call: Call, folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    async def host(_request: object) -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()

    with_host(monkeypatch, host)
    before = signal.getsignal(signal.SIGINT)
    result = call("run", folder(), "--json")
    assert result.exit_code == EXIT_CODES[Outcome.CANCELLED]
    (cause,) = TaskResult.model_validate_json(result.stdout).causes
    assert cause.reason == "cancelled from the keyboard"
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_leaves_at_once(
    call: Call, folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def host(_request: object) -> None:
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            signal.raise_signal(signal.SIGINT)

    with_host(monkeypatch, host)
    result = call("run", folder())
    assert result.exit_code == INTERRUPTED
    assert "cancelled in" not in result.stdout


# Questions and approvals


@pytest.mark.parametrize("arguments", [[], ["--no-input"], ["--json"], ["--yes"]])
def test_model_gets_a_note_when_no_person_can_answer(
    call: Call, folder: Callable[..., Path], arguments: list[str]
) -> None:
    told = {**FINISH, "Comment": "${observation.notes.0}"}
    result = call("run", folder(ASK, told), *arguments)
    assert result.exit_code == 0, result.output
    assert "nobody will answer" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "approvals are rejected, and questions are not asked: there is no terminal"),
        (["--no-input"], "approvals are rejected, and questions are not asked: --no-input was given"),
        (["--yes"], "all requests for approval are approved (--yes); questions are not asked: there is no terminal"),
    ],
)
def test_run_prints_its_answerer_even_without_questions(
    call: Call, folder: Callable[..., Path], arguments: list[str], said: str
) -> None:
    assert said in call("run", folder(FINISH), *arguments).stdout


def played(folder: Path, host: Callable[..., Any], attendance: Attendance) -> tuple[TaskResult, str]:
    """Play a task on no terminal, with questions switched on; returns its result and the output."""
    settings = Settings.load(folder / "callboard.yaml")
    with (
        open(os.devnull, "w", encoding="utf-8") as file,  # noqa: PTH123
        Supervisor.start(settings, models={"host": FunctionModel(host)}) as supervisor,
    ):
        console = Console(width=200, record=True, file=file)
        result = play(supervisor, Task(request="do it"), TaskSession(console, live=False, attendance=attendance))
        return result, console.export_text()


def test_with_no_input_a_question_at_a_budget_limit_is_answered_with_stop(
    folder: Callable[..., Path],
) -> None:
    place = folder(budget={"at_limit": "ask", "task": {"steps": 1}})
    result, said = played(place, lambda _request: {"Status": "CONTINUE"}, Attendance(absent="--no-input"))
    assert result.outcome is Outcome.OUT_OF_BUDGET
    assert "Go on with as much again? (go on / stop)" in said
    assert "answered with 'stop': no person could be asked, because --no-input" in said


def test_question_without_a_person_cancels_the_task(folder: Callable[..., Path]) -> None:
    result, _ = played(folder(), lambda _request: ASK, Attendance(yes=True, absent="no terminal"))
    assert result.outcome is Outcome.CANCELLED
    (cause,) = result.causes
    assert cause.reason == "a question was not answered, because there is no terminal: Which year? (last / this)"


def test_an_approval_is_shown_and_what_it_is_for_not_done(call: Call, here: Path, folder: Callable[..., Path]) -> None:
    rule = {"verdict": "approve", "tool": "create_document", "reason": "new files need a nod"}
    result = call("run", folder(CREATE, policy=[rule]))
    assert result.exit_code == EXIT_CODES[Outcome.REJECTED]
    said = " ".join(result.stdout.split())
    assert 'asks for approval: new files need a nod create_document {"path": "new.xlsx"}' in said
    assert not (here / "runs/job-1/workspace/new.xlsx").exists()


def test_json_has_the_reason_of_a_missing_approval_too(call: Call, folder: Callable[..., Path]) -> None:
    rule = {"verdict": "approve", "tool": "create_document", "reason": "new files need a nod"}
    result = TaskResult.model_validate_json(call("run", folder(CREATE, policy=[rule]), "--json").stdout)
    assert result.outcome is Outcome.REJECTED
    assert any("no person could be asked, because " in cause.reason for cause in result.causes)


def test_yes_approves_actions_and_records_itself(call: Call, here: Path, folder: Callable[..., Path]) -> None:
    rule = {"verdict": "approve", "tool": "create_document", "reason": "new files need a nod"}
    log = here / "events.log"
    result = call("run", folder(CREATE, FINISH, policy=[rule]), "--yes", "--log-file", str(log))
    assert result.exit_code == EXIT_CODES[Outcome.FINISHED]
    assert (here / "runs/job-1/workspace/new.xlsx").exists()
    answers = [json.loads(line) for line in log.read_text().splitlines() if "approval.answered" in line]
    assert [entry["answer"]["by"] for entry in answers] == ["--yes"]


def test_yes_and_no_input_exclude_each_other(call: Call, folder: Callable[..., Path]) -> None:
    assert call("run", folder(CREATE), "--yes", "--no-input").exit_code == 2


@pytest.mark.parametrize(
    ("name", "section"),
    [
        ("post", {"mcpServers": {"post": {"command": sys.executable}}}),
        ("post", {"surfaces": {"post": {}}}),
        ("mail", {"mail": {"post": {"sender": "ada@example.org", "smtp": {"host": "localhost", "tls": "none"}}}}),
        ("post", {"shells": {"post": {"isolated": False, "cwd": "workspace"}}}),
        ("desktop", {"desktop": {"display": ":77"}}),
        ("browser", {"browser": {"cdp_url": "http://127.0.0.1:9"}}),
        ("android", {"android": {"devices": "all"}}),
    ],
)
def test_policy_check_refuses_a_task_whose_tools_it_would_really_call(
    call: Call, folder: Callable[..., Path], install: Callable[..., Path], name: str, section: dict[str, Any]
) -> None:
    install("acme", "surfaces", {"post": "callboard.testing:MemoryServer"})
    result = call("policy", "check", folder(CREATE, **section))
    assert result.exit_code == 2
    assert f"would call the real tools of {name}\n" in result.stderr


def test_policy_check_isolates_commands(folder: Callable[..., Path]) -> None:
    place = folder(CREATE, shells={"box": {"cwd": "workspace"}})
    assert keep_inside(Settings.load(place / "callboard.yaml")).shells["box"].isolated is True


def test_policy_check_refuses_a_remote_shell(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        keep_inside(Settings.load(shells={"post": {"ssh": "ada@post", "cwd": "work"}}))
    assert "would call the real tools of post" in capsys.readouterr().err


def test_policy_check_shows_each_verdict_and_leaves_nothing(
    call: Call, here: Path, folder: Callable[..., Path]
) -> None:
    rules = [{"verdict": "approve", "tool": "create_document", "reason": "new files need a nod"}]
    result = call("policy", "check", folder(CREATE, policy=rules), "--json")
    (verdict,) = json.loads(result.stdout)
    assert (verdict["tool"], verdict["verdict"], verdict["reason"]) == (
        "create_document",
        "approve",
        "new files need a nod",
    )
    assert not (here / "runs").exists()


def test_policy_check_tells_why_a_trial_run_failed(call: Call, folder: Callable[..., Path]) -> None:
    shown = call("policy", "check", folder()).stdout
    assert "0 actions; the trial run ended as error\nbecause " in shown
    assert "answer" in shown.rpartition("because ")[2]


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_policy_check_fits_a_terminal_of_any_width(here: Path, folder: Callable[..., Path], columns: int) -> None:
    rules = [{"verdict": "deny", "tool": "create_document", "reason": "no new files for this test"}]
    arguments = ["policy", "check", str(folder(CREATE, policy=rules))]
    lines = CliRunner().invoke(app, arguments, env={"COLUMNS": str(columns)}).stdout.splitlines()
    facts = [line for line in lines if line.startswith('         path="') or "file:" in line]
    assert facts[0] == '         path="new.xlsx"'
    assert facts[1].endswith("/job/workspace/new.xlsx")
    verdict = " ".join(" ".join(lines[: lines.index(facts[0])]).split())
    assert verdict == "deny create_document: no new files for this test (host/job, step 1)"
    assert max(map(len, lines[: lines.index(facts[0])])) <= columns


def test_policy_check_shows_what_the_rules_saw_and_warns(call: Call, folder: Callable[..., Path]) -> None:
    rules = [{"verdict": "deny", "tool": "create_documnt"}]
    result = call("policy", "check", folder(CREATE, policy=rules), "--json")
    assert "rule 1 of the policy: no tool is called 'create_documnt'; did you mean 'create_document'?" in result.stderr
    (verdict,) = json.loads(result.stdout)
    assert next(iter(verdict["resources"])).startswith("file:/")


@pytest.fixture
def originals(tmp_path: Path) -> Path:
    """A folder of documents that must not be changed."""
    place = tmp_path / "originals"
    place.mkdir()
    return place


@pytest.mark.parametrize("how", ["absolute", "above", "variable", "link", "link in the folder", "home"])
def test_policy_check_refuses_a_workspace_that_is_no_copy(
    call: Call, folder: Callable[..., Path], originals: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    named = {
        "absolute": str(originals),
        "above": "../originals",
        "link": "link",
        "link in the folder": "inside",
        "home": "~/originals",
    }
    monkeypatch.setenv("HOME", str(originals.parent))
    place = folder(CREATE, documents={"workspace": named.get(how, "workspace")})
    (place / "link").symlink_to(originals)
    (place / "inside").symlink_to(place / "workspace")
    if how == "variable":
        monkeypatch.setenv("CALLBOARD_DOCUMENTS__WORKSPACE", str(originals))
    result = call("policy", "check", place)
    assert result.exit_code == USAGE
    assert "which is outside the copy" in " ".join(result.stderr.split())
    assert list(originals.iterdir()) == list((place / "workspace").iterdir()) == []


@pytest.mark.parametrize("where", ["shells.box.cwd", "desktop.folder"])
def test_policy_check_refuses_other_folders_that_are_no_copies(
    call: Call, folder: Callable[..., Path], originals: Path, where: str
) -> None:
    named = {"shells": {"box": {"cwd": str(originals)}}, "desktop": {"display": "private", "folder": str(originals)}}
    section = where.partition(".")[0]
    result = call("policy", "check", folder(CREATE, **{section: named[section]}))
    assert result.exit_code == USAGE
    assert f"{where}: {originals} leads to" in " ".join(result.stderr.split())


def test_policy_check_follows_a_link_that_stays_in_the_copy(call: Call, folder: Callable[..., Path]) -> None:
    place = folder(CREATE, documents={"workspace": "link"})
    (place / "link").symlink_to("workspace")
    result = call("policy", "check", place)
    assert result.exit_code == 0, result.output
    assert "create_document" in result.stdout
    assert list((place / "workspace").iterdir()) == []


def test_policy_check_writes_no_log(call: Call, folder: Callable[..., Path], originals: Path) -> None:
    result = call("policy", "check", folder(CREATE, log={"file": str(originals / "events.log")}))
    assert result.exit_code == 0, result.output
    assert list(originals.iterdir()) == []


def test_policy_check_wants_a_folder(call: Call, folder: Callable[..., Path]) -> None:
    result = call("policy", "check", folder(CREATE) / "task.yaml")
    assert result.exit_code == USAGE
    assert "a trial run needs a folder that it can copy" in result.stderr
    assert "--output" not in result.stderr


# Mistakes


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("callboard.yaml", "modles: {}", "callboard.yaml: modles: unknown key; did you mean 'models'?"),
        ("callboard.yaml", "limits: {steps: many}", "callboard.yaml: limits.steps: "),
        ("callboard.yaml", "a: [", "callboard.yaml: is not valid YAML"),
        ("callboard.yaml", "models: {host: gpt}", "models.host: 'gpt' is not a known model"),
        ("script.yaml", "host: finish", "script.yaml: host: expected a list of answers"),
        ("task.yaml", "requst: do it", "task.yaml: requst: unknown key; did you mean 'request'?"),
        ("task.yaml", "qqqqqqqq: do it", "task.yaml: qqqqqqqq: unknown key; known: "),
        ("task.yaml", "request: 7", "task.yaml: request: "),
        ("task.yaml", "request: ''", "task.yaml: "),
        ("task.yaml", "request: x\nbudget: {stps: 3}", "task.yaml: budget.stps: unknown key; did you mean 'steps'?"),
        ("task.yaml", "request: x\npolicy: [{verdict: deny, tol: x}]", "policy.0.tol: unknown key; did you mean"),
        (
            "task.yaml",
            "request: x\ndeadline: 2099-01-01 10:00:00",
            "task.yaml: deadline: must be a date and time with its time",
        ),
        ("task.yaml", "plan: [one, {request: two, targt: x}]", "task.yaml: plan.1.targt: unknown key; did you mean"),
        ("task.yaml", "do it", "task.yaml: has no keys"),
        ("task.yaml", "a: [", "task.yaml: is not valid YAML"),
    ],
)
def test_mistake_is_reported_with_file_and_key_before_anything_is_copied(
    call: Call, folder: Callable[..., Path], name: str, text: str, told: str
) -> None:
    result = call("run", folder(FINISH, files={name: text}))
    assert result.exit_code == USAGE
    assert result.stdout == ""
    assert told in result.stderr
    assert "Traceback" not in result.stderr
    assert list(Path.cwd().iterdir()) == []


def test_mistakes_of_a_file_are_all_reported(call: Call, folder: Callable[..., Path]) -> None:
    lines = call("run", folder(FINISH, files={"task.yaml": "requst: x\ntargt: y"})).stderr.splitlines()
    assert sum("unknown key" in line for line in lines) == 2
    assert all(line.startswith("callboard: ") for line in lines)


def test_missing_target_is_reported_with_the_present_ones(call: Call, folder: Callable[..., Path]) -> None:
    result = call("run", folder(FINISH, files={"task.yaml": "request: do it\ntarget: nowhere"}))
    assert result.exit_code == USAGE
    assert "there is no target 'nowhere'; there are: word, excel, powerpoint" in result.stderr


def test_missing_workspace_is_reported(call: Call, folder: Callable[..., Path]) -> None:
    result = call("run", folder(FINISH, documents={"workspace": "nowhere"}))
    assert result.exit_code == USAGE
    assert "documents: the folder " in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "nowhere"], "nowhere: there is no such file or folder"),
        (["run", "."], ".: has no callboard.yaml: a folder to run holds its settings there"),
        (["run", EXAMPLE, "--output", "."], ".: already exists: choose another --output"),
        (["run", EXAMPLE, "--settings", "x.yaml"], "--settings belongs to a task file"),
        (["run", EXAMPLE / "task.yaml", "--output", "x"], "--output needs a folder"),
        (["run", EXAMPLE / "task.yaml", "--settings", "x.yaml"], "x.yaml: there is no such file"),
        (["config", "x.yaml"], "x.yaml: there is no such file or folder"),
        (["graph", "hots"], "'hots' is not one of 'host', 'app', 'mobile', 'linux'"),
        (["schema", "tsk"], "there is no message or file 'tsk'; did you mean 'task'?"),
        (["schema", "qqqqqqqq"], "there is no message or file 'qqqqqqqq'; there are: callboard.yaml, "),
        (["frobnicate"], "No such command 'frobnicate'"),
    ],
)
def test_wrong_call_is_reported_without_a_traceback(call: Call, arguments: list[Any], told: str) -> None:
    result = call(*arguments)
    assert result.exit_code == USAGE
    assert result.stdout == ""
    assert told in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.stderr


# The display


def at(seconds: float, name: EventName, number: int = 0, agent: str = "host/t", **fields: Any) -> Event:
    known = {key: fields.pop(key) for key in ("state", "step") if key in fields}
    return Event(
        seq=1, at=1000 + seconds, name=name, task_id="t", run_id=f"t~{number}", agent=agent, data=fields, **known
    )


def drawn(board: TaskDisplay, now: float, width: int = 100) -> list[str]:
    console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    with console.file:
        console.print(board.picture(1000 + now, console.width))
    return console.export_text().splitlines()


@pytest.fixture
def board() -> TaskDisplay:
    """A task in the middle: its host waits, its second subtask works."""
    board = TaskDisplay("t", "make a chart")
    word, excel = "app/word/sales.docx", "app/excel/report.xlsx"
    for event in (
        at(0, EventName.ROUND_STARTED, request="make a chart", round=1),
        at(0, EventName.STATE_CHANGED, source="", target="CONTINUE", by="system"),
        at(0, EventName.STEP_STARTED, step=1),
        at(1, EventName.STATE_CHANGED, source="CONTINUE", target="ASSIGN", by="model"),
        at(1, EventName.SUBTASK_ASSIGNED, 1, word, request="read the table"),
        at(1, EventName.STEP_STARTED, 1, word, step=2),
        at(3, EventName.SUBTASK_ENDED, 1, word, outcome="failed", causes=[]),
        at(3, EventName.SUBTASK_QUEUED, 2, excel, ahead=1),
        at(4, EventName.SUBTASK_ASSIGNED, 2, excel, request="draw it"),
        at(4, EventName.STATE_CHANGED, 2, excel, source="", target="CONTINUE", by="system"),
        at(4, EventName.STEP_STARTED, 2, excel, step=3),
        at(5, EventName.COMMAND_ENDED, 2, excel, tool="insert_chart", status="failure", error="no numbers"),
    ):
        board.see(event)
    return board


def test_the_display_names_the_machine_that_was_chosen_with_its_steps(board: TaskDisplay) -> None:
    there, sign = "remote/any/excel", "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
    board.see(at(6, EventName.SUBTASK_ASSIGNED, 3, there, request="sum it"))
    assert any(f"any {sign} excel" in line for line in drawn(board, 9))
    told = board.see(at(7, EventName.MACHINE_CHOSEN, 3, there, machine="office-2", target="app/excel"))
    assert str(told).endswith(f"3 office-2 {sign} excel  is given to the machine office-2")
    ended = {"outcome": "finished", "causes": [], "machine": "office-2", "steps": 4}
    board.see(at(9, EventName.SUBTASK_ENDED, 3, there, **ended))
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in drawn(board, 9)]
    assert [f"office-2 {sign} excel", "finished", "3. sum it", "4", "3.0 s"] in rows


def test_the_display_shows_agent_state_subtask_step_and_elapsed_time(board: TaskDisplay) -> None:
    rows = [line.split("  ") for line in drawn(board, 9.5)]
    found = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert ["host/t", "delegating", "make a chart", "1", "9.5 s"] in found
    assert ["app/word/sales.docx", "failed", "1. read the table", "2", "2.0 s"] in found
    assert ["app/excel/report.xlsx", "working", "2. draw it", "3", "6.5 s"] in found


def test_a_message_that_came_too_late_is_no_work_of_an_agent(board: TaskDisplay) -> None:
    late = Event(seq=1, at=1006, name=EventName.MESSAGE_STALE, task_id="t", run_id="", agent="supervisor")
    rows = dict(board.rows)
    board.see(late.model_copy(update={"data": {"message": "Pause"}}))
    assert board.rows == rows
    alone = TaskDisplay("t", "make a chart")
    alone.see(late)
    assert alone.rows == {}


def test_the_display_shows_what_happened_last(board: TaskDisplay) -> None:
    assert drawn(board, 9.5)[-1].rstrip() == "    5.00 s  2 app/excel/report.xlsx  insert_chart: failure, no numbers"


def test_display_names_a_skipped_action_once(board: TaskDisplay) -> None:
    why = "skipped, because insert_chart failed before it"
    line = board.see(at(6, EventName.COMMAND_ENDED, 2, "app/x", tool="format_cells", status="skipped", error=why))
    assert line is not None
    assert line.plain == f"    6.00 s  2 app/x  format_cells: {why}"


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_the_display_fits_the_terminal(board: TaskDisplay, width: int) -> None:
    lines = drawn(board, 9.5, width)
    assert max(map(len, lines)) <= width
    assert sum("/" in line for line in lines) >= 3


def group(*after: tuple[int, ...]) -> TaskDisplay:
    """A task whose subtasks were assigned together, each with those that it comes after."""
    board = TaskDisplay("t", "report all regions")
    board.see(at(0, EventName.ROUND_STARTED, request="report all regions", round=1))
    for number, before in enumerate(after, 1):
        order = {"after": list(before), "after_any": [], "group": 1}
        board.see(at(1, EventName.SUBTASK_PLANNED, number, f"app/{number}", request=f"part {number}", **order))
    return board


def test_waiting_rows_name_the_subtasks_that_they_wait_for() -> None:
    board = group((), (), (), (1, 2, 3), (2, 4))
    for number in (1, 2, 3):
        board.see(at(2, EventName.SUBTASK_ASSIGNED, number, f"app/{number}", request=f"part {number}"))
    rows = [re.split(r"\s{2,}", line.strip()) for line in drawn(board, 5)]
    assert ["app/1", "starting", "1. part 1", "0", "3.0 s"] in rows
    assert ["app/4", "after 1-3", "4. part 4"] in rows
    assert ["app/5", "after 2, 4", "5. part 5"] in rows
    board.see(at(6, EventName.SUBTASK_ENDED, 2, "app/2", outcome="failed", causes=["no"]))
    board.see(at(6, EventName.SUBTASK_ENDED, 4, "app/4", outcome="cancelled", causes=["it comes after subtask 2"]))
    rows = [re.split(r"\s{2,}", line.strip()) for line in drawn(board, 7)]
    assert ["app/2", "failed", "2. part 2", "0", "4.0 s"] in rows
    assert ["app/4", "cancelled", "4. part 4"] in rows
    assert ["app/5", "waiting", "5. part 5"] in rows


def test_lines_carry_the_numbers_of_subtasks_that_wait() -> None:
    board = TaskDisplay("t", "report")
    board.see(at(0, EventName.ROUND_STARTED, request="report", round=1))
    order = {"after": [1], "after_any": [2, 3], "group": 1}
    line = board.see(at(1, EventName.SUBTASK_PLANNED, 4, "app/4", request="write it", **order))
    assert line is not None
    assert line.plain == "    1.00 s  4 app/4  waits for 1-3: write it"


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_long_names_are_folded_and_lines_keep_their_margin(width: int) -> None:
    board = group((), ())
    agent = "app/word/the-quarterly-report-of-the-eastern-and-western-regions-final-2.docx"
    board.see(at(2, EventName.SUBTASK_ASSIGNED, 1, agent, request="read the sales by month " * 4))
    board.see(at(3, EventName.COMMAND_ENDED, 3, agent, tool="read_table", status="failure", error="no table " * 20))
    lines = drawn(board, 9, width)
    assert max(map(len, lines)) <= width
    first, *more = lines[next(number for number, line in enumerate(lines) if "3.00 s" in line) :]
    assert more
    assert all(line.startswith(" " * 12) for line in more)
    assert agent in "".join("".join([first, *more]).split())


@pytest.mark.parametrize("width", [60, 100])
def test_waiting_rows_are_hidden_before_those_that_work(width: int) -> None:
    board = group(*[() if number < 4 else (1,) for number in range(1, 17)])
    for number in range(1, 4):
        board.see(at(2, EventName.SUBTASK_ASSIGNED, number, f"app/{number}", request=f"part {number}"))
    console = Console(width=width, height=16, record=True, file=io.StringIO())
    console.print(pictures([board], 1030, console))
    lines = console.export_text().splitlines()
    assert len(lines) <= 16
    assert re.match(r"\d+ more wait for others", lines[0])
    assert [number for number in range(1, 4) if not any(f" {number}. part" in line for line in lines)] == []


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_display_fits_the_height_and_keeps_who_works(board: TaskDisplay, width: int) -> None:
    for number in range(3, 24):
        board.see(at(number, EventName.SUBTASK_ASSIGNED, number, f"app/{number}", request="do a part of it"))
        board.see(at(number, EventName.SUBTASK_ENDED, number, f"app/{number}", outcome="finished"))
    console = Console(width=width, height=24, record=True, file=io.StringIO())
    console.print(pictures([board], 1030, console))
    lines = console.export_text().splitlines()
    assert len(lines) <= 24
    assert re.match(r"\d+ ended earlier", lines[0])
    assert any("app/excel/report.xlsx" in line for line in lines)
    assert any("app/23" in line for line in lines)
    assert "finished" in lines[-1]
    assert not any("app/word/sales.docx" in line for line in lines)


# The other commands


@pytest.mark.parametrize("kind", list(AgentKind))
def test_graph_prints_the_machine_of_each_agent(call: Call, kind: AgentKind) -> None:
    assert call("graph", kind.value).stdout == mermaid(MACHINES[kind])


@pytest.mark.parametrize("kind", list(AgentKind))
def test_graph_prints_the_table_for_machines(call: Call, kind: AgentKind) -> None:
    said = json.loads(call("graph", kind.value, "--json").stdout)
    table = MACHINES[kind].transitions
    assert {source: set(row) for source, row in said["transitions"].items()} == {
        s: set(row) for s, row in table.items()
    }
    assert said["transitions"]["CONTINUE"]["FINISH"] == ["model"]
    assert (said["initial"], said["final"]) == ("CONTINUE", "FINISH")


def test_the_schema_is_one_document_for_every_message(call: Call) -> None:
    said = json.loads(call("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(said)
    assert set(said["discriminator"]["mapping"]) == set(Message.registry)
    assert len(said["oneOf"]) == len(Message.registry)


def test_the_schema_of_one_message_takes_it_and_refuses_others(call: Call) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(call("schema", "task").stdout))
    task = Task(request="do it").model_dump(mode="json")
    assert validator.is_valid(task)
    assert not validator.is_valid({**task, "requst": "x"})


def test_config_prints_yaml_that_can_be_loaded_again(call: Call, here: Path) -> None:
    (here / "some.yaml").write_text("limits: {steps: 7}\nmcpServers: {web: {url: 'http://localhost/mcp'}}")
    (here / "again.yaml").write_text(call("config", "some.yaml").stdout)
    first, again = Settings.load(here / "some.yaml"), Settings.load(here / "again.yaml")
    assert again.model_dump() == first.model_dump()
    assert again.limits.steps == 7


def test_config_prints_json_of_the_same(call: Call) -> None:
    assert json.loads(call("config", EXAMPLE, "--json").stdout) == yaml.safe_load(call("config", EXAMPLE).stdout)


def test_config_prints_what_is_in_force(call: Call, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "some.yaml").write_text("limits: {steps: 7, repairs: 5}")
    monkeypatch.setenv("CALLBOARD_LIMITS__STEPS", "9")
    limits = yaml.safe_load(call("config", "some.yaml").stdout)["limits"]
    assert (limits["steps"], limits["repairs"], limits["action_failures"]) == (9, 5, 3)


def test_config_reads_the_settings_of_the_current_folder(call: Call, here: Path) -> None:
    (here / "callboard.yaml").write_text("limits: {steps: 7}")
    assert yaml.safe_load(call("config").stdout)["limits"]["steps"] == 7


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_config_hides_secrets(call: Call, here: Path, arguments: list[str]) -> None:
    (here / "some.yaml").write_text("mcpServers: {web: {command: x, env: {TOKEN: hunter22}}}")
    said = call("config", "some.yaml", *arguments).stdout
    assert "TOKEN" in said
    assert "hunter22" not in said


def test_variables_without_the_prefix_do_not_disturb_the_settings(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUIRE_SOFFICE", "1")
    assert call("config").exit_code == 0


# As a program of its own


def program(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return forks.run([sys.executable, "-m", "callboard", *map(str, arguments)], cwd=cwd, timeout=PATIENCE)


def test_the_module_is_the_program(here: Path) -> None:
    done = program("--version", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"callboard \d+\.\d+\.\d+\S*\n", done.stdout)


def test_the_program_runs_a_folder_from_another_one(here: Path) -> None:
    done = program("run", os.path.relpath(EXAMPLE, here), cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("history callboard show sales_report-1 runs/sales_report-1\n")


def test_a_terminal_that_knows_few_letters_is_no_reason_to_fail(here: Path, folder: Callable[..., Path]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "callboard", "run", folder({**FINISH, "Comment": "Größe"})],
        cwd=here,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Gr" in done.stdout


def on_a_terminal(*arguments: object, cwd: Path, columns: int = 100) -> tuple[int, str]:
    """Run the program on a terminal of its own; returns its exit code and all that it wrote."""
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    screen, side = pty.openpty()
    termios.tcsetwinsize(side, (30, columns))
    command = [sys.executable, "-m", "callboard", *map(str, arguments)]
    environment = {key: value for key, value in os.environ.items() if key not in {"COLUMNS", "LINES", "NO_COLOR"}}
    with forks.Program(
        command, cwd=cwd, stdin=side, stdout=side, stderr=side, env={**environment, "TERM": "xterm"}
    ) as process:
        os.close(side)
        written = bytearray()
        while part := _read(screen):
            written += part
        os.close(screen)
        code = process.wait(PATIENCE)
    return code, written.decode("utf-8").replace("\r\n", "\n")


def _read(screen: int) -> bytes:
    try:
        return os.read(screen, 65_536)
    except OSError:  # the other side is closed
        return b""


def final_screen(written: str) -> str:
    """The final screen, without colours: the head, and the lines after the last erased one."""
    head, _, _ = written.partition("\x1b[?25l")
    _, _, rest = written.rpartition("\x1b[2K")
    return "\n".join(line.rstrip() for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", head + rest).splitlines()) + "\n"


def test_a_terminal_shows_a_picture_that_changes_and_at_last_the_result(here: Path) -> None:
    code, written = on_a_terminal("run", EXAMPLE, cwd=here)
    assert code == 0
    assert "\x1b[2K" in written, "nothing was ever redrawn"
    assert "app/word/sales.docx" in written.partition("finished in")[0]
    assert final_screen(written).count("app/word/sales.docx") == 1
    assert final_screen(written).endswith("history callboard show sales_report-1 runs/sales_report-1\n")


# The README


README = (EXAMPLE.parents[1] / "README.md").read_text(encoding="utf-8")
PICTURE = EXAMPLE.parents[1] / "docs" / "picture.svg"


def test_the_picture_shows_the_real_output_of_a_run(here: Path) -> None:
    shutil.copytree(EXAMPLE, here / "sales_report")
    code, written = on_a_terminal("run", "sales_report", cwd=here)
    assert code == 0
    rows: defaultdict[float, list[tuple[float, str]]] = defaultdict(list)
    for text in ET.parse(PICTURE).iter("{http://www.w3.org/2000/svg}text"):  # noqa: S314 - our own
        rows[float(text.attrib["y"])].append((float(text.attrib["x"]), text.text or ""))
    first, *shown = ("".join(text for _, text in sorted(row)) for _, row in sorted(rows.items()))

    def bare(text: str) -> str:
        """Leave out the space and the times."""
        return "".join(re.sub(r"\d+\.\d\s+s", "", text).split())

    assert bare(first) == "$callboarddemo"
    assert bare("".join(shown)) == bare(final_screen(written)), "run: python docs/picture.py"


def test_the_page_of_the_command_line_has_every_exit_code() -> None:
    page = (EXAMPLE.parents[1] / "docs" / "command-line.md").read_text(encoding="utf-8")
    for outcome, code in EXIT_CODES.items():
        assert f"| {code} | `{outcome.value}` |" in page


@pytest.mark.parametrize("number", range(len(re.findall(r"```python\n", README))))
def test_the_programs_of_the_readme_run(here: Path, number: int) -> None:
    shutil.copytree(EXAMPLE, here / "examples" / "sales_report")
    text = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[number]
    done = forks.run([sys.executable, "-W", "error", "-c", text], cwd=here, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr


def test_the_settings_of_the_readme_load(here: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    (here / "callboard.yaml").write_text(text, encoding="utf-8")
    assert Settings.load(here / "callboard.yaml").limits.steps == 20
