"""Lanes: blocking calls, one after the other for each target."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from concurrent.futures import CancelledError
from contextvars import ContextVar

import pytest

from callboard.actors.runtime import Lanes, _lanes, refuse_own_thread
from callboard.messages import SupervisorStoppedError, WouldDeadlockError
from interleaving import in_every_order, preempted_here
from support import HELD, PATIENCE

WORD = ContextVar("WORD", default="none")


class Held:
    """A call that has begun when `begun` is set, and returns when `let_go` is."""

    def __init__(self):
        self.begun = threading.Event()
        self.let_go = threading.Event()

    def __call__(self):
        self.begun.set()
        assert self.let_go.wait(HELD)
        return "returned"


@pytest.fixture
def held():
    call = Held()
    yield call
    call.let_go.set()


def test_calls_of_a_lane_run_one_after_the_other_in_order(lanes, held):
    order = []
    first = lanes.submit("one", held)
    rest = [lanes.submit("one", lambda number=number: order.append(number)) for number in range(20)]
    assert held.begun.wait(PATIENCE)
    assert order == []
    held.let_go.set()
    assert first.result(PATIENCE) == "returned"
    for call in rest:
        call.result(PATIENCE)
    assert order == list(range(20))


def test_lanes_of_different_names_run_side_by_side(lanes):
    meet = threading.Barrier(2, timeout=PATIENCE)
    calls = [lanes.submit(name, meet.wait) for name in ("one", "two")]
    assert sorted(call.result(PATIENCE) for call in calls) == [0, 1]


def test_a_call_runs_in_a_copy_of_its_callers_context(lanes):
    WORD.set("the caller's")

    def change():
        seen = WORD.get()
        WORD.set("the call's")
        return seen

    assert lanes.submit("one", change).result(PATIENCE) == "the caller's"
    assert WORD.get() == "the caller's"


def test_a_lanes_thread_is_one_of_ours(lanes):
    with pytest.raises(WouldDeadlockError):
        lanes.submit("one", lambda: refuse_own_thread("result")).result(PATIENCE)


def test_error_of_a_call_goes_to_its_future_and_the_lane_lives_on(lanes):
    def fail():
        raise LookupError

    with pytest.raises(LookupError):
        lanes.submit("one", fail).result(PATIENCE)
    assert lanes.submit("one", lambda: "alive").result(PATIENCE) == "alive"


class OddError(Exception):
    """An exception that no library knows."""


@pytest.mark.parametrize("error", [OddError("what it says"), LookupError(), queue.Empty(), SupervisorStoppedError()])
async def test_an_exception_reaches_whoever_waits_as_it_was_raised(lanes, error):
    def fail():
        raise error

    with pytest.raises(type(error)) as raised:
        await asyncio.wait_for(lanes.run("one", fail), PATIENCE)
    assert raised.value is error
    assert lanes.submit("one", fail).exception(PATIENCE) is error


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), StopIteration(4)])
def test_error_that_a_future_can_not_carry_is_the_cause_of_another(lanes, error):
    def fail():
        raise error

    carried = lanes.submit("one", fail).exception(PATIENCE)
    assert type(carried) is RuntimeError
    assert carried.__cause__ is error


async def test_a_call_whose_thread_can_not_be_started_fails_and_never_runs(lanes, monkeypatch):
    def refuse(_thread):
        msg = "can't start new thread"
        raise RuntimeError(msg)

    ran = []
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            await asyncio.wait_for(lanes.run("one", lambda: ran.append("refused")), PATIENCE)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            await asyncio.wait_for(lanes.run("two", lambda: ran.append("refused")), PATIENCE)
    assert not lanes.busy("one")
    await asyncio.wait_for(lanes.run("one", lambda: ran.append("next")), PATIENCE)
    assert ran == ["next"]
    assert lanes.close(PATIENCE) == ()


@pytest.mark.parametrize("how", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_call_that_tries_to_exit_is_an_ordinary_error_for_its_lane(lanes, how):
    def leave():
        raise how

    with pytest.raises(RuntimeError, match=how.__name__):
        lanes.submit("one", leave).result(PATIENCE)
    assert lanes.submit("one", lambda: "alive").result(PATIENCE) == "alive"


async def test_a_call_that_raises_stop_iteration_is_an_ordinary_error(lanes):
    def stop():
        raise StopIteration

    with pytest.raises(RuntimeError):
        await asyncio.wait_for(lanes.run("one", stop), PATIENCE)


def test_a_lane_is_busy_while_a_call_runs_or_waits(lanes, held):
    assert not lanes.busy("one")
    first, second = lanes.submit("one", held), lanes.submit("one", lambda: None)
    assert held.begun.wait(PATIENCE)
    assert lanes.busy("one")
    held.let_go.set()
    first.result(PATIENCE)
    second.result(PATIENCE)
    assert not lanes.busy("one")


def test_a_call_that_was_cancelled_while_it_waited_never_runs(lanes, held):
    ran = []
    first, second = lanes.submit("one", held), lanes.submit("one", lambda: ran.append(1))
    assert held.begun.wait(PATIENCE)
    assert second.cancel()
    assert not first.cancel()
    held.let_go.set()
    first.result(PATIENCE)
    lanes.submit("one", lambda: None).result(PATIENCE)
    assert ran == []
    assert not lanes.busy("one")


async def test_a_cancelled_wait_takes_a_waiting_call_back(lanes, held):
    ran = []
    first = lanes.submit("one", held)
    waiting = asyncio.create_task(lanes.run("one", lambda: ran.append(1)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    held.let_go.set()
    await asyncio.wrap_future(first)
    await lanes.run("one", lambda: None)
    assert ran == []


def test_a_lane_that_was_never_used_is_not_busy(lanes):
    assert not lanes.busy("one")


def test_an_idle_lane_lets_its_thread_go_and_the_next_call_starts_another(lanes, monkeypatch):
    monkeypatch.setattr(_lanes, "_IDLE_SECONDS", 0.01)
    first = lanes.submit("one", threading.current_thread).result(PATIENCE)
    first.join(PATIENCE)
    assert not first.is_alive()
    second = lanes.submit("one", threading.current_thread).result(PATIENCE)
    assert second is not first


def test_a_lanes_thread_never_keeps_the_process_alive(lanes):
    thread = lanes.submit("one", threading.current_thread).result(PATIENCE)
    assert thread.daemon
    assert thread.name == "callboard-lane-one"


def test_many_calls_of_many_threads_all_run_once_while_lanes_come_and_go(lanes, monkeypatch):
    monkeypatch.setattr(_lanes, "_IDLE_SECONDS", 0.0001)
    counts = dict.fromkeys(range(5), 0)

    def count(number):
        counts[number] += 1  # without a lock: a lane runs one call at a time

    def call_all():
        for turn in range(500):
            lanes.submit(f"lane-{turn % 5}", lambda number=turn % 5: count(number)).result(PATIENCE)

    threads = [threading.Thread(target=call_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert counts == dict.fromkeys(range(5), 400)


def test_closing_cancels_what_waits_and_lets_the_running_call_return(held):
    lanes = Lanes()
    first, second = lanes.submit("one", held), lanes.submit("one", lambda: None)
    assert held.begun.wait(PATIENCE)
    assert lanes.close(0) == ("one",)
    assert second.cancelled()
    held.let_go.set()
    assert first.result(PATIENCE) == "returned"


def test_closing_names_the_lanes_whose_call_does_not_return_and_no_other(held):
    lanes = Lanes()
    lanes.submit("quick", lambda: None).result(PATIENCE)
    stuck = lanes.submit("stuck", held)
    assert held.begun.wait(PATIENCE)
    assert lanes.close(0.1) == ("stuck",)
    held.let_go.set()
    assert stuck.result(PATIENCE) == "returned"


async def test_closed_lanes_take_no_call_and_start_no_thread():
    lanes, ran = Lanes(), []
    lanes.submit("used", lambda: None).result(PATIENCE)
    assert lanes.close(PATIENCE) == ()
    for name in ("used", "new"):
        with pytest.raises(SupervisorStoppedError, match=f"'{name}' takes no more calls"):
            lanes.submit(name, lambda: ran.append(1))
        waits = asyncio.ensure_future(lanes.run(name, lambda: ran.append(1)))
        await asyncio.sleep(0)
        assert waits.cancel()
    names = {thread.name for thread in threading.enumerate()}
    assert (ran, names & {"callboard-lane-used", "callboard-lane-new"}) == ([], set())


def test_lanes_closed_during_many_calls_start_no_thread_afterwards():
    lanes, started = Lanes(), threading.Barrier(5)

    def call_on():
        started.wait(PATIENCE)
        with contextlib.suppress(SupervisorStoppedError, CancelledError):
            while True:
                lanes.submit("busy", lambda: None).result(PATIENCE)

    threads = [threading.Thread(target=call_on) for _ in range(4)]
    for thread in threads:
        thread.start()
    started.wait(PATIENCE)
    assert lanes.close(PATIENCE) == ()
    for thread in threads:
        thread.join(PATIENCE)
    assert "callboard-lane-busy" not in {thread.name for thread in threading.enumerate()}


def test_closing_does_not_wait_for_a_call_that_the_lane_took_meanwhile():
    class TakenMeanwhile(queue.SimpleQueue):
        """Says once that a call waits, and the lane's thread takes it right after."""

        asked = False

        def empty(self):
            before, self.asked = self.asked, True
            return before and super().empty()

    lanes = Lanes()
    lanes.submit("one", lambda: None).result(PATIENCE)
    lane = lanes._lanes["one"]
    lane._calls.put(None)  # the thread leaves the queue that it waits on
    lane.thread.join(PATIENCE)
    lane._calls = TakenMeanwhile()
    closing = threading.Thread(target=lanes.close, args=(0,), daemon=True)
    closing.start()
    closing.join(PATIENCE)
    assert not closing.is_alive()


