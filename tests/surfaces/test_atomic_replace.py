"""Atomic replacement of files, and new files beside existing ones."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import forks
from callboard.surfaces import _atomic_replace, delete_stale_spares, publish_file, replace_file, spare_file, write_lock
from support import PATIENCE


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "one.txt"
    made.write_bytes(b"before")
    return made


def test_file_is_replaced_whole_without_leftovers(path):
    with spare_file(path, b"after", 0o640) as spare:
        assert (path.read_bytes(), spare.read_bytes()) == (b"before", b"after")
        replace_file(spare, path)
    assert path.read_bytes() == b"after"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(path.parent.iterdir()) == [path]


def test_unused_spare_file_is_deleted(path):
    def fail():
        with spare_file(path, b"after", None):
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert path.read_bytes() == b"before"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_replaces_none(path, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", refuse)
    new = path.with_name("two.txt")
    with spare_file(new, b"new", None) as spare:
        with pytest.raises(FileExistsError):
            publish_file(spare, path)
        publish_file(spare, new)
    assert (path.read_bytes(), new.read_bytes()) == (b"before", b"new")


def refuse(_source, _goal):
    """Answer as a file system without hard links and locks does."""
    raise PermissionError


LEAVE = """
import os, sys
from pathlib import Path
from callboard.surfaces import spare_file

with spare_file(Path(sys.argv[1]), b"half", None):
    os.kill(os.getpid(), 9)
"""


def test_only_files_of_killed_processes_are_deleted(path):
    forks.run([sys.executable, "-c", LEAVE, str(path)], timeout=PATIENCE)
    (left,) = path.parent.glob(".callboard-*.tmp")
    theirs = path.with_name(".callboard-notes.tmp")
    theirs.write_text("named by a person")
    link = path.with_name(f".callboard-{'0' * 16}.tmp")
    link.symlink_to(path)
    with spare_file(path, b"after", None) as used:
        delete_stale_spares(path.parent)
        assert (left.exists(), used.exists(), theirs.exists(), link.is_symlink()) == (False, True, True, True)
        replace_file(used, path)
    assert path.read_bytes() == b"after"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_files_of_other_users_are_not_deleted(path):
    spare = path.with_name(f".callboard-{'0' * 16}.tmp")
    spare.write_bytes(b"half")
    os.chown(spare, 12_345, -1)
    delete_stale_spares(path.parent)
    assert spare.exists()


@pytest.mark.parametrize(("age", "stays"), [(0, True), (7_200, False)])
def test_without_locks_only_old_files_are_deleted(path, monkeypatch, age, stays):
    monkeypatch.setattr("callboard.surfaces._atomic_replace.fcntl.flock", refuse)
    spare = path.with_name(f".callboard-{'0' * 16}.tmp")
    spare.write_bytes(b"half")
    os.utime(spare, (time.time() - age, time.time() - age))
    with spare_file(path, b"after", None):
        delete_stale_spares(path.parent)
    assert spare.exists() is stays


def test_a_new_file_that_was_taken_for_a_stale_one_gets_another_name(path, monkeypatch):
    real, deleted = os.fstat, []

    def fstat(descriptor):
        if not deleted:
            deleted.extend(path.parent.glob(".callboard-*.tmp"))
            deleted[0].unlink()
        return real(descriptor)

    monkeypatch.setattr(os, "fstat", fstat)
    with spare_file(path, b"after", None) as spare:
        assert spare != deleted[0]
        replace_file(spare, path)
    assert path.read_bytes() == b"after"


def test_a_folder_that_stays_locked_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(_atomic_replace, "_LOCK_SECONDS", 0.05)
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(TimeoutError, match="another program has locked the folder"), write_lock(tmp_path / "a"):
        (tmp_path / "a").touch()
    os.close(handle)
    with write_lock(tmp_path / "a"):
        assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_leaves_no_lock(tmp_path):
    holder = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], 0), fcntl.LOCK_EX); print(); sys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-S", "-c", holder, tmp_path], stdin=pipe, stdout=pipe) as program:
        program.stdout.readline()
        program.kill()
        program.wait()
        with write_lock(tmp_path / "a"):
            assert list(tmp_path.iterdir()) == []


def test_two_folders_are_locked_in_one_order(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    paths = [tmp_path / "one" / "a", tmp_path / "two" / "b"]

    def often(*order):
        for _ in range(200):
            with write_lock(*order):
                pass

    with ThreadPoolExecutor(2) as side:
        for work in (side.submit(often, *paths), side.submit(often, *reversed(paths))):
            work.result(PATIENCE)


@pytest.mark.parametrize("code", [errno.EBADF, errno.EOPNOTSUPP, errno.ENOLCK])
def test_a_file_system_without_locks_is_written(tmp_path, monkeypatch, code):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with write_lock(tmp_path / "a"):
        (tmp_path / "a").touch()
