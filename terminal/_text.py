"""Text output for a terminal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

GOOD, BAD = "green", "bold red"

_NARROWEST = 20
"""The smallest width of a text, in columns, however narrow the terminal is."""
_WORD = re.compile(r"\s*\S+\s*")


def terminal(*, quiet: bool = False, stderr: bool = False) -> Console:
    """Make a console that prints texts literally.

    A name with brackets is no markup, and ``:x:`` no picture.
    """
    return Console(highlight=False, markup=False, emoji=False, quiet=quiet, stderr=stderr)


def print_hanging(console: Console, text: Text, indent: int, hanging: int = 0) -> None:
    """Print a text, wrapped to the terminal, with a hanging indent.

    All lines have an indent, and all but the first a deeper one. A word that is wider than a line stays whole: a path
    can be copied, and found in a file.
    """
    text.rstrip()
    width = max(_NARROWEST, console.width - indent - hanging)
    for number, line in enumerate(wrapped(text, width)):
        line.rstrip()
        console.print(Text(" " * (indent + (hanging if number else 0))).append_text(line), soft_wrap=True)


def wrapped(text: Text, width: int) -> Iterator[Text]:
    """Yield the lines of a text, divided between words."""
    for line in text.split(allow_blank=True):
        offsets, length = [], 0
        for word in _WORD.finditer(line.plain):
            if length and length + cell_len(word[0].rstrip()) > width:
                offsets.append(word.start())
                length = 0
            length += cell_len(word[0])
        yield from line.divide(offsets)


def listed(value: object) -> list[object]:
    """Return a value as a list."""
    return value if isinstance(value, list) else [value]


def short(path: Path) -> str:
    """Return a path relative to the current folder, if it is inside."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
