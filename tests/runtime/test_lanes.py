"""Lanes: blocking calls, one after the other for each target."""

from __future__ import annotations

import asyncio
import queue
import threading
from contextvars import ContextVar

import pytest

from callboard.actors.runtime import Lane, Lanes, _lanes, refuse_own_thread
from callboard.messages import WouldDeadlockError

WORD = ContextVar("WORD", default="none")


@pytest.fixture
def lane():
    made = Lane("test")
    yield made
    made.close()
    if made.thread is not None:
        made.thread.join(5)
        assert not made.thread.is_alive()


class Held:
    """A call that has begun when `begun` is set, and returns when `let_go` is."""

    def __init__(self):
        self.begun = threading.Event()
        self.let_go = threading.Event()

    def __call__(self):
        self.begun.set()
        assert self.let_go.wait(10)
        return "returned"


@pytest.fixture
def held():
    call = Held()
    yield call
    call.let_go.set()


def test_calls_of_a_lane_run_one_after_the_other_in_order(lane, held):
    order = []
    first = lane.submit(held)
    rest = [lane.submit(lambda number=number: order.append(number)) for number in range(20)]
    assert held.begun.wait(5)
    assert order == []
    held.let_go.set()
    assert first.result(5) == "returned"
    for call in rest:
        call.result(5)
    assert order == list(range(20))


def test_lanes_of_different_names_run_side_by_side(lanes):
    meet = threading.Barrier(2, timeout=5)
    calls = [lanes.get(name).submit(meet.wait) for name in ("one", "two")]
    assert sorted(call.result(5) for call in calls) == [0, 1]


def test_one_name_is_one_lane(lanes):
    assert lanes.get("one") is lanes.get("one")
    assert lanes.get("one") is not lanes.get("two")


def test_a_call_runs_in_a_copy_of_its_callers_context(lane):
    WORD.set("the caller's")

    def change():
        seen = WORD.get()
        WORD.set("the call's")
        return seen

    assert lane.submit(change).result(5) == "the caller's"
    assert WORD.get() == "the caller's"


def test_a_lanes_thread_is_one_of_ours(lane):
    with pytest.raises(WouldDeadlockError):
        lane.submit(lambda: refuse_own_thread("result")).result(5)


def test_what_a_call_raises_goes_to_its_future_and_the_lane_lives_on(lane):
    def fail():
        raise LookupError

    with pytest.raises(LookupError):
        lane.submit(fail).result(5)
    assert lane.submit(lambda: "alive").result(5) == "alive"


@pytest.mark.parametrize("how", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_call_that_wants_to_leave_the_process_is_an_ordinary_error_and_the_lane_lives_on(lane, how):
    def leave():
        raise how

    with pytest.raises(RuntimeError, match=how.__name__):
        lane.submit(leave).result(5)
    assert lane.submit(lambda: "alive").result(5) == "alive"


async def test_a_call_that_raises_stop_iteration_is_an_ordinary_error(lanes):
    def stop():
        raise StopIteration

    with pytest.raises(RuntimeError):
        await asyncio.wait_for(lanes.run("one", stop), 5)


def test_a_lane_is_busy_while_a_call_runs_or_waits(lane, held):
    assert not lane.busy
    first, second = lane.submit(held), lane.submit(lambda: None)
    assert held.begun.wait(5)
    assert lane.busy
    held.let_go.set()
    first.result(5)
    second.result(5)
    assert not lane.busy


def test_a_call_that_was_cancelled_while_it_waited_never_runs(lane, held):
    ran = []
    first, second = lane.submit(held), lane.submit(lambda: ran.append(1))
    assert held.begun.wait(5)
    assert second.cancel()
    assert not first.cancel()
    held.let_go.set()
    first.result(5)
    lane.submit(lambda: None).result(5)
    assert ran == []
    assert not lane.busy


async def test_a_cancelled_wait_takes_a_waiting_call_back(lanes, held):
    ran = []
    first = lanes.get("one").submit(held)
    waiting = asyncio.create_task(lanes.run("one", lambda: ran.append(1)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    held.let_go.set()
    await asyncio.wrap_future(first)
    await lanes.run("one", lambda: None)
    assert ran == []


def test_an_idle_lane_lets_its_thread_go_and_the_next_call_starts_another(lane, monkeypatch):
    monkeypatch.setattr(_lanes, "_IDLE_SECONDS", 0.01)
    lane.submit(lambda: None).result(5)
    thread = lane.thread
    if thread is not None:
        thread.join(5)
        assert not thread.is_alive()
    assert lane.thread is None
    assert lane.submit(lambda: "again").result(5) == "again"


def test_closing_cancels_what_waits_and_lets_the_running_call_return(held):
    lane = Lane("closed")
    first, second = lane.submit(held), lane.submit(lambda: None)
    assert held.begun.wait(5)
    lane.close()
    assert second.cancelled()
    assert lane.thread is not None
    held.let_go.set()
    assert first.result(5) == "returned"
    lane.thread.join(5)
    assert not lane.thread.is_alive()


def test_closing_names_the_lanes_whose_call_does_not_return(held):
    lanes = Lanes()
    lanes.get("quick").submit(lambda: None).result(5)
    stuck = lanes.get("stuck")
    stuck.submit(held)
    assert held.begun.wait(5)
    assert lanes.close(0.01) == ("stuck",)
    held.let_go.set()
    assert stuck.thread is not None
    stuck.thread.join(5)


def test_closing_does_not_wait_for_a_call_that_the_lane_took_meanwhile():
    class TakenMeanwhile(queue.SimpleQueue):
        """Says once that a call waits, and the lane's thread takes it right after."""

        asked = False

        def empty(self):
            before, self.asked = self.asked, True
            return before and super().empty()

    lane = Lane("raced")
    lane._calls = TakenMeanwhile()
    closing = threading.Thread(target=lane.close, daemon=True)
    closing.start()
    closing.join(2)
    assert not closing.is_alive()
