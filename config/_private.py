"""Files and folders of this program's own, checked before use.

They are journals, logs, recordings and runs.

This module alone creates them and changes their modes. Whatever is there already is checked first: a regular file or a
folder, of this user, and no link. So a setting that names a device, or a link that another user has put into a shared
folder, changes nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from pathlib import Path

_SAFE = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
"""No link is followed, no pipe waits for its other end, and no terminal becomes this program's."""
_CREATING = os.O_CREAT | os.O_EXCL | os.O_TRUNC
_MOST_RACES = 10
"""The most attempts to open a path at which files come and go."""
_KINDS = {
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFLNK: "a link",
    stat.S_IFREG: "a file",
    stat.S_IFSOCK: "a socket",
}


class NotOwnError(OSError):
    """A path is not a regular file or folder of this user."""

    def __init__(self, path: str | Path, problem: str) -> None:
        super().__init__(errno.EPERM, problem, str(path))


def check_own(path: str | Path, *, folder: bool = False) -> bool:
    """Return whether a path exists; refuse one that is not this user's.

    Raises:
        NotOwnError: If it is anything else than a regular file of this user; with `folder`, than a folder of this user.
        OSError: If it can't be looked at.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    _check(path, status, stat.S_IFDIR if folder else stat.S_IFREG)
    return True


def open_own(path: str | Path, flags: int) -> int:
    """Open a file, and return its descriptor; a missing one is created.

    A new file is readable by its owner only. An existing one keeps its content and its mode.

    Args:
        path: The file.
        flags: Those of `os.open`, such as ``os.O_RDWR``.

    Raises:
        NotOwnError: As `check_own`. It is not opened then: to open a device may have an effect.
        OSError: If it can't be opened.
    """
    for _ in range(_MOST_RACES):
        there = check_own(path)
        try:
            if not there:
                return create_own(path, flags)
            descriptor = os.open(path, flags & ~_CREATING | _SAFE)
        except FileExistsError:  # created since the check
            continue
        except FileNotFoundError:
            if not there:
                raise
            continue  # deleted since the check
        try:
            _check(path, os.fstat(descriptor), stat.S_IFREG)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(path))


def create_own(path: str | Path, flags: int = os.O_WRONLY, mode: int = 0o600) -> int:
    """Create a file, and return its descriptor.

    Raises:
        FileExistsError: If there is something, also a link that leads nowhere.
        OSError: If it can't be created.
    """
    return os.open(path, flags & ~os.O_TRUNC | os.O_CREAT | os.O_EXCL | _SAFE, mode)


def write_own(path: Path, content: str | bytes) -> None:
    """Write a small file atomically, in place of an existing one.

    Raises:
        OSError: If it can't be written.
    """
    new = path.with_name(f"{path.name}.new")
    with os.fdopen(open_own(new, os.O_WRONLY), "wb") as file:
        file.truncate()
        file.write(content.encode() if isinstance(content, str) else content)
    new.replace(path)


def own_folder(folder: Path) -> bool:
    """Create a folder for its owner only, or check an existing one.

    Returns:
        Whether it is new.

    Raises:
        NotOwnError: If there is anything else than a folder of this user.
        OSError: If it can't be created.
    """
    if check_own(folder, folder=True):
        return False
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:  # created since the check
        check_own(folder, folder=True)
        return False
    return True


def restrict(path: Path) -> None:
    """Take the permissions of other users from a file or a folder.

    Raises:
        NotOwnError: If it is not this user's, or neither a file nor a folder.
        OSError: If it can't be opened.
    """
    folder = path.is_dir()
    check_own(path, folder=folder)
    descriptor = os.open(path, os.O_RDONLY | _SAFE)
    try:
        status = os.fstat(descriptor)
        _check(path, status, stat.S_IFDIR if folder else stat.S_IFREG)
        if status.st_mode & 0o077:
            set_mode(descriptor, path, 0o700 if folder else 0o600)
    finally:
        os.close(descriptor)


def set_mode(descriptor: int, path: Path, mode: int) -> None:
    """Set the permissions of an open file.

    Windows has only those of paths.

    Raises:
        OSError: If they can't be set.
    """
    os.chmod(descriptor if os.chmod in os.supports_fd else path, mode)  # noqa: PTH101 - not of a path


def open_private(path: Path) -> TextIO:
    """Open a text file for appending.

    A new file is readable by its owner only; an existing one keeps its mode.

    Raises:
        NotOwnError: If it is anything else than a regular file of this user.
        OSError: If it can't be opened.
    """
    return open(path, "a", encoding="utf-8", opener=open_own)


def make_private(folder: Path, *, exist_ok: bool = False) -> None:
    """Create a folder and its parents, for the owner only.

    Existing folders keep their mode.

    Raises:
        OSError: If it can't be created, or exists and `exist_ok` is false.
    """
    for above in reversed([parent for parent in folder.parents if not parent.exists()]):
        above.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=exist_ok)


def _check(path: str | Path, status: os.stat_result, kind: int) -> None:
    there = stat.S_IFMT(status.st_mode)
    if there != kind:
        what = _KINDS.get(there, "something else")
        raise NotOwnError(path, f"it is {what}; name {_KINDS[kind]}, or a path where nothing is yet")
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        raise NotOwnError(path, f"it belongs to user {status.st_uid}; name another, or run as that user")
