"""A private desktop, started or taken over: what talks to the program that holds it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.desktop._holder import RUNTIME
from callboard.actors.servers.desktop._processes import command_name, environment_of, is_alive

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_HOLDER = Path(__file__).with_name("_holder.py")
_SECONDS = 30.0
_POLL_SECONDS = 0.02
_POLITE_SECONDS, _KILLED_SECONDS = 0.5, 10.0
"""The time limits for processes to end by themselves, and once they are killed."""
_DISPLAY = re.compile(r":\d+")


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
        self._record = record
        self._holder: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        left = _recorded(record)
        self.adopted = left is not None and self._connect(left["runtime"], grace)
        """True if an earlier program has left it."""
        if not self.adopted:
            if left is not None:
                _sweep(left)
            self._holder = _started(record, grace, size, folder)
            made = _recorded(record)
            if made is None or not self._connect(made["runtime"], grace):
                msg = "the private desktop has ended right after its start"
                raise RuntimeError(msg)

    def _connect(self, runtime: str, grace: float) -> bool:
        """Connect to the program that holds a desktop; False if there is none any more."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_SECONDS)
        try:
            connection.connect(f"{runtime}/run/callboard")
        except OSError:
            connection.close()
            return False
        self._connection, self._answers = connection, connection.makefile("r", encoding="utf-8")
        try:
            told = self._ask({"do": "tell", "grace": grace})
        except ToolError:  # its time was just over
            self._disconnect()
            return False
        self._told = told
        self.environment: dict[str, str] = told["environment"]
        """The environment of programs on the desktop."""
        self.pid: int = told["pid"]
        """The process that holds it."""
        return True

    def _disconnect(self) -> None:
        self._answers.close()
        self._connection.close()

    def start(self, command: Sequence[str], environment: Mapping[str, str], call: str = "") -> int:
        """Start a program with a home and a session bus of its own, and give its process.

        So a second window is never that of an earlier process: programs find each other over the session bus, or by
        files in their home.

        Args:
            command: The program, and its arguments.
            environment: What it has in its environment, beside the desktop's.
            call: The id of the call that starts it, which the desktop remembers.

        Raises:
            ToolError: If it can't be started, or the desktop is gone.
        """
        what = {"do": "start", "command": list(command), "environment": dict(environment), "call": call}
        answer = self._ask(what)
        if "error" in answer:
            msg = f"the program can't be started: {answer['error']}"
            raise ToolError(msg)
        return int(answer["pid"])

    def has_started(self, call: str) -> bool | None:
        """Return whether a call has started a program; None where an earlier desktop may have been there for it.

        Raises:
            ToolError: If the desktop is gone.
        """
        return bool(self._ask({"do": "recall", "call": call})["started"]) or (False if self.adopted else None)

    def end(self) -> None:
        """End the desktop and everything on it, and wait until that is done."""
        with contextlib.suppress(ToolError):
            self._ask({"do": "end"})  # no answer comes: the connection is closed by its end
        self._disconnect()
        if self._holder is not None:
            self._holder.wait()
        else:
            _until(lambda: not is_alive(self.pid), _SECONDS)
        if _recorded(self._record) == self._told:
            self._record.unlink()
        _sweep(self._told)

    def _ask(self, what: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            line = ""
            with contextlib.suppress(OSError):
                self._connection.sendall(json.dumps(what).encode() + b"\n")
                line = self._answers.readline()
        if not line.endswith("\n"):
            msg = "the private desktop has ended, with all its windows"
            raise ToolError(msg)
        answer: dict[str, Any] = json.loads(line)
        return answer


def _recorded(record: Path) -> dict[str, Any] | None:
    """Read the record of a desktop; None if there is none, or it tells of nothing that a desktop could have left."""
    try:
        told: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        runtime = Path(told["runtime"])
        known = _DISPLAY.fullmatch(told["environment"]["DISPLAY"]) and runtime.name.startswith(RUNTIME)
        known = known and isinstance(told["display"], int)
        return told if known and runtime.lstat().st_uid == os.getuid() and not runtime.is_symlink() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sweep(told: dict[str, Any]) -> None:
    """End what is left of a desktop whose holder was killed, and remove its files.

    The display and the buses are gone then, and with them all programs that have windows. Those without are found by
    the runtime folder in their environment, which they have inherited.
    """
    runtime, display = Path(told["runtime"]), told["display"]
    for number, seconds in ((signal.SIGTERM, _POLITE_SECONDS), (signal.SIGKILL, _KILLED_SECONDS)):
        _until(functools.partial(_signalled, runtime, number), seconds)
    _until(lambda: not is_alive(display) or command_name(display) != "Xvfb", _KILLED_SECONDS)
    path = Path(f"/tmp/.X11-unix/X{told['environment']['DISPLAY'][1:]}")  # noqa: S108 - where X servers listen
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))  # the number may be another display's by now
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        except OSError:
            pass
    shutil.rmtree(runtime, ignore_errors=True)


def _signalled(runtime: Path, number: signal.Signals) -> bool:
    """Send a signal to all processes that were started on a desktop; True if there is none."""
    pids = (int(each.name) for each in Path("/proc").glob("[0-9]*"))
    left = [pid for pid in pids if environment_of(pid).get("XDG_RUNTIME_DIR") == f"{runtime}/run" and is_alive(pid)]
    for pid in left:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return not left


def _until(is_so: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_so() and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)


def _started(record: Path, grace: float, size: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", str(_HOLDER), str(record), str(grace), size, str(folder)]
    holder = subprocess.Popen(  # this Python, and a file of this package
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
