"""The files that tasks may change without an approval."""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callboard.messages import Foreseen, Task


class MayChange:
    """The files that unfinished tasks name in `may_change`. Thread-safe.

    They come from the task alone, as the host program submitted it: no message of an agent adds one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[str, frozenset[str]] = {}
        self._written: dict[str, set[tuple[str, str]]] = {}
        """The writes of each task, also planned ones: paths, each with the fingerprint of the bytes."""

    def take(self, task: Task) -> None:
        """Take the names of a task."""
        if task.may_change:
            with self._lock:
                self._names[task.id] = frozenset(task.may_change)

    def names(self, task_id: str) -> frozenset[str]:
        """Return the names of the files that a task may change."""
        with self._lock:
            return self._names.get(task_id, frozenset())

    def foresee(self, task_id: str, note: Foreseen) -> None:
        """Note a write that a task is about to do."""
        with self._lock:
            if task_id in self._names:
                self._written.setdefault(task_id, set()).add((note.path, note.after))

    def keeps(self, task_id: str, name: str, path: str, data: bytes) -> bool:
        """Return whether the bytes of a file are to be kept.

        They are if the task names the file, and did not write them itself.
        """
        if name not in self.names(task_id):
            return False
        mark = hashlib.sha256(data).hexdigest()
        with self._lock:
            return (path, mark) not in self._written.get(task_id, ())

    def drop(self, task_id: str) -> None:
        """Forget a task."""
        with self._lock:
            self._names.pop(task_id, None)
            self._written.pop(task_id, None)
