"""Conditional formats and validations of copied cells."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import local
from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._formula_text import translated
from callboard.surfaces.documents.excel._rule_ranges import ranges_of
from callboard.surfaces.documents.excel._set_validation import delete_validations
from callboard.surfaces.documents.excel._sheet import position_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._sheet_controls import SheetRange

_FORMULAS = frozenset({"formula", "formula1", "formula2"})
_LISTS = {"conditionalFormatting": "", "dataValidation": "dataValidations"}


def copy_rules(source: SheetRange, sheet: Sheet, area: CellRange) -> bool:
    """Copy the conditional formats and validations of a range to another.

    Validations there are replaced, as in Excel. Returns whether all were copied; those of Excel's extensions are not.

    Raises:
        ToolError: If a validation there would be cut.
    """
    cells = source.need()
    if sheet is source.sheet and not area.isdisjoint(cells):
        return not _rules(source.sheet, cells)
    down, right = area.min_row - cells.min_row, area.min_col - cells.min_col
    elements = _rules(source.sheet, cells)
    delete_validations(sheet, area)
    for element in elements:
        if local(element) not in _LISTS or element.getparent().tag == q("ext"):
            continue
        old = [area_of(reference) for reference in element.get("sqref", "").split()]
        new = [CellRange(None, *_moved(entry, cells, down, right)) for entry in old if not entry.isdisjoint(cells)]
        rule = copy.deepcopy(element)
        rule.set("sqref", " ".join(entry.coord for entry in new))
        for formula in [child for child in rule.iter() if local(child) in _FORMULAS and child.text]:
            formula.text = translated(formula.text, new[0].min_row - old[0].min_row, new[0].min_col - old[0].min_col)
        if local(rule) == "dataValidation":
            holder = sheet.element("dataValidations")
            holder.append(rule)
            holder.set("count", str(len(holder)))
        else:
            sheet.insert(rule, "conditionalFormatting")
    return all(local(element) in _LISTS for element in elements)


def marks_in(sheet: Sheet, cells: CellRange, *, rules: bool) -> Answer:
    """Count what a copy lacks: notes, links, and perhaps rules."""
    counts = {"notes": sum(1 for _ in _notes(sheet, cells)), "links": sum(1 for _ in _links(sheet, cells))}
    if rules:
        counts["conditional formats and validations"] = len(_rules(sheet, cells))
    lacking = {name: count for name, count in counts.items() if count}
    return {"not_copied": dict(lacking)} if lacking else {}


def _rules(sheet: Sheet, cells: CellRange) -> list[Element]:
    """List the elements of rules that hold for cells of a range."""
    return [
        element
        for element in sheet.root.iter("{*}conditionalFormatting", "{*}dataValidation")
        if any(not area_of(reference).isdisjoint(cells) for reference in ranges_of(element).split())
    ]


def _moved(area: CellRange, cells: CellRange, down: int, right: int) -> tuple[int, int, int, int]:
    """Move the part of an area that lies in a range."""
    left, top = max(area.min_col, cells.min_col), max(area.min_row, cells.min_row)
    last_column, last_row = min(area.max_col, cells.max_col), min(area.max_row, cells.max_row)
    return left + right, top + down, last_column + right, last_row + down


def _notes(sheet: Sheet, cells: CellRange) -> Iterator[Element]:
    package = sheet.file.package
    for part in package.related(sheet.part, "comments"):
        for note in package.tree(part).iter(q("comment")):
            row, column = position_of(note.get("ref"))
            if not CellRange(None, column, row, column, row).isdisjoint(cells):
                yield note


def _links(sheet: Sheet, cells: CellRange) -> Iterator[Element]:
    for link in sheet.root.iterfind(f"{q('hyperlinks')}/{q('hyperlink')}"):
        if link.get("ref") and not area_of(link.get("ref")).isdisjoint(cells):
            yield link
