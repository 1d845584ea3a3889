"""Find and read ranges of cells, and check them before writing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openpyxl.utils import get_column_letter
from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents.excel._cell_formats import set_width, width_at
from callboard.surfaces.documents.excel._cell_values import NOT_COMPUTED
from callboard.surfaces.documents.excel._formula_results import results_of
from callboard.surfaces.documents.excel._formula_text import LAST_COLUMN, LAST_ROW
from callboard.surfaces.documents.excel._hidden_rows import hidden_in
from callboard.surfaces.documents.excel._named_tables import blocks_of, tables_of
from callboard.surfaces.documents.excel._pivot_tables import pivots_of
from callboard.surfaces.documents.excel._sheet_controls import SheetRange, find_range
from callboard.surfaces.documents.excel._validations import validations_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._cell_values import Value
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_MAX_READ = 20_000
_MAX_WRITE = 100_000
_MAX_LISTED = 100
_MOST_BLOCKS = 20


def positions_in(cells: CellRange) -> Iterator[tuple[int, int]]:
    """Yield the cells of a range, row by row."""
    for row in range(cells.min_row, cells.max_row + 1):
        for column in range(cells.min_col, cells.max_col + 1):
            yield row, column


def read_cells(file: ExcelFile, sheet: Sheet, cells: CellRange) -> Answer:
    """Describe a range as JSON; see the tool ``read_range``."""
    across = range(cells.min_col, cells.max_col + 1)
    last = min(cells.max_row, cells.min_row + max(1, _MAX_READ // len(across)) - 1)
    limited_range = CellRange(min_col=cells.min_col, max_col=cells.max_col, min_row=cells.min_row, max_row=last)
    formulas: Answer = {}
    dates: list[str] = []
    not_computed: list[str] = []
    values = []
    results = results_of(file, sheet, limited_range)
    for row in range(cells.min_row, last + 1):
        line = []
        for column in across:
            value = sheet.value(row, column)
            if sheet.is_formula(row, column):
                where = f"{get_column_letter(column)}{row}"
                formulas[where] = sheet.formula(row, column)
                value = results.get((row, column), value)
                if value is None:
                    not_computed.append(where)
                    value = NOT_COMPUTED
            elif value is None and sheet.is_within_array(row, column):
                value = results.get((row, column), NOT_COMPUTED)
            elif value is not None and sheet.raw(row, column)[1] == "date":
                dates.append(f"{get_column_letter(column)}{row}")
            line.append(value)
        values.append(line)
    merged = [area.coord for area in sheet.merged if not area.isdisjoint(limited_range)]
    return {
        "sheet": sheet.title,
        "cells": limited_range.coord,
        "values": list(values),
        "formulas": dict(list(formulas.items())[:_MAX_LISTED]),
        "not_computed": list(not_computed[:_MAX_LISTED]),
        "dates": list(dates[:_MAX_LISTED]),
        "merged": list(merged[:_MAX_LISTED]),
        "left_out": cells.max_row - last,
        **hidden_in(sheet, limited_range),
        **validations_of(sheet, limited_range),
    }


def start_of(file: ExcelFile, sheet: str, cell: str, control_id: str, control_name: str) -> SheetRange:
    """Find the top left cell of a call that writes."""
    has_cells = control_id.startswith(("range-", "table-"))
    return find_range(file, sheet, cell or ("" if has_cells else "A1"), control_id, control_name)


def table_range(
    file: ExcelFile, sheet: str, cells: str, control_id: str, control_name: str, *, header: bool
) -> SheetRange:
    """Find the cells of a call that treats them as one table.

    Raises:
        ToolError: If no cells or table are named, and the sheet has several blocks, or if the cells begin right below
            their header.
    """
    target = find_range(file, sheet, cells, control_id, control_name)
    if cells and header:
        _check_header(target.sheet, target.need())
    if not cells and not control_id.startswith("table-"):
        blocks = blocks_of(target.sheet)
        if len(blocks) > 1:
            raise several_blocks(target.sheet, blocks, "name the cells of one")
    return target


def _check_header(sheet: Sheet, cells: CellRange) -> None:
    """Refuse cells whose first row would wrongly count as the header."""
    columns, above = range(cells.min_col, cells.max_col + 1), cells.min_row - 1
    if all(sheet.raw(above, column)[1] == "text" for column in columns) and not all(
        sheet.holds(above - 1, column) for column in columns
    ):
        full_range = CellRange(None, cells.min_col, above, cells.max_col, cells.max_row)
        msg = (
            f"{cells.coord} begins below the header in row {above}: name {full_range.coord}, "
            "or only rows of data with header false"
        )
        raise ToolError(msg)


def several_blocks(sheet: Sheet, blocks: list[CellRange], advice: str) -> ToolError:
    """Build the error for a sheet that has several blocks."""
    listed = ", ".join(block.coord for block in blocks[:_MOST_BLOCKS]) + (", …" if len(blocks) > _MOST_BLOCKS else "")
    return ToolError(f"the sheet {sheet.title!r} has several blocks: {listed}; {advice}")


def spread(target: SheetRange, rows: int, width: int) -> CellRange:
    """Return the range of rows that begin at a top left cell.

    Raises:
        ToolError: If the rows do not fit on the sheet, or are too many for one call.
    """
    corner = target.cells
    top, left = (corner.min_row, corner.min_col) if corner else (1, 1)
    if top + rows - 1 > LAST_ROW or left + width - 1 > LAST_COLUMN:
        msg = f"{rows} rows and {width} columns from {get_column_letter(left)}{top} do not fit on a sheet"
        raise ToolError(msg)
    cells = bounded(CellRange(min_col=left, min_row=top, max_col=left + width - 1, max_row=top + rows - 1))
    check_arrays(target.sheet, cells)
    return cells


def bounded(*ranges: CellRange) -> CellRange:
    """Refuse ranges that are too large for one call; return the first.

    Raises:
        ToolError: If they have too many cells.
    """
    if sum(cells.size["rows"] * cells.size["columns"] for cells in ranges) > _MAX_WRITE:
        coords = ",".join(cells.coord for cells in ranges[:3]) + (",…" if len(ranges) > 3 else "")
        msg = f"{coords} has more than {_MAX_WRITE} cells; split the call"
        raise ToolError(msg)
    return ranges[0]


def writable(target: SheetRange) -> SheetRange:
    """Refuse a place on a protected sheet.

    Raises:
        ToolError: If the sheet is protected.
    """
    if target.sheet.protected:
        msg = f"the sheet {target.sheet.title!r} is protected; unprotect it in Excel first"
        raise ToolError(msg)
    return target


def check_arrays(sheet: Sheet, cells: CellRange) -> None:
    """Refuse to write into a part of an array formula.

    Raises:
        ToolError: If the range has some, but not all of its cells.
    """
    for array in sheet.arrays:
        if not cells.isdisjoint(array) and not array.issubset(cells):
            msg = f"{array.coord} holds one array formula; replace all of its cells, or none"
            raise ToolError(msg)


def write_cells(sheet: Sheet, cells: CellRange, values: list[list[Value]]) -> None:
    """Write rows of values into a range; short ones leave the rest."""
    for row, line in enumerate(values, start=cells.min_row):
        for column, value in enumerate(line, start=cells.min_col):
            sheet.write(row, column, value)


def check_empty(
    sheet: Sheet,
    cells: CellRange,
    advice: str = "",
    but: tuple[int, int] | None = None,
    but_part: str = "",
) -> None:
    """Refuse a range that is not empty.

    Args:
        sheet: The sheet.
        cells: The range.
        advice: The end of the error.
        but: A cell that may be filled.
        but_part: The part of a pivot table that may be there.

    Raises:
        ToolError: If the range has values, merged cells, a table or a pivot table.
    """
    conflicts = [
        f"{get_column_letter(column)}{row}" for row, column in filled_positions(sheet, cells) if (row, column) != but
    ]
    conflicts += [area.coord for area in sheet.merged if not area.isdisjoint(cells)]
    conflicts += [table.cells.coord for table in tables_of(sheet) if not cells.isdisjoint(table.cells)]
    pivots = [pivot for pivot in pivots_of(sheet) if pivot.part != but_part]
    conflicts += [area.coord for pivot in pivots for area in pivot.areas if not area.isdisjoint(cells)]
    if conflicts:
        some = ", ".join(conflicts[:3])
        used = sheet.used()
        free = "" if used is None else f" (the next free row is {used.max_row + 1})"
        msg = f"{cells.coord} is not empty ({some}); {advice or f'choose empty cells{free}, or use write_range'}"
        raise ToolError(msg)


def filled_positions(sheet: Sheet, cells: CellRange) -> list[tuple[int, int]]:
    """List the cells of a range that hold something, row by row."""
    if cells.size["rows"] * cells.size["columns"] < len(sheet.cells):
        return [position for position in positions_in(cells) if sheet.holds(*position)]
    bounds = range(cells.min_row, cells.max_row + 1), range(cells.min_col, cells.max_col + 1)
    return sorted(position for position in sheet.filled() if position[0] in bounds[0] and position[1] in bounds[1])


def widen(sheet: Sheet, cells: CellRange) -> None:
    """Widen columns to their longest text, up to 60 characters."""
    for column in range(cells.min_col, cells.max_col + 1):
        texts = [sheet.value(row, column) for row in range(cells.min_row, min(cells.max_row, 1000) + 1)]
        longest = max((len(str(text)) for text in texts if text is not None), default=0)
        set_width(sheet, column, max(width_at(sheet, column), min(longest + 4, 60)))
