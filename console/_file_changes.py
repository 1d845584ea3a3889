"""The changes of a task's files in words, from kept versions."""

from __future__ import annotations

import hashlib
import itertools
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from callboard.actors.commands import contents_in, described_changes
from callboard.config import text
from callboard.surfaces import open_file
from callboard.surfaces.documents import PAGE_SUFFIXES

if TYPE_CHECKING:
    from callboard.history import TaskHistory
    from callboard.journal import Versions
    from callboard.messages import Foreseen

_MOST_BYTES = 5_000_000
"""The largest file that is compared."""
_MOST_SECONDS = 2.0
"""The time after which no more files are compared."""


class FileChange(NamedTuple):
    """The change of a file by a task."""

    words: str
    """The change in words, or the reason why it is not told."""
    has_pages: bool = False
    """Whether both versions are known, and their pages can be drawn."""


class FileVersions(NamedTuple):
    """A file before a task, and as the task left it.

    A new file is empty before.
    """

    before: bytes
    after: bytes


def changed_files(history: TaskHistory) -> list[str]:
    """List the files of a task's result; empty before it has ended."""
    result = history.result
    return [] if result is None else list(dict.fromkeys((*result.artifacts, *result.changed)))


def file_versions(history: TaskHistory, versions: Versions, name: str) -> FileVersions | str:
    """Read both versions of a file of a task's result.

    A text says why they are not known.
    """
    notes = [note for note in history.foreseen if note.path == name]
    return _versions(history.task.id, versions, notes) if notes else text("file_not_kept")


def file_changes(history: TaskHistory, versions: Versions) -> dict[str, FileChange]:
    """Describe the changes of each file of an ended task.

    An example is `12 cells, 1 new chart`.

    Only files of its result are read, and only while they are as the task left them.
    """
    notes: dict[str, list[Foreseen]] = defaultdict(list)
    for note in history.foreseen:
        notes[note.path].append(note)
    end = time.monotonic() + _MOST_SECONDS
    changes = {}
    for name in changed_files(history):
        if name in notes:
            is_late = time.monotonic() > end
            contents = text("file_not_compared") if is_late else _versions(history.task.id, versions, notes[name])
            if isinstance(contents, str):
                changes[name] = FileChange(contents)
            else:
                has_pages = Path(name).suffix.lower() in PAGE_SUFFIXES
                changes[name] = FileChange(_words(Path(name).name, contents, notes[name]), has_pages)
    return changes


def _versions(task_id: str, versions: Versions, notes: list[Foreseen]) -> FileVersions | str:
    """Read both versions of a file.

    A text says why its changes are not told.

    Args:
        task_id: The task.
        versions: The versions of the journal.
        notes: The notes about each of the task's changes of the file, in order.
    """
    first, last = notes[0], notes[-1]
    path = Path(first.path)
    if first.before and not first.kept:
        return text("file_not_kept")
    try:
        if os.path.realpath(path) != str(path) or not path.is_file():
            return text("file_gone")
        with open_file(path) as file:
            new = file.read(_MOST_BYTES + 1)
    except OSError:
        return text("file_gone")
    old = versions.read(task_id, first.before) if first.before else b""
    if old is None:
        return text("file_not_kept")
    if max(len(old), len(new)) > _MOST_BYTES:
        return text("file_not_compared")
    digest = hashlib.sha256(new).hexdigest()
    if digest == first.before:
        return text("file_as_before")
    if digest not in {last.after, last.before}:  # the latest change may not have been done
        return text("file_changed_since")
    return FileVersions(old, new)


def _words(name: str, contents: FileVersions, notes: list[Foreseen]) -> str:
    """Describe the changes of a file."""
    new_contents = contents_in(name, contents.after)
    if not notes[0].before:
        return ": ".join(filter(None, (text("file_made"), described_changes(None, new_contents))))
    old_contents = contents_in(name, contents.before)
    counts = "" if old_contents is None else described_changes(old_contents, new_contents)
    words = ": ".join(filter(None, (text("file_changed"), counts)))
    by_others = any(note.before not in {earlier.after, earlier.before} for earlier, note in itertools.pairwise(notes))
    return ", ".join((words, text("file_by_others"))) if by_others else words
