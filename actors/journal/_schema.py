"""The tables of a journal, how they came to be, and which files are refused before anything is changed."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from typing import TYPE_CHECKING

from callboard.actors.journal._failures import beside, journal_errors
from callboard.messages import JournalDamagedError, JournalError, JournalNewerError

if TYPE_CHECKING:
    from pathlib import Path

APPLICATION_ID = 0x43616C62
"""What marks a SQLite file as one of ours: "Calb"."""

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE tasks (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        key TEXT UNIQUE,
        session TEXT,
        request TEXT NOT NULL,
        submitted REAL NOT NULL,
        ended REAL,
        outcome TEXT
    );
    CREATE INDEX tasks_open ON tasks (number) WHERE ended IS NULL;
    CREATE INDEX tasks_ended ON tasks (ended) WHERE ended IS NOT NULL;
    CREATE INDEX tasks_session ON tasks (session) WHERE session IS NOT NULL;
    CREATE TABLE rows (
        id INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        seq INTEGER,
        task TEXT NOT NULL,
        run TEXT NOT NULL,
        job INTEGER NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL
    );
    CREATE INDEX rows_task ON rows (task);
    CREATE INDEX rows_seq ON rows (seq) WHERE seq IS NOT NULL;
    CREATE INDEX rows_result ON rows (task) WHERE kind = 'task_result';
    CREATE TABLE pictures (
        name TEXT NOT NULL,
        task TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        PRIMARY KEY (name, task)
    ) WITHOUT ROWID;
    CREATE INDEX pictures_task ON pictures (task);
    CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    PRAGMA application_id = 0x43616C62;
    PRAGMA user_version = 1;
    """,
    # Each action has the id of its call. Results were in the order of a list's actions, and what a step held was the
    # end of it: so a step that went on with held actions had the results of those before that end.
    """
    UPDATE rows SET body = json_set(body, '$.record.decision.actions', json((
        SELECT json_group_array(json(
            CASE WHEN result.key IS NULL THEN action.value
            ELSE json_set(action.value, '$.call_id', json_extract(result.value, '$.call_id')) END
        ))
        FROM json_each(rows.body, '$.record.decision.actions') AS action
        LEFT JOIN json_each(rows.body, '$.record.results') AS result ON result.key = action.key
            - json_array_length(rows.body, '$.record.decision.actions')
            + json_array_length(rows.body, '$.record.results')
            + json_array_length(rows.body, '$.held')
    )))
    WHERE kind = 'step_done' AND json_array_length(body, '$.record.results') > 0;
    UPDATE rows SET body = json_set(body, '$.actions', json((
        SELECT json_group_array(json(
            json_set(action.value, '$.call_id', run || '.' || json_extract(rows.body, '$.step') || '.' || action.key)
        ))
        FROM json_each(rows.body, '$.actions') AS action
    )))
    WHERE kind = 'decided';
    UPDATE rows SET body = json_set(body, '$.decision.actions', json((
        SELECT json_group_array(json(coalesce(named.value, action.value)))
        FROM json_each(rows.body, '$.decision.actions') AS action
        LEFT JOIN json_each(rows.body, '$.actions') AS named ON named.key = action.key
            - json_array_length(rows.body, '$.decision.actions') + json_array_length(rows.body, '$.actions')
    )))
    WHERE kind = 'decided';
    -- What was changed was not told. Files were, and at most so many actions changed something as were run.
    UPDATE rows SET body = json_set(
        body, '$.changed', json_extract(body, '$.artifacts'), '$.actions', json_extract(body, '$.usage.commands')
    )
    WHERE kind IN ('task_result', 'round_ended');
    UPDATE rows SET body = json_set(
        body,
        '$.result.changed', json_extract(body, '$.result.artifacts'),
        '$.result.actions', json_extract(body, '$.result.usage.commands')
    )
    WHERE kind IN ('subtask_finished', 'subtask_failed', 'subtask_errored');
    PRAGMA user_version = 2;
    """,
    # Answers, actions and commands say whether a program decided on them. Of older ones nobody can tell: they have no
    # such member, and get a secret only where it is granted to models.
    "PRAGMA user_version = 3;",
    # Observations are kept apart: rows name them. Those of older rows stay in them.
    """
    CREATE TABLE observations (
        name TEXT NOT NULL PRIMARY KEY,
        base TEXT,
        body TEXT NOT NULL
    );
    CREATE TABLE observed (
        name TEXT NOT NULL,
        task TEXT NOT NULL,
        PRIMARY KEY (name, task)
    ) WITHOUT ROWID;
    CREATE INDEX observed_task ON observed (task);
    PRAGMA user_version = 4;
    """,
    # Events of ended phases are not kept any more: readers make them from the event that ends their step, and they
    # have no number of their own. Events that are committed together are one row a task, of the kind `events`.
    # Messages that the jobs of a run gave one after the other are one row of the kind `turn`; the end of a step has
    # not what stands before it there, and is of the kind `step_rest`. An assignment or an ending that is sent on is a
    # row of the kind `again`, which names the first. The lists of an observation stand last in it, and not at all
    # beside what differs from another. Older rows stay as they are; an older version can't read the new ones.
    "PRAGMA user_version = 5;",
)
"""The scripts that make the tables, a version each; the last line of each is its version."""


