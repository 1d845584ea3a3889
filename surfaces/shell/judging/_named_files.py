"""The files and folders that a command names, with their kinds."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from callboard.surfaces.shell.judging._judge import touched_by
from callboard.surfaces.shell.judging._lenient_reader import UNKNOWN_PART, LenientReader
from callboard.surfaces.shell.judging._word_expansion import UnclearError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from callboard.surfaces.shell.judging._disk import Disk

_MOST = 50
"""The most names of one command whose files are looked at."""
_LONGEST = 1_000
_LOOKS_LIKE_A_FILE = re.compile(r"(?!\w+://)(?:.*/.*|[\w. +@%=,-]*\w\.[A-Za-z]\w{0,7})", re.DOTALL)


def named_files(command: str, *, cwd: Path, disk: Disk, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the kinds of the files that a command names, by name.

    A kind is ``a file``, ``a folder``, ``missing`` or ``neither a file nor a folder``. Patterns name none. Of a command
    that can't be analysed, all words count that are files now, or look like names of files.
    """
    touched, is_clear = touched_by(command, cwd=cwd, disk=disk, environment=environment)
    kinds = {name: file_kind(disk, path) for name, path in touched.named.items()}
    if not is_clear:
        for name in _names(command):
            kind = file_kind(disk, os.path.join(cwd, name))  # noqa: PTH118 - as the kernel joins
            if kind not in {"", "missing"} or _LOOKS_LIKE_A_FILE.fullmatch(name):
                kinds.setdefault(name, kind)
    known = [(name, kind) for name, kind in kinds.items() if kind and len(name) <= _LONGEST]
    return dict(known[:_MOST])


def file_kind(disk: Disk, path: str) -> str:
    """Return the kind of a file or folder; empty if unknown."""
    try:
        if disk.is_folder(path):
            return "a folder"
        if disk.is_file(path):
            return "a file"
        return "neither a file nor a folder" if disk.exists(path) or disk.is_link(path) else "missing"
    except (UnclearError, OSError, ValueError):  # on another machine, outside its workspace; or no name of a file
        return ""


def _names(command: str) -> Iterator[str]:
    """Yield the words of a command that may be names of files."""
    reader = LenientReader(command)
    reader.read()
    for pipeline in reader.pipelines:
        for part in pipeline:
            for place, word in enumerate(part.words):
                is_name = (
                    word and UNKNOWN_PART not in word and not word.startswith("-") and not set(word) & set("*?[\n")
                )
                if is_name and (place or "/" in word):
                    yield word
