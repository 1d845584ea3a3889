"""The wall clock may jump, between two processes and in the middle of the work: nothing ends too early by it."""

from __future__ import annotations

import threading
import time

import pytest

from callboard import EventName, Outcome, Task
from callboard.actors.runtime import SystemClock
from callboard.testing import Faults, MemoryServer, VirtualClock
from support import FINISH, HELD, PATIENCE, append

DAY = 86_400.0


class Jumping(SystemClock):
    """The machine's clock, with a wall time that can be set."""

    def __init__(self, ahead=0.0):
        super().__init__("callboard-clock")
        self.ahead = ahead

    def now(self):
        return time.time() + self.ahead


@pytest.fixture
def surface():
    return MemoryServer(MemoryServer.window())


@pytest.fixture
def begin(begin, surface):
    """Start supervisors with a clock each."""
    return lambda clock, app, **given: begin(app=app, servers=[surface], clock=clock, **given)


def append_thrice(request):
    return append(str(request.step)) if request.step <= 3 else FINISH


TIGHT = {"limits": {"task_seconds": 60.0, "subtask_seconds": 60.0, "step_seconds": 60.0}}


@pytest.mark.parametrize("jump", [-DAY, -1.0, DAY], ids=["a day back", "a second back", "a day ahead"])
def test_between_two_processes_a_jump_uses_up_no_time_of_a_task(begin, surface, until, jump):
    waiting = {"Status": "PENDING", "Questions": ["which?"]}

    def asking(request):
        return waiting if request.step == 1 else append_thrice(request)

    first = begin(Jumping(), asking, **TIGHT)
    handle = first.submit(Task(id="t", request="do it", target="memo:one"))
    until(handle, EventName.QUESTION_ASKED)
    first.stop()
    second = begin(Jumping(jump), asking, **TIGHT)
    handle = second.handle("t")
    if jump < DAY:
        handle.answer(handle.questions()[0].id, "this one")
        assert handle.result(PATIENCE).outcome is Outcome.FINISHED
        assert [text for _, _, text in surface.effects] == ["2", "3"]
    else:  # the deadline of a question is wall time
        assert handle.result(PATIENCE).outcome is Outcome.TIMED_OUT
        assert surface.effects == []


@pytest.mark.parametrize("jump", [-DAY, DAY], ids=["a day back", "a day ahead"])
def test_in_the_middle_of_the_work_a_jump_uses_up_no_time_of_a_task(begin, surface, jump):
    clock, reached = Jumping(), []
    first = begin(clock, append_thrice, **TIGHT)

    def jumped():
        clock.ahead += jump
        reached.append(jump)

    with Faults() as faults:
        faults.after("command_result", jumped, nth=1)
        assert (
            first.submit(Task(id="t", request="do it", target="memo:one")).result(PATIENCE).outcome is Outcome.FINISHED
        )
    assert reached == [jump]
    assert [text for _, _, text in surface.effects] == ["1", "2", "3"]


@pytest.mark.parametrize("jump", [-DAY, DAY], ids=["a day back", "a day ahead"])
def test_a_task_resumes_with_its_remaining_time_after_a_clock_jump(begin, surface, until, jump):
    def asking(request):
        return {"Status": "PENDING", "Questions": ["which?"]} if request.step == 2 else append_thrice(request)

    clock = Jumping()
    first = begin(clock, asking, **TIGHT)
    with Faults() as faults:
        faults.after("command_result", lambda: setattr(clock, "ahead", jump), nth=1)
        until(first.submit(Task(id="t", request="do it", target="memo:one")), EventName.QUESTION_ASKED)
    first.stop()
    handle = begin(Jumping(jump), asking, **TIGHT).handle("t")
    handle.answer(handle.questions()[0].id, "this one")
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.FINISHED
    assert result.seconds < DAY / 2
    assert [text for _, _, text in surface.effects] == ["1", "3"]


def test_time_queued_for_a_target_is_not_work_in_the_next_process_either(start, tmp_path, until):
    going_on, let_go = threading.Event(), threading.Event()

    def app(request):
        if not request.memory:
            return {"Status": "PENDING", "Questions": ["which?"]}
        if request.task_id == "second":
            going_on.set()
            let_go.wait(HELD)
        return FINISH

    def on(clock):
        surface = MemoryServer(MemoryServer.window())
        return start(app=app, servers=[surface], journal={"path": tmp_path / "journal.db"}, clock=clock, **TIGHT)

    clock = VirtualClock(DAY)
    supervisor = on(clock)
    first = supervisor.submit(Task(id="first", request="do it", target="memo:one"))
    second = supervisor.submit(Task(id="second", request="do it", target="memo:one"))
    until(first, EventName.QUESTION_ASKED)
    clock.advance(600.0)
    first.answer(first.questions()[0].id, "this one")
    until(second, EventName.QUESTION_ASKED)
    supervisor.stop()
    clock = VirtualClock(clock.now())
    handle = on(clock).handle("second")
    handle.answer(handle.questions()[0].id, "this one")
    assert going_on.wait(PATIENCE)
    clock.advance(1.0)
    let_go.set()
    assert handle.result(PATIENCE).outcome is Outcome.FINISHED


@pytest.mark.parametrize("days", [-400, -31, -20, -8, 8, 31, 400])
@pytest.mark.parametrize("whole", [True, False], ids=["for the whole process", "until it is set right"])
def test_a_key_is_not_forgotten_after_a_start_with_a_wrong_clock(begin, surface, monkeypatch, days, whole):
    def pays(request):
        return append("paid") if request.step == 1 else FINISH

    real, task = time.time, Task(key="invoice-17", request="pay", target="memo:one")
    for start in (0, days, 0.01, days, 0.02):
        monkeypatch.setattr(time, "time", lambda start=start: real() + start * DAY)
        clock = SystemClock("callboard-clock")
        clock.now = time.time if whole else real
        supervisor = begin(clock, pays)
        assert supervisor.submit(task).result(PATIENCE).ok
        warned = any("behind the journal's last entry" in warning for warning in supervisor.warnings)
        assert warned or not (whole and start < 0)
        supervisor.stop()
    assert [text for _, _, text in surface.effects] == ["paid"]
