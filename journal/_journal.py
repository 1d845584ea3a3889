"""The interface of journals for the root and the agents."""

from __future__ import annotations

import asyncio
import concurrent.futures
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Sequence

    from callboard.journal._artifacts import Artifacts
    from callboard.journal._routine_runs import RoutineRun
    from callboard.journal._row import Row
    from callboard.journal._undo_versions import Versions
    from callboard.messages import Seconds, Task, TaskResult

_T = TypeVar("_T")


class Journal(ABC):
    """An ordered, write-ahead log of rows. Thread-safe.

    Only `keep_now`, `find`, `ended`, `routine_runs`, `conversation` and `close` may block.

    Messages to agents are published by `on_durable`, after their row is durable (write-ahead). `on_durable` is called
    in the order of the rows, so every agent receives its messages in the order of the journal.
    """

    identity: str
    """A text that no other journal has."""
    artifacts: Artifacts
    """The files that tools return with their results."""
    versions: Versions | None = None
    """The versions of files from before a task changed them; None if the rows do not outlive the process."""

    @property
    @abstractmethod
    def survives(self) -> bool:
        """True if the rows outlive the process."""

    @property
    def thread(self) -> threading.Thread | None:
        """The thread that waits for the disk, or None."""
        return None

    def picture_path(self, picture: bytes) -> str:
        """Return the path of a picture's file.

        Empty if this journal stores no pictures.
        """
        return ""

    @property
    def busy(self) -> Seconds:
        """The time spent on the current message; 0 while idle."""
        return 0.0

    @abstractmethod
    def append(
        self,
        rows: Sequence[Row],
        on_durable: Callable[[], None] | None = None,
        on_failure: Callable[[Exception], None] | None = None,
        *,
        lazy: bool = False,
    ) -> None:
        """Append rows atomically.

        Args:
            rows: The rows, in order.
            on_durable: Called once the rows are durable, on any thread, in the order of the calls to `append`. Must be
                short.
            on_failure: Called instead of `on_durable` with the error, if the rows can't be stored.
            lazy: Whether the rows may wait for the next rows that are not lazy.
        """

    @abstractmethod
    def read(
        self, task_id: str, callback: Callable[[Sequence[Row] | Exception], None], *, conversation: bool = False
    ) -> None:
        """Read the rows of a task or of its conversation, without events.

        The result includes all rows appended before. `callback` gets the rows or the error.
        """

    def task_rows(self, task_id: str) -> concurrent.futures.Future[Sequence[Row]]:
        """Read the rows of a task, without events.

        The future raises what `read` passes as an error.
        """
        future: concurrent.futures.Future[Sequence[Row]] = concurrent.futures.Future()
        self.read(task_id, settler(future))
        return future

    @abstractmethod
    def find(self, task: Task) -> str | None:
        """Find a task by its id or idempotency key. May block."""

    @abstractmethod
    def ended(self, task_id: str) -> tuple[Task, TaskResult] | None:
        """Return an ended task and its result. May block.

        None if the task is unknown or has not ended.
        """

    @abstractmethod
    def routine_runs(self, name: str, limit: int) -> tuple[RoutineRun, ...]:
        """List the latest ended tasks of a routine, newest first. May block."""

    @abstractmethod
    def conversation(self, session: str) -> tuple[str, ...]:
        """Return the ids of a conversation's stored tasks, in order. May block.

        Empty if the conversation's HostAgent can't be rebuilt from them.
        """

    @abstractmethod
    def feed(self, reader: Callable[[Sequence[Row]], None], task_ids: Iterable[str] = ()) -> None:
        """Subscribe a reader to durable rows.

        The reader first gets the rows of some tasks, and then every row that becomes durable. It replaces the previous
        reader. It is called in the order of the rows, on any thread, and must be short.
        """

    @abstractmethod
    def forget(self, task_ids: Iterable[str]) -> None:
        """Note that this process will not resume some tasks."""

    @abstractmethod
    def close(self, timeout: float) -> bool:
        """Store the appended rows, and stop. Returns False on a timeout."""

    async def keep(self, *rows: Row) -> None:
        """Append rows, and wait until they are durable; for coroutines.

        Raises:
            JournalError: If the rows can't be stored.
        """
        await asyncio.wrap_future(self._append_durably(rows))

    def keep_now(self, *rows: Row) -> None:
        """Append rows, and block until they are durable; for threads.

        Raises:
            JournalError: If the rows can't be stored.
        """
        self._append_durably(rows).result()

    def _append_durably(self, rows: Sequence[Row]) -> concurrent.futures.Future[None]:
        done: concurrent.futures.Future[None] = concurrent.futures.Future()
        self.append(rows, lambda: settle(done, None), lambda error: settle(done, None, error))
        return done


def settle(future: concurrent.futures.Future[_T], value: _T, error: Exception | None = None) -> None:
    """Settle a future that its owner may have cancelled meanwhile."""
    if future.set_running_or_notify_cancel():
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)


def settler(future: concurrent.futures.Future[Any]) -> Callable[[Any], None]:
    """Return a function that settles a future with its argument."""

    def settle_it(outcome: Any) -> None:
        settle(future, outcome, outcome if isinstance(outcome, Exception) else None)

    return settle_it
