"""The structured log: one line for each event. A host program's own structlog and logging set-up is left alone."""

from __future__ import annotations

import datetime as dt
import functools
import re
import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

import pydantic_core
import structlog

from callboard.config._keys import output_redactor
from callboard.config._private import make_private, open_private
from callboard.config._writer import Writer
from callboard.messages import Event, EventName, SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from callboard.config._settings import Settings

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
    EventName.COMMAND_LATE: "warning",
    EventName.COMMAND_IN_DOUBT: "warning",
    EventName.LOOP_NOTICED: "warning",
    EventName.STATE_REFUSED: "error",
    EventName.STEP_FAILED: "error",
    EventName.RUN_FAILED: "warning",
    EventName.AGENT_CRASHED: "error",
    EventName.TARGET_ABANDONED: "warning",
    EventName.JOURNAL_FAILED: "error",
    EventName.THREAD_BLOCKED: "warning",
    EventName.BLACKBOARD_REBUILT: "warning",
    EventName.EVENTS_MISSED: "warning",
}
"""How important an event is; all others are ``info``."""

_NUMBERS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
"""The numbers of the levels, as `logging` has them."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class EventLog:
    """Writes events as log lines, to a file, to the standard error stream, or both. Thread-safe.

    Each of the two has a daemon thread of its own that renders and writes; callers never wait for either.
    """

    def __init__(self, settings: Settings, stream: TextIO | None = None) -> None:
        """Open the log, and start its threads.

        Args:
            settings: Where it goes, and the secrets that never appear in it.
            stream: Takes the place of the standard error stream.

        Raises:
            SettingsError: If the file can't be opened.
        """
        self._redactor = output_redactor(settings)
        self._least = _NUMBERS[settings.log.level]
        outputs: list[tuple[str, TextIO, Any, bool]] = []
        how = settings.log.format
        out = stream if stream is not None else sys.stderr
        if how != "off" and out is not None:  # a program without a console has no standard error stream
            pretty = how == "pretty" or (how == "auto" and out.isatty())
            outputs.append(("callboard-log-stream", out, _logger(out, pretty=pretty), False))
        if settings.log.file is not None:
            file = _open(settings.path(settings.log.file))
            outputs.append(("callboard-log-file", file, _logger(file, pretty=False), True))
        self._writers = [
            Writer(name, place, functools.partial(self._line, logger), own=own) for name, place, logger, own in outputs
        ]

    def _line(self, logger: Any, event: Event) -> str:  # noqa: ANN401 - a structlog bound logger
        log = getattr(logger, LEVELS.get(event.name, "info"))
        return f"{log(event.name.value, **self._redactor.redact(_fields(event)))}\n"

    @property
    def lost(self) -> int:
        """Lines that could not be written: the disk is full, the stream is closed, or too many lines were waiting."""
        return sum(writer.lost for writer in self._writers)

    def write(self, event: Event) -> None:
        """Queue one event to be written; never blocks. A line that can't be written is counted, and stops nothing."""
        if _NUMBERS[LEVELS.get(event.name, "info")] < self._least:
            return
        for writer in self._writers:
            writer.put(event)

    def close(self, timeout: float = 5.0) -> bool:
        """Write out what is queued, end the threads and close the file. Idempotent; raises nothing.

        Args:
            timeout: For how many seconds to wait. A thread that is stuck in a write even then is left behind; what
                still waits behind that write is dropped, and counted.

        Returns:
            Whether every line was written, and the threads have ended.
        """
        end = time.monotonic() + timeout
        for writer in self._writers:
            writer.finish()
        ended = [writer.join(end - time.monotonic()) for writer in self._writers]
        return all(ended)


def _open(path: Path) -> TextIO:
    try:
        make_private(path.parent, exist_ok=True)
        return open_private(path)
    except OSError as error:
        msg = f"log.file: {path} can't be opened: {error.strerror}"
        raise SettingsError(msg) from error


def _fields(event: Event) -> dict[str, Any]:
    subtask = "" if event.run_id.endswith("/0") else event.run_id
    named = {
        "timestamp": _timestamp(event.at),
        "seq": event.seq,
        "task": event.task_id,
        "subtask": subtask,
        "agent": event.agent,
        "state": event.state,
        "step": event.step,
        "phase": event.phase,
        "duration": round(event.duration, 6) if event.duration is not None else None,
    }
    fields = {key: value for key, value in named.items() if value not in ("", None)}
    for key, value in event.data.items():
        fields[f"data_{key}" if key in named or key in {"event", "level"} else key] = value
    return fields


def _timestamp(at: float) -> str:
    """Write a time as ISO 8601, in UTC and milliseconds."""
    seconds, milliseconds = divmod(int(at * 1000), 1000)
    return f"{_second(seconds)}.{milliseconds:03}+00:00"


@functools.lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _logger(out: TextIO, *, pretty: bool) -> Any:  # noqa: ANN401 - a structlog bound logger
    rendering: list[Any] = (
        [_tame, structlog.dev.ConsoleRenderer(colors=out.isatty(), event_key="event")]
        if pretty
        else [structlog.processors.JSONRenderer(serializer=_json)]
    )
    return structlog.wrap_logger(
        structlog.ReturnLogger(),
        processors=[structlog.processors.add_log_level, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger("debug"),
        context_class=dict,
        cache_logger_on_first_use=True,
    ).bind()


def _json(fields: dict[str, Any], **_how: object) -> str:
    """Render a line as JSON; all that is in an event is JSON."""
    return pydantic_core.to_json(fields).decode()


def _tame(_logger: object, _method: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Show control characters as escapes: what a model or a document says must not steer the terminal."""
    return {key: _tamed(value) for key, value in fields.items()}


def _tamed(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, str):
        return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), value)
    if isinstance(value, dict):
        return {_tamed(key): _tamed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_tamed(item) for item in value]
    return value
