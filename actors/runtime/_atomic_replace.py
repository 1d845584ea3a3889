"""Atomic replacement of files."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from typing import TYPE_CHECKING

from callboard.config import create_own, set_mode

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NO_LOCKS = frozenset({errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
"""Errors of file systems that can't lock folders."""

_SPARES = ".callboard-*.tmp"
"""The names of files that are half written; a killed process may leave one."""
_LOCK_SECONDS = 10.0
"""The longest wait for another process that changes files in the same folder."""
_RETRY_SECONDS = 0.002
_STALE_SECONDS = 3600.0
"""Age of a temporary file from which it counts as left behind by a killed process."""


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
    if fcntl is None:
        yield
        return
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        yield
        return
    end = time.monotonic() + _LOCK_SECONDS
    try:
        while not _is_locked(handle):
            if time.monotonic() > end:
                why = f"another program has locked the folder {folder.name!r} for more than {_LOCK_SECONDS:g} s"
                raise TimeoutError(errno.ETIMEDOUT, why, str(folder))
            time.sleep(_RETRY_SECONDS)
        yield
    finally:
        os.close(handle)


def _is_locked(handle: int) -> bool:
    """Lock a folder; return False while another process has it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


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
