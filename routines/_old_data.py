"""Data of the recorded run that a routine would repeat unchanged."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import JsonValue

_FEWEST = 3
"""The fewest known values that make a list old data; fewer may be equal by chance."""
_NUMBER = re.compile(r"\D{0,3}\d[\d.,'\s]*\D{0,3}")
_SHORTEST = 2


class OldData(NamedTuple):
    """A list of values that were read in the recorded run."""

    tail: str
    """The place in the value, as the end of a reference."""
    number: int
    sample: str | int | float


def old_data(tail: str, value: JsonValue, knows: Callable[[str | int | float], bool]) -> Iterator[OldData]:
    """Yield the lists of a written value that are mostly known data.

    They are lists of lists or of objects, since names of columns are also known, and are none.

    Args:
        tail: The place of the value.
        value: The value, with references.
        knows: Tells whether a text or a number was read before.
    """
    if isinstance(value, dict):
        for key, part in value.items():
            yield from old_data(f"{tail}.{key}", part, knows)
    if not isinstance(value, list):
        return
    if not all(isinstance(item, list | dict) for item in value):
        return
    parts = [part for part in leaves(value) if not (isinstance(part, str) and "${" in part)]
    known = [part for part in parts if knows(part)]
    if len(known) >= _FEWEST and 2 * len(known) > len(parts):
        yield OldData(tail, len(known), known[0])


def leaves(value: JsonValue) -> Iterator[str | int | float]:
    """Yield the texts and the numbers in a value."""
    if isinstance(value, dict):
        for part in value.values():
            yield from leaves(part)
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value


def data_key(value: str | float) -> str:
    """Return a key that is equal for equal data.

    It does not depend on the notation of a number or the case of a text. It is empty for short ones.
    """
    text = f"{value:.15g}" if isinstance(value, int | float) else value.strip()
    text = re.sub(r"\D", "", text) if _NUMBER.fullmatch(text) else text.casefold()
    return text if len(text) > _SHORTEST else ""
