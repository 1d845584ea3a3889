"""Program that holds a private desktop with its display and applications.

It is a separate program, and needs only the standard library. After a crash of the program that started it, it keeps
running for a grace period, so that the next program finds the same windows. All programs on the desktop become its
descendants, even if they detach, and end with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import pwd
import re
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax import saxutils

if TYPE_CHECKING:
    from collections.abc import Callable

RUNTIME = "callboard-desktop-"
"""The prefix of the name of a desktop's runtime folder."""
_DEATH_SIGNAL, _SUBREAPER = 1, 36
_POLITE_SECONDS = 1.0
"""The time for programs to end by themselves before they are killed."""
_KILLED_SECONDS = 10.0
"""The time limit for killed programs to end: a program of another user can't be killed."""
_START_SECONDS = 20.0
_OFFICE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Paths/Variables">
<prop oor:name="Work" oor:op="fuse"><value>{}</value></prop>
</item>
</oor:items>
"""
"""LibreOffice's settings, with the folder in which it offers to save documents."""
_LIBC = ctypes.CDLL(None)
_COOKIE = b"MIT-MAGIC-COOKIE-1"


class DesktopEnded(Exception):  # noqa: N818 - no error
    """The desktop has to end."""


class DesktopHolder:
    """The private desktop.

    Args:
        record: The file that records how to connect to it.
        grace: The seconds to wait for another client after the last one has disconnected.
        size: The width and height of the screen.
        folder: The working directory of programs.
    """

    def __init__(self, record: Path, grace: float, size: str, folder: str) -> None:
        self._record = record
        self._grace = grace
        self._size = size
        self._folder = folder
        self._runtime = Path(tempfile.mkdtemp(prefix=RUNTIME))
        self._environment = _environment(self._runtime)
        self._essential: list[subprocess.Popen[bytes]] = []
        """The processes without which there is no desktop: the display first, then the session bus."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._clients: dict[socket.socket, bytes] = {}
        """The connected clients, each with the incomplete line of its next request. They stay connected until this
        process ends, so that a client that ends the desktop can wait for the end."""
        self._calls: set[str] = set()
        """The calls that have started a program."""

    def start(self) -> None:
        """Start the desktop, and write the record.

        Raises:
            OSError: If a program is missing.
            RuntimeError: If a program does not start.
        """
        run = self._runtime / "run"
        for folder in (run, self._runtime / "home", self._runtime / "tmp"):
            folder.mkdir(mode=0o700)
        self._environment["DISPLAY"] = self._start_display()
        self._environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={run}/bus"
        self._essential.append(self._run(["dbus-daemon", "--session", "--nofork", f"--address=unix:path={run}/bus"]))
        self._run(["openbox", "--sm-disable"])
        self._listener.bind(f"{run}/callboard")
        self._listener.listen()
        if not _until((run / "bus").exists, _START_SECONDS):
            msg = "dbus-daemon does not start"
            raise RuntimeError(msg)
        new = self._record.with_suffix(".new")
        new.write_text(json.dumps(self._facts()), encoding="utf-8")
        new.replace(self._record)

    def _facts(self) -> dict[str, Any]:
        facts = {"pid": os.getpid(), "runtime": str(self._runtime), "environment": self._environment}
        return {**facts, "display": self._essential[0].pid}

    def serve(self) -> None:
        """Serve clients until one ends the desktop, or none is left."""
        clients, end = self._clients, time.monotonic() + _START_SECONDS
        while clients or time.monotonic() < end:
            wait = 1.0 if clients else min(1.0, max(0.0, end - time.monotonic()))
            for ready in select.select([self._listener, *clients], [], [], wait)[0]:
                if ready is self._listener:
                    clients[self._listener.accept()[0]] = b""
                elif not self._answers(ready):
                    ready.close()
                    del clients[ready]
                    end = time.monotonic() + self._grace
            _reap()
            if any(process.poll() is not None for process in self._essential):
                raise DesktopEnded  # without the display or the bus there is no desktop

    def _answers(self, client: socket.socket) -> bool:
        """Answer a client's requests; False if it disconnected or sent invalid ones."""
        try:
            data = client.recv(1 << 16)
            if not data:
                return False
            *lines, self._clients[client] = (self._clients[client] + data).split(b"\n")
            for line in lines:
                client.sendall(json.dumps(self._answer(json.loads(line))).encode() + b"\n")
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return True

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "end":
            raise DesktopEnded
        if request["do"] == "start":
            try:
                program = self._start(request["command"], request["environment"])
            except OSError as error:
                return {"error": f"{request['command'][0]}: {error.strerror}"}
            self._calls.add(request["call"])
            return {"pid": program.pid}
        if request["do"] == "recall":
            return {"started": request["call"] in self._calls}
        self._grace = float(request["grace"])
        return self._facts()

    def _start(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start a program with its own home and session bus.

        The accessibility bus is the desktop's.
        """
        if shutil.which(command[0]) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        home = tempfile.mkdtemp(dir=self._runtime / "home")
        _save_in(Path(self._folder).absolute(), Path(home))
        return self._run(["dbus-run-session", "--", *command], {**environment, "HOME": home})

    def _run(
        self, command: list[str], environment: dict[str, str] | None = None, fds: tuple[int, ...] = ()
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # a command of the program that started this one
            command,
            env={**self._environment, **(environment or {})},
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=fds,
            start_new_session=True,
            # the program ends with this process
            preexec_fn=lambda: _LIBC.prctl(_DEATH_SIGNAL, signal.SIGKILL),  # noqa: PLW1509 - it has one thread
        )

    def _start_display(self) -> str:
        """Start the X server, accessible only to this user.

        Key repeat is off: otherwise a key that a killed program has left down would be typed endlessly.
        """
        cookie, authority = secrets.token_bytes(16), self._runtime / "run" / "authority"
        authority.touch(mode=0o600)
        entry = (b"", b"", _COOKIE, cookie)  # for any display
        authority.write_bytes(
            struct.pack(">H", 0xFFFF) + b"".join(struct.pack(">H", len(field)) + field for field in entry)
        )
        read, write = os.pipe()
        command = [
            "Xvfb",
            "-displayfd",
            str(write),
            "-screen",
            "0",
            f"{self._size}x24",
            "-nolisten",
            "tcp",
            "-noreset",
            "-r",
        ]
        self._essential.append(self._run([*command, "-auth", str(authority)], fds=(write,)))
        os.close(write)
        with os.fdopen(read) as answer:
            if not select.select([answer], [], [], _START_SECONDS)[0] or not (number := answer.readline().strip()):
                msg = "Xvfb does not start"
                raise RuntimeError(msg)
        _admit(number, cookie)
        return f":{number}"

    def end(self) -> None:
        """End everything that was started, the display last, and remove the files."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            if json.loads(self._record.read_text(encoding="utf-8"))["pid"] == os.getpid():
                self._record.unlink()
        self._signal(signal.SIGTERM)
        _until(lambda: not self._descendants(), _POLITE_SECONDS)
        _until(lambda: not self._signal(signal.SIGKILL), _KILLED_SECONDS)
        for display in self._essential[:1]:
            display.terminate()  # so it removes its socket and its lock
            try:
                display.wait(_START_SECONDS)
            except subprocess.TimeoutExpired:
                display.kill()
                display.wait()
        shutil.rmtree(self._runtime, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> list[int]:
        """Send a signal to all descendants except the display, and return them."""
        pids = self._descendants()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        return pids

    def _descendants(self) -> list[int]:
        """List all descendants except the display.

        Those whose parent has ended are children of this process.
        """
        _reap()
        parents = _parents()
        below = {os.getpid()}
        while more := {pid for pid, parent in parents if parent in below} - below:
            below |= more
        return sorted(below - {os.getpid(), *(process.pid for process in self._essential[:1])})


def _reap() -> None:
    """Reap children that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _environment(runtime: Path) -> dict[str, str]:
    """Build the programs' environment; only path, language and time zone are inherited."""
    inherited_variables = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ") if name in os.environ}
    return {
        "LANG": "C.UTF-8",
        **inherited_variables,
        "HOME": str(runtime / "home"),
        "XDG_RUNTIME_DIR": str(runtime / "run"),
        "TMPDIR": str(runtime / "tmp"),
        "XDG_SESSION_TYPE": "x11",
        "GDK_BACKEND": "x11",
        "GTK_MODULES": "gail:atk-bridge",
        "QT_ACCESSIBILITY": "1",
        "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
        "QT_QPA_PLATFORM": "xcb",
        "SAL_USE_VCLPLUGIN": "gtk3",
    }


def _save_in(folder: Path, home: Path) -> None:
    """Set the folder in which programs offer to save documents.

    Files in a program's own home are deleted with the desktop. Source: xdg-user-dirs, which escapes the special
    characters of a shell with a backslash. LibreOffice has its own settings.
    """
    quoted = re.sub(r'([\\"$`])', r"\\\1", str(folder))
    dirs = "".join(f'XDG_{name}_DIR="{quoted}"\n' for name in ("DOCUMENTS", "DOWNLOAD", "DESKTOP"))
    for path, text in {
        "user-dirs.dirs": dirs,
        "libreoffice/4/user/registrymodifications.xcu": _OFFICE.format(saxutils.escape(folder.as_uri())),
    }.items():
        file = home / ".config" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _admit(number: str, cookie: bytes) -> None:
    """Admit only this user's programs to the display without the cookie."""
    user = b"localuser\0" + pwd.getpwuid(os.getuid()).pw_name.encode()
    with socket.socket(socket.AF_UNIX) as display:
        display.settimeout(_START_SECONDS)
        display.connect(f"/tmp/.X11-unix/X{number}")  # noqa: S108 - where X servers listen
        display.sendall(struct.pack("<BxHHHHxx", ord("l"), 11, 0, len(_COOKIE), len(cookie)))
        display.sendall(_pad(_COOKIE) + _pad(cookie))
        answer = _read(display, 8)
        if answer[0] != 1:
            msg = "Xvfb refuses its own cookie"
            raise RuntimeError(msg)
        _read(display, 4 * int.from_bytes(answer[6:], "little"))
        change_hosts, insert, interpreted, get_input_focus = 109, 0, 5, 43
        request = struct.pack("<BBHBxH", change_hosts, insert, 2 + len(_pad(user)) // 4, interpreted, len(user))
        display.sendall(request + _pad(user) + struct.pack("<BxH", get_input_focus, 1))
        if _read(display, 32)[0] != 1:  # an error, or the second request's answer: then the first one is done
            msg = "Xvfb does not admit this user"
            raise RuntimeError(msg)


def _read(display: socket.socket, size: int) -> bytes:
    """Read a complete answer, which may arrive in parts."""
    read = b""
    while len(read) < size:
        part = display.recv(size - len(read))
        if not part:
            msg = "Xvfb has closed its connection"
            raise RuntimeError(msg)
        read += part
    return read


def _pad(text: bytes) -> bytes:
    return text + b"\0" * (-len(text) % 4)


def _parents() -> list[tuple[int, int]]:
    """List all processes of the machine with their parents."""
    parents = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                parents.append((int(entry.name), int(fields[1])))
    return parents


def _until(done: Callable[[], object], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _stop(*_: object) -> None:
    raise DesktopEnded


def main(record: str, grace: str, size: str, folder: str) -> None:
    """Hold a desktop until it ends; print ``ready`` once it is usable."""
    signal.signal(signal.SIGTERM, _stop)
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    _LIBC.prctl(_SUBREAPER, 1)
    holder = DesktopHolder(Path(record), float(grace), size, folder)
    try:
        holder.start()
        os.write(1, b"ready\n")
        holder.serve()
    except DesktopEnded:
        pass
    finally:
        holder.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
