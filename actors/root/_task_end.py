"""The end of a task: its result, and the clean-up after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.actors.states import unique
from callboard.messages import (
    Cause,
    EventName,
    Outcome,
    RoundEnding,
    SubtaskResult,
    SupervisorStoppedError,
    TaskResult,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.actors.processing import Services
    from callboard.actors.root._clocks import Deadlines, RunWaits, Stopwatches
    from callboard.actors.root._conversations import Closing, Idle, Sessions
    from callboard.actors.root._open_requests import PeopleClocks
    from callboard.actors.root._outbox import Outbox
    from callboard.actors.root._recorder import Recorder
    from callboard.actors.root._tasks import TaskBook, TaskRecord
    from callboard.actors.runtime import Clock
    from callboard.messages import Assign, CheckResult, Task


def task_result(record: TaskRecord, now: float) -> TaskResult:
    """Build a task's result.

    The outcome is that of the last round, or of the only subtask. The outcome of a cancel replaces it. A task that
    never ended a round is an error.
    """
    ended = record.ended
    subtasks = tuple(sorted(record.subtasks, key=lambda subtask: subtask.number))
    parts: tuple[SubtaskResult | RoundEnding, ...] = (*subtasks, *record.ended_rounds)
    outcome = ended.outcome if ended is not None else Outcome.ERROR
    causes = ended.causes if ended is not None else ()
    if record.stopping is not None:
        outcome = record.stopping.outcome
        causes = (Cause(reason=record.stopping.reason, where="supervisor"),)
    last = () if ended is None else (ended,)  # a lone agent has no rounds
    checks = tuple(check for done in record.ended_rounds or last for check in done.checks)
    artifacts = unique(path for done in parts for path in done.artifacts)
    created_paths = {path for done in parts for path in done.made}
    return TaskResult(
        task_id=record.task.id,
        outcome=outcome,
        causes=causes,
        output=ended.output if ended is not None else None,
        comment=ended.comment if ended is not None else "",
        artifacts=artifacts,
        made=tuple(path for path in artifacts if path in created_paths),
        changed=unique(name for done in parts for name in done.changed),
        actions=sum(done.actions for done in parts),
        failed_actions=sum(done.failed_actions for done in parts),
        dry_run=record.task.dry_run,
        would_do=tuple(action for done in parts for action in done.would_do),
        verified=_verified(record.task, outcome, checks),
        checks=checks,
        judged=tuple(answer for done in record.ended_rounds or last for answer in done.judged),
        subtasks=subtasks,
        rounds=record.rounds,
        usage=sum((done.usage for done in parts), Usage()),
        seconds=max(0.0, now - record.started),
    )


def _verified(task: Task, outcome: Outcome, checks: Sequence[CheckResult]) -> bool | None:
    """Return whether a task finished with all of its checks held.

    None without checks.
    """
    check_count = len(task.all_checks)
    if not check_count or task.dry_run:
        return None
    held = [check.held for check in checks if check.source == "task"]
    return outcome is Outcome.FINISHED and len(held) == check_count and all(held)


def never_ran(assign: Assign, outcome: Outcome, causes: tuple[Cause, ...]) -> SubtaskResult:
    """Build the result of a subtask without any known results."""
    return SubtaskResult(
        run_id=assign.run_id,
        number=assign.number,
        group=assign.group,
        request=assign.request,
        address=assign.address,
        outcome=outcome,
        causes=causes,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskEnd:
    """Close tasks whose runs are over, and deliver their results.

    Runs on the root's thread.
    """

    tasks: TaskBook
    clock: Clock
    outbox: Outbox
    recorder: Recorder
    clocks: Stopwatches
    run_waits: RunWaits
    deadlines: Deadlines
    people: PeopleClocks
    idle: Idle
    sessions: Sessions
    closing: Closing
    services: Services

    def end_if_over(self, record: TaskRecord) -> None:
        """Close a task without unfinished runs."""
        if record.runs:
            return
        try:
            self._close(record)
        except BaseException as error:  # a closed task is out of reach of the root's `on_stop`
            record.tell(error if isinstance(error, Exception) else SupervisorStoppedError(f"interrupted: {error!r}"))
            raise

    def _close(self, record: TaskRecord) -> None:
        task_id = record.task.id
        self.forget(record)
        self.people.withdraw(task_id)
        self.services.drop(task_id)
        for address in record.agents - {record.host}:
            self.idle.rest(address)
        result = task_result(record, self.clock.elapsed())
        self.outbox.keep(task_id, "", result, lambda: self._tell_ended(record, result), failed=record.tell)
        self.sessions.keep(record)
        self.closing.rest(record.session)

    def forget(self, record: TaskRecord) -> None:
        """Remove a task from the book, with its clocks."""
        self.clocks.drop(record.task.id)
        self.run_waits.drop(record.task.id)
        self.deadlines.drop(record.task.id)
        self.tasks.close(record)

    def _tell_ended(self, record: TaskRecord, result: TaskResult) -> None:
        """Publish a task's result, once it is safe. Runs on any thread."""
        try:
            self.recorder.emit(
                EventName.TASK_ENDED,
                task_id=record.task.id,
                duration=result.seconds,
                outcome=result.outcome.value,
                causes=[cause.reason for cause in result.causes],
                artifacts=list(result.artifacts),
            )
        finally:
            record.tell(result)
