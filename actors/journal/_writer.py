"""The journal's actor: the one thread that writes the file. What is needed together is committed together."""

from __future__ import annotations

import concurrent.futures
import functools
import logging
import queue
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pykka

from callboard.actors.journal._journal import Journal
from callboard.actors.journal._row import Row
from callboard.messages import Event, JournalError, SupervisorStoppedError, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pykka._actor import ActorInbox

    from callboard.actors.journal._file import JournalFile
    from callboard.messages import Seconds, TaskResult

_log = logging.getLogger("callboard")

LAZY_SECONDS = 0.05
"""The longest that rows wait which nothing depends on."""

RETAIN_SECONDS = 3600.0
"""How often a journal is looked through for what is past its time."""


@dataclass(frozen=True)
class _Append:
    rows: Sequence[Row]
    then: Callable[[], None] | None = None
    failed: Callable[[Exception], None] | None = None
    before: Sequence[Row] = ()
    """Lazy rows that stand before them; they are not one piece with them."""
    needed: bool = True
    """Whether they are to be committed; otherwise with the next that are."""


@dataclass(frozen=True)
class _Look:
    """Do something with the file, after all that was appended before."""

    at: Callable[[JournalFile], Any]
    then: Callable[[Any], None]


@dataclass(frozen=True)
class _Feed:
    """Let a reader have the rows of some tasks, and all that are kept from then on."""

    reader: Callable[[Sequence[Row]], None]
    task_ids: tuple[str, ...]


@dataclass(frozen=True)
class _Commit:
    """Keep what was written; stands behind all that was in the inbox when the first of it came."""


_COMMIT = _Commit()


@dataclass
class _Group:
    """What is committed together."""

    appended: list[_Append] = field(default_factory=list)
    due: bool = False
    """Whether a commit is on its way."""


@dataclass
class _Pulse:
    """What others see of the writer's thread."""

    thread: threading.Thread | None = None
    since: float = 0.0
    """When the message came that is handled now; 0 between two."""


