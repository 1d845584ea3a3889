"""The journal's file: the only writer of it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from typing import TYPE_CHECKING, Literal, Self

from callboard.actors.journal._apart import Apart
from callboard.actors.journal._artifacts import sweep
from callboard.actors.journal._failures import beside, journal_errors, located, raise_journal_error
from callboard.actors.journal._lock import JournalLock
from callboard.actors.journal._pictures import sync_folder
from callboard.actors.journal._retention import Retention, eras_of
from callboard.actors.journal._row import (
    EVENTS,
    INSERT,
    Row,
    events_in,
    row_of,
    rows_of,
    values_of,
    values_of_events,
)
from callboard.actors.journal._schema import check, migrate
from callboard.messages import Event, Fact, JournalError, Message, Task, TaskResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


_NOTED = {Task, TaskResult}
"""Messages of which the table of tasks knows."""

_BEGIN = "BEGIN IMMEDIATE"

BUSY_SECONDS = 5.0
"""How long a reader may hold the file while its mode changes."""

UNUSED = 0.25
"""How much of the time that ended tasks are kept can go by while no process has the journal open."""

_TASK = "INSERT INTO tasks (id, key, session, request, submitted) VALUES (?, ?, ?, ?, ?)"
_ENDED = "UPDATE tasks SET ended = ?, outcome = ? WHERE id = ? AND ended IS NULL"
_FIND = "SELECT id FROM tasks WHERE id = ?1 OR key = ?2 ORDER BY id = ?1 DESC LIMIT 1"
_UNFINISHED = "SELECT id FROM tasks WHERE ended IS NULL ORDER BY number"
_SESSION = "SELECT id FROM tasks WHERE id = ? OR session = ? ORDER BY number"
_EVENTS = "SELECT id, at, task, run, job, kind, body FROM rows WHERE seq > ? ORDER BY seq"
_RESULT = (
    "SELECT id, at, task, run, job, kind, body FROM rows WHERE task = ? AND kind = 'task_result' ORDER BY id LIMIT 1"
)
_LAST_SEQ = (
    "SELECT max((SELECT coalesce(max(seq), 0) FROM rows), coalesce((SELECT value FROM marks WHERE name = ?), 0))"
)


class JournalFile:
    """Rows in one SQLite file, which nobody else writes. Any thread may use it, but only one at a time.

    Rows are written into a transaction, and kept when it is committed. After a `JournalError` from `write` or `commit`
    nothing is written any more until `rollback`, which drops what was written since the last commit.
    """

    def __init__(self, path: Path, lock: JournalLock, connection: sqlite3.Connection, *, durable: bool) -> None:
        self.path = path
        self.durable = durable
        """Whether what is kept survives a loss of power."""
        self.last_seq = 0
        """The highest number that an event ever had here; 0 if there was none."""
        self._lock = lock
        self._connection = connection
        self._apart = Apart(path, connection, durable=durable)
        self._failed = False
        self._closed = False
        with journal_errors(path, "opened"):
            found = [(str(each), each.stat()) for each in (path, beside(path, "-wal"))]
            self._places = [(place, (is_now.st_ino, is_now.st_dev)) for place, is_now in found]
            self._count()
            self._last = self._connection.execute("SELECT coalesce(max(id), 0) FROM rows").fetchone()[0]
        self._began = time.time(), time.monotonic()

    @classmethod
    def open(cls, path: Path, *, durability: Literal["full", "process"] = "full") -> Self:
        """Open a journal, or make a new one, with a folder for it if that is missing; readable by its user alone.

        Args:
            path: Where it is.
            durability: What a commit survives: `full`, a loss of power; `process`, a killed process.

        Raises:
            JournalInUseError: If somebody else has it open.
            JournalDamagedError: If it is no journal, or not a whole one; the file is as it was.
            JournalNewerError: If a newer version wrote it; the file is as it was.
            JournalError: If it can't be locked, read or written.
        """
        durable = durability == "full"
        path = located(path)
        with journal_errors(path, "opened"):
            if not path.parent.is_dir():
                path.parent.mkdir(mode=0o700, parents=True)
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
        """Write events in order, into the open transaction; their numbers follow on those of all that were written.

        Args:
            facts: The events.
            refused: Is told of each that can't be written down; the others are written.

        Raises:
            JournalError: If the file can't take them.
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
        """Write rows in order, into the open transaction.

        Raises:
            ValueError: If a message can't be written down, or a task's id or key was used before; nothing of these
                rows is then written, and what was written before stays as it is.
            JournalError: If the file can't take them.
        """
        if self._failed:
            raise self._refusal()
        connection = self._connection
        new: set[str] = set()
        try:
            for row in rows:
                if type(row.message) is Task:
                    self._refuse_used(row.message, new)
            values = values_of(rows, self._apart)  # all of them, before the first is written
            if not connection.in_transaction:
                connection.execute(_BEGIN)
            for statement, bound in self._apart.later.items():
                if bound:
                    connection.executemany(statement, bound)
                    bound.clear()
            connection.executemany(INSERT, values)
            for row in rows:
                if type(row.message) in _NOTED:
                    self._note(row)
        except BaseException as error:
            self._note_failure(error)
            raise

    def commit(self) -> None:
        """Keep what was written. It is then as safe as the durability says.

        Raises:
            JournalError: If the file was deleted or replaced, or can't take it.
        """
        if not self._connection.in_transaction and not self._failed:
            return
        if self._failed:
            raise self._refusal()
        try:
            lost = self._misplaced()
            if lost is not None:
                problem = f"was deleted or replaced while it was in use ({lost}): put it back, and start again"
                raise JournalError(self.path, problem)  # noqa: TRY301 - as a disk that fails
            if self._apart.pictures.unsynced:
                self._apart.pictures.sync()
            self._connection.execute("COMMIT")
        except BaseException as error:
            self._note_failure(error)
            raise

    def rollback(self) -> None:
        """Drop what was written since the last commit."""
        with journal_errors(self.path, "written"):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._failed = False
            self._apart.forget()
            self._count()

    def unfinished(self) -> tuple[str, ...]:
        """Name the tasks that have no result, in the order in which they were submitted."""
        return self._ids(_UNFINISHED)

    def session_tasks(self, session: str) -> tuple[str, ...]:
        """Name the tasks of a conversation, its first one included, in order."""
        return self._ids(_SESSION, session, session)

    def find(self, task_id: str, key: str | None = None) -> str | None:
        """Name the task of this id, or else of this idempotency key; one that was pruned is forgotten."""
        return next(iter(self._ids(_FIND, task_id, key)), None)

    def rows(self, task_id: str, *, events: bool = False) -> Iterator[Row]:
        """Read the rows of a task in order. What is written meanwhile may be among them.

        Raises:
            JournalDamagedError: If a row can't be read; it is named.
        """
        return rows_of(self.path, self._connection, self._apart, task_id, events=events)

    def events(self, after: int, limit: int) -> list[Event]:
        """Read the events that follow a number, in order: so many, and those that were written together with the last.

        Raises:
            JournalDamagedError: If a row can't be read; it is named.
        """
        found: list[Event] = []
        group = 0
        with journal_errors(self.path, "read"), contextlib.closing(self._connection.execute(_EVENTS, (after,))) as rows:
            for stored in rows:
                _, _, _, _, job, kind, _ = stored
                if len(found) >= limit and not (kind == EVENTS and job == group):
                    break
                found += events_in(self.path, stored, after)
                group = job
        return sorted(found, key=lambda event: event.seq)

    def result(self, task_id: str) -> TaskResult | None:
        """Read how a task ended; None if it did not.

        Raises:
            JournalDamagedError: If the row can't be read; it is named.
        """
        messages = self._messages(_RESULT, task_id)
        return next((message for message in messages if isinstance(message, TaskResult)), None)

    def prune(self, *, days: float | None, max_bytes: int | None) -> int:
        """Drop whole tasks that ended, the oldest end first, with their rows and pictures. Commits what was written.

        Args:
            days: How long ago a task may have ended. Between two processes a quarter of it counts at most: a wall
                clock can have jumped there.
            max_bytes: How large the journal may be, pictures included; it may stay larger, with what is not over.

        Returns:
            How many tasks were dropped.

        Raises:
            JournalError: If the file can't be written.
        """
        self.commit()
        now = self._began[0] + time.monotonic() - self._began[1]
        seconds = None if days is None else days * 86_400
        try:
            with journal_errors(self.path, "pruned"):
                self._connection.execute(_BEGIN)
                self._connection.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", ("last_seq", self.last_seq))
                eras = eras_of(self._connection, self._last, self._began[0], (seconds or 0.0) * UNUSED)
                retention = Retention(self._connection, eras)
                dropped = retention.drop(oldest=None if seconds is None else now - seconds, max_bytes=max_bytes)
            self.commit()
        except BaseException:
            self.rollback()
            raise
        with journal_errors(self.path, "pruned"):
            self._apart.forget()  # first: the files that follow may fail to be deleted
            self._apart.pictures.sweep(retention.pictures())
            sweep(self.path, self._ids("SELECT id FROM tasks"))
            retention.give_back()
        return dropped

    def close(self) -> None:
        """Drop what was not committed, leave one whole file, and give the lock back. A second call does nothing.

        Raises:
            JournalError: If the file can't be written; it is closed all the same, and whole when it is opened again.
        """
        if self._closed:
            return
        self._closed = True
        try:
            with journal_errors(self.path, "closed"), contextlib.closing(self._connection) as connection:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if self._misplaced() is None:
                    connection.execute("PRAGMA busy_timeout = 0")  # readers are not waited for: the log then stays
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                    with contextlib.suppress(sqlite3.OperationalError):  # all is in the file already
                        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
        finally:
            self._lock.release()

    def _refuse_used(self, task: Task, new: set[str]) -> None:
        """Refuse an id or a key that the journal has, or one that is new with other rows."""
        names = {f"id {task.id}", f"key {task.key}"} if task.key is not None else {f"id {task.id}"}
        if self.find(task.id, task.key) or not new.isdisjoint(names):
            problem = f"task {task.id!r} can't be written down: its id or its key was used before"
            raise ValueError(problem)
        new |= names

    def _note(self, row: Row) -> None:
        """Keep the table of tasks in step with the rows."""
        match row.message:
            case Task() as task:
                request = task.request or " · ".join(step.request for step in task.plan)
                self._connection.execute(_TASK, (task.id, task.key, task.session, request, row.at))
            case TaskResult() as result:
                self._connection.execute(_ENDED, (row.at, str(result.outcome), result.task_id))

    def _refusal(self) -> JournalError:
        """Give what is raised for writing after a failure, which may have undone what was written before it."""
        return JournalError(self.path, "can't be written: the last write failed, and was not rolled back")

    def _note_failure(self, error: BaseException) -> None:
        """Note that writing failed, and raise the journal's error for those of SQLite and of the system."""
        if isinstance(error, ValueError):  # a message that can't be written; nothing was, nothing is compared with it
            self._apart.forget()
            return
        self._failed = True
        raise_journal_error(self.path, "written", error)

    def _misplaced(self) -> str | None:
        """Name a file that is not the one that was opened or locked."""
        for place, before in self._places:
            try:
                now = os.stat(place)  # noqa: PTH116 - at each commit: without three calls of pathlib's
            except FileNotFoundError:
                return place
            if (now.st_ino, now.st_dev) != before:
                return place
        return None if self._lock.intact else str(beside(self.path, ".lock"))

    def _count(self) -> None:
        self.last_seq = self._connection.execute(_LAST_SEQ, ("last_seq",)).fetchone()[0]

    def _ids(self, query: str, *parameters: str | None) -> tuple[str, ...]:
        with journal_errors(self.path, "read"):
            return tuple(task_id for (task_id,) in self._connection.execute(query, parameters).fetchall())

    def _messages(self, query: str, *parameters: str | int) -> list[Message]:
        with journal_errors(self.path, "read"):
            found = self._connection.execute(query, parameters).fetchall()
        return [row_of(self.path, stored, self._apart).message for stored in found]


def _make_private(path: Path, *, durable: bool) -> None:
    """Make a missing file, and take a file from all but its user: what SQLite puts beside it gets the same rights."""
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        if durable:
            sync_folder(path.parent)
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)


def _connected(path: Path, *, durable: bool) -> sqlite3.Connection:
    """Connect to a file, bring its tables up to date, and have rows appended to a log from here on."""
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
    connection.execute("PRAGMA journal_size_limit = 16000000")  # after a reader kept the log from being emptied
    connection.execute("SELECT count(*) FROM marks").fetchone()  # the log is made with the first look
