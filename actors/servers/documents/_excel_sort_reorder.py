"""Moves of cells: sorting the rows of a range, reordering its columns."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated

from openpyxl.formula.translate import Translator, TranslatorError
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.cell_range import CellRange
from pydantic import BaseModel, ConfigDict, Field

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.documents._excel_controls import SheetRange, column_of
from callboard.actors.servers.documents._excel_format import set_width, width_at
from callboard.actors.servers.documents._excel_marks import move_marks
from callboard.actors.servers.documents._excel_references import all_formulas, overlapping
from callboard.actors.servers.documents._excel_results import fill_results, need_result
from callboard.actors.servers.documents._excel_tables import tables_of
from callboard.actors.servers.documents._excel_totals import totals_of
from callboard.actors.servers.documents._office import q

if TYPE_CHECKING:
    from callboard.actors.servers.documents._excel_file import ExcelFile
    from callboard.actors.servers.documents._excel_sheet import Sheet

MAX_CELLS = 200_000
"""The largest number of cells that a call moves."""


class SortKey(BaseModel):
    """A column to sort by."""

    model_config = ConfigDict(extra="forbid")

    column: Annotated[str, Field(description="The column's header, or its letter.")]
    descending: Annotated[bool, Field(description="Whether the largest comes first.")] = False


def sort_rows(file: ExcelFile, place: SheetRange, keys: list[SortKey], *, header: bool) -> int:
    """Sort rows in Excel's order, and return their number.

    The order is numbers and dates, texts (case-insensitively), false, true, errors, empty cells. The sort is stable.
    Formulas move as in Excel: relative references move with their row.

    Raises:
        ToolError: If a column is missing, the range has merged cells or leaves out columns of its table, or a formula
            to sort by was never computed.
    """
    sheet, cells = place.sheet, place.need()
    check_movable(sheet, cells)
    if header:
        _check_columns(sheet, cells)
    columns = [(column_of(sheet, cells, key.column, header=header), key.descending) for key in keys]
    first = cells.min_row + header
    # a table's totals rows stay at its end
    rows = list(range(first, cells.max_row + 1 - totals_of(sheet, cells)))
    for column, _ in columns if rows else ():
        fill_results(file, sheet, CellRange(None, column, first, column, cells.max_row))
    for column, descending in reversed(columns):
        ranked = [(rank, row) for row in rows if (rank := rank_of(sheet, row, column)) is not None]
        full = {row for _, row in ranked}
        empty = [row for row in rows if row not in full]
        ranked.sort(key=lambda pair: pair[0], reverse=descending)
        rows = [row for _, row in ranked] + empty
    moved = {old: new for new, old in enumerate(rows, start=first) if old != new}
    across = range(cells.min_col, cells.max_col + 1)
    _move(sheet, {(old, column): (new, column) for old, new in moved.items() for column in across})
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
    places = {old: column for column, old in zip(across, new, strict=True) if column != old}
    widths = {old: width_at(sheet, old) for old in places}
    rows = range(cells.min_row, cells.max_row + 1)
    _move(sheet, {(row, old): (row, column) for old, column in places.items() for row in rows})
    for old, column in places.items():
        set_width(sheet, column, widths[old])
    return [get_column_letter(column) for column in new]


def check_movable(sheet: Sheet, cells: CellRange) -> None:
    """Refuse a range whose cells can't be moved one by one.

    Raises:
        ToolError: If the range is too large, or has merged cells, array formulas or data tables.
    """
    if cells.size["rows"] * cells.size["columns"] > MAX_CELLS:
        msg = f"{cells.coord} has more than {MAX_CELLS} cells; name a smaller range"
        raise ToolError(msg)
    for merged in sheet.merged:
        if not cells.isdisjoint(merged):
            msg = f"{cells.coord} has the merged cells {merged.coord}; name a range without them"
            raise ToolError(msg)
    for array in sheet.arrays:
        if not cells.isdisjoint(array):
            msg = f"{array.coord} holds an array formula or a data table, which can't be moved"
            raise ToolError(msg)


def _check_columns(sheet: Sheet, cells: CellRange) -> None:
    """Refuse cells that leave out columns beside them, which would stay."""
    tables = [table.cells for table in tables_of(sheet)]
    rows = range(cells.min_row + 1, cells.max_row + 1)

    def goes_on(column: int) -> bool:
        headed = column > 0 and sheet.raw(cells.min_row, column)[1] == "text"
        return headed and any(sheet.holds(row, column) for row in rows)

    whole = CellRange(None, cells.min_col, cells.min_row, cells.max_col, cells.max_row)
    while goes_on(whole.min_col - 1):
        whole.expand(left=1)
    while goes_on(whole.max_col + 1):
        whole.expand(right=1)
    if whole.coord != cells.coord and all(whole.isdisjoint(table) for table in tables):
        msg = (
            f"{cells.coord} leaves out columns beside it, whose cells would stay in their rows: name {whole.coord}, "
            "or only rows of data with header false"
        )
        raise ToolError(msg)


def rank_of(sheet: Sheet, row: int, column: int) -> tuple[int, float, str] | None:
    """Return a cell's place in Excel's order; None for an empty one.

    Raises:
        ToolError: If it is a formula that was never computed.
    """
    value, kind = sheet.raw(row, column)
    if kind == "empty":
        need_result(sheet, row, column)
        return None
    if kind == "truth":
        return (2, float(value), "")
    number = as_number(value)
    if number is not None:
        return (0, number, "")
    return (3, 0.0, "") if kind == "error" else (1, 0.0, str(value).casefold())


def as_number(value: object) -> float | None:
    """Convert numbers, and times in days; None for other values."""
    day = dt.timedelta(days=1)
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1899, 12, 30)) / day  # noqa: DTZ001 - has no time zone
    if isinstance(value, dt.time):
        return dt.timedelta(hours=value.hour, minutes=value.minute, seconds=value.second) / day
    return value / day if isinstance(value, dt.timedelta) else None


def _move(sheet: Sheet, places: dict[tuple[int, int], tuple[int, int]]) -> None:
    """Move cells with formats, links and notes.

    The relative references of formulas move along.
    """
    if not places:
        return
    sheet.edit()
    sheet.unshare()
    taken = {new: sheet.cells[old] for old, new in places.items() if old in sheet.cells}
    for cell in taken.values():
        cell.getparent().remove(cell)
    for place in places.values():
        sheet.cells.pop(place, None)
    for (row, column), cell in taken.items():
        origin, here = cell.get("r"), f"{get_column_letter(column)}{row}"
        formula = cell.find(q("f"))
        if formula is not None and formula.text:
            try:
                formula.text = Translator(f"={formula.text}", origin=origin).translate_formula(here)[1:]
            except TranslatorError as error:
                msg = f"the formula of {origin} can't move to {here}: its references would leave the sheet"
                raise ToolError(msg) from error
        cell.set("r", here)
        sheet.put(row, column, cell)
    sheet.changed.update(places.values())
    move_marks(sheet, lambda row, column: places.get((row, column), (row, column)))
    sheet.file.formulas_moved = True


def _check_references(file: ExcelFile, sheet: Sheet, cells: CellRange, moving: list[int]) -> None:
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


def _reorder_tables(sheet: Sheet, cells: CellRange, new: list[int]) -> None:
    for table in tables_of(sheet):
        if cells.isdisjoint(table.cells):
            continue
        if table.cells.coord != cells.coord:
            msg = f"the table {table.name} covers {table.cells.coord}; give exactly its cells to reorder its columns"
            raise ToolError(msg)
        elements = table.column_elements()
        columns = table.edit().find(q("tableColumns"))
        columns[:] = [elements[old - cells.min_col] for old in new]
        table.resize(cells)  # criteria of filters count columns
