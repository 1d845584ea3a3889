"""Checks on the command line: the option, task files, and the words about their results."""

from __future__ import annotations

import io
import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from rich.console import Console
from typer.testing import CliRunner, Result

from callboard import Event, EventName, Outcome, TaskResult, answers
from callboard.config import parse_yaml
from callboard.history import described
from callboard.journal import JournalReader
from callboard.messages import Check, CheckResult, JudgeResult
from callboard.terminal import NOT_VERIFIED, USAGE, TaskDisplay, app, checks_of, completion_script, exit_code
from callboard.terminal._results import print_result
from support import COMMAND

Call = Callable[..., Result]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"
DONE = answers.finish("All done.")
RIGHT = "table: prices.csv = [[Screw, 2]]"
WRONG = "{table: prices.csv, equals: [[Screw, 3]], name: the price}"
FILES = {"workspace/prices.csv": "Item,Price\nScrew,2\n"}
JOURNAL = {"path": "journal.db"}


def short_forms() -> list[tuple[str, str]]:
    """Read the short forms, and the same in braces, from the page of the command line."""
    section = PAGE.read_text(encoding="utf-8").partition("| short form |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|$", section, re.MULTILINE)


def refused(call: Call, folder: Path, *options: str) -> str:
    result = call("run", folder, *options)
    assert result.exit_code == USAGE, result.output
    assert not Path("runs").exists()
    return " ".join(result.stderr.split())


def test_the_page_has_the_short_form_of_each_reading() -> None:
    forms = {short.partition(":")[0] for short, _ in short_forms()}
    assert forms == {"cells", "table", "text", "command", "file", "changed", "only", "unchanged", "program"}


@pytest.mark.parametrize(("short", "braces"), short_forms())
def test_a_short_form_is_the_same_as_its_braces(short: str, braces: str) -> None:
    assert checks_of([short]) == checks_of([braces]) == (Check.model_validate(parse_yaml(braces)),)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("412.5", 412.5),
        ("-3e2", -300.0),
        ("true", True),
        ('"12"', "12"),
        ("[1, a]", [1, "a"]),
        ("{a: 1}", {"a": 1}),
        ("1:30", "1:30"),
        ("yes", "yes"),
        ("null", "null"),
        ("2026-05-04", "2026-05-04"),
        ("08", "08"),
        ("NaN", "NaN"),
        ("note: paid", "note: paid"),
    ],
)
def test_a_value_of_the_short_form_is_a_number_or_a_text(option: str, value: Any) -> None:
    (check,) = checks_of([f"cells: a.xlsx!B8 = {option}"])
    assert (check.equals, type(check.equals)) == (value, type(value))


def test_a_matcher_without_a_value_and_a_pattern_are_read() -> None:
    exists, pattern = checks_of(["cells: a.xlsx!B8 exists", "text: a.docx matches ^[0-9]{2} .a$"])
    assert (exists.exists, exists.cells) == (True, "a.xlsx!B8")
    assert pattern.matches == "^[0-9]{2} .a$"


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (" ", "--check is empty: give a reading and what is expected, such as "),
        ("report.xlsx", "--check 'report.xlsx': it begins with no reading and a colon; write a check such as "),
        ("fle: a.xlsx", "--check 'fle: a.xlsx': there is no reading 'fle'; did you mean 'file'?"),
        ("cells:", "--check 'cells:': `cells` names nothing"),
        ("cells: = 3", "`cells` names nothing before '='"),
        ("control: a!b", "`control` has no short form: write it in braces, such as '{control: "),
        ("command: grep -c = x = 3", "has = and =, so it can be read in two ways: write it in braces"),
        ("file: a.xlsx = 3", "`file` says itself what is expected: leave '=' out"),
        ("cells: a same_as 5", "`same_as` needs a second reading"),
        ("cells: a = [1", "the value is not valid YAML: expected ',' or ']'"),
        ("{cells: a", "--check '{cells: a': is not valid YAML: expected ',' or '}'"),
        ("{cells: a, cells: b}", "the key 'cells' appears twice"),
        ("{cells: a, equls: 3}", "--check '{cells: a, equls: 3}': equls: unknown key; did you mean 'equals'?"),
        ("{tool: t, same_as: {tabel: x}}", "same_as.tabel: unknown key; did you mean 'table'?"),
        ("text: a matches (b", "matches: is not a regular expression"),
        ("cells: a between 1", "between: must be a list"),
        ("{cells: a, between: [2, 1]}", "`between` is empty"),
    ],
)
def test_wrong_check_is_reported(capsys: pytest.CaptureFixture[str], option: str, told: str) -> None:
    with pytest.raises(typer.Exit):
        checks_of([option])
    assert told in " ".join(capsys.readouterr().err.split())


