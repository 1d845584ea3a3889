"""A recording: the rows of a task, and of the conversation before it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from callboard.actors.journal import JournalReader
from callboard.messages import Event, Task, TaskResult, UnknownTaskError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from callboard.actors.journal import Row


@dataclass(frozen=True)
class Recording:
    """What a journal has of one task."""

    task: Task
    rows: tuple[Row, ...]
    """Of the task, in order, its events included."""
    before: tuple[Row, ...] = ()
    """Of the conversation's earlier tasks, in order."""

    @classmethod
    def of(cls, rows: Iterable[Row], before: Iterable[Row] = ()) -> Self:
        """Make a recording of a task's rows.

        Raises:
            ValueError: If they do not begin with the task.
        """
        kept = tuple(rows)
        first = next((row.message for row in kept if not isinstance(row.message, Event)), None)
        if not isinstance(first, Task):
            msg = "a recording begins with its task"
            raise ValueError(msg)  # noqa: TRY004 - the rows are what is wrong
        return cls(first, kept, tuple(before))

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
            return cls.of(reader.rows(task_id), before)

    @property
    def result(self) -> TaskResult | None:
        """How the task ended, if it did."""
        return next((row.message for row in reversed(self.rows) if isinstance(row.message, TaskResult)), None)

    @property
    def events(self) -> bool:
        """Whether events were kept; without them only the agents' words can be compared."""
        return any(isinstance(row.message, Event) for row in self.rows)
