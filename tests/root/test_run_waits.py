"""A task's clock stops only while all of its runs wait."""

from __future__ import annotations

import pytest

from callboard import Task
from callboard.actors.root._clocks import RunWaits, Stopwatches
from callboard.actors.root._tasks import TaskBook
from callboard.actors.runtime import VirtualClock
from callboard.messages import Assign


class Office:
    """A task with a HostAgent's run and two subtasks, and its clock of ten seconds."""

    def __init__(self):
        self.clock, self.tasks, self.cancels = VirtualClock(), TaskBook(), []
        self.watches = Stopwatches(self.clock, self.cancels.append)
        self.record = self.tasks.open(Task(id="t", request="x"), None, 0.0)
        for number in range(3):
            run_id = f"t~{number}"
            self.record.runs[run_id] = Assign(
                task_id="t", run_id=run_id, address=f"app/memo/{number}", request="x", number=number
            )
        self.watches.start("t", 10.0, "t")
        self.waits = RunWaits(self.watches, self.tasks)


@pytest.fixture
def office():
    return Office()


def test_clock_runs_while_a_second_run_works(office):
    office.waits.stop("t", "t~1", "ask")
    office.clock.advance(11)
    assert [cancel.task_id for cancel in office.cancels] == ["t"]


def test_clock_stops_while_all_runs_wait(office):
    office.waits.stop("t", "t~1", "ask")
    office.waits.stop("t", "t~2", "queue")
    office.clock.advance(60)
    assert office.cancels == []
    office.waits.go_on("t", "t~1", "ask")
    office.clock.advance(11)
    assert len(office.cancels) == 1


def test_run_with_two_reasons_waits_until_both_are_gone(office):
    del office.record.runs["t~2"]
    office.waits.stop("t", "t~1", "one")
    office.waits.stop("t", "t~1", "two")
    office.waits.go_on("t", "t~1", "one")
    office.clock.advance(60)
    assert office.cancels == []


def test_member_that_waits_for_others_does_not_count(office):
    office.record.planned["t~2"] = office.record.runs["t~2"]
    office.waits.stop("t", "t~1", "ask")
    office.clock.advance(60)
    assert office.cancels == []


def test_end_of_the_run_that_works_stops_the_clock(office):
    office.waits.stop("t", "t~1", "ask")
    del office.record.runs["t~2"]
    office.waits.update("t")
    office.clock.advance(60)
    assert office.cancels == []
