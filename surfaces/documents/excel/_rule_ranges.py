"""The ranges for which conditional formats and validations hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._package import local
from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._formula_text import translated

if TYPE_CHECKING:
    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.excel._sheet import Sheet

_FORMULAS = frozenset({"formula", "formula1", "formula2", "f"})


def ranges_of(element: Element) -> str:
    """Return the ranges of a rule, also of Excel's extensions."""
    inner = next((child.text or "" for child in element if local(child) == "sqref"), "")
    return str(element.get("sqref") or inner)


def without(sheet: Sheet, element: Element, cells: CellRange) -> None:
    """Take cells from a rule; it is deleted if none are left.

    Raises:
        ToolError: If its relative references start from a cell that it would lose.
    """
    areas = [area_of(reference) for reference in ranges_of(element).split()]
    remaining = [part for area in areas for part in _outside(area, cells)]
    is_anchored = remaining and (areas[0].min_row, areas[0].min_col) == (remaining[0].min_row, remaining[0].min_col)
    if remaining and not is_anchored and _is_relative(element):
        msg = f"the rule of {ranges_of(element)} begins in {cells.coord}; name all of its cells"
        raise ToolError(msg)
    sheet.edit()
    inner = next((child for child in element if local(child) == "sqref"), None)
    text = " ".join(area.coord for area in remaining)
    if not text:
        element.getparent().remove(element)
    elif inner is not None:
        inner.text = text
    else:
        element.set("sqref", text)


def _is_relative(element: Element) -> bool:
    """Return whether a formula of a rule reads cells by their distance."""
    formulas = (child.text for child in element.iter() if local(child) in _FORMULAS and child.text)
    return any(translated(formula, 1, 1) != formula for formula in formulas)


def _outside(area: CellRange, cells: CellRange) -> list[CellRange]:
    """Return the parts of an area outside of a range."""
    if area.isdisjoint(cells):
        return [area]
    top, bottom = max(area.min_row, cells.min_row), min(area.max_row, cells.max_row)
    parts = [
        (area.min_col, area.min_row, area.max_col, top - 1),
        (area.min_col, top, cells.min_col - 1, bottom),
        (cells.max_col + 1, top, area.max_col, bottom),
        (area.min_col, bottom + 1, area.max_col, area.max_row),
    ]
    return [CellRange(None, *part) for part in parts if part[0] <= part[2] and part[1] <= part[3]]
