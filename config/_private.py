"""Private files and folders: logs and recordings may be confidential."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from pathlib import Path


def open_private(path: Path) -> TextIO:
    """Open a text file for appending.

    A new file is readable by its owner only; an existing one keeps its mode.

    Raises:
        OSError: If it can't be opened.
    """
    return open(path, "a", encoding="utf-8", opener=_opener)


def make_private(folder: Path, *, exist_ok: bool = False) -> None:
    """Create a folder and its parents, for the owner only.

    Existing folders keep their mode.

    Raises:
        OSError: If it can't be created, or exists and `exist_ok` is false.
    """
    for above in reversed([each for each in folder.parents if not each.exists()]):
        above.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=exist_ok)


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
