"""Cells of a sheet: reading and writing ranges, and making tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from openpyxl.utils import get_column_letter
from openpyxl.worksheet.cell_range import CellRange
from openpyxl.worksheet.table import Table, TableStyleInfo

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.documents._excel_controls import SheetRange, find, place, used_range
from callboard.actors.servers.documents._excel_file import (
    LAST_COLUMN,
    LAST_ROW,
    ExcelFile,
    Value,
    formula_text,
    is_date,
    is_formula,
    read_value,
    write_value,
)

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

    from callboard.actors.servers.documents._tables import Answer

_MAX_READ = 20_000
_MAX_WRITE = 100_000
_MAX_LISTED = 100
_TABLE_STYLE = "TableStyleMedium9"
_TABLE_NAME = re.compile(r"[^\W\d][\w.]{0,254}")
_CELL_NAME = re.compile(r"[A-Z]{1,3}[0-9]+|R[0-9]*C[0-9]*|[RC]", re.IGNORECASE)


def read_cells(file: ExcelFile, sheet: Worksheet, cells: CellRange) -> Answer:
    """Describe a range as JSON; see the tool ``read_range``."""
    across = range(cells.min_col, cells.max_col + 1)
    last = min(cells.max_row, cells.min_row + max(1, _MAX_READ // len(across)) - 1)
    formulas: Answer = {}
    dates: list[str] = []
    not_computed: list[str] = []
    values = []
    for row in range(cells.min_row, last + 1):
        line = []
        for column in across:
            cell = sheet.cell(row, column)
            value = read_value(cell)
            if is_formula(cell):
                value = file.result(sheet, row, column)
                formulas[cell.coordinate] = formula_text(cell)
                if value is None:
                    not_computed.append(cell.coordinate)
            elif is_date(cell):
                dates.append(cell.coordinate)
            line.append(value)
        values.append(line)
    shown = CellRange(min_col=cells.min_col, max_col=cells.max_col, min_row=cells.min_row, max_row=last)
    merged = [area.coord for area in sheet.merged_cells.ranges if not area.isdisjoint(shown)]
    return {
        "sheet": sheet.title,
        "cells": shown.coord,
        "values": list(values),
        "formulas": dict(list(formulas.items())[:_MAX_LISTED]),
        "not_computed": list(not_computed[:_MAX_LISTED]),
        "dates": list(dates[:_MAX_LISTED]),
        "merged": list(merged[:_MAX_LISTED]),
        "left_out": cells.max_row - last,
    }


def start_of(file: ExcelFile, sheet: str, cell: str, control_id: str, control_name: str) -> SheetRange:
    """Find the top left cell of a call that writes."""
    has_cells = control_id and find(file, control_id, control_name).kind in {"range", "table"}
    return place(file, sheet, cell or ("" if has_cells else "A1"), control_id, control_name)


def spread(found: SheetRange, rows: int, width: int) -> CellRange:
    """Return the range of rows that begin at a top left cell.

    Raises:
        ToolError: If the rows do not fit on the sheet, or are too many for one call.
    """
    corner = writable(found).cells
    top, left = (corner.min_row, corner.min_col) if corner else (1, 1)
    if top + rows - 1 > LAST_ROW or left + width - 1 > LAST_COLUMN:
        msg = f"{rows} rows and {width} columns from {get_column_letter(left)}{top} do not fit on a sheet"
        raise ToolError(msg)
    return bounded(CellRange(min_col=left, min_row=top, max_col=left + width - 1, max_row=top + rows - 1))


def bounded(cells: CellRange) -> CellRange:
    """Refuse a range that is too large for one call.

    Raises:
        ToolError: If the range has too many cells.
    """
    if cells.size["rows"] * cells.size["columns"] > _MAX_WRITE:
        msg = f"{cells.coord} has more than {_MAX_WRITE} cells; split the call"
        raise ToolError(msg)
    return cells


def writable(found: SheetRange) -> SheetRange:
    """Refuse a place on a protected sheet.

    Raises:
        ToolError: If the sheet is protected.
    """
    if found.sheet.protection.sheet:
        msg = f"the sheet {found.sheet.title!r} is protected; unprotect it in Excel first"
        raise ToolError(msg)
    return found


def write_cells(sheet: Worksheet, cells: CellRange, values: list[list[Value]]) -> None:
    """Write rows of values into a range of their size."""
    for row, line in enumerate(values, start=cells.min_row):
        for column, value in enumerate(line, start=cells.min_col):
            write_value(sheet.cell(row, column), value)


def check_empty(sheet: Worksheet, cells: CellRange) -> None:
    """Refuse a range that is not empty.

    Raises:
        ToolError: If the range has values, merged cells or a table.
    """
    taken = [cell.coordinate for row in sheet[cells.coord] for cell in row if cell.value is not None]
    taken += [area.coord for area in sheet.merged_cells.ranges if not area.isdisjoint(cells)]
    taken += [table.ref for table in sheet.tables.values() if not cells.isdisjoint(CellRange(table.ref))]
    if taken:
        some = ", ".join(taken[:3])
        used = used_range(sheet)
        free = "" if used is None else f" (the next free row is {used.max_row + 1})"
        msg = f"{cells.coord} is not empty ({some}); choose empty cells{free}, or use write_range"
        raise ToolError(msg)


def make_table(file: ExcelFile, sheet: Worksheet, cells: CellRange, header: list[str], name: str) -> str:
    """Make an Excel table of a range, and return its name.

    Raises:
        ToolError: If the name or a header is not valid for a table, or there are no rows.
    """
    names = {title.casefold() for other in file.book.worksheets for title in other.tables}
    names |= {title.casefold() for title in file.book.defined_names}
    if not name:
        name = next(f"Table{n}" for n in range(1, len(names) + 2) if f"table{n}" not in names)
    name = "_".join(name.split())  # names have no spaces; the answer has the name in use
    if not _TABLE_NAME.fullmatch(name) or _CELL_NAME.fullmatch(name) or name.casefold() in names:
        msg = f"{name!r} can't name a table: letters, digits, _ and . only, not like a cell, and not taken yet"
        raise ToolError(msg)
    if any(not text.strip() for text in header) or len({text.casefold() for text in header}) < len(header):
        msg = "the headers of a table must be unique and not empty"
        raise ToolError(msg)
    if cells.size["rows"] == 1:
        msg = "a table needs at least one row"
        raise ToolError(msg)
    made = Table(displayName=name, ref=cells.coord)
    made.tableStyleInfo = TableStyleInfo(name=_TABLE_STYLE, showRowStripes=True)
    sheet.add_table(made)
    return name


def widen(sheet: Worksheet, cells: CellRange) -> None:
    """Widen columns to their longest text, up to 60 characters."""
    for column in range(cells.min_col, cells.max_col + 1):
        texts = [read_value(sheet.cell(row, column)) for row in range(cells.min_row, min(cells.max_row, 1000) + 1)]
        longest = max((len(str(text)) for text in texts if text is not None), default=0)
        dimension = sheet.column_dimensions[get_column_letter(column)]
        dimension.width = max(dimension.width, min(longest + 4, 60))
