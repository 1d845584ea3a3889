"""Logs, recordings and runs are made for their user alone."""

from __future__ import annotations

import os
import sys

import pytest

from callboard.config import make_private, open_private
from support import FINISH, PATIENCE, command_line, lone

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


def test_what_is_there_stays_as_its_user_made_it(tmp_path):
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
