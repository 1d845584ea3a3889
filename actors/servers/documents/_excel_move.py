"""Moves of cells: sorting the rows of a range, reordering its columns."""

from __future__ import annotations

import copy
import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from openpyxl.formula.translate import Translator
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.cell_range import CellRange
from pydantic import BaseModel, ConfigDict, Field

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.documents._excel_controls import SheetRange, column_of
from callboard.actors.servers.documents._excel_file import ExcelFile, is_formula
from callboard.actors.servers.documents._excel_references import all_formulas, overlapping

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

MAX_CELLS = 200_000
"""The largest number of cells that a call moves."""


class SortKey(BaseModel):
    """A column to sort by."""

    model_config = ConfigDict(extra="forbid")

    column: Annotated[str, Field(description="The column's header, or its letter.")]
    descending: Annotated[bool, Field(description="Whether the largest comes first.")] = False


@dataclass
class _Content:
    """The content and format that move with a cell."""

    origin: str
    value: Any
    data_type: str
    style: Any
    hyperlink: Any
    comment: Any


def sort_rows(file: ExcelFile, place: SheetRange, keys: list[SortKey], *, header: bool) -> int:
    """Sort rows in Excel's order, and return their number.

    The order is numbers and dates, texts (case-insensitively), false, true, errors, empty cells. The sort is stable.
    Formulas move as in Excel: relative references move with their row.

    Raises:
        ToolError: If a column is missing, the range has merged cells, or a formula to sort by was never computed.
    """
    sheet, cells = place.sheet, place.need()
    check_movable(sheet, cells)
    columns = [(column_of(sheet, cells, key.column, header=header), key.descending) for key in keys]
    first = cells.min_row + header
    # a table's totals rows stay at its end
    totals = next((table.totalsRowCount or 0 for table in sheet.tables.values() if table.ref == cells.coord), 0)
    rows = list(range(first, cells.max_row + 1 - totals))
    for column, descending in reversed(columns):
        ranked = [(rank, row) for row in rows if (rank := _rank(file, sheet, row, column)) is not None]
        full = {row for _, row in ranked}
        empty = [row for row in rows if row not in full]
        ranked.sort(key=lambda pair: pair[0], reverse=descending)
        rows = [row for _, row in ranked] + empty
    across = range(cells.min_col, cells.max_col + 1)
    taken = [[_take(sheet, row, column) for column in across] for row in rows]
    for row, contents in enumerate(taken, start=first):
        for column, content in zip(across, contents, strict=True):
            _put(sheet, row, column, content)
    return len(rows)


def reorder(file: ExcelFile, place: SheetRange, order: list[str], *, header: bool) -> list[str]:
    """Reorder the columns of a range.

    Columns that are not named follow in their order.

    Returns:
        The columns' former letters, in the new order.

    Raises:
        ToolError: If a column is missing or named twice, the range has merged cells, or a formula, name or chart
            refers to a column that would move: the reference would then select another column.
    """
    sheet, cells = place.sheet, place.need()
    check_movable(sheet, cells)
    named = [column_of(sheet, cells, name, header=header) for name in order]
    if len(set(named)) < len(named):
        msg = "a column is named twice"
        raise ToolError(msg)
    across = list(range(cells.min_col, cells.max_col + 1))
    new = named + [column for column in across if column not in named]
    moving = [column for column, old in zip(across, new, strict=True) if column != old]
    if moving:
        _check_references(file, sheet, cells, moving)
        _reorder_tables(sheet, cells, new)
    widths = {column: sheet.column_dimensions[get_column_letter(column)].width for column in moving}
    for row in range(cells.min_row, cells.max_row + 1) if moving else ():
        taken = [_take(sheet, row, column) for column in new]
        for column, content in zip(across, taken, strict=True):
            _put(sheet, row, column, content)
    for column, old in zip(across, new, strict=True):
        if column != old:
            sheet.column_dimensions[get_column_letter(column)].width = widths[old]
    return [get_column_letter(column) for column in new]


