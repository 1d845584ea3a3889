"""Run an MCP server's program, and kill its children when it ends.

This is a separate program that needs only the standard library. As a subreaper it becomes the parent of all
descendants whose own parent has ended, including detached ones, as the first process of a container does. Usage:
``_reaper.py SECONDS COMMAND [ARGUMENT...]``. It ends as the command does, by its exit code or its signal. On
SIGTERM, which it also gets when the program that started it has died, all descendants are sent SIGTERM, and after
SECONDS they are killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

_DEATH_SIGNAL, _SUBREAPER = 1, 36
_LIBC = ctypes.CDLL(None)
_KILL_SECONDS = 5.0
"""The longest that killing may take; a process in an uninterruptible wait outlasts it."""
_TICK = 0.005
_CANNOT_START = 127


class EndRequested(Exception):  # noqa: N818 - not an error
    """A request to end the command."""


def main(seconds: float, command: list[str]) -> NoReturn:
    """Run a command until it ends or SIGTERM arrives."""
    _LIBC.prctl(_SUBREAPER, 1)
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    status = 0
    try:  # around all places where SIGTERM is not ignored
        signal.signal(signal.SIGTERM, _stop)
        starter = os.getppid()
        _LIBC.prctl(_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() == starter:
            server = subprocess.Popen(command, start_new_session=True, preexec_fn=_prepare)  # noqa: PLW1509 - one thread
            _leave_streams()
            status = _status_of(server.pid)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except EndRequested:
        end = time.monotonic() + seconds
        _send(signal.SIGTERM, descendants())
        while descendants() and time.monotonic() < end:
            time.sleep(_TICK)
    except OSError as error:
        os.write(2, f"{error.filename}: {error.strerror}\n".encode(errors="replace"))
        os._exit(_CANNOT_START)
    end = time.monotonic() + _KILL_SECONDS
    while (processes := descendants()) and time.monotonic() < end:
        _send(signal.SIGSTOP, processes)  # so that none can start another one meanwhile
        _send(signal.SIGKILL, processes)
        time.sleep(_TICK)
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def _stop(*_: object) -> None:
    """End the command; a second signal must not interrupt that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise EndRequested


def _prepare() -> None:
    """End the command with this process, and give it the usual signals."""
    _LIBC.prctl(_DEATH_SIGNAL, signal.SIGKILL)
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_DFL)


def _leave_streams() -> None:
    """Close the standard streams, so that the command's end closes them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)


def _status_of(pid: int) -> int:
    """Wait for a child, and reap all others that end before it."""
    ended, status = os.waitpid(-1, 0)
    while ended != pid:
        ended, status = os.waitpid(-1, 0)
    return status


def _send(number: signal.Signals, pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it may be another user's
            os.kill(pid, number)


def descendants() -> list[int]:
    """Return all running descendants; those that have ended are reaped."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                if stat[0] not in b"ZX":
                    children.setdefault(int(stat[1]), []).append(int(entry.name))
    pids = [os.getpid()]
    for pid in pids:
        pids += children.get(pid, ())
    return pids[1:]


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
