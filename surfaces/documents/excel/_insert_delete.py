"""Inserting and deleting rows and columns: everything that refers to cells follows."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from lxml import etree
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import local
from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._cell_references import all_formulas, areas
from callboard.surfaces.documents.excel._formula_text import LAST_COLUMN
from callboard.surfaces.documents.excel._hidden_rows import hidden_rows, row_spans
from callboard.surfaces.documents.excel._moved_references import move_references
from callboard.surfaces.documents.excel._named_tables import tables_of
from callboard.surfaces.documents.excel._notes_and_links import merged_links, move_anchors, move_marks
from callboard.surfaces.documents.excel._pivot_tables import pivots_of
from callboard.surfaces.documents.excel._sheet import position_of
from callboard.surfaces.documents.excel._shift import Deletion
from callboard.surfaces.documents.excel._structured_references import refers_to_column

if TYPE_CHECKING:
    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.excel._named_tables import Table
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._shift import Axis, Shift
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_AREAS = frozenset({"conditionalFormatting", "dataValidation", "protectedRange", "ignoredError", "selection"})
_SINGLE = {"autoFilter": "ref", "sortState": "ref", "sortCondition": "ref", "inputCells": "r", "cellWatch": "r"}
_BREAKS: dict[str, Axis] = {"rowBreaks": "row", "colBreaks": "col"}
_KEPT_OF_ROW = ("s", "customFormat", "ht", "customHeight", "outlineLevel")


def shift(file: ExcelFile, change: Shift) -> None:
    """Insert or delete rows or columns.

    Raises:
        ToolError: If cells would be pushed off the sheet, or a table, an array formula or a pivot table is in the way.
    """
    _check(file, change)
    sheet = change.sheet
    sheet.unshare()
    move_references(file, change)
    for table in tables_of(sheet):
        _shift_table(change, table)
    move_marks(sheet, change.position)
    for link, cells in merged_links(sheet):
        _set_area(link, "ref", change.area(cells))
    _shift_cells(change)
    _shift_elements(change)

    if not _is_partial(change):
        move_anchors(sheet, change.axis, lambda number: change.landing(number + 1) - 1)
    for pivot in pivots_of(sheet):
        for location in file.package.edit(pivot.part).iter(q("location")):
            _set_area(location, "ref", change.area(area_of(location.get("ref"))))
    sheet.forget()
    sheet.reshaped = True
    file.formulas_moved = True
    for table in tables_of(sheet):
        cells = table.cells
        for number, name in enumerate(table.columns, start=cells.min_col):
            if table.has_header and not sheet.holds(cells.min_row, number):
                sheet.write(cells.min_row, number, name)


def _check(file: ExcelFile, change: Shift) -> None:
    sheet = change.sheet
    _check_room(change)
    for cells in sheet.arrays:
        if (cells.size["rows"] > 1 or cells.size["columns"] > 1) and change.resizes(cells):
            msg = f"{cells.coord} holds one array formula, which can't be cut; replace it first"
            raise ToolError(msg)
    for reference in all_formulas(file):
        if any(_in_span(file, title, sheet) for title, _ in areas(reference.formula)):
            msg = f"{reference.where} reads the same cells of several sheets, which can't follow; change it first"
            raise ToolError(msg)
    _check_parts(change)
    for pivot in pivots_of(sheet):
        if change.resizes(pivot.block):
            where = f"{pivot.name!r} in {pivot.block.coord}"
            msg = f"the pivot table {where} is in the way; change or delete it with edit_pivot"
            raise ToolError(msg)
    for table in tables_of(sheet):
        cells = table.cells
        if change.count < 0 and change.resizes(cells):
            _check_table(file, change, table, cells)


def _check_parts(change: Shift) -> None:
    """Refuse to move some columns of what belongs together."""
    if not isinstance(change, Deletion) or change.columns is None:
        return
    sheet = change.sheet
    filters = [element.get("ref") for element in sheet.root.iterfind(q("autoFilter"))]
    objects = {
        "the merged cells": sheet.merged,
        "the table in": [table.cells for table in tables_of(sheet)],
        "the filter of": [area_of(reference) for reference in filters if reference],
    }
    for name, areas_of_kind in objects.items():
        for cells in areas_of_kind:
            if change.cuts(cells):
                msg = f"{name} {cells.coord} would be cut, since only a part of its columns moves up"
                raise ToolError(msg)
    used = sheet.used()
    hidden = hidden_rows(sheet, CellRange(None, 1, change.at, 1, used.max_row)) if used else []
    if hidden:
        msg = f"rows {row_spans(hidden)} are hidden, and other cells would move into them; show them in Excel first"
        raise ToolError(msg)


def _is_partial(change: Shift) -> bool:
    """Return whether cells of some columns move, and not whole rows."""
    return isinstance(change, Deletion) and change.columns is not None


def _in_span(file: ExcelFile, span: str, sheet: Sheet) -> bool:
    """Return whether a span of sheets, like ``Jan:Dec``, has a sheet."""
    if ":" not in span:
        return False
    titles = [title.casefold() for title in file.titles]
    ends = [titles.index(title.casefold()) for title in span.split(":") if title.casefold() in titles]
    return len(ends) < 2 or min(ends) <= file.sheets.index(sheet) <= max(ends)


def _check_room(change: Shift) -> None:
    sheet, used = change.sheet, change.sheet.used()
    end = (used.max_row if change.axis == "row" else used.max_col) if used else 0
    if not (1 <= change.at <= change.last and change.at - change.count - 1 <= change.last) or (
        change.count > 0 and end >= change.at and end + change.count > change.last
    ):
        msg = f"the sheet {sheet.title!r} has no room for that: it ends at {change.last}"
        raise ToolError(msg)


def _check_table(file: ExcelFile, change: Shift, table: Table, cells: CellRange) -> None:
    if change.axis == "row":
        deleted = {row for row in range(cells.min_row, cells.max_row + 1) if change.index(row) is None}
        first = cells.min_row + table.has_header
        last = cells.max_row - table.totals
        covers_table = cells.min_row in deleted and cells.max_row in deleted
        remaining_rows = [row for row in range(first, last + 1) if row not in deleted]
        if (
            covers_table
            or not remaining_rows
            or any(row in deleted for row in (*range(cells.min_row, first), *range(last + 1, cells.max_row + 1)))
        ):
            msg = f"the table {table.name} in {cells.coord} must keep its header, its totals and a row; delete others"
            raise ToolError(msg)
        return
    deleted = {*range(change.at, change.at - change.count)}
    if all(column in deleted for column in range(cells.min_col, cells.max_col + 1)):
        msg = f"the table {table.name} in {cells.coord} must keep a column; delete its sheet, or other columns"
        raise ToolError(msg)
    names = [name for number, name in enumerate(table.columns, start=cells.min_col) if number in deleted]
    for reference in all_formulas(file):
        cell = reference.cell if reference.sheet == change.sheet.title else None
        is_deleted = cell is not None and position_of(cell.get("r"))[1] in deleted
        for name in names if not is_deleted else ():
            if "[" in reference.formula and refers_to_column(reference, table, name):
                msg = f"{reference.where} refers to the column {name!r} of the table {table.name}; change it first"
                raise ToolError(msg)


def _shift_table(change: Shift, table: Table) -> None:
    cells: CellRange = table.cells
    new = change.area(cells)
    if new is None or new.coord == cells.coord:
        return
    root = table.edit()
    root.set("ref", new.coord)
    auto_filter = root.find(q("autoFilter"))
    if auto_filter is not None:
        _shift_filter(change, auto_filter)
    if change.axis == "row" or new.size == cells.size:
        return
    columns = root.find(q("tableColumns"))
    elements = list(columns)
    if change.count < 0:
        for number, element in enumerate(elements, start=cells.min_col):
            if change.index(number) is None:
                columns.remove(element)
    else:
        used_names = {name.casefold() for name in table.columns}
        ids = max(int(element.get("id", "0")) for element in elements)
        candidates = (f"Column{number}" for number in range(1, LAST_COLUMN))
        for offset in range(change.count):
            name = next(candidate for candidate in candidates if candidate.casefold() not in used_names)
            column_element = etree.Element(q("tableColumn"))
            column_element.set("id", str(ids + offset + 1))
            column_element.set("name", name)
            columns.insert(change.at - cells.min_col + offset, column_element)
    columns.set("count", str(len(columns)))


def _shift_filter(change: Shift, element: Element) -> None:
    cells = area_of(element.get("ref"))
    new = change.area(cells)
    _set_area(element, "ref", new)
    if change.axis == "row" or new is None:
        return
    for criteria in element.findall(q("filterColumn")):
        number = change.index(cells.min_col + int(criteria.get("colId", "0")))
        if number is None:
            element.remove(criteria)
        else:
            criteria.set("colId", str(number - new.min_col))


def _shift_cells(change: Shift) -> None:
    pattern = _pattern(change)
    if isinstance(change, Deletion) and change.columns is not None:
        _shift_up(change)
    elif change.axis == "row":
        _shift_rows(change, pattern)
    else:
        _shift_within_rows(change, pattern)
    for formula in change.sheet.element("sheetData").iter(q("f")):
        if formula.get("ref"):
            _set_area(formula, "ref", change.area(area_of(formula.get("ref"))))
        for name in ("r1", "r2"):  # the input cells of a data table
            if formula.get(name):
                formula.set(name, change.reference(formula.get(name)))


def _shift_rows(change: Shift, pattern: int) -> None:
    sheet, data = change.sheet, change.sheet.element("sheetData")
    for number, line in list(sheet.rows.items()):
        new = change.index(number)
        if new is None or new > change.last:  # an empty row with a format, at the very end
            data.remove(line)
        elif new != number:
            line.set("r", str(new))
            for cell in line.iterchildren(q("c")):
                cell.set("r", f"{get_column_letter(position_of(cell.get('r'))[1])}{new}")
    rows_above = [line for line in data.iterchildren(q("row")) if int(line.get("r")) < change.at]
    index = data.index(rows_above[-1]) + 1 if rows_above else 0
    for number in range(max(change.count, 0)):
        row_element = _empty_row(sheet, pattern, change.at + number)
        if row_element is not None:
            data.insert(index, row_element)
            index += 1


def _shift_up(change: Deletion) -> None:
    """Move cells of some columns to the rows above."""
    sheet = change.sheet
    moving = {
        where: cell for where, cell in sheet.cells.items() if where[0] >= change.at and change.position(*where) != where
    }
    for where, cell in moving.items():
        cell.getparent().remove(cell)
        del sheet.cells[where]
    for (row, column), cell in sorted(moving.items(), key=lambda entry: entry[0]):
        new = change.index(row)
        if new is not None:
            cell.set("r", f"{get_column_letter(column)}{new}")
            sheet.put(new, column, cell)


def _shift_within_rows(change: Shift, pattern: int) -> None:
    sheet = change.sheet
    for (row, column), cell in list(sheet.cells.items()):
        new = change.index(column)
        if new is None or new > change.last:
            cell.getparent().remove(cell)
        elif new != column:
            cell.set("r", f"{get_column_letter(new)}{row}")
    for row, line in sheet.rows.items():
        line.attrib.pop("spans", None)
        model = sheet.cells.get((row, pattern)) if change.count > 0 else None
        if model is None or not model.get("s"):
            continue
        at = sum(1 for cell in line.iterchildren(q("c")) if position_of(cell.get("r"))[1] < change.at)
        for number in range(change.count):
            new_cell = etree.Element(q("c"))
            new_cell.set("r", f"{get_column_letter(change.at + number)}{row}")
            new_cell.set("s", model.get("s"))
            line.insert(at + number, new_cell)


def _pattern(change: Shift) -> int:
    """Choose the row or column whose formats new ones take.

    It is the one before, except for a header.
    """
    used = change.sheet.used()
    if used is None:
        return change.at
    first = used.min_row if change.axis == "row" else used.min_col
    starts = {table.cells.min_row for table in tables_of(change.sheet)} if change.axis == "row" else set()
    previous = change.at - 1
    return previous if previous > first and previous not in starts else change.at


def _empty_row(sheet: Sheet, pattern: int, number: int) -> Element | None:
    """Make an empty row formatted like another one, if that has formats."""
    model = sheet.rows.get(pattern)
    if model is None:
        return None
    row_element = etree.Element(q("row"))
    row_element.set("r", str(number))
    for name in _KEPT_OF_ROW:
        if model.get(name):
            row_element.set(name, model.get(name))
    for cell in model.iterchildren(q("c")):
        if cell.get("s"):
            new_cell = etree.SubElement(row_element, q("c"))
            new_cell.set("r", f"{get_column_letter(position_of(cell.get('r'))[1])}{number}")
            new_cell.set("s", cell.get("s"))
    return row_element if len(row_element) or len(row_element.attrib) > 1 else None


def _shift_elements(change: Shift) -> None:
    """Shift the ranges of all other elements of the sheet."""
    root = change.sheet.edit()
    data = q("sheetData")
    for part in [child for child in root if child.tag != data and isinstance(child.tag, str)]:
        if local(part) == "cols" and change.axis == "col":
            _shift_columns(change, part)
        for element in [part, *part.iterdescendants()]:
            name = local(element)
            if (name in _AREAS and element.get("sqref")) or (name == "sqref" and element.text):
                _set_areas(change, element)
            elif name == "mergeCell":
                new = change.area(area_of(element.get("ref")))
                is_single_cell = new is not None and new.size == {"rows": 1, "columns": 1}
                _set_area(element, "ref", None if is_single_cell else new)
            elif name == "autoFilter":
                _shift_filter(change, element)
            elif name in _SINGLE and element.get(_SINGLE[name]):
                _set_area(element, _SINGLE[name], change.area(area_of(element.get(_SINGLE[name]))))
            elif name in _BREAKS and _BREAKS[name] == change.axis and not _is_partial(change):
                for page_break in element:
                    number = int(page_break.get("id", "0"))
                    page_break.set("id", str(change.index(number) or number))
        _tidy(part)


def _shift_columns(change: Shift, columns: Element) -> None:
    for element in list(columns):
        first, last = int(element.get("min", "1")), int(element.get("max", "1"))
        new = change.span(first, last)
        if new is None:
            columns.remove(element)
        elif change.count > 0 and first < change.at <= last and element.get("hidden"):  # new ones are seen
            right_element = copy.deepcopy(element)
            element.set("max", str(change.at - 1))
            right_element.set("min", str(change.at + change.count))
            right_element.set("max", str(new[1]))
            element.addnext(right_element)
        else:
            element.set("min", str(new[0]))
            element.set("max", str(new[1]))


def _set_area(element: Element, name: str, cells: CellRange | None) -> None:
    if cells is None:
        element.getparent().remove(element)
    else:
        element.set(name, cells.coord)


def _set_areas(change: Shift, element: Element) -> None:
    """Shift a list of ranges.

    An element whose ranges are all deleted is removed.
    """
    text = element.text if local(element) == "sqref" else element.get("sqref")
    new_areas = [cells for reference in text.split() for cells in change.areas(area_of(reference))]
    references = " ".join(cells.coord for cells in new_areas)
    if local(element) == "sqref":
        if references:
            element.text = references
        else:
            rule = element.getparent()
            rules = rule.getparent()
            rules.remove(rule)
            if rules.get("count") is not None:
                rules.set("count", str(len(rules)))
    elif references:
        element.set("sqref", references)
        if element.get("activeCell"):
            element.set("activeCell", references.split()[0].partition(":")[0])
            element.attrib.pop("activeCellId", None)
    elif local(element) == "selection":
        element.attrib.pop("activeCell", None)
        element.attrib.pop("activeCellId", None)
        element.attrib.pop("sqref")
    else:
        element.getparent().remove(element)


def _tidy(part: Element) -> None:
    """Write how many entries a list has, and remove an empty one."""
    if part.get("count") is not None:
        part.set("count", str(len(part)))
    if local(part) in {"mergeCells", "hyperlinks", "cols", "dataValidations", "protectedRanges"} and len(part) == 0:
        part.getparent().remove(part)
