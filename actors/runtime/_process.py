"""A program that is really stopped: with all of its children, when its tool call is cancelled or takes too long."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

GRACE_SECONDS = 0.3
"""How long a program that is told to end may take before it is killed."""


@dataclass(frozen=True)
class Finished:
    """How a program ended."""

    code: int
    """Its exit code; negative for the signal that ended it."""
    out: bytes
    err: bytes


async def run_process(
    program: Sequence[str | Path],
    *,
    feed: bytes | None = None,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Finished:
    """Run a program in a process group of its own, for asynchronous tools. No shell is involved.

    If the call is cancelled, because its task is, or because it takes too long, the whole group is told to end, and
    killed after a moment: children that it started go with it. A child that leaves the group by itself (a daemon)
    does not.

    Args:
        program: The program and its arguments.
        feed: What it reads from its standard input; by default that is empty.
        cwd: The folder it starts in.
        env: Its whole environment; by default this process's.

    Raises:
        OSError: If the program can't be started.
    """
    process = await asyncio.create_subprocess_exec(
        *map(str, program),
        stdin=asyncio.subprocess.PIPE if feed is not None else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=cwd,
        env=dict(env) if env is not None else None,
        start_new_session=True,  # a process group of its own; Windows ends trees by the parent's number
    )
    try:
        out, err = await process.communicate(feed)
    except BaseException:
        await _end(process)
        raise
    return Finished(process.returncode if process.returncode is not None else -1, out, err)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process and its group, whatever cancels this meanwhile."""
    _tell(process, signal.SIGTERM)
    with contextlib.suppress(TimeoutError, asyncio.CancelledError):
        await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    _tell(process, getattr(signal, "SIGKILL", signal.SIGTERM))  # also when it ended: its children may not have
    await process.wait()


def _tell(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(process.pid)], check=False, capture_output=True)  # noqa: S607 - Windows' own way to end a tree
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
