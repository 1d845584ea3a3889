"""The journal's actor: the one thread that writes the file. What is needed together is committed together."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import pykka

from callboard.actors.journal._inbox import Inbox
from callboard.config import HostLog
from callboard.messages import Fact, SupervisorStoppedError, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykka._actor import ActorInbox

    from callboard.actors.journal._file import JournalFile
    from callboard.actors.journal._row import Row

_log = HostLog()


@dataclass(frozen=True)
class Append:
    rows: Sequence[Row | Fact]
    then: Callable[[], None] | None = None
    failed: Callable[[Exception], None] | None = None
    before: Sequence[Row | Fact] = ()
    """Lazy rows that stand before them; they are not one piece with them."""
    needed: bool = True
    """Whether they are to be committed; otherwise with the next that are."""


@dataclass(frozen=True)
class Look:
    """Do something with the file, after all that was appended before."""

    at: Callable[[JournalFile], Any]
    then: Callable[[Any], None]


@dataclass(frozen=True)
class Feed:
    """Let a reader have the rows of some tasks, and all that are kept from then on."""

    reader: Callable[[Sequence[Row]], None]
    task_ids: tuple[str, ...]


@dataclass(frozen=True)
class Commit:
    """Keep what was written; stands behind all that was in the inbox when the first of it came."""


COMMIT = Commit()


@dataclass
class Group:
    """What is committed together."""

    appended: list[Append] = field(default_factory=list)
    due: bool = False
    """Whether a commit is on its way."""


@dataclass
class Pulse:
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
        pulse: Pulse,
    ) -> None:
        super().__init__()
        self._pulse = pulse
        self._file = file
        self._feed: Callable[[Sequence[Row]], None] | None = None
        self._broken = broken
        self._group = Group()
        self._failure: Exception | None = None
        self._ended = False

    def on_start(self) -> None:
        """Give the thread its name, and let it be known."""
        self._pulse.thread = threading.current_thread()
        self._pulse.thread.name = "callboard-journal"

    @staticmethod
    def _create_actor_inbox() -> ActorInbox:
        return Inbox(_refuse)

    def on_receive(self, message: Append | Look | Feed | Commit) -> None:
        """Handle one message. An edge: whatever fails here fails what was to be kept, and nothing else."""
        self._pulse.since = time.monotonic()
        try:
            self._handle(message)
        except BaseException as error:  # noqa: BLE001 - an edge: it would end the thread, and every actor of Pykka's
            self._break(_as_exception(error))
            self._commit()  # which tells who waits
        self._pulse.since = 0.0

    def _handle(self, message: Append | Look | Feed | Commit) -> None:
        match message:
            case Append():
                self._append(message)
            case Commit():
                self._commit()
            case Look():
                self._look(message)
            case Feed():
                self._change_feed(message)

    def _append(self, append: Append) -> None:
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
            except BaseException as error:  # noqa: BLE001 - an edge: the disk, or SQLite
                self._break(_as_exception(error))
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
            self.actor_ref.tell(COMMIT)

    def _append_apart(self, append: Append) -> None:
        """Write what can be written of rows that are not one piece."""
        for row in append.before:
            self._append(Append((row,), needed=False))
        self._append(replace(append, before=()))

    def _commit(self) -> None:
        group, self._group = self._group, Group()
        if self._failure is None and group.appended:
            try:
                self._file.commit()
            except BaseException as error:  # noqa: BLE001 - an edge: the disk, or SQLite
                self._break(_as_exception(error))
        if self._failure is not None:
            for append in group.appended:
                self._tell_failed(append, self._failure)
            return
        if self._feed is not None:
            kept = (row for append in group.appended for row in (*append.before, *append.rows))
            call(self._feed, [row for row in kept if not isinstance(row, Fact)])
        for append in group.appended:
            if append.then is not None:
                call(append.then)

    def _look(self, look: Look) -> None:
        try:
            found = look.at(self._file)
        except BaseException as error:  # noqa: BLE001 - an edge: it belongs to whoever looks
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
        except BaseException:  # noqa: BLE001 - an edge: it is broken already
            _log.exception("the journal could not be rolled back")
        call(self._broken, error)

    def _tell_failed(self, append: Append, error: Exception) -> None:
        if append.failed is not None:
            call(append.failed, error)
        elif isinstance(error, ValueError):
            _log.error("a row of the journal was left out: %s", error)

    def on_stop(self) -> None:
        """Keep what is left, and close the file."""
        self._ended = True
        self._commit()
        try:
            self._file.close()
        except BaseException:  # noqa: BLE001 - an edge: nothing may keep those who wait from their answers
            _log.exception("the journal could not be closed")

    def _stop(self) -> None:
        """Stop, also if a logging handler of the host program raises at Pykka's own words on it."""
        with contextlib.suppress(BaseException):
            super()._stop()
        self.actor_stopped.set()
        if not self._ended:
            self.on_stop()

    def _actor_loop_teardown(self) -> None:
        """Answer what was told behind the stop, and what comes later still; Pykka would drop it."""
        cast("Inbox", self.actor_inbox).end()


def _as_exception(error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    wrapped = RuntimeError(f"the journal's thread was told to leave: {error!r}")
    wrapped.__cause__ = error
    return wrapped


def _refuse(message: object) -> None:
    """Tell whoever waits for a message that nobody handles it any more."""
    closed = SupervisorStoppedError("the journal is closed")
    match message:
        case Append(failed=failed) if failed is not None:
            call(failed, closed)
        case Look(then=then):
            call(then, closed)


def call(function: Callable[..., None], *arguments: object) -> None:
    """Call what waits for a row; if it fails, that is logged."""
    try:
        function(*arguments)
    except BaseException:  # noqa: BLE001 - an edge: who waits for a row must not cost the others theirs
        _log.exception("what followed a row of the journal failed")


def rows_of(file: JournalFile, task_id: str, *, conversation: bool) -> tuple[Row, ...]:
    """Read the rows of a task, or of its whole conversation, without events."""
    task_ids = [task_id]
    if conversation:
        first = next(file.rows(task_id), None)
        task = first.message if first is not None else None
        session = (task.session if isinstance(task, Task) else None) or task_id
        task_ids = list(file.session_tasks(session))
    return tuple(row for each in task_ids for row in file.rows(each))
