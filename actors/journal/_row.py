"""One row of a journal: a message, and what it belongs to."""

from __future__ import annotations

import contextlib
import operator
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from pydantic import TypeAdapter

from callboard.actors.journal._apart import PARTS
from callboard.actors.journal._failures import journal_errors
from callboard.actors.journal._parts import holders
from callboard.actors.journal._words import AGAIN, told_again
from callboard.messages import (
    ENCODED,
    SHALLOW,
    Assign,
    CommandResult,
    Decided,
    Event,
    Fact,
    JournalDamagedError,
    Message,
    StepDone,
    SubtaskEnded,
    check_depth,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from callboard.actors.journal._apart import Apart
    from callboard.messages import Timestamp

_HIGHEST = 2**63 - 1

_SHORT = 2 * SHALLOW
"""So many bytes of JSON can't be too deep to be read again."""

_CHUNK = 256
"""Rows that are read at once, so that no statement stays open between them."""

EVENTS = "events"
"""The kind of the rows that have events."""

TURN = "turn"
"""The kind of the rows that have several messages of one run, each with its time, its job and its kind."""

REST = "step_rest"
"""The kind of a `StepDone` in a turn that has what it was decided on, and all results: it has but what they do not."""

_REPEATED = {"record": {"observation", "decision", "results"}}
"""What such a one leaves out."""

_Said = tuple[float, int, str, msgspec.Raw]


class _Turn(msgspec.Struct):
    """What is written as one row."""

    first: Row
    said: list[_Said]
    decided: Decided | None = None
    """The last one, unless it is so deep that it may not be readable within a `StepDone`."""
    results: list[CommandResult | None] = []
    """Those since then; None for one that is as deep."""

    def repeated_by(self, done: StepDone) -> bool:
        """Say whether the end of a step has in it what was said before: the same objects."""
        record, decided = done.record, self.decided
        return (
            decided is not None
            and record.decision is decided.decision
            and record.observation is decided.observation
            and len(record.results) == len(self.results)
            and all(map(operator.is_, record.results, self.results))
        )


class _Decided(msgspec.Struct):
    """What of a `Decided` the end of its step has, too."""

    observation: msgspec.Raw
    decision: msgspec.Raw


_EVENTS = TypeAdapter(list[Event])
_SAID = msgspec.json.Decoder(list[_Said])
_TOGETHER = msgspec.json.Encoder().encode
_DECIDED = msgspec.json.Decoder(_Decided)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])

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


def values_of(rows: Sequence[Row], apart: Apart) -> list[Bound]:
    """Give what is bound to `INSERT`; `apart` gets what of the messages is kept apart.

    What the jobs of a run said one after the other is written as one: the model's answer, the decision, results, the
    word with which the step ended, and what the agent decided on that. That word is written without what the row has
    already. The rows of a task stay in their order.

    Raises:
        ValueError: If a message has no tag, or can't be written so that it can be read again: JSON knows no half of
            a surrogate pair, and our reader no more than 200 levels.
    """
    turns: list[_Turn] = []
    latest: dict[str, _Turn] = {}
    for row in rows:
        at, task_id, run_id, message, job = row
        turn = latest.get(task_id)
        if not job or turn is None or turn.first.run_id != run_id or not turn.first.job:
            turn = latest[task_id] = _Turn(row, [])
            turns.append(turn)
        kind, body, deep = _written(row, apart, repeats=type(message) is StepDone and turn.repeated_by(message))
        turn.said.append((at, job, kind, msgspec.Raw(body)))
        if type(message) is CommandResult:
            turn.results.append(None if deep else message)
        elif type(message) is Decided:
            turn.decided, turn.results = None if deep else message, []
    values: list[Bound] = []
    for turn in turns:
        at, task_id, run_id, _, job = turn.first
        if len(turn.said) == 1:
            _, _, kind, only = turn.said[0]
            body = bytes(only)
        else:
            kind, body = TURN, _TOGETHER(turn.said)
        values.append((at, None, task_id, run_id, job, kind, body.decode()))
    return values


def _written(row: Row, apart: Apart, *, repeats: bool) -> tuple[str, bytes, bool]:
    """Write a message: its kind, its JSON, and whether that may be deep; of one that repeats others, the rest."""
    message = row.message
    kind = _KINDS.get(type(message)) or _kind_of(type(message))
    if kind.retold and (again := apart.words.name(row)):
        return AGAIN, again, False
    try:
        if repeats:
            body = kind.encode(message, exclude=_REPEATED)
        else:
            for name in kind.holders:
                if getattr(message, name):
                    message = apart.put_away(row)
                    break
            body = kind.encode(message)
        deep = len(body) > _SHORT and body.count(b"[") + body.count(b"{") > SHALLOW
        if deep:
            check_depth(body)
        f"{row.task_id}{row.run_id}".encode()
    except ValueError as error:
        problem = f"a {kind.tag} of task {row.task_id!r} can't be written down: {error}"
        raise ValueError(problem) from error
    return REST if repeats else kind.tag, body, deep


