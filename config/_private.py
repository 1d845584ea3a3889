"""Files and folders that are made for their user alone: what was logged and recorded may be confidential."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from pathlib import Path


def open_private(path: Path) -> TextIO:
    """Open a text file to append to it. If it is made, nobody but its user may read it; one that is there stays.

    Raises:
        OSError: If it can't be opened.
    """
    return open(path, "a", encoding="utf-8", opener=_opener)


def make_private(folder: Path, *, exist_ok: bool = False) -> None:
    """Make a folder, and those above it, that nobody but its user may look into; those that are there stay.

    Raises:
        OSError: If it can't be made, or is there already.
    """
    for above in reversed([each for each in folder.parents if not each.exists()]):
        above.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=exist_ok)


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
