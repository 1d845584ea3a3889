"""Looking into a journal, also one in use by another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from callboard.actors.journal._failures import located, told
from callboard.actors.journal._lock import holder_of
from callboard.actors.journal._pictures import Pictures
from callboard.actors.journal._row import row_of, rows_of
from callboard.actors.journal._schema import MIGRATIONS, check_open, connect_reading
from callboard.messages import InForce, JournalError, Outcome

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from callboard.actors.journal._lock import Holder
    from callboard.actors.journal._row import Row
    from callboard.messages import Timestamp

_LIVES = "SELECT id FROM rows WHERE task = ? AND kind IN ('task', 'recovered') ORDER BY id"
_IN_FORCE = (
    "SELECT id, at, task, run, job, kind, body FROM rows WHERE task = '' AND kind = 'in_force' AND id < ? "
    "ORDER BY id DESC LIMIT 1"
)
_TASKS = "SELECT id, request, session, submitted, ended, outcome FROM tasks ORDER BY number"


@dataclass(frozen=True, slots=True)
class TaskLine:
    """What there is to say of a task in one line."""

    id: str
    request: str
    session: str | None
    """The first task of its conversation; None if it is that itself."""
    submitted: Timestamp
    ended: Timestamp | None
    """None while it is not over."""
    outcome: Outcome | None


class JournalReader:
    """A look at a journal that never creates or changes it. Any thread may use it, but only one at a time."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._pictures = Pictures(path)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a journal to read it.

        Raises:
            JournalDamagedError: If it is no journal, or not a whole one.
            JournalNewerError: If a newer version wrote it.
            JournalError: If there is none, it is an older one, or it can't be read.
        """
        path = located(path)
        with told(path, "read"):
            if not path.exists() or not path.stat().st_size:
                problem = "is not there" if not path.exists() else "is empty: nothing was written to it yet"
                raise JournalError(path, problem)
            connection = connect_reading(path)
            try:
                check_open(path, connection, oldest=len(MIGRATIONS))
            except BaseException:
                connection.close()
                raise
        return cls(path, connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tasks(self) -> tuple[TaskLine, ...]:
        """List all tasks, in the order in which they were submitted."""
        with told(self.path, "read"):
            found = self._connection.execute(_TASKS).fetchall()
        return tuple(_line(*columns) for columns in found)

    def rows(self, task_id: str, *, events: bool = True) -> Iterator[Row]:
        """Read the rows of a task in order.

        Raises:
            JournalDamagedError: If a row can't be read; it is named.
        """
        return rows_of(self.path, self._connection, self._pictures, task_id, events=events)

    def in_force(self, task_id: str) -> tuple[InForce | None, ...]:
        """Give the settings in force when a process took up a task: the first, and each that went on with it.

        None for one of which nothing is kept: an older version ran it.

        Raises:
            JournalDamagedError: If a row can't be read; it is named.
        """
        with told(self.path, "read"):
            lives = self._connection.execute(_LIVES, (task_id,)).fetchall()
            found = [self._connection.execute(_IN_FORCE, life).fetchone() for life in lives]
        rows = [row_of(self.path, stored, self._pictures) if stored is not None else None for stored in found]
        return tuple(row.message if row is not None and isinstance(row.message, InForce) else None for row in rows)

    def holder(self) -> Holder | None:
        """Tell which process has the journal open now; None: nobody."""
        return holder_of(self.path)

    def close(self) -> None:
        """Let go of the file. A second call does nothing."""
        self._connection.close()


def _line(  # noqa: PLR0913, PLR0917 - a line has six columns
    task_id: str, request: str, session: str | None, submitted: float, ended: float | None, outcome: str | None
) -> TaskLine:
    return TaskLine(task_id, request, session, submitted, ended, Outcome(outcome) if outcome else None)
