"""Recovery: unfinished tasks are rebuilt from their journal rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.actors.root._tasks import TaskRecord
from callboard.messages import (
    Answer,
    Answered,
    ApprovalAnswer,
    ApprovalRequest,
    Assign,
    AssignGroup,
    Cancel,
    FilesAtStart,
    Foreseen,
    Pause,
    Question,
    Recovered,
    RequestExpired,
    Resume,
    RoundEnding,
    StepDone,
    StepFailure,
    SubtaskEnding,
    Task,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from callboard.actors.runtime import Budgets
    from callboard.actors.states import Run
    from callboard.journal import Row


Ask = Question | ApprovalRequest


@dataclass
class RecoveredTask:
    """The state of an unfinished task, rebuilt from its journal rows."""

    record: TaskRecord
    begun: list[str] = field(default_factory=list)
    """Runs that agents had begun and not ended, in the order in which they first got their targets."""
    endings: dict[str, SubtaskEnding | RoundEnding] = field(default_factory=dict)
    """Endings that agents had sent, and the root had not handled, by run."""
    asks: dict[str, Ask] = field(default_factory=dict)
    """Open approvals and questions, by id."""
    approved: list[ApprovalRequest] = field(default_factory=list)
    """Approvals that a person gave for the rest of the task."""
    files: dict[str, str] | None = None
    """The digests of the files that its checks compare, at its submission."""
    foreseen: list[Foreseen] = field(default_factory=list)
    """The writes of files that were journaled ahead."""
    used: dict[str, Usage] = field(default_factory=dict)
    """The usage of each run."""
    answers: dict[str, dict[int, Answered]] = field(default_factory=dict)
    """The models' answers of interrupted steps, by run and by the number of the call."""
    worked: dict[str, float] = field(default_factory=dict)
    """Seconds of work of the task and of its runs, without waits for people, pauses, and the time between processes."""
    token: int = 0
    """The highest fencing token."""
    conversation: tuple[str, ...] = ()
    """The kept tasks of its conversation, in order, itself included."""
    host: Run | None = None
    """Its HostAgent's run, if a subtask of it is unfinished: it has the results that the subtask's rows leave out."""


def recover_task(rows: Sequence[Row], now: float) -> RecoveredTask | None:
    """Rebuild a task from its rows; None without a first `Task`.

    Args:
        rows: All of its rows except events, in order.
        now: The reading of the monotonic clock, from which the resumed task counts.
    """
    first = rows[0].message if rows else None
    if not isinstance(first, Task):
        return None
    recovered = RecoveredTask(TaskRecord(first, None, now))
    last = rows[0].at
    for row in rows[1:]:
        _count(recovered, row, max(0.0, row.at - last))
        last = row.at
        _after(recovered, row)
    recovered.record.started = now - recovered.worked.get(first.id, 0.0)
    return recovered


def _count(recovered: RecoveredTask, row: Row, seconds: float) -> None:
    """Add the time before a row to the runs that worked.

    It counts for the task, too, unless all of its active runs waited for a person or a target.
    """
    record = recovered.record
    if isinstance(row.message, Recovered) or record.paused:
        return
    asking = {ask.run_id for ask in recovered.asks.values()}
    working = [run_id for run_id in recovered.begun if run_id not in asking]
    active_runs = record.active_runs
    waits = bool(active_runs) and not any(run_id in working for run_id in active_runs)
    for key in working if waits else (record.task.id, *working):
        recovered.worked[key] = recovered.worked.get(key, 0.0) + seconds


