"""Moves of cells: sorting the rows of a range, reordering its columns."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, Any

from openpyxl.utils import get_column_letter
from openpyxl.worksheet.cell_range import CellRange
from pydantic import BaseModel, ConfigDict, Field

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._collation import order_of
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._cell_formats import column_look, set_column_look
from callboard.surfaces.documents.excel._cell_references import all_formulas, overlapping
from callboard.surfaces.documents.excel._followers import check_controls, follow, move_row_looks
from callboard.surfaces.documents.excel._formula_results import fill_results, need_result
from callboard.surfaces.documents.excel._formula_text import LAST_ROW, leaves_sheet, translated
from callboard.surfaces.documents.excel._hidden_rows import column_spans, hidden_columns, hidden_rows, row_spans
from callboard.surfaces.documents.excel._named_tables import tables_of
from callboard.surfaces.documents.excel._notes_and_links import move_marks
from callboard.surfaces.documents.excel._sheet import position_of
from callboard.surfaces.documents.excel._sheet_controls import SheetRange, column_of
from callboard.surfaces.documents.excel._total_rows import DataRows, data_rows
from callboard.surfaces.documents.excel._written_types import numbers_as_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

MAX_CELLS = 200_000
"""The largest number of cells that a call moves."""


_AREAS = frozenset(f"the name _xlnm.{name}" for name in ("_FilterDatabase", "Print_Area"))
"""Names of ranges whose columns have no order."""


class SortKey(BaseModel):
    """A column to sort by."""

    model_config = ConfigDict(extra="forbid")

    column: Annotated[str, Field(description="The column's header, or its letter.")]
    descending: Annotated[bool, Field(description="Whether the largest comes first.")] = False


def sort_rows(file: ExcelFile, target: SheetRange, keys: list[SortKey], *, header: bool) -> Answer:
    """Sort visible rows in Excel's order, and return the answer.

    Hidden rows stay where they are, as in Excel. The order is numbers and dates, texts (case-insensitively, see
    `order_of`), false, true, errors, empty cells. The sort is stable. Formulas move as in Excel: relative references
    move with their row. Notes, links, heights, validations, conditional formats, pictures and shapes follow.

    Raises:
        ToolError: If a column is missing, the range has merged cells or leaves out columns of its table, or a formula
            to sort by was never computed.
    """
    sheet, cells = target.sheet, target.need()
    check_movable(sheet, cells)
    if header:
        _check_columns(sheet, cells)
    columns = [(column_of(sheet, cells, key.column, header=header), key.descending) for key in keys]
    first = cells.min_row + header
    data = data_rows(sheet, cells, header=header)  # totals stay at the end
    _check_totals(cells, data)
    hidden = {*hidden_rows(sheet, cells)}
    slots = [row for row in data.rows if row not in hidden]
    rows = [*slots]
    for column, _ in columns if rows else ():
        fill_results(file, sheet, CellRange(None, column, first, column, cells.max_row))
    order = ""
    for column, descending in reversed(columns):
        rows, used = _sorted_by(sheet, rows, column, descending=descending)
        order = used or order
    new_rows = {old: new for new, old in zip(slots, rows, strict=True) if old != new}
    if new_rows:
        check_controls(sheet, cells)
    across = range(cells.min_col, cells.max_col + 1)
    _move(sheet, {(old, column): (new, column) for old, new in new_rows.items() for column in across})
    _move_filters(sheet, cells, {})
    move_row_looks(sheet, cells, new_rows)
    answer: Answer = {"sheet": sheet.title, "cells": cells.coord, "rows_sorted": len(rows)}
    answer |= {"order": order} if order else {}
    answer |= {"hidden_rows_sorted": 0} if hidden else {}
    if texts := numbers_as_text(sheet, slots, dict.fromkeys(column for column, _ in columns)):
        answer["sorted_as_texts"] = texts
    return answer | follow(sheet, cells, new_rows, "row")


def _check_totals(cells: CellRange, data: DataRows) -> None:
    """Refuse to sort totals among the rows that they total."""
    if data.totals:
        msg = (
            f"{cells.coord} has totals between its rows (row {row_spans(data.totals)}), which a sort would put among "
            "the wrong ones: sort the rows of one group with header false, or delete the totals first"
        )
        raise ToolError(msg)


def _sorted_by(sheet: Sheet, rows: list[int], column: int, *, descending: bool) -> tuple[list[int], str]:
    """Sort rows by a column; return them with the order's name."""
    texts = [str(value) for value, kind in (sheet.raw(row, column) for row in rows) if kind == "text"]
    key, order = order_of(texts)
    ranked = [(rank, row) for row in rows if (rank := rank_of(sheet, row, column, key)) is not None]
    full = {row for _, row in ranked}
    ranked.sort(key=lambda pair: pair[0], reverse=descending)
    return [row for _, row in ranked] + [row for row in rows if row not in full], order


