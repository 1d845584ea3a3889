"""Hold one LibreOffice, and have it convert documents.

Started by `_libre_office`; it imports nothing of this package. It reads requests, one line of JSON each: the ``paths``
of documents and the ``filter`` that writes the new format. It answers ``ready`` once, then ``done`` for each request.
When its standard input ends, because the program that started it closed it or was killed, LibreOffice and all other
children are killed.

Arguments: a private folder, which holds the profile, the program ``soffice``, and the address of the new document that
keeps LibreOffice open.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_DEATH_SIGNAL, _SUBREAPER = 1, 36  # of prctl
_NEW_USER, _NEW_NETWORK, _NEW_MOUNTS = 0x10000000, 0x40000000, 0x20000  # of unshare
_PRIVATE, _BIND = 0x44000, 0x1000  # of mount
_VISIBLE = frozenset(
    {"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "nix", "proc", "sbin", "sys", "usr", "var"}
)
"""The top-level folders that LibreOffice may read, beside its own and the private one."""
_MEMORY = 8 << 30
_STARTING_SECONDS = 60
_PAUSE_SECONDS = 0.2


class HolderEndedError(Exception):
    """A request to end, or the end of LibreOffice."""


def isolate(folder: Path, program: str) -> None:
    """Leave all networks, and hide the user's files.

    The operating system lets some users do so. The new namespace has no network interface that is up. Without the right
    to it, the profile alone keeps LibreOffice from fetching anything, and a document may show a picture from a path of
    this machine.
    """
    user, group = os.getuid(), os.getgid()
    spaces = _NEW_NETWORK | _NEW_MOUNTS
    if _LIBC.unshare(spaces) != 0:
        if _LIBC.unshare(_NEW_USER | spaces) != 0:
            return
        with contextlib.suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    with contextlib.suppress(OSError):
        _hide_files(folder, _VISIBLE | {Path(program).resolve().parts[1]})


def _hide_files(folder: Path, visible: frozenset[str]) -> None:
    """Put empty folders over all others but a private one."""
    _mount("none", "/", "", _PRIVATE)
    source = os.open(folder, os.O_PATH)
    names = {entry.name for entry in os.scandir("/") if entry.is_dir(follow_symlinks=False)}
    for name in names - visible:
        _mount("tmpfs", f"/{name}", "tmpfs", 0)
    folder.mkdir(parents=True, exist_ok=True)
    _mount(f"/proc/self/fd/{source}", str(folder), "", _BIND)
    os.close(source)


def _mount(source: str, target: str, kind: str, flags: int) -> None:
    """Mount something.

    Raises:
        OSError: If the operating system does not let this user do so.
    """
    if _LIBC.mount(source.encode(), target.encode(), kind.encode(), flags, None) != 0:
        raise OSError(ctypes.get_errno(), target)


def _prepare() -> None:
    """End with this process, and have a limit of memory."""
    _LIBC.prctl(_DEATH_SIGNAL, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=_prepare,  # noqa: PLW1509 - before any thread
    )


class OfficeHolder:
    """The warm LibreOffice in a private folder, and its clients."""

    def __init__(self, folder: Path, program: str, kept_document: str) -> None:
        binary = Path(program).resolve().with_name("soffice.bin")
        self._folder = folder
        common = [f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--headless", "--norestore", "--nologo"]
        self._client = [program, *common]
        self._kept_document = kept_document
        self._office = [str(binary) if binary.is_file() else program, *common, "--nolockcheck"]
        self._warm: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start LibreOffice.

        Raises:
            HolderEndedError: If it ends, or is not there in time.
        """
        _start([*self._office, "--terminate_after_init"]).wait()  # completes the profile, and asks for a new start
        lock = self._folder / "profile" / ".lock"
        lock.unlink(missing_ok=True)
        # Without an open document it would end after each conversion.
        self._warm = _start([*self._office, self._kept_document])
        until = time.monotonic() + _STARTING_SECONDS
        while not lock.exists():  # it answers from then on
            if self._warm.poll() is not None or time.monotonic() > until:
                raise HolderEndedError
            time.sleep(0.02)

    def convert(self, input_filter: str, output_filter: str, paths: list[str]) -> None:
        """Convert documents into the folder ``out``.

        Without a filter that reads them, LibreOffice chooses one by their names and contents.

        Raises:
            HolderEndedError: If LibreOffice has ended: the client would become one of its own.
        """
        if self._warm is None or self._warm.poll() is not None:
            raise HolderEndedError
        reading = [f"--infilter={input_filter}"] if input_filter else []
        writing = ["--convert-to", output_filter, "--outdir", str(self._folder / "out")]
        _start([*self._client, *reading, *writing, *paths]).wait()
        for child in _children():  # helpers of LibreOffice whose parents have ended
            if child != self._warm.pid:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(child, os.WNOHANG)

    def end(self) -> None:
        """Kill all children, and remove the folder and the socket."""
        sockets = self._sockets()
        while children := _children():
            for child in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, 0)
        for path in sockets:
            path.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _sockets(self) -> list[Path]:
        """Find the sockets of LibreOffice, which it makes in ``/tmp``."""
        if self._warm is None:
            return []
        open_files = set()
        with contextlib.suppress(OSError):
            open_files = {str(entry.readlink()) for entry in Path(f"/proc/{self._warm.pid}/fd").iterdir()}
        lines = [line.split() for line in Path("/proc/self/net/unix").read_text("utf-8", "replace").splitlines()[1:]]
        return [Path(line[7]) for line in lines if f"socket:[{line[6]}]" in open_files and "/OSL_PIPE_" in line[-1]]


def _children() -> list[int]:
    """List the ids of this process's children, those that it inherited too."""
    process_ids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                if int(fields[1]) == os.getpid():
                    process_ids.append(int(entry.name))
    return process_ids


def _end_with(parent: int) -> None:
    """End this process once the program that started it is gone.

    That program's end of the pipe may live on in a process that it forked.
    """
    while os.getppid() == parent:
        time.sleep(_PAUSE_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def _stop(*_: object) -> None:
    raise HolderEndedError


def main(folder: str, program: str, kept_document: str) -> None:
    """Start LibreOffice, and serve requests until the input ends."""
    signal.signal(signal.SIGTERM, _stop)
    _LIBC.prctl(_SUBREAPER, 1)
    parent = os.getppid()
    above = os.open(Path(folder).parent, os.O_PATH)  # its place may be hidden from now on
    isolate(Path(folder), program)  # before there is a thread
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    holder = OfficeHolder(Path(folder), program, kept_document)
    try:
        holder.start()
        _say("ready")
        for line in sys.stdin:
            request = json.loads(line)
            holder.convert(request["input_filter"], request["filter"], request["paths"])
            _say("done")
    except (HolderEndedError, BrokenPipeError):
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        holder.end()
        with contextlib.suppress(OSError):
            os.rmdir(Path(folder).name, dir_fd=above)


if __name__ == "__main__":
    main(*sys.argv[1:])
