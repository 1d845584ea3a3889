"""Atomic replacement of files."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
import time
from typing import TYPE_CHECKING

from callboard.config import create_own, set_mode

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SPARE = re.compile(r"\.callboard-[0-9a-f]{16}\.tmp")
"""The names of files that are half written; a killed process may leave one."""
_LOCK_SECONDS = 10.0
"""The longest wait for another process that changes files in the same folder."""
_RETRY_SECONDS = 0.002
_STALE_SECONDS = 3600.0
"""Age from which such a file counts as left by a killed process where files can't be locked."""
_ATTEMPTS = 10
"""The number of names that are tried for a new file; another process may take each for a stale one."""


@contextlib.contextmanager
def write_lock(*paths: Path) -> Iterator[None]:
    """Exclude other processes from a check and a change of files.

    The locks are on the files' folders: they leave no files behind, end with the process, and are shared by all
    surfaces. Keep the body short. Programs that do not lock are not excluded. There is no lock on Windows, on file
    systems without locks for folders (NFS), and in folders that this user may not read.

    Raises:
        TimeoutError: If another process keeps a lock for too long. The body does not run.
    """
    with contextlib.ExitStack() as locks:
        for folder in sorted({path.parent for path in paths}):  # in one order, so that two processes can't deadlock
            locks.enter_context(_folder_lock(folder))
        yield


@contextlib.contextmanager
def _folder_lock(folder: Path) -> Iterator[None]:
    if os.name == "nt":
        yield
        return
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        yield
        return
    end = time.monotonic() + _LOCK_SECONDS
    try:
        while _lock(handle) is False:
            if time.monotonic() > end:
                reason = f"another program has locked the folder {folder.name!r} for more than {_LOCK_SECONDS:g} s"
                raise TimeoutError(errno.ETIMEDOUT, reason, str(folder))
            time.sleep(_RETRY_SECONDS)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def spare_file(path: Path, data: bytes, mode: int | None) -> Iterator[Path]:
    """Write a new file beside another one, and sync it.

    The body may put it in place by `replace_file` or `publish_file`; else it is deleted.

    Args:
        path: The other file, which need not exist.
        data: The bytes of the new file.
        mode: Its permissions; None: those of any new file.
    """
    spare, descriptor = _locked_spare(path.parent, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb", closefd=os.name == "nt") as file:
            file.write(data)
            if mode is not None:
                set_mode(file.fileno(), spare, mode)
            file.flush()
            os.fsync(file.fileno())
        yield spare
    finally:
        spare.unlink(missing_ok=True)
        if os.name != "nt":
            os.close(descriptor)


def _locked_spare(folder: Path, mode: int) -> tuple[Path, int]:
    """Create a temporary file, locked until its descriptor is closed.

    The lock ends with the process. So `delete_stale_spares` knows a file that a killed process left from one in use.
    """
    for _ in range(_ATTEMPTS):
        spare = folder / f".callboard-{secrets.token_hex(8)}.tmp"
        descriptor = create_own(spare, mode=mode)
        if _lock(descriptor) is not False and os.fstat(descriptor).st_nlink:
            return spare, descriptor
        os.close(descriptor)  # another process found it before the lock, and deleted it
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(folder))


def _lock(descriptor: int) -> bool | None:
    """Lock a file without waiting.

    Returns whether it is locked now: False if another process has locked it, None if files can't be locked here.
    """
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def replace_file(spare: Path, path: Path) -> None:
    """Put a written file in another one's place, in one step.

    Check the other file, and call this, under its `write_lock`. A reader sees the old file or the new one, also after a
    crash. Durable when it returns.
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
    """Delete this user's temporary files of killed processes from a folder.

    Files in use are locked. Where files can't be locked, old ones are deleted.
    """
    with contextlib.suppress(OSError):  # this process may not list it
        for path in folder.iterdir():
            if _SPARE.fullmatch(path.name):
                with contextlib.suppress(OSError):  # another process deleted it first, or this one may not
                    _delete_if_stale(path)


def _delete_if_stale(spare: Path) -> None:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(spare, flags)
    try:
        file_status = os.fstat(descriptor)
        ours = os.name == "nt" or file_status.st_uid == os.geteuid()
        locked = _lock(descriptor) if ours and stat.S_ISREG(file_status.st_mode) else False
        if locked or (locked is None and file_status.st_mtime < time.time() - _STALE_SECONDS):
            spare.unlink()
    finally:
        os.close(descriptor)


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
