"""Versions of files beside the journal.

They are stored once a task, on the disk, for their user alone, and deleted with the task.
"""

from __future__ import annotations

import hashlib
import os

import pytest

from callboard.journal import MemoryJournal, Versions, _undo_versions
from callboard.journal._artifacts import sweep, versions_of
from callboard.messages import JournalError


@pytest.fixture
def versions(tmp_path):
    return Versions(tmp_path / "journal.db")


def digest(data):
    return hashlib.sha256(data).hexdigest()


def test_a_version_is_read_by_its_digest(versions):
    path = versions.keep("t", b"before")
    assert path == versions.path("t", digest(b"before"))
    assert versions.read("t", digest(b"before")) == b"before"
    assert versions.read("other", digest(b"before")) is None
    assert versions.read("t", digest(b"after")) is None


def test_the_same_bytes_are_stored_once_a_task(versions):
    first = versions.keep("t", b"before")
    written = first.stat().st_mtime_ns
    assert versions.keep("t", b"before") == first
    assert (first.stat().st_mtime_ns, len(list(first.parent.iterdir()))) == (written, 1)
    assert versions.keep("other", b"before") != first


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_only_its_user_reads_a_version(versions):
    path = versions.keep("t", b"before")
    assert [each.stat().st_mode & 0o777 for each in (path, path.parent, path.parent.parent)] == [0o600, 0o700, 0o700]


def test_a_half_written_version_is_written_again(versions):
    path = versions.keep("t", b"before")
    path.write_bytes(b"bef")
    assert versions.read("t", digest(b"before")) is None
    versions.keep("t", b"before")
    assert versions.read("t", digest(b"before")) == b"before"


def test_a_version_is_synced_before_it_has_its_name(versions, monkeypatch):
    calls = []
    monkeypatch.setattr(_undo_versions.os, "fsync", lambda _: calls.append("file"))
    monkeypatch.setattr(_undo_versions, "sync_folder", lambda folder: calls.append(folder.name))
    path = versions.keep("t", b"before")
    assert calls == ["file", path.parent.name, path.parents[2].name, path.parents[1].name]


def test_a_version_that_can_t_be_written_is_an_error_of_the_journal(versions, tmp_path):
    versions_of(tmp_path / "journal.db").write_text("a file where the folder should be")
    with pytest.raises(JournalError, match="given a version to keep"):
        versions.keep("t", b"before")


def test_a_failed_write_leaves_nothing(versions, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_undo_versions.os, "fsync", full)
    with pytest.raises(JournalError, match="No space left"):
        versions.keep("t", b"before")
    assert list(versions.path("t", digest(b"before")).parent.iterdir()) == []


def test_a_sweep_deletes_the_versions_of_dropped_tasks(versions, tmp_path):
    kept, dropped = versions.keep("kept", b"x"), versions.keep("dropped", b"x")
    sweep(tmp_path / "journal.db", ["kept"])
    assert (kept.exists(), dropped.parent.exists()) == (True, False)


def test_a_journal_in_memory_keeps_no_versions():
    assert MemoryJournal().versions is None
