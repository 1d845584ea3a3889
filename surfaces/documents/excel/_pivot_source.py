"""The rows that a pivot table summarizes, read as columns of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._collation import calendar_key, order_of
from callboard.surfaces.documents._tables import listed
from callboard.surfaces.documents.excel._cell_values import escape
from callboard.surfaces.documents.excel._formula_results import fill_results, need_result
from callboard.surfaces.documents.excel._hidden_rows import row_spans
from callboard.surfaces.documents.excel._named_tables import header_of, tables_of
from callboard.surfaces.documents.excel._pivot_results import (
    BLANK,
    EMPTY,
    PivotField,
    SourceValue,
    iso_moment,
    moment_text,
    number_text,
)
from callboard.surfaces.documents.excel._sheet import where_of
from callboard.surfaces.documents.excel._sort_reorder import as_number
from callboard.surfaces.documents.excel._total_rows import data_rows, totals_of

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Collection

    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._sheet import Kind, Sheet
    from callboard.surfaces.documents.excel._sheet_controls import SheetRange

_MAX_ROWS = 100_000
_MAX_VALUES = 1_000_000
"""The largest source: rows, and values in all of its columns."""
LONGEST_NAME = 255
"""The most characters of a field's name, or of a value's heading."""
_SECONDS = 86_400
"""In a day; a moment is stored to the second."""
_RANKS = {"number": 0, "date": 0, "text": 1, "truth": 2, "error": 3, "empty": 4}


@dataclass(frozen=True)
class PivotSource:
    """A header and the rows below it, without totals at the end."""

    sheet: Sheet
    cells: CellRange
    names: list[str]
    """The fields' names: the headers, made unique and cut to 255 characters as Excel does."""
    table: str = ""
    """The name of the Excel table that it is, if any."""

    @property
    def count(self) -> int:
        """The number of rows below the header."""
        return int(self.cells.max_row - self.cells.min_row)

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes that name it in a part.

        An Excel table is named, so that the source grows with it.
        """
        return {"name": escape(self.table)} if self.table else {"ref": self.cells.coord, "sheet": self.sheet.title}

    @property
    def rows(self) -> range:
        """The rows of data."""
        return range(self.cells.min_row + 1, self.cells.max_row + 1)


def pivot_source(target: SheetRange, *, named: bool) -> tuple[PivotSource, Answer]:
    """Find the header and the rows of a range.

    Args:
        target: The range, with its header.
        named: Whether the caller named the cells, so that totals between rows may count.

    Returns:
        The source, and what an answer says about rows of totals.

    Raises:
        ToolError: If a header is empty, there are no rows or too many, or totals stand between them.
    """
    sheet, cells = target.sheet, target.need()
    table = next((entry for entry in tables_of(sheet) if entry.cells.coord == cells.coord), None)
    if table is not None and not table.has_header:
        msg = f"the table {table.name!r} has no header, and a pivot table needs one; show it in Excel first"
        raise ToolError(msg)
    totals = totals_of(sheet, cells)
    cells = CellRange(None, cells.min_col, cells.min_row, cells.max_col, cells.max_row - totals)
    height, width = cells.size["rows"] - 1, cells.size["columns"]
    if height < 1:
        msg = f"{cells.coord} has no rows below its header, and a pivot table needs some"
        raise ToolError(msg)
    if height > _MAX_ROWS or height * width > _MAX_VALUES:
        msg = (
            f"{cells.coord} has {height:,} rows and {width} columns; a pivot table reads at most {_MAX_ROWS:,} rows "
            f"and {_MAX_VALUES:,} values: name fewer cells"
        )
        raise ToolError(msg)
    headers = header_of(sheet, cells)
    empty = [where_of(cells.min_row, number) for number, text in enumerate(headers, cells.min_col) if not text.strip()]
    if empty:
        msg = f"the header is empty in {listed(empty)}, and a pivot table needs one in each column: write it, or name "
        raise ToolError(msg + "other cells")
    between = data_rows(sheet, cells, header=True).totals
    if between and not named:
        msg = (
            f"{cells.coord} has totals between its rows (row {row_spans(between)}), which a pivot table would count "
            "beside what they total: copy the other rows with filter_rows, or name the cells to count all of them"
        )
        raise ToolError(msg)
    answer: Answer = {"totals_counted": row_spans(between)} if between else {}
    if totals:
        answer["totals_left_out"] = row_spans(range(cells.max_row + 1, cells.max_row + totals + 1))
    return PivotSource(sheet, cells, _unique(headers), table.name if table is not None else ""), answer


def _unique(headers: list[str]) -> list[str]:
    """Number repeated headers, as Excel does in pivot tables."""
    texts = [header[:LONGEST_NAME] for header in headers]
    names: list[str] = []
    taken = {text.casefold() for text in texts}
    for text in texts:
        name, number = text, 2
        if any(name.casefold() == other.casefold() for other in names):
            while (name := f"{text[: LONGEST_NAME - len(str(number))]}{number}").casefold() in taken:
                number += 1
            taken.add(name.casefold())
        names.append(name)
    return names


def read_fields(source: PivotSource, axes: Collection[int], data: Collection[int]) -> list[PivotField]:
    """Read the columns of a source.

    Args:
        source: The range.
        axes: The numbers of the columns whose values become rows, columns or choices of a filter.
        data: The numbers of the columns that are summed, counted and so on.

    Raises:
        ToolError: If one of these columns has an error, or a formula without a result.
    """
    fill_results(source.sheet.file, source.sheet, source.cells)
    return [
        _read_field(source, number, used=number in {*axes, *data}, items=number in axes)
        for number in range(len(source.names))
    ]


def _read_field(source: PivotSource, number: int, *, used: bool, items: bool) -> PivotField:
    sheet, column = source.sheet, source.cells.min_col + number
    values: list[SourceValue] = []
    texts: dict[SourceValue, str] = {}
    code = ""
    for row in source.rows:
        raw, kind = sheet.raw(row, column)
        if used and kind == "empty":
            need_result(sheet, row, column)
        if used and kind == "error":
            msg = f"{where_of(row, column)} holds the error {raw}, which the pivot table would show; correct it first"
            raise ToolError(msg)
        value = _value(sheet, row, column, raw, kind)
        values.append(value)
        if value not in texts:
            texts[value] = _text(value, sheet.file.epoch)
        if not code and kind in {"number", "date"}:
            code = sheet.number_format(row, column)
    if not items and all(value.kind in {"number", "empty"} for value in values):
        return PivotField(source.names[number], [], [], values, [], code or "General")
    first: dict[object, SourceValue] = {}
    for value in texts:
        first.setdefault(_identity(value), value)
    words = [str(value.value) for value in first.values() if value.kind == "text"]
    calendar = calendar_key(words)
    key = calendar or order_of(words)[0]
    ordered = sorted(first.values(), key=lambda value: _rank(value, key))
    positions = {_identity(value): position for position, value in enumerate(ordered)}
    numbers = [positions[_identity(value)] for value in values]
    shown_texts = [texts[value] for value in ordered]
    in_calendar = calendar is not None
    return PivotField(source.names[number], ordered, numbers, values, shown_texts, code or "General", in_calendar)


def _value(sheet: Sheet, row: int, column: int, raw: object, kind: Kind) -> SourceValue:
    match kind:
        case "empty":
            return EMPTY
        case "date":
            serial = sheet.serial(row, column)
            return SourceValue("date", as_number(raw) or 0.0 if serial is None else serial)
        case "number":
            return SourceValue("number", as_number(raw) or 0.0)
        case "truth":
            return SourceValue("truth", bool(raw))
        case _:
            return SourceValue(kind, str(raw))


def _text(value: SourceValue, epoch: dt.datetime) -> str:
    """Return the text of a value in headings and filters."""
    match value.kind:
        case "empty":
            return BLANK
        case "truth":
            return "TRUE" if value.value else "FALSE"
        case "number":
            return number_text(float(value.value))
        case "date":
            return moment_text(iso_moment(float(value.value), epoch))
        case _:
            return str(value.value)


def _identity(value: SourceValue) -> object:
    """Return the identity of an item.

    Capitals do not count; the case folding of Unicode would take ß for ss, too. Moments differ by a second.
    """
    if value.kind == "date":
        return value.kind, round(float(value.value) * _SECONDS)
    return value.kind, value.value.lower() if isinstance(value.value, str) else value.value


def _rank(value: SourceValue, key: Callable[[str], object]) -> tuple[int, float, object]:
    """Return the place of an item in Excel's order."""
    text = key(str(value.value)) if value.kind in {"text", "error"} else ()
    return _RANKS[value.kind], float(value.value) if not isinstance(value.value, str) else 0.0, text
