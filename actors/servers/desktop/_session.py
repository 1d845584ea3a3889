"""A private desktop, started or taken over: what talks to the program that holds it."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard.actors.servers._server import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HOLDER = Path(__file__).with_name("_holder.py")
_SECONDS = 30.0


class Session:
    """A private desktop.

    One that an earlier program has left behind is taken over, with its windows; otherwise a new one is started.

    Args:
        record: The file that tells where the desktop is.
        grace: How many seconds it stays when this program is killed.
        size: The width and height of its screen: ``1280x800``.
        folder: Where programs start.

    Raises:
        RuntimeError: If it can't be started; the text says why.
    """

    def __init__(self, record: Path, *, grace: float, size: str, folder: Path) -> None:
        self._holder: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        connection = _left_behind(record)
        self.adopted = connection is not None
        """Whether an earlier program has left it."""
        if connection is None:
            self._holder = _started(record, grace, size, folder)
            connection = _left_behind(record)
        if connection is None:
            msg = "the private desktop has ended right after its start"
            raise RuntimeError(msg)
        self._connection = connection
        self._answers = connection.makefile("r", encoding="utf-8")
        told = self._ask({"do": "tell"})
        self.environment: dict[str, str] = told["environment"]
        """What programs on the desktop have in their environment."""
        self.pid: int = told["pid"]
        """The process that holds it."""

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Start a program with a home and a session bus of its own, and give its process.

        So a second window is never that of an earlier process: programs find each other over the session bus, or by
        files in their home.

        Args:
            command: The program, and its arguments.
            environment: What it has in its environment, beside the desktop's.

        Raises:
            ToolError: If it can't be started, or the desktop is gone.
        """
        answer = self._ask({"do": "start", "command": list(command), "environment": dict(environment)})
        if "error" in answer:
            msg = f"the program can't be started: {answer['error']}"
            raise ToolError(msg)
        return int(answer["pid"])

    def end(self) -> None:
        """End the desktop and everything on it, and wait until that is done."""
        with contextlib.suppress(OSError, ToolError, ValueError):
            self._ask({"do": "end"})
        self._answers.close()
        self._connection.close()
        if self._holder is not None:
            self._holder.wait()

    def _ask(self, what: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            line = ""
            with contextlib.suppress(OSError):
                self._connection.sendall(json.dumps(what).encode() + b"\n")
                line = self._answers.readline()
        if not line:
            msg = "the private desktop has ended, with all its windows"
            raise ToolError(msg)
        answer: dict[str, Any] = json.loads(line)
        return answer


def _left_behind(record: Path) -> socket.socket | None:
    """Connect to the desktop that a record tells of; None if it is there no more."""
    try:
        address = json.loads(record.read_text(encoding="utf-8"))["socket"]
    except (OSError, ValueError, KeyError):
        return None
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_SECONDS)
    try:
        connection.connect(address)
    except OSError:
        connection.close()
        return None
    return connection


def _started(record: Path, grace: float, size: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", str(_HOLDER), str(record), str(grace), size, str(folder)]
    holder = subprocess.Popen(  # noqa: S603 - this Python, and a file of this package
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert holder.stdout is not None  # noqa: S101 - for the type checker
    with holder.stdout as output:
        said = output.readline()
        if said != b"ready\n":
            rest = (said + output.read()).decode(errors="replace").strip()
            holder.wait()
            msg = f"the private desktop does not start: {rest.rpartition(chr(10))[2] or 'its holder ended'}"
            raise RuntimeError(msg)
    return holder
