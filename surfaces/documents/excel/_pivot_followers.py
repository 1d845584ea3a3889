"""Edits of cells that a pivot table shows or reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import R_ID
from callboard.surfaces.documents.excel._cell_elements import area_of, is_within
from callboard.surfaces.documents.excel._named_tables import tables_of
from callboard.surfaces.documents.excel._pivot_tables import all_pivots, pivots_of
from callboard.surfaces.documents.excel._sheet import where_of

if TYPE_CHECKING:
    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents.excel._pivot_tables import PivotTable
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile


def check_pivots(file: ExcelFile) -> None:
    """Refuse an edit of cells that a pivot table shows.

    Raises:
        ToolError: If there are some: the next refresh would overwrite them.
    """
    for sheet in file.worksheets:
        own_areas = [area for title, area in file.pivots_written if title == sheet.title]
        for pivot in pivots_of(sheet) if sheet.changed else ():
            changed = [
                position
                for position in sheet.changed
                if any(is_within(area, *position) for area in pivot.areas)
                and not any(is_within(area, *position) for area in own_areas)
            ]
            if changed:
                msg = (
                    f"{where_of(*min(changed))} belongs to the pivot table {pivot.name!r} in {pivot.block.coord}; its "
                    "next refresh would overwrite it: change its source and use edit_pivot, or choose other cells"
                )
                raise ToolError(msg)


def say_pivots(file: ExcelFile) -> None:
    """Name in the answer the pivot tables whose source an edit changed."""
    if file.answer is None or not any(sheet.changed or sheet.reshaped for sheet in file.worksheets):
        return
    written = {(title, cells.coord) for title, cells in file.pivots_written}
    stale = [
        f"pivot-{number}"
        for number, pivot in enumerate(all_pivots(file), start=1)
        if (pivot.sheet.title, pivot.block.coord) not in written and _is_stale(file, pivot)
    ]
    if stale:
        file.answer["pivots_to_refresh"] = [*stale]


def _is_stale(file: ExcelFile, pivot: PivotTable) -> bool:
    source = _source(file, pivot)
    if source is None:
        return False
    sheet, cells = source
    return sheet.reshaped or any(is_within(cells, *position) for position in sheet.changed)


def _source(file: ExcelFile, pivot: PivotTable) -> tuple[Sheet, CellRange] | None:
    """Find the cells of the workbook that a pivot table reads."""
    cache = pivot.cache
    stored = cache.find(f"{q('cacheSource')}/{q('worksheetSource')}") if cache is not None else None
    if stored is None or stored.get(R_ID):
        return None
    name = stored.get("name", "").casefold()
    for sheet in file.worksheets:
        if stored.get("ref") and sheet.title.casefold() == stored.get("sheet", "").casefold():
            return sheet, area_of(stored.get("ref"))
        for table in tables_of(sheet) if name else ():
            if table.name.casefold() == name:
                return sheet, table.cells
    return None
