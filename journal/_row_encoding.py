"""The encoding and decoding of rows.

Several messages may share one row of the table, and large parts of them are stored out of line.
"""

from __future__ import annotations

import contextlib
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import structs

from callboard.journal._failures import journal_errors
from callboard.journal._forwarded import AGAIN, resolved
from callboard.journal._parts import holders
from callboard.journal._row import Row
from callboard.messages import (
    SHALLOW,
    STORED,
    Assign,
    CommandResult,
    Decided,
    JournalDamagedError,
    Message,
    Observation,
    StepDone,
    SubtaskEnding,
    check_depth,
    encodable,
    read_events,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from callboard.journal._apart import Apart
    from callboard.messages import Event, Fact

_HIGHEST = 2**63 - 1

_SHORT = 2 * SHALLOW
"""JSON up to this size, in bytes, can't be nested too deeply to be read again."""

_CHUNK = 256
"""The number of rows read at once; no statement stays open between two batches."""

EVENTS = "events"
"""The kind of a row of events."""

TURN = "turn"
"""The kind of a row of several messages of one run, each with its time, job and kind."""

REST = "step_rest"
"""The kind of a `StepDone` in a turn that already holds its decision and results, which it omits."""

_REPEATED = {"observation", "decision", "results"}
"""The fields of a step's record that a row of the kind `step_rest` omits."""

_Entry = tuple[float, int, str, msgspec.Raw]
"""A message in a turn: its time, job, kind and JSON."""


class _Turn(msgspec.Struct):
    """Messages of one run that are written as one row."""

    first: Row
    entries: list[_Entry]
    decided: Decided | None = None
    """The last `Decided`; None if it is nested so deeply that it may be unreadable within a `StepDone`."""
    results: list[CommandResult | None] = []
    """The results since then; None for one that is nested as deeply."""

    def repeated_by(self, done: StepDone) -> bool:
        """Return whether a step's end repeats the messages before it.

        The objects are compared by identity.
        """
        record, decided = done.record, self.decided
        return (
            decided is not None
            and record.decision is decided.decision
            and record.observation is decided.observation
            and len(record.results) == len(self.results)
            and all(map(operator.is_, record.results, self.results))
        )


class _Decided(msgspec.Struct):
    """The fields that a `Decided` shares with the end of its step."""

    observation: msgspec.Raw
    decision: msgspec.Raw


_Event = tuple[int, float, str, str, int | None, str, float | None, dict[str, Any]]
"""An event in a row, without what it shares with its neighbours: seq, at, name, state, step, phase, duration, data."""

_Stretch = tuple[str, str, list[_Event]]
"""Consecutive events of one run in a row, which has their task: the run's id, the agent, and the events."""

_NAMES = ("seq", "at", "name", "state", "step", "phase", "duration", "data")
"""The fields of an `_Event`."""
_FIELDS: Callable[[Fact], _Event] = operator.attrgetter(*_NAMES)

_ENTRIES = msgspec.json.Decoder(list[_Entry])
_TOGETHER = msgspec.json.Encoder().encode
_DECIDED = msgspec.json.Decoder(_Decided)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_STRETCHES = msgspec.json.Decoder(list[tuple[str, str, list[list[msgspec.Raw]]] | dict[str, msgspec.Raw]])

INSERT = "INSERT INTO rows (at, seq, task, run, job, kind, body) VALUES (?, ?, ?, ?, ?, ?, ?)"

Bound = tuple[float, int | None, str, str, int, str, str]
"""The values bound to `INSERT`."""

Stored = tuple[int, float, str, str, int, str, str]
"""The columns read from a row: id, at, task, run, job, kind, body."""

_READ = "SELECT id, at, task, run, job, kind, body FROM rows WHERE task = ? AND id > ? ORDER BY id LIMIT ?"
_READ_BUT_EVENTS = (
    "SELECT id, at, task, run, job, kind, body FROM rows WHERE task = ? AND id > ? AND seq IS NULL ORDER BY id LIMIT ?"
)
_READ_EVENTS = "SELECT id, at, task, run, job, kind, body FROM rows WHERE seq > ? ORDER BY seq"


def values_of(rows: Sequence[Row], apart: Apart) -> list[Bound]:
    """Encode rows as the values bound to `INSERT`.

    Out-of-line parts are added to `apart`.

    Consecutive messages of the jobs of one run are combined into one row of the table: the model's answer, the
    decision, the results, the end of the step, and the assignment or ending that follows. The end of the step omits
    the parts that the row holds already. The rows of a task keep their order.

    Raises:
        ValueError: If a message has no tag, or can't be encoded so that it can be read again: JSON has no lone
            surrogates, and our reader accepts at most 200 levels.
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
        turn.entries.append((at, job, kind, msgspec.Raw(body)))
        if type(message) is CommandResult:
            turn.results.append(None if deep else message)
        elif type(message) is Decided:
            turn.decided, turn.results = None if deep else message, []
    values: list[Bound] = []
    for turn in turns:
        at, task_id, run_id, _, job = turn.first
        if len(turn.entries) == 1:
            _, _, kind, raw_body = turn.entries[0]
            body = bytes(raw_body)
        else:
            kind, body = TURN, _TOGETHER(turn.entries)
        values.append((at, None, task_id, run_id, job, kind, body.decode()))
    return values


def _written(row: Row, apart: Apart, *, repeats: bool) -> tuple[str, bytes, bool]:
    """Encode a message; with `repeats`, without the fields in `_REPEATED`.

    Returns:
        Its kind, its JSON, and whether the JSON may be too deep within a `StepDone`.
    """
    message = row.message
    kind = _KINDS.get(type(message)) or _kind_of(type(message))
    if kind.forwarded and (reference := apart.forwarded.reference(row)):
        return AGAIN, reference, False
    try:
        if repeats and isinstance(message, StepDone):
            body = apart.encoded(row, _unrepeated_fields(message))
        else:
            pictured = kind.pictured and any(getattr(message, name) for name in kind.pictured)
            body = apart.encoded(row, apart.without_pictures(row) if pictured else message)
        deep = len(body) > _SHORT and body.count(b"[") + body.count(b"{") > SHALLOW
        if deep:
            check_depth(body)
        f"{row.task_id}{row.run_id}".encode()
    except ValueError as error:
        problem = f"a {kind.tag} of task {row.task_id!r} can't be written down: {error}"
        raise ValueError(problem) from error
    return REST if repeats else kind.tag, body, deep


def _unrepeated_fields(done: StepDone) -> dict[str, object]:
    """Return the fields of a step's end that its row lacks."""
    record = {name: part for name, part in done.record.__dict__.items() if name not in _REPEATED}
    return {**done.__dict__, "record": record}


def values_of_events(facts: Sequence[Fact], refused: Callable[[ValueError], None]) -> list[Bound]:
    """Encode a group of events as one row per task.

    The rows have the kind `events`. Their sequence number is that of their last event. Their job number marks the
    group: it is the number of the group's first event. No number of another group lies between those of a group, so
    a reader that takes complete groups can sort the events by number.

    Args:
        facts: The events, in order; at least one.
        refused: Called with the error of each event that can't be encoded so that it can be read again; the others
            are encoded, each as a group of its own.
    """
    try:
        return _values_of_group(facts)
    except (TypeError, ValueError) as error:
        if len(facts) > 1:
            return [bound for fact in facts for bound in values_of_events((fact,), refused)]
        [fact] = facts
        data = encodable(fact.data)  # without halves of surrogate pairs, deep in its data
        if data != fact.data:
            return values_of_events((structs.replace(fact, data=data),), refused)
        refused(ValueError(f"an event of task {fact.task_id!r} can't be written down: {error}"))
        return []


def _values_of_group(facts: Sequence[Fact]) -> list[Bound]:
    """Encode a group of events.

    Raises:
        TypeError: If one of them holds a value that is not JSON.
        ValueError: If one of them can't be encoded so that it can be read again.
    """
    tasks: dict[str, list[_Stretch]] = {}
    for fact in facts:
        stretches = tasks.setdefault(fact.task_id, [])
        if not stretches or stretches[-1][0] != fact.run_id or stretches[-1][1] != fact.agent:
            stretches.append((fact.run_id, fact.agent, []))
        stretches[-1][2].append(_FIELDS(fact))
    if facts[-1].seq > _HIGHEST:
        problem = f"SQLite counts to {_HIGHEST}, not to {facts[-1].seq}"
        raise ValueError(problem)
    values: list[Bound] = []
    for task_id, stretches in tasks.items():
        body = _TOGETHER(stretches)
        check_depth(body)
        task_id.encode()
        first, last = stretches[0][2][0], stretches[-1][2][-1]
        values.append((first[1], last[0], task_id, "", facts[0].seq, EVENTS, body.decode()))
    return values


class _Kind(NamedTuple):
    """A class of messages, with the parts of its encoding."""

    tag: str
    pictured: tuple[str, ...]
    """The fields that can contain pictures, apart from those of observations."""
    forwarded: bool
    """Whether a message may be forwarded, and so recorded twice."""


_KINDS: dict[type[Message], _Kind] = {}


def _kind_of(message: type[Message]) -> _Kind:
    field = message.model_fields.get("kind")
    if field is None or Message.registry.get(field.default) is not message:
        problem = f"a {message.__name__} can't be written down: no tag leads back to it"
        raise ValueError(problem)
    kind = _Kind(
        tag=field.default,
        pictured=holders(message, bytes, beside=Observation),
        forwarded=issubclass(message, Assign | SubtaskEnding),
    )
    return _KINDS.setdefault(message, kind)


def events_in(path: Path, stored: Stored, after_seq: int = 0) -> list[Event]:
    """Decode the events of a row after a number.

    Raises:
        JournalDamagedError: If an event is invalid.
    """
    _, _, task_id, _, _, kind, body = stored
    try:
        events = read_events(_with_shared(task_id, body if kind == EVENTS else f"[{body}]"))
    except (ValueError, msgspec.DecodeError) as error:
        raise _unreadable(path, stored, str(error)) from error
    return [event for event in events if event.seq > after_seq]


def events_after(path: Path, connection: sqlite3.Connection, after_seq: int, limit: int) -> list[Event]:
    """Read about `limit` events of all tasks after a number; see `JournalFile.events`."""
    events: list[Event] = []
    group = 0
    with (
        journal_errors(path, "read"),
        contextlib.closing(connection.execute(_READ_EVENTS, (after_seq,))) as rows,
    ):
        for stored in rows:
            _, _, _, _, job, kind, _ = stored
            if len(events) >= limit and not (kind == EVENTS and job == group):
                break
            events += events_in(path, stored, after_seq)
            group = job
    return sorted(events, key=lambda event: event.seq)


def _with_shared(task_id: str, body: str) -> str:
    """Complete the events of a row.

    Up to version 6 of the journal, they were stored complete.

    Raises:
        msgspec.DecodeError: If the body is not a list of stretches or events.
        ValueError: If an event has too few or too many fields.
    """
    events: list[dict[str, Any]] = []
    for part in _STRETCHES.decode(body):
        if isinstance(part, dict):
            events.append(part)
        else:
            run_id, agent, stretch = part
            shared = {"task_id": task_id, "run_id": run_id, "agent": agent}
            events += ({**shared, **dict(zip(_NAMES, fields, strict=True))} for fields in stretch)
    return _TOGETHER(events).decode()


def rows_in(path: Path, stored: Stored, apart: Apart, sent: dict[tuple[str, int], Message]) -> Iterator[Row]:
    """Decode a row of the table into one `Row` per message.

    Args:
        path: The journal.
        stored: The columns of the row.
        apart: Restores the out-of-line parts.
        sent: The task's earlier messages that may be referred to, by run and job; those of this row are added.

    Raises:
        JournalDamagedError: If a kind is unknown, or a message is invalid.
    """
    number, at, task_id, run_id, job, kind, body = stored
    if kind == EVENTS:
        for event in events_in(path, stored):
            yield Row(event.at, event.task_id, event.run_id, event)
        return
    try:
        entries = _ENTRIES.decode(body) if kind == TURN else [(at, job, kind, body)]
        decided: str | msgspec.Raw = ""
        results: list[str | msgspec.Raw] = []
        for entry_at, entry_job, entry_kind, message in entries:
            text = bytes(message).decode() if isinstance(message, msgspec.Raw) else message
            if entry_kind == AGAIN:
                yield Row(entry_at, task_id, run_id, resolved(text, sent), entry_job)
                continue
            if entry_kind == "decided":
                decided, results = message, []
            elif entry_kind == "command_result":
                results.append(message)
            tag, text = ("step_done", _restored(text, decided, results)) if entry_kind == REST else (entry_kind, text)
            row = row_of(path, (number, entry_at, task_id, run_id, entry_job, tag, text), apart)
            if entry_job and isinstance(row.message, Assign | SubtaskEnding):
                sent[run_id, entry_job] = row.message
            yield row
    except (LookupError, ValueError, msgspec.DecodeError) as error:
        raise _unreadable(path, stored, str(error)) from error


def _restored(remainder: str, decided: str | msgspec.Raw, results: Sequence[str | msgspec.Raw]) -> str:
    """Complete a `step_rest` to the JSON of a `StepDone`.

    Raises:
        ValueError: If a part can't be decoded.
    """
    members, shared = _MEMBERS.decode(remainder), _DECIDED.decode(decided)
    record = _MEMBERS.decode(members["record"])
    complete = {**record, "observation": shared.observation, "decision": shared.decision, "results": results}
    return _TOGETHER({**members, "record": complete}).decode()


def row_of(path: Path, stored: Stored, apart: Apart) -> Row:
    """Decode a row of the table that holds one message.

    Raises:
        JournalDamagedError: If the kind is unknown, or the message is invalid.
    """
    _, at, task_id, run_id, job, kind, body = stored
    message_type = Message.registry.get(kind)
    if message_type is None:
        raise _unreadable(path, stored, f"no message is called {kind!r}")
    try:
        message = apart.bring_back(message_type.model_validate_json(body, context=STORED))
    except (ValueError, LookupError, TypeError) as error:
        raise _unreadable(path, stored, str(error)) from error
    return Row(at, task_id, run_id, message, job)


def rows_of(path: Path, connection: sqlite3.Connection, apart: Apart, task_id: str, *, events: bool) -> Iterator[Row]:
    """Read the rows of a task, in order."""
    last = 0
    sent: dict[tuple[str, int], Message] = {}
    while True:
        with journal_errors(path, "read"), unchanged(connection):
            chunk = connection.execute(_READ if events else _READ_BUT_EVENTS, (task_id, last, _CHUNK)).fetchall()
            rows = [row for stored in chunk for row in rows_in(path, stored, apart, sent)]
        yield from rows
        if len(chunk) < _CHUNK:
            return
        last = chunk[-1][0]


@contextlib.contextmanager
def unchanged(connection: sqlite3.Connection) -> Iterator[None]:
    """Read one snapshot of the journal.

    Otherwise another process could delete a task and its out-of-line parts between two statements.
    """
    if connection.in_transaction:  # our own write transaction
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def _unreadable(path: Path, stored: Stored, reason: str) -> JournalDamagedError:
    number, _, task_id, _, _, kind, _ = stored
    whose = f"of task {task_id!r}" if task_id else "of no task"
    return JournalDamagedError(path, f"is damaged: row {number} ({kind}) {whose} can't be read: {reason}")
