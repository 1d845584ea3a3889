"""The intake: tasks are taken, or refused; their deadlines begin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from callboard.actors.root._clocks import DeadlineDue
from callboard.messages import EventName, FilesAtStart, Note, SupervisorStoppedError, TaskRefusedError

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Mapping

    from callboard.actors.commands import OutputType
    from callboard.actors.processing import Services
    from callboard.actors.root._clocks import Deadlines, Stopwatches
    from callboard.actors.root._conversations import Sessions
    from callboard.actors.root._dispatch import Dispatch
    from callboard.actors.root._handover import HandOver
    from callboard.actors.root._outbox import Outbox
    from callboard.actors.root._recorder import Recorder
    from callboard.actors.root._rounds import Rounds
    from callboard.actors.root._stalls import StallWatch
    from callboard.actors.root._target_queues import LeaseBook
    from callboard.actors.root._task_control import TaskControl
    from callboard.actors.root._task_end import TaskEnd
    from callboard.actors.root._tasks import TaskBook, TaskRecord
    from callboard.actors.runtime import Clock
    from callboard.config import Limits
    from callboard.messages import Target, Task, TaskResult


@dataclass(frozen=True)
class Submit:
    """A request to take a task.

    It is answered with the task, the future of its result, and a future that is done once the task is safe.
    """

    task: Task
    target: Target | None
    earlier: tuple[str, ...] = ()
    """The tasks of a follow-up's conversation that the journal has."""
    output_type: OutputType[Any] | None = None
    """The type of its output, if the program gave one."""
    unmatched: tuple[tuple[int, str], ...] = ()
    """The rules of its policy that can match nothing: the number of each, and the reason."""
    files: Mapping[str, str] | None = None
    """The digests of the files that its checks and judge compare; None if they compare none."""
    contents: Mapping[str, bytes] | None = None
    """The contents of these files, if its judge compares them and no journal in a file has them."""


@dataclass(frozen=True)
class NotKept:
    """A task could not be written, and so is not taken."""

    task_id: str
    error: Exception


@dataclass(kw_only=True, eq=False)
class Intake:
    """Take tasks, or refuse them. Runs on the root's thread."""

    post: Callable[[object], None]
    """Send the root a message, from any thread."""
    tasks: TaskBook
    clock: Clock
    leases: LeaseBook
    outbox: Outbox
    recorder: Recorder
    clocks: Stopwatches
    deadlines: Deadlines
    sessions: Sessions
    handover: HandOver
    rounds: Rounds
    task_control: TaskControl
    task_end: TaskEnd
    stall_watch: StallWatch
    limits: Limits
    services: Services
    accepting: bool = field(default=True, init=False)
    broken: Exception | None = field(default=None, init=False)
    """Why the journal can't be written any longer."""

    def register(self, dispatch: Dispatch) -> None:
        """Add the handlers of this part's messages."""
        dispatch.on(Submit, self._submit)
        dispatch.on(NotKept, self._roll_back)
        dispatch.on(Note, self._keep_note)
        dispatch.on(DeadlineDue, lambda message: self.watch_deadline(self.tasks.get(message.task_id)))

    def close(self, broken: Exception | None = None) -> None:
        """Take no more tasks."""
        self.accepting, self.broken = False, broken or self.broken

    def _submit(
        self, submit: Submit
    ) -> tuple[Task, concurrent.futures.Future[TaskResult], concurrent.futures.Future[None]]:
        """Take a task, unless its id or idempotency key is known.

        Returns:
            The task (the earlier one, if there is one), the future of its result, and a future that is done once the
            task is safe in the journal.
        """
        task, earlier = submit.task, submit.earlier
        same = self.tasks.find(task)
        if same is not None and (same.task == task or same.task.id != task.id):
            return same.task, same.done, same.safe or self.outbox.answer(None)
        from_journal = task.session is not None and not self.sessions.has(task.session)
        self._refuse(task, is_lost=from_journal and not earlier)
        record = self.tasks.open(task, submit.target, self.clock.elapsed())
        self.services.secrets.keep(task)
        self.services.take(task)
        self.services.output_types.keep(task.id, task.output_schema, submit.output_type)
        if from_journal:
            self.tasks.learn(record.session, earlier)
            self.recorder.fill(earlier)
        self.outbox.keep(task.id, "", task, failed=lambda error: self._note_refusal(record, error))
        if submit.files is not None:
            self.services.check_inputs.keep(task.id, submit.files, submit.contents)
            self.outbox.keep(task.id, "", FilesAtStart(task_id=task.id, files=dict(submit.files)))
        self.recorder.emit(
            EventName.TASK_SUBMITTED,
            task_id=task.id,
            request=task.request,
            target=task.target or "",
            labels=dict(task.labels),
        )
        for number, reason in submit.unmatched:
            self.recorder.emit(EventName.POLICY_UNMATCHED, task_id=task.id, rule=number, reason=reason)
        self.clocks.start(task.id, self.limits.under(task.limits).task_seconds, task.id)
        self.rounds.begin_next(record)
        self.watch_deadline(record)
        self.stall_watch.arm()
        record.safe = self.outbox.answer(None)
        return record.task, record.done, record.safe

    def _refuse(self, task: Task, *, is_lost: bool) -> None:
        """Raise the reason why a task can't be taken, if any.

        `is_lost` tells that its conversation is no longer kept.
        """
        if self.broken is not None:
            raise self.broken
        if not self.accepting:
            msg = "the supervisor is stopping and takes no more tasks"
            raise SupervisorStoppedError(msg)
        if self.deadlines.passed(task.deadline):
            msg = f"the deadline {task.deadline} has passed: give a later one, or none"
            raise TaskRefusedError(msg)
        if is_lost:
            msg = (
                f"the conversation {task.session!r} can't be continued: it does not exist, or it is no longer kept; "
                "limits.sessions sets how many are, and a journal keeps the others"
            )
            raise TaskRefusedError(msg)

    def watch_deadline(self, record: TaskRecord | None) -> None:
        """Cancel a task whose deadline has passed, or wait for that."""
        deadline_cancel = self.deadlines.watch(record.task) if record is not None else None
        if deadline_cancel is not None:
            self.task_control.cancel(deadline_cancel)

    def _keep_note(self, note: Note) -> concurrent.futures.Future[Any]:
        if self.tasks.get(note.task_id) is None:
            msg = f"there is no task {note.task_id!r} that runs or waits: only such a task takes notes"
            raise TaskRefusedError(msg)
        self.outbox.keep(note.task_id, "", note)
        return self.outbox.answer(None)

    def _note_refusal(self, record: TaskRecord, error: Exception) -> None:
        """Note that a task could not be journaled, from the journal's thread."""
        record.refused = True
        self.post(NotKept(record.task.id, error))

    def _roll_back(self, refused: NotKept) -> None:
        """Roll back a task that can't be journaled; no agent knows it."""
        record = self.tasks.get(refused.task_id)
        if record is None:
            return
        for run in tuple(record.runs.values()):
            if run.token:
                self.handover.leave(record, run.run_id, run.token)
            else:
                self.leases.withdraw(run)
        self.task_end.forget(record)
        self.recorder.emit(
            EventName.TASK_ENDED, task_id=refused.task_id, outcome="refused", causes=[str(refused.error)]
        )
        self.services.drop(refused.task_id)  # after the event, in which its secrets are redacted
        record.tell(refused.error)
