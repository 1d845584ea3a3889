"""The journal's SQLite file, opened for writing by one process."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from typing import TYPE_CHECKING, Literal, Self

from callboard.config import check_own, create_own, make_private, restrict
from callboard.journal._apart import Apart
from callboard.journal._artifacts import sweep
from callboard.journal._failures import beside, journal_errors, located, raise_journal_error
from callboard.journal._lock import JournalLock
from callboard.journal._migrations import migrate
from callboard.journal._observed_time import MARK_SECONDS, ObservedTime
from callboard.journal._pictures import Pictures, sync_folder
from callboard.journal._retention import Retention
from callboard.journal._routine_runs import routine_runs
from callboard.journal._row_encoding import (
    INSERT,
    events_after,
    row_of,
    rows_of,
    values_of,
    values_of_events,
)
from callboard.journal._search import SearchIndex
from callboard.journal._sqlite import check
from callboard.messages import Event, Fact, JournalError, Message, Routine, Task, TaskResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from callboard.journal._routine_runs import RoutineRun
    from callboard.journal._row import Row
    from callboard.messages import Seconds, Timestamp


_NOTED = {Task, TaskResult}
"""The types of messages that update the `tasks` table."""

_BEGIN = "BEGIN IMMEDIATE"

BUSY_SECONDS = 5.0
"""The maximum wait for a reader to release the file while its journal mode changes."""

UNUSED = 0.25
"""The fraction of the retention time that may pass while no process has the journal open."""

USUAL_DAYS = 30.0
"""The retention time by which that is measured while none is set, in days."""

DAY_SECONDS = 86_400.0

_TASK = "INSERT INTO tasks (id, key, session, request, submitted, routine) VALUES (?, ?, ?, ?, ?, ?)"
_ENDED = "UPDATE tasks SET ended = ?, outcome = ? WHERE id = ? AND ended IS NULL"
_FIND = "SELECT id FROM tasks WHERE id = ? OR key = ? ORDER BY id = ? DESC LIMIT 1"
_UNFINISHED = "SELECT id FROM tasks WHERE ended IS NULL ORDER BY number"
_SINCE = "SELECT id, submitted FROM tasks WHERE ended IS NULL OR ended >= ? ORDER BY number"
_SESSION = "SELECT id FROM tasks WHERE id = ? OR session = ? ORDER BY number"
_RESULT = (
    "SELECT id, at, task, run, job, kind, body FROM rows WHERE task = ? AND kind = 'task_result' ORDER BY id LIMIT 1"
)
_FIRST = "SELECT id, at, task, run, job, kind, body FROM rows WHERE task = ? AND kind = 'task' ORDER BY id LIMIT 1"
_LAST_SEQ = (
    "SELECT max((SELECT coalesce(max(seq), 0) FROM rows), coalesce((SELECT value FROM marks WHERE name = ?), 0))"
)


class JournalFile:
    """Rows in one SQLite file, under an exclusive lock.

    Any thread may use it, but only one at a time.

    `write` and `write_events` add rows to an open transaction; `commit` makes them durable. After a `JournalError`
    from any of these, all further writes fail until `rollback`, which discards the rows since the last commit.
    """

    def __init__(self, path: Path, lock: JournalLock, connection: sqlite3.Connection, *, durable: bool) -> None:
        self.path = path
        self.durable = durable
        """Whether committed rows survive a loss of power."""
        self.last_seq = 0
        """The highest event number that this journal has ever held; 0 if it never held an event."""
        self._lock = lock
        self._connection = connection
        self._apart = Apart(Pictures(path, durable=durable), connection)
        self._search = SearchIndex(connection)
        self._failed = False
        self._closed = False
        with journal_errors(path, "opened"):
            statuses = [(str(file), file.stat()) for file in (path, beside(path, "-wal"))]
            self._identities = [(file_path, (status.st_ino, status.st_dev)) for file_path, status in statuses]
            self._count()
            self._observed = ObservedTime(connection)

    @property
    def identity(self) -> str:
        """A text that no other journal has."""
        with journal_errors(self.path, "read"):
            (number,) = self._connection.execute("SELECT value FROM marks WHERE name = 'identity'").fetchone()
        return f"{number:016x}"

    @property
    def behind(self) -> Seconds:
        """The time by which the clock was behind at the start."""
        return self._observed.behind

    @classmethod
    def open(cls, path: Path, *, durability: Literal["full", "process"] = "full") -> Self:
        """Open or create a journal that only its user can read.

        A missing folder is created too.

        Args:
            path: The file of the journal.
            durability: The failure that a commit survives: a loss of power (`full`) or a killed process (`process`).

        Raises:
            JournalInUseError: If another process, or another supervisor of this one, has it open.
            JournalDamagedError: If the file is not a journal, or is incomplete; it is left unchanged.
            JournalNewerError: If a newer version wrote it; it is left unchanged.
            JournalPathError: If it, or a file or folder beside it, is not this user's own, or is a link.
            JournalError: If the file can't be locked, read or written.
        """
        durable = durability == "full"
        named, path = path, located(path)
        with journal_errors(path, "opened"):
            _check_own(named, path)
            if not path.parent.is_dir():
                make_private(path.parent, exist_ok=True)
                if durable:
                    sync_folder(path.parent.parent)
        lock = JournalLock.acquire(path)
        try:
            check(path)
            with journal_errors(path, "opened"):
                _make_private(path, durable=durable)
                connection = _connected(path, durable=durable)
            try:
                return cls(path, lock, connection, durable=durable)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            lock.release()
            raise

    def write_events(self, facts: Sequence[Fact], refused: Callable[[ValueError], None]) -> None:
        """Write events, in order, into the open transaction.

        Their numbers must be higher than those of all events written before.

        Args:
            facts: The events; at least one.
            refused: Called with the error of each event that can't be serialized; the others are written.

        Raises:
            JournalError: If the file can't be written.
        """
        if self._failed:
            raise self._refusal()
        try:
            values = values_of_events(facts, refused)
            if not self._connection.in_transaction:
                self._connection.execute(_BEGIN)
            self._connection.executemany(INSERT, values)
        except BaseException as error:
            self._note_failure(error)
            raise
        self.last_seq = max(self.last_seq, facts[-1].seq)

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows, in order, into the open transaction.

        Raises:
            ValueError: If a message can't be serialized, or a task's id or key was used before. None of these rows is
                then written; earlier writes of the transaction remain.
            JournalError: If the file can't be written.
        """
        if self._failed:
            raise self._refusal()
        connection = self._connection
        new: set[str] = set()
        try:
            for row in rows:
                if type(row.message) is Task:
                    self._refuse_used(row.message, new)
            values = values_of(rows, self._apart)  # before the first write: a `ValueError` here leaves no row
            if not connection.in_transaction:
                connection.execute(_BEGIN)
            for statement, bound in self._apart.later.items():
                if bound:
                    connection.executemany(statement, bound)
                    bound.clear()
            self._mark_ends(rows)
            connection.executemany(INSERT, values)
            for row in rows:
                if type(row.message) in _NOTED:
                    self._note(row)
            self._search.add((task_id, kind, body) for _, _, task_id, _, _, kind, body in values)
        except BaseException as error:
            self._note_failure(error)
            raise

    def commit(self) -> None:
        """Commit the open transaction, with the guarantee that `durability` names.

        The names of new picture files are synced first, so that no committed row refers to a picture that is lost.

        Raises:
            JournalError: If the file was deleted or replaced, or can't be written.
        """
        if not self._connection.in_transaction and not self._failed:
            return
        if self._failed:
            raise self._refusal()
        try:
            missing_file = self._misplaced()
            if missing_file is not None:
                problem = f"was deleted or replaced while it was in use ({missing_file}): put it back, and start again"
                raise JournalError(self.path, problem)  # noqa: TRY301 - handled below like a disk error
            if self._apart.pictures.unsynced:
                self._apart.pictures.sync()
            self._connection.execute("COMMIT")
        except BaseException as error:
            self._note_failure(error)
            raise

    def rollback(self) -> None:
        """Discard the rows since the last commit, and allow writing again."""
        with journal_errors(self.path, "written"):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._failed = False
            self._apart.forget()
            self._count()

    def unfinished(self) -> tuple[str, ...]:
        """Return the ids of tasks without a result, oldest first."""
        return self._ids(_UNFINISHED)

    def session_tasks(self, session: str) -> tuple[str, ...]:
        """Return the ids of a conversation's tasks, oldest first."""
        return self._ids(_SESSION, session, session)

    def find(self, task_id: str, key: str | None = None) -> str | None:
        """Find a task by its id, or else by its idempotency key.

        Pruned tasks are not found.
        """
        return next(iter(self._ids(_FIND, task_id, key, task_id)), None)

    def rows(self, task_id: str, *, events: bool = False) -> Iterator[Row]:
        """Read the rows of a task, in order.

        Rows written during the iteration may be included.

        Raises:
            JournalDamagedError: If a row can't be read; the message names it.
        """
        return rows_of(self.path, self._connection, self._apart, task_id, events=events)

    def events(self, after_seq: int, limit: int) -> list[Event]:
        """Read the events after a number, in order.

        The result may exceed `limit`: a group of events that were written together is always returned complete. A
        group has one row per task, all with the same job number; their event numbers interleave, so the result is
        sorted at the end.

        Raises:
            JournalDamagedError: If a row can't be read; the message names it.
        """
        return events_after(self.path, self._connection, after_seq, limit)

    def result(self, task_id: str) -> TaskResult | None:
        """Read the result of a task; None before its end.

        Raises:
            JournalDamagedError: If the row can't be read; the message names it.
        """
        messages = self._messages(_RESULT, task_id)
        return next((message for message in messages if isinstance(message, TaskResult)), None)

    def routine_runs(self, name: str, limit: int) -> tuple[RoutineRun, ...]:
        """List the latest ended tasks that repeated a routine, newest first."""
        with journal_errors(self.path, "read"):
            return routine_runs(self._connection, name, limit=limit)

    def tasks_since(self, at: float) -> Iterator[tuple[Task, TaskResult | None]]:
        """Read the tasks that were not over at a time, in order.

        A task has its result with it if it was also submitted after that time.

        Raises:
            JournalDamagedError: If a row can't be read; the message names it.
        """
        with journal_errors(self.path, "read"):
            rows = self._connection.execute(_SINCE, (at,)).fetchall()
        for task_id, submitted in rows:
            for task in self._messages(_FIRST, task_id):
                if isinstance(task, Task):
                    yield task, self.result(task_id) if submitted >= at else None

    def prune(self, *, days: float | None, max_bytes: int | None, kept_since: Timestamp | None = None) -> int:
        """Delete ended tasks with all their data, the earliest end first.

        The open transaction is committed first.

        Args:
            days: The retention time of an ended task, in days that this journal has observed. The time between two
                processes counts as at most a quarter of it, because the wall clock may have jumped in between.
            max_bytes: The maximum size of the journal, with its pictures. Tasks that have not ended are kept even if
                the journal stays larger.
            kept_since: Tasks that ended at this time or later are kept, too.

        Returns:
            The number of deleted tasks.

        Raises:
            JournalError: If the file can't be written.
        """
        self.commit()
        seconds = (USUAL_DAYS if days is None else days) * DAY_SECONDS
        self._observed.resume(UNUSED * seconds)
        oldest = None if days is None else self._observed.now - seconds
        try:
            with journal_errors(self.path, "pruned"):
                self._connection.execute(_BEGIN)
                self._connection.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", ("last_seq", self.last_seq))
                self._observed.mark()
                retention = Retention(self._connection, self._search)
                dropped = retention.drop(oldest=oldest, max_bytes=max_bytes, kept_since=kept_since)
                self._observed.prune()
            self.commit()
        except BaseException:
            self.rollback()
            raise
        with journal_errors(self.path, "pruned"):
            self._apart.forget()  # first, because deleting the files may fail
            self._apart.pictures.sweep(retention.pictures())
            sweep(self.path, self._ids("SELECT id FROM tasks"))
            retention.give_back()
        return dropped

    def close(self) -> None:
        """Roll back, merge the log into the file, and unlock it.

        A second call does nothing.

        Raises:
            JournalError: If the file can't be written. It is closed anyway, and the next `open` recovers it.
        """
        if self._closed:
            return
        self._closed = True
        try:
            with journal_errors(self.path, "closed"), contextlib.closing(self._connection) as connection:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if self._misplaced() is None:
                    self._observed.mark()
                    connection.execute("PRAGMA busy_timeout = 0")  # don't wait for readers: the log then stays
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                    with contextlib.suppress(sqlite3.OperationalError):  # the checkpoint has merged the log already
                        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
        finally:
            self._lock.release()

    def _refuse_used(self, task: Task, new: set[str]) -> None:
        """Refuse a task whose id or key was used before.

        `new` holds those of earlier rows of the same write.
        """
        names = {f"id {task.id}", f"key {task.key}"} if task.key is not None else {f"id {task.id}"}
        if self.find(task.id, task.key) or not new.isdisjoint(names):
            problem = f"task {task.id!r} can't be written down: its id or its key was used before"
            raise ValueError(problem)
        new |= names

    def _mark_ends(self, rows: Sequence[Row]) -> None:
        """Store the observed time before the rows of results."""
        if any(type(row.message) is TaskResult for row in rows):
            self._observed.resume(UNUSED * USUAL_DAYS * DAY_SECONDS)
            self._observed.mark(due=MARK_SECONDS)

    def _note(self, row: Row) -> None:
        """Update the `tasks` table for a row."""
        match row.message:
            case Task() as task:
                request = task.request or " · ".join(step.request for step in task.plan)
                routine = task.routine.routine if isinstance(task.routine, Routine) else None
                self._connection.execute(_TASK, (task.id, task.key, task.session, request, row.at, routine))
            case TaskResult() as result:
                self._connection.execute(_ENDED, (row.at, str(result.outcome), result.task_id))

    def _refusal(self) -> JournalError:
        """Return the error for a write after a failed one.

        The failure may have rolled back the transaction, so later writes would be incomplete.
        """
        return JournalError(self.path, "can't be written: the last write failed, and was not rolled back")

    def _note_failure(self, error: BaseException) -> None:
        """Refuse writes until `rollback`, and raise the journal's error.

        A `ValueError` leaves the transaction as it is, and is left to the caller to raise.
        """
        if isinstance(error, ValueError):  # no row was written, so the caches may name parts that were not stored
            self._apart.forget()
            return
        self._failed = True
        raise_journal_error(self.path, "written", error)

    def _misplaced(self) -> str | None:
        """Return the path of a deleted or replaced file, or None."""
        for file_path, identity in self._identities:
            try:
                status = os.stat(file_path)  # noqa: PTH116 - runs at each commit, and pathlib makes three calls
            except FileNotFoundError:
                return file_path
            if (status.st_ino, status.st_dev) != identity:
                return file_path
        return None if self._lock.intact else str(beside(self.path, ".lock"))

    def _count(self) -> None:
        self.last_seq = self._connection.execute(_LAST_SEQ, ("last_seq",)).fetchone()[0]

    def _ids(self, query: str, *parameters: str | None) -> tuple[str, ...]:
        with journal_errors(self.path, "read"):
            return tuple(task_id for (task_id,) in self._connection.execute(query, parameters).fetchall())

    def _messages(self, query: str, *parameters: str | int) -> list[Message]:
        with journal_errors(self.path, "read"):
            rows = self._connection.execute(query, parameters).fetchall()
        return [row_of(self.path, stored, self._apart).message for stored in rows]