_LOG_HEADER = 32
"""The bytes of a log before its first row."""


def connect_reading(path: Path, *, alone: bool = False) -> sqlite3.Connection:
    """Connect to a journal without changing it, also while another process writes it.

    A journal that was closed is read as any SQLite file is. One that is in use, or was when its process was killed,
    has its last rows in a log beside it, which is read too. The last case is a copy of one in use, without its log.
    A log without rows, of a process that was killed when it had just begun it, SQLite can't read without an index.

    Args:
        path: The journal.
        alone: Whether nobody else of this process may connect meanwhile: then not even the log's index is changed,
            which SQLite shares between connections.
    """
    log, shared = (beside(path, suffix).exists() for suffix in ("-wal", "-shm"))
    if log and not (alone and _size(beside(path, "-wal")) <= _LOG_HEADER):
        return _connected(path, "mode=ro&readonly_shm=1" if shared and alone else "mode=ro")
    with path.open("rb") as file:  # nobody writes it now: closing it again takes no lock from a connection of ours
        logged = file.read(20)[18:19] == b"\2"
    return _connected(path, "mode=ro&immutable=1" if logged else "mode=ro")


def _connected(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?{how}", uri=True, isolation_level=None, check_same_thread=False)


def check(path: Path, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Refuse a file that is no journal, not a whole one, or a newer one. Changes nothing; call it under the lock.

    A file that is missing or empty is a new journal, unless rows are left beside it.

    Raises:
        JournalDamagedError: If it is no journal, another program's, or damaged.
        JournalNewerError: If its tables are newer than the migrations.
        JournalError: If it can't be read.
    """
    with journal_errors(path, "read"):
        log, shared, undo = (beside(path, suffix) for suffix in ("-wal", "-shm", "-journal"))
        if _size(path) and _size(undo):
            _take_back(path)
        if not _size(path):
            if _size(log):
                problem = f"is gone or empty, but rows of it are left in {log}: put it back, or take those away too"
                raise JournalDamagedError(path, problem)
            return
        made = [each for each in (log, shared) if not each.exists()]
        try:
            with contextlib.closing(connect_reading(path, alone=True)) as connection:
                check_open(path, connection, migrations)
                found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        finally:
            for each in made:
                each.unlink(missing_ok=True)
        if found != "ok":
            raise _damaged(path, found)


def check_open(
    path: Path, connection: sqlite3.Connection, migrations: tuple[str, ...] = MIGRATIONS, *, oldest: int = 0
) -> None:
    """Refuse what is open if it is another program's, too new or too old, or lacks a table.

    Raises:
        JournalError: If its version is below the oldest that will do.
        JournalDamagedError: If it is another program's, or its tables are not ours.
        JournalNewerError: If its tables are newer than the migrations.
    """
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise _foreign(path)
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(migrations):
        raise JournalNewerError(path, version=version, known=len(migrations))
    if tables_in(connection) != _tables_of(migrations[:version]):
        raise _damaged(path, f"its tables are not those of version {version}")
    if version < oldest:
        problem = f"has tables of the older version {version}: start a supervisor on it once"
        raise JournalError(path, problem)


def migrate(connection: sqlite3.Connection, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Bring the tables up to date: each version is made whole or not at all.

    A new file becomes a journal in one transaction: on its own, even the pragma would write a file that is nobody's.
    """
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    for number, script in enumerate(migrations[version:], version):
        begin = "BEGIN IMMEDIATE" if number else "BEGIN; PRAGMA auto_vacuum = INCREMENTAL"
        try:
            connection.executescript(f"{begin}; {script} COMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def tables_in(connection: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    """Give the name and the text of each table and index, and of all that does not belong there."""
    found = connection.execute("SELECT name, coalesce(sql, '') FROM sqlite_master")
    return frozenset((name, " ".join(sql.split())) for name, sql in found)


@functools.cache
def _tables_of(migrations: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, migrations)
        return tables_in(connection)


def _take_back(path: Path) -> None:
    """Let SQLite undo a change of the tables that was broken off: nobody can read the file before."""
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


def _damaged(path: Path, found: str) -> JournalDamagedError:
    problem = f"is damaged ({found}): put a copy of it back, or give this one a journal of its own"
    return JournalDamagedError(path, problem)
