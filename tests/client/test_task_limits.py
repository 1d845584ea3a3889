"""Limits of single tasks, in place of the settings'."""

from __future__ import annotations

import threading

import pytest

from callboard import EventName, Outcome, Task, tool
from callboard.config import Limits
from callboard.messages import Effect, TaskLimits
from callboard.testing import MemoryServer, VirtualClock, assert_replays
from support import ASK, ASSIGN, FINISH, HELD, PATIENCE, append, lone


class Slow(MemoryServer):
    """A surface whose append blocks until the test releases it."""

    def __init__(self, *windows):
        super().__init__(*windows)
        self.begun, self.release = threading.Event(), threading.Event()

    @tool(effect=Effect.ONCE)
    def append(self, target: str, control_id: str, text: str) -> str:
        """Append text."""
        self.begun.set()
        self.release.wait(HELD)
        return text


def busy(request):
    return append(str(request.call))


@pytest.mark.parametrize(("settings", "own", "steps"), [(2, 4, 4), (4, 2, 2), (3, None, 3)])
def test_a_limit_of_a_task_replaces_that_of_the_settings(start, settings, own, steps):
    supervisor = start(app=busy, limits={"steps": settings})
    result = supervisor.submit(lone(limits={"steps": own})).result(PATIENCE)
    assert (result.outcome, result.usage.steps) == (Outcome.OUT_OF_BUDGET, steps)


def test_limits_hold_for_the_agents_of_subtasks(start):
    supervisor = start(host=[ASSIGN, FINISH, {"Status": "FAIL"}], app=busy)
    result = supervisor.submit(Task(request="x", limits={"steps": 3})).result(PATIENCE)
    assert [subtask.usage.steps for subtask in result.subtasks] == [3]


def test_a_task_may_have_more_repairs(start):
    answers = ["no answer", "none", FINISH]
    supervisor = start(host=lambda request: answers[len(request.reasons)], limits={"repairs": 0})
    assert supervisor.submit(Task(request="x")).result(PATIENCE).outcome is Outcome.ERROR
    assert supervisor.submit(Task(request="x", limits={"repairs": 2})).result(PATIENCE).ok


@pytest.mark.parametrize("limits", [{"task_seconds": 5.0}, {"subtask_seconds": 5.0}], ids=str)
def test_a_task_has_a_limit_on_its_time(start, until, limits):
    clock, surface = VirtualClock(), MemoryServer(MemoryServer.window())
    supervisor = start(app=lambda _: ASK, clock=clock, servers=[surface], limits={"question_seconds": 3600.0})
    handle = supervisor.submit(lone(limits={**limits, "question_seconds": 100.0}))
    asked = until(handle, EventName.QUESTION_ASKED).data["request"]
    assert asked["deadline"] == clock.now() + 100


def test_a_task_that_takes_too_long_is_stopped(start, until):
    clock, surface = VirtualClock(), Slow(MemoryServer.window())
    supervisor = start(app=busy, clock=clock, servers=[surface], limits={"command_seconds": 500.0})
    handle = supervisor.submit(lone(limits={"task_seconds": 5.0}))
    assert surface.begun.wait(PATIENCE)
    clock.advance(6)
    assert handle.result(PATIENCE).outcome is Outcome.TIMED_OUT
    surface.release.set()


def test_limits_hold_after_a_restart_and_in_a_replay(begin, until, tmp_path):
    before = begin(app=lambda _: ASK)
    handle = before.submit(lone(limits={"steps": 3}))
    until(handle, EventName.QUESTION_ASKED)
    before.stop()
    after = begin(app=busy).handle(handle.task_id)
    assert after.task.limits == TaskLimits(steps=3)
    after.answer(after.questions()[0].id, "this one")
    result = after.result(PATIENCE)
    assert (result.outcome, result.usage.steps) == (Outcome.OUT_OF_BUDGET, 3)
    assert_replays(tmp_path / "journal.db", handle.task_id)


@pytest.mark.parametrize(
    "wrong",
    [{"sessions": 3}, {"at_approval_deadline": "allow"}, {"model_seconds": 5.0}, {"steps": 0}, {"task_seconds": -1.0}],
    ids=str,
)
def test_a_limit_that_no_task_can_set_is_refused(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        Task(request="x", limits=wrong)


def test_the_limits_of_tasks_are_those_of_the_settings():
    rest = {"model_seconds", "at_approval_deadline", "idle_agents", "sessions", "kept_tasks"}
    assert {*TaskLimits.model_fields} == {*Limits.model_fields} - rest
    settings = Limits.model_json_schema()["properties"]
    for name, field in TaskLimits.model_json_schema()["properties"].items():
        bounds = {key: value for key, value in field["anyOf"][0].items() if key != "type"}
        theirs = settings[name].get("anyOf", [settings[name]])[0]
        assert bounds == {key: theirs[key] for key in bounds}, name
        assert {key for key in theirs if "imum" in key.lower()} == {*bounds}, name


def test_a_follow_up_has_the_usual_limits_again(start):
    supervisor = start(host=lambda _: FINISH)
    first = supervisor.submit(Task(request="x", limits={"steps": 1}))
    assert first.result(PATIENCE).ok
    assert first.follow_up("y").task.limits is None
