"""Deadlines of tasks.

They are wall time, which passes while a task waits, and between processes.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from callboard import EventName, Outcome, Task
from callboard.messages import NotAllTakenError, TaskRefusedError
from callboard.testing import MemoryServer, VirtualClock, assert_replays
from support import ASK, FINISH, PATIENCE, lone

NOW = 1_800_000_000.0


def at(seconds):
    return datetime.fromtimestamp(NOW + seconds, UTC)


@pytest.fixture
def clock():
    return VirtualClock(NOW)


def timed_out(handle):
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.TIMED_OUT
    assert [cause.reason for cause in result.causes] == [f"its deadline {handle.task.deadline.isoformat()} has passed"]
    return result


def test_a_deadline_passes_while_a_person_is_asked(start, until, clock):
    handle = start(app=[ASK], clock=clock).submit(lone(deadline=at(3000)))
    until(handle, EventName.QUESTION_ASKED)
    clock.advance(2999)
    assert len(handle.questions()) == 1
    clock.advance(1)
    timed_out(handle)


def test_a_deadline_passes_in_a_queue_and_in_a_pause(start, until, clock):
    supervisor = start(app=[ASK], clock=clock)
    first = supervisor.submit(lone())
    until(first, EventName.QUESTION_ASKED)
    queued = supervisor.submit(lone(deadline=at(60)))
    until(queued, EventName.SUBTASK_QUEUED)
    assert queued.pause()
    clock.advance(60)
    assert timed_out(queued).usage.steps == 0
    assert not first.done()


def test_a_deadline_passes_between_two_processes(begin, until, tmp_path):
    before = begin(app=[ASK], clock=VirtualClock(NOW))
    handle = before.submit(lone(deadline=at(60)))
    until(handle, EventName.QUESTION_ASKED)
    before.stop()
    late = begin(app=[ASK], clock=VirtualClock(NOW + 61)).handle(handle.task_id)
    assert late.task.deadline == at(60)
    timed_out(late)
    assert_replays(tmp_path / "journal.db", late.task_id)


def test_a_deadline_that_is_ahead_still_holds_after_a_restart(begin, until):
    before = begin(app=[ASK], clock=VirtualClock(NOW))
    handle = before.submit(lone(deadline=at(60)))
    until(handle, EventName.QUESTION_ASKED)
    before.stop()
    clock = VirtualClock(NOW + 30)
    again = begin(app=[ASK], clock=clock).handle(handle.task_id)
    clock.advance(29)
    assert len(again.questions()) == 1
    clock.advance(1)
    timed_out(again)


def test_a_wall_clock_that_is_set_ahead_is_noticed(start, until):
    class Set(VirtualClock):
        ahead = 0.0

        def now(self):
            return super().now() + self.ahead

    clock = Set(NOW)
    handle = start(app=[ASK], clock=clock).submit(lone(deadline=at(36_000)))
    until(handle, EventName.QUESTION_ASKED)
    clock.ahead = 36_000.0
    clock.advance(60)
    timed_out(handle)


def test_a_task_that_ends_in_time_leaves_no_alarm(start, clock):
    handle = start(app=[FINISH], clock=clock, servers=[Unchanged()]).submit(lone(deadline=at(60)))
    assert handle.result(PATIENCE).ok
    clock.advance(120)
    assert [event.name for event in handle.events()].count(EventName.TASK_ENDED) == 1


class Unchanged(MemoryServer):
    """A window where a model may FINISH at once."""

    read = None

    def __init__(self):
        super().__init__(self.window())


def test_a_past_deadline_is_refused_before_anything_starts(start, clock):
    supervisor = start(app=[FINISH], clock=clock)
    with pytest.raises(TaskRefusedError, match="has passed: give a later one, or none"):
        supervisor.submit(lone(deadline=at(0)))
    with pytest.raises(NotAllTakenError):
        supervisor.submit_all([lone(deadline=at(-1))])
    assert supervisor.pending() == ()


def test_the_same_key_with_another_deadline_is_the_same_task(start, clock):
    supervisor = start(app=[ASK], clock=clock)
    first = supervisor.submit(lone(key="once", deadline=at(60)))
    again = supervisor.submit(lone(key="once", deadline=at(-60), priority=3))
    assert again.task_id == first.task_id
    assert again.task.deadline == at(60)


def test_a_follow_up_has_a_deadline_of_its_own(start, clock):
    supervisor = start(host=lambda request: FINISH if request.task_request == "first" else ASK, clock=clock)
    first = supervisor.submit(Task(request="first", deadline=at(60), priority=5))
    assert first.result(PATIENCE).ok
    following = first.follow_up("second")
    assert (following.task.deadline, following.task.priority) == (None, 0)
    clock.advance(120)
    assert not following.done()
