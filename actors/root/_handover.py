"""Hand-overs: who gets which work with which lease, and when a target is free again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.agent import Continue
from callboard.actors.root._requests import AgentCrashed, History, LeaseIdle, LeaseStuck
from callboard.actors.states import memory_key
from callboard.messages import Assign, Cancel, EventName, Pause, Resume

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.actors.journal import Row
    from callboard.actors.root._context import RootContext
    from callboard.actors.root._tasks import TaskRecord


class HandOver:
    """Part of the switchboard; runs on its thread."""

    def __init__(self, context: RootContext) -> None:
        self._context = context

    def place(self, record: TaskRecord, assign: Assign, *, known: bool = False, first: bool = False) -> None:
        """Give work to its agent if the target is free, else queue it.

        Args:
            record: The task.
            assign: The work.
            known: Whether the journal knows of it already: its HostAgent's word, or another process's.
            first: Whether it goes before all others that wait: the next round of what has its turn.
        """
        context = self._context
        granted, ahead = context.leases.request(assign, first=first)
        if granted is not None:
            self.hand_over(record, granted)
            return
        if not known:
            context.outbox.keep(assign.task_id, assign.run_id, assign.lean())
        context.recorder.emit_of(EventName.SUBTASK_QUEUED, assign, ahead=ahead)
        context.clocks.stop(assign.task_id, f"queue {assign.run_id}")

    def hand_over(self, record: TaskRecord, assign: Assign) -> None:
        """Let an agent begin, or go on, under a lease. One that is not there is started.

        One that has no memory of the task, where there was some, gets it from the journal: it is another one than had
        it, though it may have worked for other tasks.
        """
        context = self._context
        record.runs[assign.run_id] = assign
        record.begun.add(assign.run_id)
        memory = memory_key(assign)
        anew = record.remembers(assign) and not context.children.knows(assign.address, memory)
        record.agents.add(assign.address)
        context.children.learn(assign.address, memory)
        context.idle.work(assign.address)
        context.clocks.go_on(assign.task_id, f"queue {assign.run_id}")
        if assign.number:
            context.recorder.emit_of(EventName.SUBTASK_ASSIGNED, assign, request=assign.request)
            self._start_clock(record, assign)
        context.leases.pause(assign.token, paused=record.paused)
        if record.suspended:
            context.leases.suspend(assign.token)
        if record.stopping is not None:
            context.leases.void(assign.token)
        kept = assign.lean()
        try:
            if anew:
                context.children.expect(assign.address)
                context.outbox.keep(assign.task_id, assign.run_id, kept, lambda: self._read(assign))
            else:
                context.children.start(assign.address)
                sender = context.children.sender(assign.address, assign)
                context.outbox.keep(assign.task_id, assign.run_id, kept, sender)
        except Exception as error:  # an edge: an actor that can't be started ends its work, not ours
            context.post(AgentCrashed(assign.address, error))
            return
        if record.paused:
            pause = Pause(task_id=assign.task_id)
            context.outbox.keep(assign.task_id, assign.run_id, pause, context.children.sender(assign.address, pause))

    def _start_clock(self, record: TaskRecord, assign: Assign) -> None:
        clocks, seconds = self._context.clocks, self._context.limits.subtask_seconds
        if not clocks.has(assign.run_id):
            spent = record.worked.pop(assign.run_id, 0.0)
            clocks.start(assign.run_id, seconds, assign.task_id, assign.run_id, spent=spent)
        if record.paused:
            clocks.stop(assign.run_id, "pause")

    def _read(self, assign: Assign) -> None:
        """Ask the journal for what was heard at an address; on whatever thread the assignment became safe."""
        context, whole = self._context, not assign.number or assign.session is not None
        context.journal.read(assign.task_id, lambda found: context.post(History(assign, found)), conversation=whole)

    def start_with(self, record: TaskRecord | None, history: History) -> None:
        """Start an agent anew with its history, if its work still waits for it."""
        assign, found = history.assign, history.found
        if record is None or assign.run_id not in record.runs or record.runs[assign.run_id].token != assign.token:
            return  # it was stopped, or crashed again
        if isinstance(found, Exception):
            self._context.post(AgentCrashed(assign.address, found))
            return
        try:
            self._context.children.start_with(assign.address, Continue(assign, heard_at(assign.address, found)))
        except Exception as error:  # an edge, as in `hand_over`
            self._context.post(AgentCrashed(assign.address, error))

    def leave(self, record: TaskRecord, run_id: str, token: int) -> None:
        """End a run; its target is free once nothing works under the lease any more."""
        del record.runs[run_id]
        self._context.people.withdraw(record.task.id, run_id)
        self._context.clocks.drop(run_id)
        if token:
            self.when_idle(token)

    def when_idle(self, token: int) -> None:
        """Have a lease given back once nothing works under it any more."""
        post = self._context.post
        self._context.jobs.when_idle(token, lambda: post(LeaseIdle(token)), lambda: post(LeaseStuck(token)))

    def stuck(self, token: int) -> None:
        """Note that a target can't be used, because a call on it can't be stopped."""
        address = self._context.leases.abandon(token)
        if address is not None:
            self._context.recorder.emit(
                EventName.TARGET_ABANDONED, agent=address, stack=self._context.jobs.stack(token)
            )

    def free(self, token: int) -> None:
        """Give a target to whoever is next."""
        context = self._context
        was_abandoned, granted = context.leases.free(token)
        if was_abandoned is not None:
            context.recorder.emit(EventName.TARGET_FREED, agent=was_abandoned)
        if granted is not None:
            record = context.tasks.get(granted.task_id)
            if record is None:
                self.free(granted.token)
            else:
                self.hand_over(record, granted)


def heard_at(address: str, rows: Sequence[Row]) -> tuple[Row, ...]:
    """Pick what was heard at an address: by its runs, and by all runs of their tasks."""
    begun = [row.message for row in rows if isinstance(row.message, Assign) and row.message.token]
    runs = {assign.run_id for assign in begun if assign.address == address}
    tasks = {assign.task_id for assign in begun if assign.address == address}
    return tuple(
        row
        for row in rows
        if row.run_id in runs
        or (not row.run_id and row.task_id in tasks and isinstance(row.message, Cancel | Pause | Resume))
    )