def test_wrong_check_is_reported_with_its_option_before_anything_runs(call: Call, folder: Callable[..., Path]) -> None:
    told = refused(call, folder(DONE), "--check", "{cells: a, equls: 3}")
    assert told == "callboard: --check '{cells: a, equls: 3}': equls: unknown key; did you mean 'equals'?"


def test_too_many_checks_are_refused(call: Call, folder: Callable[..., Path]) -> None:
    place = folder(DONE, files={"task.yaml": yaml.safe_dump({"request": "x", "checks": [{"file": "a"}] * 99})})
    told = refused(call, place, "--check", "file: b", "--check", "file: c")
    assert "--check: 101 checks are too many: a task has at most 100" in told


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"checks": ["file: a.xlsx"]}, "checks.0: must be a mapping of keys to values"),
        ({"checks": {"file": "a.xlsx"}}, "checks: must be a list"),
        (
            {"checks": [{"file": "a"}, {"cells": "a", "equls": 3}]},
            "checks.1.equls: unknown key; did you mean 'equals'?",
        ),
        (
            {"checks": [{"cells": "a", "same_as": {"tabel": "b"}}]},
            "checks.0.same_as.tabel: unknown key; did you mean",
        ),
        ({"checks": [{"control": {"targt": "a"}}]}, "checks.0.control.targt: unknown key; did you mean 'target'?"),
        (
            {"plan": [{"request": "x", "checks": [{"fle": "a"}]}]},
            "plan.0.checks.0.fle: unknown key; did you mean 'f",
        ),
        ({"checks": [{"text": "a", "matches": "("}]}, "checks.0.matches: is not a regular expression"),
    ],
)
def test_wrong_check_of_a_task_file_is_reported_with_file_and_place(
    call: Call, folder: Callable[..., Path], content: dict[str, Any], told: str
) -> None:
    request = {} if "plan" in content else {"request": "x"}
    place = folder(DONE, files={"task.yaml": yaml.safe_dump({**request, **content})})
    assert f"{place}/task.yaml: {told}" in refused(call, place)


def test_the_help_and_the_completion_have_the_option(call: Call) -> None:
    told = CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "200"}).stdout
    assert "--check CHECK" in told
    assert f"{NOT_VERIFIED} failed because checks do not hold" in " ".join(told.split())
    (line,) = (line for line in completion_script(COMMAND).splitlines() if "*:run:-*" in line)
    assert " --check " in line


def test_a_task_whose_checks_hold_is_verified(call: Call, folder: Callable[..., Path]) -> None:
    place = folder(DONE, files={**FILES, "task.yaml": "request: x\nchecks: [{file: prices.csv}]\n"}, journal=JOURNAL)
    result = call("run", place, "--check", RIGHT, "--output", "done")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[lines.index("verified: 2 of 2 checks") - 1].endswith(" s: All done.")
    assert "check holds: table prices.csv" in result.stdout
    assert "check holds: table prices.csv" in call("show", "done", "done").stdout
    assert "finished, verified" in call("tasks", "done").stdout


def test_task_without_checks_is_shown_as_not_verified(call: Call, folder: Callable[..., Path]) -> None:
    place = folder(DONE, files=FILES, journal=JOURNAL)
    result = call("run", place, "--output", "done")
    assert "\nfinished, not verified: the task has no checks\n" in result.stdout
    assert "finished, not verified: the task has no checks" in call("show", "done", "done").stdout
    assert "verified" not in call("tasks", "done").stdout