def check_movable(sheet: Worksheet, cells: CellRange) -> None:
    """Refuse a range whose cells can't be moved one by one.

    Raises:
        ToolError: If the range is too large, or has merged cells, array formulas or data tables.
    """
    if cells.size["rows"] * cells.size["columns"] > MAX_CELLS:
        msg = f"{cells.coord} has more than {MAX_CELLS} cells; name a smaller range"
        raise ToolError(msg)
    for merged in sheet.merged_cells.ranges:
        if not cells.isdisjoint(merged):
            msg = f"{cells.coord} has the merged cells {merged.coord}; name a range without them"
            raise ToolError(msg)
    for row in range(cells.min_row, cells.max_row + 1):
        for column in range(cells.min_col, cells.max_col + 1):
            cell = sheet.cell(row, column)
            if is_formula(cell) and not isinstance(cell.value, str):
                msg = f"{cell.coordinate} holds an array formula or a data table, which can't be moved"
                raise ToolError(msg)


def _rank(file: ExcelFile, sheet: Worksheet, row: int, column: int) -> tuple[int, float, str] | None:
    """Return a cell's sort key in Excel's order; None if empty."""
    cell = sheet.cell(row, column)
    value: Any = cell.value
    if is_formula(cell):
        value = file.result(sheet, row, column)
        if value is None:
            msg = f"{cell.coordinate} is a formula that was never computed; open and save the workbook in Excel first"
            raise ToolError(msg)
    if value is None:
        return None
    if isinstance(value, bool):
        return (2, float(value), "")
    number = _as_number(value)
    if number is not None:
        return (0, number, "")
    return (3, 0.0, "") if cell.data_type == "e" else (1, 0.0, str(value).casefold())


def _as_number(value: object) -> float | None:
    """Convert numbers, and times in days; None for other values."""
    day = dt.timedelta(days=1)
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1899, 12, 30)) / day  # noqa: DTZ001 - has no time zone
    if isinstance(value, dt.time):
        return dt.timedelta(hours=value.hour, minutes=value.minute, seconds=value.second) / day
    return value / day if isinstance(value, dt.timedelta) else None


def _take(sheet: Worksheet, row: int, column: int) -> _Content:
    cell: Any = sheet.cell(row, column)
    style, link, comment = copy.copy(cell._style), copy.copy(cell.hyperlink), copy.copy(cell.comment)
    return _Content(cell.coordinate, cell.value, cell.data_type, style, link, comment)


def _put(sheet: Worksheet, row: int, column: int, content: _Content) -> None:
    """Write moved content into a cell unchanged.

    Setting ``value`` would make openpyxl infer its type again.
    """
    cell: Any = sheet.cell(row, column)
    value = content.value
    if content.data_type == "f":
        value = Translator(value, origin=content.origin).translate_formula(cell.coordinate)
    cell._value = value
    cell.data_type = content.data_type
    cell._style = content.style
    cell.comment = None
    cell.comment = content.comment
    cell._hyperlink = None
    if content.hyperlink is not None:
        cell.hyperlink = content.hyperlink


def _check_references(file: ExcelFile, sheet: Worksheet, cells: CellRange, moving: list[int]) -> None:
    for reference in all_formulas(file):
        for column in moving:
            strip = CellRange(min_col=column, max_col=column, min_row=cells.min_row, max_row=cells.max_row)
            for text in overlapping(reference, sheet.title, strip):
                letter = get_column_letter(column)
                own = {f"{sheet.title}!{letter}{row}" for row in range(cells.min_row, cells.max_row + 1)}
                within = all(end.rstrip("0123456789") == letter for end in text.rpartition("!")[2].split(":"))
                if reference.where in own and within:
                    continue
                msg = f"{reference.where} refers to {text}, which would move; change it first, or leave column {letter}"
                raise ToolError(msg)


def _reorder_tables(sheet: Worksheet, cells: CellRange, new: list[int]) -> None:
    for table in sheet.tables.values():
        if cells.isdisjoint(CellRange(table.ref)):
            continue
        if table.ref != cells.coord:
            msg = f"the table {table.displayName} covers {table.ref}; give exactly its cells to reorder its columns"
            raise ToolError(msg)
        columns = list(table.tableColumns)
        table.tableColumns = [columns[old - cells.min_col] for old in new]
        for number, column in enumerate(table.tableColumns, start=1):
            column.id = number
        if table.autoFilter is not None:
            table.autoFilter.filterColumn = []
