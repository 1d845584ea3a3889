"""``callboard replay``: the transitions, the first difference, and an exit code."""

from __future__ import annotations

import functools
import json

import pytest

from callboard import Task
from support import FINISH, command_line

WRITE = {"Status": "CONTINUE", "Function": "write", "Args": {"control_id": "field-1", "text": "a\x1b[31m"}}


@pytest.fixture
def call(record, tmp_path, monkeypatch):
    """Call the command line on a journal with one task, in an empty folder."""
    record.run(Task(id="job-1", request="x", target="memo:one"), app=[WRITE, FINISH])
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return functools.partial(command_line, "replay")


def test_the_same_is_exit_code_0(call, record):
    said = call("job-1", record.path)
    assert said.exit_code == 0, said.output
    assert "CONTINUE → FINISH" in said.output
    assert "the same as recorded: 3 jobs, 2 transitions; it ended as finished" in said.output


def test_a_task_may_be_named_by_the_beginning_of_its_id(call, record):
    assert call("job", record.path).exit_code == 0


def test_a_difference_is_exit_code_1_and_is_shown_harmlessly(call, record, tmp_path):
    settings = tmp_path / "callboard.yaml"
    settings.write_text("policy: [{verdict: deny, tool: write, reason: not now}]", encoding="utf-8")
    said = call("job-1", record.path, "--settings", settings)
    assert said.exit_code == 1
    assert "The first difference" in said.output
    assert "replayed: deny: not now" in said.output
    assert "\x1b" not in said.output


def test_json_has_all_of_it(call, record):
    said = json.loads(call("job-1", record.path, "--json").output)
    assert (said["task"], said["same"], said["outcome"], said["difference"]) == ("job-1", True, "finished", None)
    assert [(made["source"], made["target"], made["by"]) for made in said["transitions"]] == [
        ("CONTINUE", "CONTINUE", "model"),
        ("CONTINUE", "FINISH", "model"),
    ]


def test_json_has_the_difference(call, record, tmp_path):
    settings = tmp_path / "callboard.yaml"
    settings.write_text("limits: {steps: 1}", encoding="utf-8")
    said = json.loads(call("job-1", record.path, "--settings", settings, "--json").output)
    assert (said["same"], said["difference"]["what"]) == (False, "a transition")


@pytest.mark.parametrize("words", [("other",), ("job-1", "nowhere.db")], ids=["no such task", "no such journal"])
def test_replay_of_a_missing_file_or_task_is_a_usage_error(call, record, words):
    said = call(*words, *([record.path] if len(words) == 1 else []))
    assert said.exit_code == 2
    assert "Traceback" not in said.output
