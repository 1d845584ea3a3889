"""Checks hold by fresh readings of the target that they name."""

from __future__ import annotations

import threading
import time

import pytest
from pydantic import ValidationError

from callboard import Outcome, Task
from callboard.config import ShellSettings
from callboard.messages import Check, Judge
from callboard.surfaces.documents import DocumentSurface
from callboard.surfaces.shell import ShellSurface
from support import FINISH, PATIENCE, call

YES = {"Answers": [{"Reason": "It is there.", "Answer": "yes"}]}
STATUS = {"command": "cat status.txt", "equals": "OK"}
FAIL = {"Status": "FAIL"}


@pytest.fixture
def begin(begin):
    """Start supervisors that settle quickly and retry no failed check."""
    return lambda **given: begin(**{"limits": {"settle_seconds": 0.01, "check_retries": 0}, **given})


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "work"
    (folder / "archive").mkdir(parents=True)
    (folder / "status.txt").write_text("FAILED")
    (folder / "report.csv").write_text("name,value\ntotal,13\n")
    (folder / "archive/report.csv").write_text("name,value\ntotal,12\n")
    return folder


@pytest.fixture
def shell(begin, folder, tmp_path):
    """Run a task on a shell, whose agent does some commands first."""

    def run(*checks, commands=(), **given):
        answers = [call("run", command=command) for command in commands]
        surface = ShellSurface({"box": ShellSettings(cwd=folder, isolated=False)})
        supervisor = begin(servers=[surface], linux=[*answers, FINISH], policy=[{"verdict": "allow"}], **given)
        return supervisor.submit(Task(request="x", target="box", checks=checks))

    return run


@pytest.fixture
def documents(begin, folder):
    """Run a task on report.csv, whose agent only says FINISH."""

    def run(*checks, target="report.csv", task=None, **given):
        supervisor = begin(servers=[DocumentSurface(folder)], app=[FINISH], **given)
        return supervisor.submit(Task(request="x", target=target, checks=checks, **(task or {})))

    return run


def verified(handle):
    return handle.result(PATIENCE).verified


# Shells


def decoy(folder):
    (folder / "decoy").mkdir()
    (folder / "decoy/status.txt").write_text("OK")


@pytest.mark.parametrize("commands", [["cd decoy"], ["export HOME=$PWD/decoy", "cd decoy"], ["cd decoy && pwd"]])
def test_a_command_starts_in_the_folder_of_the_shell_whatever_an_agent_did(shell, folder, commands):
    decoy(folder)
    handle = shell(STATUS, {"command": "cat ~/status.txt", "equals": "OK"}, commands=commands)
    assert not any(check.held for check in handle.result(PATIENCE).checks)


def test_a_command_that_is_read_leaves_the_agents_folder_alone(begin, folder):
    decoy(folder)
    answers = [call("run", command="cd decoy"), FINISH, call("run", command="cat status.txt"), FAIL]
    surface = ShellSurface({"box": ShellSettings(cwd=folder, isolated=False)})
    asked = []

    def linux(request):
        asked.append(request)
        return answers[len(asked) - 1]

    limits = {"settle_seconds": 0.01, "check_retries": 1}
    supervisor = begin(servers=[surface], linux=linux, policy=[{"verdict": "allow"}], limits=limits)
    supervisor.submit(Task(request="x", target="box", checks=[STATUS])).result(PATIENCE)
    assert asked[3].memory[-1].results[0].value["stdout"] == "OK"


def test_a_command_is_run_again_while_it_is_waited_for(shell, folder):
    threading.Timer(0.4, (folder / "status.txt").write_text, ["OK"]).start()
    assert verified(shell({**STATUS, "within": PATIENCE}))


def test_a_command_that_held_first_and_not_at_the_end_does_not_hold(shell, folder):
    (folder / "status.txt").write_text("OK")
    begun = time.monotonic()

    def late():
        (folder / "status.txt").write_text("FAILED")
        return time.monotonic() - begun > 0.5

    checks = {"late": late}
    assert verified(shell(STATUS, {"program": "late", "within": PATIENCE}, checks=checks)) is False


def test_a_shell_that_changes_between_readings_is_read_again(shell, folder):
    (folder / "status.txt").write_text("OK")

    def spoil():
        (folder / "status.txt").write_text("FAILED")
        return True

    assert verified(shell(STATUS, {"program": "spoil"}, checks={"spoil": spoil})) is False


def test_a_rule_about_commands_also_rules_on_those_of_checks(begin, folder):
    surface = ShellSurface({"box": ShellSettings(cwd=folder, isolated=False)})
    supervisor = begin(servers=[surface], linux=[FINISH], policy=[{"verdict": "deny", "tool": "run"}])
    result = supervisor.submit(Task(request="x", target="box", checks=[STATUS])).result(PATIENCE)
    assert "the policy denies it" in result.checks[0].problem


# Documents


@pytest.mark.parametrize("target", ["archive/report.csv", "report.csv"])
def test_a_document_is_found_by_its_path_and_not_by_its_file_name(documents, target):
    check = {"table": "report.csv", "path": "/0/1", "equals": 12}
    assert verified(documents(check, target=target)) is False


def test_a_document_in_another_folder_does_not_stand_in_for_a_missing_one(documents, folder):
    (folder / "report.csv").unlink()
    handle = documents({"table": "report.csv", "path": "/0/1", "equals": 12}, target="archive/report.csv")
    assert "there is no document 'report.csv'" in handle.result(PATIENCE).checks[0].problem


