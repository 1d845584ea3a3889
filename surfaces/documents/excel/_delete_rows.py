"""Rows deleted that meet conditions, or that repeat others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents.excel._formula_results import fill_results
from callboard.surfaces.documents.excel._hidden_rows import hidden_rows, row_spans
from callboard.surfaces.documents.excel._insert_delete import shift
from callboard.surfaces.documents.excel._sheet import where_of
from callboard.surfaces.documents.excel._sheet_controls import column_of
from callboard.surfaces.documents.excel._shift import Deletion
from callboard.surfaces.documents.excel._sort_reorder import rank_of
from callboard.surfaces.documents.excel._summaries import Condition, matching, texts_compared
from callboard.surfaces.documents.excel._total_rows import data_rows

if TYPE_CHECKING:
    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._sheet_controls import SheetRange
    from callboard.surfaces.documents.excel._workbook import ExcelFile

ALL_COLUMNS = "*"


def delete_rows(
    file: ExcelFile,
    target: SheetRange,
    where: list[Condition],
    duplicates_in: list[str],
    *,
    header: bool,
    whole_rows: bool,
) -> Answer:
    """Delete the rows of a range that meet conditions and repeat others.

    Returns the answer. Totals are no such rows. Without conditions all rows meet them.

    Raises:
        ToolError: If no row is deleted, other cells stand in one, or something can't follow.
    """
    sheet, cells = target.sheet, target.need()
    data = data_rows(sheet, cells, header=header)
    rows = matching(file, target, data.rows, where, header=header)
    if duplicates_in:
        rows = _repeated(file, target, rows, duplicates_in, header=header)
    if not rows:
        msg = f"no row of {cells.coord} {'repeats another' if duplicates_in else 'meets the conditions'}"
        raise ToolError(msg)
    if whole_rows:
        _check_beside(sheet, cells, rows)
    answer: Answer = {"sheet": sheet.title, "deleted": len(rows), "rows_deleted": row_spans(rows)}
    answer |= {"rows_kept": len(data.rows) - len(rows)} | data.named(sheet, cells)
    answer |= texts_compared(target, data.rows, where, header=header)
    if hidden := {*hidden_rows(sheet, cells)} & {*rows}:
        answer["hidden_rows_deleted"] = row_spans(hidden)
    shift(file, Deletion.of(sheet, rows, None if whole_rows else (cells.min_col, cells.max_col)))
    used = sheet.used()
    return answer | {"used": used.coord if used else None}


def _repeated(file: ExcelFile, target: SheetRange, rows: list[int], columns: list[str], *, header: bool) -> list[int]:
    """List the rows that repeat one above, in any capitals."""
    sheet, cells = target.sheet, target.need()
    numbers = range(cells.min_col, cells.max_col + 1)
    if columns != [ALL_COLUMNS]:
        numbers = [column_of(sheet, cells, name, header=header) for name in columns]  # type: ignore[assignment]
    for column in numbers:
        fill_results(file, sheet, CellRange(None, column, cells.min_row, column, cells.max_row))
    known_keys = set()
    repeated_rows = []
    for row in rows:
        key = tuple(rank_of(sheet, row, column) for column in numbers)
        if key in known_keys:
            repeated_rows.append(row)
        known_keys.add(key)
    return repeated_rows


def _check_beside(sheet: Sheet, cells: CellRange, rows: list[int]) -> None:
    """Refuse to delete cells beside a range with its rows."""
    deleted, columns = {*rows}, range(cells.min_col, cells.max_col + 1)
    beside = next((where for where in sheet.filled() if where[0] in deleted and where[1] not in columns), None)
    if beside is not None:
        msg = (
            f"{where_of(*beside)} beside {cells.coord} would be deleted with its row: set whole_rows to false to "
            "delete the cells of the range alone, or name a range with it"
        )
        raise ToolError(msg)
