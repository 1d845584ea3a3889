"""The reader: it sees the committed rows, also in a journal in use, and changes nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

import forks
from callboard.journal import JournalFile, JournalReader, TaskLine
from callboard.messages import Answer, JournalError, Outcome
from support import PATIENCE


def ids(reader):
    return [row.message.id for row in reader.rows("t")]


def test_reader_lists_tasks_in_a_line_each(opened, place, a_task, a_result):
    journal = opened()
    journal.write([a_task("t", at=1.0), a_task("u", at=2.0, request="go on", session="t")])
    journal.write([a_result("t", at=3.0, outcome=Outcome.REJECTED)])
    journal.commit()
    with JournalReader.open(place) as reader:
        assert reader.tasks() == (
            TaskLine("t", "do it", None, 1.0, 3.0, Outcome.REJECTED),
            TaskLine("u", "go on", "t", 2.0, None, None),
        )


def test_reader_finds_a_task_by_its_key(opened, place, a_task):
    journal = opened()
    journal.write([a_task("t", key="daily"), a_task("u"), a_task("v", key="weekly")])
    journal.commit()
    with JournalReader.open(place) as reader:
        assert (reader.with_key("daily"), reader.with_key("t"), reader.keys(10)) == ("t", None, ("weekly", "daily"))
        assert [task.key for task in reader.tasks()] == ["daily", None, "weekly"]


def test_reader_lists_a_plan_by_its_steps(opened, place, a_task):
    journal = opened()
    journal.write([a_task("t", request="", plan=["open it", "close it"])])
    journal.commit()
    with JournalReader.open(place) as reader:
        assert [task.request for task in reader.tasks()] == ["open it · close it"]


def test_rows_are_read_with_their_events_or_without(opened, place, a_task, an_event):
    journal = opened()
    rows = [a_task("t")]
    journal.write(rows)
    journal.write_events([an_event(1)], pytest.fail)
    journal.commit()
    with JournalReader.open(place) as reader:
        assert [row.message.kind for row in reader.rows("t")] == ["task", "event"]
        assert list(reader.rows("t", events=False)) == rows


def test_a_closed_journal_is_read_and_nothing_is_left_beside_it(opened, place, everything, a_task):
    journal = opened()
    journal.write([a_task("t")])
    journal.commit()
    journal.close()
    before = everything(place.parent)
    with JournalReader.open(place) as reader:
        assert ids(reader) == ["t"]
        assert reader.holder() is None
    assert everything(place.parent) == before


def test_a_journal_in_use_by_another_process_is_read_while_it_grows(writer, place):
    other = writer()
    with JournalReader.open(place) as reader:
        assert len(ids(reader)) == 101
        other.write(commit=False)
        assert len(ids(reader)) == 101
        other.write(commit=True)
        assert len(ids(reader)) == 301


@pytest.mark.parametrize("killed", [False, True], ids=["in use", "left by a killed process"])
def test_a_journal_is_not_changed_by_a_look(writer, place, everything, killed):
    other = writer()
    if killed:
        other.kill()
    before = everything(place.parent)
    with JournalReader.open(place) as reader:
        assert len(ids(reader)) == 101
    after, index = everything(place.parent), f"{place.name}-shm"
    assert after.keys() == before.keys()
    assert {name for name in before if after[name] != before[name]} <= {index}  # shared by SQLite's processes


def test_a_copy_of_a_journal_in_use_is_read_as_far_as_it_was_copied(writer, place, tmp_path):
    writer()
    copy = tmp_path / "copy.db"
    shutil.copy(place, copy)
    with JournalReader.open(copy) as reader:
        assert list(reader.tasks()) == []
    assert not copy.with_name("copy.db-wal").exists()
    shutil.copy(place.with_name(f"{place.name}-wal"), copy.with_name("copy.db-wal"))
    with JournalReader.open(copy) as reader:
        assert len(ids(reader)) == 101


def test_reader_works_while_the_journal_is_opened_used_and_closed(opened, place, a_row):
    opened().close()
    with JournalReader.open(place) as reader:
        for expected in (["a"], ["a", "b"]):
            journal = opened()
            journal.write([a_row(Answer(id=expected[-1], task_id="t"))])
            journal.commit()
            assert ids(reader) == expected
            journal.close()
            assert ids(reader) == expected
    opened().close()
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_reader_of_an_orphaned_journal_works_after_a_takeover(opened, writer, place, a_row):
    writer().kill()
    with JournalReader.open(place) as reader:
        before = ids(reader)
        journal = opened()
        journal.write([a_row(Answer(id="more", task_id="t"))])
        journal.commit()
        assert ids(reader) == [*before, "more"]


@pytest.mark.parametrize(
    ("content", "problem"), [(None, "is not there"), (b"", "is empty"), (b"text", "is no journal")]
)
def test_reader_refuses_a_file_that_is_not_a_journal_and_creates_nothing(tmp_path, everything, content, problem):
    path = tmp_path / "journal.db"
    if content is not None:
        path.write_bytes(content)
    before = everything(tmp_path)
    with pytest.raises(JournalError, match=problem):
        JournalReader.open(path)
    assert everything(tmp_path) == before


def test_closing_twice_is_closing_once(opened, place):
    opened()
    reader = JournalReader.open(place)
    reader.close()
    reader.close()


LOOK = """
import os, sys
from pathlib import Path
from callboard.journal import JournalFile, JournalReader
from callboard.messages import JournalError
if os.geteuid() == 0:  # rights do not hold for root
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
path = Path(sys.argv[1])
try:
    with JournalReader.open(path) as reader:
        print([row.message.id for row in reader.rows("t")])
