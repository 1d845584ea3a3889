"""Connections to a journal's database, and checks of it."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING

from callboard.journal._failures import beside, journal_errors
from callboard.journal._migrations import APPLICATION_ID, MIGRATIONS, UNREAD, tables_in, tables_of
from callboard.messages import JournalDamagedError, JournalError, JournalNewerError

if TYPE_CHECKING:
    from pathlib import Path

_LOG_HEADER = 32
"""The size of the write-ahead log's header, in bytes."""


def connect_reading(path: Path, *, alone: bool = False) -> sqlite3.Connection:
    """Connect to a journal without changing it, even during writes.

    The mode depends on the files beside it:

    - A closed journal has no log, and is read like any SQLite file.
    - A journal in use, or of a killed process, has its last rows in a write-ahead log, which is read too.
    - A journal in log mode without its log is a copy of one in use. It is read as immutable, because SQLite would
      create the log.
    - A log without rows is left by a process that was killed right after it began the log. SQLite can't read it
      without an index, so an exclusive reader ignores it.

    Args:
        path: The journal.
        alone: Whether no other connection of this process can exist meanwhile. Then not even the log's index, which
            SQLite shares between connections, is changed.
    """
    log, shared = (beside(path, suffix).exists() for suffix in ("-wal", "-shm"))
    if log and not (alone and _size(beside(path, "-wal")) <= _LOG_HEADER):
        return _connected(path, "mode=ro&readonly_shm=1" if shared and alone else "mode=ro")
    with path.open("rb") as file:  # safe without a writer: closing a file drops this process's POSIX locks on it
        logged = file.read(20)[18:19] == b"\2"
    return _connected(path, "mode=ro&immutable=1" if logged else "mode=ro")


def _connected(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?{how}", uri=True, isolation_level=None, check_same_thread=False)


def check(path: Path, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Refuse a damaged or newer file, or one of another program.

    The caller holds the journal's lock. The only change is SQLite's rollback of an interrupted migration. A missing or
    empty file is accepted as a new journal, unless its log still holds rows.

    Raises:
        JournalDamagedError: If it is not a journal, another program's SQLite file, or damaged.
        JournalNewerError: If its tables are newer than the migrations.
        JournalError: If it can't be read.
    """
    with journal_errors(path, "read"):
        log, shared, undo = (beside(path, suffix) for suffix in ("-wal", "-shm", "-journal"))
        if _size(path) and _size(undo):
            _roll_back(path)
        if not _size(path):
            if _size(log):
                problem = f"is gone or empty, but rows of it are left in {log}: put it back, or take those away too"
                raise JournalDamagedError(path, problem)
            return
        new_files = [file for file in (log, shared) if not file.exists()]
        try:
            with contextlib.closing(connect_reading(path, alone=True)) as connection:
                check_open(path, connection, migrations)
                finding = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        finally:
            for file in new_files:
                file.unlink(missing_ok=True)
        if finding != "ok":
            raise _damaged(path, finding)


def check_open(
    path: Path, connection: sqlite3.Connection, migrations: tuple[str, ...] = MIGRATIONS, *, oldest: int = 0
) -> None:
    """Refuse a connection to a wrong version or wrong tables.

    Raises:
        JournalError: If its version is below `oldest`, and a migration to that one changes what is read.
        JournalDamagedError: If it is another program's, or its tables differ from those of its version.
        JournalNewerError: If its tables are newer than the migrations.
    """
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise _foreign(path)
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(migrations):
        raise JournalNewerError(path, version=version, known=len(migrations))
    if tables_in(connection) != tables_of(migrations[:version]):
        raise _damaged(path, f"its tables are not those of version {version}")
    if any(not script.startswith(("PRAGMA user_version", UNREAD)) for script in migrations[version:oldest]):
        problem = f"has tables of the older version {version}: start a supervisor on it once"
        raise JournalError(path, problem)


def _roll_back(path: Path) -> None:
    """Let SQLite roll back an interrupted migration.

    The file can't be read before that.
    """
    with path.open("rb") as file:
        head = file.read(100)
    if head.startswith(b"SQLite format 3") and int.from_bytes(head[68:72], "big") != APPLICATION_ID:
        raise _foreign(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _foreign(path: Path) -> JournalDamagedError:
    return JournalDamagedError(path, "is no journal but another program's SQLite file: name another one")


def _damaged(path: Path, finding: str) -> JournalDamagedError:
    problem = f"is damaged ({finding}): put a copy of it back, or give this one a journal of its own"
    return JournalDamagedError(path, problem)
