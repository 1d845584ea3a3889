"""Words for a terminal."""

from __future__ import annotations

import re
from pathlib import Path

GOOD, BAD = "green", "bold red"

_CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069]+")


def plain(text: str) -> str:
    """Take control characters out, and those that turn text round: no document or model drives the terminal."""
    return _CONTROL.sub(" ", text)


def listed(value: object) -> list[object]:
    """Give a list where there may be one value."""
    return value if isinstance(value, list) else [value]


def short(path: Path) -> str:
    """Write a path from the current folder on, where it lies below it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
