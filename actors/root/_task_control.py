"""Control of tasks: cancel, pause, resume, suspend, give up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callboard.actors.root._clocks import QUEUE
from callboard.actors.root._task_end import never_ran
from callboard.actors.root._tasks import SettleGroups
from callboard.messages import (
    Cancel,
    Cause,
    EventName,
    Pause,
    Resume,
    SupervisorStoppedError,
    agent_kind,
    subtask_ended,
)

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Mapping

    from callboard.actors.processing import AgentTraits
    from callboard.actors.root._clocks import RunWaits, Stopwatches
    from callboard.actors.root._dispatch import Dispatch
    from callboard.actors.root._open_requests import PeopleClocks
    from callboard.actors.root._outbox import Outbox
    from callboard.actors.root._recorder import Recorder
    from callboard.actors.root._run_endings import RunEndings
    from callboard.actors.root._target_queues import LeaseBook
    from callboard.actors.root._task_end import TaskEnd
    from callboard.actors.root._tasks import TaskBook, TaskRecord
    from callboard.actors.runtime import Jobs
    from callboard.messages import Assign


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskControl:
    """Cancel, pause, resume and suspend tasks. Runs on the root's thread."""

    post: Callable[[object], None]
    """Send the root a message, from any thread."""
    tasks: TaskBook
    leases: LeaseBook
    jobs: Jobs
    outbox: Outbox
    recorder: Recorder
    clocks: Stopwatches
    run_waits: RunWaits
    people: PeopleClocks
    run_endings: RunEndings
    task_end: TaskEnd
    agents: Mapping[str, AgentTraits]
    """The kinds of agents, by name."""

    def register(self, dispatch: Dispatch) -> None:
        """Add the handlers of this part's messages."""
        dispatch.on(Cancel, self._answer_cancel)
        dispatch.on(Pause, self._answer_pause)
        dispatch.on(Resume, self._answer_pause)

    def _answer_cancel(self, cancel: Cancel) -> concurrent.futures.Future[Any]:
        return self.outbox.answer(self.cancel(cancel))

    def _answer_pause(self, wish: Pause | Resume) -> concurrent.futures.Future[Any]:
        return self.outbox.answer(self.pause(wish))

    def cancel(self, cancel: Cancel) -> bool:
        """Stop a task, or one of its runs.

        Returns:
            Whether this cancel stopped it. The first one wins; a task that is over stays as it is.
        """
        record = self.tasks.get(cancel.task_id)
        if record is None or record.stopping is not None:
            return False
        if cancel.run_id != "*":
            stopped = self.cancel_run(record, cancel)
            self.post(SettleGroups(record.task.id))
            self.task_end.end_if_over(record)
            return stopped
        record.stopping, record.paused, record.lacks = cancel, False, ""
        self.recorder.emit(
            EventName.TASK_CANCELLING, task_id=cancel.task_id, outcome=cancel.outcome.value, reason=cancel.reason
        )
        self.people.withdraw(cancel.task_id)
        self.outbox.keep(cancel.task_id, "", cancel)
        for run in tuple(record.runs.values()):
            self._stop_run(record, run, cancel)
        self.task_end.end_if_over(record)
        return True

    def cancel_run(self, record: TaskRecord, cancel: Cancel) -> bool:
        """Stop one run of a task, and return whether it exists."""
        run = record.runs.get(cancel.run_id)
        if run is None:
            return False
        self.recorder.emit_of(EventName.TASK_CANCELLING, run, outcome=cancel.outcome.value, reason=cancel.reason)
        self.people.withdraw(record.task.id, run.run_id)
        self.outbox.keep(record.task.id, run.run_id, cancel)
        self._stop_run(record, run, cancel)
        if run.run_id not in record.runs and run.number and record.target is None:  # no agent will send its ending
            result = next(result for result in reversed(record.subtasks) if result.run_id == run.run_id)
            ended = subtask_ended(run.task_id, run.token, result)
            self.outbox.send(record.host, run.task_id, record.run_id, ended)
        return True

    def _stop_run(self, record: TaskRecord, run: Assign, cancel: Cancel) -> None:
        """Stop a run; the cancel's row covers the agent's message."""
        if run.token:
            self.leases.void(run.token)
            self.outbox.forward(run.address, cancel)
        else:
            self.stop_queued(record, run, cancel)

    def stop_queued(self, record: TaskRecord, run: Assign, cancel: Cancel) -> None:
        """Stop a run that waits for its target or agent."""
        cause = Cause(reason=cancel.reason, where="supervisor")
        self.leases.withdraw(run)
        self.run_waits.go_on(run.task_id, run.run_id, QUEUE)
        if run.run_id in record.begun:
            under = run.model_copy(update={"token": record.crashed.pop(run.run_id, 0)})
            self.run_endings.begin(record, under, cancel.outcome, (cause,))
            return
        del record.runs[run.run_id]
        record.planned.pop(run.run_id, None)
        if run.number:
            result = never_ran(run, cancel.outcome, (cause,))
            self.recorder.ended(run, result)
            record.end_subtask(result)
        self.run_waits.update(run.task_id)

    def pause(self, wish: Pause | Resume) -> bool:
        """Pause or resume a task, and return whether that changed anything."""
        record, paused = self.tasks.get(wish.task_id), isinstance(wish, Pause)
        if record is None or record.stopping is not None:
            return False
        if record.paused is paused and not (paused and record.lacks):  # a person's pause replaces one for a lack
            return False
        if not paused and any(agent_kind(run.address) not in self.agents for run in record.runs.values()):
            return False  # no kind of agent here can resume that run
        record.paused, record.lacks = paused, ""
        self.recorder.emit(EventName.TASK_PAUSED if paused else EventName.TASK_RESUMED, task_id=wish.task_id)
        self.outbox.keep(wish.task_id, "", wish)
        move = self.clocks.stop if paused else self.clocks.go_on
        move(wish.task_id, "pause")
        for run in record.runs.values():
            move(run.run_id, "pause")
            if run.token:
                self.leases.pause(run.token, paused=paused or record.suspended)
                self.outbox.forward(run.address, wish)
        if not paused and any(run.member for run in record.runs.values()):
            self.post(SettleGroups(record.task.id))
        return True

    def suspend(self, record: TaskRecord) -> None:
        """Leave a task to the next supervisor on the journal.

        No further action begins. A running tool call may end; other jobs are cancelled.
        """
        record.suspended = True
        self.people.withdraw_calls(record.task.id)
        for run in record.runs.values():
            if run.token:
                self.leases.suspend(run.token)
                if not self.leases.acting(run.token):
                    self.jobs.cancel(run.token)
        msg = f"the supervisor stopped; the task {record.task.id} is kept in the journal, and the next one resumes it"
        record.tell(SupervisorStoppedError(msg))

    def void(self, record: TaskRecord) -> None:
        """Void a task's leases, so that no more side effects commit."""
        for run in record.runs.values():
            if run.token:
                self.leases.void(run.token)

    def give_up(self, record: TaskRecord, error: Exception) -> None:
        """Stop a task at once, without messages to its agents.

        It is used when nothing can be journaled, and so published, any longer.
        """
        self.void(record)
        for run in record.runs.values():
            if run.token:
                self.leases.suspend(run.token)
                self.jobs.cancel(run.token)
        record.tell(error)
