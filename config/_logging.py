"""The structured log: each event as a record of the standard library's logging, and as a line where that is asked for.

A host program's own set-up of structlog and logging is left alone.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import logging
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import pydantic_core
import structlog

from callboard.config._host_log import HOST
from callboard.config._keys import output_redactor
from callboard.config._log_file import LogFile
from callboard.config._writer import Writer
from callboard.messages import EventName, phases_of, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue

    from callboard.config._redactor import Redactor
    from callboard.config._settings import Settings
    from callboard.messages import Event, Fact

LEVELS = {
    EventName.PHASE_ENDED: "debug",
    EventName.MODEL_ANSWERED: "debug",
    EventName.STEP_STARTED: "debug",
    EventName.TASK_CANCELLING: "warning",
    EventName.MODEL_REPAIRED: "warning",
    EventName.MODEL_FAILED: "warning",
    EventName.PHASE_RETRIED: "warning",
    EventName.POLICY_UNMATCHED: "warning",
    EventName.SECRET_REFUSED: "warning",
    EventName.SERVER_LEFT_OUT: "warning",
    EventName.COMMAND_LATE: "warning",
    EventName.COMMAND_IN_DOUBT: "warning",
    EventName.LOOP_NOTICED: "warning",
    EventName.STATE_REFUSED: "error",
    EventName.STEP_FAILED: "error",
    EventName.RUN_FAILED: "warning",
    EventName.AGENT_CRASHED: "error",
    EventName.TARGET_ABANDONED: "warning",
    EventName.TOOL_UNMATCHED: "warning",
    EventName.JOURNAL_FAILED: "error",
    EventName.THREAD_BLOCKED: "warning",
    EventName.BLACKBOARD_REBUILT: "warning",
    EventName.EVENTS_MISSED: "warning",
}
"""How important an event is; all others are ``info``."""

_NUMBERS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
"""The numbers of the levels, as `logging` has them."""
_PHASES = _NUMBERS[LEVELS[EventName.PHASE_ENDED]]
_LEVELS = {name: _NUMBERS[LEVELS.get(name, "info")] for name in EventName}


SCHEMA = 1
"""The version of a line's form: of the names that stand in it, and of what they mean."""


class EventLog:
    """Hands events to the logger ``callboard``, and writes them to a file and the standard error stream. Thread-safe.

    Each of them has a daemon thread of its own that renders and writes; callers never wait for any. The logger's has
    one once a handler listens.
    """

    def __init__(self, settings: Settings, stream: TextIO | None = None) -> None:
        """Open the log, and start its threads.

        Args:
            settings: Where it goes, and the secrets that never appear in it.
            stream: Takes the place of the standard error stream.

        Raises:
            SettingsError: If the file can't be opened.
        """
        how, log = settings.log.stream, settings.log
        self._redactor = output_redactor(settings)
        self._least = _NUMBERS[log.level]
        self._labels: dict[str, dict[str, JsonValue]] = {}
        self._writers: list[Writer[Said]] = []
        self._host: Writer[Said] | None = None
        self._starting = threading.Lock()
        self._closed = False
        out = stream if stream is not None else sys.stderr
        if how != "off" and out is not None:  # a program without a console has no standard error stream
            pretty = how == "pretty" or (how == "auto" and out.isatty())
            line = log_line(self._redactor, pretty=pretty, colors=out.isatty())
            self._writers.append(Writer("callboard-log-stream", out, line, own=False))
        if log.file is not None:
            file = LogFile(settings.path(log.file), log.max_bytes, log.backups)
            line = log_line(self._redactor)
            self._writers.append(Writer("callboard-log-file", file, line, own=True))

    def _record(self, said: Said) -> logging.LogRecord:
        event, level = said.event, _LEVELS[said.event.name]
        record = HOST.makeRecord(HOST.name, level, "", 0, event.name.value, (), None)
        record.created, record.msecs = event.at, event.at % 1 * 1000
        fields = self._redactor.redact(_fields(said))
        record.callboard = fields
        record.msg = _Message(event.name.value, fields)
        return record

    @property
    def lost(self) -> int:
        """Lines that could not be written: the disk is full, the stream is closed, or too many lines were waiting."""
        return sum(writer.lost for writer in (*self._writers, *filter(None, [self._host])))

    def write(self, event: Fact) -> None:
        """Queue one event to be written; never blocks. A line that can't be written is counted, and stops nothing."""
        if event.name in _BEGINS:
            labels = event.data.get("labels")
            if isinstance(labels, dict) and labels:
                self._labels[event.task_id] = labels
        if "phases" in event.data and (self._least <= _PHASES or _is_heard(_PHASES)):
            for phase in phases_of(event):
                self._put(phase)
        self._put(event)
        if event.name is EventName.TASK_ENDED:
            self._labels.pop(event.task_id, None)

    def _put(self, event: Fact) -> None:
        level = _LEVELS[event.name]
        heard = not self._closed and _is_heard(level)
        if level < self._least and not heard:
            return
        said = Said(event, self._labels.get(event.task_id, {}))
        if level >= self._least:
            for writer in self._writers:
                writer.put(said)
        if heard:
            with self._starting:
                if self._host is None:
                    self._host = Writer("callboard-log-host", _Handlers(), self._record, own=False)
            self._host.put(said)

    def close(self, timeout: float = 5.0) -> bool:
        """Write out what is queued, end the threads and close the file. Idempotent; raises nothing.

        Args:
            timeout: For how many seconds to wait. A thread that is stuck in a write even then is left behind; what
                still waits behind that write is dropped, and counted.

        Returns:
            Whether every line was written, and the threads have ended.
        """
        end = time.monotonic() + timeout
        self._closed = True
        writers = [*self._writers, *([self._host] if self._host is not None else [])]
        for writer in writers:
            writer.finish()
        ended = [writer.join(end - time.monotonic()) for writer in writers]
        return all(ended)


