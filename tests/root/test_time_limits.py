"""Clocks: task, subtask, step, model and command have deadlines, which stand still while a person is asked."""

from __future__ import annotations

import asyncio
import queue
import threading
from pathlib import Path

import pytest

from callboard import EventName, FunctionModel, Outcome, Task, tool
from callboard.journal import MemoryJournal
from callboard.messages import Effect
from callboard.surfaces import committing
from callboard.testing import MemoryServer, VirtualClock
from support import ASK, ASSIGN, FINISH, HELD, PATIENCE, lone

CONFIRM = {"Status": "CONFIRM", "Function": "write", "Args": {"control_id": "field-1", "text": "x"}}
QUESTION_SECONDS = 1234.0


class Endless:
    """A model that is in the middle of its call until it is cancelled; before that it gives some answers."""

    def __init__(self, *answers):
        self.answers = answers
        self.asked, self.cancelled = threading.Event(), threading.Event()

    async def __call__(self, request):
        if request.call <= len(self.answers):
            return self.answers[request.call - 1]
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


class Slow(MemoryServer):
    """A window with a tool that never ends by itself."""

    def __init__(self):
        super().__init__(self.window())
        self.begun, self.cancelled = threading.Event(), threading.Event()

    @tool(effect=Effect.ONCE)
    async def wait(self, target: str) -> str:
        """Wait for ever."""
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return target

    @tool(effect=Effect.ONCE)
    async def save_and_wait(self, target: str, path: str) -> str:
        """Write a file, then wait for ever."""
        with committing(Path(path)):
            Path(path).write_text("saved", encoding="utf-8")  # noqa: ASYNC240 - a few bytes, in a test
        return await self.wait(target)


class Sudden(VirtualClock):
    """A clock that advances by a minute at the moment when the root registers a question."""

    def after(self, seconds, callback):
        alarm = super().after(seconds, callback)
        if seconds == QUESTION_SECONDS:
            self.advance(60)
        return alarm


class Noting(VirtualClock):
    """A clock that tells which alarms are still to go off."""

    def __init__(self):
        super().__init__()
        self._set = []

    def after(self, seconds, callback):
        alarm = super().after(seconds, callback)
        self._set.append((seconds, alarm))
        return alarm

    @property
    def ahead(self):
        """The alarms that are due later, by the seconds for which they were set."""
        return [seconds for seconds, alarm in self._set if not alarm.cancelled and alarm.due > self.elapsed()]


def late(supervisor):
    """List the tasks that are being stopped, after the root has handled every deadline so far."""
    return [task.task_id for task in supervisor.status().tasks if task.cancelling]


def settle(handle):
    """Settle everything the task waits for."""
    for question in handle.questions():
        handle.answer(question.id, "this one")
    for approval in handle.approvals():
        handle.approve(approval.id)


def waits(until, handle):
    """Wait until a person is asked."""
    asking = {EventName.QUESTION_ASKED, EventName.APPROVAL_REQUESTED}
    return next(event for event in handle.events() if event.name in asking)


def test_a_task_deadline_cancels_what_runs_and_ends_as_timed_out(start):
    clock, model = VirtualClock(), Endless()
    supervisor = start(app=FunctionModel(model), clock=clock, limits={"task_seconds": 60})
    handle = supervisor.submit(lone())
    assert model.asked.wait(PATIENCE)
    clock.advance(59)
    assert late(supervisor) == []
    clock.advance(1)
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.TIMED_OUT
    assert [done.outcome for done in result.subtasks] == [Outcome.TIMED_OUT]
    assert model.cancelled.wait(PATIENCE)


def test_subtask_deadline_ends_it_alone_and_its_host_agent_continues(start):
    clock, model = VirtualClock(), Endless()
    seen = []

    def host(request):
        seen.extend(done.outcome for done in request.subtasks)
        return FINISH if request.subtasks else ASSIGN

    supervisor = start(host=host, app=FunctionModel(model), clock=clock, limits={"subtask_seconds": 60})
    handle = supervisor.submit(Task(request="x"))
    assert model.asked.wait(PATIENCE)
    clock.advance(60)
    result = handle.result(PATIENCE)
    assert model.cancelled.wait(PATIENCE)
    assert result.outcome is Outcome.FINISHED
    assert seen == [Outcome.TIMED_OUT]
    assert "60 s" in result.subtasks[0].causes[0].reason


