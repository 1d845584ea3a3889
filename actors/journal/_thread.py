"""The journal's thread: the only one that writes the file. What waits together is committed together."""

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

    from callboard.actors.journal._file import JournalFile
    from callboard.actors.journal._row import Row
    from callboard.messages import Fact

_log = HostLog()

_FOLLOWED = "what followed a row of the journal failed"


class Append(NamedTuple):
    rows: Sequence[Row]
    then: Callable[[], None] | None = None
    failed: Callable[[Exception], None] | None = None
    before: Sequence[Row] = ()
    """Lazy rows that stand before them; they are not one piece with them."""


class Look(NamedTuple):
    """Do something with the file, after all that was appended before."""

    at: Callable[[JournalFile], Any]
    then: Callable[[Any], None]


class Feed(NamedTuple):
    """Let a reader have the rows of some tasks, and all that are kept from then on."""

    reader: Callable[[Sequence[Row]], None]
    task_ids: tuple[str, ...]


class Writer:
    """Owns the file. Runs on its own thread, which alone may wait for the disk.

    It handles all that waits in its queue, commits that once, and then tells whoever waits for it.

    Args:
        file: The open file; it is closed at the end.
        broken: Called once, if the file can't be written any more.
    """

    def __init__(self, file: JournalFile, broken: Callable[[Exception], None]) -> None:
        self._file = file
        self._feed: Callable[[Sequence[Row]], None] | None = None
        self._broken = broken
        self._appended: list[Append] = []
        """What is written, and not committed yet."""
        self.events: collections.deque[Fact] = collections.deque()
        """What was told, and is not written yet: it goes with what is put next. Any thread may add to it."""
        self._told = False
        """Whether events are written, and not committed yet."""
        self._failure: Exception | None = None
        self.queue: queue.SimpleQueue[Append | Look | Feed | None] = queue.SimpleQueue()
        self.closed = False
        self.lock = threading.Lock()
        """Held by whoever looks whether it is closed, and then puts something into the queue; `put` does both."""
        self.since = 0.0
        """When it began with what it does now; 0 while nothing waits."""
        self.thread = threading.Thread(target=self._main, name="callboard-journal", daemon=True)
        self.thread.start()

    def put(self, message: Append | Look | Feed) -> bool:
        """Queue a message; False after `close`: it is not handled then."""
        with self.lock:
            if not self.closed:
                self.queue.put(message)
            return not self.closed

    def close(self, timeout: float) -> bool:
        """Handle what waits, and close the file. Returns whether that was done in time."""
        with self.lock:
            if not self.closed:
                self.closed = True
                self.queue.put(None)
        if threading.current_thread() is not self.thread:
            self.thread.join(timeout)
        return not self.thread.is_alive()

    def _main(self) -> None:
        going_on = True
        while going_on:
            waiting = [self.queue.get()]
            many = self.queue.qsize()
            while len(waiting) <= many:
                waiting.append(self.queue.get())
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
                    going_on = False
                else:
                    self._handle(message)
            self._append(appends)
            self._commit()
            self.since = 0.0
        try:
            self._file.close()
        except BaseException:  # an edge: nothing may keep those who wait from their answers
            _log.exception("the journal could not be closed")

    def _handle(self, message: Look | Feed) -> None:
        """Handle one message. An edge: whatever fails here fails what was to be kept, and nothing else."""
        try:
            match message:
                case Look():
                    self._look(message)
                case Feed():
                    self._change_feed(message)
        except BaseException as error:  # an edge: it would end the thread
            self._break(_as_exception(error))

    def _write_events(self) -> None:
        """Write the events that wait: those of a task in one row."""
        facts: list[Fact] = []
        while self.events:  # nobody else takes any
            facts.append(self.events.popleft())
        if self._failure is not None:
            return
        self.since, self._told = time.monotonic(), True
        try:
            self._file.write_events(facts, lambda error: _log.error("an event was left out of the journal: %s", error))
        except BaseException as error:  # an edge: the disk, or SQLite
            self._break(_as_exception(error))

    def _append(self, appends: list[Append]) -> None:
        """Write rows. An edge, but for what cannot fail: whatever fails here fails what was to be kept."""
        rows: list[Row] = []
        for append in appends:
            rows += append.before
            rows += append.rows
        if self._failure is None and rows:
            try:
                self._file.write(rows)
            except ValueError as error:  # one of them can't be written down
                if len(appends) > 1 or appends[0].before:
                    self._append_apart(appends)
                else:
                    self._tell_failed(error, *appends)
                return
            except BaseException as error:  # an edge: the disk, or SQLite
                self._break(_as_exception(error))
        if self._failure is not None:
            self._tell_failed(self._failure, *appends)
            return
        self._appended += appends

    def _append_apart(self, appends: list[Append]) -> None:
        """Write what can be written of rows that are not one piece."""
        for append in appends:
            if len(appends) > 1:
                self._append([append])
                continue
            for row in append.before:
                self._append([Append((row,))])
            self._append([append._replace(before=())])

    def _commit(self) -> None:
        appended, self._appended = self._appended, []
        if self._failure is None and (appended or self._told):
            self._told = False
            try:
                self._file.commit()
            except BaseException as error:  # an edge: the disk, or SQLite
                self._break(_as_exception(error))
        if self._failure is not None:
            self._tell_failed(self._failure, *appended)
            return
        if self._feed is not None:
            kept: list[Row] = []
            for append in appended:
                kept += append.before
                kept += append.rows
            try:
                self._feed(kept)
            except BaseException:  # an edge, as `call`
                _log.exception(_FOLLOWED)
        for append in appended:
            if append.then is not None:
                try:
                    append.then()
                except BaseException:  # an edge, as `call`, which would be one more for each that waits
                    _log.exception(_FOLLOWED)

    def _look(self, look: Look) -> None:
        try:
            found = look.at(self._file)
        except BaseException as error:  # an edge: it belongs to whoever looks
            found = _as_exception(error)
        call(look.then, found)

    def _change_feed(self, feed: Feed) -> None:
        self._commit()  # so that nothing is both read here and fed later
        self._feed = feed.reader
        for task_id in feed.task_ids:
            self._look(Look(functools.partial(rows_of, task_id=task_id, conversation=False), self._feed_old))

    def _feed_old(self, found: Sequence[Row] | Exception) -> None:
        if isinstance(found, Exception):
            _log.error("the journal could not be read: %s", found)
        elif self._feed is not None:
            self._feed(found)

    def _break(self, error: Exception) -> None:
        """Give up for good: what can't be kept must not be told, nor anything after it."""
        if self._failure is not None:
            return
        self._failure = error
        try:
            self._file.rollback()
        except BaseException:  # an edge: it is broken already
            _log.exception("the journal could not be rolled back")
        call(self._broken, error)

    def _tell_failed(self, error: Exception, *appended: Append) -> None:
        for append in appended:
            if append.failed is not None:
                call(append.failed, error)
            elif isinstance(error, ValueError):
                _log.error("a row of the journal was left out: %s", error)


def _as_exception(error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    wrapped = RuntimeError(f"the journal's thread was told to leave: {error!r}")
    wrapped.__cause__ = error
    return wrapped


def call(function: Callable[..., None], *arguments: object) -> None:
    """Call what waits for a row; if it fails, that is logged."""
    try:
        function(*arguments)
    except BaseException:  # an edge: who waits for a row must not cost the others theirs
        _log.exception(_FOLLOWED)


def rows_of(file: JournalFile, task_id: str, *, conversation: bool) -> tuple[Row, ...]:
    """Read the rows of a task, or of its whole conversation, without events."""
    task_ids = [task_id]
    if conversation:
        first = next(file.rows(task_id), None)
        task = first.message if first is not None else None
        session = (task.session if isinstance(task, Task) else None) or task_id
        task_ids = list(file.session_tasks(session))
    return tuple(row for each in task_ids for row in file.rows(each))
