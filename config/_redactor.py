"""Redaction of secrets.

They are redacted in every text that is stored, logged, shown or sent.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from callboard.config._secret_numbers import LONG, digits_of, numbers_of, patterns_of
from callboard.messages import each_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_T = TypeVar("_T")

REFERENCE = re.compile(r"\$\{secret:([A-Za-z0-9_.-]+)(?::number)?\}")
"""A reference to a named secret: it stands for the value in arguments, and replaces it in redacted texts.

With ``:number`` it replaces a number, and stands for it where it is a whole value.
"""
_REFERENCE = REFERENCE.pattern.replace("([", "(?:[")
AS_NUMBER = ":number}"
"""The end of a reference that replaces a number."""

SHORTEST = 4
"""The shortest value that is redacted; shorter ones would match everywhere."""

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
"""Members of messages and requests that hold names, also of secrets, or that were redacted on creation."""

JSON_MEMBERS = frozenset(
    {
        "answer",
        "approx",
        "args",
        "arguments",
        "between",
        "canonical",
        "columns",
        "contains",
        "content",
        "detail",
        "equals",
        "expected",
        "found",
        "json_schema",
        "leaves",
        "left",
        "marked",
        "one_of",
        "output",
        "parameters",
        "relied_on",
        "relies_on",
        "result",
        "value",
        "window",
    }
)
"""Members of messages and of events' data that hold any JSON value. Only their numbers are redacted: all others, such
as times and counts, have to stay numbers."""

_WORDS = frozenset({"description", "title", "default", "examples"})
"""Members of a JSON Schema that are free text; changing any other would make it invalid."""


class Redactor:
    """Replaces secrets. Immutable, hence thread-safe."""

    def __init__(self, secrets: Mapping[str, str], long: int = SHORTEST) -> None:
        """Create it from a map of secrets to their replacements.

        `long` is the shortest secret for `self.long`.
        """
        marks = {value: mark for value, mark in secrets.items() if len(value) >= SHORTEST}
        longer = {value: mark for value, mark in marks.items() if len(value) >= long}
        self.long: Redactor = self if len(longer) == len(marks) else Redactor(longer)
        """A redactor for long secrets only, which do not occur by chance."""
        self.known = tuple(sorted(marks.items(), key=lambda item: len(item[0]), reverse=True))
        """The secrets with their replacements, the longest first."""
        parts = (f"({'|'.join((''.join(map(_spelled, value)), *patterns_of(value)))})" for value, _ in self.known)
        self._pattern = re.compile("|".join([f"({_REFERENCE})", *parts]))
        self._numbers = {number: _as_number(mark) for value, mark in marks.items() for number in numbers_of(value)}
        self._within = any(len(digits_of(value)) >= LONG for value in longer)
        """Whether secrets are also looked for within the digits of numbers."""
        self._members = dict.fromkeys(JSON_MEMBERS, self._json) if self._numbers else {}

    def __bool__(self) -> bool:
        """Return whether there are secrets."""
        return bool(self.known)

    def text(self, text: str) -> str:
        """Replace the secrets in a text.

        Beginnings of secrets are replaced where the text was truncated.
        """
        if not self.known:
            return text
        return self._pattern.sub(self._mark, self._without_beginnings(text) if _CUT in text else text)

    def _mark(self, match: re.Match[str]) -> str:
        number = match.lastindex or 1
        return match[0] if number == 1 else self.known[number - 2][1]

    def _without_beginnings(self, text: str) -> str:
        """Replace the beginning of a secret right before a truncation mark."""
        parts = text.split(_CUT)
        for index, part in enumerate(parts[:-1]):
            text = part.rstrip(" ")
            for value, mark in self.known:
                lengths = range(len(value) - 1, SHORTEST - 1, -1)
                if length := next((length for length in lengths if text.endswith(value[:length])), 0):
                    parts[index] = f"{text[:-length]}{mark}"
                    break
        return _CUT.join(parts)

    def redact(self, value: _T) -> _T:
        """Replace the secrets in a message, dataclass or JSON value.

        All texts are redacted, also keys, and the numbers of members in `JSON_MEMBERS`. Members in `STRUCTURE`, other
        numbers and pictures are unchanged.
        """
        redacted: _T = self._redact_texts(value) if self.known else value
        return redacted

    def schema(self, schema: Any) -> Any:
        """Replace the secrets in the free texts of a JSON Schema."""
        if isinstance(schema, dict):
            return {key: (self._redact_texts if key in _WORDS else self.schema)(part) for key, part in schema.items()}
        return [self.schema(part) for part in schema] if isinstance(schema, list) else schema

    def _redact_texts(self, value: Any) -> Any:
        return each_text(value, self.text, STRUCTURE, self._members)

    def _json(self, value: Any) -> Any:
        """Replace the secrets in a JSON value, numbers included."""
        if value is None or isinstance(value, bool | bytes):
            return value
        if isinstance(value, dict):
            return {self._json(key): self._json(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(self._json, value))
        return self._number(value) if isinstance(value, int | float | Decimal | dt.date) else self._redact_texts(value)

    def _number(self, value: float | Decimal | dt.date) -> Any:
        """Replace a number or a date whose text form holds a secret."""
        if not (isinstance(value, Decimal) and value.is_snan()) and value in self._numbers:
            return self._numbers[value]  # type: ignore[index]  # equal numbers of all types have one hash
        if not self._within and not isinstance(value, dt.date):
            return value
        written = str(value)
        redacted = self.text(written) if isinstance(value, dt.date) else self.long.text(written)
        return value if redacted == written else redacted


def _as_number(mark: str) -> str:
    return mark.removesuffix("}") + AS_NUMBER if REFERENCE.fullmatch(mark) else mark


def _spelled(letter: str) -> str:
    """Build an expression for the spellings of a character.

    They are the plain one, and the escaped ones of JSON, Python and URLs. Each backslash may be repeated, since nested
    strings double it.
    """
    if letter.isascii() and letter.isalnum():
        return letter
    encoded = letter.encode("utf-8", "surrogatepass")
    units = letter.encode("utf-16-be", "surrogatepass")
    pairs = [units[index : index + 2].hex() for index in range(0, len(units), 2)]
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
"""The mark at the end of a truncated text."""