def test_each_subtask_has_a_clock_of_its_own(start):
    clock, model = VirtualClock(), Endless(FINISH)
    moved = []

    def host(request):
        if len(request.subtasks) == 1 and not moved:
            moved.append(clock.advance(59))
        return ASSIGN if len(request.subtasks) < 2 else FINISH

    supervisor = start(host=host, app=FunctionModel(model), clock=clock, limits={"subtask_seconds": 60})
    handle = supervisor.submit(Task(request="x"))
    assert model.asked.wait(PATIENCE)
    clock.advance(59)
    supervisor.status()
    assert not model.cancelled.is_set()
    clock.advance(1)
    assert [done.outcome for done in handle.result(PATIENCE).subtasks] == [Outcome.FINISHED, Outcome.TIMED_OUT]


def test_a_step_deadline_cancels_the_model_call_and_ends_as_timed_out(start):
    clock, model = VirtualClock(), Endless()
    supervisor = start(app=FunctionModel(model), clock=clock, limits={"step_seconds": 60})
    handle = supervisor.submit(lone())
    assert model.asked.wait(PATIENCE)
    clock.advance(61)
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.TIMED_OUT
    assert "the step took longer than 60 s" in result.causes[0].reason
    assert model.cancelled.wait(PATIENCE)


def test_a_step_deadline_cancels_an_async_tool(start):
    clock, surface = VirtualClock(), Slow()
    app = [{"Status": "FINISH", "Function": "wait"}]
    supervisor = start(app=app, servers=[surface], clock=clock, limits={"step_seconds": 60})
    handle = supervisor.submit(lone())
    assert surface.begun.wait(PATIENCE)
    clock.advance(61)
    assert handle.result(PATIENCE).outcome is Outcome.TIMED_OUT
    assert surface.cancelled.wait(PATIENCE)


def test_step_usage_before_a_deadline_is_counted(start):
    write = {"Function": "write", "Args": {"control_id": "field-1", "text": "x"}}
    answer = {"Status": "FINISH", "Actions": [write, {"Function": "wait"}]}
    clock, surface = VirtualClock(), Slow()
    supervisor = start(app=[answer], servers=[surface], clock=clock, limits={"step_seconds": 60})
    handle = supervisor.submit(lone())
    assert surface.begun.wait(PATIENCE)
    clock.advance(61)
    usage = handle.result(PATIENCE).usage
    assert (usage.steps, usage.model_calls, usage.commands) == (1, 1, 2)


def test_files_of_a_command_cut_off_by_a_step_deadline_are_in_the_result(start, tmp_path):
    clock, surface, path = VirtualClock(), Slow(), str(tmp_path / "report.txt")
    answer = {"Status": "CONTINUE", "Function": "save_and_wait", "Args": {"path": path}}
    supervisor = start(app=[answer], servers=[surface], clock=clock, limits={"step_seconds": 60})
    handle = supervisor.submit(lone())
    assert surface.begun.wait(PATIENCE)
    clock.advance(61)
    result = handle.result(PATIENCE)
    assert (result.outcome, result.artifacts) == (Outcome.TIMED_OUT, (path,))


def test_a_model_deadline_is_an_error_and_cancels_the_call(start):
    clock, model = VirtualClock(), Endless()
    supervisor = start(app=FunctionModel(model), clock=clock, limits={"model_seconds": 60})
    handle = supervisor.submit(lone())
    assert model.asked.wait(PATIENCE)
    clock.advance(61)
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert any("no answer within 60 s" in cause.reason for cause in result.causes)
    assert model.cancelled.wait(PATIENCE)


def test_a_command_deadline_is_a_failed_result_that_the_model_sees(start):
    surface = Slow()
    answers = [{"Status": "FINISH", "Function": "wait"}, {"Status": "FAIL"}]
    notes = []

    def app(request):
        notes.extend(request.observation.notes)
        return answers[request.call - 1]

    clock = VirtualClock()
    handle = start(app=app, servers=[surface], clock=clock, limits={"command_seconds": 60}).submit(lone())
    assert surface.begun.wait(PATIENCE)
    clock.advance(61)
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    assert surface.cancelled.wait(PATIENCE)
    assert any("took longer than 60 s" in note for note in notes)


