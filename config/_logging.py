"""The structured log.

Events become records of `logging`, and lines in a file and on a stream. A host program's own configuration of structlog
and logging is not changed.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import logging
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import msgspec
from pydantic import JsonValue
from pydantic_core import to_json, to_jsonable_python

from callboard.config._keys import output_redactor
from callboard.config._log_file import LogFile
from callboard.config._log_writer import AT_ONCE, LogWriter
from callboard.messages import Event, EventName, Fact, phases_of, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from callboard.config._redactor import Redactor
    from callboard.config._settings import Settings


_Line = TypeVar("_Line")

LEVELS = {
    EventName.PHASE_ENDED: "debug",
    EventName.MODEL_ANSWERED: "debug",
    EventName.STEP_STARTED: "debug",
    EventName.TASK_CANCELLING: "warning",
    EventName.MODEL_REPAIRED: "warning",
    EventName.MODEL_FAILED: "warning",
    EventName.ROUTINE_FOLLOWED: "debug",
    EventName.ROUTINE_MISSED: "warning",
    EventName.PHASE_RETRIED: "warning",
    EventName.POLICY_UNMATCHED: "warning",
    EventName.PROVIDER_UNUSED: "warning",
    EventName.SECRET_REFUSED: "warning",
    EventName.SERVER_LEFT_OUT: "warning",
    EventName.MACHINE_AWAY: "warning",
    EventName.COMMAND_LATE: "warning",
    EventName.COMMAND_IN_DOUBT: "warning",
    EventName.LOOP_NOTICED: "warning",
    EventName.CHECK_FAILED: "warning",
    EventName.STATE_REFUSED: "error",
    EventName.STEP_FAILED: "error",
    EventName.RUN_FAILED: "warning",
    EventName.AGENT_CRASHED: "error",
    EventName.RUN_STALLED: "error",
    EventName.TARGET_ABANDONED: "warning",
    EventName.TOOL_UNMATCHED: "warning",
    EventName.CLOCK_BEHIND: "warning",
    EventName.JOURNAL_FAILED: "error",
    EventName.THREAD_BLOCKED: "warning",
    EventName.BLACKBOARD_REBUILT: "warning",
    EventName.EVENTS_MISSED: "warning",
}
"""The levels of events; all others are ``info``."""

_NUMBERS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
"""The numbers of the levels in `logging`."""
_LEVELS = {name: _NUMBERS[LEVELS.get(name, "info")] for name in EventName}

SCHEMA = 1
"""The version of a line's schema: its names and their meaning."""


