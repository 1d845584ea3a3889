"""The recording of a task: rows of its conversation, moves, and tools."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from callboard.config import text
from callboard.journal import JournalReader
from callboard.messages import (
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Assign,
    Decided,
    Effect,
    Event,
    EventName,
    Intent,
    JournalDamagedError,
    Question,
    StepDone,
    Target,
    Task,
    TaskResult,
    UnknownTaskError,
    agent_kind,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from callboard.config import Settings
    from callboard.journal import Row
    from callboard.messages import Action, InForce, Message


SAFE_GUARD_OFF = "safe_guard is off"
"""The recorded reason when no person had to approve anything."""


@dataclass(frozen=True)
class RecordedTask:
    """The rows of one task and its conversation in a journal."""

    task: Task
    rows: tuple[Row, ...]
    """The rows of the task, in order, including its events."""
    earlier_rows: tuple[Row, ...] = ()
    """The rows of the conversation's earlier tasks, in order."""
    lives: tuple[InForce | None, ...] = ()
    """The settings of each process that worked on one of these tasks, in the order of the rows, those of the
    earlier tasks first; None for a process that did not record them."""

    @classmethod
    def of(cls, rows: Iterable[Row], earlier_rows: Iterable[Row] = (), lives: Iterable[InForce | None] = ()) -> Self:
        """Make a recording of a task's rows.

        Raises:
            ValueError: If the first of them is not the task.
        """
        task_rows = tuple(rows)
        first = next((row.message for row in task_rows if not isinstance(row.message, Event)), None)
        if not isinstance(first, Task):
            msg = "a recording begins with its task"
            raise ValueError(msg)  # noqa: TRY004 - the rows are what is wrong
        return cls(first, task_rows, tuple(earlier_rows), tuple(lives))

    @classmethod
    def load(cls, journal: Path, task_id: str) -> Self:
        """Read a recording from a journal, even from one in use.

        Raises:
            UnknownTaskError: If the journal has no task of this id.
            JournalError: If it can't be read.
        """
        with contextlib.closing(JournalReader.open(journal)) as reader:
            tasks = reader.tasks()
            line = next((line for line in tasks if line.id == task_id), None)
            if line is None:
                raise UnknownTaskError(task_id)
            session = line.session or line.id
            earlier = [
                earlier_task.id
                for earlier_task in tasks[: tasks.index(line)]
                if session == (earlier_task.session or earlier_task.id)
            ]
            earlier_rows = [row for earlier_task in earlier for row in reader.rows(earlier_task, events=False)]
            lives = [life for known_task in (*earlier, task_id) for life in reader.in_force(known_task)]
            try:
                return cls.of(reader.rows(task_id), earlier_rows, lives)
            except ValueError as error:
                raise JournalDamagedError(journal, f"is damaged: of task {task_id!r} {error}") from error

    @property
    def result(self) -> TaskResult | None:
        """The task's result, if it ended."""
        return next((row.message for row in reversed(self.rows) if isinstance(row.message, TaskResult)), None)

    def attended(self, settings: Settings) -> Settings:
        """Return settings with people to ask, and proposed checks, as recorded."""
        messages = [row.message for row in self.rows]
        system: dict[str, bool] = {}
        if any(isinstance(message, Question | Answer) for message in messages):
            system["ask_question"] = not any(
                isinstance(message, Answer) and message.nobody and not message.by for message in messages
            )
        waived = any(_waived(message) for message in messages)
        if waived or any(isinstance(message, ApprovalRequest) for message in messages):
            system["safe_guard"] = not waived
        if any(_proposed(life) for life in self.lives if life is not None):
            system["propose_checks"] = True
        return settings.model_copy(update={"system": settings.system.model_copy(update=system)})

    @property
    def events(self) -> bool:
        """True if events were stored.

        Without them only the jobs' results can be compared.
        """
        return any(isinstance(row.message, Event) for row in self.rows)


def _proposed(life: InForce) -> bool:
    """Return whether HostAgents could propose checks in a process."""
    system = life.sections.get("system")
    return isinstance(system, dict) and system.get("propose_checks") is True


def _waived(message: Message) -> bool:
    """Return whether the recording shows that approvals were switched off."""
    match message:
        case ApprovalAnswer(unattended=True, reason=reason):
            return reason == SAFE_GUARD_OFF
        case Event(name=EventName.POLICY_DECIDED, data=data):
            return data.get("waived") == SAFE_GUARD_OFF
        case _:
            return False


@dataclass
class Moves:
    """The moves between two hand-overs of a run.

    The last ones end at the run's end.
    """

    pending: list[str] = field(default_factory=list)
    """The moves that were not replayed yet, in reverse order: the next one is last."""
    recovered: bool = False
    """Whether the agent began with rows from the journal: its moves in them were not published again."""
    complete: bool = False
    """Whether the last move, to the machine's final state, is recorded. Otherwise a crash, or the end of the recording,
    may have lost it: an ending is stored with the step that leads to it, and the moves between are published after
    that."""


def recorded_moves(rows: Iterable[Row], finals: Collection[str]) -> dict[tuple[str, int], Moves]:
    """Return the recorded moves, by run and lease.

    `finals` are the final states.
    """
    moves_of_runs: dict[tuple[str, int], Moves] = {}
    current: dict[str, Moves] = {}
    for row in rows:
        match row.message:
            case Assign(token=token) as assign if token and not row.job:
                current[assign.run_id] = moves_of_runs[assign.run_id, token] = Moves()
            case Event(name=EventName.STATE_CHANGED, run_id=run_id, data=data) if data["source"] and run_id in current:
                current[run_id].pending.insert(0, move(data["source"], data["target"], data["by"]))
                current[run_id].complete = data["target"] in finals
            case Event(name=EventName.RUN_RECOVERED, run_id=run_id) if run_id in current:
                current[run_id].recovered = True
    return moves_of_runs


def move(source: object, target: object, by: object) -> str:
    """Format a move."""
    return text("transition", source=source, target=target, cause=by)


Known = dict[str, tuple[set[str], Effect]]


class KnownTools:
    """The tools of a recording, by kind of agent and target.

    No schema was recorded: any arguments fit.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._tools: dict[tuple[str, str], Known] = {}
        self._keys: dict[str, tuple[str, str]] = {}
        for row in rows:
            self._add(row)

    def of(self, kind: str, target: Target | None) -> Known:
        """Return the tools of a kind of agent on a target.

        Each has its parameters and its effect.
        """
        return self._tools.get((kind, target.id if target is not None else ""), {})

    def _add(self, row: Row) -> None:
        message = row.message
        if isinstance(message, Assign) and message.token:
            target = message.target.id if message.target is not None else ""
            self._keys[message.run_id] = (agent_kind(message.address), target)
        key = self._keys.get(row.run_id)
        if key is None:
            return
        known_tools = self._tools.setdefault(key, {})
        for action in _actions(message):
            known_tools.setdefault(action.tool, (set(), Effect.IDEMPOTENT))[0].update(action.arguments)
        once = message.tool if isinstance(message, Intent) else ""
        if isinstance(message, Event) and message.name is EventName.POLICY_DECIDED:
            once = str(message.data["tool"]) if message.data.get("effect") == Effect.ONCE else ""
        if once:
            parameters, _ = known_tools.get(once, (set(), Effect.ONCE))
            known_tools[once] = (parameters, Effect.ONCE)


def _actions(message: Message) -> tuple[Action, ...]:
    match message:
        case StepDone(record=record, held=held):
            return (*record.decision.actions, *held)
        case Decided(decision=decision, actions=actions):
            return (*decision.actions, *actions)
        case _:
            return ()
