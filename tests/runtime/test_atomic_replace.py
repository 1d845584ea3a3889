"""Atomic replacement of files, and new files beside existing ones."""

from __future__ import annotations

import os

import pytest

from callboard.actors.runtime import delete_stale_spares, publish_file, replace_file, spare_file


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "one.txt"
    made.write_bytes(b"before")
    return made


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(path):
    with spare_file(path, b"after", 0o640) as spare:
        assert (path.read_bytes(), spare.read_bytes()) == (b"before", b"after")
        replace_file(spare, path)
    assert path.read_bytes() == b"after"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(path.parent.iterdir()) == [path]


def test_what_is_not_put_in_place_is_deleted(path):
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
    """Answer as a file system without hard links does."""
    raise PermissionError


def test_only_what_a_killed_process_left_long_ago_is_deleted(path):
    old, young = (path.with_name(f".callboard-{name}.tmp") for name in ("0a", "0b"))
    for spare in (old, young):
        spare.write_bytes(b"half")
    os.utime(old, (0, 0))
    delete_stale_spares(path.parent)
    assert (old.exists(), young.exists(), path.exists()) == (False, True, True)
