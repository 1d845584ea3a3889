"""Migrations of a journal's tables, from each version to the next."""

from __future__ import annotations

import contextlib
import functools
import sqlite3

from callboard.journal._search import build, is_current, is_part

APPLICATION_ID = 0x43616C62
"""The application id that marks a SQLite file as a journal: "Calb"."""

UNREAD = "-- Readers do without this."
"""The first line of a script whose tables only the writer uses: older journals can be read without it."""

SEARCHED = 13
"""The first version with an index of tasks."""

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
    # The ids of runs and calls have `~` in place of `/`. Older tasks keep theirs, since shells and desktops know calls
    # by them; older versions don't recognise the subtasks and calls of newer tasks.
    "PRAGMA user_version = 8;",
    # Ages are told by marks of the time that the journal has seen pass, instead of by the wall times of rows. The ends
    # of earlier tasks get their marks from the rows before them. A gap between two rows counts as at most 7.5 days (a
    # quarter of the usual retention), and as none if the clock went back.
    """-- Readers do without this.
    CREATE TABLE ages (
        first INTEGER PRIMARY KEY,
        observed REAL NOT NULL,
        wall REAL NOT NULL,
        highest REAL NOT NULL
    );
    INSERT INTO ages SELECT id, observed, at, highest FROM (
        SELECT id, kind, at,
            began + sum(max(0.0, min(648000.0, at - before))) OVER (ORDER BY id) AS observed,
            max(at) OVER (ORDER BY id) AS highest
        FROM (
            SELECT id, kind, at, lag(at, 1, at) OVER (ORDER BY id) AS before,
                first_value(at) OVER (ORDER BY id) AS began
            FROM rows
        )
    ) WHERE kind IN ('task_result', 'in_force') OR id = (SELECT max(id) FROM rows);
    PRAGMA user_version = 9;
    """,
    # Tasks, steps of plans and assignments have checks, and steps, endings and results have the results of those. The
    # contents of the files that checks compare are a row of the kind `files_at_start`, right after their task. Older
    # rows lack all of these: their tasks have no checks. Older versions can't read the new ones.
    "PRAGMA user_version = 10;",
    # Several subtasks may be assigned at once: a row of the kind `assign_group` holds them, and an assignment tells its
    # place among them. Older rows lack both: each of their subtasks was assigned alone. Older versions can't read the
    # new ones.
    "PRAGMA user_version = 11;",
    # Tasks tell the subtask of another machine that they do, targets and results name their machine, and the end of a
    # subtask on another machine is a row of the kind `remote_ended`. Older rows lack all of these: they are of one
    # machine. Older versions can't read the new ones. Each journal gets a random number, so that tasks of two journals
    # are told apart on other machines. Actions that are held for an approval have the facts that a person is asked
    # about; approvals of older rows hold for the tool and its arguments.
    """-- Readers do without this.
    INSERT OR IGNORE INTO marks VALUES ('identity', abs(random() >> 1));
    PRAGMA user_version = 12;
    """,
    # Tasks are found by their words, outcomes and labels in an index, which `_search` builds, and by their times.
    """-- Readers do without this.
    CREATE INDEX tasks_submitted ON tasks (submitted);
    CREATE INDEX tasks_outcome ON tasks (outcome);
    PRAGMA user_version = 13;
    """,
    # Tasks hold the routine that they repeat, answers and decisions the place of its step, and older versions can't
    # read them. The runs of a routine are found by its name.
    """-- Readers do without this.
    ALTER TABLE tasks ADD COLUMN routine TEXT;
    CREATE INDEX tasks_routine ON tasks (routine, number) WHERE routine IS NOT NULL;
    PRAGMA user_version = 14;
    """,
    # Answers and actions of a routine have their guards, and results the facts that their surface told before and after
    # them. Older rows lack all of these: routines that are recorded from them have no such facts. Older versions can't
    # read the new ones.
    "PRAGMA user_version = 15;",
)
"""The migration scripts, one per version; the last line of each sets the version."""


def migrate(connection: sqlite3.Connection, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Migrate the tables to the latest version, in one transaction.

    So a killed process leaves the version before, or nothing of a new file. The transaction of a new file includes the
    first pragma: on its own, the pragma would write a file without our application id.

    The index of tasks is built too, if it is missing and SQLite has FTS5.
    """
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    searched = len(migrations) >= SEARCHED
    if version >= len(migrations) and (not searched or is_current(connection)):
        return
    begin = "BEGIN IMMEDIATE" if version else "BEGIN; PRAGMA auto_vacuum = INCREMENTAL"
    script = "\n".join(migrations[version:])
    try:
        connection.executescript(f"{begin}; {script}")
        if searched:
            build(connection)
        connection.execute("COMMIT;")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def tables_in(connection: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    """Return the names and normalized SQL of all database objects.

    The index of tasks is left out.
    """
    tables = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master")
    return frozenset((name, " ".join(sql.split())) for kind, name, sql in tables if not is_part(kind, name, sql))


@functools.cache
def tables_of(migrations: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """Return the database objects that some migrations make."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, migrations)
        return tables_in(connection)
