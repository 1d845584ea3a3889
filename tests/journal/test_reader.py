"""The reader: it sees what is committed, also in a journal in use, and changes nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from callboard.actors.journal import JournalFile, JournalReader, TaskLine
from callboard.messages import Answer, JournalError, Outcome


def ids(reader):
    return [row.message.id for row in reader.rows("t")]


def test_tasks_are_told_in_a_line_each(opened, place, a_task, a_result):
    journal = opened()
    journal.write([a_task("t", at=1.0), a_task("u", at=2.0, request="go on", session="t")])
    journal.write([a_result("t", at=3.0, outcome=Outcome.REJECTED)])
    journal.commit()
    with JournalReader.open(place) as reader:
        assert reader.tasks() == (
            TaskLine("t", "do it", None, 1.0, 3.0, Outcome.REJECTED),
            TaskLine("u", "go on", "t", 2.0, None, None),
        )


def test_a_plan_is_told_by_its_steps(opened, place, a_task):
    journal = opened()
    journal.write([a_task("t", request="", plan=["open it", "close it"])])
    journal.commit()
    with JournalReader.open(place) as reader:
        assert [task.request for task in reader.tasks()] == ["open it · close it"]


def test_rows_are_read_with_their_events_or_without(opened, place, a_task, an_event):
    journal = opened()
    rows = [a_task("t"), an_event(1)]
    journal.write(rows)
    journal.commit()
    with JournalReader.open(place) as reader:
        assert list(reader.rows("t")) == rows
        assert list(reader.rows("t", events=False)) == rows[:1]


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
    assert {name for name in before if after[name] != before[name]} <= {index}  # what SQLite's processes share


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


def test_a_reader_goes_on_while_the_journal_is_opened_used_and_closed(opened, place, a_row):
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


def test_a_reader_of_what_was_left_goes_on_when_somebody_takes_it_over(opened, writer, place, a_row):
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
def test_what_is_no_journal_is_refused_and_nothing_is_made(tmp_path, everything, content, problem):
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
from callboard.actors.journal import JournalFile, JournalReader
from callboard.messages import JournalError
if os.geteuid() == 0:  # rights do not hold for root
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
path = Path(sys.argv[1])
with JournalReader.open(path) as reader:
    print([row.message.id for row in reader.rows("t")])
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


def look(path):
    """Read a journal, and try to open it, as a user whom its rights bind."""
    ran = subprocess.run(
        [sys.executable, "-c", LOOK, str(path)], cwd=path.parent, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.splitlines()


@pytest.mark.parametrize(
    ("folder_mode", "problem"),
    [(0o555, "can't be locked: Permission denied"), (0o777, "can't be opened: ")],
    ids=["folder", "file"],
)
def test_what_may_not_be_written_can_be_read_and_says_so_when_it_is_opened(open_folder, a_task, folder_mode, problem):
    path = open_folder / "journal.db"
    with closing(JournalFile.open(path)) as journal:
        journal.write([a_task("t")])
        journal.commit()
    path.chmod(0o444)
    before = path.read_bytes()
    open_folder.chmod(folder_mode)
    read, refused = look(path)
    assert read == "['t']"
    assert problem in refused
    assert refused.rpartition("| ")[2] in {"PermissionError", "OperationalError"}
    assert (path.read_bytes(), [each.name for each in open_folder.iterdir()]) == (before, ["journal.db"])


def test_a_reader_leaves_no_file_open(writer, place):
    writer()
    before = len(list(Path("/dev/fd").iterdir()))
    with JournalReader.open(place) as reader:
        assert reader.holder() is not None
        assert len(list(Path("/dev/fd").iterdir())) > before
    assert len(list(Path("/dev/fd").iterdir())) == before
