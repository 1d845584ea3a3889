"""Facts about processes from the kernel."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return fields[0] not in "ZX"
    return False


def environment_of(pid: int) -> dict[str, str]:
    """Read a process's initial environment; empty if that is not permitted."""
    with contextlib.suppress(OSError):
        parts = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
        return dict(part.split("=", 1) for part in parts if "=" in part)
    return {}


def marks_of(pid: int, names: Collection[str]) -> dict[str, str]:
    """Read a process's environment; its session leader's if it lacks the names.

    Chromium overwrites its environment with its title.
    """
    leader = pid
    with contextlib.suppress(OSError):
        leader = os.getsid(pid)
    for process in (pid, leader):
        environment = environment_of(process)
        if any(name in environment for name in names):
            return environment
    return {}


def command_name(pid: int) -> str:
    """Return the short name of a process's program; empty if it ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip().removesuffix(".bin")
    return ""
