"""Values that nobody may see: models, people and records know their names, and only tools get what they stand for."""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue, SecretStr

    from callboard.messages import Message, Task

_MARK = re.compile(r"\$\{secret:([A-Za-z0-9_.-]+)\}")
SHORTEST = 4
"""Shorter values are put in, but not looked for in what comes back: they would be found everywhere."""

_T = TypeVar("_T", bound="JsonValue")
_M = TypeVar("_M", bound="Message")


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

    def any(self, task_id: str) -> bool:
        """Say whether there is anything to hide."""
        return bool(self._operators or task_id in self._tasks)

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

    def hide(self, task_id: str, shown: _T) -> _T:
        """Put the names back in the values' places, in any JSON."""
        known = [(name, value) for name, value in self._of(task_id).items() if len(value) >= SHORTEST]
        if not known:
            return shown

        def hidden(text: str) -> str:
            for name, value in known:
                text = text.replace(value, f"${{secret:{name}}}")
            return text

        return _each(shown, hidden)  # type: ignore[return-value]  # of the same kind

    def veil(self, task_id: str, message: _M) -> _M:
        """Put the names in the values' places in a message that is to be kept or told."""
        if not self.any(task_id):
            return message
        text = message.model_dump_json()
        hidden = text
        for name, value in self._of(task_id).items():
            if len(value) >= SHORTEST:
                for written in {
                    value,
                    repr(value)[1:-1],
                    json.dumps(value)[1:-1],
                    json.dumps(value, ensure_ascii=False)[1:-1],
                }:
                    hidden = hidden.replace(json.dumps(written, ensure_ascii=False)[1:-1], f"${{secret:{name}}}")
        return message if hidden == text else type(message).model_validate_json(hidden)

    def _of(self, task_id: str) -> dict[str, str]:
        with self._lock:
            own = self._tasks.get(task_id)
        return {**self._operators, **own} if own else self._operators


def _each(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    """Change each text of a JSON value, the names of its members too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each(item, change) for item in value]
    if isinstance(value, dict):
        return {change(key): _each(item, change) for key, item in value.items()}
    return value
