"""Logs, recordings and runs are made for their user alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from callboard.config import (
    NotOwnError,
    check_own,
    make_private,
    open_own,
    open_private,
    own_folder,
    restrict,
    write_own,
)
from callboard.errors import SettingsError
from support import FINISH, PATIENCE, command_line, lone
from unsafe_paths import UNSAFE, everything, make_unsafe

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")


@pytest.fixture(autouse=True)
def open_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path):
    return path.stat().st_mode & 0o777


def test_a_file_and_the_folders_above_it_are_made_private(tmp_path):
    path = tmp_path / "a" / "b" / "log.jsonl"
    make_private(path.parent)
    open_private(path).close()
    assert [mode(each) for each in (path, path.parent, path.parent.parent)] == [0o600, 0o700, 0o700]
    with pytest.raises(FileExistsError):
        make_private(path.parent)


def test_existing_file_keeps_its_mode_and_content(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("one\n", encoding="utf-8")
    path.chmod(0o640)
    make_private(tmp_path, exist_ok=True)
    with open_private(path) as file:
        file.write("two\n")
    assert (mode(path), path.read_text(encoding="utf-8")) == (0o640, "one\ntwo\n")


def test_a_log_and_a_recording_are_private(start, tmp_path):
    log, record = tmp_path / "logs" / "log.jsonl", tmp_path / "records" / "calls.jsonl"
    supervisor = start(app=[FINISH], models={"record": str(record)}, log={"file": str(log)})
    supervisor.submit(lone()).result(PATIENCE)
    supervisor.stop()
    assert [mode(each) for each in (log, log.parent, record, record.parent)] == [0o600, 0o700, 0o600, 0o700]


def test_a_run_is_private_though_its_original_is_not(tmp_path, monkeypatch):
    folder = tmp_path / "work"
    folder.mkdir(mode=0o755)
    (folder / "callboard.yaml").write_text("models: {app: 'scripted:script.yaml'}\n", encoding="utf-8")
    (folder / "script.yaml").write_text("host: [{Status: FINISH}]\n", encoding="utf-8")
    (folder / "task.yaml").write_text("request: nothing\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    told = command_line("run", folder)
    assert (mode(tmp_path / "runs"), mode(tmp_path / "runs" / "work-1")) == (0o700, 0o700), told.output


# Paths that are not this user's own


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


OPENING = {
    "check": check_own,
    "read and write": lambda path: open_own(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC),
    "append": open_private,
    "restrict": restrict,
    "folder": own_folder,
}


@pytest.mark.parametrize("kind", UNSAFE)
@pytest.mark.parametrize("open_", OPENING.values(), ids=OPENING)
def test_a_path_that_is_not_the_users_own_is_refused(folder, open_, kind):
    path = make_unsafe(folder / "path", kind)
    before = everything(folder)
    with pytest.raises(NotOwnError, match=r"it is|it belongs to user"):
        open_(path)
    assert everything(folder) == before


def test_folder_is_refused_as_a_file_and_a_file_as_a_folder(folder):
    with pytest.raises(NotOwnError, match="it is a folder; name a file"):
        open_private(folder)
    open_private(folder / "file").close()
    with pytest.raises(NotOwnError, match="it is a file; name a folder"):
        own_folder(folder / "file")


@pytest.mark.parametrize("kind", UNSAFE)
def test_a_small_file_is_never_written_through_an_unsafe_path(folder, kind):
    make_unsafe(folder / "state.json.new", kind)
    before = everything(folder)
    with pytest.raises(NotOwnError):
        write_own(folder / "state.json", "{}")
    assert everything(folder) == before


def test_a_small_file_takes_the_place_of_a_link(folder):
    make_unsafe(folder / "state.json", "link")
    write_own(folder / "state.json", "{}")
    assert (folder / "state.json-target").read_text() == "precious"
    assert (folder / "state.json").read_text() == "{}"
    assert not (folder / "state.json").is_symlink()


@pytest.mark.parametrize("kind", UNSAFE)
@pytest.mark.parametrize("there", [True, False])
def test_a_path_exchanged_after_its_check_is_refused(folder, monkeypatch, kind, there):
    path, before, lstat = folder / "log", {}, os.lstat
    if there:
        path.touch()

    def exchanged(name, **given):
        try:
            return lstat(name, **given)
        finally:
            if Path(name) == path and not before:
                path.unlink(missing_ok=True)
                make_unsafe(path, kind)
                before.update(everything(folder))

    monkeypatch.setattr(os, "lstat", exchanged)
    with pytest.raises(OSError, match=r"it is|it belongs to|[Ll]inks|No such device"):
        open_private(path)
    monkeypatch.undo()
    assert everything(folder) == before


PLACES = {
    "journal": lambda path: {"journal": {"path": path}},
    "log": lambda path: {"log": {"file": path}},
    "recording": lambda path: {"models": {"record": path}},
}


@pytest.mark.parametrize("kind", [*UNSAFE, "folder"])
@pytest.mark.parametrize("settings", PLACES.values(), ids=PLACES)
def test_a_supervisor_writes_to_no_unsafe_path(start, folder, settings, kind):
    path = folder / "path"
    path.mkdir(mode=0o755) if kind == "folder" else make_unsafe(path, kind)
    before = everything(folder)
    with pytest.raises(SettingsError, match=r"it is|it belongs to user"):
        start(app=[FINISH], **settings(path))
    assert everything(folder) == before
