"""Filters set and cleared: rows that do not meet conditions are hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lxml import etree
from openpyxl.utils import absolute_coordinate
from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents.excel._cell_elements import OPERATORS, area_of
from callboard.surfaces.documents.excel._cell_references import functions, quoted_title
from callboard.surfaces.documents.excel._cell_values import Date
from callboard.surfaces.documents.excel._condition_formulas import number_text, without_wildcards
from callboard.surfaces.documents.excel._hidden_rows import hidden_rows
from callboard.surfaces.documents.excel._named_tables import Table, tables_of
from callboard.surfaces.documents.excel._reduced_workbook import FILTER_NAME
from callboard.surfaces.documents.excel._sheet_controls import SheetRange, column_of
from callboard.surfaces.documents.excel._summaries import Condition, matching, texts_compared
from callboard.surfaces.documents.excel._total_rows import last_data_row, totals_of

if TYPE_CHECKING:
    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_OF_VISIBLE = frozenset({"SUBTOTAL", "AGGREGATE"})
"""Functions that leave out rows hidden by a filter."""
_MOST_TESTS = 2


def set_filter(file: ExcelFile, target: SheetRange, where: list[Condition]) -> Answer:
    """Hide the rows of a range that do not meet conditions.

    This is Excel's filter. Without conditions it is cleared, and its rows are shown. Totals at the end stay visible.

    Raises:
        ToolError: If another range of the sheet has a filter, or a filter can't hold the conditions.
    """
    sheet, cells = target.sheet, target.need()
    table = next((entry for entry in tables_of(sheet) if entry.cells.coord == cells.coord), None)
    cells = _filtered_range(sheet, cells, table)
    rows = [*range(cells.min_row + 1, cells.max_row + 1)]
    target = SheetRange(sheet, cells)
    visible_rows = {*matching(file, target, rows, where, header=True)} if where else {*rows}
    _write_criteria(sheet, cells, table, where)
    hidden = {*hidden_rows(sheet, cells)}
    for row in rows:
        if (row in visible_rows) == (row in hidden):
            _show(sheet, row, visible=row in visible_rows)
    if table is None:
        _mark_sheet(file, sheet, cells, active=bool(where))
    sheet.reshaped = True
    file.outdated += [
        cell
        for worksheet in file.worksheets
        for position, cell in worksheet.formula_cells()
        if _OF_VISIBLE & {*functions(worksheet.formula(*position))}
    ]
    answer: Answer = {"sheet": sheet.title, "cells": cells.coord, "rows_shown": len(visible_rows)}
    return answer | {"rows_hidden": len(rows) - len(visible_rows)} | texts_compared(target, rows, where, header=True)


def _filtered_range(sheet: Sheet, cells: CellRange, table: Table | None) -> CellRange:
    """Return the header and the rows of data that a filter covers."""
    if table is not None:
        last = cells.max_row - table.totals
    else:
        existing = sheet.root.find(q("autoFilter"))
        if existing is not None and area_of(existing.get("ref")).isdisjoint(cells):
            msg = (
                f"{existing.get('ref')} on {sheet.title!r} has a filter, and a sheet has one: clear it first, by "
                "filter_rows of these cells without conditions"
            )
            raise ToolError(msg)
        if existing is not None:
            return area_of(existing.get("ref"))
        last = cells.max_row - totals_of(sheet, cells)
        last = max(last_data_row(sheet, cells, header=True), min(last, cells.max_row))
    return CellRange(None, cells.min_col, cells.min_row, cells.max_col, last)


def _write_criteria(sheet: Sheet, cells: CellRange, table: Table | None, where: list[Condition]) -> None:
    root = sheet.edit() if table is None else table.edit()
    element = root.find(q("autoFilter"))
    if element is None:
        element = etree.Element(q("autoFilter"))
        if table is None:
            sheet.insert(element, "autoFilter")
        else:
            root.insert(0, element)
    if table is None and not where:
        root.remove(element)
        return
    element.set("ref", cells.coord)
    for entry in element.findall(q("filterColumn")):
        element.remove(entry)
    by_column: dict[int, list[Condition]] = {}
    for condition in where:
        column = column_of(sheet, cells, condition.column, header=True)
        by_column.setdefault(column - cells.min_col, []).append(condition)
    for index, (offset, conditions) in enumerate(sorted(by_column.items())):
        entry = etree.Element(q("filterColumn"))
        entry.set("colId", str(offset))
        entry.append(_criterion(sheet, conditions))
        element.insert(index, entry)


def _criterion(sheet: Sheet, conditions: list[Condition]) -> Element:
    """Write the conditions of one column as Excel's filter."""
    are_empty = [
        condition.operator == "empty" or (condition.operator, condition.value) == ("=", "") for condition in conditions
    ]
    if are_empty == [True]:
        blanks = etree.Element(q("filters"))
        blanks.set("blank", "1")
        return blanks
    if len(conditions) > _MOST_TESTS or any(are_empty):
        msg = f"a filter has at most {_MOST_TESTS} conditions on {conditions[0].column!r}, and empty stands alone"
        raise ToolError(msg)
    tests = etree.Element(q("customFilters"))
    if len(conditions) > 1:
        tests.set("and", "1")
    for condition in conditions:
        test = etree.SubElement(tests, q("customFilter"))
        if condition.operator == "filled":
            test.set("operator", "notEqual")
            test.set("val", " ")
            continue
        if condition.operator in OPERATORS and condition.operator != "=":  # which is the default
            test.set("operator", OPERATORS[condition.operator])
        test.set("val", _value(sheet, condition))
    return tests


def _value(sheet: Sheet, condition: Condition) -> str:
    value = condition.value
    if isinstance(value, bool):
        return str(value).upper()
    number = number_text(sheet, value)
    if number and (isinstance(value, (int, float, Date)) or condition.operator in {"<", "<=", ">", ">="}):
        return number
    text = without_wildcards(str(value))
    return {"contains": f"*{text}*", "begins": f"{text}*", "ends": f"*{text}"}.get(condition.operator, text)


def _show(sheet: Sheet, row: int, *, visible: bool) -> None:
    line = sheet.make_row(row)
    line.attrib.pop("hidden", None)
    if not visible:
        line.set("hidden", "1")


def _mark_sheet(file: ExcelFile, sheet: Sheet, cells: CellRange, *, active: bool) -> None:
    """Keep the name and mark of a sheet with a filter."""
    properties = sheet.element("sheetPr") if active else sheet.root.find(q("sheetPr"))
    if properties is not None:
        properties.attrib.pop("filterMode", None)
    if active:
        properties.set("filterMode", "1")
    root = file.package.edit(file.part)
    names = root.find(q("definedNames"))
    for element in [element for name, scope, element in file.names() if name == FILTER_NAME and scope is sheet]:
        names.remove(element)
    if names is None and active:
        names = etree.Element(q("definedNames"))
        root.find(q("sheets")).addnext(names)
        links = root.find(q("externalReferences"))
        if links is not None:
            links.addnext(names)
    if active:
        entry = etree.SubElement(names, q("definedName"))
        for key, value in (("name", FILTER_NAME), ("localSheetId", str(file.sheets.index(sheet))), ("hidden", "1")):
            entry.set(key, value)
        entry.text = f"{quoted_title(sheet.title)}!{absolute_coordinate(cells.coord)}"
    elif names is not None and len(names) == 0:
        names.getparent().remove(names)