class EventLog:
    """Logs events to the logger ``callboard``, a file and standard error. Thread-safe.

    Each destination has its own daemon thread that renders and writes, so callers never wait. The logger's thread is
    started once a handler exists.
    """

    def __init__(self, settings: Settings, stream: TextIO | None = None) -> None:
        """Open the log and start its threads.

        Args:
            settings: Its destinations, and the secrets that are redacted.
            stream: Replaces the standard error stream.

        Raises:
            SettingsError: If the file can't be opened.
        """
        how, log = settings.log.stream, settings.log
        self._redactor = output_redactor(settings)
        self._record_fields = _renderer(lambda fields: fields, self._redactor)
        self._written = {name for name, level in _LEVELS.items() if level >= _NUMBERS[log.level]}
        self._phases = EventName.PHASE_ENDED in self._written
        self._labels: dict[str, dict[str, JsonValue]] = {}
        self._writers: list[LogWriter[LabelledEvent, Any]] = []
        self._host: LogWriter[LabelledEvent, logging.LogRecord] | None = None
        self._starting = threading.Lock()
        self._closed = False
        out = stream if stream is not None else sys.stderr
        if how != "off" and out is not None:  # a program without a console has no standard error stream
            pretty = how == "pretty" or (how == "auto" and out.isatty())
            line = log_line(self._redactor, pretty=pretty, colors=out.isatty())
            self._writers.append(LogWriter("callboard-log-stream", _Stream(out), line, closes=False))
        if log.file is not None:
            file = LogFile(settings.path(log.file), log.max_bytes, log.backups)
            rendered = _renderer(_ENCODE, self._redactor)
            self._writers.append(LogWriter("callboard-log-file", file, rendered, closes=True, at_once=AT_ONCE))

    def _record(self, entry: LabelledEvent) -> logging.LogRecord:
        event, fields = entry.event, self._record_fields(entry)
        name, level = fields.pop("event"), fields.pop("level")
        record = HOST.makeRecord(HOST.name, _NUMBERS[level], "", 0, name, (), None)
        record.created, record.msecs = event.at, event.at % 1 * 1000
        record.callboard = fields
        record.msg = _Message(name, fields)
        return record

    @property
    def lost(self) -> int:
        """The number of lost lines.

        Lines are lost if the disk is full, the stream is closed, or the queue was full.
        """
        return sum(writer.lost for writer in (*self._writers, *filter(None, [self._host])))

    def write(self, event: Fact) -> None:
        """Queue one event without blocking.

        Lines that can't be written are counted in `lost`.
        """
        name, task_id, data = event.name, event.task_id, event.data
        if name in _BEGINS and data.get("labels"):
            self._labels[task_id] = data["labels"]
        labels = self._labels.get(task_id)
        logged = HOST.handlers != SILENT or (HOST.propagate and logging.root.handlers)
        phases = phases_of(event) if "phases" in data and (logged or self._phases) else ()
        for fact in (*phases, event):
            if logged or fact.name in self._written:
                entry = LabelledEvent(fact, labels)
                if fact.name in self._written:
                    for writer in self._writers:
                        writer.put(entry)
                if logged:
                    self._tell_host(entry)
        if name is EventName.TASK_ENDED:
            self._labels.pop(task_id, None)

    def _tell_host(self, entry: LabelledEvent) -> None:
        """Queue an event for handlers of the host program that take it."""
        if self._closed or not _is_logged(_LEVELS[entry.event.name]):
            return
        with self._starting:
            if self._host is None:
                self._host = LogWriter("callboard-log-host", _Handlers(), self._record, closes=False)
        self._host.put(entry)

    def close(self, timeout: float = 5.0) -> bool:
        """Write the queued events, end the threads and close the file.

        Idempotent; raises nothing.

        Args:
            timeout: Seconds to wait. A thread that is still blocked in a write is abandoned; the lines queued behind
                that write, which has up to 100 lines for a file, are dropped and counted.

        Returns:
            True if every line was written, and the threads have ended.
        """
        end = time.monotonic() + timeout
        self._closed = True
        writers = [*self._writers, *([self._host] if self._host is not None else [])]
        for writer in writers:
            writer.finish()
        ended = [writer.join(end - time.monotonic()) for writer in writers]
        return all(ended)


def log_line(
    redactor: Redactor | None = None, *, pretty: bool = False, colors: bool = False
) -> Callable[[LabelledEvent], str]:
    """Make a function that renders an event as a line.

    The line is JSON, or text for people. Text is rendered by structlog's renderer, without its loggers: an event is not
    a call of a log method, and its level has been checked. structlog's JSON renderer would only call the encoder that
    is called here.
    """
    if not pretty:
        return _renderer(lambda fields: f"{_ENCODE(fields).decode()}\n", redactor)
    import structlog

    console = structlog.dev.ConsoleRenderer(colors=colors, event_key="event")
    return _renderer(lambda fields: f"{console(None, '', _tame(dict(_not_empty(fields))))}\n", redactor)


