"""Leaks of a piece of work: threads, processes, files and ports."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
import time
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import Self
from unittest import mock

_SECONDS = 5.0
"""The time that threads and processes may take to end."""
_PROC = Path("/proc")
_MARK = "SURFACE_SUITE_LEFT"


class Leftovers:
    """Compares the state before and after a ``with`` block.

    Processes, open files and ports are compared only where /proc exists. Processes are found by a variable that they
    inherit, so that one which left its parent and its session is found too.
    """

    def __init__(self, temporary: Path) -> None:
        """Store `temporary`.

        It is a folder that is made for temporary files of the block.
        """
        self._temporary = temporary

    def __enter__(self) -> Self:
        """Record the state before the block."""
        self._temporary.mkdir()
        self._places = ExitStack()
        self._places.enter_context(mock.patch.object(tempfile, "tempdir", str(self._temporary)))
        self._mark = uuid.uuid4().hex
        variables = {_MARK: self._mark, "TMPDIR": str(self._temporary)}
        self._places.enter_context(mock.patch.dict(os.environ, variables))
        self._threads = set(threading.enumerate())
        self._children = _children()
        self._files = _files()
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the variables."""
        self._places.close()

    def found(self) -> list[str]:
        """Return the names of the leaks.

        They have some seconds to end.
        """
        end = time.monotonic() + _SECONDS
        while (leaks := self._leaks()) and time.monotonic() < end:
            time.sleep(0.02)
        return leaks

    def _leaks(self) -> list[str]:
        gc.collect()
        threads = [f"the thread {thread.name!r}" for thread in threading.enumerate() if thread not in self._threads]
        pids = {*_marked(self._mark), *(_children() - self._children)} - {os.getpid()}
        processes = [f"the process {pid} ({name})" for pid in sorted(pids) if (name := _name(pid))]
        ports = _ports()
        files = [
            f"the port {ports[target]}" if target in ports else f"the open file {target}"
            for fd, target in _files().items()
            if self._files.get(fd) != target
        ]
        temporary = [f"the file {path}" for path in sorted(self._temporary.rglob("*")) if not path.is_dir()]
        return [*threads, *processes, *files, *temporary]


def _files() -> dict[str, str]:
    """Return the open files of this process, by descriptor."""
    targets = {}
    folder = _PROC / "self" / "fd"
    for descriptor in folder.iterdir() if folder.is_dir() else ():
        try:
            target = str(descriptor.readlink())
        except OSError:
            continue  # it was the descriptor of the listing itself
        if not target.startswith(f"{_PROC}/{os.getpid()}/fd"):
            targets[descriptor.name] = target
    return targets


def _ports() -> dict[str, int]:
    """Return the listening ports, by socket."""
    ports = {}
    for name in ("tcp", "tcp6"):
        table = _PROC / "net" / name
        for line in table.read_text().splitlines()[1:] if table.is_file() else ():
            parts = line.split()
            ports[f"socket:[{parts[9]}]"] = int(parts[1].rpartition(":")[2], 16)
    return ports


def _children() -> set[int]:
    return {pid for pid in _pids() if _status(pid).get("PPid") == str(os.getpid())}


def _marked(mark: str) -> set[int]:
    variable = f"{_MARK}={mark}".encode()
    pids = set()
    for pid in _pids():
        try:
            variables = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended, or is another user's
        if variable in variables:
            pids.add(pid)
    return pids


def _pids() -> list[int]:
    return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()] if _PROC.is_dir() else []


def _name(pid: int) -> str:
    """Return a process's name; empty for a zombie."""
    status = _status(pid)
    return "" if status.get("State", "Z").startswith("Z") else status.get("Name", "")


def _status(pid: int) -> dict[str, str]:
    try:
        lines = (_PROC / str(pid) / "status").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
