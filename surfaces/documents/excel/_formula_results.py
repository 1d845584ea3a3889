"""The shown results of formulas: stored, else computed, else in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openpyxl.utils import get_column_letter

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents.excel._calculation import Calculation
from callboard.surfaces.documents.excel._cell_values import to_date, to_json
from callboard.surfaces.documents.excel._outdated_results import CellPosition, Formulas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openpyxl.worksheet.cell_range import CellRange
    from pydantic import JsonValue

    from callboard.surfaces.documents.excel._engines import Results
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile


def results_of(file: ExcelFile, sheet: Sheet, cells: CellRange) -> dict[tuple[int, int], JsonValue]:
    """Compute the formulas of a range that have no stored result."""
    results = _computed(file, sheet, cells)
    return {
        (row, column): _display_value(file, sheet, row, column, value)
        for (_, row, column), (value, _) in results.items()
    }


def fill_results(file: ExcelFile, sheet: Sheet, cells: CellRange) -> None:
    """Store computed results for the formulas of a range without one."""
    for (_, row, column), (value, error) in _computed(file, sheet, cells).items():
        sheet.set_result(row, column, value, error=error)


def need_result(sheet: Sheet, row: int, column: int) -> None:
    """Refuse an empty cell that is a formula.

    Raises:
        ToolError: If it was never computed.
    """
    if sheet.is_formula(row, column):
        where = f"{get_column_letter(column)}{row}"
        msg = f"{where} is a formula that was never computed; open and save the workbook in Excel first"
        raise ToolError(msg)


def _computed(file: ExcelFile, sheet: Sheet, cells: CellRange) -> Results:
    title = sheet.title.casefold()
    missing = [
        (title, row, column)
        for row, column in sheet.formulas_in(cells)
        if sheet.holds(row, column) and sheet.value(row, column) is None
    ]
    missing = [*dict.fromkeys([*missing, *_incomplete_arrays(sheet, title, cells)])]
    if missing and sheet.blocks is not None and file.used_cells > file.compute_cells:
        return {}
    return Calculation(file, Formulas.of(file), missing).run().values if missing else {}


def _incomplete_arrays(sheet: Sheet, title: str, cells: CellRange) -> Iterator[CellPosition]:
    """Yield the cells of array formulas that lack results.

    In workbooks with placeholders a 0 in such a cell is no result.
    """
    for area in sheet.arrays:
        anchor = (area.min_row, area.min_col)
        if not area.isdisjoint(cells) and not sheet.is_data_table(*anchor):
            positions = [position for row in area.rows for position in row]
            if any(sheet.raw(*position)[1] == "empty" for position in positions):
                yield from ((title, *position) for position in positions)


def _display_value(file: ExcelFile, sheet: Sheet, row: int, column: int, value: float | str | bool) -> JsonValue:  # noqa: FBT001 - a value
    style = sheet.style(row, column)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if file.styles.is_date(style):
            date = to_date(value, file.epoch, span=file.styles.is_span(style))
            return to_json(value if date is None else date, file.styles.number_format(style))
        return int(value) if value.is_integer() else value
    return value
