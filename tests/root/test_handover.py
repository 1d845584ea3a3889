"""Hand-overs: who gets which work with which lease, once its target is free."""

from __future__ import annotations

import pytest

from callboard.actors.processing import AGENTS
from callboard.actors.root._clocks import RunWaits, Stopwatches
from callboard.actors.root._handover import HandOver
from callboard.actors.root._outbox import Outbox
from callboard.actors.root._run_endings import RunEndings
from callboard.actors.root._target_queues import LeaseBook
from callboard.actors.root._task_control import TaskControl
from callboard.actors.root._tasks import TaskBook
from callboard.actors.runtime import Budgets, Leases, VirtualClock
from callboard.config import BudgetSettings, Limits
from callboard.journal import MemoryJournal
from callboard.messages import Cancel, EventName, Outcome, Task
from callboard.testing import MemoryServer

ONE = MemoryServer.window()


class Agents:
    """Agents that are always there, and note their messages."""

    def __init__(self):
        self.told = []

    def knows(self, address, memory):
        return True

    def learn(self, address, memory):
        pass

    def start(self, address):
        pass

    def sender(self, address, message):
        return lambda: self.told.append(message)


class Notes:
    """Notes the events."""

    def __init__(self):
        self.events = []

    def emit(self, name, **fields):
        self.events.append(name)

    def emit_of(self, name, assign, **fields):
        self.events.append((name, assign.task_id))

    def ended(self, assign, _result):
        self.events.append((EventName.SUBTASK_ENDED, assign.task_id))


class Office:
    """Hand-overs and stops, and their objects: tasks for one window, each with its agent's first work."""

    def __init__(self):
        clock, journal, self.agents, self.notes = VirtualClock(), MemoryJournal(), Agents(), Notes()
        self.leases = Leases()
        self.tasks = TaskBook()
        self.outbox = Outbox(journal, clock, self.agents)
        clocks = Stopwatches(clock, lambda _cancel: None)
        shared = {
            "tasks": self.tasks,
            "outbox": self.outbox,
            "recorder": self.notes,
            "clocks": clocks,
            "people": None,
        }
        leases = LeaseBook(self.leases)
        self.handover = HandOver(
            **shared,
            post=lambda _message: None,
            crashed=None,
            leases=leases,
            jobs=None,
            children=self.agents,
            journal=journal,
            run_waits=RunWaits(clocks, self.tasks),
            budgets=Budgets(BudgetSettings()),
            limits=Limits(),
            plans={},
        )
        endings = RunEndings(**shared, post=lambda _message: None, journal=journal, limits=Limits(), agents=AGENTS)
        self.control = TaskControl(
            **shared,
            post=lambda _message: None,
            run_waits=self.handover.run_waits,
            leases=leases,
            jobs=None,
            run_endings=endings,
            task_end=None,
            agents=AGENTS,
        )

    def place(self, task_id, *, stopping=False):
        """Place the work of a task; it gets the window, or waits for it."""
        record = self.tasks.open(Task(id=task_id, request="x", target="memo:one"), ONE, 0.0)
        if stopping:
            record.stopping = Cancel(task_id=task_id)
        self.handover.queue_run(record, record.next_assign())
        return record

    def free(self, record):
        """Give back the window of a task that had it."""
        self.handover.free(self.token(record))

    def token(self, record):
        """The number of a task's lease; 0 while it waits."""
        [run] = record.runs.values()
        return run.token

    def may_act(self, record):
        """Say whether a task's agent may act on the window."""
        return self.leases.get(self.token(record)).valid


@pytest.fixture
def office():
    return Office()


def test_work_that_waited_gets_its_target_with_a_valid_lease(office):
    first, second = office.place("first"), office.place("second")
    assert (office.may_act(first), office.token(second)) == (True, 0)
    office.free(first)
    assert office.may_act(second)
    assert office.notes.events[-1] == (EventName.SUBTASK_ASSIGNED, "second")


def test_a_task_that_is_stopping_gets_its_target_with_a_void_lease(office):
    first, second = office.place("first"), office.place("second", stopping=True)
    office.free(first)
    assert office.token(second)
    assert not office.may_act(second)


def test_a_task_that_is_stopping_gets_a_free_target_with_a_void_lease(office):
    record = office.place("first", stopping=True)
    assert office.token(record)
    assert not office.may_act(record)


def test_a_task_that_is_stopping_is_handed_to_its_agent_to_be_ended(office):
    first, second = office.place("first"), office.place("second", stopping=True)
    office.outbox.flush()
    office.free(first)
    office.outbox.flush()
    [run] = second.runs.values()
    assert office.agents.told[-1] == run


def test_a_target_stays_taken_while_a_task_that_is_stopping_has_it(office):
    first, second, third = office.place("first"), office.place("second", stopping=True), office.place("third")
    office.free(first)
    assert office.token(third) == 0
    office.free(second)
    assert office.may_act(third)


def test_work_that_is_stopped_while_it_waits_never_gets_its_target(office):
    first, second, third = (office.place(name) for name in ("first", "second", "third"))
    [waiting] = second.runs.values()
    office.control.stop_queued(second, waiting, Cancel(task_id="second"))
    office.free(first)
    assert (second.runs, [done.outcome for done in second.subtasks]) == ({}, [Outcome.CANCELLED])
    assert office.may_act(third)


@pytest.mark.parametrize("refused", [False, True])
def test_no_agent_gets_work_of_a_task_that_the_journal_refused(office, refused):
    """The target of a queued duplicate is free before the root hears of the refusal."""
    first, second = office.place("first"), office.place("second")
    second.refused = refused
    office.free(first)
    office.outbox.flush()
    assert [each.task_id for each in office.agents.told] == (["first"] if refused else ["first", "second"])