def _check_own(named: Path, path: Path) -> None:
    """Check the journal's path, and all paths beside it.

    A link is seen only in the path as it was named. SQLite opens its files itself, and follows no link then.

    Raises:
        NotOwnError: If one of them is not a regular file or a folder of this user's own.
    """
    check_own(named)
    for suffix in ("", "-wal", "-shm", "-journal", ".lock"):
        check_own(beside(path, suffix))
    for suffix in (".pictures", ".artifacts", ".versions", ".surfaces"):
        check_own(beside(path, suffix), folder=True)


def _make_private(path: Path, *, durable: bool) -> None:
    """Create a missing file, and restrict the file to its user.

    SQLite gives the files beside it the same permissions.
    """
    if not check_own(path):
        os.close(create_own(path))
        if durable:
            sync_folder(path.parent)
    restrict(path)


def _connected(path: Path, *, durable: bool) -> sqlite3.Connection:
    """Connect, migrate the tables, and switch to write-ahead logging."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = FULL" if durable else "PRAGMA synchronous = NORMAL")
        migrate(connection)
        _keep_log(path, connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _keep_log(path: Path, connection: sqlite3.Connection) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        problem = f"can't be opened: SQLite can keep no log beside it (mode {mode!r}): use a local file system"
        raise JournalError(path, problem)
    connection.execute("PRAGMA journal_size_limit = 16000000")  # a reader may keep the log from being reset
    connection.execute("SELECT count(*) FROM marks").fetchone()  # the first read creates the log file
