"""Facts about processes, as the kernel tells them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


def is_alive(pid: int) -> bool:
    """Return whether a process is there, and does not only wait for its parent to notice its end."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return fields[0] not in "ZX"
    return False


def environment_of(pid: int) -> dict[str, str]:
    """Read the environment that a process was started with; empty where this user may not."""
    with contextlib.suppress(OSError):
        parts = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
        return dict(part.split("=", 1) for part in parts if "=" in part)
    return {}


def marks_of(pid: int, names: Collection[str]) -> dict[str, str]:
    """Read some variables of a process: those of its session's leader where it has none of them.

    Chromium writes its title over its environment.
    """
    leader = pid
    with contextlib.suppress(OSError):
        leader = os.getsid(pid)
    for each in (pid, leader):
        found = environment_of(each)
        if any(name in found for name in names):
            return found
    return {}


def command_name(pid: int) -> str:
    """Give the short name of a process's program; empty if it is there no more."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip().removesuffix(".bin")
    return ""
