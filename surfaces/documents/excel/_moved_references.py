"""References follow moved rows and columns: formulas, names, charts and rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._cell_references import all_formulas, areas, rewritten, words
from callboard.surfaces.documents.excel._formula_text import leaves_sheet
from callboard.surfaces.documents.excel._named_tables import tables_of

if TYPE_CHECKING:
    from callboard.surfaces.documents.excel._shift import Shift
    from callboard.surfaces.documents.excel._workbook import ExcelFile

BY_POSITION = frozenset({"ROW", "ROWS", "COLUMN", "COLUMNS", "CELL", "ADDRESS", "OFFSET", "INDIRECT", "AREAS"})
"""Functions whose result depends on where cells stand, not only on their values."""


def move_references(file: ExcelFile, change: Shift) -> None:
    """Rewrite all references to moved rows or columns.

    They stand in cells, rules, names, tables, charts, text boxes, form controls and pivot tables (`all_formulas`).
    Cells whose formula may have another result are noted in `file.outdated`, and what read deleted cells in
    `file.lost_references`.
    """
    title = change.sheet.title.casefold()
    resized_names = _resized_names(file, change)
    for reference in list(all_formulas(file)):
        formula_sheet = reference.sheet.casefold()

        def new_reference(sheet: str, cells: str, formula_sheet: str = formula_sheet) -> str | None:
            if (sheet.casefold() or formula_sheet) != title:
                return None
            new = change.reference(cells)
            return None if new == cells else new

        text = rewritten(reference.formula, new_reference)
        if text != reference.formula:
            reference.write(text)
            if leaves_sheet(reference.formula, text):
                file.lost_references.append(reference)
        if reference.cell is not None and _is_outdated(change, reference.formula, formula_sheet, resized_names):
            file.outdated.append(reference.cell)


def _resized_names(file: ExcelFile, change: Shift) -> set[str]:
    """Find the names and tables that grow or shrink, in capitals."""
    resized_names = {table.name.upper() for table in tables_of(change.sheet) if change.resizes(table.cells)}
    names = [(name.upper(), element.text or "") for name, _, element in file.names()]
    count = -1
    while count != len(resized_names):  # a name may stand for other names
        count = len(resized_names)
        resized_names |= {name for name, text in names if _is_outdated(change, text, "", resized_names)}
    return resized_names


def _is_outdated(change: Shift, formula: str, formula_sheet: str, resized_names: set[str]) -> bool:
    """Return whether a formula may come to something else after a shift."""
    if any(word.upper() in BY_POSITION or word.upper() in resized_names for word in words(formula)):
        return True
    title = change.sheet.title.casefold()
    return any(
        (sheet.casefold() or formula_sheet) == title and change.resizes(area_of(cells))
        for sheet, cells in areas(formula)
    )