@pytest.mark.parametrize("limit", ["task_seconds", "subtask_seconds"])
@pytest.mark.parametrize("ask", [ASK, CONFIRM], ids=["question", "approval"])
def test_clock_stands_still_while_a_person_is_asked_and_continues_after(start, until, limit, ask):
    clock, model = VirtualClock(), Endless(ask)
    supervisor = start(app=FunctionModel(model), clock=clock, limits={limit: 60})
    handle = supervisor.submit(lone())
    waits(until, handle)
    clock.advance(3000)
    assert late(supervisor) == []
    settle(handle)
    assert model.asked.wait(PATIENCE)
    clock.advance(59)
    assert late(supervisor) == []
    clock.advance(1)
    assert handle.result(PATIENCE).outcome is Outcome.TIMED_OUT


def test_only_the_time_before_and_after_the_question_counts(start, until):
    clock = VirtualClock()
    asked, release = threading.Event(), threading.Event()
    model = Endless()

    async def app(request):
        if request.call > 1:
            return await model(request)
        asked.set()
        await asyncio.to_thread(release.wait, HELD)
        return ASK

    supervisor = start(app=FunctionModel(app), clock=clock, limits={"task_seconds": 60})
    handle = supervisor.submit(lone())
    assert asked.wait(PATIENCE)
    clock.advance(40)
    release.set()
    waits(until, handle)
    clock.advance(1000)
    settle(handle)
    assert model.asked.wait(PATIENCE)
    clock.advance(19)
    assert late(supervisor) == []
    clock.advance(1)
    assert handle.result(PATIENCE).outcome is Outcome.TIMED_OUT


def test_a_host_agents_question_stops_the_clock_of_its_task(start, until):
    clock, model = VirtualClock(), Endless(ASK)
    supervisor = start(host=FunctionModel(model), clock=clock, limits={"task_seconds": 60})
    handle = supervisor.submit(Task(request="x"))
    waits(until, handle)
    clock.advance(3000)
    settle(handle)
    assert model.asked.wait(PATIENCE)
    assert late(supervisor) == []


def test_a_question_stops_the_clocks_of_its_own_task_only(start, until):
    clock, model = VirtualClock(), Endless()
    supervisor = start(host=FunctionModel(model), app=[ASK], clock=clock, limits={"task_seconds": 60})
    asking = supervisor.submit(Task(id="asks", request="x", target="memo:one"))
    waits(until, asking)
    working = supervisor.submit(Task(id="works", request="y"))
    assert model.asked.wait(PATIENCE)
    clock.advance(60)
    assert working.result(PATIENCE).outcome is Outcome.TIMED_OUT
    assert not asking.done()


def test_a_deadline_beats_a_question_on_its_way_and_takes_it_away(start):
    """The deadline passes while the root handles the question."""
    model = Endless()

    async def host(request):
        return await model(request) if request.subtasks else ASSIGN

    clock = Sudden()
    limits = {"task_seconds": 100, "subtask_seconds": 60, "question_seconds": QUESTION_SECONDS}
    supervisor = start(host=FunctionModel(host), app=[ASK], clock=clock, limits=limits)
    handle = supervisor.submit(Task(request="x"))
    assert model.asked.wait(PATIENCE)
    assert handle.questions() == ()
    clock.advance(39)
    assert late(supervisor) == []
    clock.advance(1)
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.TIMED_OUT
    assert [done.outcome for done in result.subtasks] == [Outcome.TIMED_OUT]


@pytest.mark.parametrize("limit", ["task_seconds", "subtask_seconds"])
def test_clocks_stand_still_in_a_pause(start, limit):
    clock, model = VirtualClock(), Endless()
    patient = {"step_seconds": 1e6, "model_seconds": 1e6}  # a call that runs is finished in a pause
    supervisor = start(app=FunctionModel(model), clock=clock, limits={limit: 60, **patient})
    handle = supervisor.submit(lone())
    assert model.asked.wait(PATIENCE)
    clock.advance(30)
    handle.pause()
    clock.advance(1000)
    assert late(supervisor) == []
    handle.resume()
    clock.advance(29)
    supervisor.status()
    assert not model.cancelled.is_set()
    clock.advance(1)
    assert handle.result(PATIENCE).outcome is Outcome.TIMED_OUT


def test_a_subtask_that_gets_its_target_in_a_pause_has_a_stopped_clock(start, until):
    clock, first_done, model = VirtualClock(), threading.Event(), Endless()

    async def app(request):
        if request.request == "second":
            return await model(request)
        await asyncio.to_thread(first_done.wait, HELD)
        return FINISH

    supervisor = start(app=FunctionModel(app), clock=clock, limits={"subtask_seconds": 60})
    first = supervisor.submit(Task(request="first", target="memo:one"))
    second = supervisor.submit(Task(request="second", target="memo:one"))
    second.pause()
    first_done.set()
    until(second, EventName.SUBTASK_ASSIGNED)
    supervisor.status()
    clock.advance(1000)
    supervisor.status()
    second.resume()
    assert model.asked.wait(PATIENCE)
    assert first.result(PATIENCE).ok
    clock.advance(60)
    assert second.result(PATIENCE).outcome is Outcome.TIMED_OUT