def reorder(file: ExcelFile, target: SheetRange, order: list[str], *, header: bool) -> list[str]:
    """Reorder the columns of a range.

    Columns that are not named follow in their order.

    Returns:
        The columns' former letters, in the new order.

    Raises:
        ToolError: If a column is missing or named twice, the range has merged cells, or a formula, name or chart
            refers to a column that would move: the reference would then select another column.
    """
    sheet, cells = target.sheet, target.need()
    check_movable(sheet, cells)
    named_columns = [column_of(sheet, cells, name, header=header) for name in order]
    if len(set(named_columns)) < len(named_columns):
        msg = "a column is named twice"
        raise ToolError(msg)
    across = list(range(cells.min_col, cells.max_col + 1))
    new = named_columns + [column for column in across if column not in named_columns]
    moving_columns = [column for column, old in zip(across, new, strict=True) if column != old]
    if moving_columns:
        _check_references(file, sheet, cells, moving_columns)
        _reorder_tables(sheet, cells, new)
    new_columns = {old: column for column, old in zip(across, new, strict=True) if column != old}
    if new_columns:
        check_controls(sheet, cells)
    looks = {old: column_look(sheet, old) for old in new_columns}
    _check_hidden_columns(sheet, cells, new_columns)
    rows = range(cells.min_row, cells.max_row + 1)
    _move(sheet, {(row, old): (row, column) for old, column in new_columns.items() for row in rows})
    for old, column in new_columns.items():
        set_column_look(sheet, column, looks[old])
    _move_filters(sheet, cells, new_columns)
    is_last = not any(row > cells.max_row and column in across for row, column in sheet.filled())
    last = LAST_ROW if is_last else cells.max_row  # the rules of rows that are yet to be filled follow, too
    follow(sheet, CellRange(None, cells.min_col, cells.min_row, cells.max_col, last), new_columns, "col")
    return [get_column_letter(column) for column in new]


def check_size(cells: CellRange) -> None:
    """Refuse a range of more cells than a call moves.

    Raises:
        ToolError: If it is too large.
    """
    if cells.size["rows"] * cells.size["columns"] > MAX_CELLS:
        count = cells.size["rows"] * cells.size["columns"]
        msg = f"{cells.coord} has {count} cells, and at most {MAX_CELLS} are moved; name a smaller range"
        raise ToolError(msg)


def check_movable(sheet: Sheet, cells: CellRange) -> None:
    """Refuse a range whose cells can't be moved one by one.

    Raises:
        ToolError: If the range is too large, or has merged cells, array formulas or data tables.
    """
    check_size(cells)
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
        has_header = column > 0 and sheet.raw(cells.min_row, column)[1] == "text"
        return has_header and any(sheet.holds(row, column) for row in rows)

    block = CellRange(None, cells.min_col, cells.min_row, cells.max_col, cells.max_row)
    while goes_on(block.min_col - 1):
        block.expand(left=1)
    while goes_on(block.max_col + 1):
        block.expand(right=1)
    if block.coord != cells.coord and all(block.isdisjoint(table) for table in tables):
        msg = (
            f"{cells.coord} leaves out columns beside it, whose cells would stay in their rows: name {block.coord}, "
            "or only rows of data with header false"
        )
        raise ToolError(msg)


def rank_of(
    sheet: Sheet, row: int, column: int, key: Callable[[str], Any] = str.casefold
) -> tuple[int, float, Any] | None:
    """Return a cell's place in Excel's order; None for an empty one.

    Raises:
        ToolError: If it is a formula that was never computed.
    """
    value, kind = sheet.raw(row, column)
    if kind == "empty":
        need_result(sheet, row, column)
        return None
    if kind == "truth":
        return (2, float(value), ())
    number = as_number(value)
    if number is not None:
        return (0, number, ())
    return (3, 0.0, ()) if kind == "error" else (1, 0.0, key(str(value)))


def as_number(value: object) -> float | None:
    """Convert numbers, and times in days; None for other values."""
    day = dt.timedelta(days=1)
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1899, 12, 30)) / day  # noqa: DTZ001 - has no time zone
    if isinstance(value, dt.time):
        parts = {"hours": value.hour, "minutes": value.minute, "seconds": value.second}
        return dt.timedelta(**parts, microseconds=value.microsecond) / day
    return value / day if isinstance(value, dt.timedelta) else None