def test_failed_check_is_reported_with_expected_and_found(call: Call, folder: Callable[..., Path]) -> None:
    place = folder(DONE, files=FILES, journal=JOURNAL, limits={"check_retries": 0})
    result = call("run", place, "--check", WRONG, "--check", RIGHT, "--output", "done")
    assert result.exit_code == NOT_VERIFIED
    for said in (result.stdout, call("show", "done", "done").stdout):
        last = " ".join(said.rpartition("failed in ")[2].split())
        assert "; the agent said: All done. not verified: 1 of 2 checks held" in last
        assert 'check the price: expected [["Screw", 3]]; found 2 at /0/1 used ' in last
        assert "because" not in last
    assert "check does not hold: the price: expected" in " ".join(result.stdout.split())
    assert "failed, not verified" in call("tasks", "done").stdout


def test_json_has_the_results_of_checks(call: Call, folder: Callable[..., Path]) -> None:
    place = folder(DONE, files=FILES, journal=JOURNAL, limits={"check_retries": 0})
    printed = call("run", place, "--check", WRONG, "--check", RIGHT, "--output", "done", "--json")
    result = TaskResult.model_validate_json(printed.stdout)
    assert (printed.exit_code, result.outcome, result.verified) == (NOT_VERIFIED, Outcome.FAILED, False)
    assert [(check.name, check.held) for check in result.checks] == [("the price", False), ("table prices.csv", True)]
    assert [task["verified"] for task in json.loads(call("tasks", "done", "--json").stdout)] == [False]
    shown = json.loads(call("show", "done", "done", "--json").stdout)
    assert shown["result"]["checks"] == json.loads(printed.stdout)["checks"]


def test_dry_run_reports_that_checks_are_not_run(call: Call, folder: Callable[..., Path]) -> None:
    result = call("run", folder(DONE, files=FILES), "--check", WRONG, "--dry-run")
    assert result.exit_code == 0, result.output
    assert "a dry run: no action is executed, except tools that only read; checks are not run" in result.stdout
    assert "verified" not in result.stdout


def test_a_request_keeps_its_checks_in_the_task_file_of_its_run(call: Call, here: Path) -> None:
    (here / "prices.csv").write_text(FILES["workspace/prices.csv"], encoding="utf-8")
    (here / "script.yaml").write_text(yaml.safe_dump({"host": [DONE]}), encoding="utf-8")
    model = ("--model", "scripted:script.yaml")
    result = call("run", "Read the prices", "prices.csv", *model, "--check", RIGHT, "--check", WRONG)
    assert result.exit_code != 0
    assert "not verified: 1 of 2 checks held" in result.stdout
    task = yaml.safe_load((here / "runs/prices-1/task.yaml").read_text(encoding="utf-8"))
    assert task["checks"][0] == {"table": "prices.csv", "equals": [["Screw", 2]]}
    assert "1 of 2 checks held" in call("run", "runs/prices-1").stdout


def failed(**fields: Any) -> CheckResult:
    return CheckResult(**{"name": "total", "reading": "cells a.xlsx!B8", "held": False, "found": 3, **fields})


def judged(answer: Any) -> JudgeResult:
    return JudgeResult(question="Is it polite?", answer=answer, reason="It greets.")


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (TaskResult(task_id="t", outcome=Outcome.FAILED), 1),
        (TaskResult(task_id="t", outcome=Outcome.FAILED, verified=False), 1),
        (TaskResult(task_id="t", outcome=Outcome.FAILED, checks=(failed(source="model"),)), 1),
        (TaskResult(task_id="t", outcome=Outcome.CANCELLED, verified=False, checks=(failed(),)), 4),
        (TaskResult(task_id="t", outcome=Outcome.FAILED, verified=False, checks=(failed(),)), NOT_VERIFIED),
        (TaskResult(task_id="t", outcome=Outcome.FINISHED, verified=False), NOT_VERIFIED),
        (TaskResult(task_id="t", outcome=Outcome.FAILED, judged=(judged("no"),)), NOT_VERIFIED),
        (TaskResult(task_id="t", outcome=Outcome.FAILED, judged=(judged("unsure"),)), 1),
    ],
)
def test_the_exit_code_of_checks_is_that_of_failed_ones(result: TaskResult, code: int) -> None:
    assert exit_code(result) == code


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ({"equals": 4}, "4"),
        ({"approx": 4}, "about 4"),
        ({"same_as": "table b.docx", "value": [4]}, "the same as table b.docx: [4]"),
        ({"contains": "x"}, 'a part that is "x"'),
        ({"between": [1, 2]}, "between 1 and 2"),
        ({"one_of": [1, "x"]}, 'one of 1, "x"'),
        ({"count": 4}, "a number of 4"),
        ({"exists": True}, "something"),
        ({"is_empty": False}, "something in it"),
        ({"changed": True}, "a changed file"),
        ({"changed": []}, "no changes"),
        ({"changed": ["a.xlsx"]}, "no changes but of a.xlsx"),
        ({"returns": True}, "true"),
        ({"matches": "^a"}, 'matches "^a"'),
        ({"schema": {"type": "null"}}, 'schema {"type": "null"}'),
    ],
)
def test_an_expectation_is_put_into_words(expected: Any, words: str) -> None:
    assert described(failed(expected=expected)) == f"total: expected {words}; found 3"


