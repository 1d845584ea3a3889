"""Processes of commands: start, follow, find again and end them.

Each command has a runner process and a folder of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard.config import create_own, own_folder, write_own
from callboard.surfaces._tool_function import InDoubtError, ToolError
from callboard.surfaces.shell._runner import claim, start_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_RUNNER = Path(__file__).with_name("_runner.py")
MOST_BYTES = 20_000_000
"""The most bytes of an output that are kept."""
TAIL_BYTES = 16_000
"""The number of last bytes that are kept of a longer output."""
_POLL_SECONDS = 0.05
_START_SECONDS = 30.0
"""The time limit for the start of the runner."""
_CALLED_OFF = "called off"


class CommandStage(StrEnum):
    """The stage of a command."""

    ABSENT = "absent"
    """The command was never started."""
    RUNNING = "running"
    ENDED = "ended"
    LOST = "lost"
    """The command was started and its runner was killed; its outcome is unknown."""


@dataclass(frozen=True)
class Output:
    """One of the two outputs of a command."""

    path: Path
    """A file with the first `MOST_BYTES` bytes."""
    total: int
    """The number of all bytes."""
    tail: bytes
    """The last `TAIL_BYTES` bytes."""

    def excerpt(self, most: int) -> str:
        """Return the first and last bytes as text, and count the rest."""
        data = self.path.read_bytes() if self.path.exists() else b""
        if self.total <= 2 * most:
            content = data if len(data) == self.total else self.tail  # the file is incomplete if the disk was full
            return content.decode(errors="replace")
        head, tail = data[:most].decode(errors="ignore"), self.tail[-most:].decode(errors="ignore")
        return f"{head}\n… {self.total - 2 * most:,} bytes are left out …\n{tail}"


@dataclass(frozen=True)
class CommandEnd:
    """The outcome of a command."""

    code: int | None
    """The exit code; None if the command was killed."""
    why: str
    """``cancelled`` or ``timed out``; empty if the command ended by itself."""
    error: str
    """The reason why the command could not be started; empty if it was."""
    killed_count: int
    """The number of child processes that were still running and were killed."""
    seconds: float
    out: Output
    err: Output


class CommandProcess(ABC):
    """The process of one command."""

    @abstractmethod
    def stage(self) -> CommandStage:
        """Return the command's stage."""

    @abstractmethod
    def call_off(self) -> bool:
        """Prevent the command's start; return False if it has started already."""

    @abstractmethod
    async def ended(self) -> CommandEnd:
        """Wait for the command's end and return its outcome.

        Raises:
            ToolError: If the command was called off before its start.
            InDoubtError: If the outcome is unknown.
        """

    @abstractmethod
    def output(self) -> tuple[Output, Output]:
        """Return the outputs so far."""

    @abstractmethod
    def cancel(self) -> None:
        """Kill the command with its child processes, or prevent its start.

        Raises:
            ToolError: If the request can't be sent now.
        """


class LocalProcess(CommandProcess):
    """The process of a command on this machine.

    Args:
        folder: The command's folder, which does not exist before its start.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        seconds: float,
        grace: float,
    ) -> None:
        """Start the command.

        Args:
            command: The program and its arguments.
            cwd: The working directory.
            environment: The whole environment.
            seconds: The time limit.
            grace: Seconds for which the command runs on after this program is killed, unless another one takes over.
        """
        if self.folder.exists():
            shutil.rmtree(self.folder)  # it was called off before its start
        own_folder(self.folder)
        request = {
            "command": list(command),
            "cwd": str(cwd),
            "environment": dict(environment),
            "seconds": seconds,
            "grace": grace,
            "most": MOST_BYTES,
            "tail": TAIL_BYTES,
        }
        write_own(self.folder / "request.json", json.dumps(request))
        with os.fdopen(create_own(self.folder / "ended.new"), "wb") as room:  # room for the outcome on a full disk
            os.posix_fallocate(room.fileno(), 0, 4 * TAIL_BYTES + 4096)
        runner = subprocess.Popen(  # this Python, and a file of this package
            [sys.executable, "-I", "-S", str(_RUNNER), str(self.folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        _RUNNERS[:] = [process for process in (*_RUNNERS, runner) if process.poll() is None]

    def stage(self) -> CommandStage:
        if (self.folder / "ended.json").exists():
            return CommandStage.ENDED
        runner = self._runner()
        if runner is None:
            return CommandStage.ABSENT
        if start_of(runner[0]) == runner[1]:
            return CommandStage.RUNNING
        return CommandStage.ENDED if (self.folder / "ended.json").exists() else CommandStage.LOST

    def call_off(self) -> bool:
        own_folder(self.folder)
        return claim(self.folder, _CALLED_OFF) or self._is_called_off()

    async def ended(self) -> CommandEnd:
        begin = time.monotonic()
        while (stage := self.stage()) in {CommandStage.RUNNING, CommandStage.ABSENT}:
            is_late = time.monotonic() - begin > _START_SECONDS
            if stage is CommandStage.ABSENT and (self._is_called_off() or (is_late and self.call_off())):
                msg = "the command was stopped before it began; it was not run"
                raise ToolError(msg)
            await asyncio.sleep(min(_POLL_SECONDS, 0.005 + (time.monotonic() - begin) / 4))
        if stage is not CommandStage.ENDED:
            msg = "the command's runner process was killed; its outcome is unknown"
            raise InDoubtError(msg)
        content: dict[str, Any] = json.loads((self.folder / "ended.json").read_text(encoding="utf-8"))
        return CommandEnd(
            content["code"],
            content["why"],
            content["error"],
            content["left"],
            content["seconds"],
            self._output("out", content.get("out")),
            self._output("err", content.get("err")),
        )

    def output(self) -> tuple[Output, Output]:
        return self._output("out", None), self._output("err", None)

    def cancel(self) -> None:
        runner = None if self.call_off() else self._runner()
        if runner is not None and start_of(runner[0]) == runner[1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(runner[0], signal.SIGTERM)

    def _runner(self) -> tuple[int, str] | None:
        content = self._start_record()
        pid, _, start = content.partition(" ")
        return (int(pid), start) if content not in {"", _CALLED_OFF} else None

    def _is_called_off(self) -> bool:
        return self._start_record() == _CALLED_OFF

    def _start_record(self) -> str:
        try:
            return (self.folder / "begun").read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def _output(self, name: str, content: Mapping[str, Any] | None) -> Output:
        path = self.folder / name
        if content is not None:
            return Output(path, content["total"], bytes.fromhex(content["tail"]))
        data = path.read_bytes() if path.exists() else b""
        return Output(path, len(data), data[-TAIL_BYTES:])


_RUNNERS: list[subprocess.Popen[bytes]] = []
"""The runners that this process has started; finished ones are reaped."""


def folder_of(parent: Path, name: str) -> Path:
    """Return a command's folder; the call's id may have any characters."""
    return parent / hashlib.sha256(name.encode()).hexdigest()[:32]
