"""Hand-overs: assignments go to agents under leases, which are returned afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.actors.agent import Continue
from callboard.actors.root._clocks import QUEUE
from callboard.actors.root._target_queues import BEGUN, lease_key
from callboard.actors.states import memory_key
from callboard.messages import Assign, Cancel, EventName, Pause, Resume

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from callboard.actors.agent import Crashed
    from callboard.actors.root._agents import Children
    from callboard.actors.root._clocks import RunWaits, Stopwatches
    from callboard.actors.root._dispatch import Dispatch
    from callboard.actors.root._open_requests import PeopleClocks
    from callboard.actors.root._outbox import Outbox
    from callboard.actors.root._recorder import Recorder
    from callboard.actors.root._target_queues import LeaseBook
    from callboard.actors.root._tasks import TaskBook, TaskRecord
    from callboard.actors.runtime import Budgets, Jobs
    from callboard.config import Limits
    from callboard.journal import Journal, Row


@dataclass(frozen=True)
class LeaseIdle:
    """No job runs under a lease."""

    token: int


@dataclass(frozen=True)
class LeaseStuck:
    """Only a job that can't be stopped still runs under a lease."""

    token: int


@dataclass(frozen=True)
class RunHistory:
    """The journal rows of a run whose agent is restarted."""

    assign: Assign
    rows: Sequence[Row] | Exception


