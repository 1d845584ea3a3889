"""Atomic replacement of files."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from typing import TYPE_CHECKING

from callboard.config import create_own, set_mode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SPARES = ".callboard-*.tmp"
"""The names of files that are half written; a killed process may leave one."""
_STALE_SECONDS = 3600.0
"""Age of a temporary file from which it counts as left behind by a killed process."""


@contextlib.contextmanager
def spare_file(path: Path, data: bytes, mode: int | None) -> Iterator[Path]:
    """Write a new file beside another one, and sync it.

    The body may put it in place by `replace_file` or `publish_file`; else it is deleted.

    Args:
        path: The other file, which need not exist.
        data: The bytes of the new file.
        mode: Its permissions; None: those of any new file.
    """
    spare = path.with_name(f".callboard-{secrets.token_hex(8)}.tmp")
    try:
        with os.fdopen(create_own(spare, mode=0o666 if mode is None else 0o600), "wb") as file:
            file.write(data)
            if mode is not None:
                set_mode(file.fileno(), spare, mode)
            file.flush()
            os.fsync(file.fileno())
        yield spare
    finally:
        spare.unlink(missing_ok=True)


def replace_file(spare: Path, path: Path) -> None:
    """Put a written file in another one's place, in one step.

    A reader sees the old file or the new one, also after a crash. Durable when it returns.
    """
    spare.replace(path)
    sync_folder(path.parent)


def publish_file(spare: Path, path: Path) -> None:
    """Give a written file its name without overwriting another file.

    Neither a hard link nor a rename on Windows overwrites. Both names remain until the first is deleted, except where
    the file was renamed. Durable when it returns.

    Raises:
        FileExistsError: If the name is taken.
    """
    if os.name == "nt":
        spare.rename(path)
        return
    try:
        os.link(spare, path)
    except FileExistsError:
        raise
    except OSError:  # the file system has no hard links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        spare.rename(path)
    sync_folder(path.parent)


def delete_stale_spares(folder: Path) -> None:
    """Delete the old temporary files of killed processes from a folder.

    A young one may belong to another process that is writing.
    """
    oldest = time.time() - _STALE_SECONDS
    for spare in folder.glob(_SPARES):
        with contextlib.suppress(OSError):  # another process deleted it first, or this one may not
            if spare.stat().st_mtime < oldest:
                spare.unlink()


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
