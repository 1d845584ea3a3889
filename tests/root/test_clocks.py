"""Stopwatches: seconds used, not wall time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.actors.root._clocks import Stopwatches
from callboard.actors.runtime import VirtualClock
from callboard.messages import Cancel, Outcome


class Bench:
    """Stopwatches, their clock, and their messages."""

    def __init__(self):
        self.clock, self.posted = VirtualClock(), []
        self.watches = Stopwatches(self.clock, self.posted.append)


@pytest.fixture
def bench():
    return Bench()


def test_a_watch_cancels_its_task_once_when_its_seconds_are_used(bench):
    bench.watches.start("task-1", 10, "task-1")
    bench.clock.advance(9)
    assert bench.posted == []
    bench.clock.advance(1)
    bench.clock.advance(100)
    reason = "the task took longer than 10 s"
    assert bench.posted == [Cancel(task_id="task-1", outcome=Outcome.TIMED_OUT, reason=reason)]


def test_a_watch_of_a_run_cancels_that_run_alone(bench):
    bench.watches.start("task-1~2", 10, "task-1", "task-1~2")
    bench.clock.advance(10)
    reason = "the subtask took longer than 10 s"
    expected = Cancel(task_id="task-1", run_id="task-1~2", outcome=Outcome.TIMED_OUT, reason=reason)
    assert bench.posted == [expected]


def test_without_seconds_there_is_no_deadline(bench):
    bench.watches.start("task-1", None, "task-1")
    bench.watches.stop("task-1", "paused")
    bench.watches.go_on("task-1", "paused")
    bench.clock.advance(1e9)
    assert bench.posted == []


def test_a_watch_stands_still_while_it_is_stopped(bench):
    bench.watches.start("task-1", 10, "task-1")
    bench.clock.advance(6)
    bench.watches.stop("task-1", "asked")
    bench.clock.advance(1000)
    bench.watches.go_on("task-1", "asked")
    bench.clock.advance(3)
    assert bench.posted == []
    bench.clock.advance(1)
    assert len(bench.posted) == 1


def test_watch_continues_when_its_last_reason_is_gone(bench):
    bench.watches.start("task-1", 10, "task-1")
    for reason in ("asked", "paused", "asked"):
        bench.watches.stop("task-1", reason)
    bench.watches.go_on("task-1", "asked")
    bench.clock.advance(100)
    assert bench.posted == []
    bench.watches.go_on("task-1", "paused")
    bench.clock.advance(10)
    assert len(bench.posted) == 1


def test_watch_ignores_a_reason_that_never_stopped_it(bench):
    bench.watches.start("task-1", 10, "task-1")
    bench.watches.go_on("task-1", "paused")
    bench.watches.stop("nobody", "paused")
    bench.watches.go_on("nobody", "paused")
    bench.clock.advance(10)
    assert len(bench.posted) == 1


@pytest.mark.parametrize("stopped", [True, False])
def test_a_dropped_watch_never_goes_off(bench, stopped):
    bench.watches.start("task-1", 10, "task-1")
    if stopped:
        bench.watches.stop("task-1", "paused")
    bench.watches.drop("task-1")
    bench.watches.drop("task-1")
    bench.watches.go_on("task-1", "paused")
    bench.clock.advance(100)
    assert bench.posted == []


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.sampled_from(["asked", "paused"]))))
def test_a_watch_goes_off_after_exactly_its_seconds_of_work_despite_stops(turns):
    bench = Bench()
    bench.watches.start("task-1", 20, "task-1")
    used, reasons = 0, set()
    for seconds, stop, reason in turns:
        if not reasons:
            used += seconds
        bench.clock.advance(seconds)
        assert bool(bench.posted) == (used >= 20)
        if bench.posted:
            return
        (bench.watches.stop if stop else bench.watches.go_on)("task-1", reason)
        (reasons.add if stop else reasons.discard)(reason)
