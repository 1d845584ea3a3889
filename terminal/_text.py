"""Text output for a terminal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from callboard.messages import REMOTE, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

GOOD, BAD = "green", "bold red"

_NARROWEST = 20
"""The smallest width of a text, in columns, however narrow the terminal is."""
_SPACE = re.compile(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]+")
_WORD = re.compile(r"\s*\S+\s*")


def plain(text: str) -> str:
    """Escape control characters, direction marks and invisible characters, on one line.

    Then no document, name or model controls the terminal, or makes a line read differently from its contents.
    """
    return visible(_SPACE.sub(" ", text))


def agent_label(address: str, machine: str = "") -> str:
    """Format an agent's address for people, with another machine in front.

    It is the one that was chosen, for work that any machine may do.
    """
    kind, _, address_there = address.partition("/")
    if kind != REMOTE:
        return plain(address)
    group, _, agent = address_there.partition("/")
    return on_machine(machine or group, agent)


def on_machine(machine: str, name: str) -> str:
    """Format a name for people, with another machine in front."""
    return plain(f"{machine} \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} {name}" if machine else name)


def cut(text: str, most: int = 400) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text)} characters)"


def terminal(*, quiet: bool = False) -> Console:
    """Make a console that prints texts literally.

    A name with brackets is no markup, and ``:x:`` no picture.
    """
    return Console(highlight=False, markup=False, emoji=False, quiet=quiet)


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


def ranges(numbers: Iterable[int]) -> str:
    """Format numbers; three or more in a row as a range."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run) for run in runs)
    return ", ".join(part for run in parts for part in run)


def numbered(number: int, thing: str) -> str:
    """Format a number of things."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
