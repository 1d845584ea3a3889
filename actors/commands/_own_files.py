"""The files that tasks created themselves."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callboard.messages import Foreseen


@dataclass(frozen=True)
class _OwnFile:
    """A file as its task left it."""

    digest: str
    removed_by: str = ""
    """The call that was about to delete or move it."""


class OwnFiles:
    """The contents of the files that unfinished tasks created. Thread-safe.

    They come from the notes that tools make right before each write, live and from the journal. A file stops being the
    task's own once the task deletes or moves it, or writes to it after another program did.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, dict[str, _OwnFile]] = {}

    def foresee(self, task_id: str, note: Foreseen) -> None:
        """Note a write that a task is about to do."""
        with self._lock:
            files = self._files.setdefault(task_id, {})
            file = files.pop(note.path, None)
            was_own = file is not None and file.digest == note.before and file.removed_by in {"", note.call_id}
            if note.after and (was_own or not note.before):
                files[note.path] = _OwnFile(note.after)
            elif was_own:
                files[note.path] = _OwnFile(note.before, removed_by=note.call_id)
            if not note.after:  # a folder's files move with it
                folder = f"{note.path}{os.sep}"
                self._files[task_id] = {
                    path: own_file for path, own_file in files.items() if not path.startswith(folder)
                }

    def digest(self, task_id: str, path: str, call_id: str) -> str:
        """Return the digest in which a task left its own file.

        Empty if the file is not its own. A call that a crash interrupted finds the file that it was about to remove.
        """
        with self._lock:
            file = self._files.get(task_id, {}).get(path)
        return file.digest if file is not None and file.removed_by in {"", call_id} else ""

    def drop(self, task_id: str) -> None:
        """Forget a task."""
        with self._lock:
            self._files.pop(task_id, None)
