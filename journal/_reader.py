"""Read-only access to a journal, even while another process writes it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from callboard.journal._apart import Apart
from callboard.journal._failures import beside, journal_errors, located
from callboard.journal._lock import holder_of
from callboard.journal._migrations import MIGRATIONS, tables_in
from callboard.journal._pictures import PictureDigests, Pictures
from callboard.journal._routine_runs import routine_runs
from callboard.journal._row_encoding import events_after, events_in, row_of, rows_of, unchanged
from callboard.journal._sqlite import check_open, connect_reading
from callboard.journal._task_list import ALL_TASKS, TaskList
from callboard.messages import Event, InForce, JournalError, with_phases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.journal._lock import JournalHolder
    from callboard.journal._routine_runs import RoutineRun
    from callboard.journal._row import Row
    from callboard.journal._task_list import TaskCount, TaskFilter, TaskLine, TaskPage
    from callboard.messages import Outcome

_EMPTY = "is empty: nothing was written to it yet"

COPIED_BYTES = 500_000_000
"""The maximum size of the files of a killed process that are copied for reading, in bytes."""

_LEFT = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
"""SQLite's error codes for a file that needs recovery before reading, which a reader must not do."""

_LIVES = "SELECT id FROM rows WHERE task = ? AND kind IN ('task', 'recovered') ORDER BY id"
_IN_FORCE = (
    "SELECT id, at, task, run, job, kind, body FROM rows WHERE task = '' AND kind = 'in_force' AND id < ? "
    "ORDER BY id DESC LIMIT 1"
)
_EVENTS = "SELECT id, at, task, run, job, kind, body FROM rows WHERE task = ? AND seq > ? ORDER BY seq"


class JournalReader:
    """A reader that never creates or changes the journal.

    Any thread may use it, but only one at a time.

    The files of a killed process may need recovery before SQLite can read them. A reader must not recover them, so it
    reads a copy in a temporary folder, which `close` deletes.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, leave: ExitStack, *, pictures: bool) -> None:
        """Read through a connection; `leave` closes it."""
        self.path = path
        self._connection = connection
        self._leave = leave
        self._digests = PictureDigests(path)
        self._apart = Apart(Pictures(path) if pictures else self._digests, connection)

    @classmethod
    def open(cls, path: Path, *, older: bool = False, pictures: bool = True) -> Self:
        """Open a journal for reading.

        Args:
            path: The file of the journal.
            older: Accept also versions whose rows need a migration; of such a journal, only `version` may be used.
            pictures: Read the pictures of messages; otherwise each is its digest, by which `picture` reads it.

        Raises:
            JournalDamagedError: If the file is not a journal, or is incomplete.
            JournalNewerError: If a newer version wrote it.
            JournalError: If the file is missing, empty, or unreadable, or if `older` is not set and it is of an older
                version whose rows need a migration.
        """
        path = located(path)
        with journal_errors(path, "read"):
            if not path.exists() or not path.stat().st_size:
                problem = "is not there" if not path.exists() else _EMPTY
                raise JournalError(path, problem)
            with ExitStack() as undo:
                connection = _connected(path, undo, 0 if older else len(MIGRATIONS))
                return cls(path, connection, undo.pop_all(), pictures=pictures)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def version(self) -> int:
        """The version of the journal's tables."""
        with journal_errors(self.path, "read"):
            version: int = self._connection.execute("PRAGMA user_version").fetchone()[0]
        return version

    def tasks(self) -> tuple[TaskLine, ...]:
        """List all tasks, in the order of their submission."""
        with self._tasks() as tasks:
            return tasks.all()

    def ids(self, beginning: str = "") -> tuple[str, ...]:
        """List the ids of tasks with a beginning, as they were submitted."""
        with self._tasks() as tasks:
            return tasks.ids(beginning)

    def with_key(self, key: str) -> str | None:
        """Return the id of the task with an idempotency key."""
        with self._tasks() as tasks:
            return tasks.with_key(key)

    def keys(self, limit: int) -> tuple[str, ...]:
        """List the idempotency keys of tasks, the newest first."""
        with self._tasks() as tasks:
            return tasks.keys(limit)

    def unfinished_ids(self) -> tuple[str, ...]:
        """List the ids of unfinished tasks, as they were submitted."""
        with self._tasks() as tasks:
            return tasks.unfinished_ids()

    def page(self, tasks: TaskFilter = ALL_TASKS, *, before: int | None = None, limit: int = 50) -> TaskPage:
        """List the newest tasks that match, newest first.

        A task is on one page only, also if tasks are submitted, end or are pruned between two calls.

        Args:
            tasks: The filter.
            before: The `TaskPage.next` of the page before.
            limit: The maximum number of tasks.
        """
        with self._tasks() as lists:
            return lists.page(tasks, before, limit)

    def count(self, tasks: TaskFilter = ALL_TASKS) -> TaskCount:
        """Count the tasks that match, up to 1,000."""
        with self._tasks() as lists:
            return lists.count(tasks)

    def outcomes(self) -> dict[Outcome | None, int]:
        """Count all tasks by their outcome; None stands for unfinished tasks."""
        with self._tasks() as tasks:
            return tasks.outcomes()

    def routine_runs(self, name: str, *, before: int | None = None, limit: int = 1_000) -> tuple[RoutineRun, ...]:
        """List the newest ended tasks that repeated a routine, newest first.

        Args:
            name: The routine's name.
            before: The `RoutineRun.number` of the last run of the list before.
            limit: The maximum number of runs.
        """
        with journal_errors(self.path, "read"):
            return routine_runs(self._connection, name, before=before, limit=limit)

    def rows(self, task_id: str, *, events: bool = True) -> Iterator[Row]:
        """Read the rows of a task, in order.

        Raises:
            JournalDamagedError: If a row can't be read; the message names it.
        """
        return rows_of(self.path, self._connection, self._apart, task_id, events=events)

    def picture(self, digest: bytes) -> bytes | None:
        """Read a picture by its digest; None if the journal has none."""
        return self._digests.picture(digest)

    def events(self, task_id: str, after_seq: int = 0) -> Iterator[Event]:
        """Read the events of a task after a number, in order.

        Events of ended phases are not stored; they are derived from the event that ends their step.

        Raises:
            JournalDamagedError: If a row can't be read; the message names it.
        """
        with journal_errors(self.path, "read"):
            rows = self._connection.execute(_EVENTS, (task_id, after_seq)).fetchall()
        for stored in rows:
            for event in events_in(self.path, stored, after_seq):
                yield from with_phases(event)

    def changes(self, after_seq: int, limit: int) -> list[Event]:
        """Read about `limit` events of all tasks after a number.

        They are in order, and groups are complete.

        Raises:
            JournalDamagedError: If a row can't be read; the message names it.
        """
        return events_after(self.path, self._connection, after_seq, limit)

    def last_seq(self) -> int:
        """Return the number of the latest event; 0 without one."""
        with journal_errors(self.path, "read"):
            (number,) = self._connection.execute("SELECT coalesce(max(seq), 0) FROM rows").fetchone()
        return int(number)

    def in_force(self, task_id: str) -> tuple[InForce | None, ...]:
        """Return the settings of each process that worked on a task.

        An item is None if its process did not record the settings: an older version ran it.

        Raises:
            JournalDamagedError: If a row can't be read; the message names it.
        """
        with journal_errors(self.path, "read"):
            lives = self._connection.execute(_LIVES, (task_id,)).fetchall()
            stored_rows = [self._connection.execute(_IN_FORCE, life).fetchone() for life in lives]
        rows = [row_of(self.path, stored, self._apart) if stored is not None else None for stored in stored_rows]
        return tuple(row.message if row is not None and isinstance(row.message, InForce) else None for row in rows)

    def holder(self) -> JournalHolder | None:
        """Return the process that has the journal open for writing, or None."""
        return holder_of(self.path)

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        self._leave.close()

    @contextlib.contextmanager
    def _tasks(self) -> Iterator[TaskList]:
        with journal_errors(self.path, "read"), unchanged(self._connection):
            yield TaskList(self._connection)


