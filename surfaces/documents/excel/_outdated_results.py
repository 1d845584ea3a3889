"""Find the formulas whose results an edit makes outdated."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from openpyxl.utils import quote_sheetname

from callboard.surfaces.documents._office import q
from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._cell_references import areas, bounds_of, words
from callboard.surfaces.documents.excel._named_tables import tables_of
from callboard.surfaces.documents.excel._sheet import where_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.excel._workbook import ExcelFile

CellPosition: TypeAlias = tuple[str, int, int]
"""A cell: the sheet's title in small letters, its row and column."""

VOLATILE = frozenset({"CELL", "INDIRECT", "INFO", "NOW", "OFFSET", "RAND", "RANDARRAY", "RANDBETWEEN", "TODAY"})
"""Functions whose result may change with any edit, or without one."""
_WIDE = 64


@dataclass
class Formulas:
    """All formulas of a workbook, by what they read."""

    texts: dict[CellPosition, str] = field(default_factory=dict)
    """The formulas, without ``=``."""
    volatile: list[CellPosition] = field(default_factory=list)
    """Those whose results may change with any edit."""
    _cells: dict[CellPosition, list[CellPosition]] = field(default_factory=lambda: defaultdict(list))
    _columns: dict[tuple[str, int], list[tuple[int, int, CellPosition]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _wide: dict[str, list[tuple[tuple[int, int, int, int], CellPosition]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _spilled: dict[CellPosition, CellRange] = field(default_factory=dict)

    @classmethod
    def of(cls, file: ExcelFile) -> Formulas:
        """Read the formulas of a workbook."""
        formulas = cls()
        meanings = _meanings(file)
        for sheet in file.worksheets:
            title = sheet.title.casefold()
            tables = [table.cells for table in tables_of(sheet)]
            for (row, column), cell in sheet.formula_cells():
                formula = cell.find(q("f"))
                text = formula.text or sheet.formula(row, column)[1:]
                formulas._add((title, row, column), text, meanings)
                for area in tables if "[" in text else ():  # [Column], without the name of its own table
                    if area.min_row <= row <= area.max_row and area.min_col <= column <= area.max_col:
                        formulas._add_range((title, row, column), title, bounds_of(area.coord))
                if formula.get("t") == "dataTable":
                    for text in _read_by_data_table(formula):
                        formulas._add_range((title, row, column), title, bounds_of(text))
                if formula.get("ref") and formula.get("t") in {"array", "dataTable"}:
                    formulas._spilled[title, row, column] = area_of(formula.get("ref"))
        return formulas

    def _add(
        self, cell: CellPosition, text: str, meanings: dict[str, str], visited_names: frozenset[str] = frozenset()
    ) -> None:
        self.texts.setdefault(cell, text)
        for sheet, cells in areas(text):
            if ":" in sheet:  # it reads several sheets
                self.volatile.append(cell)
            self._add_range(cell, sheet.casefold() or cell[0], bounds_of(cells))
        for word in {word.casefold() for word in words(text)} - visited_names:
            if word.upper() in VOLATILE:
                self.volatile.append(cell)
            if word in meanings:
                self._add(cell, meanings[word], meanings, visited_names | {word})

    def _add_range(self, reader: CellPosition, title: str, bounds: tuple[int, int, int, int]) -> None:
        top, left, bottom, right = bounds
        if right - left >= _WIDE:
            self._wide[title].append((bounds, reader))
        elif top == bottom:
            for column in range(left, right + 1):
                self._cells[title, top, column].append(reader)
        else:
            for column in range(left, right + 1):
                self._columns[title, column].append((top, bottom, reader))

    def depending(self, changed: Iterable[CellPosition]) -> dict[CellPosition, None]:
        """Find the formulas that read changed cells, directly or indirectly."""
        dependents: dict[CellPosition, None] = {}
        pending_cells = list(changed)
        while pending_cells:
            cell = pending_cells.pop()
            for reader in self._readers(cell):
                if reader not in dependents:
                    dependents[reader] = None
                    pending_cells.append(reader)
                    pending_cells.extend(self.spilled(reader))
        return dependents

    def spilled(self, anchor: CellPosition) -> Iterable[CellPosition]:
        """Yield the other cells that an array formula fills."""
        area = self._spilled.get(anchor)
        if area is None:
            return []
        cells = (
            (anchor[0], row, column)
            for row in range(area.min_row, area.max_row + 1)
            for column in range(area.min_col, area.max_col + 1)
        )
        return [cell for cell in cells if cell != anchor]

    def _readers(self, cell: CellPosition) -> Iterable[CellPosition]:
        title, row, column = cell
        yield from self._cells.get(cell, ())
        for first, last, reader in self._columns.get((title, column), ()):
            if first <= row <= last:
                yield reader
        for (top, left, bottom, right), reader in self._wide.get(title, ()):
            if top <= row <= bottom and left <= column <= right:
                yield reader


def _read_by_data_table(formula: Element) -> list[str]:
    """List the borders and inputs of a data table."""
    top, left, bottom, right = bounds_of(formula.get("ref"))
    above = f"{where_of(max(top - 1, 1), max(left - 1, 1))}:{where_of(max(top - 1, 1), right)}"
    beside = f"{where_of(top, max(left - 1, 1))}:{where_of(bottom, max(left - 1, 1))}"
    return [above, beside, *(formula.get(name) for name in ("r1", "r2") if formula.get(name))]


def _meanings(file: ExcelFile) -> dict[str, str]:
    """Return the cells of names and tables, as formulas.

    The keys are in small letters.
    """
    meanings: dict[str, str] = {}
    for name, local, element in file.names():
        text = element.text or ""
        if local is not None and "!" not in text:
            text = f"{quote_sheetname(local.title)}!{text}"
        # a name of one sheet may hide that of the workbook
        meanings[name.casefold()] = f"{meanings.get(name.casefold(), '0')},{text}"
    for sheet in file.worksheets:
        title = quote_sheetname(sheet.title)
        meanings.update({table.name.casefold(): f"{title}!{table.cells.coord}" for table in tables_of(sheet)})
    return meanings
