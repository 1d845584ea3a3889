"""A program is killed while its LinuxAgent's command runs: the next one follows the command, and repeats nothing."""

from __future__ import annotations

import contextlib
import json
import random
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import forks
from callboard import EventName, Outcome
from callboard.testing import assert_replays
from ssh_server import ssh_server
from support import PATIENCE

PROGRAM = Path(__file__).with_name("shell_program.py")
SECONDS, TASKS, supervised = map(runpy.run_path(str(PROGRAM)).__getitem__, ("SECONDS", "TASKS", "supervised"))


def kill_at(folder: Path, seconds: float | None, section: str, request: str) -> None:
    """Start a program that has the command run, and kill it some time after it was begun; None: after its end."""
    command = [sys.executable, PROGRAM, folder, section, request]
    pipe = subprocess.PIPE
    with forks.Program(command, stdin=pipe, stdout=pipe, stderr=pipe) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"taken\n", child.stderr.read().decode() if child.stderr else ""
        end = time.monotonic() + PATIENCE
        numbers = folder / "work" / "done"
        while not numbers.exists() or (seconds is None and len(numbers.read_text(encoding="utf-8")) < len("1\n" * 6)):
            assert time.monotonic() < end
            time.sleep(0.01)
        time.sleep(SECONDS / 2 if seconds is None else seconds)
        child.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("request_", TASKS)
@pytest.mark.parametrize("where", ["here", "over SSH"])
@pytest.mark.parametrize(
    "seconds",
    [
        0.0,
        pytest.param(None, id="after the command"),
        *(pytest.param(random.uniform(0, 1.2 * SECONDS), marks=pytest.mark.slow, id=f"r{n}") for n in range(20)),  # noqa: S311 - no secret
    ],
)
def test_a_command_is_followed_by_the_next_program(
    tmp_path: Path, seconds: float | None, where: str, request_: str
) -> None:
    (tmp_path / "work").mkdir()
    with contextlib.ExitStack() as stack:
        machine = stack.enter_context(ssh_server(tmp_path / "machine")) if where == "over SSH" else None
        section = json.dumps(machine.section, default=str) if machine else "{}"
        kill_at(tmp_path, seconds, section, request_)
        with supervised(tmp_path, section) as supervisor:
            handle = supervisor.submit(TASKS[request_])
            result = handle.result(PATIENCE)
            events = list(handle.events())
    assert result.outcome is Outcome.FINISHED, result.causes
    assert (tmp_path / "work" / "done").read_text(encoding="utf-8").split() == list("123456")
    ended = {"exit_code": 5, "stdout": "all of it\n", "stderr": ""}
    assert result.output == ({"running": False, **ended} if "background" in request_ else ended)
    probes = [event.data["probe"] for event in events if event.name is EventName.COMMAND_IN_DOUBT]
    assert set(probes) <= {"begun"}
    assert_replays(tmp_path / "journal.db", "count")
