"""The rows of a range by their use: data, totals, prefilled rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces._numbers import parse_number
from callboard.surfaces.documents._total_words import total_label
from callboard.surfaces.documents.excel._cell_references import areas, bounds_of, functions
from callboard.surfaces.documents.excel._formula_text import translated
from callboard.surfaces.documents.excel._hidden_rows import row_spans
from callboard.surfaces.documents.excel._named_tables import tables_of
from callboard.surfaces.documents.excel._structured_references import in_brackets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._sheet import Sheet

_TOTALLING = frozenset(
    ["SUBTOTAL", "AGGREGATE", "SUM", "AVERAGE", "COUNT", "COUNTA", "MIN", "MAX", "MEDIAN", "PRODUCT"]
)
_THIS_ROW = re.compile(r"\[#This Row\]\s*,\s*\[((?:'.|[^\[\]'])*)\]", re.IGNORECASE)
_ROUNDING = 0.005
"""The difference for each summand by which a rounded total may miss the sum."""


@dataclass(frozen=True)
class DataRows:
    """The rows between a range's header and the totals at its end."""

    rows: list[int]
    totals: list[int]
    """Rows between them that total others."""
    doubtful: list[int]
    """Those of `rows` that are called totals, although their numbers are no totals of other rows."""
    end: list[int]
    """The totals at the end, with the notes below them."""

    def named(self, sheet: Sheet, cells: CellRange) -> Answer:
        """Name the totals among the rows in an answer."""
        totals = [*self.totals, *self.end]
        answer: Answer = {"totals_left_out": row_spans(totals)} if totals else {}
        if self.doubtful:
            answer["may_be_totals"] = {f"row {row}": _label(sheet, cells, row) for row in self.doubtful[:20]}
        return answer


def data_rows(sheet: Sheet, cells: CellRange, *, header: bool) -> DataRows:
    """Sort the rows of a range by their use."""
    last = last_data_row(sheet, cells, header=header)
    kinds = _kinds(sheet, cells, range(cells.min_row + header, last + 1))
    return DataRows(
        rows=[row for row, kind in kinds.items() if kind != "total"],
        totals=[row for row, kind in kinds.items() if kind == "total"],
        doubtful=[row for row, kind in kinds.items() if kind == "doubtful"],
        end=[*range(cells.max_row + 1 - totals_of(sheet, cells), cells.max_row + 1)],
    )


def _kinds(sheet: Sheet, cells: CellRange, rows: range) -> dict[int, Literal["data", "total", "doubtful"]]:
    """Tell totals from data, row by row."""
    kinds: dict[int, Literal["data", "total", "doubtful"]] = {}
    labelled = {row for row in rows if total_label(_label(sheet, cells, row))}
    sums = _Sums(sheet, cells)
    for row in rows:
        matches = sums.match(row) if row in labelled else None
        if matches or _is_subtotal(sheet, cells, row, labelled=row in labelled):
            kinds[row] = "total"
            sums.restart()
            continue
        kinds[row] = "data" if matches is None else "doubtful"
        if labelled:
            sums.add(row)
    return kinds


def last_data_row(sheet: Sheet, cells: CellRange, *, header: bool, defaults: bool = False) -> int:
    """Return the last row with data.

    Totals follow it, and rows that a template has prefilled with formulas; where `defaults` is true, also those that it
    has prefilled with numbers from row to row, or with the same values, too.
    """
    row = cells.max_row - totals_of(sheet, cells)
    while row >= cells.min_row + header and _is_prefilled(sheet, cells, row, defaults=defaults):
        row -= 1
    return row


