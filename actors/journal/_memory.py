"""A journal in memory: enough to start a crashed agent anew, and gone with the process."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from callboard.actors.journal._journal import Journal
from callboard.messages import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from callboard.actors.journal._row import Row
    from callboard.messages import TaskResult


class MemoryJournal(Journal):
    """Keeps the rows of tasks that somebody may go on with, as they are."""

    def __init__(self) -> None:
        self._feed: Callable[[Sequence[Row]], None] = _nobody
        self._rows: dict[str, list[Row]] = {}
        self._lock = threading.RLock()  # what is told under it may append more

    @property
    def survives(self) -> bool:
        """It does not."""
        return False

    def append(
        self,
        rows: Sequence[Row],
        then: Callable[[], None] | None = None,
        failed: Callable[[Exception], None] | None = None,  # noqa: ARG002 - memory does not fail
        *,
        lazy: bool = False,  # noqa: ARG002 - nothing waits here
    ) -> None:
        """Keep rows; `then` is called at once, under the lock, so that what is told has the order of the rows."""
        with self._lock:
            for row in rows:
                self._rows.setdefault(row.task_id, []).append(row)
            self._feed(rows)
            if then is not None:
                then()

    def read(
        self, task_id: str, then: Callable[[Sequence[Row] | Exception], None], *, conversation: bool = False
    ) -> None:
        """Give the rows of a task, or of its conversation."""
        with self._lock:
            if not conversation:
                then(tuple(self._rows.get(task_id, ())))
                return
            session = _session(self._rows.get(task_id, ())) or task_id
            then(tuple(row for rows in self._rows.values() if _session(rows) == session for row in rows))

    def find(self, task: Task) -> str | None:  # noqa: ARG002 - the interface
        """Know nothing: the switchboard knows the tasks of this process."""
        return None

    def ended(self, task_id: str) -> tuple[Task, TaskResult] | None:  # noqa: ARG002 - the interface
        """Know nothing: results are the handles' alone."""
        return None

    def conversation(self, session: str) -> tuple[str, ...]:  # noqa: ARG002 - the interface
        """Know nothing: what the switchboard does not keep is forgotten."""
        return ()

    def feed(self, reader: Callable[[Sequence[Row]], None], task_ids: Iterable[str] = ()) -> None:
        """Give a reader all that is and will be kept."""
        with self._lock:
            self._feed = reader
            for task_id in task_ids:
                reader(tuple(self._rows.get(task_id, ())))

    def forget(self, task_ids: Iterable[str]) -> None:
        """Drop the rows of tasks."""
        with self._lock:
            for task_id in task_ids:
                self._rows.pop(task_id, None)

    def close(self, timeout: float) -> bool:  # noqa: ARG002 - the interface
        """Nothing to end."""
        return True


def _nobody(rows: Sequence[Row]) -> None:
    """Read nothing."""


def _session(rows: Sequence[Row]) -> str:
    """Name the conversation of a task; its first row is the task itself."""
    if not rows or not isinstance(rows[0].message, Task):
        return ""
    return rows[0].message.session or rows[0].message.id
