"""The journal, as agents and the switchboard use it: rows are kept in order, and what depends on them comes after."""

from __future__ import annotations

import asyncio
import concurrent.futures
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Sequence

    from callboard.actors.journal._artifacts import Artifacts
    from callboard.actors.journal._row import Row
    from callboard.messages import Seconds, Task, TaskResult

_T = TypeVar("_T")


class Journal(ABC):
    """Keeps rows. Thread-safe; nothing here blocks but `keep_now`.

    It is the one ordered way out: what is told to an agent is told by `then`, after its row is safe, so that every
    agent hears things in the order in which they stand here.
    """

    artifacts: Artifacts
    """The files that tools leave beside their answers."""

    @property
    @abstractmethod
    def survives(self) -> bool:
        """Whether what is kept outlives the process."""

    @property
    def thread(self) -> threading.Thread | None:
        """The thread that waits for the disk, if there is one."""
        return None

    def picture_path(self, picture: bytes) -> str:
        """Return the path of a picture's file; empty if this journal keeps no pictures."""
        return ""

    @property
    def busy(self) -> Seconds:
        """For how long it has been with one message; 0 if it waits for the next."""
        return 0.0

    @abstractmethod
    def append(
        self,
        rows: Sequence[Row],
        then: Callable[[], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
        *,
        lazy: bool = False,
    ) -> None:
        """Keep rows, all or none.

        Args:
            rows: The rows, in order.
            then: Called once they are safe, on any thread, in the order of the calls; must be short.
            failed: Called instead of `then`, if they can't be kept.
            lazy: Whether they may wait for the next rows that are needed.
        """

    @abstractmethod
    def read(
        self, task_id: str, then: Callable[[Sequence[Row] | Exception], None], *, conversation: bool = False
    ) -> None:
        """Read the rows of a task, or of its whole conversation, without events; what was appended before is there."""

    @abstractmethod
    def find(self, task: Task) -> str | None:
        """Name the kept task that has this id or idempotency key. May block."""

    @abstractmethod
    def ended(self, task_id: str) -> tuple[Task, TaskResult] | None:
        """Give a kept task that is over. May block."""

    @abstractmethod
    def conversation(self, session: str) -> tuple[str, ...]:
        """Name the kept tasks of a conversation, in order; none if its HostAgent can't be made of them. May block."""

    @abstractmethod
    def feed(self, reader: Callable[[Sequence[Row]], None], task_ids: Iterable[str] = ()) -> None:
        """Give a reader the rows of some tasks, and from then on all rows that are kept; it takes the last one's place.

        It is called in the order of the rows, on any thread, and must be short.
        """

    @abstractmethod
    def forget(self, task_ids: Iterable[str]) -> None:
        """Note that nobody goes on with some tasks in this process."""

    @abstractmethod
    def close(self, timeout: float) -> bool:
        """Keep what was appended, and end. Returns whether that was in time."""

    async def keep(self, *rows: Row) -> None:
        """Keep rows, and wait until they are safe; for coroutines.

        Raises:
            JournalError: If they can't be kept.
        """
        await asyncio.wrap_future(self._kept(rows))

    def keep_now(self, *rows: Row) -> None:
        """Keep rows, and block until they are safe; for threads that may block.

        Raises:
            JournalError: If they can't be kept.
        """
        self._kept(rows).result()

    def _kept(self, rows: Sequence[Row]) -> concurrent.futures.Future[None]:
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
