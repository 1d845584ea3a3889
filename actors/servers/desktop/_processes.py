"""What the kernel tells of processes."""

from __future__ import annotations

import contextlib
from pathlib import Path


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


def command_name(pid: int) -> str:
    """Give the short name of a process's program; empty if it is there no more."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip().removesuffix(".bin")
    return ""
