"""Paths at which nothing of our own may be written: devices, pipes, links, files of other users."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

UNSAFE = ("device", "block device", "pipe", "socket", "link", "dangling link", "link to a device", "another user's")
_NULL = os.makedev(1, 3)
"""The numbers of the empty device. Tests make a node of their own, and never touch the system's."""
_NO_DISK = os.makedev(240, 0)
"""The numbers of a block device that no driver has."""
_OTHER = 65_534
"""Another user."""


def make_unsafe(path: Path, kind: str) -> Path:
    """Make one of `UNSAFE` at a path; skip the test where that needs root."""
    if os.geteuid() and ("device" in kind or "user" in kind):
        pytest.skip("only root makes device nodes, and files of other users")
    target = path.with_name(f"{path.name}-target")
    match kind:
        case "device":
            os.mknod(path, stat.S_IFCHR | 0o666, _NULL)
        case "block device":
            os.mknod(path, stat.S_IFBLK | 0o660, _NO_DISK)
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
        case "link":
            target.write_text("precious", encoding="utf-8")
            path.symlink_to(target)
        case "dangling link":
            path.symlink_to(target)
        case "link to a device":
            os.mknod(target, stat.S_IFCHR | 0o666, _NULL)
            path.symlink_to(target)
        case _:
            path.touch()
            os.chown(path, _OTHER, _OTHER)
    return path


def everything(folder: Path) -> dict[str, tuple[object, ...]]:
    """Describe all that is in a folder, so that any change of it is noticed."""
    return {str(path): _described(path) for path in sorted(folder.rglob("*"))}


def _described(path: Path) -> tuple[object, ...]:
    about = path.lstat()
    content = path.read_bytes() if stat.S_ISREG(about.st_mode) else b""
    return oct(about.st_mode), about.st_uid, about.st_ino, about.st_rdev, content