class Writer(pykka.ThreadingActor):
    """Owns the file. Runs on its own thread, which alone may wait for the disk.

    The first append that is needed is committed at once if nothing waits behind it. Else it makes a group: it tells
    this actor to commit, and that word stands behind everything that was already waiting in its inbox.
    """

    use_daemon_thread = True

    def __init__(
        self,
        file: JournalFile,
        broken: Callable[[Exception], None],
        pulse: _Pulse,
    ) -> None:
        super().__init__()
        self._pulse = pulse
        self._file = file
        self._feed: Callable[[Sequence[Row]], None] | None = None
        self._broken = broken
        self._group = _Group()
        self._failure: Exception | None = None

    def on_start(self) -> None:
        """Give the thread its name, and let it be known."""
        self._pulse.thread = threading.current_thread()
        self._pulse.thread.name = "callboard-journal"

    @staticmethod
    def _create_actor_inbox() -> ActorInbox:
        """Take a queue without the locks that Pykka's own has; it is the busiest one of all."""
        return queue.SimpleQueue()

    def on_receive(self, message: _Append | _Look | _Feed | _Commit) -> None:
        """Handle one message. An edge: whatever fails here fails what was to be kept, and nothing else."""
        self._pulse.since = time.monotonic()
        match message:
            case _Append():
                self._append(message)
            case _Commit():
                self._commit()
            case _Look():
                self._look(message)
            case _Feed():
                self._change_feed(message)
        self._pulse.since = 0.0

    def _append(self, append: _Append) -> None:
        if self._failure is None:
            try:
                rows = [*append.before, *append.rows]
                if rows:
                    self._file.write(rows)
            except ValueError as error:  # one of them can't be written down
                if append.before:
                    self._append_apart(append)
                else:
                    self._tell_failed(append, error)
                return
            except Exception as error:  # noqa: BLE001 - an edge: the disk, or SQLite
                self._break(error)
        if self._failure is not None:
            self._tell_failed(append, self._failure)
            return
        self._group.appended.append(append)
        if not append.needed or self._group.due:
            return
        if self.actor_inbox.empty():
            self._commit()
        else:
            self._group.due = True
            self.actor_ref.tell(_COMMIT)

    def _append_apart(self, append: _Append) -> None:
        """Write what can be written of rows that are not one piece."""
        for row in append.before:
            self._append(_Append((row,), needed=False))
        self._append(replace(append, before=()))

    def _commit(self) -> None:
        group, self._group = self._group, _Group()
        if self._failure is None and group.appended:
            try:
                self._file.commit()
            except Exception as error:  # noqa: BLE001 - an edge: the disk, or SQLite
                self._break(error)
        if self._failure is not None:
            for append in group.appended:
                self._tell_failed(append, self._failure)
            return
        if self._feed is not None:
            _call(self._feed, [row for append in group.appended for row in (*append.before, *append.rows)])
        for append in group.appended:
            if append.then is not None:
                _call(append.then)

    def _look(self, look: _Look) -> None:
        try:
            found = look.at(self._file)
        except Exception as error:  # noqa: BLE001 - an edge: it belongs to whoever looks
            found = error
        _call(look.then, found)

    def _change_feed(self, feed: _Feed) -> None:
        self._commit()  # so that nothing is both read here and fed later
        self._feed = feed.reader
        for task_id in feed.task_ids:
            self._look(_Look(functools.partial(_rows, task_id=task_id, conversation=False), self._feed_old))

    def _feed_old(self, found: Sequence[Row] | Exception) -> None:
        if isinstance(found, Exception):
            _log.error("the journal could not be read: %s", found)
        elif self._feed is not None:
            self._feed(found)

    def _break(self, error: Exception) -> None:
        """Give up for good: what can't be kept must not be told, nor anything after it."""
        self._failure = error
        try:
            self._file.rollback()
        except JournalError:
            _log.exception("the journal could not be rolled back")
        _call(self._broken, error)

    def _tell_failed(self, append: _Append, error: Exception) -> None:
        if append.failed is not None:
            _call(append.failed, error)
        elif isinstance(error, ValueError):
            _log.error("a row of the journal was left out: %s", error)

    def on_stop(self) -> None:
        """Keep what is left, and close the file."""
        self._commit()
        try:
            self._file.close()
        except JournalError:
            _log.exception("the journal could not be closed")