@pytest.mark.parametrize(
    "check", [{"unchanged": "report.csv"}, {"only": []}, {"file": "report.csv"}, {"table": "report.csv", "count": 1}]
)
def test_a_file_that_changes_between_the_checks_does_not_hold(documents, folder, check):
    numbers = iter(range(100))

    def spoil():
        (folder / "report.csv").write_text(f"name,value\ntotal,{next(numbers)}\n")
        return True

    assert verified(documents(check, {"program": "spoil"}, checks={"spoil": spoil})) is False


@pytest.mark.parametrize("check", [{"unchanged": "report.csv"}, {"table": "report.csv", "path": "/0/1", "equals": 13}])
def test_a_change_while_the_judge_answers_is_noticed(documents, folder, check):
    def host(_):
        (folder / "report.csv").write_text("gone")
        return YES

    assert verified(documents(check, host=host, task={"judge": Judge(question="ok?")})) is False


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("deck.potx", b"garbage", "its archive is damaged"),
        ("old.pps", b"", "it is no .pps file"),
        ("facts.json", b"{", "it is no JSON"),
    ],
)
def test_a_damaged_file_of_another_format_does_not_open(documents, folder, name, data, problem):
    (folder / name).write_bytes(data)
    assert problem in documents({"file": name}).result(PATIENCE).checks[0].problem


# Effects


@pytest.mark.parametrize(("allowed", "found"), [([], ["memo:one"]), (["memo:one"], [])])
def test_an_effect_on_a_surface_without_files_counts(begin, allowed, found):
    supervisor = begin(app=[call("write", "FINISH", control_id="field-1", text="x")])
    task = Task(request="x", target="memo:one", checks=[{"only": allowed}])
    assert supervisor.submit(task).result(PATIENCE).checks[0].found == {"changed": found}


# Secrets


def test_a_reference_that_was_never_filled_in_is_no_secret(documents, folder):
    (folder / "letter.txt").write_text("hello ${secret:portal}")
    secrets = {"portal": {"value": "swordfish-4711"}}
    handle = documents({"text": "letter.txt", "contains": "${secret:portal}"}, secrets=secrets)
    assert verified(handle) is False


def test_a_secret_that_was_written_is_found_and_not_shown(documents, folder):
    (folder / "letter.txt").write_text("hello swordfish-4711")
    secrets = {"portal": {"value": "swordfish-4711"}}
    check = {"text": "letter.txt", "contains": "hello ${secret:portal}"}
    handle = documents(check, {"text": "letter.txt", "count": 20}, secrets=secrets)
    assert verified(handle)
    assert "swordfish" not in str([handle.result(0), *handle.events()])


def test_an_error_of_a_function_shows_no_secret_with_line_breaks(documents):
    def broken(key):
        raise ValueError(key)

    secrets = {"key": {"value": "begin  of\nthe  key"}}
    check = {"program": "broken", "args": {"key": "${secret:key}"}}
    result = documents(check, secrets=secrets, checks={"broken": broken}).result(PATIENCE)
    assert result.checks[0].problem == "ValueError: ${secret:key}"


# Expectations


@pytest.mark.parametrize(
    "expectation",
    [
        {"equals": None},
        {"same_as": None},
        {"contains": None},
        {"contains": " "},
        {"contains": []},
        {"contains": {}},
        {"schema": {}},
        {"schema": {"typ": "string"}},
        {"schema": {"pattern": "^(?!TODO)"}},
        {"schema": {"patternProperties": {r"(a)\1": {}}}},
        {"schema": {"type": "object", "unevaluatedProperties": False}},
        {"schema": {"$ref": "#"}},
        {"schema": {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}},
        {"schema": {"$ref": "http://127.0.0.1/a"}},
        {"schema": {"$dynamicRef": "#a", "type": "string"}},
        {"matches": "[01]{80000}"},
        {"matches": r"\$\{secret:portal\}"},
    ],
)
def test_invalid_empty_or_slow_expectation_is_refused(expectation):
    with pytest.raises(ValidationError):
        Check(text="a.txt", **expectation)


def test_a_schema_whose_references_multiply_is_refused():
    parts = {f"a{number}": {"allOf": [{"$ref": f"#/$defs/a{number + 1}"}] * 2} for number in range(24)}
    with pytest.raises(ValidationError, match="more than 10,000 parts"):
        Check(text="a.txt", schema={"$ref": "#/$defs/a0", "$defs": {**parts, "a24": {"type": "string"}}})


def test_a_list_of_no_files_is_refused():
    with pytest.raises(ValidationError, match="names no file"):
        Check(unchanged=[])


def test_a_text_that_is_too_long_for_its_pattern_is_not_searched(documents, folder):
    (folder / "long.txt").write_text("01" * 50_000)
    result = documents({"text": "long.txt", "matches": "[01]*1[01]{9000}[ab]"}).result(PATIENCE)
    assert (result.outcome, result.checks[0].problem[:36]) == (Outcome.FAILED, "the value is too long for this patte")


@pytest.mark.parametrize("empty", ["same", "exists"])
def test_empty_cell_never_verifies(documents, folder, empty):
    (folder / "report.csv").write_text("name,value\n,\n")
    other = {"same_as": {"table": "report.csv", "path": "/0/1"}} if empty == "same" else {}
    assert verified(documents({"table": "report.csv", "path": "/0/0", **other})) is False
