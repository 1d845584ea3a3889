"""Read and replace a user's files: no links, atomic, synced."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator
    from pathlib import Path

SPARES = ".callboard-*.tmp"
"""The names of files that are half written; a killed process may leave one."""


def is_link(path: Path) -> bool:
    """Return whether a path is a symbolic link or Windows reparse point."""
    try:
        about = path.lstat()
    except OSError:
        return False
    return stat.S_ISLNK(about.st_mode) or bool(getattr(about, "st_reparse_tag", 0))


def lock_file(path: Path) -> str:
    """Name the lock file of a document open elsewhere; empty if none.

    Office and LibreOffice keep it beside the document.
    """
    name = path.name
    for lock in (f"~${name}", f"~${name[2:]}", f".~lock.{name}#"):
        if os.path.lexists(path.with_name(lock)):
            return lock
    return ""


def open_file(path: Path) -> io.BufferedReader:
    """Open a file, without following a link or waiting for a pipe."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    return open(os.open(path, flags), "rb")  # noqa: PTH123 - opened without following a link; the caller closes it


def read_file(path: Path) -> bytes:
    """Read a file, without following a link."""
    with open_file(path) as file:
        return file.read()


@contextlib.contextmanager
def spare_file(path: Path, data: bytes, mode: int | None) -> Iterator[Path]:
    """Write a new file beside another one, and sync it.

    The body may rename it to the other's name; else it is deleted.

    Args:
        path: The other file, which need not exist.
        data: The bytes of the new file.
        mode: Its permissions; None: those of any new file.
    """
    spare = path.with_name(f".callboard-{secrets.token_hex(8)}.tmp")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with open(os.open(spare, flags, 0o666 if mode is None else 0o600), "wb") as file:  # noqa: PTH123 - must be new
            file.write(data)
            if mode is not None:
                spare.chmod(mode)
            file.flush()
            os.fsync(file.fileno())
        yield spare
    finally:
        spare.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make a rename durable where the platform can.

    Windows can't open folders, some file systems can't sync them, and a user may write to a folder without reading it.
    """
    if os.name == "nt":
        return
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
