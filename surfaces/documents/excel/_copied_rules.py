"""Conditional formats and validations of copied cells."""

from __future__ import annotations

import copy
import uuid
from typing import TYPE_CHECKING

from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import local
from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._formula_text import translated
from callboard.surfaces.documents.excel._rule_ranges import ranges_of
from callboard.surfaces.documents.excel._set_validation import add_validation, delete_validations
from callboard.surfaces.documents.excel._sheet import position_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._sheet_controls import SheetRange

_FORMULAS = frozenset({"formula", "formula1", "formula2"})
_EXCEL_2010 = "http://schemas.microsoft.com/office/spreadsheetml/2009/9/main"
_PLAIN = frozenset({q("conditionalFormatting"), q("dataValidation")})
"""The rules that are copied; those of Excel's extensions have other namespaces."""


def copy_rules(source: SheetRange, sheet: Sheet, area: CellRange) -> int:
    """Copy the conditional formats and validations of a range to another.

    Validations there are replaced, as in Excel. Returns how many were not copied: those of Excel's extensions.

    Raises:
        ToolError: If a validation there would be cut.
    """
    cells = source.need()
    elements = rules_in(source.sheet, cells)
    if sheet is source.sheet and not area.isdisjoint(cells):
        return len(elements)
    down, right = area.min_row - cells.min_row, area.min_col - cells.min_col
    delete_validations(sheet, area)
    plain = [element for element in elements if element.tag in _PLAIN]
    for element in plain:
        areas = [area_of(reference) for reference in element.get("sqref", "").split()]
        new_areas = [entry.intersection(cells) for entry in areas if not entry.isdisjoint(cells)]  # type: ignore[no-untyped-call]
        for new_area in new_areas:
            new_area.shift(col_shift=right, row_shift=down)
        rule = copy.deepcopy(element)
        rule.set("sqref", " ".join(new_area.coord for new_area in new_areas))
        steps = new_areas[0].min_row - areas[0].min_row, new_areas[0].min_col - areas[0].min_col
        for formula in [child for child in rule.iter() if local(child) in _FORMULAS and child.text]:
            formula.text = translated(formula.text, *steps)
        if local(rule) == "dataValidation":
            add_validation(sheet, rule)
        else:
            _renew_ids(rule, sheet)
            sheet.insert(rule, "conditionalFormatting")
    return len(elements) - len(plain)


def _renew_ids(rule: Element, sheet: Sheet) -> None:
    """Give copied data bars of Excel 2010 ids of their own.

    An id links a bar to its further properties, which are not copied. The same copy gets the same ids.
    """
    for mark in rule.iter(f"{{{_EXCEL_2010}}}id"):
        code = uuid.uuid5(uuid.NAMESPACE_OID, f"{mark.text} {sheet.part} {rule.get('sqref')}")
        mark.text = f"{{{str(code).upper()}}}"


def marks_in(sheet: Sheet, cells: CellRange, rules: int) -> Answer:
    """Count what a copy lacks: notes, links, and a number of rules."""
    counts = {"notes": sum(1 for _ in _notes(sheet, cells)), "links": sum(1 for _ in _links(sheet, cells))}
    counts["conditional formats and validations"] = rules
    lacking = {name: count for name, count in counts.items() if count}
    return {"not_copied": dict(lacking)} if lacking else {}


def rules_in(sheet: Sheet, cells: CellRange) -> list[Element]:
    """List the elements of rules that hold for cells of a range."""
    return [
        element
        for element in sheet.root.iter("{*}conditionalFormatting", "{*}dataValidation")
        if any(not area_of(reference).isdisjoint(cells) for reference in ranges_of(element).split())
    ]


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