@dataclass(frozen=True, kw_only=True, eq=False)
class HandOver:
    """Hand work over to agents, under leases. Runs on the root's thread."""

    post: Callable[[object], None]
    """Send the root a message, from any thread."""
    crashed: Crashed
    """Report an agent that can't be started, from any thread."""
    tasks: TaskBook
    leases: LeaseBook
    jobs: Jobs
    children: Children
    journal: Journal
    outbox: Outbox
    recorder: Recorder
    clocks: Stopwatches
    run_waits: RunWaits
    people: PeopleClocks
    budgets: Budgets
    limits: Limits
    plans: dict[str, tuple[str, ...]]
    """The plan of each run's latest step; agents add to it."""

    def register(self, dispatch: Dispatch) -> None:
        """Add the handlers of this part's messages."""
        dispatch.on(RunHistory, self.start_with)
        dispatch.on(LeaseIdle, lambda message: self.free(message.token))
        dispatch.on(LeaseStuck, lambda message: self.stuck(message.token))

    def queue_run(self, record: TaskRecord, assign: Assign, *, is_journaled: bool = False, first: bool = False) -> None:
        """Hand work over if its target is free, else queue it.

        Args:
            record: The task.
            assign: The work.
            is_journaled: Whether the journal has the assignment already, from its HostAgent or an earlier process.
            first: Whether it goes to the front of the queue, as the next round of a running task does.
        """
        granted, position = self.leases.request(assign, first=first, rank=_rank(record, assign))
        if granted is not None:
            self._take(record, granted)
            return
        if not is_journaled:
            self.outbox.keep(assign.task_id, assign.run_id, assign.lean())
        self.recorder.emit_of(EventName.SUBTASK_QUEUED, assign, ahead=position)
        self.run_waits.stop(assign.task_id, assign.run_id, QUEUE)

    def hand_over(self, record: TaskRecord, assign: Assign) -> None:
        """Make an agent begin or resume a run under a lease.

        The agent is started, unless it runs. If an earlier agent of the address had memory of the task, and this one
        has not, it gets the task's history from the journal first.
        """
        record.runs[assign.run_id] = assign = self._with_share(record, assign)
        record.begun.add(assign.run_id)
        record.planned.pop(assign.run_id, None)
        memory = memory_key(assign)
        needs_history = record.remembers(assign) and not self.children.knows(assign.address, memory)
        record.agents.add(assign.address)
        self.children.learn(assign.address, memory)
        self.run_waits.go_on(assign.task_id, assign.run_id, QUEUE)
        if assign.number:
            self.recorder.emit_of(EventName.SUBTASK_ASSIGNED, assign, request=assign.request)
            self._start_clock(record, assign)
        # The lease gets the state of the task before the agent can get the assignment: it holds from the first step on.
        self.leases.pause(assign.token, paused=record.paused)
        if record.suspended:
            self.leases.suspend(assign.token)
        if record.stopping is not None:
            self.leases.void(assign.token)
        lean_assign = assign.lean()
        try:
            if needs_history:
                self.children.expect(assign.address)
                self.outbox.keep(assign.task_id, assign.run_id, lean_assign, lambda: self._read(assign))
            else:
                self.children.start(assign.address)
                sender = self.children.sender(assign.address, assign)
                self.outbox.keep(
                    assign.task_id, assign.run_id, lean_assign, lambda: None if record.refused else sender()
                )
        except BaseException as error:  # an edge: an actor that can't be started must fail its run, not the root
            self.crashed(assign.address, error, "")
            return
        if record.paused:
            self.outbox.send(assign.address, assign.task_id, assign.run_id, Pause(task_id=assign.task_id))

    def _with_share(self, record: TaskRecord, assign: Assign) -> Assign:
        """Reserve a share of the task's budget for a group's member."""
        member = assign.member
        if member is not None and member.share is None:
            group = [run.member for run in record.runs.values() if run.member and run.group == assign.group]
            share = self.budgets.share_of(assign.task_id, parts=sum(other.share is None for other in group))
            assign = assign.model_copy(update={"member": member.model_copy(update={"share": share})})
        self.budgets.share(assign)
        return assign

    def _start_clock(self, record: TaskRecord, assign: Assign) -> None:
        if not self.clocks.has(assign.run_id):
            seconds = self.limits.under(assign.limits).subtask_seconds
            spent = record.worked.pop(assign.run_id, 0.0)
            self.clocks.start(assign.run_id, seconds, assign.task_id, assign.run_id, spent=spent)
        if record.paused:
            self.clocks.stop(assign.run_id, "pause")

    def _read(self, assign: Assign) -> None:
        """Read the history of an address from the journal.

        Runs on any thread, once the assignment is safe.
        """
        conversation = not assign.number or assign.session is not None
        self.journal.read(assign.task_id, lambda rows: self.post(RunHistory(assign, rows)), conversation=conversation)

    def start_with(self, history: RunHistory) -> None:
        """Resume a run from its history, if it is still wanted."""
        assign, history_rows = history.assign, history.rows
        if self.tasks.running(assign.task_id, assign.run_id, assign.token) is None:
            return  # the run was stopped, or its agent crashed again
        if isinstance(history_rows, Exception):
            self.crashed(assign.address, history_rows, "")
            return
        try:
            self.children.start_with(assign.address, Continue(assign, received_at(assign.address, history_rows)))
        except BaseException as error:  # an edge, as in `hand_over`
            self.crashed(assign.address, error, "")

    def leave(self, record: TaskRecord, run_id: str, token: int) -> None:
        """End a run; its target is freed once its jobs have ended."""
        del record.runs[run_id]
        self.people.withdraw(record.task.id, run_id)
        self.clocks.drop(run_id)
        self.plans.pop(run_id, None)
        self.budgets.give_back(record.task.id, run_id)
        self.run_waits.update(record.task.id)
        if token:
            self.when_idle(token)

    def when_idle(self, token: int) -> None:
        """Return a lease once no job runs under it."""
        self.jobs.when_idle(token, lambda: self.post(LeaseIdle(token)), lambda: self.post(LeaseStuck(token)))

    def stuck(self, token: int) -> None:
        """Mark a target as abandoned to a call that can't be stopped."""
        address = self.leases.abandon(token)
        if address is not None:
            self.recorder.emit(EventName.TARGET_ABANDONED, agent=address, stack=self.jobs.stack(token))

    def free(self, token: int) -> None:
        """Free a target, and hand the next run in its queue over."""
        was_abandoned, granted = self.leases.free(token)
        if was_abandoned is not None:
            self.recorder.emit(EventName.TARGET_FREED, agent=was_abandoned)
        if granted is not None:
            record = self.tasks.get(granted.task_id)
            if record is None:
                self.free(granted.token)
            else:
                self._take(record, granted)

    def has_room(self, record: TaskRecord) -> bool:
        """Return whether a further subtask of a task may begin.

        Subtasks that wait for targets of other tasks do not count.
        """
        return record.working_subtasks < self.limits.under(record.task.limits).parallel_subtasks

    def _take(self, record: TaskRecord, granted: Assign) -> None:
        """Hand work over that has got its target.

        A member of a group whose place was taken while it waited in the queue gives its target back, for others to use,
        and waits for those of its task.
        """
        if granted.member is None or granted.run_id in record.begun or self.has_room(record):
            self.hand_over(record, granted)
            return
        record.planned[granted.run_id] = record.runs[granted.run_id]
        self.run_waits.go_on(granted.task_id, granted.run_id, QUEUE)
        self.free(granted.token)

    def waits_for_sibling(self, record: TaskRecord, assign: Assign) -> bool:
        """Return whether another subtask of its task has the same target.

        It has it, or waits for it. Then this one would only keep other tasks waiting in the queue.
        """
        key = lease_key(assign)
        others = (run for run in record.runs.values() if run.number and run.run_id != assign.run_id)
        return any(lease_key(run) == key for run in others if run.run_id not in record.planned)


def _rank(record: TaskRecord, assign: Assign) -> float:
    """Return the rank of work in the queue for its target.

    The follow-ups of a conversation build on each other, so their HostAgent takes them in their order.
    """
    if assign.run_id in record.begun:
        return BEGUN
    return record.task.priority if assign.target is not None else 0


def received_at(address: str, rows: Sequence[Row]) -> tuple[Row, ...]:
    """Select the rows of the runs of an address.

    Pauses, resumes and cancels of a whole task belong to each of its runs.
    """
    assigns = [row.message for row in rows if isinstance(row.message, Assign) and row.message.token]
    runs = {assign.run_id for assign in assigns if assign.address == address}
    tasks = {assign.task_id for assign in assigns if assign.address == address}
    return tuple(
        row
        for row in rows
        if row.run_id in runs
        or (not row.run_id and row.task_id in tasks and isinstance(row.message, Cancel | Pause | Resume))
    )
