"""The parts of the runtime, started and stopped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from callboard.actors.runtime import EventLoop, EventStream, Jobs, Lanes, VirtualClock
from support import PATIENCE


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    """Give a running loop."""
    running = EventLoop("test-loop")
    running.start()
    yield running
    assert running.stop(PATIENCE)


@pytest.fixture
def lanes() -> Iterator[Lanes]:
    """Give lanes, and check that all calls have returned."""
    made = Lanes()
    yield made
    assert made.close(PATIENCE) == ()


@pytest.fixture
def jobs(loop: EventLoop, clock: VirtualClock) -> Jobs:
    """Give jobs on the loop."""
    return Jobs(loop, clock)


@pytest.fixture
def clock() -> VirtualClock:
    """Give a clock that stands still."""
    return VirtualClock(1000.0)


@pytest.fixture
def stream(clock: VirtualClock) -> EventStream:
    """Give a stream that keeps five events, three for each feed."""
    return EventStream(clock, kept=5, queue=3)
