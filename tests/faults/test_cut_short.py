"""A log that was cut short, or spoilt, loses its last rows and nothing before them; the work goes on from there."""

from __future__ import annotations

import os
import shutil
import sqlite3

import pytest

from callboard import Task
from callboard.journal import JournalFile, JournalReader, Row
from callboard.messages import Pause
from support import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="programs are forked, and killed with SIGKILL")


def rows_of(path):
    with JournalReader.open(path) as reader:
        return {line.id: [row.message for row in reader.rows(line.id)] for line in reader.tasks()}


@pytest.mark.parametrize("kept", [0.0, 0.6, 0.97], ids=lambda kept: f"{kept:.0%} of it is left")
def test_a_truncated_log_loses_only_its_last_rows_and_the_work_resumes(trials, kept):
    found = {}

    def cut(folder):
        log = folder / "journal.db-wal"
        found["before"] = rows_of(folder / "journal.db")
        os.truncate(log, int(log.stat().st_size * kept))
        found["after"] = rows_of(folder / "journal.db")

    lives = [{"kills": [("after", "intent", 6)], "then": cut}]
    figures = next(trials.together([lives], tasks=["plan", "gone"]))
    for task_id, rows in found["after"].items():
        assert rows == found["before"][task_id][: len(rows)]
    assert sum(map(len, found["after"].values())) < sum(map(len, found["before"].values()))
    assert figures.kills == 1
    assert (figures.accepted, figures.ended, figures.lost) == (2, 2, 0)


def test_damaged_log_is_read_up_to_its_first_damaged_row(tmp_path, start):
    path = tmp_path / "journal.db"
    supervisor = start(app=lambda request: {"Status": "FINISH"}, journal={"path": path})
    for number in range(20):
        assert supervisor.submit(Task(id=f"t{number}", request="do it", target="memo:one")).result(PATIENCE).ok
    copy = tmp_path / "copy.db"
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    whole = rows_of(path)
    log = tmp_path / "copy.db-wal"
    written = log.read_bytes()
    middle = len(written) * 6 // 10
    log.write_bytes(written[:middle] + b"spoilt" * 100 + written[middle + 600 :])
    file = JournalFile.open(copy)
    left = {task_id: [row.message for row in file.rows(task_id, events=True)] for task_id in whole}
    file.close()
    assert 0 < sum(map(len, left.values())) < sum(map(len, whole.values()))
    assert all(rows == whole[task_id][: len(rows)] for task_id, rows in left.items())


@pytest.fixture
def in_use(tmp_path):
    """A journal that is in use: two rows of a task, committed one by one."""
    path = tmp_path / "in use" / "journal.db"
    file = JournalFile.open(path)
    for message in (Task(id="t", request="do it"), Pause(task_id="t")):
        file.write([Row(1.0, "t", "", message)])
        file.commit()
    yield path
    file.close()


@pytest.mark.parametrize("index", ["an index", "an empty index", "no index"])
@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 56, 4151, 4152, 8272, -4121, -1, None])
def test_a_log_may_end_anywhere_and_the_rows_before_are_there(in_use, tmp_path, size, index):
    left = tmp_path / "journal.db"
    shutil.copy(in_use, left)
    (tmp_path / "journal.db-wal").write_bytes(in_use.with_name("journal.db-wal").read_bytes()[:size])
    if index == "an index":
        shutil.copy(in_use.with_name("journal.db-shm"), tmp_path / "journal.db-shm")
    elif index == "an empty index":
        (tmp_path / "journal.db-shm").write_bytes(bytes(32_768))
    file = JournalFile.open(left)
    rows = [row.message.kind for row in file.rows("t")]
    assert rows == ["task", "pause"][: len(rows)]
    assert len(rows) == (2 if size is None else 1 if size in {-1, -4121} else 0)
    file.write([Row(1.0, "u", "", Task(id="u", request="do it"))])
    file.commit()
    file.close()


def test_a_journal_whose_maker_was_killed_is_made_by_the_next_process(tmp_path, monkeypatch):
    place, stills = tmp_path / "being made", []

    def still(_statement):
        stills.append(shutil.copytree(place, tmp_path / f"still {len(stills)}"))

    def watched(*arguments, connect=sqlite3.connect, **options):
        connection = connect(*arguments, **options)
        connection.set_trace_callback(still)
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", watched)
        JournalFile.open(place / "journal.db").close()
    assert len(stills) > 5
    for folder in stills:
        file = JournalFile.open(folder / "journal.db")
        assert file.unfinished() == ()
        file.close()
