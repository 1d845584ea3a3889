"""Redaction: in every text that is kept, told, shown or sent, something else stands in a secret's place."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, quote_plus

from callboard.messages import each_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_T = TypeVar("_T")

REFERENCE = re.compile(r"\$\{secret:([A-Za-z0-9_.-]+)\}")
"""What stands for a named secret in an argument, and in its place wherever its value is redacted."""

SHORTEST = 4
"""Shorter values are not looked for: they would be found everywhere."""

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
        "statuses",
        "state",
        "tool",
        "secrets",
        "granted",
        "tools",
        "binds",
        "memory",
        "subtasks",
    }
)
"""Members of messages and requests that name something, secrets included, or were redacted when they were made."""

_WORDS = frozenset({"description", "title", "default", "examples"})
"""Members of a JSON Schema that are free text; all else of it has to stay as it is to be one."""


class Redactor:
    """Replaces secrets. Immutable, and so thread-safe."""

    def __init__(self, secrets: Mapping[str, str], long: int = SHORTEST) -> None:
        """Make it of what is secret, and of what stands in its place; `long` is the length from which `long` counts."""
        known = [(value, mark) for value, mark in secrets.items() if len(value) >= SHORTEST]
        longer = {value: mark for value, mark in known if len(value) >= long}
        self.long: Redactor = self if len(longer) == len(known) else Redactor(longer)
        """Replaces only those that nobody writes by chance."""
        self._marks = {written: mark for value, mark in reversed(known) for written in _forms(value)}
        longest_first = sorted(self._marks, key=len, reverse=True)
        self._found = re.compile("|".join([REFERENCE.pattern, *map(re.escape, longest_first)]))

    def __bool__(self) -> bool:
        """Whether anything is secret."""
        return bool(self._marks)

    def text(self, text: str) -> str:
        """Replace the secrets in a text."""
        return self._found.sub(lambda match: self._marks.get(match[0], match[0]), text) if self._marks else text

    def redact(self, value: _T) -> _T:
        """Replace the secrets in all texts of a message, a dataclass or JSON, the names of its members too.

        What names something (`STRUCTURE`), numbers and pictures stay as they are.
        """
        redacted: _T = self._each(value) if self._marks else value
        return redacted

    def schema(self, schema: Any) -> Any:  # noqa: ANN401 - any JSON
        """Replace the secrets in the free texts of a JSON Schema."""
        if isinstance(schema, dict):
            return {key: (self._each if key in _WORDS else self.schema)(part) for key, part in schema.items()}
        return [self.schema(part) for part in schema] if isinstance(schema, list) else schema

    def _each(self, value: Any) -> Any:  # noqa: ANN401 - any part of a message, any JSON
        return each_text(value, self.text, STRUCTURE)


def _forms(value: str) -> dict[str, None]:
    """Give the ways in which a text stands in others: as it is, and as Python, JSON and addresses write it."""
    written = repr(value)[1:-1], json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]
    return dict.fromkeys((value, *written, quote(value, safe=""), quote(value), quote_plus(value)))
