"""Read a user's files: no links, no waiting."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    import io
    from pathlib import Path


def is_link(path: Path) -> bool:
    """Return whether a path is a symbolic link or Windows reparse point."""
    try:
        file_status = path.lstat()
    except OSError:
        return False
    return stat.S_ISLNK(file_status.st_mode) or bool(getattr(file_status, "st_reparse_tag", 0))


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


def read_upload(path: Path, max_bytes: int, refusal: str) -> bytes:
    """Read a file to send elsewhere, bounded by a limit.

    Args:
        path: The file, in the workspace.
        max_bytes: The limit; a longer answer tells that the file is too large.
        refusal: The beginning of the error.

    Raises:
        ToolError: If it is no regular file, or may be one outside of the workspace under another name.
        OSError: If it can't be read.
    """
    with open_file(path) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            msg = f"{refusal}: it is no file"
            raise ToolError(msg)
        if status.st_nlink > 1:
            msg = f"{refusal}: it has other names, which may be outside the workspace"
            raise ToolError(msg)
        return file.read(max_bytes + 1)


def read_file(path: Path) -> bytes:
    """Read a file, without following a link."""
    with open_file(path) as file:
        return file.read()