def totals_of(sheet: Sheet, cells: CellRange) -> int:
    """Count the rows of totals at the end of a range.

    A table says how many it has. Elsewhere they are the rows at the end that are called totals, or whose formulas read
    other rows, and the values between them that those read, like the shipping costs between a subtotal and a total.
    Notes below them count, too.
    """
    table = next((candidate for candidate in tables_of(sheet) if candidate.cells.coord == cells.coord), None)
    if table is not None:
        return table.totals
    count = 0
    summands: set[int] = set()  # rows that a total below reads one by one
    for row in range(cells.max_row, cells.min_row + 1, -1):
        spans = _rows_totalled(sheet, cells, row)
        if spans or _is_called_total(sheet, cells, row):
            # the rows between two totals belong to a group
            if summands and row not in summands and count != cells.max_row - row:
                break
            count = cells.max_row - row + 1
            single_rows = {top for top, bottom in spans if top == bottom}
            if any(
                _rows_totalled(sheet, cells, summand) or total_label(_label(sheet, cells, summand))
                for summand in single_rows
            ):
                summands |= single_rows
        elif row not in summands and (count or not _is_note(sheet, cells, row)):
            break
    return count


def without_totals(sheet: Sheet, cells: CellRange) -> CellRange:
    """Return a range without its rows of totals."""
    return CellRange(None, cells.min_col, cells.min_row, cells.max_col, cells.max_row - totals_of(sheet, cells))


def _label(sheet: Sheet, cells: CellRange, row: int) -> str:
    """Return the text that names a row.

    It is the first one; or a word for totals behind texts that repeat the row above, like those of a group.
    """
    first = ""
    for column in range(cells.min_col, cells.max_col + 1):
        value, kind = sheet.raw(row, column)
        if kind != "text" or not value:
            continue
        if total_label(str(value)):
            return str(value)
        first = first or str(value)
        if sheet.raw(row - 1, column) != (value, kind):
            break
    return first


def _is_called_total(sheet: Sheet, cells: CellRange, row: int) -> bool:
    """Return whether the label of a row names it a total."""
    label = total_label(_label(sheet, cells, row))
    if not label:
        return False
    kind = _kinds(sheet, cells, range(cells.min_row + 1, row + 1))[row]
    return kind == "total" or (label == "whole" and kind == "doubtful")


class _Sums:
    """Sums of numbers by column: since the last total, and of all."""

    def __init__(self, sheet: Sheet, cells: CellRange) -> None:
        self._sheet, self._cells = sheet, cells
        self._since: dict[int, tuple[float, int]] = {}
        self._all: dict[int, tuple[float, int]] = {}

    def add(self, row: int) -> None:
        """Add the numbers of a row."""
        for column, number in self._numbers(row):
            for sums in (self._since, self._all):
                total, count = sums.get(column, (0.0, 0))
                sums[column] = total + number, count + 1

    def restart(self) -> None:
        """Begin new sums below a total."""
        self._since.clear()

    def match(self, row: int) -> bool | None:
        """Return whether a row has a sum or mean; None without numbers."""
        numbers = list(self._numbers(row))
        for column, number in numbers:
            for total, count in (self._since.get(column, (0.0, 0)), self._all.get(column, (0.0, 0))):
                near = _ROUNDING * count + 1e-9 * abs(total)
                if count and (abs(total - number) <= near or abs(total / count - number) <= _ROUNDING):
                    return True
        return False if numbers else None

    def _numbers(self, row: int) -> Iterator[tuple[int, float]]:
        for column in range(self._cells.min_col, self._cells.max_col + 1):
            value, kind = self._sheet.raw(row, column)
            number = parse_number(str(value)) if kind == "text" else None
            if kind == "number" or number:
                yield column, float(number.value if number else value)


def _is_subtotal(sheet: Sheet, cells: CellRange, row: int, *, labelled: bool) -> bool:
    """Return whether a formula in a row totals other rows.

    Without a label, it uses a function for totals on its own column. The formulas of running figures are alike from row
    to row.
    """
    for column in range(cells.min_col, cells.max_col + 1):
        formula = sheet.formula(row, column).strip("{}")
        if not formula or not (labelled or _TOTALLING & {*functions(formula)}):
            continue
        spans = [bounds_of(text) for title, text in areas(formula) if title.casefold() in {"", sheet.title.casefold()}]
        if any(top <= row <= bottom and left <= cells.max_col for top, left, bottom, _ in spans):
            continue
        other_spans = [
            span
            for span in spans
            if span[0] <= cells.max_row and span[2] > cells.min_row and span[1] <= column <= span[3]
        ]
        above, below = (sheet.formula(neighbor, column) for neighbor in (row - 1, row + 1))
        repeats_neighbor = (above and translated(above, 1, 0) == formula) or (
            below and translated(formula, 1, 0) == below
        )
        if other_spans and not repeats_neighbor:
            return True
    return False


