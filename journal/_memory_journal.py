"""A journal in memory, lost with the process.

It is enough to restart a crashed agent.
"""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING

from callboard.journal._artifacts import Artifacts
from callboard.journal._journal import Journal
from callboard.journal._routine_runs import RoutineRun
from callboard.messages import Routine, Task, TaskResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from callboard.journal._row import Row
    from callboard.messages import Message


class MemoryJournal(Journal):
    """Stores the rows of tasks that may still be resumed. Thread-safe.

    Ended tasks and their results are stored longer: a repeated request with the same id or idempotency key finds the
    first task.
    """

    def __init__(self, kept_tasks: int = 1_000) -> None:
        """Retain the last `kept_tasks` results, about 20 kB each."""
        self.identity = uuid.uuid4().hex[:16]
        self.artifacts = Artifacts()
        self._kept_tasks = kept_tasks
        self._feed: Callable[[Sequence[Row]], None] = _ignore
        self._rows: dict[str, list[Row]] = {}
        self._tasks: dict[str, Task] = {}
        self._keys: dict[str, str] = {}
        self._results: dict[str, TaskResult] = {}  # ordered by the time of their end
        self._lock = threading.RLock()  # reentrant: callbacks that run under it may append more

    @property
    def survives(self) -> bool:
        """False: the rows are lost with the process."""
        return False

    def append(
        self,
        rows: Sequence[Row],
        on_durable: Callable[[], None] | None = None,
        on_failure: Callable[[Exception], None] | None = None,
        *,
        lazy: bool = False,
    ) -> None:
        """Append rows, and call `on_durable` at once.

        `on_durable` runs under the lock, so that callbacks run in row order.

        `on_failure` gets a `ValueError` if a row is a task whose id or key was used before.
        """
        with self._lock:
            repeated_ids = [row.task_id for row in rows if type(row.message) is Task and self.find(row.message)]
            if repeated_ids:
                if on_failure is not None:
                    on_failure(ValueError(f"task {repeated_ids[0]!r} can't be kept: its id or its key was used before"))
                return
            for row in rows:
                self._rows.setdefault(row.task_id, []).append(row)
                self._note(row.message)
            self._feed(rows)
            if on_durable is not None:
                on_durable()

    def read(
        self, task_id: str, callback: Callable[[Sequence[Row] | Exception], None], *, conversation: bool = False
    ) -> None:
        """Pass the rows of a task or conversation to `callback`."""
        with self._lock:
            if not conversation:
                callback(tuple(self._rows.get(task_id, ())))
                return
            session = _session(self._rows.get(task_id, ())) or task_id
            callback(tuple(row for rows in self._rows.values() if _session(rows) == session for row in rows))

    def find(self, task: Task) -> str | None:
        """Find a task of this process by its id or key."""
        with self._lock:
            if task.id in self._tasks:
                return task.id
            return self._keys.get(task.key) if task.key is not None else None

    def ended(self, task_id: str) -> tuple[Task, TaskResult] | None:
        """Return an ended task and its result."""
        with self._lock:
            result = self._results.get(task_id)
            return (self._tasks[task_id], result) if result is not None else None

    def routine_runs(self, name: str, limit: int) -> tuple[RoutineRun, ...]:
        """List this process's latest ended tasks of a routine, newest first."""
        with self._lock:
            results = [(self._tasks[task_id], result) for task_id, result in self._results.items()]
        runs = [
            RoutineRun.of(task, result)
            for task, result in results
            if isinstance(task.routine, Routine) and task.routine.routine == name
        ]
        return tuple(reversed(runs[-limit:]))

    def conversation(self, session: str) -> tuple[str, ...]:
        """Return no task: the root's own copy is the only one."""
        return ()

    def feed(self, reader: Callable[[Sequence[Row]], None], task_ids: Iterable[str] = ()) -> None:
        """Subscribe a reader, and pass it the tasks' rows at once."""
        with self._lock:
            self._feed = reader
            for task_id in task_ids:
                reader(tuple(self._rows.get(task_id, ())))

    def forget(self, task_ids: Iterable[str]) -> None:
        """Delete the rows of tasks."""
        with self._lock:
            for task_id in task_ids:
                self._rows.pop(task_id, None)

    def close(self, timeout: float) -> bool:
        """Delete the artifacts."""
        self.artifacts.close()
        return True

    def _note(self, message: Message) -> None:
        """Update the tasks, keys and results for a message."""
        match message:
            case Task() as task:
                self._tasks[task.id] = task
                if task.key is not None:
                    self._keys[task.key] = task.id
            case TaskResult(task_id=task_id) if task_id in self._tasks:
                self._results[task_id] = message
                if len(self._results) > self._kept_tasks:
                    self._drop(next(iter(self._results)))

    def _drop(self, task_id: str) -> None:
        del self._results[task_id]
        self.artifacts.forget((task_id,))
        task = self._tasks.pop(task_id)
        if task.key is not None:
            del self._keys[task.key]


def _ignore(rows: Sequence[Row]) -> None:
    """Ignore rows, while no reader is subscribed."""


def _session(rows: Sequence[Row]) -> str:
    """Return a conversation's id, from the rows of a task.

    The first row is the task itself.
    """
    if not rows or not isinstance(rows[0].message, Task):
        return ""
    return rows[0].message.session or rows[0].message.id
