"""Values that nobody may see: models, people and records know their names, and only tools get what they stand for."""

from __future__ import annotations

import json
import re
import threading
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from callboard.messages import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue, SecretStr

    from callboard.messages import Task

_MARK = re.compile(r"\$\{secret:([A-Za-z0-9_.-]+)\}")
SHORTEST = 4
"""Shorter values are put in, but not looked for in what comes back: they would be found everywhere."""

STRUCTURE = frozenset(
    {"kind", "id", "task_id", "run_id", "call_id", "session", "address", "agent", "server", "status", "state", "tool"}
)
"""Members of messages that name something; their texts are no free ones."""

_M = TypeVar("_M", bound=Value)


class UnknownSecretError(Exception):
    """A tool's argument names a secret that nobody has given, or that did not survive a restart."""


class Secrets:
    """The secrets of the operator and of the tasks that are not over. Thread-safe.

    ``${secret:NAME}`` in a tool's argument stands for a value; in what tools answer and surfaces show, the values are
    replaced by that.
    """

    def __init__(self, operators: Mapping[str, SecretStr]) -> None:
        """Take the operator's, which all tasks may use; a task's own beat them."""
        self._operators = {name: value.get_secret_value() for name, value in operators.items()}
        self._tasks: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    def keep(self, task: Task) -> None:
        """Keep a task's secrets while it runs."""
        if task.secrets:
            own = {name: value.get_secret_value() for name, value in task.secrets.items() if value is not None}
            with self._lock:
                self._tasks[task.id] = own

    def drop(self, task_id: str) -> None:
        """Forget a task's secrets."""
        with self._lock:
            self._tasks.pop(task_id, None)

    def names(self, task_id: str) -> tuple[str, ...]:
        """Name what a task's tools may be given."""
        return tuple(self._of(task_id))

    def fill(self, task_id: str, arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Put the values in their places.

        Raises:
            UnknownSecretError: If there is no such secret (any more).
        """
        known = self._of(task_id)

        def value(mark: re.Match[str]) -> str:
            if mark[1] not in known:
                there = ", ".join(known) or "none"
                msg = (
                    f"there is no secret {mark[1]!r}; there are: {there}. A task's own secrets are not written down, "
                    "and are lost with the process; those of the settings are there again"
                )
                raise UnknownSecretError(msg)
            return known[mark[1]]

        return {name: _each(given, lambda text: _MARK.sub(value, text)) for name, given in arguments.items()}

    def veil(self, task_id: str, message: _M) -> _M:
        """Put the names back in the values' places, in all texts of what is to be kept, told or shown.

        What names something (`STRUCTURE`), numbers and pictures stay as they are.
        """
        if not (self._operators or self._tasks):
            return message
        known = [(name, value) for name, value in self._of(task_id).items() if len(value) >= SHORTEST]
        if not known:
            return message

        def hidden(text: str) -> str:
            for name, value in known:
                for written in _forms(value):
                    text = text.replace(written, f"${{secret:{name}}}")
            return text

        veiled: _M = _each(message, hidden)
        return veiled

    def _of(self, task_id: str) -> dict[str, str]:
        with self._lock:
            own = self._tasks.get(task_id)
        return {**self._operators, **own} if own else self._operators


def _forms(value: str) -> tuple[str, ...]:
    """Give the ways in which a text stands in others: as it is, and as Python and JSON write it, in ASCII or not."""
    return value, repr(value)[1:-1], json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]


def _each(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - any part of a message, any JSON
    """Change each text of a message, or of a JSON value, the names of its members too."""
    if isinstance(value, Value):
        parts = ((name, getattr(value, name)) for name in type(value).model_fields if name not in STRUCTURE)
        changed = {name: new for name, part in parts if (new := _each(part, change)) != part}
        return value.model_copy(update=changed) if changed else value
    if isinstance(value, str):
        return value if isinstance(value, Enum) else change(value)
    if isinstance(value, dict):
        return {change(key): _each(item, change) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_each(item, change) for item in value)
    return value