def values_of_events(facts: Sequence[Fact], refused: Callable[[ValueError], None]) -> list[Bound]:
    """Give what is bound to `INSERT` for events that are written together: one row for those of each task.

    The rows are of the kind `events`. As their number they have that of their last event, and as their job that of the
    first event of all rows: events of one group stand between two others, and so can be read in the order of their
    numbers.

    Args:
        facts: The events, in order.
        refused: Is told of each that can't be written so that it can be read again; the others are written.
    """
    tasks: dict[str, tuple[Fact, list[bytes]]] = {}
    last: dict[str, int] = {}
    group = 0
    for fact in facts:
        try:
            body = ENCODED(fact)
            if len(body) > _SHORT and body.count(b"[") + body.count(b"{") >= SHALLOW:
                check_depth(b"[%b]" % body)  # as it stands in the row
            if fact.seq > _HIGHEST:
                body = _carefully(fact)
        except (TypeError, ValueError):
            try:
                body = _carefully(fact)
            except ValueError as error:
                refused(error)
                continue
        group = group or fact.seq
        tasks.setdefault(fact.task_id, (fact, []))[1].append(body)
        last[fact.task_id] = fact.seq
    values: list[Bound] = []
    for task_id, (first, bodies) in tasks.items():
        body = b"[%b]" % b",".join(bodies)
        values.append((first.at, last[task_id], task_id, "", group, EVENTS, body.decode()))
    return values


def _carefully(fact: Fact) -> bytes:
    """Write an event that is odd.

    Raises:
        ValueError: If it can't be written so that it can be read again.
    """
    if fact.seq > _HIGHEST:
        problem = f"an event of number {fact.seq} can't be written down: SQLite counts to {_HIGHEST}"
        raise ValueError(problem)
    try:
        body = fact.json().encode()
        check_depth(b"[%b]" % body)
        f"{fact.task_id}{fact.run_id}".encode()
    except ValueError as error:
        problem = f"an event of task {fact.task_id!r} can't be written down: {error}"
        raise ValueError(problem) from error
    return body


class _Kind(NamedTuple):
    """A class of messages, and what is to be done to write one."""

    tag: str
    encode: Callable[..., bytes]
    """What `model_dump_json` calls."""
    holders: tuple[str, ...]
    """The fields that can have parts that are kept apart."""
    retold: bool
    """Whether one may be told again."""


_KINDS: dict[type[Message], _Kind] = {}


def _kind_of(message: type[Message]) -> _Kind:
    field = message.model_fields.get("kind")
    if field is None or Message.registry.get(field.default) is not message:
        problem = f"a {message.__name__} can't be written down: no tag leads back to it"
        raise ValueError(problem)
    kind = _Kind(
        tag=field.default,
        encode=message.__pydantic_serializer__.to_json,
        holders=holders(message, *PARTS),
        retold=issubclass(message, Assign | SubtaskEnded),
    )
    return _KINDS.setdefault(message, kind)


def events_in(path: Path, stored: Stored, after: int = 0) -> list[Event]:
    """Read the events of a row that follow a number; older versions wrote a row for each event.

    Raises:
        JournalDamagedError: If they are not valid.
    """
    *_, kind, body = stored
    try:
        events = _EVENTS.validate_json(body if kind == EVENTS else f"[{body}]")
    except ValueError as error:
        raise _unreadable(path, stored, str(error)) from error
    return [event for event in events if event.seq > after]


def rows_in(path: Path, stored: Stored, apart: Apart, words: dict[tuple[str, int], Message]) -> Iterator[Row]:
    """Make the rows of what was read: of what was written as one, one for each message.

    Args:
        path: The journal.
        stored: What was read.
        apart: Brings back what is kept apart.
        words: What jobs of the task said before that may be told again, by run and job; it gets what these rows add.

    Raises:
        JournalDamagedError: If the kind is unknown, or a message is not valid.
    """
    number, at, task_id, run_id, job, kind, body = stored
    if kind == EVENTS:
        for event in events_in(path, stored):
            yield Row(event.at, event.task_id, event.run_id, event)
        return
    try:
        said = _SAID.decode(body) if kind == TURN else [(at, job, kind, body)]
        decided: str | msgspec.Raw = ""
        results: list[str | msgspec.Raw] = []
        for each_at, each_job, each, message in said:
            text = bytes(message).decode() if isinstance(message, msgspec.Raw) else message
            if each == AGAIN:
                yield Row(each_at, task_id, run_id, told_again(text, words), each_job)
                continue
            if each == "decided":
                decided, results = message, []
            elif each == "command_result":
                results.append(message)
            tag, text = ("step_done", _whole(text, decided, results)) if each == REST else (each, text)
            row = row_of(path, (number, each_at, task_id, run_id, each_job, tag, text), apart)
            if each_job and isinstance(row.message, Assign | SubtaskEnded):
                words[run_id, each_job] = row.message
            yield row
    except (LookupError, ValueError, msgspec.DecodeError) as error:
        raise _unreadable(path, stored, str(error)) from error


def _whole(rest: str, decided: str | msgspec.Raw, results: Sequence[str | msgspec.Raw]) -> str:
    """Give the end of a step with what it was decided on and with its results.

    Raises:
        ValueError: If one of them can't be read.
    """
    members, shared = _MEMBERS.decode(rest), _DECIDED.decode(decided)
    record = _MEMBERS.decode(members["record"])
    whole = {**record, "observation": shared.observation, "decision": shared.decision, "results": results}
    return _TOGETHER({**members, "record": whole}).decode()


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
    words: dict[tuple[str, int], Message] = {}
    while True:
        with journal_errors(path, "read"), _unchanged(connection):
            chunk = connection.execute(_READ if events else _READ_BUT_EVENTS, (task_id, last, _CHUNK)).fetchall()
            rows = [row for stored in chunk for row in rows_in(path, stored, apart, words)]
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
