"""Texts split at a delimiter, by widths or by a pattern."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.surfaces._numbers import parse_number
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents.excel._cell_values import to_json
from callboard.surfaces.documents.excel._formula_results import fill_results, need_result
from callboard.surfaces.documents.excel._sheet import where_of
from callboard.surfaces.documents.excel._text_patterns import compiled

if TYPE_CHECKING:
    from callboard.surfaces.documents.excel._cell_values import Value
    from callboard.surfaces.documents.excel._sheet_controls import SheetRange
    from callboard.surfaces.documents.excel._workbook import ExcelFile

MOST_PARTS = 200
"""The most columns that a split makes."""


@dataclass(frozen=True)
class Split:
    """A way to split texts; exactly one of the first three counts."""

    delimiter: str = ""
    widths: tuple[int, ...] = ()
    pattern: str = ""
    parts: int = 0
    """The most parts at a delimiter; the last one holds the remainder. 0 for all."""

    @property
    def is_given(self) -> bool:
        """Return whether texts are split at all.

        Raises:
            ToolError: If several ways are given.
        """
        ways = [name for name in ("delimiter", "widths", "pattern") if getattr(self, name)]
        if len(ways) > 1 or (self.parts and ways != ["delimiter"]):
            msg = "give one of delimiter, widths and pattern; parts goes with a delimiter"
            raise ToolError(msg)
        return bool(ways)


def split_texts(file: ExcelFile, source: SheetRange, split: Split) -> tuple[list[list[Value]], list[str]]:
    """Split the texts of one column.

    A part that is an unambiguous number becomes one.

    Returns:
        The parts, one row each, all equally long, and the cells whose text the pattern does not match.

    Raises:
        ToolError: If the range has several columns, or there are too many parts.
    """
    sheet, cells = source.sheet, source.need()
    if cells.size["columns"] > 1:
        msg = f"{cells.coord} has several columns; the texts of one column are split"
        raise ToolError(msg)
    fill_results(file, sheet, cells)
    pattern = compiled(split.pattern, match_case=True) if split.pattern else None
    rows: list[list[str]] = []
    unmatched = []
    for row in range(cells.min_row, cells.max_row + 1):
        value, kind = sheet.raw(row, cells.min_col)
        if kind == "empty":
            need_result(sheet, row, cells.min_col)
        text = value if isinstance(value, str) else str(to_json(value, sheet.number_format(row, cells.min_col)))
        match = pattern.search(text) if pattern is not None and kind != "empty" else None
        if kind == "empty":
            rows.append([])
        elif pattern is None:
            rows.append(_parts(text, split))
        elif match is None:
            unmatched.append(where_of(row, cells.min_col))
            rows.append([])
        else:
            rows.append([part or "" for part in match.groups()] or [match[0]])
    width = max(map(len, rows), default=0)
    if not 0 < width <= MOST_PARTS:
        msg = f"{cells.coord} has {'no text that is split' if not width else f'texts of {width} parts'}"
        raise ToolError(f"{msg}; at most {MOST_PARTS} parts are possible" if width else msg)
    return [[*map(_value, line), *[None] * (width - len(line))] for line in rows], unmatched


def _parts(text: str, split: Split) -> list[str]:
    if split.delimiter:
        delimiter = None if split.delimiter == " " else split.delimiter  # spaces in a row are one
        return text.split(delimiter, split.parts - 1 if split.parts else -1)
    ends = [sum(split.widths[:count]) for count in range(len(split.widths) + 1)]
    parts = [text[first:last] for first, last in itertools.pairwise(ends)]
    return [*parts, text[ends[-1] :]] if text[ends[-1] :] else parts


def _value(part: str) -> Value:
    """Return a part without spaces around it, perhaps as a number."""
    text = part.strip()
    number = parse_number(text)
    if number is not None and not number.unit:
        return number.value
    return text or None
