"""Values that nobody may see: models, people and records know their names, and only tools get what they stand for."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import threading
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from callboard.messages import Task, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue, SecretStr

_MARK = re.compile(r"\$\{secret:([A-Za-z0-9_.-]+)\}")
SHORTEST = 4
"""Shorter values are put in, but not looked for in what comes back: they would be found everywhere."""

SHORTEST_IN_ID = 6
"""Shorter values may stand in a task's id: they would be found there by chance."""

STRUCTURE = frozenset(
    {
        "kind",
        "id",
        "task_id",
        "run_id",
        "call_id",
        "session",
        "address",
        "agent",
        "server",
        "status",
        "state",
        "tool",
        "secrets",
    }
)
"""Members of messages that name something, secrets included; their texts are no free ones."""

KEY_ROUNDS = 50_000
"""How dear it is to guess a key that quotes a secret from what is kept of it: some 20 ms a guess."""

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
            with self._lock:
                self._tasks[task.id] = _own(task)

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

        What names something (`STRUCTURE`), numbers and pictures stay as they are. Of a task's key that quotes a secret
        a digest is left, so that keys which differ in a secret alone are two.
        """
        if not (self._operators or self._tasks):
            return message
        return _veiled(message, self._of(task_id))

    def check_id(self, task: Task) -> None:
        """Refuse an id of the host program's that holds a secret: ids name things everywhere, and are not veiled.

        Raises:
            ValueError: If it does; the secret is named.
        """
        if "id" not in task.model_fields_set:
            return
        for name, value in {**self._operators, **_own(task)}.items():
            if len(value) >= SHORTEST_IN_ID and value in task.id:
                msg = (
                    f"this task can't be taken: its id holds the secret {name!r}; ids stand in journal, log and events"
                )
                raise ValueError(msg)

    def as_kept(self, task: Task, of: Task | None = None) -> Task:
        """Put a task's own secrets and the operator's out of sight in it, or in another one that may be the same."""
        return _veiled(of if of is not None else task, {**self._operators, **_own(task)})

    def _of(self, task_id: str) -> dict[str, str]:
        with self._lock:
            own = self._tasks.get(task_id)
        return {**self._operators, **own} if own else self._operators


def _own(task: Task) -> dict[str, str]:
    return {name: value.get_secret_value() for name, value in task.secrets.items() if value is not None}


def _veiled(message: _M, secrets: Mapping[str, str]) -> _M:
    known = [(name, value) for name, value in secrets.items() if len(value) >= SHORTEST]
    if not known:
        return message

    marks = {written: f"${{secret:{name}}}" for name, value in reversed(known) for written in _forms(value)}
    found = re.compile("|".join([_MARK.pattern, *map(re.escape, sorted(marks, key=len, reverse=True))]))
    veiled: _M = _each(message, lambda text: found.sub(lambda match: marks.get(match[0], match[0]), text))
    if isinstance(message, Task) and isinstance(veiled, Task) and message.key != veiled.key:
        return veiled.model_copy(update={"key": _digest(message.key or "", veiled.key or "")})
    return veiled


@functools.lru_cache(maxsize=64)
def _digest(key: str, salt: str) -> str:
    """Make of a key what nobody can read it from; the switchboard finds it made by who submits."""
    return f"secret:{hashlib.pbkdf2_hmac('sha256', key.encode(), salt.encode(), KEY_ROUNDS).hex()}"


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