def test_unreadable_check_is_described_with_its_reason() -> None:
    check = failed(expected={"equals": 4}, found=None, problem="there is no 'a.xlsx'")
    assert described(check) == "total: expected 4; there is no 'a.xlsx'"


def test_proposed_check_is_shown_as_a_models() -> None:
    facts = failed(source="model").model_dump(include={"name", "reading", "expected", "found", "problem", "source"})
    event = Event(
        seq=1, at=1.0, name=EventName.CHECK_PASSED, task_id="t", run_id="t~0", agent="host/t", data={"check": facts}
    )
    line = TaskDisplay("t", "x").see(event)
    assert line is not None
    assert line.plain.endswith("check holds: total (proposed by the model)")


def test_answers_of_a_judge_are_shown() -> None:
    console = Console(width=100, file=io.StringIO())
    print_result(console, TaskResult(task_id="t", outcome=Outcome.FINISHED, judged=(judged("yes"),)))
    printed = console.file.getvalue()
    assert "judge   'Is it polite?': yes, It greets." in printed
    assert "finished, not verified: the task has no checks" in printed
    data = {"answers": [judged("no").model_dump()], "model": "m", "calls": 1, "cost": 0.0}
    data |= {"input_tokens": 0, "output_tokens": 0}
    line = TaskDisplay("t", "x").see(
        Event(seq=1, at=1.0, name=EventName.JUDGE_ANSWERED, task_id="t", run_id="t~1", agent="app/a", data=data)
    )
    assert line is not None
    assert line.plain.endswith("the judge of 'Is it polite?': no, It greets.")


def test_the_proposals_of_a_model_are_counted_apart() -> None:
    checks = (failed(source="model"), failed(source="model", held=True))
    result = TaskResult(task_id="t", outcome=Outcome.FINISHED, checks=checks)
    console = Console(width=100, file=io.StringIO())
    print_result(console, result)
    printed = console.file.getvalue()
    assert "finished, not verified: the task has no checks" in printed
    assert "1 of 2 checks that the model proposed hold" in printed


def test_a_check_program_that_no_settings_name_is_refused(call: Call, folder: Callable[..., Path]) -> None:
    result = call("run", folder(DONE, files=FILES), "--check", "program: balances")
    assert result.exit_code == USAGE
    assert "no check program is called 'balances'; there are: none" in result.stderr


def test_a_check_program_of_the_settings_is_called(
    call: Call, folder: Callable[..., Path], install: Callable[..., Path]
) -> None:
    source = "def balances(month):\n    return month == 7 or f'month {month} differs'\n"
    install("acme", "checks", {"balances": "acme_ledger:balances"}, acme_ledger=source)
    place = folder(DONE, check_programs=["balances"], limits={"check_retries": 0})
    right, wrong = (f"{{program: balances, args: {{month: {month}}}}}" for month in (7, 8))
    assert "verified: 1 of 1 check\n" in call("run", place, "--check", right).stdout
    result = call("run", place, "--check", wrong)
    assert result.exit_code == NOT_VERIFIED
    assert 'check   program balances: expected true; found "month 8 differs"' in result.stdout


def test_a_list_of_tasks_of_an_older_journal_has_no_marks(call: Call, here: Path) -> None:
    script = Path(__file__).resolve().parents[1] / "journal" / "version_8.sql"
    connection = sqlite3.connect(here / "journal.db")
    connection.executescript(script.read_text(encoding="utf-8"))
    connection.close()
    with JournalReader.open(here / "journal.db") as reader:
        assert {task.verified for task in reader.tasks()} == {None}
    assert call("show", "done", "journal.db").stdout.count("finished, not verified: the task has no checks") == 1