def _not_empty(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields that are not empty.

    An empty text, list or mapping tells people nothing; 0 and false do.
    """
    yield from ((name, value) for name, value in fields.items() if value or isinstance(value, int | float))


class LabelledEvent(msgspec.Struct, frozen=True):
    """An event, and the labels of its task."""

    event: Event | Fact
    labels: dict[str, JsonValue] | None = None


class _Message:
    """The text of a record, built only if a handler needs it."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self._name = name
        self._fields = fields

    def __str__(self) -> str:
        fields = ((name, value) for name, value in _not_empty(self._fields) if name not in {"timestamp", "schema"})
        texts = (f"{name}={value if isinstance(value, str) else to_json(value).decode()}" for name, value in fields)
        return " ".join([self._name, *texts])


class _Stream:
    """A text stream as a destination.

    It takes one line at a time, since each write may block.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self.flush = out.flush

    def write(self, lines: Sequence[str]) -> int:
        self._out.write(lines[0])
        return 1

    def close(self) -> None:
        """Leave it open: it belongs to the host program."""


class _Handlers:
    """The host program's handlers as a destination."""

    def write(self, records: Sequence[logging.LogRecord]) -> int:
        with contextlib.suppress(BaseException):  # a handler that raises loses the record
            HOST.handle(records[0])
        return 1

    def flush(self) -> None:
        """Do nothing: handlers flush on their own."""

    def close(self) -> None:
        """Do nothing: the handlers belong to the host program."""


_BEGINS = {EventName.TASK_SUBMITTED, EventName.TASK_RECOVERED}


def _is_logged(level: int) -> bool:
    """Return whether the host program handles records of a level."""
    if not HOST.isEnabledFor(level):
        return False
    logger: logging.Logger | None = HOST
    while logger is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


_OPTIONAL = ("task", "labels", "subtask", "agent", "state", "step", "phase", "duration")
"""The fields that a line has only if they apply."""
_NAMED = frozenset({"timestamp", "schema", "seq", *_OPTIONAL, "event", "level"})
"""The fixed fields of a line; data of the same name is prefixed with `data_`."""
_ENCODE = msgspec.json.Encoder(enc_hook=to_jsonable_python).encode


def _renderer(render: Callable[[dict[str, Any]], _Line], redactor: Redactor | None) -> Callable[[LabelledEvent], _Line]:
    """Make a function that redacts and renders an event's line."""
    return functools.partial(_rendered, render, redactor.redact if redactor else None)


def _rendered(
    render: Callable[[dict[str, Any]], _Line],
    redact: Callable[[dict[str, Any]], dict[str, Any]] | None,
    entry: LabelledEvent,
) -> _Line:
    """Render the line of an event.

    It has the fields that apply, the event's data, name and level.
    """
    event, data = entry.event, entry.event.data
    seconds, milliseconds = divmod(int(event.at * 1000), 1000)
    fields: dict[str, Any] = {
        "timestamp": f"{_second(seconds)}.{milliseconds:03}+00:00",
        "schema": SCHEMA,
        "seq": event.seq,
    }
    if event.task_id:
        fields["task"] = event.task_id
    if entry.labels:
        fields["labels"] = entry.labels
    if event.run_id and not event.run_id.endswith(("~0", "/0")):
        fields["subtask"] = event.run_id
    if event.agent:
        fields["agent"] = event.agent
    if event.state:
        fields["state"] = event.state
    if event.step is not None:
        fields["step"] = event.step
    if event.phase:
        fields["phase"] = event.phase
    if event.duration is not None:
        fields["duration"] = round(event.duration, 6)
    fields.update(data if _NAMED.isdisjoint(data) else _renamed(event))
    fields.pop("phases", None)  # phases have their own lines
    if redact is not None:
        fields = redact(fields)
    fields["event"], fields["level"] = str(event.name), LEVELS.get(event.name, "info")
    return render(fields)


def _renamed(event: Event | Fact) -> dict[str, Any]:
    """Prefix the names of an event's data that clash.

    They clash with the line's fixed fields.
    """
    return {
        f"data_{key}" if key in _NAMED else key: value
        for key, value in event.data.items()
        if key != "labels" or event.name not in _BEGINS  # all lines of the task have the labels
    }


@functools.lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _tame(fields: dict[str, Any]) -> dict[str, Any]:
    """Escape control characters.

    Text from models and documents must not control the terminal. The schema's version is left out, since only machines
    need it.
    """
    return {key: _tamed(value) for key, value in fields.items() if key != "schema"}


def _tamed(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {_tamed(key): _tamed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_tamed(item) for item in value]
    return value


HOST = logging.getLogger("callboard")
"""The logger ``callboard``, which the host program configures."""
SILENT: list[logging.Handler] = [logging.NullHandler()]
"""Its handlers if the host program has added none."""
HOST.addHandler(SILENT[0])  # otherwise an unconfigured `logging` prints warnings to stderr


class HostLog(logging.LoggerAdapter[logging.Logger]):
    """A logger that never raises.

    Handlers and filters of the host program can't end a thread.
    """

    def __init__(self) -> None:
        """Log as ``callboard``."""
        super().__init__(HOST, {})

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log a message; it is lost if that raises."""
        with contextlib.suppress(BaseException):
            super().log(level, msg, *args, **{**kwargs, "stacklevel": 2})  # the caller's line
