"""The lock beside a journal: who has it open, and that nobody else may.

It is the operating system's lock on a small file that also says who holds it, so that none is left behind by a process
that was killed. The library `filelock` is not used: it empties the file before it knows whether it gets the lock, and
with it the holder's name.
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

from callboard.actors.journal._failures import beside, journal_errors
from callboard.messages import JournalInUseError, Timestamp, Value

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    _READING = os.O_RDWR  # it locks no file that is open for reading alone
    _WRITING = os.O_RDWR | os.O_CREAT
    _FAR = 1 << 30  # behind the text, since nobody may read what is locked

    def _lock(descriptor: int, *, shared: bool = False) -> bool:  # noqa: ARG001 - there is but one kind
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    _READING = os.O_RDONLY | os.O_NOFOLLOW
    _WRITING = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW

    def _lock(descriptor: int, *, shared: bool = False) -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


PATIENCE_SECONDS = 0.25
"""How long a held lock is tried again: somebody who only asks who holds it has it for a moment."""

_PAUSE_SECONDS = 0.01


class Holder(Value):
    """The process that has a journal open."""

    pid: int = Field(ge=0)
    """Its number; 0 if it did not say."""
    host: str
    """The machine on which it runs."""
    since: Timestamp = Field(ge=0, le=250_000_000_000)
    """When it opened the journal."""


class JournalLock:
    """One holder's exclusive lock on a journal, from `acquire` to `release`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._place = str(path)
        self._descriptor: int | None = descriptor
        own = os.fstat(descriptor)
        self._identity = own.st_ino, own.st_dev
        _held.add(self)

    @classmethod
    def acquire(cls, journal: Path) -> JournalLock:
        """Take the lock, and write down who has it.

        Raises:
            JournalInUseError: If another process, or somebody else in this one, has it.
            JournalError: If the file system can't make it, or must not.
        """
        path = beside(journal, ".lock")
        patient_until = time.monotonic() + PATIENCE_SECONDS
        with journal_errors(journal, "locked"):
            while (descriptor := _taken(path)) is None:
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
        """Whether the file is still the one that was locked: otherwise somebody else may have locked another."""
        if self._descriptor is None:
            return False
        try:
            found = os.stat(self._place)  # noqa: PTH116 - at each commit: pathlib's is three calls
        except FileNotFoundError:
            return False
        return (found.st_ino, found.st_dev) == self._identity

    def forked(self) -> None:
        """Have no part in the lock of the process that this one was forked from; that one keeps it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def release(self) -> None:
        """Give the lock back, and take its file away. A second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if _is_at(self._path, descriptor):
            with contextlib.suppress(OSError):  # Windows keeps a file that is open; an empty one does no harm
                os.ftruncate(descriptor, 0)
                self._path.unlink()
        os.close(descriptor)


_held: weakref.WeakSet[JournalLock] = weakref.WeakSet()


def _forked() -> None:
    """Let go of all locks in a child: else they are held for as long as it lives, after its parent was killed too."""
    for lock in tuple(_held):
        lock.forked()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forked)


def holder_of(journal: Path) -> Holder | None:
    """Tell who has a journal open now; None: nobody. Nothing is created or changed."""
    path = beside(journal, ".lock")
    with journal_errors(journal, "asked for its lock"):
        try:
            descriptor = os.open(path, _READING)
        except FileNotFoundError:
            return None
        try:
            free = _lock(descriptor, shared=True)
        finally:
            os.close(descriptor)
    return None if free else _named(path)


def _taken(path: Path) -> int | None:
    """Lock the file at a path; None if somebody has it."""
    descriptor = os.open(path, _WRITING, 0o600)
    taken = False
    try:
        taken = _lock(descriptor) and _is_at(path, descriptor)  # who had it before may just have taken it away
    finally:
        if not taken:
            os.close(descriptor)
    return descriptor if taken else None


def _sign(descriptor: int) -> None:
    holder = Holder(pid=os.getpid(), host=socket.gethostname(), since=time.time())
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, holder.model_dump_json().encode())


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        found, own = path.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (found.st_ino, found.st_dev) == (own.st_ino, own.st_dev)


def _named(path: Path) -> Holder:
    try:
        return Holder.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return Holder(pid=0, host="", since=0.0)
