"""Names, numbers and texts of others in a form for people."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from callboard.messages import REMOTE, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

_SPACE = re.compile(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]+")


def plain(words: str) -> str:
    """Escape control characters, direction marks and invisible characters, on one line.

    Then no document, name or model controls the terminal, or makes a line read differently from its contents.
    """
    return visible(_SPACE.sub(" ", words))


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