# At once


class Alone:
    """A call that must not run beside another one of its lane, and during which the lane is busy."""

    def __init__(self, lanes):
        self._lanes, self._inside, self.ran = lanes, threading.Lock(), 0

    def __call__(self):
        assert self._inside.acquire(blocking=False)
        assert self._lanes.busy("one")
        self.ran += 1
        self._inside.release()


def test_two_first_calls_of_one_name_at_once_get_one_thread():
    def scenario():
        lanes, threads, futures = Lanes(), [], []

        def call():
            futures.append(lanes.submit("one", lambda: threads.append(threading.current_thread())))

        yield call, call
        for future in futures:
            future.result(PATIENCE)
        assert threads[0] is threads[1]
        assert lanes.close(PATIENCE) == ()

    in_every_order(scenario)


def test_calls_that_come_just_as_another_ends_run_alone_and_are_counted(monkeypatch):
    monkeypatch.setattr(_lanes, "_IDLE_SECONDS", 0.001)

    def scenario():
        lanes, futures = Lanes(), []
        call = Alone(lanes)

        def run_until_idle():
            lanes.submit("one", lambda: (preempted_here(), threading.current_thread())[1]).result(PATIENCE).join()

        yield run_until_idle, lambda: futures.append(lanes.submit("one", call))
        futures[0].result(PATIENCE)
        assert call.ran == 1
        assert not lanes.busy("one")
        assert lanes.close(PATIENCE) == ()

    in_every_order(scenario)


