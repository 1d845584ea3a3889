"""Stopping: cancel, pause, and leaving work to another process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.root._tasks import never_ran
from callboard.messages import Cause, EventName, Pause, SupervisorStoppedError, agent_kind, subtask_ended

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.root._endings import Endings
    from callboard.actors.root._parts import Parts
    from callboard.actors.root._tasks import TaskRecord
    from callboard.messages import Assign, Cancel, Resume


class Stops:
    """Part of the switchboard; runs on its thread."""

    def __init__(self, parts: Parts, endings: Endings, end_if_over: Callable[[TaskRecord], None]) -> None:
        self._parts = parts
        self._endings = endings
        self._end_if_over = end_if_over

    def cancel(self, cancel: Cancel) -> bool:
        """Stop a task. Returns whether this was what stopped it; the first stop wins, and an ended task stays."""
        parts, record = self._parts, self._parts.tasks.get(cancel.task_id)
        if record is None or record.stopping is not None:
            return False
        if cancel.run_id != "*":
            stopped = self.cancel_run(record, cancel)
            self._end_if_over(record)
            return stopped
        record.stopping, record.paused, record.lacks = cancel, False, ""
        parts.recorder.emit(
            EventName.TASK_CANCELLING, task_id=cancel.task_id, outcome=cancel.outcome.value, reason=cancel.reason
        )
        parts.people.withdraw(cancel.task_id)
        parts.outbox.keep(cancel.task_id, "", cancel)
        for run in tuple(record.runs.values()):
            self._stop_run(record, run, cancel)
        self._end_if_over(record)
        return True

    def cancel_run(self, record: TaskRecord, cancel: Cancel) -> bool:
        """Stop one run of a task. Returns whether there is one."""
        run = record.runs.get(cancel.run_id)
        if run is None:
            return False
        parts = self._parts
        parts.recorder.emit_of(EventName.TASK_CANCELLING, run, outcome=cancel.outcome.value, reason=cancel.reason)
        parts.people.withdraw(record.task.id, run.run_id)
        parts.outbox.keep(record.task.id, run.run_id, cancel)
        self._stop_run(record, run, cancel)
        if run.run_id not in record.runs and run.number and record.target is None:  # no agent will tell its HostAgent
            ended = subtask_ended(run.task_id, run.token, record.subtasks[-1])
            parts.outbox.keep(run.task_id, f"{run.task_id}/0", ended, parts.children.sender(record.host, ended))
        return True

    def _stop_run(self, record: TaskRecord, run: Assign, cancel: Cancel) -> None:
        """Stop what an agent does; that it was told is in the journal with the cancel itself."""
        parts = self._parts
        if run.token:
            parts.leases.void(run.token)
            parts.outbox.tell(parts.children.sender(run.address, cancel))
        else:
            self.stop_queued(record, run, cancel)

    def stop_queued(self, record: TaskRecord, run: Assign, cancel: Cancel) -> None:
        """Stop what no agent does now: it waits for its target, or for an agent that crashed."""
        parts, cause = self._parts, Cause(reason=cancel.reason, where="supervisor")
        parts.leases.withdraw(run)
        parts.clocks.go_on(run.task_id, f"queue {run.run_id}")
        if run.run_id in record.begun:
            under = run.model_copy(update={"token": record.crashed.pop(run.run_id, 0)})
            self._endings.begin(record, under, cancel.outcome, (cause,))
            return
        del record.runs[run.run_id]
        if run.number:
            record.end_subtask(never_ran(run, cancel.outcome, (cause,)))

    def pause(self, wish: Pause | Resume) -> bool:
        """Pause or resume a task. Returns whether this changed anything."""
        parts, record = self._parts, self._parts.tasks.get(wish.task_id)
        paused = isinstance(wish, Pause)
        if record is None or record.stopping is not None:
            return False
        if record.paused is paused and not (paused and record.lacks):  # a person's pause outlasts what it lacks
            return False
        if not paused and any(agent_kind(run.address) not in parts.agents for run in record.runs.values()):
            return False  # nobody could go on with that
        record.paused, record.lacks = paused, ""
        parts.recorder.emit(EventName.TASK_PAUSED if paused else EventName.TASK_RESUMED, task_id=wish.task_id)
        parts.outbox.keep(wish.task_id, "", wish)
        move = parts.clocks.stop if paused else parts.clocks.go_on
        move(wish.task_id, "pause")
        for run in record.runs.values():
            move(run.run_id, "pause")
            if run.token:
                parts.leases.pause(run.token, paused=paused or record.suspended)
                parts.outbox.tell(parts.children.sender(run.address, wish))
        return True

    def suspend(self, record: TaskRecord) -> None:
        """Leave a task to whoever opens the journal next: no action begins any more, and what runs may end."""
        record.suspended = True
        self._parts.people.withdraw_calls(record.task.id)
        for run in record.runs.values():
            if run.token:
                self._parts.leases.suspend(run.token)
                if not self._parts.leases.acting(run.token):
                    self._parts.jobs.cancel(run.token)
        msg = f"the supervisor stopped; the task {record.task.id} is kept in the journal, and goes on with the next one"
        record.tell(SupervisorStoppedError(msg))

    def void(self, record: TaskRecord) -> None:
        """Refuse whatever a task's agents still do."""
        for run in record.runs.values():
            if run.token:
                self._parts.leases.void(run.token)

    def give_up(self, record: TaskRecord, error: Exception) -> None:
        """Stop a task at once without another word to its agents: nothing can be kept, or told, any more."""
        self.void(record)
        for run in record.runs.values():
            if run.token:
                self._parts.leases.suspend(run.token)
                self._parts.jobs.cancel(run.token)
        record.tell(error)