def _is_prefilled(sheet: Sheet, cells: CellRange, row: int, *, defaults: bool) -> bool:
    """Return whether a row holds only formulas that await its values."""
    columns = range(cells.min_col, cells.max_col + 1)
    filled_columns = [column for column in columns if sheet.holds(row, column)]
    if not all(
        sheet.is_formula(row, column) or (defaults and _is_series(sheet, row, column)) for column in filled_columns
    ):
        return False
    empty = {*columns} - {*filled_columns}
    return any(empty & {*_columns_read(sheet, row, sheet.formula(row, column))} for column in filled_columns)


def _is_series(sheet: Sheet, row: int, column: int) -> bool:
    """Return whether a value repeats a neighbor or counts on."""
    above, value, below = (sheet.raw(nearby_row, column) for nearby_row in (row - 1, row, row + 1))
    if value in (above, below):
        return True
    pairs = ((above, value), (value, below))
    return any(a[1] == b[1] == "number" and a[0] + 1 == b[0] for a, b in pairs)


def _columns_read(sheet: Sheet, row: int, formula: str) -> Iterator[int]:
    """Yield the columns that a formula reads in its own row."""
    for title, text in areas(formula):
        top, left, bottom, right = bounds_of(text)
        if title.casefold() in {"", sheet.title.casefold()} and top == bottom == row:
            yield from range(left, right + 1)
    names = {re.sub(r"'(.)", r"\1", name).casefold() for name in _THIS_ROW.findall(in_brackets(formula))}
    for table in tables_of(sheet) if names else ():
        if table.cells.min_row <= row <= table.cells.max_row:
            yield from (n for n, name in enumerate(table.columns, table.cells.min_col) if name.casefold() in names)


def _is_note(sheet: Sheet, cells: CellRange, row: int) -> bool:
    """Return whether a row of several columns holds a single text."""
    kinds = [sheet.raw(row, column)[1] for column in range(cells.min_col, cells.max_col + 1)]
    return len(kinds) > 1 and kinds.count("empty") == len(kinds) - 1 and "text" in kinds


def _rows_totalled(sheet: Sheet, cells: CellRange, row: int) -> list[tuple[int, int]]:
    """Return the spans of rows that a row totals, if any.

    A data row may read other rows too: a running balance or a moving average has the formula of the row above, or
    reads its own row.
    """
    totalled_spans: list[tuple[int, int]] = []
    for column in range(cells.min_col, cells.max_col + 1):
        formula = sheet.formula(row, column).strip("{}")
        spans = list(_rows_read(sheet, cells, formula)) if formula else []
        other_spans = [(top, bottom) for top, bottom in spans if not top <= row <= bottom]
        if not other_spans:
            continue
        own_spans = [(top, bottom) for top, bottom in spans if top <= row <= bottom]
        above = sheet.formula(row - 1, column)
        if any(top < bottom for top, bottom in own_spans) or (own_spans and row == cells.min_row + 2):
            return []
        if above and translated(above, 1, 0) == formula:
            return []
        totalled_spans += other_spans
    return totalled_spans


def _rows_read(sheet: Sheet, cells: CellRange, formula: str) -> Iterator[tuple[int, int]]:
    """Yield the rows of each reference to the range below its header."""
    for title, text in areas(formula):
        top, left, bottom, right = bounds_of(text)
        first, last = max(top, cells.min_row + 1), min(bottom, cells.max_row)
        is_here = title.casefold() in {"", sheet.title.casefold()} and left <= cells.max_col and right >= cells.min_col
        if is_here and first <= last:
            yield first, last
