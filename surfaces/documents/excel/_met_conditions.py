"""The cells that meet conditions, for formats and rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.surfaces.documents.excel._formula_results import fill_results
from callboard.surfaces.documents.excel._named_tables import blocks_of, header_of, tables_of
from callboard.surfaces.documents.excel._sheet_controls import SheetRange
from callboard.surfaces.documents.excel._summaries import Condition, check_dates, matching, value_test

if TYPE_CHECKING:
    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile


class CellCondition(Condition):
    """A condition on a cell, or on a column in its row."""

    column: Annotated[str, Field(description="A column's header or letter; empty for each cell itself.")] = ""


def cells_meeting(
    file: ExcelFile, sheet: Sheet, cells: CellRange, where: list[CellCondition], *, header: bool
) -> list[tuple[int, int]]:
    """List the cells of a range that meet all conditions.

    Columns are those of the table or block around the range, whose header meets none.

    Raises:
        ToolError: If a column is missing, or a value can't be compared so.
    """
    of_rows = [condition for condition in where if condition.column]
    of_cells = [condition for condition in where if not condition.column]
    table = table_around(sheet, cells, [condition.column for condition in of_rows])
    rows = [row for row in range(cells.min_row, cells.max_row + 1) if not (header and row == table.min_row)]
    rows = matching(file, SheetRange(sheet, table), rows, [*of_rows], header=header)
    columns = range(cells.min_col, cells.max_col + 1)
    if not of_cells:
        return [(row, column) for row in rows for column in columns]
    fill_results(file, sheet, cells)
    for condition in of_cells:
        for column in columns:
            check_dates(sheet, rows, column, condition)
    tests = [value_test(condition) for condition in of_cells]
    return [(row, column) for row in rows for column in columns if all(test(*sheet.raw(row, column)) for test in tests)]


def table_around(sheet: Sheet, cells: CellRange, columns: list[str]) -> CellRange:
    """Return the table or block around a range.

    It is the range itself if its first row has the headers.
    """
    headers = {text.casefold() for text in header_of(sheet, cells)}
    if columns and all(column.casefold() in headers for column in columns):
        return cells
    areas = [*(table.cells for table in tables_of(sheet)), *blocks_of(sheet)]
    return next((area for area in areas if cells.issubset(area)), cells)
