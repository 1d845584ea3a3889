"""Clocks: deadlines in order, the machine's and a test's."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.actors.runtime import SystemClock, VirtualClock, refuse_own_thread
from callboard.messages import WouldDeadlockError
from support import HELD, PATIENCE


@pytest.fixture
def machine():
    clock = SystemClock("test-clock")
    clock.start()
    yield clock
    assert clock.stop(PATIENCE)


def test_a_virtual_clock_stands_still_until_it_is_moved(clock):
    assert (clock.now(), clock.elapsed()) == (1000.0, 1000.0)
    clock.advance(2.5)
    assert (clock.now(), clock.elapsed()) == (1002.5, 1002.5)


def test_an_alarm_goes_off_when_it_is_due_and_once(clock):
    heard = []
    clock.after(10, lambda: heard.append(clock.now()))
    clock.advance(9)
    assert heard == []
    clock.advance(1)
    clock.advance(100)
    assert heard == [1010.0]


def test_a_cancelled_alarm_never_goes_off(clock):
    heard = []
    clock.after(10, lambda: heard.append(1)).cancel()
    clock.advance(20)
    assert heard == []


def test_an_alarm_due_before_the_awaited_one_goes_off_first(machine):
    heard: queue.Queue[str] = queue.Queue()
    late = machine.after(60, lambda: heard.put("late"))
    time.sleep(0.05)  # the clock waits for it
    machine.after(0.01, lambda: heard.put("soon"))
    assert heard.get(timeout=PATIENCE) == "soon"
    late.cancel()


def test_an_alarm_behind_the_one_that_is_waited_for_goes_off_after_it(machine):
    heard: queue.Queue[str] = queue.Queue()
    machine.after(0.05, lambda: heard.put("first"))
    machine.after(0.1, lambda: heard.put("second"))
    assert [heard.get(timeout=PATIENCE), heard.get(timeout=PATIENCE)] == ["first", "second"]


def test_an_alarm_set_by_another_one_goes_off_in_the_same_move_if_due(clock):
    heard = []
    clock.after(1, lambda: clock.after(1, lambda: heard.append(clock.now())))
    clock.advance(5)
    assert heard == [1002.0]


def test_an_alarm_may_cancel_another_one_that_is_due_with_it(clock):
    heard = []
    alarms = []
    clock.after(1, lambda: [alarm.cancel() for alarm in alarms])
    alarms.append(clock.after(1, lambda: heard.append(1)))
    clock.advance(1)
    assert heard == []


@given(st.lists(st.integers(0, 20)), st.lists(st.integers(0, 10)))
def test_alarms_go_off_by_deadline_and_then_in_the_order_they_were_set(seconds, moves):
    clock = VirtualClock()
    heard = []
    for number, due in enumerate(seconds):
        clock.after(due, lambda due=due, number=number: heard.append((due, number, clock.now())))
    for move in moves:
        clock.advance(move)
    expected = sorted((due, number, float(due)) for number, due in enumerate(seconds) if due <= sum(moves))
    # without a move nothing is told, not even the timers due now
    assert heard == (expected if moves else [])


def test_a_time_limit_that_was_kept_does_not_ring_in_its_closed_loop(clock):
    async def keep():
        async with clock.timeout(5):
            pass

    asyncio.run(keep())
    clock.advance(10)


async def test_a_time_limit_that_rings_as_its_block_ends_does_nothing(clock):
    raised = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: raised.append(context))
    async with clock.timeout(5) as limit:
        clock.advance(10)  # its consequences come after the block
    await asyncio.sleep(0)
    assert (raised, limit.expired()) == ([], False)


def test_the_machines_clock_calls_back_on_a_thread_that_counts_as_ours(machine):
    told = queue.SimpleQueue()

    def ring():
        try:
            refuse_own_thread("stop")
        except WouldDeadlockError:
            told.put(threading.current_thread().name)

    machine.after(0, ring)
    assert told.get(timeout=PATIENCE) == "test-clock"


def test_the_machines_clock_wakes_for_a_deadline_before_the_awaited_one(machine):
    told = queue.SimpleQueue()
    machine.after(3600, lambda: told.put("late"))
    machine.after(0.01, lambda: told.put("early"))
    assert told.get(timeout=PATIENCE) == "early"
    assert told.empty()


def test_a_callback_that_fails_does_not_end_the_machines_clock(machine, caplog):
    def fail():
        raise LookupError

    told = queue.SimpleQueue()
    machine.after(0, fail)
    machine.after(0.01, lambda: told.put("later"))
    with caplog.at_level(logging.ERROR, "callboard"):
        assert told.get(timeout=PATIENCE) == "later"
    assert [record.exc_info[0] for record in caplog.records] == [LookupError]


def test_the_machines_clock_never_goes_off_early(machine):
    told = queue.SimpleQueue()
    due = machine.elapsed() + 0.02
    machine.after(0.02, lambda: told.put(machine.elapsed()))
    assert told.get(timeout=PATIENCE) >= due


def test_the_machines_clock_tells_the_wall_time(machine):
    before = time.time()
    assert before <= machine.now() <= time.time()


def test_stopped_clock_runs_no_callback():
    clock = SystemClock("stopped-clock")
    clock.start()
    heard = []
    clock.after(3600, lambda: heard.append(1))
    assert clock.stop(PATIENCE)
    assert heard == []


def test_a_clock_that_was_never_started_can_be_stopped():
    assert SystemClock("idle-clock").stop(PATIENCE)


def test_a_callback_that_does_not_return_is_reported_by_stop():
    clock = SystemClock("stuck-clock")
    clock.start()
    begun, let_go = threading.Event(), threading.Event()

    def block():
        begun.set()
        let_go.wait(HELD)

    clock.after(0, block)
    assert begun.wait(PATIENCE)
    assert not clock.stop(0.01)
    let_go.set()
    assert clock.stop(PATIENCE)


@pytest.mark.parametrize("make", [lambda: SystemClock("test"), VirtualClock])
async def test_a_limit_that_is_held_does_not_run_out(make):
    clock = make()
    async with clock.timeout(0.01) as limit:
        limit.hold()
        if isinstance(clock, VirtualClock):
            clock.advance(1000)
        await asyncio.sleep(0.05)
        assert not limit.expired()
        limit.release()
        if isinstance(clock, VirtualClock):
            clock.advance(0.001)
            await asyncio.sleep(0)
            assert not limit.expired()
    limit.hold()
    limit.release()
    assert not limit.expired()


@pytest.mark.parametrize("make", [lambda: SystemClock("test"), VirtualClock])
async def test_a_limit_that_was_released_runs_out(make):
    clock = make()
    limit = clock.timeout(0.01)

    async def wait():
        async with limit:
            limit.hold()
            limit.release()
            if isinstance(clock, VirtualClock):
                clock.advance(0.02)
            await asyncio.sleep(PATIENCE)

    with pytest.raises(TimeoutError):
        await wait()
    assert limit.expired()
