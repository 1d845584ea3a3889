"""A program is stopped with all of its children."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from callboard import run_process

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[1], "w").write(str(child.pid))
time.sleep(600)
"""


STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w").write("ready")
time.sleep(600)
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks processes up in /proc")


async def test_program_returns_its_exit_code_and_output():
    program = [sys.executable, "-c", "import sys; print(sys.stdin.read()); sys.stderr.write('oh'); sys.exit(3)"]
    ended = await run_process(program, feed=b"hello")
    assert (ended.code, ended.out.strip(), ended.err) == (3, b"hello", b"oh")


async def test_a_program_that_is_not_there_is_an_error():
    with pytest.raises(OSError, match="no-such-program"):
        await run_process(["no-such-program"])


@pytest.fixture
def told(tmp_path):
    """A pipe by name: a program's output into it is waited for."""
    pipe = tmp_path / "told"
    os.mkfifo(pipe)
    return pipe


async def test_a_cancelled_program_ends_with_its_children(told):
    running = asyncio.ensure_future(run_process([sys.executable, "-c", PARENT, told]))
    child = int(await asyncio.to_thread(told.read_text))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(gone, child)


async def test_program_that_ignores_terminate_is_killed(told):
    running = asyncio.ensure_future(run_process([sys.executable, "-c", STUBBORN, told]))
    await asyncio.to_thread(told.read_text)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def gone(pid):
    """Wait until a process is gone, or left as a zombie that is not waited for yet."""
    while True:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state == "Z":
            return True