def _after(recovered: RecoveredTask, row: Row) -> None:  # noqa: C901, PLR0912 - one match, a case a message
    record, message = recovered.record, row.message
    # The row of an ending that an agent has sent has the number of its job. The ending is in `endings` until a row of
    # the root shows that it was handled: the same ending without a job, or the assignment of the next round.
    match message:
        case Assign():
            _assigned(recovered, message)
        case AssignGroup():
            for assign in message.assigns:
                record.runs[assign.run_id] = record.planned[assign.run_id] = assign
        case SubtaskEnding() | RoundEnding() if row.job and message.run_id not in record.runs:
            pass  # the root had ended the run already, after its agent's crash
        case SubtaskEnding() | RoundEnding() if row.job:
            recovered.endings[message.run_id] = message
            recovered.begun = [run for run in recovered.begun if run != message.run_id]
        case SubtaskEnding(result=result):
            recovered.endings.pop(message.run_id, None)
            record.runs.pop(message.run_id, None)
            record.planned.pop(message.run_id, None)
            recovered.begun = [run for run in recovered.begun if run != message.run_id]
            recovered.asks = {key: ask for key, ask in recovered.asks.items() if ask.run_id != message.run_id}
            record.end_subtask(result)
        case Cancel(run_id="*"):
            record.stopping, record.paused, record.lacks = message, False, ""
            recovered.asks.clear()
        case Cancel():
            record.stopped_runs.add(message.run_id)
            recovered.asks = {key: ask for key, ask in recovered.asks.items() if ask.run_id != message.run_id}
        case Pause() | Resume() if not row.run_id:
            record.paused = isinstance(message, Pause)
            record.lacks = message.lacks if isinstance(message, Pause) else ""
        case Question() | ApprovalRequest():
            recovered.asks[message.id] = message
        case Answer() | ApprovalAnswer() | RequestExpired():
            ask = recovered.asks.pop(message.id, None)
            remembers = isinstance(message, ApprovalAnswer) and message.approved and message.remember
            if remembers and isinstance(ask, ApprovalRequest):
                recovered.approved.append(ask)
        case FilesAtStart():
            recovered.files = message.files
        case Foreseen():
            recovered.foreseen.append(message)
        case _:
            pass
    _spent(recovered, row)


def _spent(recovered: RecoveredTask, row: Row) -> None:
    """Add up usage, of interrupted steps by model answer."""
    message = row.message
    if isinstance(message, Answered):
        recovered.answers.setdefault(row.run_id, {})[message.call] = message
    elif isinstance(message, StepDone | StepFailure | Question):
        recovered.used[row.run_id] = recovered.used.get(row.run_id, Usage()) + message.usage
        if not isinstance(message, Question) or message.usage.answers:  # else it was asked within its step
            recovered.answers.pop(row.run_id, None)


def _assigned(recovered: RecoveredTask, assign: Assign) -> None:
    record = recovered.record
    if assign.number == 0 and assign.round > record.round:  # the round before it is over
        ended = recovered.endings.pop(assign.run_id, None)
        if isinstance(ended, RoundEnding):
            record.end_round(ended)
    if assign.host is None:
        record.round = max(record.round, assign.round)
        record.target, record.run_id = assign.target, assign.run_id
    record.runs[assign.run_id] = assign.model_copy(update={"token": 0})
    record.planned.pop(assign.run_id, None)
    if assign.token:
        recovered.token = max(recovered.token, assign.token)
        record.agents.add(assign.address)
        record.begun.add(assign.run_id)
        if assign.run_id not in recovered.begun:
            recovered.begun.append(assign.run_id)


def used_by(recovered: RecoveredTask) -> Iterable[tuple[str, dict[str, float]]]:
    """Yield each run's usage by kind of budget, HostAgents' rounds included."""
    record = recovered.record
    for run_id, usage in recovered.used.items():
        rounds = record.round if run_id == record.run_id and record.target is None else 0
        yield (
            run_id,
            {
                "steps": usage.steps,
                "rounds": rounds,
                "model_calls": usage.model_calls,
                "tokens": usage.input_tokens + usage.output_tokens,
                "cost": usage.cost,
            },
        )


def book_usage(recovered: RecoveredTask, budgets: Budgets) -> None:
    """Charge a task's earlier usage to its budgets.

    An interrupted step that is resumed finds its model calls charged already.
    """
    task_id = recovered.record.task.id
    for run in recovered.record.runs.values():
        budgets.share(run)  # before the run's node is made, which has the share as its limits
    for run_id, used in used_by(recovered):
        budgets.run(task_id, run_id).settle(**used)
    for run_id, answers in recovered.answers.items():
        for call, answer in answers.items():
            budgets.run(task_id, run_id).settle_call(call, **answer.used)
