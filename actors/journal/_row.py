"""One row of a journal: a message, and what it belongs to."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from callboard.actors.journal._failures import told
from callboard.actors.journal._parts import check_depth
from callboard.messages import Fact, JournalDamagedError, Message

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from callboard.actors.journal._apart import Apart
    from callboard.messages import Timestamp

_HIGHEST = 2**63 - 1

_CHUNK = 256
"""Rows that are read at once, so that no statement stays open between them."""

INSERT = "INSERT INTO rows (at, seq, task, run, job, kind, body) VALUES (?, ?, ?, ?, ?, ?, ?)"

Bound = tuple[float, int | None, str, str, int, str, str]
"""What is bound to it."""

Stored = tuple[int, float, str, str, int, str, str]
"""What is read of a row: id, at, task, run, job, kind, body."""

_READ = "SELECT id, at, task, run, job, kind, body FROM rows WHERE task = ? AND id > ? ORDER BY id LIMIT ?"
_READ_BUT_EVENTS = (
    "SELECT id, at, task, run, job, kind, body FROM rows WHERE task = ? AND id > ? AND seq IS NULL ORDER BY id LIMIT ?"
)


class Row(NamedTuple):
    """A message as it is kept."""

    at: Timestamp
    """Wall time, but for jumps of it: rows of one process are as far apart as they were written."""
    task_id: str
    """Empty for what belongs to no task."""
    run_id: str
    """The run that the message is applied to; empty for the whole task."""
    message: Message
    job: int = 0
    """The number of the run's job that said it; 0 for what no job said."""


def values_of(row: Row, put_away: Callable[[Row], Message]) -> Bound:
    """Give what is bound to `INSERT`; `put_away` gives the row's message without what is kept apart.

    Raises:
        ValueError: If the message has no tag, or can't be written so that it can be read again: JSON knows no half of
            a surrogate pair, and our reader no more than 200 levels.
    """
    message = row.message
    kind = _KINDS.get(type(message)) or _kind_of(type(message))
    body = _checked(lambda: put_away(row).model_dump_json(), kind, row.task_id, row.run_id)
    return row.at, None, row.task_id, row.run_id, row.job, kind, body


def values_of_fact(fact: Fact) -> Bound:
    """Give what is bound to `INSERT` for an event.

    Raises:
        ValueError: If it can't be written so that it can be read again.
    """
    if fact.seq > _HIGHEST:
        problem = f"an event of number {fact.seq} can't be written down: SQLite counts to {_HIGHEST}"
        raise ValueError(problem)
    body = _checked(fact.json, "event", fact.task_id, fact.run_id)
    return fact.at, fact.seq, fact.task_id, fact.run_id, 0, "event", body


def _checked(write: Callable[[], str], kind: str, task_id: str, run_id: str) -> str:
    """Give a JSON text that can be stored and read again."""
    try:
        body = write()
        check_depth(body)
        if not (task_id.isascii() and run_id.isascii()):
            f"{task_id}{run_id}".encode()
    except ValueError as error:
        problem = f"a {kind} of task {task_id!r} can't be written down: {error}"
        raise ValueError(problem) from error
    return body


_KINDS: dict[type[Message], str] = {}


def _kind_of(message: type[Message]) -> str:
    field = message.model_fields.get("kind")
    if field is None or Message.registry.get(field.default) is not message:
        problem = f"a {message.__name__} can't be written down: no tag leads back to it"
        raise ValueError(problem)
    return _KINDS.setdefault(message, field.default)


def row_of(path: Path, stored: Stored, apart: Apart) -> Row:
    """Make a row of what was read.

    Raises:
        JournalDamagedError: If the kind is unknown, or the message is not valid.
    """
    _, at, task_id, run_id, job, kind, body = stored
    found = Message.registry.get(kind)
    if found is None:
        raise _unreadable(path, stored, f"no message is called {kind!r}")
    try:
        message = apart.bring_back(found.model_validate_json(body))
    except (ValueError, LookupError, TypeError) as error:
        raise _unreadable(path, stored, str(error)) from error
    return Row(at, task_id, run_id, message, job)


def rows_of(path: Path, connection: sqlite3.Connection, apart: Apart, task_id: str, *, events: bool) -> Iterator[Row]:
    """Read the rows of a task in order."""
    last = 0
    while True:
        with told(path, "read"), _unchanged(connection):
            chunk = connection.execute(_READ if events else _READ_BUT_EVENTS, (task_id, last, _CHUNK)).fetchall()
            rows = [row_of(path, stored, apart) for stored in chunk]
        yield from rows
        if len(chunk) < _CHUNK:
            return
        last = chunk[-1][0]


@contextlib.contextmanager
def _unchanged(connection: sqlite3.Connection) -> Iterator[None]:
    """See one state of the journal: another process may drop a task, and what its rows name, while it is read."""
    if connection.in_transaction:  # ours, which writes
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def _unreadable(path: Path, stored: Stored, why: str) -> JournalDamagedError:
    number, _, task_id, _, _, kind, _ = stored
    whose = f"of task {task_id!r}" if task_id else "of no task"
    return JournalDamagedError(path, f"is damaged: row {number} ({kind}) {whose} can't be read: {why}")
