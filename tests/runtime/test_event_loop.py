"""The shared event loop."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from callboard.actors.runtime import EventLoop, refuse_own_thread
from callboard.messages import WouldDeadlockError
from support import HELD, PATIENCE


async def leave(how: type[BaseException]) -> None:
    raise how


async def test_a_coroutine_runs_on_the_loops_thread(loop):
    async def where():
        return threading.current_thread()

    assert loop.submit(where()).result(PATIENCE) is loop.thread


def test_the_loops_thread_is_one_of_ours(loop):
    async def block():
        refuse_own_thread("stop")

    with pytest.raises(WouldDeadlockError, match="test-loop"):
        loop.submit(block()).result(PATIENCE)


def test_a_future_that_is_cancelled_cancels_its_coroutine(loop):
    begun, cancelled = threading.Event(), threading.Event()

    async def wait():
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    future = loop.submit(wait())
    assert begun.wait(PATIENCE)
    future.cancel()
    assert cancelled.wait(PATIENCE)


@pytest.mark.parametrize("how", [SystemExit, KeyboardInterrupt])
def test_a_task_that_wants_to_leave_the_process_does_not_end_the_loop(loop, how):
    async def start_a_task_that_leaves():
        task = asyncio.create_task(leave(how))
        await asyncio.wait([task])
        return type(task.exception())

    assert loop.submit(start_a_task_that_leaves()).result(PATIENCE) is how
    assert loop.submit(asyncio.sleep(0, "alive")).result(PATIENCE) == "alive"


def test_stopping_cancels_what_still_runs():
    loop = EventLoop("stopped-loop")
    loop.start()
    begun, cancelled = threading.Event(), threading.Event()

    async def wait():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    future = loop.submit(wait())
    assert begun.wait(PATIENCE)
    assert loop.stop(PATIENCE)
    assert cancelled.is_set()
    assert future.cancelled()
    assert not loop.thread.is_alive()


def test_a_coroutine_that_will_not_be_cancelled_is_reported_by_stop():
    loop = EventLoop("stubborn-loop")
    loop.start()
    begun, leave_now = threading.Event(), asyncio.Event()

    async def stay():
        begun.set()
        while not leave_now.is_set():
            try:
                await leave_now.wait()
            except asyncio.CancelledError:
                continue

    loop.submit(stay())
    assert begun.wait(PATIENCE)
    assert not loop.stop(0.01)
    loop.call(leave_now.set)
    loop.thread.join(PATIENCE)
    assert not loop.thread.is_alive()


def test_a_loop_that_was_never_started_can_be_stopped():
    assert EventLoop("idle-loop").stop(PATIENCE)


def test_a_loop_can_be_stopped_twice():
    loop = EventLoop("twice-loop")
    loop.start()
    assert loop.stop(PATIENCE)
    assert loop.stop(PATIENCE)


@pytest.fixture
def held(loop):
    """Hold the loop up; setting the event lets it go on."""
    begun, go = threading.Event(), threading.Event()

    def hold():
        begun.set()
        go.wait(HELD)

    loop.call(hold)
    assert begun.wait(PATIENCE)
    yield go
    go.set()


def test_calls_are_made_in_their_order(loop, held):
    made, done = [], threading.Event()
    for number in range(50):
        loop.call(lambda number=number: made.append(number))
    loop.call(done.set)
    held.set()
    assert done.wait(PATIENCE)
    assert made == list(range(50))


@pytest.mark.parametrize("how", [ValueError, SystemExit, KeyboardInterrupt])
def test_call_that_raises_leaves_other_calls_alone_and_is_reported(loop, how):
    told, done = [], threading.Event()

    def fail():
        raise how

    async def listen():
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context["exception"]))

    loop.submit(listen()).result(PATIENCE)
    loop.call(lambda: [loop.call(each) for each in (fail, done.set)])  # both wait for the same turn
    assert done.wait(PATIENCE)
    assert [type(error) for error in told] == [how]
    assert loop.submit(asyncio.sleep(0, "alive")).result(PATIENCE) == "alive"


def test_error_of_a_call_is_logged_with_its_traceback(loop, caplog):
    failure, done = LookupError("nothing there"), threading.Event()

    def fail():
        raise failure

    with caplog.at_level(logging.ERROR):
        loop.call(fail)
        loop.call(done.set)
        assert done.wait(PATIENCE)
    assert [(record.name, record.exc_info[1]) for record in caplog.records] == [("asyncio", failure)]
    assert "a call on the event loop failed" in caplog.text


def test_error_of_a_loop_callback_is_logged_with_its_traceback(loop, caplog):
    failure = LookupError("nothing there")

    def fail():
        raise failure

    async def call_back_soon():
        asyncio.get_running_loop().call_soon(fail)
        await asyncio.sleep(0)

    with caplog.at_level(logging.ERROR):
        loop.submit(call_back_soon()).result(PATIENCE)
    assert [(record.name, record.exc_info[1]) for record in caplog.records] == [("asyncio", failure)]


def test_many_calls_wake_a_busy_loop_once(loop, held, monkeypatch):
    woken, done = [], threading.Event()
    wake = loop._loop.call_soon_threadsafe
    monkeypatch.setattr(loop._loop, "call_soon_threadsafe", lambda *what: (woken.append(what), wake(*what)))
    for _ in range(20):
        loop.call(lambda: None)
    loop.call(done.set)
    assert len(woken) == 1
    held.set()
    assert done.wait(PATIENCE)


def test_a_call_that_a_call_makes_is_made_too(loop):
    done = threading.Event()
    loop.call(lambda: loop.call(done.set))
    assert done.wait(PATIENCE)


def test_a_call_after_the_end_is_ignored():
    loop = EventLoop("ended-loop")
    loop.start()
    assert loop.stop(PATIENCE)
    called: list[int] = []
    loop.call(lambda: called.append(1))
    assert called == []
