"""The arithmetic of inserted and deleted rows and columns."""

from __future__ import annotations

import bisect
import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from openpyxl.utils import column_index_from_string, get_column_letter
from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces.documents.excel._formula_text import LAST_COLUMN, LAST_ROW

if TYPE_CHECKING:
    from callboard.surfaces.documents.excel._sheet import Sheet

Axis = Literal["row", "col"]
_END = re.compile(r"(\$?)([A-Za-z]{1,3})?(\$?)([0-9]{1,7})?")
_GONE = "#REF!"


@dataclass(frozen=True)
class Shift:
    """Rows or columns to insert before, or delete from, a position."""

    sheet: Sheet
    axis: Axis
    at: int
    """The first row or column, from 1."""
    count: int
    """The number of inserted lines; negative for deleted ones."""

    @property
    def last(self) -> int:
        """The last row or column that a sheet can have."""
        return LAST_ROW if self.axis == "row" else LAST_COLUMN

    def index(self, number: int) -> int | None:
        """Return a row's or column's new number; None if deleted."""
        if number < self.at:
            return number
        if number < self.at - self.count:
            return None
        return number + self.count

    def landing(self, number: int) -> int:
        """Return a line's new number, or that of the next one."""
        new = self.index(number)
        return self.at if new is None else new

    def span(self, first: int, last: int) -> tuple[int, int] | None:
        """Return the new ends of a span; None if deleted."""
        if self.count > 0:
            ends = tuple(min(end + self.count, self.last) if end >= self.at else end for end in (first, last))
            return ends[0], ends[1]
        start = self.at if first >= self.at and first < self.at - self.count else self.index(first)
        end = self.at - 1 if last >= self.at and last < self.at - self.count else self.index(last)
        return None if start is None or end is None or end < start else (start, end)

    def area(self, cells: CellRange) -> CellRange | None:
        """Return the new cells of a range; None if deleted."""
        if self.axis == "row":
            rows = self.span(cells.min_row, cells.max_row)
            return CellRange(None, cells.min_col, rows[0], cells.max_col, rows[1]) if rows else None
        columns = self.span(cells.min_col, cells.max_col)
        return CellRange(None, columns[0], cells.min_row, columns[1], cells.max_row) if columns else None

    def areas(self, cells: CellRange) -> list[CellRange]:
        """Return the new cells of a rule's range, in parts."""
        new = self.area(cells)
        return [] if new is None else [new]

    def resizes(self, cells: CellRange) -> bool:
        """Return whether a range grows, shrinks or is deleted."""
        new = self.area(cells)
        return new is None or new.size != cells.size

    def position(self, row: int, column: int) -> tuple[int, int] | None:
        """Return a cell's new row and column; None if deleted."""
        if self.axis == "row":
            new = self.index(row)
            return None if new is None else (new, column)
        new = self.index(column)
        return None if new is None else (row, new)

    def reference(self, text: str) -> str:
        """Shift a reference such as ``$A1:B$2``, ``A:B`` or ``1:3``."""
        matches = [_END.fullmatch(end) for end in text.split(":")]
        ends = [match.groups(default="") for match in matches if match is not None]
        numbers = [int(end[3] or 0) if self.axis == "row" else column_number(end[1]) for end in ends]
        if not all(numbers) or len(ends) != len(matches):
            return text
        span = self.span(min(numbers), max(numbers))
        if span is None:
            return _GONE
        if numbers[0] > numbers[-1]:
            span = span[1], span[0]
        new_ends = []
        for (fixed, column, fixed_row, row), number in zip(ends, span, strict=False):
            new = (column, str(number)) if self.axis == "row" else (get_column_letter(number), row)
            new_ends.append(f"{fixed}{new[0]}{fixed_row}{new[1]}")
        return ":".join(new_ends)


@dataclass(frozen=True)
class Deletion(Shift):
    """Scattered rows to delete, whole or in some columns.

    Cells in these columns move up as in Excel. References that lie partly in other columns stay.
    """

    rows: tuple[int, ...] = ()
    """The rows, in ascending order."""
    columns: tuple[int, int] | None = None
    """The first and last column; None for whole rows."""

    @classmethod
    def of(cls, sheet: Sheet, rows: list[int], columns: tuple[int, int] | None = None) -> Deletion:
        """Make a deletion of some rows, at least one."""
        return cls(sheet, "row", min(rows), -len(rows), tuple(sorted(rows)), columns)

    def index(self, number: int) -> int | None:
        """Return a row's new number; None if deleted."""
        before = bisect.bisect_left(self.rows, number)
        return None if before < len(self.rows) and self.rows[before] == number else number - before

    def landing(self, number: int) -> int:
        """Return a row's new number, or that of the next one."""
        return number - bisect.bisect_left(self.rows, number)

    def span(self, first: int, last: int) -> tuple[int, int] | None:
        """Return the new ends of a span; None if deleted."""
        start, end = self.landing(first), last - bisect.bisect_right(self.rows, last)
        return None if end < start else (start, end)

    def area(self, cells: CellRange) -> CellRange | None:
        """Return the new cells of a range; None if deleted."""
        return super().area(cells) if self._is_within(cells.min_col, cells.max_col) else cells

    def areas(self, cells: CellRange) -> list[CellRange]:
        """Return the moved part of a rule's range, and those beside it."""
        if self.columns is None or not self.cuts(cells):
            return super().areas(cells)
        first, last = self.columns
        bounds = [
            (cells.min_col, min(cells.max_col, first - 1)),
            (max(cells.min_col, first), min(cells.max_col, last)),
            (max(cells.min_col, last + 1), cells.max_col),
        ]
        parts = [CellRange(None, left, cells.min_row, right, cells.max_row) for left, right in bounds if left <= right]
        return [new for part in parts if (new := self.area(part)) is not None]

    def cuts(self, cells: CellRange) -> bool:
        """Return whether only some columns of a range would move."""
        if self.columns is None or cells.max_row < self.at or self._is_within(cells.min_col, cells.max_col):
            return False
        return bool(cells.min_col <= self.columns[1] and cells.max_col >= self.columns[0])

    def resizes(self, cells: CellRange) -> bool:
        """Return whether a range shrinks, is deleted, or gets other cells."""
        return self.cuts(cells) or super().resizes(cells)

    def position(self, row: int, column: int) -> tuple[int, int] | None:
        """Return a cell's new row and column; None if deleted."""
        return super().position(row, column) if self._is_within(column, column) else (row, column)

    def reference(self, text: str) -> str:
        """Shift a reference that lies in the columns, such as ``$A1:B$2``."""
        matches = [_END.fullmatch(end) for end in text.split(":")]
        columns = [column_number(match[2] or "") for match in matches if match is not None]
        if not columns or not self._is_within(min(columns), max(columns)):
            return text
        return super().reference(text)

    def _is_within(self, first: int, last: int) -> bool:
        return self.columns is None or self.columns[0] <= first <= last <= self.columns[1]


@functools.lru_cache(maxsize=1024)
def column_number(letters: str) -> int:
    """Convert a column's letters, in any case; 0 without letters."""
    return column_index_from_string(letters.upper()) if letters else 0
