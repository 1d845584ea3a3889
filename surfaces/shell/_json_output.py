"""JSON that a command prints, parsed without a loss."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

_TOKEN = re.compile(r'(?P<text>"(?:[^"\\]|\\.)*")(?P<key>\s*:)?|(?P<number>-?\d[\d.eE+-]*)|[A-Za-z-]+|[\[\]{}]')
_LEVELS = 100
"""The most levels of lists and objects; the journal reads 200."""
_DIGITS = 1_000
"""The most digits of a number."""
_SHOWN = 60
"""The characters that an error quotes before and after the problem."""


class NoJsonError(ValueError):
    """A text that is not JSON, or whose values would change."""

    def __init__(self, problem: str, text: str, at: int) -> None:
        begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        head, tail = text[begin:at], text[at : end if end >= 0 else len(text)].rstrip("\r")
        quoted = "…" * (len(head) > _SHOWN) + head[-_SHOWN:] + tail[:_SHOWN] + "…" * (len(tail) > _SHOWN)
        super().__init__(f"{problem}, line {text.count(chr(10), 0, at) + 1}, column {at - begin + 1}: {quoted!r}")


def parse_json(data: bytes) -> JsonValue:
    """Parse JSON in UTF-8, UTF-16 or UTF-32.

    Raises:
        NoJsonError: If it is not JSON, or one of its values can't be represented exactly: NaN, a number out of range, a
            duplicate key, half of a surrogate pair, or too many levels. The text quotes the line.
    """
    encoding = json.detect_encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        head = data[: error.start].decode(encoding)
        tail = data[error.start :].decode(encoding, "backslashreplace")
        name = encoding.upper().removesuffix("-SIG")
        problem = f"byte 0x{data[error.start]:02x} is not {name}"
        raise NoJsonError(problem, head + tail, len(head)) from error
    value: JsonValue = None
    problem = ""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"{error.msg[0].lower()}{error.msg[1:]}"
        raise NoJsonError(problem, text, error.pos) from error
    except (RecursionError, ValueError) as error:  # too many levels or digits, whose position is determined below
        problem = str(error)
    problem, at = next(_problems(text), (problem, 0))
    if problem:
        raise NoJsonError(problem, text, at)
    return value


def _problems(text: str) -> Iterator[tuple[str, int]]:
    """Yield the inexact values of a JSON text, with their positions."""
    above: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        word, at = token[0], token.start()
        if word in {"[", "{"}:
            above.append(set())
            if len(above) > _LEVELS:
                yield f"lists and objects have more than {_LEVELS} levels", at
        elif word in {"]", "}"}:
            above.pop()
        elif problem := _problem_of(token):
            yield problem, at
        elif token["key"]:
            key = json.loads(token["text"])
            if key in above[-1]:
                yield f"the key {key!r} occurs twice in an object", at
            above[-1].add(key)


def _problem_of(token: re.Match[str]) -> str:
    """Describe a simple value that can't be represented exactly."""
    if token["text"] and "\\u" in token["text"]:
        try:
            json.loads(token["text"]).encode()
        except UnicodeEncodeError:
            return "a text has half of a surrogate pair"
    if token["number"] and not _is_exact(token["number"]):
        return "a number has too many digits or is out of range"
    return f"{token[0]} is not a JSON value" if token[0] in {"NaN", "Infinity", "-Infinity"} else ""


def _is_exact(number: str) -> bool:
    """Return whether a number is read without overflow or underflow."""
    if len(number) > _DIGITS:
        return False
    if number.lstrip("-").isdecimal():
        return True
    value, digits = float(number), re.split("[eE]", number)[0]
    return math.isfinite(value) and (value != 0 or not re.search("[1-9]", digits))
