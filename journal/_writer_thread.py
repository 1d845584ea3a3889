"""The journal's thread, which writes the file in group commits."""

from __future__ import annotations

import collections
import functools
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from callboard.config import HostLog
from callboard.messages import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from callboard.journal._file import JournalFile
    from callboard.journal._row import Row
    from callboard.messages import Fact

_log = HostLog()

_FOLLOWED = "a callback of the journal failed"


class Append(NamedTuple):
    """Write rows, all or none; then call `on_durable` or `on_failure`."""

    rows: Sequence[Row]
    on_durable: Callable[[], None] | None = None
    on_failure: Callable[[Exception], None] | None = None
    lazy_rows: Sequence[Row] = ()
    """Lazy rows to write before `rows`; they are not part of the atomic batch."""


class ReadRequest(NamedTuple):
    """Call a function with the file, after all earlier appends."""

    query: Callable[[JournalFile], Any]
    callback: Callable[[Any], None]


class RowFeed(NamedTuple):
    """Subscribe a reader to some tasks' rows and all later rows."""

    reader: Callable[[Sequence[Row]], None]
    task_ids: tuple[str, ...]


class JournalWriter:
    """The owner of the file, on a thread of its own.

    No other thread waits for the disk.

    Group commit: the thread takes all queued messages, writes their rows, and commits once. Only then are the rows
    published: first to the subscribed reader, then by the `on_durable` of each append, in row order.

    Args:
        file: The open file; the thread closes it when it stops.
        broken: Called once, when the file can't be written. The thread then writes no more rows.
    """

    def __init__(self, file: JournalFile, broken: Callable[[Exception], None]) -> None:
        self._file = file
        self._feed: Callable[[Sequence[Row]], None] | None = None
        self._broken = broken
        self._appended: list[Append] = []
        """The appends that are written but not committed."""
        self.events: collections.deque[Fact] = collections.deque()
        """Events to write with the next message of the queue. Any thread may add to it."""
        self._events_written = False
        """Whether events are written but not committed."""
        self._failure: Exception | None = None
        self._queue: queue.SimpleQueue[Append | ReadRequest | RowFeed | None] = queue.SimpleQueue()
        self._closed = False
        self.lock = threading.RLock()
        """Held by `put`. A caller that decides on the contents of a message holds it around `put`, too."""
        self.since = 0.0
        """The monotonic time when the current message was begun; 0 while the thread is idle."""
        self.thread = threading.Thread(target=self._main, name="callboard-journal", daemon=True)
        self.thread.start()

    def put(self, message: Append | ReadRequest | RowFeed) -> bool:
        """Queue a message. Returns False after `close`; the message is then dropped."""
        with self.lock:
            if not self._closed:
                self._queue.put(message)
            return not self._closed

    def close(self, timeout: float) -> bool:
        """Handle the queue, and close the file. Returns False on a timeout."""
        with self.lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        if threading.current_thread() is not self.thread:
            self.thread.join(timeout)
        return not self.thread.is_alive()

    def _main(self) -> None:
        running = True
        while running:
            # Group commit: take the first message and all that are queued by now. Messages that arrive during the
            # commit form the next group, so the groups grow with the load.
            waiting = [self._queue.get()]
            many = self._queue.qsize()
            while len(waiting) <= many:
                waiting.append(self._queue.get())
            if self.events:
                self._write_events()
            appends: list[Append] = []
            for message in waiting:
                self.since = time.monotonic()
                if isinstance(message, Append):
                    appends.append(message)
                    continue
                self._append(appends)
                appends = []
                if message is None:
                    running = False
                else:
                    self._handle(message)
            self._append(appends)
            self._commit()
            self.since = 0.0
        try:
            self._file.close()
        except BaseException:  # an edge: callers that join the thread must not hang
            _log.exception("the journal could not be closed")

    def _handle(self, message: ReadRequest | RowFeed) -> None:
        """Handle one message.

        An edge: an error here breaks the journal, but does not end the thread.
        """
        try:
            match message:
                case ReadRequest():
                    self._look(message)
                case RowFeed():
                    self._change_feed(message)
        except BaseException as error:  # an edge: it would end the thread
            self._break(_as_exception(error))

    def _write_events(self) -> None:
        """Write the waiting events, one row per task."""
        facts: list[Fact] = []
        while self.events:  # no other thread removes any
            facts.append(self.events.popleft())
        if self._failure is not None:
            return
        self.since, self._events_written = time.monotonic(), True
        try:
            self._file.write_events(facts, lambda error: _log.error("an event was left out of the journal: %s", error))
        except BaseException as error:  # an edge: the disk, or SQLite
            self._break(_as_exception(error))

    def _append(self, appends: list[Append]) -> None:
        """Write the rows of several appends at once.

        An edge: an error of the disk breaks the journal. If a row can't be serialized, the appends are retried one by
        one, and only those that fail are refused.
        """
        rows: list[Row] = []
        for append in appends:
            rows += append.lazy_rows
            rows += append.rows
        if self._failure is None and rows:
            try:
                self._file.write(rows)
            except ValueError as error:  # a row can't be serialized
                if len(appends) > 1 or appends[0].lazy_rows:
                    self._append_each(appends)
                else:
                    self._report_failed(error, *appends)
                return
            except BaseException as error:  # an edge: the disk, or SQLite
                self._break(_as_exception(error))
        if self._failure is not None:
            self._report_failed(self._failure, *appends)
            return
        self._appended += appends

    def _append_each(self, appends: list[Append]) -> None:
        """Write appends one by one, so that only invalid ones fail.

        Lazy rows are written row by row.
        """
        for append in appends:
            if len(appends) > 1:
                self._append([append])
                continue
            for row in append.lazy_rows:
                self._append([Append((row,))])
            self._append([append._replace(lazy_rows=())])

    def _commit(self) -> None:
        """Commit, and then publish the committed rows.

        Publishing order: the subscribed reader gets all rows first, then each `on_durable` runs in the order of the
        appends. So an agent is never ahead of the reader, and no row is published before it is committed.
        """
        appended, self._appended = self._appended, []
        if self._failure is None and (appended or self._events_written):
            self._events_written = False
            try:
                self._file.commit()
            except BaseException as error:  # an edge: the disk, or SQLite
                self._break(_as_exception(error))
        if self._failure is not None:
            self._report_failed(self._failure, *appended)
            return
        if self._feed is not None:
            rows: list[Row] = []
            for append in appended:
                rows += append.lazy_rows
                rows += append.rows
            try:
                self._feed(rows)
            except BaseException:  # an edge, like `call`
                _log.exception(_FOLLOWED)
        for append in appended:
            if append.on_durable is not None:
                try:
                    append.on_durable()
                except BaseException:  # an edge, like `call`; inlined to save a call per append
                    _log.exception(_FOLLOWED)

    def _look(self, request: ReadRequest) -> None:
        try:
            answer = request.query(self._file)
        except BaseException as error:  # an edge: the error is passed to the caller
            answer = _as_exception(error)
        call(request.callback, answer)

    def _change_feed(self, feed: RowFeed) -> None:
        self._commit()  # otherwise the reader would get these rows twice
        self._feed = feed.reader
        for task_id in feed.task_ids:
            self._look(ReadRequest(functools.partial(rows_of, task_id=task_id, conversation=False), self._feed_old))

    def _feed_old(self, answer: Sequence[Row] | Exception) -> None:
        if isinstance(answer, Exception):
            _log.error("the journal could not be read: %s", answer)
        elif self._feed is not None:
            self._feed(answer)

    def _break(self, error: Exception) -> None:
        """Fail for good, and roll back.

        A row that can't be stored must not be published, nor any row after it.
        """
        if self._failure is not None:
            return
        self._failure = error
        try:
            self._file.rollback()
        except BaseException:  # an edge: it is broken already
            _log.exception("the journal could not be rolled back")
        call(self._broken, error)

    def _report_failed(self, error: Exception, *appended: Append) -> None:
        for append in appended:
            if append.on_failure is not None:
                call(append.on_failure, error)
            elif isinstance(error, ValueError):
                _log.error("a row was left out of the journal: %s", error)


def _as_exception(error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    wrapped = RuntimeError(f"the journal's thread was asked to exit: {error!r}")
    wrapped.__cause__ = error
    return wrapped


def call(function: Callable[..., None], *arguments: object) -> None:
    """Call a callback, and log its failure."""
    try:
        function(*arguments)
    except BaseException:  # an edge: a failing callback must not stop the other callbacks
        _log.exception(_FOLLOWED)


def rows_of(file: JournalFile, task_id: str, *, conversation: bool) -> tuple[Row, ...]:
    """Read the rows of a task or of its conversation, without events."""
    task_ids = [task_id]
    if conversation:
        first = next(file.rows(task_id), None)
        task = first.message if first is not None else None
        session = (task.session if isinstance(task, Task) else None) or task_id
        task_ids = list(file.session_tasks(session))
    return tuple(row for member_id in task_ids for row in file.rows(member_id))
