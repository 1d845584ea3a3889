"""A provider's rate limit, on a clock that a test moves."""

from __future__ import annotations

import asyncio

import pytest

from callboard.models.live._rate_limit import MINUTE, RateLimit
from support import PATIENCE


class Time:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now = 100.0
        self.slept = []

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def limit(time):
    def make(**given):
        return RateLimit(now=lambda: time.now, sleep=time.sleep, **given)

    return make


async def test_calls_do_not_wait_without_a_limit(limit, time):
    unlimited = limit()
    for _ in range(100):
        async with unlimited.turn():
            pass
    assert time.slept == []


async def test_calls_leave_no_record_without_a_limit(limit):
    unlimited = limit()
    for _ in range(100):
        await unlimited.begin()
    assert not unlimited._began


async def test_a_call_over_the_rate_waits_until_the_first_is_a_minute_old(limit, time):
    slow = limit(per_minute=2)
    for _ in range(2):
        await slow.begin()
        time.now += 10
    await slow.begin()
    assert time.slept == [MINUTE - 20]


async def test_a_repetition_counts_as_a_call(limit, time):
    slow = limit(per_minute=2)
    async with slow.turn():
        await slow.begin()
    await slow.begin()
    assert time.slept == [MINUTE]


async def test_held_rate_limit_delays_the_next_call(limit, time):
    held = limit()
    held.hold(7)
    held.hold(3)
    await held.begin()
    assert time.slept == [7]


async def test_concurrent_calls_never_exceed_the_limit(limit):
    narrow = limit(concurrent=2)
    inside, most, two, go_on = 0, 0, asyncio.Event(), asyncio.Event()

    async def call():
        nonlocal inside, most
        async with narrow.turn():
            inside += 1
            most = max(most, inside)
            if inside == 2:
                two.set()
            await go_on.wait()
            inside -= 1

    async with asyncio.TaskGroup() as calls:
        for _ in range(5):
            calls.create_task(call())
        await two.wait()
        go_on.set()
    assert (most, inside) == (2, 0)


async def test_cancelled_waiter_does_not_block_others(limit):
    narrow = limit(concurrent=1)
    async with narrow.turn():
        waiting = asyncio.create_task(narrow.turn().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(PATIENCE), narrow.turn():
        pass
