"""The client side of a journal in a file.

Requests are queued for the journal's thread, and answered by callbacks.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import time
from typing import TYPE_CHECKING, Any

from callboard.config import HostLog
from callboard.journal._artifacts import Artifacts
from callboard.journal._journal import Journal, settler
from callboard.journal._pictures import picture_path
from callboard.journal._undo_versions import Versions
from callboard.journal._writer_thread import Append, JournalWriter, ReadRequest, RowFeed, rows_of
from callboard.messages import SupervisorStoppedError, Task

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Sequence

    from callboard.journal._file import JournalFile
    from callboard.journal._routine_runs import RoutineRun
    from callboard.journal._row import Row
    from callboard.messages import Event, Seconds, TaskResult, Timestamp

_log = HostLog()

LAZY_SECONDS = 0.05
"""The maximum delay of lazy rows and of events."""

RETAIN_SECONDS = 3600.0
"""The interval between two prunings."""

ANSWER_SECONDS = 30.0
"""The timeout of a request to the journal's thread; it runs out only if the disk or the thread hangs."""


class FileJournal(Journal):
    """A journal in a file, which a thread of its own writes."""

    def __init__(
        self,
        file: JournalFile,
        *,
        broken: Callable[[Exception], None],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        """Start the thread that owns the file.

        Args:
            file: The open file; it is closed with the journal.
            broken: Called once, when the file can't be written. The journal then stores no more rows.
            later: Schedules a call after a delay in seconds: a clock's `after`.
        """
        self._path = file.path
        self.identity = file.identity
        self.artifacts = Artifacts(file.path, durable=file.durable)
        self.versions = Versions(file.path)
        self._writer = JournalWriter(file, broken)
        self._later = later
        self._waiting: dict[str, list[Row]] = {}
        """Lazy rows by task; they are written before the next row of their task that is not lazy."""
        self.facts = self._writer.events
        """Events to be written; no row depends on them. The thread that adds the first calls `keep_soon`."""
        self._timed = False
        self._lock = self._writer.lock

    @property
    def survives(self) -> bool:
        """True: the rows are in a file."""
        return True

    @property
    def thread(self) -> threading.Thread | None:
        """The journal's thread."""
        return self._writer.thread

    def picture_path(self, picture: bytes) -> str:
        """Return the path of a picture's file.

        The file exists once the picture's message is stored.
        """
        return str(picture_path(self._path, picture))

    @property
    def busy(self) -> Seconds:
        """The time that the journal's thread has spent on the current message."""
        since = self._writer.since
        return time.monotonic() - since if since else 0.0

    def append(
        self,
        rows: Sequence[Row],
        on_durable: Callable[[], None] | None = None,
        on_failure: Callable[[Exception], None] | None = None,
        *,
        lazy: bool = False,
    ) -> None:
        """Queue rows for the journal's thread.

        Lazy rows wait here for the next rows of their task that are not lazy, or for `LAZY_SECONDS`. An append without
        rows flushes all lazy rows.
        """
        lazy = lazy and on_durable is None and on_failure is None
        with self._lock:
            if lazy:
                for row in rows:
                    self._waiting.setdefault(row.task_id, []).append(row)
                timed = self._timed
            else:
                waiting: list[Row] = []
                if self._waiting:
                    for row in rows:
                        waiting += self._waiting.pop(row.task_id, ())
                    if not rows:
                        waiting += itertools.chain.from_iterable(self._waiting.values())
                        self._waiting.clear()
                queued = self._writer.put(Append(rows, on_durable, on_failure, waiting))
        if lazy:
            if not timed:
                self.keep_soon()
        elif not queued and on_failure is not None:
            on_failure(SupervisorStoppedError("the journal is closed"))

    def _flush_late(self) -> None:
        self._timed = False
        self._flush()

    def _flush(self) -> None:
        """Queue the waiting lazy rows and events."""
        if self._waiting or self.facts:
            self.append(())

    def retain(
        self, days: float | None, max_bytes: int | None, kept_since: Callable[[], Timestamp | None] = lambda: None
    ) -> None:
        """Prune every `RETAIN_SECONDS`, by age and by size.

        Tasks that ended since the time that `kept_since` returns are kept; see `JournalFile.prune`.
        """

        def pruned(file: JournalFile) -> int:
            return file.prune(days=days, max_bytes=max_bytes, kept_since=kept_since())

        def prune() -> None:
            if self._writer.put(ReadRequest(pruned, _pruned)):
                self._later(RETAIN_SECONDS, prune)

        self._later(RETAIN_SECONDS, prune)

    def keep_soon(self) -> None:
        """Flush lazy rows and events within `LAZY_SECONDS`. Any thread may call it."""
        with self._lock:
            first, self._timed = not self._timed, True
        if first:
            self._later(LAZY_SECONDS, self._flush_late)

    def events(self, after_seq: int, limit: int) -> list[Event]:
        """Read about `limit` events after a number; see `JournalFile.events`. Blocks."""
        events: list[Event] = self._ask(lambda file: file.events(after_seq, limit))
        return events

    def read(
        self, task_id: str, callback: Callable[[Sequence[Row] | Exception], None], *, conversation: bool = False
    ) -> None:
        """Read a task or its conversation on the journal's thread."""
        self._flush()
        if not self._writer.put(ReadRequest(lambda file: rows_of(file, task_id, conversation=conversation), callback)):
            callback(SupervisorStoppedError("the journal is closed"))

    def find(self, task: Task) -> str | None:
        """Find a task on the journal's thread."""
        task_id: str | None = self._ask(lambda file: file.find(task.id, task.key))
        return task_id

    def ended(self, task_id: str) -> tuple[Task, TaskResult] | None:
        """Read an ended task on the journal's thread."""
        ending: tuple[Task, TaskResult] | None = self._ask(lambda file: _ended(file, task_id))
        return ending

    def routine_runs(self, name: str, limit: int) -> tuple[RoutineRun, ...]:
        """List the runs of a routine on the journal's thread."""
        runs: tuple[RoutineRun, ...] = self._ask(lambda file: file.routine_runs(name, limit))
        return runs

    def conversation(self, session: str) -> tuple[str, ...]:
        """List a conversation's tasks on the journal's thread."""
        task_ids: tuple[str, ...] = self._ask(lambda file: _conversation(file, session))
        return task_ids

    def feed(self, reader: Callable[[Sequence[Row]], None], task_ids: Iterable[str] = ()) -> None:
        """Subscribe a reader, on the journal's thread."""
        self._flush()
        self._writer.put(RowFeed(reader, tuple(task_ids)))

    def forget(self, task_ids: Iterable[str]) -> None:
        """Do nothing: another process may resume the tasks."""

    def close(self, timeout: float) -> bool:
        """Stop the journal's thread, after all appended rows are stored."""
        self._flush()
        return self._writer.close(timeout)

    def _ask(self, at: Callable[[JournalFile], Any]) -> Any:
        answer: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._flush()
        if not self._writer.put(ReadRequest(at, settler(answer))):
            msg = "the journal is closed"
            raise SupervisorStoppedError(msg)
        try:
            return answer.result(ANSWER_SECONDS)
        except TimeoutError:
            if answer.done():  # raised by the request itself
                raise
        msg = f"the journal did not answer within {ANSWER_SECONDS:g} s"
        raise SupervisorStoppedError(msg)


def _pruned(outcome: int | Exception) -> None:
    if isinstance(outcome, Exception) and not isinstance(outcome, SupervisorStoppedError):
        _log.error("the journal could not be pruned: %s", outcome)


def _conversation(file: JournalFile, session: str) -> tuple[str, ...]:
    first = next(file.rows(session), None)
    if first is not None and isinstance(first.message, Task) and first.message.target is not None:
        return ()  # the first task went to a target directly, without a HostAgent
    return file.session_tasks(session)


def _ended(file: JournalFile, task_id: str) -> tuple[Task, TaskResult] | None:
    result = file.result(task_id)
    first = next(file.rows(task_id), None)
    return (first.message, result) if result is not None and first and isinstance(first.message, Task) else None
