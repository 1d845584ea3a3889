"""Android's own adbd, with the programs of the simulated phone.

It runs in its own namespaces, since it listens on all addresses.

This file is also the program that runs in the namespaces: it starts adbd, and forwards connections. A socket belongs to
its network namespace, so the program gets a socket that listens outside, and returns one that listens inside. adbd
listens on vsock too, which has no namespaces: a filter keeps adbd from making such sockets.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from callboard.testing import Phone

ADBD_PORT = 5555
"""The port of adbd, which is fixed."""
_HIDDEN = {"data", "dev", "proc", "sdcard", "sys"}
"""The folders of this machine that adbd does not see."""
_CHUNK = 1 << 16
_SOCKET = 41 if platform.machine() == "x86_64" else 198
"""The number of the system call `socket`: on x86-64, and on nearly all others."""
_NO_VSOCK = (
    (0x20, 0, 0, 0),  # load the call's number
    (0x15, 0, 3, _SOCKET),
    (0x20, 0, 0, 16),  # load its first argument
    (0x15, 0, 1, socket.AF_VSOCK),
    (0x06, 0, 0, 0x00050000 | errno.EAFNOSUPPORT),
    (0x06, 0, 0, 0x7FFF0000),
)
"""A filter of system calls, as BPF instructions: only such a socket is refused."""


def find_missing() -> str:
    """Give the reason why namespaces can't be made; empty if they can."""
    try:
        command = [*_namespaces(), "true"]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except FileNotFoundError:
        return "bwrap is missing"
    except subprocess.CalledProcessError as error:
        return f"no namespaces can be made: {error.stderr.decode(errors='replace').strip()}"
    return ""


def find_adbd() -> Path | None:
    """Find adbd, from Debian's package or unpacked by ``.ci/adbd``."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "callboard", "adbd")
    places = (root / "usr/lib/android-sdk/platform-tools/adbd" for root in (Path("/"), cache))
    return next((each for each in places if os.access(each, os.X_OK)), None)


@contextlib.contextmanager
def adbd(program: Path, phone: Phone) -> Iterator[str]:
    """Run adbd for an open phone, and give its serial."""
    programs = phone.programs
    port = int((programs / "wm").read_text(encoding="ascii").split("/dev/tcp/127.0.0.1/")[1].split()[0])
    ours, theirs = socket.socketpair()
    with socket.create_server(("127.0.0.1", 0)) as outside, tempfile.TemporaryFile() as rules, ours, theirs:
        rules.write(b"".join(struct.pack("=HBBI", *each) for each in _NO_VSOCK))
        rules.seek(0)
        folders = ("--bind", str(programs.parent / "tmp"), "/data/local/tmp")
        folders += ("--bind", str(programs.parent / "sdcard"), "/sdcard")
        given = [str(outside.fileno()), str(theirs.fileno()), str(port), str(program)]
        process = subprocess.Popen(
            [*_namespaces(*folders, "--seccomp", str(rules.fileno())), sys.executable, __file__, *given],
            env={"PATH": f"{programs}:{os.defpath}", "HOME": "/"},
            stdin=subprocess.DEVNULL,
            pass_fds=(outside.fileno(), theirs.fileno(), rules.fileno()),
        )
        theirs.close()
        try:
            _, passed, _, _ = socket.recv_fds(ours, 1, 1)
            if not passed:
                msg = f"adbd does not start: exit code {process.wait()}"
                raise RuntimeError(msg)
            with socket.socket(fileno=passed[0]) as listener:
                _start(_pass_on, listener, port)
                yield f"127.0.0.1:{outside.getsockname()[1]}"
                listener.shutdown(socket.SHUT_RDWR)
        finally:
            process.kill()  # this ends all processes in the namespaces
            process.wait()


def _namespaces(*more: str) -> list[str]:
    """Give the command that runs another command in namespaces."""
    words = ["bwrap", "--unshare-net", "--unshare-pid", "--die-with-parent", "--dev", "/dev", "--proc", "/proc"]
    for entry in sorted(Path("/").iterdir()):
        if entry.is_symlink():
            words += ["--symlink", str(entry.readlink()), str(entry)]
        elif entry.is_dir() and entry.name not in _HIDDEN:
            words += ["--bind" if entry.name == "tmp" else "--ro-bind", str(entry), str(entry)]
    return [*words, *more, "--chdir", "/", "--"]


def _pass_on(listener: socket.socket, port: int) -> None:
    """Forward connections to a port until the listener is shut down."""
    with contextlib.suppress(OSError):
        while True:
            taken, _ = listener.accept()
            _start(_join, taken, port)


def _join(taken: socket.socket, port: int) -> None:
    with taken, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as other:
        ends = {taken: other, other: taken}
        while True:
            for each in select.select(list(ends), [], [])[0]:
                data = each.recv(_CHUNK)
                if not data:
                    return
                ends[each].sendall(data)


def _start(work: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=work, args=arguments, daemon=True).start()


def main(outside: str, answer: str, port: str, program: str) -> None:
    """Start adbd, and forward connections in both directions."""
    libraries = Path(program).parents[2]
    found = map(str, (*libraries.glob("*-linux-gnu/android"), *libraries.glob("*-linux-gnu")))
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(found)}
    quiet = subprocess.DEVNULL
    with subprocess.Popen([program], env=environment, stdin=quiet, stdout=quiet, stderr=quiet) as process:
        while True:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", ADBD_PORT)):
                break
            if process.poll() is not None:
                sys.exit(process.returncode)
            time.sleep(0.002)
        with socket.create_server(("127.0.0.1", int(port))) as inside, socket.socket(fileno=int(answer)) as back:
            socket.send_fds(back, [b"."], [inside.fileno()])
            _pass_on(socket.socket(fileno=int(outside)), ADBD_PORT)


if __name__ == "__main__":
    main(*sys.argv[1:])
