"""The tables of a journal, their migrations, and their checks."""

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
"""The application id that marks a SQLite file as a journal: "Calb"."""

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
    # Each action gets the id of its call. In version 1 only results had such ids. They were in the order of the
    # actions, and the held actions were the last of the list. So a step's results belong to the actions right before
    # the held ones.
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
    -- Version 1 recorded only changed files. The number of commands is an upper bound for the changing actions.
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
    # Answers, actions and commands record whether a program decided on them. Older ones lack this member; they are
    # treated as a model's, and get a secret only if it is granted to models.
    "PRAGMA user_version = 3;",
    # Observations get a table of their own, and rows refer to them. Older rows keep theirs inline.
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
    # Changed row formats, without a change of the tables. Older rows stay as they are; older versions can't read the
    # new ones.
    # - Events of ended phases are no longer stored. Readers derive them from the event that ends their step; they have
    #   no number of their own.
    # - Events that are committed together form one row per task, of the kind `events`.
    # - Consecutive messages of the jobs of one run form one row of the kind `turn`. The end of a step omits the parts
    #   that precede it in that row, and has the kind `step_rest`.
    # - An assignment or ending that is forwarded becomes a row of the kind `again`, which refers to the first row.
    # - The lists of an observation come last in its JSON, and are omitted beside a delta.
    "PRAGMA user_version = 5;",
    # Tasks name the files that they may change without an approval, and writes that were journaled ahead say whether
    # the version before is kept. Older rows lack these members: no file is named, and no version is kept.
    # Tasks have a deadline, a priority, a budget and a policy. Older ones lack these members: they have no deadline,
    # equal priority, and only the settings' budget and policy.
    "PRAGMA user_version = 6;",
    # A row of events has what its events share once: it lists the consecutive events of each run, without the names of
    # task, run and agent. Older rows stay as they are; older versions can't read the new ones.
    "PRAGMA user_version = 7;",
)
"""The migration scripts, one per version; the last line of each sets the version."""


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
    """Refuse a connection to a wrong version or wrong tables.

    Raises:
        JournalError: If its version is below `oldest`.
        JournalDamagedError: If it is another program's, or its tables differ from those of its version.
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
    """Migrate the tables to the latest version, with one transaction per version.

    A new file becomes a journal in one transaction, including the first pragma: on its own, the pragma would write a
    file without our application id.
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
    """Return the names and normalized SQL of all database objects."""
    found = connection.execute("SELECT name, coalesce(sql, '') FROM sqlite_master")
    return frozenset((name, " ".join(sql.split())) for name, sql in found)


@functools.cache
def _tables_of(migrations: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, migrations)
        return tables_in(connection)


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


def _damaged(path: Path, found: str) -> JournalDamagedError:
    problem = f"is damaged ({found}): put a copy of it back, or give this one a journal of its own"
    return JournalDamagedError(path, problem)