def _connected(path: Path, leave: ExitStack, oldest: int) -> sqlite3.Connection:
    """Connect to a journal, or to a copy of it.

    Cleanup callbacks are added to `leave`.
    """
    connection = connect_reading(path)
    leave.callback(connection.close)
    try:
        check_open(path, connection, MIGRATIONS, oldest=oldest)
    except sqlite3.OperationalError as error:
        logs = [log for log in (beside(path, suffix) for suffix in ("-wal", "-journal")) if log.exists()]
        if error.sqlite_errorcode & 0xFF not in _LEFT or not logs:
            raise
        leave.close()
        folder = leave.enter_context(tempfile.TemporaryDirectory(prefix="callboard-"))
        connection = sqlite3.connect(_copied(path, logs, Path(folder)), isolation_level=None, check_same_thread=False)
        leave.callback(connection.close)
        if not tables_in(connection):
            problem = f"{_EMPTY}, and the process that began it was killed: it can be used again"
            raise JournalError(path, problem) from error
        check_open(path, connection, MIGRATIONS, oldest=oldest)
    return connection


def _copied(path: Path, logs: list[Path], folder: Path) -> Path:
    """Copy the files of a killed process.

    Raises:
        JournalError: If they exceed `COPIED_BYTES`, or changed while they were copied.
    """
    files = [path, *logs]
    old_states = [(file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    size = sum(size for size, _ in old_states)
    reason = f"was left by a process that died, and needs recovery from {' and '.join(log.name for log in logs)}"
    if size > COPIED_BYTES:
        problem = (
            f"{reason}, but is too large to recover in a copy ({size} bytes): start a supervisor on it, or copy these "
            "files to where this user may write, and open the copy with `sqlite3` once"
        )
        raise JournalError(path, problem)
    for file in files:
        shutil.copyfile(file, folder / file.name)
    if [(file.stat().st_size, file.stat().st_mtime_ns) for file in files] != old_states:
        problem = f"{reason}, but changed while it was copied: try again"
        raise JournalError(path, problem)
    return folder / path.name
