"""Commands that are held by a process of their own, each in a folder: begun, followed, found again, and ended."""

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

from callboard.actors.servers._server import InDoubtError, ToolError
from callboard.actors.servers.shell._runner import claim, start_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_RUNNER = Path(__file__).with_name("_runner.py")
MOST_BYTES = 20_000_000
"""The most bytes of an output that are kept."""
TAIL_BYTES = 16_000
"""The number of its last bytes that are kept, if it is longer."""
_POLL_SECONDS = 0.05
_START_SECONDS = 30.0
"""The time within which an interpreter has started."""
_CALLED_OFF = "called off"


class Stage(StrEnum):
    """The stage of a command."""

    ABSENT = "absent"
    """It was never begun."""
    RUNNING = "running"
    ENDED = "ended"
    LOST = "lost"
    """It was begun, and the process that held it was killed: nothing tells how it ended."""


@dataclass(frozen=True)
class Output:
    """One of the two outputs of a command."""

    path: Path
    """A file with its beginning: `MOST_BYTES` of it."""
    total: int
    """All its bytes."""
    tail: bytes
    """Its last bytes."""

    def shown(self, most: int) -> str:
        """Give its beginning and its end, with a line between that says what is left out."""
        data = self.path.read_bytes() if self.path.exists() else b""
        if self.total <= 2 * most:
            whole = data if len(data) == self.total else self.tail  # a full disk does not have it
            return whole.decode(errors="replace")
        head, tail = data[:most].decode(errors="ignore"), self.tail[-most:].decode(errors="ignore")
        return f"{head}\n… {self.total - 2 * most:,} bytes are left out …\n{tail}"


@dataclass(frozen=True)
class Ended:
    """The end of a command."""

    code: int | None
    """Its exit code; None if it was ended."""
    why: str
    """``cancelled`` or ``timed out``; empty if it ended by itself."""
    error: str
    """Why it could not be started; empty if it was."""
    left: int
    """The number of processes that it had left behind, and that were ended."""
    seconds: float
    out: Output
    err: Output


class Held(ABC):
    """One command."""

    @abstractmethod
    def stage(self) -> Stage:
        """Say how far it is."""

    @abstractmethod
    def call_off(self) -> bool:
        """See to it that it is not begun any more; False if it was."""

    @abstractmethod
    async def ended(self) -> Ended:
        """Wait until it has ended, and say how.

        Raises:
            ToolError: If it will not begin any more.
            InDoubtError: If nothing tells how it ended.
        """

    @abstractmethod
    def output(self) -> tuple[Output, Output]:
        """Give what it has printed so far."""

    @abstractmethod
    def cancel(self) -> None:
        """Have it ended, with everything that it has started. One that is about to begin does not any more.

        Raises:
            ToolError: If that can't be asked for now.
        """


class LocalHeld(Held):
    """A command on this machine.

    Args:
        folder: Its folder. There is none before it is begun.
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
        """Begin it.

        Args:
            command: The program and its arguments.
            cwd: Where it starts.
            environment: All its environment.
            seconds: How long it may take.
            grace: How long it goes on when this program is killed, and no other one takes over.
        """
        if self.folder.exists():
            shutil.rmtree(self.folder)  # it was called off before it began
        self.folder.mkdir(mode=0o700, parents=True)
        request = {
            "command": list(command),
            "cwd": str(cwd),
            "environment": dict(environment),
            "seconds": seconds,
            "grace": grace,
            "most": MOST_BYTES,
            "tail": TAIL_BYTES,
        }
        (self.folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        with (self.folder / "ended.new").open("wb") as room:  # how it ended is written even if the disk is full by then
            os.posix_fallocate(room.fileno(), 0, 4 * TAIL_BYTES + 4096)
        runner = subprocess.Popen(  # this Python, and a file of this package
            [sys.executable, "-I", "-S", str(_RUNNER), str(self.folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        _RUNNERS[:] = [each for each in (*_RUNNERS, runner) if each.poll() is None]

    def stage(self) -> Stage:
        if (self.folder / "ended.json").exists():
            return Stage.ENDED
        holder = self._holder()
        if holder is None:
            return Stage.ABSENT
        if start_of(holder[0]) == holder[1]:
            return Stage.RUNNING
        return Stage.ENDED if (self.folder / "ended.json").exists() else Stage.LOST

    def call_off(self) -> bool:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return claim(self.folder, _CALLED_OFF) or self._is_called_off()

    async def ended(self) -> Ended:
        begin = time.monotonic()
        while (stage := self.stage()) in {Stage.RUNNING, Stage.ABSENT}:
            late = time.monotonic() - begin > _START_SECONDS
            if stage is Stage.ABSENT and (self._is_called_off() or (late and self.call_off())):
                msg = "it was stopped before it began: it was not run"
                raise ToolError(msg)
            await asyncio.sleep(min(_POLL_SECONDS, 0.005 + (time.monotonic() - begin) / 4))
        if stage is not Stage.ENDED:
            msg = "the process that held the command was killed: nothing tells how it ended"
            raise InDoubtError(msg)
        told: dict[str, Any] = json.loads((self.folder / "ended.json").read_text(encoding="utf-8"))
        return Ended(
            told["code"],
            told["why"],
            told["error"],
            told["left"],
            told["seconds"],
            self._output("out", told.get("out")),
            self._output("err", told.get("err")),
        )

    def output(self) -> tuple[Output, Output]:
        return self._output("out", None), self._output("err", None)

    def cancel(self) -> None:
        holder = None if self.call_off() else self._holder()
        if holder is not None and start_of(holder[0]) == holder[1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(holder[0], signal.SIGTERM)

    def _holder(self) -> tuple[int, str] | None:
        told = self._begun()
        pid, _, start = told.partition(" ")
        return (int(pid), start) if told not in {"", _CALLED_OFF} else None

    def _is_called_off(self) -> bool:
        return self._begun() == _CALLED_OFF

    def _begun(self) -> str:
        try:
            return (self.folder / "begun").read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def _output(self, name: str, told: Mapping[str, Any] | None) -> Output:
        path = self.folder / name
        if told is not None:
            return Output(path, told["total"], bytes.fromhex(told["tail"]))
        data = path.read_bytes() if path.exists() else b""
        return Output(path, len(data), data[-TAIL_BYTES:])


_RUNNERS: list[subprocess.Popen[bytes]] = []
"""Those that this process has started: they are its children, and are let go of once they have ended."""


def folder_of(place: Path, name: str) -> Path:
    """Give the folder of a command by the id of its call, which may hold any characters."""
    return place / hashlib.sha256(name.encode()).hexdigest()[:32]
