"""A recording: the rows of a task, and of the conversation before it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from callboard.actors.journal import JournalReader
from callboard.messages import (
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Event,
    EventName,
    JournalDamagedError,
    Question,
    Task,
    TaskResult,
    UnknownTaskError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from callboard.actors.journal import Row
    from callboard.config import Settings
    from callboard.messages import InForce, Message

SAFE_GUARD_OFF = "safe_guard is off"
"""How the record says that nobody had to approve anything."""


@dataclass(frozen=True)
class Recording:
    """What a journal has of one task."""

    task: Task
    rows: tuple[Row, ...]
    """Of the task, in order, its events included."""
    before: tuple[Row, ...] = ()
    """Of the conversation's earlier tasks, in order."""
    lives: tuple[InForce | None, ...] = ()
    """The settings of each process that took one of these tasks up, in the order of the rows, those before included;
    None for one that did not write them down."""

    @classmethod
    def of(cls, rows: Iterable[Row], before: Iterable[Row] = (), lives: Iterable[InForce | None] = ()) -> Self:
        """Make a recording of a task's rows.

        Raises:
            ValueError: If they do not begin with the task.
        """
        kept = tuple(rows)
        first = next((row.message for row in kept if not isinstance(row.message, Event)), None)
        if not isinstance(first, Task):
            msg = "a recording begins with its task"
            raise ValueError(msg)  # noqa: TRY004 - the rows are what is wrong
        return cls(first, kept, tuple(before), tuple(lives))

    @classmethod
    def load(cls, journal: Path, task_id: str) -> Self:
        """Read a recording from a journal, also from one in use.

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
            earlier = [each.id for each in tasks[: tasks.index(line)] if session == (each.session or each.id)]
            before = [row for each in earlier for row in reader.rows(each, events=False)]
            lives = [each for known in (*earlier, task_id) for each in reader.in_force(known)]
            try:
                return cls.of(reader.rows(task_id), before, lives)
            except ValueError as error:
                raise JournalDamagedError(journal, f"is damaged: of task {task_id!r} {error}") from error

    @property
    def result(self) -> TaskResult | None:
        """How the task ended, if it did."""
        return next((row.message for row in reversed(self.rows) if isinstance(row.message, TaskResult)), None)

    def attended(self, settings: Settings) -> Settings:
        """Give settings with people there to be asked, or not, as it was when this was recorded."""
        words = [row.message for row in self.rows]
        system: dict[str, bool] = {}
        if any(isinstance(word, Question | Answer) for word in words):
            system["ask_question"] = not any(isinstance(word, Answer) and word.nobody for word in words)
        waived = any(_waived(word) for word in words)
        if waived or any(isinstance(word, ApprovalRequest) for word in words):
            system["safe_guard"] = not waived
        return settings.model_copy(update={"system": settings.system.model_copy(update=system)})

    @property
    def events(self) -> bool:
        """Whether events were kept; without them only the agents' words can be compared."""
        return any(isinstance(row.message, Event) for row in self.rows)


def _waived(word: Message) -> bool:
    """Say whether something shows that approvals were switched off."""
    match word:
        case ApprovalAnswer(unattended=True, reason=reason):
            return reason == SAFE_GUARD_OFF
        case Event(name=EventName.POLICY_DECIDED, data=data):
            return data.get("waived") == SAFE_GUARD_OFF
        case _:
            return False
