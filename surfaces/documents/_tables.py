"""Arguments and answers that the tools of the applications share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

from pydantic import Field, JsonValue

from callboard.messages import did_you_mean, one_line
from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Answer: TypeAlias = dict[str, JsonValue]
"""A tool's answer: one JSON object."""

Document = Annotated[str, Field(description="The document's path within the workspace, such as sales.docx.")]
ControlId = Annotated[str, Field(description="The id of an observed control, such as table-1.")]
ControlName = Annotated[str, Field(description="The observed control's name; checked where it is given.")]
Text = Annotated[str, Field(description="The text; a line break in it stays a line break.")]
Color = Annotated[str, Field(description="As #RRGGBB or a plain name like red or light green; none takes it away.")]
Cell: TypeAlias = str | bool | int | float | None
NewRows = Annotated[list[list[Cell]], Field(description="The rows, each as long as the header.")]
LineNumbers: TypeAlias = tuple[Annotated[int, Field(ge=1)], ...]

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_NAME = 80
_MOST_LISTED = 20
_T = TypeVar("_T")
_COLORS = {
    "black": "000000", "white": "FFFFFF", "red": "FF0000", "green": "00B050", "blue": "0070C0", "yellow": "FFFF00",
    "orange": "FFC000", "purple": "7030A0", "gray": "808080", "grey": "808080", "light gray": "D9D9D9",
    "light green": "C6EFCE", "light red": "FFC7CE", "light yellow": "FFEB9C", "light blue": "DDEBF7",
    "dark blue": "002060", "dark red": "C00000",
}  # fmt: skip
_HEX = re.compile(r"#?([0-9A-Fa-f]{6})")


def clean(text: str) -> str:
    """Normalise line breaks to single line feeds.

    Raises:
        ToolError: If the text has characters that no document can hold.
    """
    if match := _FORBIDDEN.search(text):
        msg = f"the text has the character {match.group()!r}, which a document can't hold; remove it"
        raise ToolError(msg)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def text_of_value(value: Cell, decimal: str = ".") -> str:
    """Format a value as a cell's text; None is empty."""
    if isinstance(value, float):
        return str(value).replace(".", decimal)
    return "" if value is None else clean(str(value))


def color_code(text: str) -> str | None:
    """Return a color as RRGGBB; None for the word none.

    Raises:
        ToolError: If it is neither a code nor a known name.
    """
    name = text.strip().casefold()
    if name in {"none", ""}:
        return None
    match = _HEX.fullmatch(name)
    if match is None and name not in _COLORS:
        msg = f"{text!r} is no color; write it as #RRGGBB, or as one of: {', '.join(_COLORS)}"
        raise ToolError(msg)
    return match[1].upper() if match is not None else _COLORS[name]


def short(text: str, limit: int = _NAME) -> str:
    """Shorten a text to one line of at most `limit` characters."""
    return one_line(text, limit)


def nearest(name: str, names: Iterable[str]) -> str:
    """Format the most similar name as an error's end, else nothing."""
    spellings = {spelling.casefold(): spelling for spelling in names}
    return did_you_mean(name.casefold(), spellings, show=lambda key: repr(spellings[key]), cutoff=0.6)


def listed(names: Iterable[object]) -> str:
    """List names in an error: the first ones, and how many follow."""
    short_names = [short(str(name)) for name in names]
    more = [f"{len(short_names) - _MOST_LISTED} more"] if len(short_names) > _MOST_LISTED else []
    return ", ".join([*short_names[:_MOST_LISTED], *more]) or "none"


def same_words(first: str, second: str) -> bool:
    """Compare two texts without regard to the spaces between words.

    A text without words equals none.
    """
    return first.split() == second.split() != []


def has_header(header: Sequence[str], part: str) -> bool:
    """Return whether words are a table's header, or one title of it."""
    line = " | ".join(header)
    return any(same_words(part, text) for text in (line, short(line), *header))


def single_match(
    matches: Sequence[_T], part: str, kind: str, candidates: Iterable[_T], name: Callable[[_T], str] = str
) -> _T:
    """Return the only part of a document that fits.

    Raises:
        ToolError: If none fits, or several; the text lists those that there are.
    """
    if len(matches) == 1:
        return matches[0]
    if matches:
        msg = f"{len(matches)} {kind}s fit {part!r}" if part else f"there are {len(matches)} {kind}s, and none is named"
        msg += f": {listed(map(name, matches))}"
        raise ToolError(msg)
    quoted_part = f" {part!r}" if part else ""
    names = listed(map(name, candidates))
    msg = f"there is no {kind}{quoted_part}{'' if names == 'none' else f'; there are: {names}'}"
    raise ToolError(msg)


def width_of(rows: list[list[Cell]], header: list[str] | None = None) -> int:
    """Return the number of cells in each row of a table.

    Raises:
        ToolError: If there is no cell, or the rows and the header differ in length.
    """
    first: dict[int, int] = {}
    for number, row in enumerate(rows, start=1):
        first.setdefault(len(row), number)
    if len(first) > 1:
        lengths = ", ".join(f"row {number} has {cells}" for cells, number in first.items())
        msg = f"the rows must have equally many cells, but {lengths}"
        raise ToolError(msg)
    width = next(iter(first), len(header or ()))
    if header is not None and len(header) != width:
        msg = f"the header has {len(header)} cells, but each row has {width}: give {width} titles"
        raise ToolError(msg)
    if not width:
        msg = "there are no cells to write"
        raise ToolError(msg)
    return width
