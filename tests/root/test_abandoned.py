"""A tool that does not return: its task ends, its target waits, its late effect is refused."""

from __future__ import annotations

import queue
import threading

import pytest

from callboard import EventName, Outcome, Task, tool
from callboard.messages import Effect, LeaseVoidError
from callboard.surfaces import committing
from callboard.testing import MemoryServer
from support import HELD, PATIENCE

ONE = "app/memo/one"


class Press(MemoryServer):
    """A window whose button blocks its caller at first, and only then has an effect."""

    def __init__(self):
        super().__init__(self.window(), self.window("two"))
        self.begun, self.let_go, self.returned = threading.Event(), threading.Event(), threading.Event()
        self.refused = None

    @tool(effect=Effect.ONCE)
    def press(self, target: str) -> str:
        """Press the button."""
        self.begun.set()
        try:
            assert self.let_go.wait(HELD)
            with committing():
                self.effects.append((target, "button", "pressed"))
        except LeaseVoidError as error:
            self.refused = error
            raise
        finally:
            self.returned.set()
        return "pressed"


class Blind(MemoryServer):
    """A window that can't be seen for a while."""

    def __init__(self):
        super().__init__(self.window())
        self.begun, self.let_go = threading.Event(), threading.Event()

    def observe(self, target):
        self.begun.set()
        assert self.let_go.wait(HELD)
        return super().observe(target)


class Watch:
    """All events of a supervisor, as they come."""

    def __init__(self, supervisor):
        self._events = queue.SimpleQueue()
        supervisor.subscribe(self._events.put, after=0)

    def until(self, name, **fields):
        while True:
            event = self._events.get(timeout=PATIENCE)
            if event.name is name and all(getattr(event, key) == value for key, value in fields.items()):
                return event


@pytest.fixture
def button():
    surface = Press()
    yield surface
    surface.let_go.set()


def answer(request):
    if request.request == "press":
        return {"Status": "FINISH", "Function": "press"}
    return {"Status": "FINISH", "ControlLabel": "field-1", "Function": "write", "Args": {"text": request.request}}


@pytest.fixture
def supervisor(start, button):
    return start(app=answer, servers=[button])


def press(supervisor, button):
    """Have a task press the button, cancel it, and wait until its target is given up."""
    handle = supervisor.submit(Task(request="press", target="memo:one"))
    assert button.begun.wait(PATIENCE)
    handle.cancel("enough")
    Watch(supervisor).until(EventName.TARGET_ABANDONED, agent=ONE)
    return handle


def test_a_cancelled_task_ends_while_its_tool_still_blocks(supervisor, button):
    handle = press(supervisor, button)
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert not button.returned.is_set()


def test_the_target_of_a_tool_that_blocks_is_named_in_the_status(supervisor, button):
    press(supervisor, button)
    assert supervisor.status().abandoned == (ONE,)


def test_the_next_task_for_an_abandoned_target_waits(supervisor, button, until):
    press(supervisor, button)
    second = supervisor.submit(Task(request="second", target="memo:one"))
    assert until(second, EventName.SUBTASK_QUEUED).data == {"ahead": 1}
    (waiting,) = supervisor.status().tasks
    assert [run.leased for run in waiting.runs] == [False]
    assert not second.done()


def test_a_task_for_another_target_does_not_wait(supervisor, button):
    press(supervisor, button)
    assert supervisor.submit(Task(request="other", target="memo:two")).result(PATIENCE).outcome is Outcome.FINISHED
    assert not button.returned.is_set()


def test_a_late_effect_is_refused(supervisor, button):
    press(supervisor, button)
    button.let_go.set()
    assert button.returned.wait(PATIENCE)
    assert "nothing was changed" in str(button.refused)
    assert button.effects == []


def test_the_target_is_freed_when_the_tool_returns_and_the_next_task_runs(supervisor, button):
    press(supervisor, button)
    second = supervisor.submit(Task(request="second", target="memo:one"))
    button.let_go.set()
    assert second.result(PATIENCE).outcome is Outcome.FINISHED
    assert button.effects == [("memo:one", "field-1", "second")]
    freed = Watch(supervisor).until(EventName.TARGET_FREED, agent=ONE)
    assigned = Watch(supervisor).until(EventName.SUBTASK_ASSIGNED, task_id=second.task_id)
    assert freed.seq < assigned.seq
    assert supervisor.status().abandoned == ()


def test_a_cancelled_task_queued_for_an_abandoned_target_never_runs(supervisor, button):
    press(supervisor, button)
    second = supervisor.submit(Task(request="second", target="memo:one"))
    second.cancel()
    assert second.result(PATIENCE).outcome is Outcome.CANCELLED
    button.let_go.set()
    Watch(supervisor).until(EventName.TARGET_FREED, agent=ONE)
    assert supervisor.submit(Task(request="third", target="memo:one")).result(PATIENCE).outcome is Outcome.FINISHED
    assert button.effects == [("memo:one", "field-1", "third")]


def test_the_model_sees_a_tools_timeout_and_the_target_stays_abandoned(start, button):
    told = []

    def app(request):
        told.extend(request.observation.notes)
        return {"Status": "FAIL", "Comment": "it hangs"} if request.memory else answer(request)

    supervisor = start(app=app, servers=[button], limits={"command_seconds": 1, "phase_retries": 0})
    result = supervisor.submit(Task(request="press", target="memo:one")).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert "still busy with a call that took too long" in told[0]
    assert "press failed: took longer than 1 s" in told[1]
    assert not button.returned.is_set()
    Watch(supervisor).until(EventName.TARGET_ABANDONED, agent=ONE)
    button.let_go.set()
    Watch(supervisor).until(EventName.TARGET_FREED, agent=ONE)
    assert button.effects == []


def test_a_look_that_does_not_return_abandons_its_target_too(start):
    surface = Blind()
    supervisor = start(app=answer, servers=[surface])
    handle = supervisor.submit(Task(request="first", target="memo:one"))
    assert surface.begun.wait(PATIENCE)
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    Watch(supervisor).until(EventName.TARGET_ABANDONED, agent=ONE)
    surface.let_go.set()
    assert supervisor.submit(Task(request="second", target="memo:one")).result(PATIENCE).outcome is Outcome.FINISHED


def test_stop_returns_and_names_the_lane_whose_call_never_does(supervisor, button):
    handle = supervisor.submit(Task(request="press", target="memo:one"))
    assert button.begun.wait(PATIENCE)
    assert "lane memory:memo:one" in supervisor.stop(0.2)
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert not button.returned.is_set()
    button.let_go.set()
    assert button.returned.wait(PATIENCE)
    assert button.effects == []


def test_stop_with_nothing_left_names_nothing(supervisor):
    supervisor.submit(Task(request="write", target="memo:one")).result(PATIENCE)
    assert supervisor.stop() == ()
