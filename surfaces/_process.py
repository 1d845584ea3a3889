"""Programs that end with all their children when their call is cancelled."""

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
"""The time between the request to end and the kill."""


@dataclass(frozen=True)
class Finished:
    """The exit code and the output of a program that ended."""

    code: int
    """The exit code; negative for the signal that ended the program."""
    out: bytes
    err: bytes


async def run_process(
    program: Sequence[str | Path],
    *,
    feed: bytes | None = None,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Finished:
    """Run a program in its own process group; for asynchronous tools.

    No shell is involved. If the call is cancelled, because its task is cancelled or it takes too long, the whole group
    is terminated, and killed after 0.3 seconds, so the program's children end too. A child that left the group (a
    daemon) does not.

    Args:
        program: The program and its arguments.
        feed: The bytes for its standard input, which is empty by default.
        cwd: The folder it starts in.
        env: Its whole environment; by default the one of this process.

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
        start_new_session=True,  # its own process group; Windows ends a tree by the parent's id
    )
    try:
        out, err = await process.communicate(feed)
    except BaseException:
        await _end(process)
        raise
    return Finished(process.returncode if process.returncode is not None else -1, out, err)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process and its group, even if this is cancelled meanwhile."""
    _signal(process, signal.SIGTERM)
    with contextlib.suppress(TimeoutError, asyncio.CancelledError):
        await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))  # also if it has ended: its children may still run
    await process.wait()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(process.pid)], check=False, capture_output=True)  # noqa: S607 - Windows' own way to end a tree
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
