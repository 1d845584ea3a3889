"""The exclusive lock of a journal, with the holder's name.

The lock is the operating system's, so a killed process leaves none behind. The library `filelock` is not used: it
truncates the file before it has the lock, and so erases the holder's name.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
import weakref
from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from callboard.config import open_own
from callboard.journal._failures import beside, journal_errors
from callboard.messages import JournalInUseError, Timestamp, Value

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    _READING = os.O_RDWR  # Windows locks no file that is open read-only
    _FAR = 1 << 30  # beyond the text, because locked bytes can't be read

    def _lock(descriptor: int, *, shared: bool = False) -> bool:  # noqa: ARG001 - Windows has one kind of lock
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    _READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK

    def _lock(descriptor: int, *, shared: bool = False) -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


PATIENCE_SECONDS = 0.25
"""The time that `acquire` retries, because `holder_of` takes the lock for a moment, too."""

_PAUSE_SECONDS = 0.01


class JournalHolder(Value):
    """The process that has a journal open."""

    pid: int = Field(ge=0)
    """Its process id; 0 if unknown."""
    host: str
    """The name of its machine."""
    since: Timestamp = Field(ge=0, le=250_000_000_000)
    """When it opened the journal."""


class JournalLock:
    """An exclusive lock on a journal, held from `acquire` to `release`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._path_text = str(path)
        self._descriptor: int | None = descriptor
        status = os.fstat(descriptor)
        self._identity = status.st_ino, status.st_dev
        _held.add(self)

    @classmethod
    def acquire(cls, journal: Path) -> JournalLock:
        """Take the lock, and write the holder into its file.

        Raises:
            JournalInUseError: If another process, or another supervisor of this one, holds it.
            JournalError: If the lock file can't be created or locked.
        """
        path = beside(journal, ".lock")
        patient_until = time.monotonic() + PATIENCE_SECONDS
        with journal_errors(journal, "locked"):
            while (descriptor := _lock_file(path)) is None:
                if time.monotonic() > patient_until:
                    holder = _named(path)
                    raise JournalInUseError(journal, pid=holder.pid, host=holder.host, since=holder.since)
                time.sleep(_PAUSE_SECONDS)
            lock = cls(path, descriptor)
            try:
                _sign(descriptor)
            except OSError:
                lock.release()
                raise
        return lock

    @property
    def intact(self) -> bool:
        """True while the lock is held and its file is in place.

        Otherwise another process may have locked a new file at the same path.
        """
        if self._descriptor is None:
            return False
        try:
            status = os.stat(self._path_text)  # noqa: PTH116 - runs at each commit, and pathlib makes three calls
        except FileNotFoundError:
            return False
        return (status.st_ino, status.st_dev) == self._identity

    def forked(self) -> None:
        """Close a forked process's copy of the lock; the parent keeps it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def release(self) -> None:
        """Release the lock, and delete its file. A second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if _is_at(self._path, descriptor):
            with contextlib.suppress(OSError):  # Windows keeps a file that is open; it is empty by then
                os.ftruncate(descriptor, 0)
                self._path.unlink()
        os.close(descriptor)


_held: weakref.WeakSet[JournalLock] = weakref.WeakSet()


def _forked() -> None:
    """Close the copies of all locks in a forked child.

    Otherwise a child would hold them for as long as it lives, even after its parent was killed.
    """
    for lock in tuple(_held):
        lock.forked()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forked)


def holder_of(journal: Path) -> JournalHolder | None:
    """Return the process that has a journal open, or None.

    No file is changed.
    """
    path = beside(journal, ".lock")
    with journal_errors(journal, "checked for a holder"):
        try:
            descriptor = os.open(path, _READING)
        except FileNotFoundError:
            return None
        try:
            free = _lock(descriptor, shared=True)
        finally:
            os.close(descriptor)
    return None if free else _named(path)


def _lock_file(path: Path) -> int | None:
    """Lock a file, and return its descriptor; None if it is locked."""
    descriptor = open_own(path, os.O_RDWR)
    is_locked = False
    try:
        is_locked = _lock(descriptor) and _is_at(path, descriptor)  # the previous holder may just have deleted the file
    finally:
        if not is_locked:
            os.close(descriptor)
    return descriptor if is_locked else None


def _sign(descriptor: int) -> None:
    holder = JournalHolder(pid=os.getpid(), host=socket.gethostname(), since=time.time())
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, holder.model_dump_json().encode())


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        path_status, descriptor_status = path.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (path_status.st_ino, path_status.st_dev) == (descriptor_status.st_ino, descriptor_status.st_dev)


def _named(path: Path) -> JournalHolder:
    try:
        return JournalHolder.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return JournalHolder(pid=0, host="", since=0.0)
