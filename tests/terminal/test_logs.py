"""`callboard logs`: the events of a task from a journal, a line each, to its end or as they come."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from callboard import EventName, Task
from forks import Program
from support import FINISH, PATIENCE, append

ASK = {"Status": "PENDING", "Questions": [{"text": "which one?"}]}


@pytest.fixture
def journal(begin, tmp_path):
    """A journal with a task that is over."""
    supervisor = begin(app=[append("a"), FINISH])
    task = Task(id="done", request="x", target="memo:one", labels={"order": "4711"})
    handle = supervisor.submit(task)
    assert handle.result(PATIENCE).ok
    events = [event.seq for event in handle.events()]
    supervisor.stop()
    return tmp_path / "journal.db", events


def test_the_log_of_a_task_is_printed_a_line_an_event(call, journal):
    path, events = journal
    result = call("logs", "do", path)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["seq"] for line in lines] == events
    assert {(line["task"], line["schema"], line["labels"]["order"]) for line in lines} == {("done", 1, "4711")}
    assert [line["event"] for line in lines][-1] == "task.ended"
    assert call("logs", "done", path, "--follow", "--json").stdout == result.stdout


def test_missing_task_is_reported(call, journal):
    result = call("logs", "nobody", journal[0])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "has no task 'nobody'" in result.stderr


def test_follow_prints_what_happens_to_the_end(begin, tmp_path, until):
    supervisor = begin(app=lambda request: ASK if request.call == 1 else FINISH)
    handle = supervisor.submit(Task(id="t", request="x", target="memo:one"))
    until(handle, EventName.QUESTION_ASKED)
    command = [sys.executable, "-m", "callboard", "logs", "t", str(tmp_path / "journal.db"), "--follow"]
    with Program(command, stdout=subprocess.PIPE, text=True, cwd="/") as following:
        for line in following.stdout:
            if json.loads(line)["event"] == "question.asked":
                handle.answer(handle.questions()[0].id, "this")
                break
        rest = [json.loads(line)["event"] for line in following.stdout]
        assert following.wait(PATIENCE) == 0
    assert rest[-1] == "task.ended"
    assert "question.answered" in rest


def test_follow_ends_when_no_process_works_on_the_task(call, begin, tmp_path, until, monkeypatch):
    supervisor = begin(app=[ASK])
    until(supervisor.submit(Task(id="t", request="x", target="memo:one")), EventName.QUESTION_ASKED)
    supervisor.stop()
    monkeypatch.chdir(tmp_path)
    result = call("logs", "t", "journal.db", "--follow")
    assert result.exit_code == 0
    resume = "callboard resume SETTINGS.yaml --journal journal.db, with the settings of its run\n"
    assert result.stderr == f"callboard: warning: no process works on t: resume it with: {resume}"
    assert json.loads(result.stdout.splitlines()[-1])["task"] == "t"
