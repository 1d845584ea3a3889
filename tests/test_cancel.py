"""Cancel: prompt, in any state, without losing what was done."""

from __future__ import annotations

import asyncio
import threading

import pytest

from callboard import EventName, FunctionModel, Outcome, Task
from callboard.messages import NotWaitingError
from callboard.testing import MemoryServer, VirtualClock

FINISH = {"Status": "FINISH"}
WRITE = {"Status": "FINISH", "ControlLabel": "field-1", "Function": "write", "Args": {"text": "hello"}}
ASSIGN = {"Status": "ASSIGN", "ControlText": "memo:one", "Current Sub-Task": "work"}


class _Endless:
    """A model that is in the middle of its call until it is cancelled."""

    def __init__(self):
        self.asked = threading.Event()
        self.cancelled = threading.Event()

    async def __call__(self, _request):
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


def test_cancel_in_the_middle_of_a_model_call_ends_at_once(start):
    model = _Endless()
    supervisor = start(host=model)
    handle = supervisor.submit(Task(request="for ever"))
    assert model.asked.wait(10)
    assert handle.cancel("enough")
    result = handle.result(10)
    assert result.outcome is Outcome.CANCELLED
    assert result.causes[0].reason == "enough"
    assert model.cancelled.wait(10)


def test_cancel_in_the_middle_of_a_subtask_stops_both_agents_and_keeps_what_was_done(start):
    model = _Endless()

    async def app(request):
        return WRITE if request.request == "first" else await model(request)

    host = [{**ASSIGN, "Current Sub-Task": "first"}, {**ASSIGN, "Current Sub-Task": "second"}, FINISH]
    supervisor = start(host=host, app=FunctionModel(app))
    handle = supervisor.submit(Task(request="two things"))
    assert model.asked.wait(10)
    handle.cancel()
    result = handle.result(10)
    assert result.outcome is Outcome.CANCELLED
    assert [done.outcome for done in result.subtasks] == [Outcome.FINISHED, Outcome.CANCELLED]
    assert result.subtasks[0].output == "hello"


def test_cancel_in_a_queue_never_starts_the_work(start):
    model = _Endless()
    supervisor = start(app=model)
    first = supervisor.submit(Task(request="x", target="memo:one"))
    assert model.asked.wait(10)
    second = supervisor.submit(Task(request="y", target="memo:one"))
    second.cancel()
    result = second.result(10)
    assert result.outcome is Outcome.CANCELLED
    assert result.subtasks[0].usage.steps == 0
    assert not first.done()


def test_cancel_while_a_question_waits_takes_it_away(start, until):
    supervisor = start(app=[{"Status": "PENDING", "Comment": "which one?"}])
    handle = supervisor.submit(Task(request="x", target="memo:one"))
    until(handle, EventName.QUESTION_ASKED)
    question = handle.questions()[0]
    handle.cancel()
    assert handle.result(10).outcome is Outcome.CANCELLED
    with pytest.raises(NotWaitingError):
        handle.answer(question.id, "this one")


def test_cancel_is_idempotent_and_the_first_reason_stays(start):
    model = _Endless()
    supervisor = start(host=model)
    handle = supervisor.submit(Task(request="for ever"))
    assert model.asked.wait(10)
    assert handle.cancel("one")
    handle.cancel("two")
    assert handle.result(10).causes[0].reason == "one"
    assert handle.cancel("three") is False


def test_cancel_after_the_end_changes_nothing(start):
    handle = start(host=[FINISH]).submit(Task(request="x"))
    assert handle.result(10).ok
    assert handle.cancel() is False
    assert handle.result(0).ok


def test_cancel_from_many_threads_is_one_cancel(start):
    model = _Endless()
    supervisor = start(host=model)
    handle = supervisor.submit(Task(request="for ever"))
    assert model.asked.wait(10)
    said: list[bool] = []
    threads = [threading.Thread(target=lambda: said.append(handle.cancel())) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert said.count(True) == 1
    assert handle.result(10).outcome is Outcome.CANCELLED


def test_after_a_cancel_the_target_is_free_for_the_next_task(start):
    model = _Endless()

    async def app(request):
        return WRITE if request.request == "next" else await model(request)

    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=FunctionModel(app), servers=[surface])
    first = supervisor.submit(Task(request="x", target="memo:one"))
    assert model.asked.wait(10)
    second = supervisor.submit(Task(request="next", target="memo:one"))
    first.cancel()
    assert second.result(10).ok
    assert surface.deeds == [("memo:one", "field-1", "hello")]


def test_a_task_deadline_ends_it_as_timed_out(start):
    clock, model = VirtualClock(), _Endless()
    supervisor = start(host=model, clock=clock, limits={"task_seconds": 60})
    handle = supervisor.submit(Task(request="for ever"))
    assert model.asked.wait(10)
    clock.advance(59)
    assert not handle.done()
    clock.advance(1)
    result = handle.result(10)
    assert result.outcome is Outcome.TIMED_OUT
    assert "60 s" in result.causes[0].reason
