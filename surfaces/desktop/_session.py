"""Client of the program that holds a private desktop."""

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

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.desktop._private_display import RUNTIME
from callboard.surfaces.desktop._processes import command_name, environment_of, is_alive

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_HOLDER = Path(__file__).with_name("_private_display.py")
_SECONDS = 30.0
_POLL_SECONDS = 0.02
_POLITE_SECONDS, _KILLED_SECONDS = 0.5, 10.0
"""The time limits for processes to end by themselves, and once they are killed."""
_DISPLAY = re.compile(r":\d+")


class Session:
    """A private desktop.

    A desktop that an earlier program has left is taken over, with its windows. Otherwise a new one is started.

    Args:
        record: The file that records how to connect to the desktop.
        grace: The seconds for which it stays after this program is killed.
        size: The width and height of its screen: ``1280x800``.
        folder: The working directory of programs.

    Raises:
        RuntimeError: If it can't be started; the text gives the reason.
    """

    def __init__(self, record: Path, *, grace: float, size: str, folder: Path) -> None:
        self._record = record
        self._holder: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        old_facts = _recorded(record)
        self.adopted = old_facts is not None and self._connect(old_facts["runtime"], grace)
        """True if an earlier program has left it."""
        if not self.adopted:
            if old_facts is not None:
                _sweep(old_facts)
            self._holder = _start_holder(record, grace, size, folder)
            new_facts = _recorded(record)
            if new_facts is None or not self._connect(new_facts["runtime"], grace):
                msg = "the private desktop ended right after its start"
                raise RuntimeError(msg)

    def _connect(self, runtime: str, grace: float) -> bool:
        """Connect to a desktop's holder; return False if it has ended."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_SECONDS)
        try:
            connection.connect(f"{runtime}/run/callboard")
        except OSError:
            connection.close()
            return False
        self._connection, self._answers = connection, connection.makefile("r", encoding="utf-8")
        try:
            facts = self._ask({"do": "tell", "grace": grace})
        except ToolError:  # its grace period has just ended
            self._disconnect()
            return False
        self._facts = facts
        self.environment: dict[str, str] = facts["environment"]
        """The environment of programs on the desktop."""
        self.pid: int = facts["pid"]
        """The holder's process."""
        return True

    def _disconnect(self) -> None:
        self._answers.close()
        self._connection.close()

    def start(self, command: Sequence[str], environment: Mapping[str, str], call: str = "") -> int:
        """Start a program with its own home and session bus.

        It returns the process. A second window never belongs to an earlier process in this way: programs find
        each other over the session bus, or by files in their home.

        Args:
            command: The program and its arguments.
            environment: Its environment variables, in addition to the desktop's.
            call: The id of the call that starts it, which the desktop remembers.

        Raises:
            ToolError: If it can't be started, or the desktop has ended.
        """
        request = {"do": "start", "command": list(command), "environment": dict(environment), "call": call}
        answer = self._ask(request)
        if "error" in answer:
            msg = f"the program can't be started: {answer['error']}"
            raise ToolError(msg)
        return int(answer["pid"])

    def has_started(self, call: str) -> bool | None:
        """Return whether a call has started a program; None if unknown.

        It is unknown if the program may have been started on an earlier desktop.

        Raises:
            ToolError: If the desktop has ended.
        """
        return bool(self._ask({"do": "recall", "call": call})["started"]) or (False if self.adopted else None)

    def end(self) -> None:
        """End the desktop and everything on it, and wait for its end."""
        with contextlib.suppress(ToolError):
            self._ask({"do": "end"})  # there is no answer: the holder closes the connection when it ends
        self._disconnect()
        if self._holder is not None:
            self._holder.wait()
        else:
            _until(lambda: not is_alive(self.pid), _SECONDS)
        if _recorded(self._record) == self._facts:
            self._record.unlink()
        _sweep(self._facts)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            line = ""
            with contextlib.suppress(OSError):
                self._connection.sendall(json.dumps(request).encode() + b"\n")
                line = self._answers.readline()
        if not line.endswith("\n"):
            msg = "the private desktop has ended, with all its windows"
            raise ToolError(msg)
        answer: dict[str, Any] = json.loads(line)
        return answer


def _recorded(record: Path) -> dict[str, Any] | None:
    """Read a desktop's record; None if it is missing or invalid."""
    try:
        facts: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        runtime = Path(facts["runtime"])
        is_valid = _DISPLAY.fullmatch(facts["environment"]["DISPLAY"]) and runtime.name.startswith(RUNTIME)
        is_valid = is_valid and isinstance(facts["display"], int)
        return facts if is_valid and runtime.lstat().st_uid == os.getuid() and not runtime.is_symlink() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sweep(facts: dict[str, Any]) -> None:
    """End remaining processes of a desktop without a holder; remove its files.

    If the holder was killed, the display and the buses have ended, and with them all programs that have windows. Other
    programs are found by the runtime folder in their inherited environment.
    """
    runtime, display = Path(facts["runtime"]), facts["display"]
    for number, seconds in ((signal.SIGTERM, _POLITE_SECONDS), (signal.SIGKILL, _KILLED_SECONDS)):
        _until(functools.partial(_signalled, runtime, number), seconds)
    _until(lambda: not is_alive(display) or command_name(display) != "Xvfb", _KILLED_SECONDS)
    path = Path(f"/tmp/.X11-unix/X{facts['environment']['DISPLAY'][1:]}")  # noqa: S108 - where X servers listen
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))  # the number may belong to another display by now
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        except OSError:
            pass
    shutil.rmtree(runtime, ignore_errors=True)


def _signalled(runtime: Path, number: signal.Signals) -> bool:
    """Signal all processes that were started on a desktop; True if none."""
    pids = (int(folder.name) for folder in Path("/proc").glob("[0-9]*"))
    alive_pids = [
        pid for pid in pids if environment_of(pid).get("XDG_RUNTIME_DIR") == f"{runtime}/run" and is_alive(pid)
    ]
    for pid in alive_pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return not alive_pids


def _until(is_so: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_so() and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)


def _start_holder(record: Path, grace: float, size: str, folder: Path) -> subprocess.Popen[bytes]:
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
        line = output.readline()
        if line != b"ready\n":
            output_text = (line + output.read()).decode(errors="replace").strip()
            holder.wait()
            msg = f"the private desktop does not start: {output_text.rpartition(chr(10))[2] or 'its holder ended'}"
            raise RuntimeError(msg)
    return holder