def test_clock_stopped_for_two_reasons_continues_when_both_are_gone(start, until):
    clock, model = VirtualClock(), Endless(ASK)
    supervisor = start(app=FunctionModel(model), clock=clock, limits={"task_seconds": 60})
    handle = supervisor.submit(lone())
    waits(until, handle)
    handle.pause()
    settle(handle)
    clock.advance(1000)
    assert late(supervisor) == []
    handle.resume()
    assert model.asked.wait(PATIENCE)
    clock.advance(60)
    assert handle.result(PATIENCE).outcome is Outcome.TIMED_OUT


def test_a_deadline_after_the_end_changes_nothing(start):
    clock = VirtualClock()
    supervisor = start(app=[FINISH], clock=clock, limits={"task_seconds": 60, "subtask_seconds": 60})
    handle = supervisor.submit(lone())
    assert handle.result(PATIENCE).ok
    clock.advance(1000)
    assert supervisor.status().ended_tasks == 1
    assert handle.result(0).ok


LONG = {"task_seconds": 86_400, "subtask_seconds": 43_200}


@pytest.mark.parametrize("limit", LONG)
def test_no_alarm_of_a_task_is_left_once_it_is_over(start, limit):
    clock = Noting()
    supervisor = start(host=[ASSIGN, FINISH], app=[FINISH], clock=clock, limits={limit: LONG[limit]})
    assert supervisor.submit(Task(request="x")).result(PATIENCE).ok
    assert LONG[limit] not in clock.ahead


@pytest.mark.parametrize("limit", LONG)
def test_no_alarm_of_a_task_is_left_once_it_is_cancelled(start, limit):
    clock, model = Noting(), Endless()
    supervisor = start(app=FunctionModel(model), clock=clock, limits={limit: LONG[limit]})
    handle = supervisor.submit(lone())
    assert model.asked.wait(PATIENCE)
    assert LONG[limit] in clock.ahead
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert LONG[limit] not in clock.ahead


def test_no_alarm_of_a_task_is_left_that_could_not_be_kept(start, monkeypatch):
    clock, heard = Noting(), queue.SimpleQueue()
    supervisor = start(app=lambda _: FINISH, clock=clock, limits=LONG)

    def ask():
        return supervisor.submit(lone(key="order-17"))

    assert ask().result(PATIENCE).ok
    supervisor.subscribe(heard.put)
    with monkeypatch.context() as once:  # the journal is asked too early to know of the first, and then refuses this
        once.setattr(MemoryJournal, "find", lambda *_: once.undo())
        ask()
    while (event := heard.get(timeout=PATIENCE)).name is not EventName.TASK_ENDED:
        continue
    assert event.data["outcome"] == "refused"
    assert not set(LONG.values()) & set(clock.ahead)


@pytest.mark.parametrize(("limit", "outcome"), [("model_seconds", Outcome.ERROR), ("step_seconds", Outcome.TIMED_OUT)])
def test_a_host_programs_own_clock_moves_model_and_step_deadlines(start, limit, outcome):
    clock, model = VirtualClock(), Endless()
    limits = {"step_seconds": 1e6, "model_seconds": 1e6, limit: 3600}
    handle = start(app=FunctionModel(model), clock=clock, limits=limits).submit(lone())
    assert model.asked.wait(PATIENCE)
    clock.advance(3599)
    assert not model.cancelled.is_set()
    clock.advance(2)
    assert handle.result(PATIENCE).outcome is outcome
    assert model.cancelled.is_set()


def test_a_clock_of_the_host_programs_own_moves_the_deadlines_of_commands(start, until):
    clock, surface = VirtualClock(), Slow()
    app = [{"Status": "CONTINUE", "Function": "wait"}, FINISH]
    handle = start(
        app=app, servers=[surface], clock=clock, limits={"step_seconds": 1e5, "command_seconds": 3600}
    ).submit(lone())
    assert surface.begun.wait(PATIENCE)
    clock.advance(3601)
    assert until(handle, EventName.COMMAND_ENDED).data["error"].startswith("took longer than 3600 s")
    assert handle.result(PATIENCE).ok