def test_a_call_just_as_the_lanes_close_is_refused_or_cancelled_or_runs():
    def scenario():
        lanes, threads, futures = Lanes(), [], []

        def call():
            with contextlib.suppress(SupervisorStoppedError):
                futures.append(lanes.submit("one", lambda: threads.append(threading.current_thread())))

        yield call, lambda: lanes.close(PATIENCE)
        for future in futures:
            with contextlib.suppress(CancelledError):
                future.result(PATIENCE)
        assert lanes.close(PATIENCE) == ()
        assert "callboard-lane-one" not in {thread.name for thread in threading.enumerate()}

    in_every_order(scenario)


def test_a_lane_that_is_kept_keeps_its_thread_while_it_is_idle(monkeypatch):
    monkeypatch.setattr(_lanes, "_IDLE_SECONDS", 0.001)
    lanes = Lanes()
    lanes.keep("kept")
    kept, other = (lanes.submit(name, threading.current_thread).result(PATIENCE) for name in ("kept", "other"))
    other.join(PATIENCE)
    assert not other.is_alive()
    assert lanes.submit("kept", threading.current_thread).result(PATIENCE) is kept
    lanes.close(PATIENCE)
    assert not kept.is_alive()


def test_coroutine_of_a_function_on_a_lane_is_awaited():
    lanes = Lanes()

    async def answer():
        await asyncio.sleep(0)
        return threading.current_thread()

    async def both():
        return [await lanes.run(name, answer) for name in ("", "lane")]

    here = threading.current_thread()
    assert asyncio.run(both()) == [here, here]
    lanes.close(PATIENCE)
