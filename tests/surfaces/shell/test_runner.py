"""The process that holds a command, at its limits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from callboard.surfaces.shell import _runner


def test_a_process_that_can_not_be_killed_is_left_alone(monkeypatch):
    def refuse(pid, number):
        raise PermissionError(pid, number)

    monkeypatch.setattr(_runner, "_KILL_SECONDS", 0.02)
    monkeypatch.setattr(_runner, "_descendants", lambda: iter([1]))
    monkeypatch.setattr(os, "kill", refuse)
    assert _runner._end_all(0.0) == 1


def test_command_whose_output_can_not_be_stored_is_not_started(tmp_path):
    (tmp_path / "err").mkdir()
    command = {"command": ["touch", str(tmp_path / "touched")], "cwd": "/", "environment": {"PATH": "/usr/bin:/bin"}}
    request = {**command, "seconds": 9, "grace": 9, "most": 9, "tail": 9}
    (tmp_path / "request.json").write_text(json.dumps(request), encoding="utf-8")
    subprocess.run([sys.executable, "-I", _runner.__file__, tmp_path], check=True)
    assert json.loads((tmp_path / "ended.json").read_text(encoding="utf-8"))["error"].startswith("Is a directory")
    assert not (tmp_path / "touched").exists()


SIGNALLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import _runner

def signalled(name):
    real = getattr(_runner, name)
    def then(*given):
        try:
            return real(*given)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
    setattr(_runner, name, then)

for name in sys.argv[3:]:
    signalled(name)
_runner.main(_runner.Path(sys.argv[2]))
"""
"""Has a runner get SIGTERM right after each of some functions."""


@pytest.mark.parametrize("places", [["claim"], ["_run"], ["claim", "_stop"]], ids=["early", "late", "twice"])
def test_a_signal_at_any_moment_leaves_a_record_of_the_end(tmp_path, places):
    command = {"command": ["true"], "cwd": "/", "environment": {"PATH": "/usr/bin:/bin"}}
    request = {**command, "seconds": 9, "grace": 9, "most": 9, "tail": 9}
    (tmp_path / "request.json").write_text(json.dumps(request), encoding="utf-8")
    folder = Path(_runner.__file__).parent
    subprocess.run([sys.executable, "-I", "-c", SIGNALLED, folder, tmp_path, *places], check=True)
    ended = json.loads((tmp_path / "ended.json").read_text(encoding="utf-8"))
    assert (ended["code"], ended["why"]) == (None, "cancelled")


def test_exit_record_is_written_into_the_reserved_file(tmp_path):
    room = tmp_path / "ended.new"
    room.write_bytes(bytes(100))
    place = room.stat().st_ino
    _runner._write(tmp_path / "ended.json", {"code": 3})
    assert (tmp_path / "ended.json").read_text(encoding="utf-8") == '{"code": 3}'
    assert (tmp_path / "ended.json").stat().st_ino == place
    assert not room.exists()