def _move(sheet: Sheet, new_positions: dict[tuple[int, int], tuple[int, int]]) -> None:
    """Move cells with formats, links and notes.

    The relative references of formulas move along.
    """
    if not new_positions:
        return
    sheet.edit()
    sheet.unshare()
    moved_cells = {new: sheet.cells[old] for old, new in new_positions.items() if old in sheet.cells}
    for cell in moved_cells.values():
        cell.getparent().remove(cell)
    for position in new_positions.values():
        sheet.cells.pop(position, None)
    for (row, column), cell in moved_cells.items():
        origin, new_reference = cell.get("r"), f"{get_column_letter(column)}{row}"
        formula = cell.find(q("f"))
        if formula is not None and formula.text:
            first = position_of(origin)
            text = translated(formula.text, row - first[0], column - first[1])
            if leaves_sheet(formula.text, text):
                msg = f"the formula of {origin} can't move to {new_reference}: its references would leave the sheet"
                raise ToolError(msg)
            formula.text = text
        cell.set("r", new_reference)
        sheet.put(row, column, cell)
    sheet.changed.update(new_positions.values())
    move_marks(sheet, lambda row, column: new_positions.get((row, column), (row, column)))
    sheet.file.formulas_moved = True


def _check_references(file: ExcelFile, sheet: Sheet, cells: CellRange, moving_columns: list[int]) -> None:
    moving_range = CellRange(
        min_col=min(moving_columns), max_col=max(moving_columns), min_row=cells.min_row, max_row=cells.max_row
    )
    for reference in all_formulas(file):
        areas = [area_of(text) for text in overlapping(reference, sheet.title, moving_range)]
        if reference.where in _AREAS and all(moving_range.issubset(area) for area in areas):
            continue
        for column in moving_columns:
            strip = CellRange(min_col=column, max_col=column, min_row=cells.min_row, max_row=cells.max_row)
            for text in overlapping(reference, sheet.title, strip):
                letter = get_column_letter(column)
                column_cells = {f"{sheet.title}!{letter}{row}" for row in range(cells.min_row, cells.max_row + 1)}
                is_within_column = all(end.rstrip("0123456789") == letter for end in text.rpartition("!")[2].split(":"))
                if reference.where in column_cells and is_within_column:
                    continue
                msg = f"{reference.where} refers to {text}, which would move; change it first, or leave column {letter}"
                raise ToolError(msg)


def _check_hidden_columns(sheet: Sheet, cells: CellRange, new_columns: dict[int, int]) -> None:
    """Refuse to hide or show cells above or below the range."""
    hidden = {*hidden_columns(sheet, cells)}
    changing_columns = {old for old, column in new_columns.items() if (old in hidden) != (column in hidden)}
    changing_columns |= {column for old, column in new_columns.items() if (old in hidden) != (column in hidden)}
    rows = range(cells.min_row, cells.max_row + 1)
    position = next(
        (position for position in sheet.filled() if position[1] in changing_columns and position[0] not in rows), None
    )
    if position is not None:
        where = f"{get_column_letter(position[1])}{position[0]}"
        letters = column_spans(hidden & {*new_columns})
        msg = (
            f"column {letters} is hidden, and {where} outside of {cells.coord} would "
            "be hidden or shown with it; leave hidden columns where they are, or show them in Excel first"
        )
        raise ToolError(msg)


def _move_filters(sheet: Sheet, cells: CellRange, new_columns: dict[int, int]) -> None:
    """Let the criteria of filters follow their columns.

    The record of an earlier order no longer holds, and is removed.
    """
    roots = [(sheet.root, sheet.part), *((table.root, table.part) for table in tables_of(sheet))]
    for root, part in roots:
        auto_filter = root.find(q("autoFilter"))
        area = area_of(auto_filter.get("ref")) if auto_filter is not None else None
        if area is None or cells.isdisjoint(area):
            continue
        sheet.file.package.edit(part)
        criteria = auto_filter.findall(q("filterColumn"))
        for entry in criteria:
            column = area.min_col + int(entry.get("colId", "0"))
            entry.set("colId", str(new_columns.get(column, column) - area.min_col))
        criteria.sort(key=lambda entry: int(entry.get("colId")))
        auto_filter[: len(criteria)] = criteria
        for parent in (root, auto_filter):
            for old in parent.findall(q("sortState")):
                parent.remove(old)


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
