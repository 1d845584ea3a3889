"""Redaction: in every text that is kept, told, shown or sent, something else stands in a secret's place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

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
        known = {value: mark for value, mark in secrets.items() if len(value) >= SHORTEST}
        longer = {value: mark for value, mark in known.items() if len(value) >= long}
        self.long: Redactor = self if len(longer) == len(known) else Redactor(longer)
        """Replaces only those that nobody writes by chance."""
        self.known = tuple(sorted(known.items(), key=lambda item: len(item[0]), reverse=True))
        """The secrets, each with what stands in its place, the longest first."""
        parts = (f"({''.join(map(_spelled, value))})" for value, _ in self.known)
        self._found = re.compile("|".join([rf"({REFERENCE.pattern.replace('(', '(?:')})", *parts]))

    def __bool__(self) -> bool:
        """Whether anything is secret."""
        return bool(self.known)

    def text(self, text: str) -> str:
        """Replace the secrets in a text, and the beginning of one where the text was cut."""
        if not self.known:
            return text
        return self._found.sub(self._mark, self._without_beginnings(text) if _CUT in text else text)

    def _mark(self, found: re.Match[str]) -> str:
        number = found.lastindex or 1
        return found[0] if number == 1 else self.known[number - 2][1]

    def _without_beginnings(self, text: str) -> str:
        """Replace what of a secret stands right before the sign for what was cut off."""
        parts = text.split(_CUT)
        for place, part in enumerate(parts[:-1]):
            before = part.rstrip(" ")
            for value, mark in self.known:
                shown = next((n for n in range(len(value) - 1, SHORTEST - 1, -1) if before.endswith(value[:n])), 0)
                if shown:
                    parts[place] = f"{before[:-shown]}{mark}"
                    break
        return _CUT.join(parts)

    def redact(self, value: _T) -> _T:
        """Replace the secrets in all texts of a message, a dataclass or JSON, the names of its members too.

        What names something (`STRUCTURE`), numbers and pictures stay as they are.
        """
        redacted: _T = self._each(value) if self.known else value
        return redacted

    def schema(self, schema: Any) -> Any:
        """Replace the secrets in the free texts of a JSON Schema."""
        if isinstance(schema, dict):
            return {key: (self._each if key in _WORDS else self.schema)(part) for key, part in schema.items()}
        return [self.schema(part) for part in schema] if isinstance(schema, list) else schema

    def _each(self, value: Any) -> Any:
        return each_text(value, self.text, STRUCTURE)


def _spelled(letter: str) -> str:
    """Give an expression for the ways in which a character is written: as it is, and by JSON, Python and in addresses.

    Within a text within a text each backslash is doubled.
    """
    if letter.isascii() and letter.isalnum():
        return letter
    encoded = letter.encode("utf-8", "surrogatepass")
    units = letter.encode("utf-16-be", "surrogatepass")
    pairs = [units[place : place + 2].hex() for place in range(0, len(units), 2)]
    ways = [
        rf"\\*{re.escape(letter)}",
        "".join(rf"\\+u(?i:{pair})" for pair in pairs),
        "".join(f"%(?i:{byte:02x})" for byte in encoded),
        rf"\\+U(?i:{ord(letter):08x})",
    ]
    if ord(letter) <= _LATIN:
        ways.append(rf"\\+x(?i:{ord(letter):02x})")
    if letter in _SHORT:
        ways.append(rf"\\+{_SHORT[letter]}")
    if letter == "\\":
        ways.append(r"\\+")
    if letter == " ":
        ways.append(r"\+")
    return f"(?:{'|'.join(ways)})"


_SHORT = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_LATIN = 0xFF
_CUT = "…"
"""What stands where a long text was cut off."""
