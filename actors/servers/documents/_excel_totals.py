"""The rows of totals at the end of a range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openpyxl.formula.translate import Translator
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.cell_range import CellRange

from callboard.actors.servers.documents._excel_references import areas, bounds_of
from callboard.actors.servers.documents._excel_tables import tables_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.actors.servers.documents._excel_sheet import Sheet


def totals_of(sheet: Sheet, cells: CellRange) -> int:
    """Count the rows of totals at the end of a range.

    A table says how many it has. Elsewhere they are the rows at the end whose formulas read other rows, and the values
    between them that those read, like the shipping costs between a subtotal and a total. Notes below them count, too.
    """
    table = next((each for each in tables_of(sheet) if each.cells.coord == cells.coord), None)
    if table is not None:
        return table.totals
    count = 0
    wanted: set[int] = set()  # rows that a total below reads one by one
    for row in range(cells.max_row, cells.min_row + 1, -1):
        read = _rows_totalled(sheet, cells, row)
        if read:
            count = cells.max_row - row + 1
            wanted.update(top for top, bottom in read if top == bottom)
        elif row not in wanted and (count or not _is_note(sheet, cells, row)):
            break
    return count


def without_totals(sheet: Sheet, cells: CellRange) -> CellRange:
    """Return a range without its rows of totals."""
    return CellRange(None, cells.min_col, cells.min_row, cells.max_col, cells.max_row - totals_of(sheet, cells))


def _is_note(sheet: Sheet, cells: CellRange, row: int) -> bool:
    """Return whether a row of several columns holds a single text."""
    kinds = [sheet.raw(row, column)[1] for column in range(cells.min_col, cells.max_col + 1)]
    return len(kinds) > 1 and kinds.count("empty") == len(kinds) - 1 and "text" in kinds


def _rows_totalled(sheet: Sheet, cells: CellRange, row: int) -> list[tuple[int, int]]:
    """Return the spans of rows that a row totals, if any.

    A data row may read other rows too: a running balance or a moving average has the formula of the row above, or
    reads its own row.
    """
    found: list[tuple[int, int]] = []
    for column in range(cells.min_col, cells.max_col + 1):
        formula = sheet.formula(row, column).strip("{}")
        spans = list(_rows_read(sheet, cells, formula)) if formula else []
        others = [(top, bottom) for top, bottom in spans if not top <= row <= bottom]
        if not others:
            continue
        own = [(top, bottom) for top, bottom in spans if top <= row <= bottom]
        above = sheet.formula(row - 1, column)
        here, origin = (f"{get_column_letter(column)}{each}" for each in (row, row - 1))
        if any(top < bottom for top, bottom in own) or (own and row == cells.min_row + 2):
            return []
        if above and Translator(above, origin=origin).translate_formula(here) == formula:
            return []
        found += others
    return found


def _rows_read(sheet: Sheet, cells: CellRange, formula: str) -> Iterator[tuple[int, int]]:
    """Yield the rows of each reference to the range below its header."""
    for title, text in areas(formula):
        top, left, bottom, right = bounds_of(text)
        first, last = max(top, cells.min_row + 1), min(bottom, cells.max_row)
        is_here = title.casefold() in {"", sheet.title.casefold()} and left <= cells.max_col and right >= cells.min_col
        if is_here and first <= last:
            yield first, last
