"""Migrations of the tables, and refusals of foreign, damaged and newer files."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing

import pytest

from callboard.journal import JournalFile, JournalReader
from callboard.journal._migrations import APPLICATION_ID, MIGRATIONS, migrate, tables_in
from callboard.journal._sqlite import check
from callboard.messages import Answer, JournalDamagedError, JournalError, JournalNewerError

NOW, NEXT = len(MIGRATIONS), len(MIGRATIONS) + 1
LATER = f"ALTER TABLE tasks ADD COLUMN note TEXT; PRAGMA user_version = {NEXT};"
BROKEN = (
    f"ALTER TABLE tasks ADD COLUMN note TEXT; ALTER TABLE nowhere ADD COLUMN note TEXT; PRAGMA user_version = {NEXT};"
)


@pytest.fixture
def closed(opened, place, a_task, a_row):
    """Give the path of a journal with some rows that is closed."""
    journal = opened()
    journal.write([a_task("t"), *(a_row(Answer(id=f"{n}", task_id="t", by="x" * 500)) for n in range(200))])
    journal.commit()
    journal.close()
    return place


def connected(path):
    return closing(sqlite3.connect(path, isolation_level=None))


def changed(path, *statements):
    with connected(path) as connection:
        for statement in statements:
            connection.execute(statement)


def test_each_script_ends_with_its_version():
    for version, script in enumerate(MIGRATIONS, 1):
        assert script.split(";")[-2].split() == ["PRAGMA", "user_version", "=", str(version)]


def test_a_new_journal_is_marked_as_ours_and_has_the_last_version(closed):
    with connected(closed) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_a_new_journal_is_made_in_one_transaction():
    statements = []
    with connected(":memory:") as connection:
        connection.set_trace_callback(statements.append)
        migrate(connection)
    transactions = [line.strip() for line in statements if "BEGIN" in line or "COMMIT" in line]
    assert transactions == ["BEGIN;", "COMMIT;"]


def test_a_migration_keeps_what_is_there(closed):
    with connected(closed) as connection:
        migrate(connection, (*MIGRATIONS, LATER))
        assert connection.execute("PRAGMA user_version").fetchone() == (NEXT,)
        assert connection.execute("SELECT id, note FROM tasks").fetchall() == [("t", None)]
        assert connection.execute("SELECT count(*) FROM rows").fetchone() == (201,)


def test_a_migrated_journal_has_the_tables_of_a_new_one(closed):
    with connected(closed) as old, connected(":memory:") as new:
        for connection in (old, new):
            migrate(connection, (*MIGRATIONS, LATER))
        assert tables_in(old) == tables_in(new)
    check(closed, (*MIGRATIONS, LATER))


@pytest.mark.parametrize("version", [0, 1, 4, 8])
def test_a_process_that_is_killed_between_two_statements_migrates_nothing(place, version):
    """The cache is so small that pages reach the file before the commit."""
    place.parent.mkdir()
    script = "\n".join(MIGRATIONS[version:])
    parts = [part for part in script.split(";") if part.strip()]
    for killed in range(0, len(parts), 3):
        for each in place.parent.iterdir():
            each.unlink()
        process = os.fork()
        if not process:
            _migrate_until(place, version, killed)
        os.waitpid(process, 0)
        if version:
            with JournalReader.open(place, older=True) as reader:
                assert reader.version == version
        else:
            with pytest.raises(JournalError, match="is empty: nothing was written to it yet"):
                JournalReader.open(place)
        JournalFile.open(place).close()
        with JournalReader.open(place) as reader:
            assert reader.version == NOW


def _migrate_until(place, version, killed):
    """Migrate a file from a version, and end as by `kill -9` before a statement."""
    seen = []

    def count(statement):
        seen.append(statement)
        if len(seen) > killed + 2:  # the beginning, and the first pragma
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        connection = sqlite3.connect(place, isolation_level=None)
        migrate(connection, MIGRATIONS[:version])
        connection.execute("PRAGMA cache_size = 1")
        connection.set_trace_callback(count)
        migrate(connection)
    finally:
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_migration_that_fails_changes_nothing(closed):
    with connected(closed) as connection:
        before = tables_in(connection)
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            migrate(connection, (*MIGRATIONS, BROKEN))
        assert tables_in(connection) == before
        assert connection.execute("PRAGMA user_version").fetchone() == (NOW,)
    check(closed)


def test_an_older_journal_is_recognized_but_not_read_before_its_migration(closed, monkeypatch):
    check(closed, (*MIGRATIONS, LATER))
    monkeypatch.setattr("callboard.journal._reader.MIGRATIONS", (*MIGRATIONS, LATER))
    with pytest.raises(JournalError, match=f"has tables of the older version {NOW}"):
        JournalReader.open(closed)


def test_an_empty_file_is_a_new_journal(opened, place):
    place.parent.mkdir()
    place.touch()
    assert opened().unfinished() == ()


# Refusals


def no_journal(path):
    path.write_text("my diary, do not touch")


def another_program(path):
    path.unlink()
    changed(path, "CREATE TABLE theirs (x)", "PRAGMA application_id = 77")


def plain_sqlite(path):
    path.unlink()
    changed(path, "CREATE TABLE tasks (x)")


def newer(path):
    changed(path, "PRAGMA user_version = 99")


def newer_in_the_log(path):
    changed(path, "PRAGMA journal_mode = WAL")
    with connected(path) as connection:
        connection.execute("PRAGMA user_version = 99")
        kept = {each: each.read_bytes() for each in path.parent.iterdir()}
    for each, content in kept.items():
        each.write_bytes(content)


def without_a_table(path):
    changed(path, "DROP TABLE rows")


def with_a_trigger(path):
    changed(path, "CREATE TRIGGER evil AFTER INSERT ON rows BEGIN DELETE FROM tasks; END")


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def cut_to_the_header(path):
    path.write_bytes(path.read_bytes()[:100])


def cut_within_the_header(path):
    path.write_bytes(path.read_bytes()[:50])


def overwritten(path):
    content = bytearray(path.read_bytes())
    for page in range(4096, len(content), 4096):
        content[page : page + 200] = b"\xaa" * 200
    path.write_bytes(content)


def zeroed(path):
    path.write_bytes(bytes(path.stat().st_size))


def emptied_beside_its_log(path):
    path.write_bytes(b"")
    path.with_name(f"{path.name}-wal").write_bytes(b"rows")


def gone_from_beside_its_log(path):
    path.unlink()
    path.with_name(f"{path.name}-wal").write_bytes(b"rows")


def another_program_that_was_killed(path):
    another_program(path)
    path.with_name(f"{path.name}-journal").write_bytes(b"theirs")


@pytest.mark.parametrize(
    ("spoil", "error", "problem"),
    [
        (no_journal, JournalDamagedError, "is no journal"),
        (another_program, JournalDamagedError, "is no journal but another program's SQLite file"),
        (plain_sqlite, JournalDamagedError, "is no journal but another program's SQLite file"),
        (another_program_that_was_killed, JournalDamagedError, "is no journal but another program's SQLite file"),
        (newer, JournalNewerError, f"was written by a newer callboard .* version 99; this one reads up to {NOW}"),
        (newer_in_the_log, JournalNewerError, "was written by a newer callboard"),
        (without_a_table, JournalDamagedError, rf"is damaged \(its tables are not those of version {NOW}"),
        (with_a_trigger, JournalDamagedError, rf"is damaged \(its tables are not those of version {NOW}"),
        (cut, JournalDamagedError, "is damaged"),
        (cut_to_the_header, JournalDamagedError, "is damaged"),
        (cut_within_the_header, JournalDamagedError, "is no journal"),
        (overwritten, JournalDamagedError, "is damaged"),
        (zeroed, JournalDamagedError, "is no journal"),
        (emptied_beside_its_log, JournalDamagedError, "is gone or empty, but rows of it are left"),
        (gone_from_beside_its_log, JournalDamagedError, "is gone or empty, but rows of it are left"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_file_that_is_refused_is_left_as_it_is(closed, everything, spoil, error, problem):
    spoil(closed)
    before = everything(closed.parent)
    with pytest.raises(error, match=problem) as info:
        JournalFile.open(closed)
    assert info.value.path == closed
    assert everything(closed.parent) == before


@pytest.mark.parametrize("spoil", [another_program, newer, without_a_table, cut_to_the_header, zeroed])
def test_reader_refuses_a_journal_that_can_not_be_opened(closed, everything, spoil):
    spoil(closed)
    before = everything(closed.parent)
    with pytest.raises(JournalError):
        JournalReader.open(closed)
    assert everything(closed.parent) == before


def test_a_change_of_the_tables_that_was_broken_off_is_taken_back(closed, opened, tmp_path):
    with connected(closed) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE rows SET body = 'half done'")
        connection.execute("PRAGMA user_version = 2")
        kept = {each.name: each.read_bytes() for each in closed.parent.iterdir()}
    assert f"{closed.name}-journal" in kept
    for name, content in kept.items():
        (closed.parent / name).write_bytes(content)
    assert len(list(opened().rows("t"))) == 201
