"""Run one command once, keep its output, and kill its child processes.

This is a separate program that needs only the standard library. It survives a crash of the program that started it,
so that the next one finds the running command, or its exit code and output. Usage: ``_runner.py FOLDER``; the folder
has ``request.json``, and the runner writes ``begun``, ``out``, ``err`` and ``ended.json``.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEATH_SIGNAL, _SUBREAPER = 1, 36
_LIBC = ctypes.CDLL(None)
_LIMITS = {resource.RLIMIT_CORE: 0, resource.RLIMIT_NPROC: 10_000, resource.RLIMIT_FSIZE: 20_000_000_000}
"""Bytes of a core dump, processes and threads of the user, bytes of a file."""
_CHUNK = 1 << 16
_OUTPUTS = ("out", "err")
_DRAIN_SECONDS = 0.2
"""The wait for remaining output after the command's end."""
_DYING_SECONDS = 0.05
_KILL_SECONDS = 10.0
"""The time limit for killing a process."""
_TICK = 0.1
_HOST_TICK = 1.0


class OutputStream:
    """One of the command's two outputs.

    The first bytes are written to a file, the last ones are kept in memory, and all are counted.

    Args:
        pipe: The command's end of the output.
        file: The file, unbuffered.
        most: The most bytes of the file.
        tail: The number of last bytes that are kept.
    """

    def __init__(self, pipe: IO[bytes], file: IO[bytes], most: int, tail: int) -> None:
        self.pipe = pipe
        os.set_blocking(pipe.fileno(), False)
        self._file = file
        self._most = most
        self._tail = tail
        self.total = 0
        self.last = b""

    def read(self) -> bool:
        """Read the available bytes; return False at the output's end."""
        try:
            data = os.read(self.pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return True
        room = self._most - self.total
        if room > 0:
            with contextlib.suppress(OSError):  # on a full disk the last bytes are still kept
                self._file.write(data[:room])
        self.total += len(data)
        self.last = (self.last + data)[-self._tail :]
        return bool(data)


class Stopped(Exception):  # noqa: N818 - not an error
    """A request to end the command."""


def main(folder: Path) -> None:
    """Run a folder's command, unless it was started or called off."""
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    _LIBC.prctl(_SUBREAPER, 1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop if number is signal.SIGTERM else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # it may arrive as soon as the start is recorded
    if not claim(folder, f"{os.getpid()} {start_of(os.getpid())}"):
        return
    (folder / "request.json").unlink()  # it may hold a secret
    begin = time.monotonic()
    outcome: dict[str, Any] = {"code": None, "why": "", "error": ""}
    streams: list[OutputStream] = []
    try:  # around all places where SIGTERM is not ignored
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        try:
            outcome["code"] = _run(request, folder, streams, begin)
        except TimeoutError:
            outcome["why"] = "timed out"
        except OSError as error:
            outcome["error"] = f"{error.strerror}: {error.filename}"
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except Stopped:
        if outcome["code"] is None and not outcome["error"]:
            outcome["why"] = outcome["why"] or "cancelled"
    outcome["left"] = _end_all(_DYING_SECONDS if outcome["code"] is not None else 0.0)
    for stream in streams:  # the output until the end
        with selectors.DefaultSelector() as selector:
            selector.register(stream.pipe, selectors.EVENT_READ)
            while stream.read() and selector.select(0):
                pass
    for name, stream in zip(_OUTPUTS, streams, strict=False):
        outcome[name] = {"total": stream.total, "tail": stream.last.hex()}
    outcome["seconds"] = round(time.monotonic() - begin, 3)
    _write(folder / "ended.json", outcome)


def _run(request: dict[str, Any], folder: Path, streams: list[OutputStream], begin: float) -> int:
    files = [(folder / name).open("wb", buffering=0) for name in _OUTPUTS]  # fails early on a full disk
    command = subprocess.Popen(  # the policy has allowed this command
        request["command"],
        cwd=request["cwd"],
        env=request["environment"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=_prepare,  # noqa: PLW1509 - this process has one thread
    )
    end = begin + float(request["seconds"])
    with selectors.DefaultSelector() as selector:
        for file, pipe in zip(files, (command.stdout, command.stderr), strict=True):
            assert pipe is not None  # noqa: S101 - for the type checker
            stream = OutputStream(pipe, file, request["most"], request["tail"])
            streams.append(stream)
            selector.register(pipe, selectors.EVENT_READ, stream)
        host = HostProcess(folder.parent / "host", float(request["grace"]))
        drained_by = None
        while drained_by is None or (selector.get_map() and time.monotonic() < drained_by):
            for key, _ in selector.select(_TICK if drained_by is None else 0.01):
                if not key.data.read():
                    selector.unregister(key.fileobj)
            if drained_by is not None:
                continue
            if command.poll() is not None:
                drained_by = time.monotonic() + _DRAIN_SECONDS
            elif time.monotonic() > end:
                raise TimeoutError
            elif host.is_gone():
                raise Stopped
            elif not selector.get_map():  # the command has closed its outputs, and is still running
                time.sleep(_TICK)
    return command.returncode


class HostProcess:
    """The process that waits for the outcome: the last supervisor's host.

    Args:
        path: The file with its process id and start time.
        grace: Seconds for which it may be missing.
    """

    def __init__(self, path: Path, grace: float) -> None:
        self._path = path
        self._grace = grace
        self._present_at = self._checked_at = time.monotonic()

    def is_gone(self) -> bool:
        """Return whether the host has been missing for too long."""
        now = time.monotonic()
        if now - self._checked_at >= _HOST_TICK:
            self._checked_at = now
            with contextlib.suppress(OSError, ValueError):
                pid, start = self._path.read_text(encoding="utf-8").split()
                if start_of(int(pid)) == start:
                    self._present_at = now
        return now - self._present_at > self._grace + _HOST_TICK


def _end_all(patience: float) -> int:
    """Kill all descendants, including detached ones, and return their number.

    They are stopped before they are killed, so that none can start another one meanwhile.

    Args:
        patience: Seconds that descendants get to end by themselves.
    """
    killed_pids: set[int] = set()
    end = time.monotonic() + patience
    while set(_descendants()) and time.monotonic() < end:
        time.sleep(0.002)
    end = time.monotonic() + _KILL_SECONDS
    while (descendants := set(_descendants())) and time.monotonic() < end:
        killed_pids |= descendants
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in descendants:
                with contextlib.suppress(ProcessLookupError, PermissionError):  # it may be another user's
                    os.kill(pid, number)
        time.sleep(0.002)
    return len(killed_pids)


def _descendants() -> Iterator[int]:
    """Yield all descendants; orphans are children of this process."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    below = [os.getpid()]
    while below:
        pid = below.pop()
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                child_pids = [int(word) for word in (task / "children").read_text(encoding="ascii").split()]
                below += child_pids
                yield from child_pids


def claim(folder: Path, what: str) -> bool:
    """Record once that a command was started or called off.

    Returns:
        False if one of the two was recorded before.
    """
    mine = folder / f".begun-{os.getpid()}"
    _write_text(mine, what)
    try:
        os.link(mine, folder / "begun")
    except FileExistsError:
        return False
    finally:
        mine.unlink()
    return True


def start_of(pid: int) -> str:
    """Return a process's start time; empty if it has ended.

    A process id alone may be reused.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _write(path: Path, content: dict[str, Any]) -> None:
    """Replace a file atomically; its temporary file may exist to reserve space."""
    new = path.with_suffix(".new")
    _write_text(new, json.dumps(content), "r+" if new.exists() else "w")
    new.replace(path)


def _write_text(path: Path, text: str, mode: str = "w") -> None:
    with path.open(mode, encoding="utf-8") as file:
        file.write(text)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


def _prepare() -> None:
    """Bind the command's life to this process, and limit its resources."""
    _LIBC.prctl(_DEATH_SIGNAL, signal.SIGKILL)
    for kind, most in _LIMITS.items():
        allowed = resource.getrlimit(kind)[1]
        least = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(kind, (least, least))


def _stop(*_: object) -> None:
    """End the command; a second signal must not interrupt that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Stopped


if __name__ == "__main__":
    main(Path(sys.argv[1]))