class FileJournal(Journal):
    """A journal in a file."""

    def __init__(
        self,
        file: JournalFile,
        *,
        broken: Callable[[Exception], None],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        """Start the actor that owns the file.

        Args:
            file: The open file; it is closed with the journal.
            broken: Called once, if the file can't be written any more.
            later: Calls a function after so many seconds: a clock's `after`.
        """
        self._pulse = _Pulse()
        self._writer: pykka.ActorRef[Writer] = Writer.start(file, broken, self._pulse)
        self._later = later
        self._waiting: list[Row] = []
        self._timed = False
        self._lock = threading.Lock()

    @property
    def survives(self) -> bool:
        """It does."""
        return True

    @property
    def thread(self) -> threading.Thread | None:
        """The writer's."""
        return self._pulse.thread

    @property
    def busy(self) -> Seconds:
        """For how long the writer has been with one message."""
        since = self._pulse.since
        return time.monotonic() - since if since else 0.0

    def append(
        self,
        rows: Sequence[Row],
        then: Callable[[], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
        *,
        lazy: bool = False,
    ) -> None:
        """Hand rows to the writer; lazy ones wait here, and go with the next that are needed, in their order."""
        lazy = lazy and then is None and failed is None
        with self._lock:
            if lazy:
                self._waiting.extend(rows)
                first, self._timed = not self._timed, True
            else:
                waiting, self._waiting = self._waiting, []
                told = tell(self._writer, _Append(rows, then, failed, waiting))
        if lazy:
            if first:
                self._later(LAZY_SECONDS, self._flush_late)
        elif not told and failed is not None:
            failed(SupervisorStoppedError("the journal is closed"))

    def _flush_late(self) -> None:
        self._timed = False
        self._flush()

    def _flush(self) -> None:
        """Have all that was appended kept."""
        self.append(())

    def retain(self, days: float | None, max_bytes: int | None) -> None:
        """Drop tasks that ended too long ago, or are too many, from now on and again and again."""

        def prune() -> None:
            if tell(self._writer, _Look(lambda file: file.prune(days=days, max_bytes=max_bytes), _pruned)):
                self._later(RETAIN_SECONDS, prune)

        self._later(RETAIN_SECONDS, prune)

    def event(self, event: Event) -> None:
        """Keep an event; nothing depends on it."""
        self.append((Row(event.at, event.task_id, event.run_id, event),), lazy=True)

    def events(self, after: int, limit: int) -> list[Event]:
        """Read the events that follow a number, at most so many. Blocks."""
        found: list[Event] = self._ask(lambda file: file.events(after, limit))
        return found

    def read(
        self, task_id: str, then: Callable[[Sequence[Row] | Exception], None], *, conversation: bool = False
    ) -> None:
        """Have the writer read a task, or its conversation."""
        self._flush()
        tell(self._writer, _Look(lambda file: _rows(file, task_id, conversation=conversation), then))

    def find(self, task: Task) -> str | None:
        """Ask the writer."""
        found: str | None = self._ask(lambda file: _find(file, task))
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
        tell(self._writer, _Feed(reader, tuple(task_ids)))

    def forget(self, task_ids: Iterable[str]) -> None:
        """Keep them: another process may want them."""

    def close(self, timeout: float) -> bool:
        """Stop the actor, after all that was appended."""
        self._flush()
        stopped = self._writer.stop(block=False)
        try:
            stopped.get(timeout=timeout)
        except pykka.Timeout:
            return False
        return True

    def _ask(self, at: Callable[[JournalFile], Any]) -> Any:  # noqa: ANN401 - whatever is asked for
        answer: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def then(found: Any) -> None:  # noqa: ANN401 - whatever is asked for
            if isinstance(found, Exception):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        self._flush()
        if not tell(self._writer, _Look(at, then)):
            msg = "the journal is closed"
            raise SupervisorStoppedError(msg)
        return answer.result()


def tell(writer: pykka.ActorRef[Writer], message: object) -> bool:
    """Tell the writer; False if it is stopped."""
    try:
        writer.tell(message)
    except pykka.ActorDeadError:
        return False
    return True


def _pruned(found: int | Exception) -> None:
    if isinstance(found, Exception):
        _log.error("the journal could not be pruned: %s", found)


def _call(function: Callable[..., None], *arguments: object) -> None:
    try:
        function(*arguments)
    except Exception:  # noqa: BLE001 - an edge: who waits for a row must not cost the others theirs
        _log.exception("what followed a row of the journal failed")


def _rows(file: JournalFile, task_id: str, *, conversation: bool) -> tuple[Row, ...]:
    task_ids = [task_id]
    if conversation:
        first = next(file.rows(task_id), None)
        task = first.message if first is not None else None
        session = (task.session if isinstance(task, Task) else None) or task_id
        task_ids = list(file.session_tasks(session))
    return tuple(row for each in task_ids for row in file.rows(each))


def _conversation(file: JournalFile, session: str) -> tuple[str, ...]:
    first = next(file.rows(session), None)
    if first is not None and isinstance(first.message, Task) and first.message.target is not None:
        return ()  # it had no HostAgent
    return file.session_tasks(session)


def _find(file: JournalFile, task: Task) -> str | None:
    if file.knows(task.id):
        return task.id
    return file.keyed(task.key) if task.key is not None else None


def _ended(file: JournalFile, task_id: str) -> tuple[Task, TaskResult] | None:
    result = file.result(task_id)
    first = next(file.rows(task_id), None)
    return (first.message, result) if result is not None and first and isinstance(first.message, Task) else None
