"""The journal in a file, as others have it: rows go to the writer's thread, and answers come back."""

from __future__ import annotations

import concurrent.futures
import itertools
import time
from typing import TYPE_CHECKING, Any

from callboard.actors.journal._artifacts import Artifacts
from callboard.actors.journal._journal import Journal
from callboard.actors.journal._pictures import picture_path
from callboard.actors.journal._thread import Append, Feed, Look, Writer, rows_of
from callboard.config import HostLog
from callboard.messages import SupervisorStoppedError, Task

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Sequence

    from callboard.actors.journal._file import JournalFile
    from callboard.actors.journal._row import Row
    from callboard.messages import Event, Seconds, TaskResult

_log = HostLog()

LAZY_SECONDS = 0.05
"""The longest that rows wait which nothing depends on."""

RETAIN_SECONDS = 3600.0
"""How often a journal is looked through for what is past its time."""

ANSWER_SECONDS = 30.0
"""How long a reading waits for the writer; past that the disk is broken, or something else is."""


class FileJournal(Journal):
    """A journal in a file."""

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
            broken: Called once, if the file can't be written any more.
            later: Calls a function after so many seconds: a clock's `after`.
        """
        self._path = file.path
        self.artifacts = Artifacts(file.path, durable=file.durable)
        self._writer = Writer(file, broken)
        self._later = later
        self._waiting: dict[str, list[Row]] = {}
        """Lazy rows by task: they are written with the next row of their task that is needed."""
        self.facts = self._writer.events
        """Events that wait to be kept; nothing depends on them. Who adds the first one calls `keep_soon`."""
        self._timed = False
        self._lock = self._writer.lock

    @property
    def survives(self) -> bool:
        """It does."""
        return True

    @property
    def thread(self) -> threading.Thread | None:
        """The writer's."""
        return self._writer.thread

    def picture_path(self, picture: bytes) -> str:
        """Return the path of a picture's file; it exists once the message with the picture is kept."""
        return str(picture_path(self._path, picture))

    @property
    def busy(self) -> Seconds:
        """For how long the writer has been with one message."""
        since = self._writer.since
        return time.monotonic() - since if since else 0.0

    def append(
        self,
        rows: Sequence[Row],
        then: Callable[[], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
        *,
        lazy: bool = False,
    ) -> None:
        """Hand rows to the writer; lazy ones wait here, and go with the next of their task that are needed."""
        lazy = lazy and then is None and failed is None
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
                closed = self._writer.closed
                if not closed:
                    self._writer.queue.put(Append(rows, then, failed, waiting))
        if lazy:
            if not timed:
                self.keep_soon()
        elif closed and failed is not None:
            failed(SupervisorStoppedError("the journal is closed"))

    def _flush_late(self) -> None:
        self._timed = False
        self._flush()

    def _flush(self) -> None:
        """Have all that was appended kept."""
        if self._waiting or self.facts:
            self.append(())

    def retain(self, days: float | None, max_bytes: int | None) -> None:
        """Drop tasks that ended too long ago, or are too many, from now on and again and again."""

        def prune() -> None:
            if self._writer.put(Look(lambda file: file.prune(days=days, max_bytes=max_bytes), _pruned)):
                self._later(RETAIN_SECONDS, prune)

        self._later(RETAIN_SECONDS, prune)

    def keep_soon(self) -> None:
        """Have what waits kept before long, if no row that is needed takes it along. Any thread may call it."""
        with self._lock:
            first, self._timed = not self._timed, True
        if first:
            self._later(LAZY_SECONDS, self._flush_late)

    def events(self, after: int, limit: int) -> list[Event]:
        """Read the events that follow a number, at most so many. Blocks."""
        found: list[Event] = self._ask(lambda file: file.events(after, limit))
        return found

    def read(
        self, task_id: str, then: Callable[[Sequence[Row] | Exception], None], *, conversation: bool = False
    ) -> None:
        """Have the writer read a task, or its conversation."""
        self._flush()
        if not self._writer.put(Look(lambda file: rows_of(file, task_id, conversation=conversation), then)):
            then(SupervisorStoppedError("the journal is closed"))

    def find(self, task: Task) -> str | None:
        """Ask the writer."""
        found: str | None = self._ask(lambda file: file.find(task.id, task.key))
        return found

    def ended(self, task_id: str) -> tuple[Task, TaskResult] | None:
        """Ask the writer."""
        found: tuple[Task, TaskResult] | None = self._ask(lambda file: _ended(file, task_id))
        return found

    def conversation(self, session: str) -> tuple[str, ...]:
        """Ask the writer."""
        found: tuple[str, ...] = self._ask(lambda file: _conversation(file, session))
        return found

    def feed(self, reader: Callable[[Sequence[Row]], None], task_ids: Iterable[str] = ()) -> None:
        """Have the writer change its reader."""
        self._flush()
        self._writer.put(Feed(reader, tuple(task_ids)))

    def forget(self, task_ids: Iterable[str]) -> None:
        """Keep them: another process may want them."""

    def close(self, timeout: float) -> bool:
        """Stop the writer, after all that was appended."""
        self._flush()
        return self._writer.close(timeout)

    def _ask(self, at: Callable[[JournalFile], Any]) -> Any:
        answer: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def then(found: Any) -> None:
            if isinstance(found, Exception):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        self._flush()
        if not self._writer.put(Look(at, then)):
            msg = "the journal is closed"
            raise SupervisorStoppedError(msg)
        try:
            return answer.result(ANSWER_SECONDS)
        except TimeoutError:
            if answer.done():  # it is what the reading raised
                raise
        msg = f"the journal did not answer within {ANSWER_SECONDS:g} s"
        raise SupervisorStoppedError(msg)


def _pruned(found: int | Exception) -> None:
    if isinstance(found, Exception) and not isinstance(found, SupervisorStoppedError):
        _log.error("the journal could not be pruned: %s", found)


def _conversation(file: JournalFile, session: str) -> tuple[str, ...]:
    first = next(file.rows(session), None)
    if first is not None and isinstance(first.message, Task) and first.message.target is not None:
        return ()  # it had no HostAgent
    return file.session_tasks(session)


def _ended(file: JournalFile, task_id: str) -> tuple[Task, TaskResult] | None:
    result = file.result(task_id)
    first = next(file.rows(task_id), None)
    return (first.message, result) if result is not None and first and isinstance(first.message, Task) else None