def log_line(redactor: Redactor | None = None, *, pretty: bool = False, colors: bool = False) -> Callable[[Said], str]:
    """Make a function that renders an event as a line: as JSON, or in words for people.

    The renderers are structlog's. They are called without one of its loggers: an event is no call of a log method, and
    is known to be of a level that is written.
    """
    render: Any = structlog.processors.JSONRenderer(serializer=_json)
    if pretty:
        render = structlog.dev.ConsoleRenderer(colors=colors, event_key="event")
    redact = redactor.redact if redactor else None

    def line(said: Said) -> str:
        fields, name = _fields(said), said.event.name
        if redact is not None:
            fields = redact(fields)
        fields["event"], fields["level"] = str(name), LEVELS.get(name, "info")
        return f"{render(None, '', _tame(fields) if pretty else fields)}\n"

    return line


class Said(NamedTuple):
    """An event, and the labels of its task."""

    event: Event | Fact
    labels: dict[str, JsonValue]


class _Message:
    """The text of a record; made only if a handler wants it."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self._name = name
        self._fields = fields

    def __str__(self) -> str:
        fields = ((name, value) for name, value in self._fields.items() if name not in {"timestamp", "schema"})
        shown = (f"{name}={value if isinstance(value, str) else _json(value)}" for name, value in fields)
        return " ".join([self._name, *shown])


class _Handlers:
    """The handlers of the host program, as a place that the log goes to."""

    def write(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(BaseException):  # what a handler of the host program raises costs it the record
            HOST.handle(record)

    def flush(self) -> None:
        """Nothing waits here: handlers flush as they like."""

    def close(self) -> None:
        """Nothing is open: handlers are the host program's."""


_BEGINS = {EventName.TASK_SUBMITTED, EventName.TASK_RECOVERED}


def _is_heard(level: int) -> bool:
    """Whether a handler of the host program would get a record."""
    if not HOST.isEnabledFor(level):
        return False
    logger: logging.Logger | None = HOST
    while logger is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


_NAMED = frozenset(
    ("timestamp", "schema", "seq", "task", "labels", "subtask", "agent", "state", "step", "phase", "duration")
) | {"event", "level"}
"""What a line says of its own; data of the same name is called otherwise."""


def _fields(said: Said) -> dict[str, Any]:
    event, labels = said
    subtask = "" if event.run_id.endswith("/0") else event.run_id
    named: dict[str, Any] = {
        "timestamp": _timestamp(event.at),
        "schema": SCHEMA,
        "seq": event.seq,
        "task": event.task_id,
        "labels": labels,
        "subtask": subtask,
        "agent": event.agent,
        "state": event.state,
        "step": event.step,
        "phase": event.phase,
        "duration": round(event.duration, 6) if event.duration is not None else None,
    }
    fields = {key: value for key, value in named.items() if value or value == 0}
    for key, value in event.data.items():
        if key == "phases" or (key == "labels" and event.name in _BEGINS):  # these stand in lines of their own, or all
            continue
        fields[f"data_{key}" if key in _NAMED else key] = value
    return fields


def _timestamp(at: float) -> str:
    """Write a time as ISO 8601, in UTC and milliseconds."""
    seconds, milliseconds = divmod(int(at * 1000), 1000)
    return f"{_second(seconds)}.{milliseconds:03}+00:00"


@functools.lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _json(fields: dict[str, Any], **_how: object) -> str:
    """Render a line as JSON; all that is in an event is JSON."""
    return pydantic_core.to_json(fields).decode()


def _tame(fields: dict[str, Any]) -> dict[str, Any]:
    """Show control characters as escapes: what a model or a document says must not steer the terminal.

    The version of the line's form is for machines.
    """
    return {key: _tamed(value) for key, value in fields.items() if key != "schema"}


def _tamed(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {_tamed(key): _tamed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_tamed(item) for item in value]
    return value