except JournalError as error:
    print(error)
try:
    JournalFile.open(path)
except JournalError as error:
    print(error, "|", type(error.__cause__).__name__)
"""


@pytest.fixture
def open_folder():
    """Give a folder that every user can get to."""
    folder = Path(tempfile.mkdtemp(prefix="callboard-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


OTHERS = "it belongs to user 0"
"""Why a journal is refused where the tests run as root, since `look` then runs as another user."""


def look(path):
    """Read a journal, and try to open it, as a user whom its rights bind."""
    ran = forks.run([sys.executable, "-c", LOOK, str(path)], cwd=path.parent, timeout=PATIENCE)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.splitlines()


@pytest.mark.parametrize(
    ("folder_mode", "problem"),
    [(0o555, "can't be locked: Permission denied"), (0o777, "can't be opened: ")],
    ids=["folder", "file"],
)
def test_read_only_journal_can_be_read_but_not_opened_for_writing(open_folder, a_task, folder_mode, problem):
    path = open_folder / "journal.db"
    with closing(JournalFile.open(path)) as journal:
        journal.write([a_task("t")])
        journal.commit()
    path.chmod(0o444)
    before = path.read_bytes()
    open_folder.chmod(folder_mode)
    read, refused = look(path)
    assert read == "['t']"
    assert problem in refused or OTHERS in refused
    assert refused.rpartition("| ")[2] in {"PermissionError", "OperationalError", "NotOwnError"}
    assert (path.read_bytes(), [each.name for each in open_folder.iterdir()]) == (before, ["journal.db"])


def left_in_the_log(path):
    """Leave a journal as a killed process does, but for the index of its log, which may be lost with the machine."""
    path.with_name(f"{path.name}-shm").unlink()


def left_half_undone(path):
    """Leave a change of the tables that was broken off, which has to be taken back before anything can be read."""
    with closing(JournalFile.open(path)):
        pass  # the log's contents are in the file now
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE rows SET body = 'half done'")
        connection.execute("PRAGMA user_version = 2")
        kept = {each: each.read_bytes() for each in path.parent.iterdir()}
    for each, content in kept.items():
        each.write_bytes(content)
    assert path.with_name(f"{path.name}-journal") in kept


@pytest.fixture
def left(place, writer):
    """Leave a journal of 101 rows in one of these ways."""

    def leave(how, path=place):
        writer().kill()
        if path != place:
            for each in place.parent.iterdir():
                shutil.move(each, path.parent / each.name)
        how(path)
        return path

    return leave


@pytest.mark.parametrize("how", [left_in_the_log, left_half_undone])
def test_reader_reads_an_orphaned_journal_in_a_read_only_folder(left, open_folder, everything, how):
    path = left(how, open_folder / "journal.db")
    for each in open_folder.iterdir():
        each.chmod(0o444)
    before = everything(open_folder)
    open_folder.chmod(0o555)
    read, refused = look(path)
    assert read.count(",") == 100
    assert "can't be locked: Permission denied" in refused or OTHERS in refused
    assert everything(open_folder) == before


def test_a_journal_that_needs_repair_is_read_from_a_temporary_copy(left, everything, tmp_path, monkeypatch):
    path = left(left_half_undone)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    before = everything(path.parent)
    with JournalReader.open(path) as reader:
        assert reader.path == path
        assert (len(ids(reader)), len(list(elsewhere.iterdir()))) == (101, 1)
    assert list(elsewhere.iterdir()) == []
    assert everything(path.parent) == before


def test_reader_refuses_an_orphaned_journal_too_large_to_copy(left, monkeypatch, everything):
    path = left(left_half_undone)
    before = everything(path.parent)
    monkeypatch.setattr("callboard.journal._reader.COPIED_BYTES", 1000)
    with pytest.raises(JournalError, match=r"was left by a process that died, and needs recovery"):
        JournalReader.open(path)
    assert everything(path.parent) == before


def test_reader_refuses_a_journal_that_changes_while_copied(left, monkeypatch):
    path = left(left_half_undone)
    copy = shutil.copyfile

    def slowly(source, target):
        copy(source, target)
        os.utime(path, ns=(1, 1))

    monkeypatch.setattr(shutil, "copyfile", slowly)
    with pytest.raises(JournalError, match="changed while it was copied: try again"):
        JournalReader.open(path)


def test_a_log_that_may_not_be_read_is_named(left, open_folder):
    path = left(left_in_the_log, open_folder / "journal.db")
    path.chmod(0o444)
    open_folder.chmod(0o555)
    refused = look(path)
    assert refused[0].startswith(f"the journal {path} can't be read: Permission denied ({path}-wal)")


def test_a_reader_leaves_no_file_open(writer, place):
    writer()
    before = len(list(Path("/dev/fd").iterdir()))
    with JournalReader.open(place) as reader:
        assert reader.holder() is not None
        assert len(list(Path("/dev/fd").iterdir())) > before
    assert len(list(Path("/dev/fd").iterdir())) == before
