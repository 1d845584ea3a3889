"""The structured log: one line for each event. A host program's own structlog and logging set-up is left alone."""

from __future__ import annotations

import datetime as dt
import re
import sys
from typing import TYPE_CHECKING, Any, TextIO

import structlog
from pydantic import BaseModel, SecretStr

from callboard.messages import Event, EventName, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.config._settings import Settings

LEVELS = {
    EventName.PHASE_ENDED: "debug",
    EventName.MODEL_ANSWERED: "debug",
    EventName.MESSAGE_STALE: "debug",
    EventName.STEP_STARTED: "debug",
    EventName.TASK_CANCELLING: "warning",
    EventName.MODEL_REPAIRED: "warning",
    EventName.PHASE_RETRIED: "warning",
    EventName.COMMAND_LATE: "warning",
    EventName.STATE_REFUSED: "error",
    EventName.STEP_FAILED: "error",
    EventName.AGENT_CRASHED: "error",
    EventName.TARGET_ABANDONED: "warning",
    EventName.EVENTS_MISSED: "warning",
}
"""How important an event is; all others are ``info``."""

_SHORTEST_SECRET = 4
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class EventLog:
    """Writes events as log lines, to a file, to the standard error stream, or both. Thread-safe."""

    def __init__(self, settings: Settings, stream: TextIO | None = None) -> None:
        """Open the log.

        Args:
            settings: Where it goes, and the secrets that never appear in it.
            stream: Takes the place of the standard error stream.

        Raises:
            SettingsError: If the file can't be opened.
        """
        self._secrets = tuple(sorted(set(secrets_of(settings)), key=len, reverse=True))
        self._loggers: list[Any] = []
        self._file: TextIO | None = None
        self.lost = 0
        """Lines that could not be written, because the disk is full or the stream is closed."""
        log = settings.log
        if log.file is not None:
            path = settings.path(log.file)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._file = path.open("a", encoding="utf-8")
            except OSError as error:
                msg = f"log.file: {path} can't be opened: {error.strerror}"
                raise SettingsError(msg) from error
            self._loggers.append(_logger(self._file, log.level, pretty=False))
        if log.format != "off":
            out = stream if stream is not None else sys.stderr
            pretty = log.format == "pretty" or (log.format == "auto" and out.isatty())
            self._loggers.append(_logger(out, log.level, pretty=pretty))

    def write(self, event: Event) -> None:
        """Write one event. A line that can't be written is counted, and stops nothing."""
        if not self._loggers:
            return
        fields = self._redact(_fields(event))
        level = LEVELS.get(event.name, "info")
        for logger in self._loggers:
            try:
                getattr(logger, level)(event.name.value, **fields)
            except (OSError, ValueError):
                self.lost += 1

    def close(self) -> None:
        """Close the file."""
        self._loggers.clear()
        if self._file is not None:
            self._file.close()

    def _redact(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        if not self._secrets:
            return value
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, "**********")
            return value
        if isinstance(value, dict):
            return {self._redact(key): self._redact(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._redact(item) for item in value]
        return value


def _fields(event: Event) -> dict[str, Any]:
    subtask = "" if event.run_id.endswith("/0") else event.run_id
    at = dt.datetime.fromtimestamp(event.at, dt.UTC)
    named = {
        "timestamp": at.isoformat(timespec="milliseconds"),
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


def _logger(out: TextIO, level: str, *, pretty: bool) -> Any:  # noqa: ANN401 - a structlog bound logger
    rendering: list[Any] = (
        [_tame, structlog.dev.ConsoleRenderer(colors=out.isatty(), event_key="event")]
        if pretty
        else [structlog.processors.JSONRenderer(ensure_ascii=False)]
    )
    return structlog.wrap_logger(
        structlog.PrintLogger(out),
        processors=[structlog.processors.add_log_level, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        context_class=dict,
        cache_logger_on_first_use=True,
    ).bind()


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


def secrets_of(value: object) -> Iterator[str]:
    """Find all secret values in settings; very short ones are left, since they would blot out ordinary text."""
    if isinstance(value, SecretStr):
        secret = value.get_secret_value()
        if len(secret) >= _SHORTEST_SECRET:
            yield secret
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from secrets_of(getattr(value, name))
    elif isinstance(value, dict):
        for item in value.values():
            yield from secrets_of(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from secrets_of(item)
