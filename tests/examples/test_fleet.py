"""The example of a fleet: three machines do one task, through a server of NATS."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path

import pytest

import forks
from support import PATIENCE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "fleet" / "run.py"


def running_commands() -> list[bytes]:
    """List the command lines of all processes."""
    commands = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            commands.append(path.read_bytes())
    return commands


def test_three_machines_do_one_task_and_leave_nothing_running() -> None:
    if shutil.which("nats-server") is None:
        if os.environ.get("REQUIRE_NATS"):
            pytest.fail("nats-server is missing: apt-get install nats-server")
        pytest.skip("nats-server is missing: apt-get install nats-server")
    ran = forks.run([sys.executable, str(EXAMPLE)], timeout=PATIENCE)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = ran.stdout.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["office-1", "finance-3", "archive"]
    assert all(line.endswith("-> finished") for line in lines[:3])
    assert [line.endswith(": holds") for line in lines[3:5]] == [True, True]
    assert lines[5].startswith("finished: ")
    assert len(lines[5].split()[1]) == 64
    assert ran.stderr == ""
    assert [command for command in running_commands() if str(EXAMPLE).encode() in command] == []
