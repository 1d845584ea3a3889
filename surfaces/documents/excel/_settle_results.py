"""The results of formulas after an edit: computed, else removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openpyxl.utils import get_column_letter
from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces.documents.excel._calculation import Calculation, Computed
from callboard.surfaces.documents.excel._formula_text import LAST_COLUMN, LAST_ROW
from callboard.surfaces.documents.excel._named_tables import tables_of
from callboard.surfaces.documents.excel._outdated_results import CellPosition, Formulas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_MOST_RESIZES = 3
"""A spill may read another one, and so on."""
_MAX_LISTED = 100


def settle(file: ExcelFile) -> None:
    """Update the results of formulas after an edit.

    Results that can't be computed are removed, and listed in the edit's answer. The program that opens the workbook
    next computes all of them again.
    """
    for _ in range(_MOST_RESIZES):
        formulas = Formulas.of(file)
        outdated_cells = _outdated(file, formulas)
        if not outdated_cells:
            return
        file.compute_on_load()
        sheets = {sheet.title.casefold(): sheet for sheet in file.worksheets}
        for title, row, column in outdated_cells:
            if (row, column) in sheets[title].cells:
                sheets[title].set_result(row, column, None)
        over_limit = file.is_streamed and file.used_cells > file.compute_cells
        results = Computed() if over_limit else Calculation(file, formulas, outdated_cells).run()
        if not _resize(sheets, results.sizes):
            break
    for (title, row, column), (value, error) in results.values.items():
        sheets[title].set_result(row, column, value, error=error)
    _list_missing(
        file, sheets, [cell for cell in outdated_cells if cell in formulas.texts and cell not in results.values]
    )


def _outdated(file: ExcelFile, formulas: Formulas) -> list[CellPosition]:
    """List the cells whose results an edit made outdated."""
    changed_cells: list[CellPosition] = [
        (sheet.title.casefold(), row, column) for sheet in file.worksheets for row, column in sheet.changed
    ]
    if not formulas.texts or not (changed_cells or file.outdated):
        return []
    element_ids = {id(cell) for cell in file.outdated}
    changed_formulas: list[CellPosition] = [
        (sheet.title.casefold(), row, column)
        for sheet in file.worksheets
        for (row, column), cell in (sheet.cells.items() if element_ids else ())
        if id(cell) in element_ids
    ]
    seeds = [*changed_cells, *changed_formulas, *formulas.volatile]
    outdated_cells = {seed: None for seed in seeds if seed in formulas.texts} | formulas.depending(seeds)
    spilled_cells = [cell for anchor in outdated_cells for cell in formulas.spilled(anchor)]
    return [*outdated_cells, *spilled_cells]


def _resize(sheets: Mapping[str, Sheet], sizes: Mapping[CellPosition, tuple[int, int]]) -> bool:
    """Let spills fill as many cells as their results have.

    Those without free cells stay without results. Returns whether one was resized.
    """
    resized = False
    for (title, row, column), (rows, columns) in sizes.items():
        sheet = sheets[title]
        old = sheet.array_at(row, column)
        if row + rows - 1 > LAST_ROW or column + columns - 1 > LAST_COLUMN:
            continue
        new = CellRange(None, column, row, column + columns - 1, row + rows - 1)
        if _is_free(sheet, old, new):
            sheet.resize_array(row, column, rows, columns)
            resized = True
    return resized


def _is_free(sheet: Sheet, old: CellRange, new: CellRange) -> bool:
    """Return whether a spill may fill cells, as in Excel."""
    obstacles = [area for area in sheet.arrays if area.coord != old.coord]
    obstacles += [*sheet.merged, *(table.cells for table in tables_of(sheet))]
    if any(not area.isdisjoint(new) for area in obstacles):
        return False
    rows, columns = range(new.min_row, new.max_row + 1), range(new.min_col, new.max_col + 1)
    filled_positions = (position for position in sheet.filled() if position[0] in rows and position[1] in columns)
    return all(
        old.min_row <= row <= old.max_row and old.min_col <= column <= old.max_col for row, column in filled_positions
    )


def _list_missing(file: ExcelFile, sheets: Mapping[str, Sheet], formulas: list[CellPosition]) -> None:
    """Name the formulas without a result in the edit's answer."""
    if file.answer is None or not formulas:
        return
    order = {title: number for number, title in enumerate(sheets)}
    formulas.sort(key=lambda cell: (order[cell[0]], *cell[1:]))
    names = [f"{sheets[title].title}!{get_column_letter(column)}{row}" for title, row, column in formulas]
    file.answer["not_computed"] = list(names[:_MAX_LISTED])
    if len(names) > _MAX_LISTED:
        file.answer["not_computed_left_out"] = len(names) - _MAX_LISTED
    if file.used_cells > file.compute_cells:
        file.answer["not_computed_because"] = (
            f"the workbook has {file.used_cells} filled cells, more than documents.compute_cells "
            f"({file.compute_cells}); Excel or LibreOffice computes it when it opens the file"
        )
