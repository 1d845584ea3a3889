"""Run Python programs in forks of a process that has imported callboard.

An import takes a second; a fork takes almost no time.

`Program` and `run` stand in for `subprocess.Popen` and `subprocess.run` where the command begins with `sys.executable`.
`interpreter` stands in for `sys.executable` itself, where a shell starts Python.
Tests of how an interpreter starts (its flags, its encodings) keep to `subprocess`.

The process that forks reads an order and the program's three streams from a socket. It forks a keeper, the keeper forks
the program and writes two lines into a pipe: the program's process id, and its exit status once it has ended.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import gc
import importlib
import json
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import types
import warnings
from pathlib import Path
from typing import Any

IMPORTED = (
    "callboard.terminal",
    "callboard.testing",
    "callboard.journal",
    "callboard.supervisor",
    "callboard.surfaces.mailbox",
    "mcp.client.stdio",
    "rich.live",
)
OF_EXTRAS = (
    "PIL.ImageFont",
    "PIL.PngImagePlugin",
    "Xlib.XK",
    "Xlib.display",
    "jeepney.wrappers",
    "playwright.async_api",
)
LONGEST_ORDER = 1 << 18
CLIENT = Path(__file__).with_name("fork_client.py")
ORDERS = "orders"


class Program(subprocess.Popen):
    """A Python program in a fork.

    In a new session, a terminal that is its input is its controlling terminal.
    """

    def _execute_child(self, args, _executable, _preexec_fn, _close_fds, _pass_fds, cwd, env, *rest):
        pipes, new_session = rest[3:9], rest[14]
        given = [pipes[0], pipes[3], pipes[5]]
        order = {
            "arguments": [os.fspath(each) for each in args[1:]],
            "folder": os.fspath(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
            "session": new_session,
        }
        self._status, status = os.pipe()
        self._lines = os.fdopen(self._status)
        nothing = os.open(os.devnull, os.O_RDWR)
        streams = [nothing if end == -1 else end for end in given]
        with _ONE_STARTS:
            forking = _forking()
        socket.send_fds(forking, [json.dumps(order).encode()], [status, *streams])
        os.close(status)
        os.close(nothing)
        self._close_pipe_fds(*pipes)
        self.pid = int(self._lines.readline())
        self._child_created = True

    def _internal_poll(self, *_, **__):
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self.returncode = int(self._lines.readline())
            self._lines.close()
        return self.returncode

    def _wait(self, timeout):
        if self.returncode is None and not select.select([self._status], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self._internal_poll()


def run(command: list[Any], *, timeout: float, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program, and return its output and exit status."""
    with Program(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", **options) as program:
        try:
            out, errors = program.communicate(timeout=timeout)
        finally:
            program.kill()
    return subprocess.CompletedProcess(command, program.returncode, out, errors)


_ONE_STARTS = threading.Lock()


@functools.cache
def interpreter() -> str:
    """Give the path of a program that runs Python programs in forks.

    Signals sent to its process do not reach the fork.
    """
    with _ONE_STARTS:
        _forking()
    folder = _folder()
    program = folder / "python"
    words = shlex.join([sys.executable, "-IS", str(CLIENT), str(folder / ORDERS)])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return str(program)


@functools.cache
def _folder() -> Path:
    """Make the folder of the socket at which the forking process takes orders; no other user may enter it."""
    folder, owner = Path(tempfile.mkdtemp(prefix="forks-")), os.getpid()
    atexit.register(lambda: shutil.rmtree(folder) if os.getpid() == owner else None)  # a fork of this process ends, too
    return folder


@functools.cache
def _forking() -> socket.socket:
    """Start the forking process once; it ends with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(str(_folder() / ORDERS))
    listening.listen()
    given = [theirs.fileno(), listening.fileno()]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CALLBOARD_")}
    command = [sys.executable, __file__, *map(str, given)]
    process = subprocess.Popen(command, pass_fds=given, env=clean, start_new_session=True)
    theirs.close()
    listening.close()
    atexit.register(process.wait)
    atexit.register(ours.close)  # the last one is called first
    return ours


def serve(orders: socket.socket, listening: socket.socket) -> dict[str, Any] | None:
    """Fork for each order.

    The fork gets the order; the parent returns None after the last one.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the keepers are never waited for
    gc.collect()
    gc.freeze()
    while True:
        if orders in select.select([orders, listening], [], [])[0]:
            message, given, _, _ = socket.recv_fds(orders, LONGEST_ORDER, 4)
            if not message:
                return None
        else:
            caller, _ = listening.accept()
            message, streams, _, _ = socket.recv_fds(caller, LONGEST_ORDER, 3)
            given = [caller.detach(), *streams]
        if not os.fork():
            status, *streams = given
            keep(status)
            for number, end in enumerate(streams):
                os.dup2(end, number)
            os.closerange(3, max(given) + 1)
            return json.loads(message)
        for end in given:
            os.close(end)


def keep(status: int) -> None:
    """Fork the program, and return in it; the keeper reports its exit."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    program = os.fork()
    if not program:
        return
    for end in (0, 1, 2):
        os.close(end)
    os.write(status, f"{program}\n".encode())
    _, ended = os.waitpid(program, 0)
    os.write(status, f"{os.waitstatus_to_exitcode(ended)}\n".encode())
    os._exit(0)


def become(order: dict[str, Any]) -> None:
    """Run the order in this process, as the interpreter would."""
    if order["session"]:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, 1 if mode == "w" and (number == 2 or os.isatty(number)) else -1, "utf-8", closefd=False)
        for number, mode in enumerate("rww")
    )
    arguments = order["arguments"]
    first = order["folder"]
    if arguments[:1] == ["-PE"]:
        first = str(Path(__file__).parent)  # it was in `sys.path` before, so it adds nothing
        del arguments[0]
    if arguments[:2] == ["-W", "error"]:
        warnings.simplefilter("error")
        del arguments[:2]
    match arguments:
        case ["-c", code, *rest]:
            sys.argv, sys.path[0] = ["-c", *rest], ""
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(code, "<string>", "exec"), main.__dict__)  # noqa: S102 - as the interpreter does
        case ["-m", module, *rest]:
            sys.argv, sys.path[0] = [module, *rest], first
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [path, *rest] if not path.startswith("-"):
            sys.argv, sys.path[0] = [path, *rest], str(Path(path).resolve().parent)
            runpy.run_path(path, run_name="__main__")
        case _:
            msg = f"no fork understands {arguments}: use subprocess"
            raise ValueError(msg)


def warm_up() -> None:
    """Build what a program with a supervisor builds first: the schemas of tools, and the reader of events."""
    from callboard.messages import read_events
    from callboard.surfaces.android import AndroidSurface
    from callboard.surfaces.desktop import DesktopSurface
    from callboard.surfaces.documents import DocumentSurface
    from callboard.surfaces.shell import ShellSurface

    for surface in (DocumentSurface(Path.cwd()), AndroidSurface(), DesktopSurface(), ShellSurface({})):
        surface.tools()
    read_events("[]")


if __name__ == "__main__":
    for each in IMPORTED:
        importlib.import_module(each)
    for each in OF_EXTRAS:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(each)
    warm_up()
    ordered = serve(*(socket.socket(fileno=int(number)) for number in sys.argv[1:]))
    if ordered is not None:
        become(ordered)
