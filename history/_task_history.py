"""The history of one task, in order, read from a journal.

It has the requests, decisions, actions and answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from callboard.actors.states import OnTheWay, Unfinished
from callboard.journal import without_pictures
from callboard.messages import (
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Assign,
    AssignGroup,
    Cancel,
    Event,
    EventName,
    Foreseen,
    Note,
    Pause,
    Question,
    Recovered,
    RequestExpired,
    Resume,
    RoundEnding,
    StepDone,
    StepFailure,
    SubtaskEnding,
    SubtaskResult,
    Task,
    TaskResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from callboard.journal import Row
    from callboard.messages import Message


Reply = Answer | ApprovalAnswer | RequestExpired

_EVENTS = {EventName.COMMAND_IN_DOUBT, EventName.ROUTINE_MISSED, EventName.RUN_RECOVERED}


@dataclass(frozen=True)
class Entry:
    """One entry of the history."""

    at: float
    run_id: str
    """The run that it belongs to; empty for the whole task."""
    agent: str
    """The agent's address; empty for the whole task."""
    message: Message
    reply: Reply | None = None
    """The reply, if this is a question or approval that is no longer open."""


@dataclass
class TaskHistory:
    """One task, up to its latest row."""

    task: Task
    submitted: float
    ended: float | None = None
    result: TaskResult | None = None
    entries: list[Entry] = field(default_factory=list)
    agents: dict[str, str] = field(default_factory=dict)
    """The address of each run."""
    broken_off: dict[str, Unfinished] = field(default_factory=dict)
    """The progress of each unfinished step, by run."""
    assigned: list[Assign] = field(default_factory=list)
    """The assignments of agents, including those that wait for their target."""
    groups: list[tuple[float, AssignGroup]] = field(default_factory=list)
    """The subtasks that were assigned together, and when."""
    begun_at: dict[str, float] = field(default_factory=dict)
    """When each run first got its target."""
    ended_at: dict[str, float] = field(default_factory=dict)
    """When each subtask ended."""
    results: dict[str, SubtaskResult] = field(default_factory=dict)
    """The results of subtasks, by run."""
    events: list[Event] = field(default_factory=list)
    foreseen: list[Foreseen] = field(default_factory=list)
    """The files that its actions were about to replace, in order."""

    @property
    def waiting(self) -> tuple[Question | ApprovalRequest, ...]:
        """The open questions and approvals."""
        if self.result is not None:
            return ()
        open_entries = [entry for entry in self.entries if entry.reply is None]
        return tuple(entry.message for entry in open_entries if isinstance(entry.message, Question | ApprovalRequest))

    def as_json(self) -> dict[str, Any]:
        """Return the history for programs: the journal's own messages, without pictures."""
        return {
            "task": self.task.model_dump(mode="json"),
            "submitted": self.submitted,
            "ended": self.ended,
            "result": _json(self.result),
            "history": [
                {
                    "at": entry.at,
                    "agent": entry.agent,
                    "run_id": entry.run_id,
                    "message": _json(entry.message),
                    **({"reply": _json(entry.reply)} if entry.reply is not None else {}),
                }
                for entry in self.entries
            ],
            "broken_off": {
                run_id: {
                    "decided": _json(unfinished.decided),
                    "results": [_json(result) for result in unfinished.results],
                    "in_doubt": _json(unfinished.intent),
                }
                for run_id, unfinished in self.broken_off.items()
            },
        }


def _json(message: Message | None) -> Any:
    return None if message is None else without_pictures(message).model_dump(mode="json")


def history_of(rows: Iterable[Row]) -> TaskHistory | None:
    """Make the history of a task from all of its rows.

    None if the first of them is not the task.
    """
    history: TaskHistory | None = None
    for row in rows:
        if history is not None:
            _add(history, row)
        elif isinstance(row.message, Task):
            history = TaskHistory(row.message, row.at)
    return history


def _add(history: TaskHistory, row: Row) -> None:  # noqa: C901, PLR0912 - one match, a case a message
    match row.message:
        case Event() as event:
            history.events.append(event)
            if event.name in _EVENTS or event.data.get("may_change") or event.data.get("own_files"):
                _enter(history, row)
        case Assign() as assign:
            _assigned(history, row, assign)
        case AssignGroup() as group:
            _planned(history, row.at, group)
        case SubtaskEnding() | RoundEnding() as ended:
            _ended(history, row, ended)
        case Question() | ApprovalRequest():
            _enter(history, row)
        case Answer() | ApprovalAnswer() | RequestExpired() as reply:
            _replied(history, reply)
        case TaskResult() as result:
            history.result, history.ended = result, row.at
        case message if isinstance(message, OnTheWay):
            unfinished = history.broken_off.get(row.run_id, Unfinished())
            history.broken_off[row.run_id] = unfinished.after(message)
            if isinstance(message, Foreseen):
                history.foreseen.append(message)
        case Pause() | Resume() if row.run_id:
            pass  # each of its agents has a row of its own
        case StepDone() | StepFailure():
            history.broken_off.pop(row.run_id, None)
            _enter(history, row)
        case Cancel() | Pause() | Resume() | Recovered() | Note():
            _enter(history, row)
        case _:
            pass


def _enter(history: TaskHistory, row: Row, run_id: str | None = None) -> None:
    run_id = row.run_id if run_id is None else run_id
    history.entries.append(Entry(row.at, run_id, history.agents.get(run_id, ""), row.message))


def _assigned(history: TaskHistory, row: Row, assign: Assign) -> None:
    history.agents[assign.run_id] = assign.address
    if assign.token:
        history.begun_at.setdefault(assign.run_id, row.at)
    assignments = [(earlier.run_id, earlier.round) for earlier in history.assigned]
    history.assigned.append(assign)
    if (assign.run_id, assign.round) not in assignments:
        _enter(history, row, assign.run_id)


def _planned(history: TaskHistory, at: float, group: AssignGroup) -> None:
    """Record a group once: a HostAgent that crashed repeats it."""
    if group.assigns[0].run_id not in history.agents:
        history.groups.append((at, group))
        history.agents.update((assign.run_id, assign.address) for assign in group.assigns)


def _ended(history: TaskHistory, row: Row, ended: SubtaskEnding | RoundEnding) -> None:
    """Record an ending once.

    The journal has it from the agent and for its HostAgent.
    """
    history.broken_off.pop(ended.run_id, None)
    if isinstance(ended, SubtaskEnding):
        history.ended_at.setdefault(ended.run_id, row.at)
        history.results[ended.run_id] = ended.result
    if not any(entry.message == ended for entry in history.entries):
        _enter(history, row, ended.run_id)


def _replied(history: TaskHistory, reply: Reply) -> None:
    for number, entry in enumerate(history.entries):
        request = entry.message
        if isinstance(request, Question | ApprovalRequest) and request.id == reply.id:
            history.entries[number] = replace(entry, reply=reply)
