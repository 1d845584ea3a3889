"""Cells copied to another place: values, formulas, formats."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Literal, TypeAlias

from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents.excel._cell_elements import FORMULA, VALUE
from callboard.surfaces.documents.excel._cell_formats import merge_cells, set_width, width_at
from callboard.surfaces.documents.excel._cell_ranges import bounded, check_arrays, positions_in, writable
from callboard.surfaces.documents.excel._copied_rules import copy_rules, marks_in, rules_in
from callboard.surfaces.documents.excel._formula_results import fill_results, need_result
from callboard.surfaces.documents.excel._formula_text import LAST_COLUMN, LAST_ROW, leaves_sheet, translated
from callboard.surfaces.documents.excel._hidden_rows import hidden_rows, row_spans
from callboard.surfaces.documents.excel._sheet import where_of
from callboard.surfaces.documents.excel._sheet_controls import SheetRange, destination, parse_cells
from callboard.surfaces.documents.excel._sheets import add_sheet, check_structure, check_title
from callboard.surfaces.documents.excel._validations import rules_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

Content: TypeAlias = Literal["all", "values", "formulas", "formats"]


def target_of(file: ExcelFile, source: SheetRange, to: str) -> SheetRange:
    """Find the cells that ``to`` names; a missing sheet is added.

    Raises:
        ToolError: If there is no such place, or its sheet is protected.
    """
    title, corner = destination(to)
    cells = parse_cells(corner or "A1")
    if not title:
        return writable(SheetRange(source.sheet, cells))
    if title.casefold() not in {sheet.title.casefold() for sheet in file.sheets}:
        check_title(file, title)
        check_structure(file)
        return SheetRange(add_sheet(file, title, None), cells)
    return writable(SheetRange(file.sheet(title), cells))


def sized(target: SheetRange, rows: int, columns: int, *, repeats: bool = True) -> CellRange:
    """Return the cells of some rows and columns from a corner on.

    With `repeats`, a target of several cells is filled with repetitions, as in Excel.

    Raises:
        ToolError: If they do not fit, are too many, or can't be replaced.
    """
    corner = target.need()
    height, width = corner.size["rows"], corner.size["columns"]
    if not repeats or height % rows or width % columns:
        height, width = rows, columns
    bottom, right = corner.min_row + height - 1, corner.min_col + width - 1
    if bottom > LAST_ROW or right > LAST_COLUMN:
        msg = f"{height} rows and {width} columns from {corner.coord.partition(':')[0]} do not fit on a sheet"
        raise ToolError(msg)
    cells = bounded(CellRange(None, corner.min_col, corner.min_row, right, bottom))
    check_arrays(target.sheet, cells)
    merged = next((area for area in target.sheet.merged if not area.isdisjoint(cells)), None)
    if merged is not None and cells.size != {"rows": 1, "columns": 1}:
        msg = f"{cells.coord} has the merged cells {merged.coord}; take them apart first, or choose other cells"
        raise ToolError(msg)
    return cells


def copy_cells(file: ExcelFile, source: SheetRange, target: SheetRange, content: Content, *, transpose: bool) -> Answer:
    """Copy the cells of a range, and return the answer.

    Relative references move as in Excel. A copy of everything has the merged cells, conditional formats and
    validations, too.

    Raises:
        ToolError: If an array formula or merged cells would be cut, or a reference would leave the sheet.
    """
    sheet, cells = source.sheet, bounded(source.need())
    _check_source(sheet, cells, content)
    if content == "values":
        fill_results(file, sheet, cells)
    originals = dict(_originals(sheet, cells, content))
    height, width = cells.size["rows"], cells.size["columns"]
    area = sized(target, *((width, height) if transpose else (height, width)))
    for row, column in positions_in(area):
        down, right = row - area.min_row, column - area.min_col
        down, right = (right, down) if transpose else (down, right)
        old = (cells.min_row + down % height, cells.min_col + right % width)
        if old in originals:
            _paste(target.sheet, (row, column), old, originals[old], content, transpose=transpose)
        elif content != "formats":
            target.sheet.write(row, column, None)
    answer: Answer = {"sheet": target.sheet.title, "cells": area.coord, "cells_copied": len(originals)}
    if content in {"all", "formats"}:
        _copy_merges(source, target.sheet, area, transpose=transpose)
    if content == "all":
        answer |= _copy_rules_and_widths(source, target.sheet, area, transpose=transpose)
    if hidden := hidden_rows(sheet, cells):
        answer["hidden_rows_copied"] = row_spans(hidden)
    return answer


def _copy_rules_and_widths(source: SheetRange, target: Sheet, area: CellRange, *, transpose: bool) -> Answer:
    """Copy rules and widths of columns; count marks that stay."""
    sheet, cells = source.sheet, source.need()
    if transpose or area.size != cells.size:
        return marks_in(sheet, cells, len(rules_in(sheet, cells)))
    missing_count = copy_rules(source, target, area)
    rules = rules_of(target)
    for where in positions_in(area) if rules else ():
        if any(rule.covers(*where) for rule in rules):  # which has taken the value before
            target.written[where] = target.raw(*where)
    used = target.used()
    if target is not sheet and used is not None and used.coord == area.coord:
        for column in range(area.min_col, area.max_col + 1):
            set_width(target, column, width_at(sheet, column - area.min_col + cells.min_col))
    return marks_in(sheet, cells, missing_count)


def _check_source(sheet: Sheet, cells: CellRange, content: Content) -> None:
    """Refuse to copy a part of what belongs together."""
    kinds = {"the array formula or data table": sheet.arrays} if content in {"all", "formulas"} else {}
    if content in {"all", "formats"}:
        kinds["the merged cells"] = sheet.merged
    for name, areas in kinds.items():
        for area in areas:
            if not area.isdisjoint(cells) and not area.issubset(cells):
                msg = f"{cells.coord} cuts {name} {area.coord}; name all of its cells, or copy values"
                raise ToolError(msg)


def _originals(sheet: Sheet, cells: CellRange, content: Content) -> Iterator[tuple[tuple[int, int], Element]]:
    """Yield copies of the elements of cells, each with its own formula."""
    for row, column in positions_in(cells):
        element = sheet.cells.get((row, column))
        style = sheet.style(row, column)
        if element is None and not style:
            continue
        if content == "values" and sheet.raw(row, column)[1] == "empty":
            need_result(sheet, row, column)
        original = copy.deepcopy(element) if element is not None else copy.deepcopy(sheet.make(row, column))
        original.set("s", str(style))
        formula = original.find(FORMULA)
        if formula is not None and formula.get("t") == "dataTable" and content != "values":
            msg = f"{where_of(row, column)} holds a data table, which can't be copied; copy values"
            raise ToolError(msg)
        if formula is not None and formula.get("t") == "shared":
            formula.text = sheet.formula(row, column)[1:]
            for name in ("t", "si", "ref"):
                formula.attrib.pop(name, None)
        yield (row, column), original


def _paste(
    sheet: Sheet, where: tuple[int, int], old: tuple[int, int], original: Element, content: Content, *, transpose: bool
) -> None:
    """Give a cell the content, the format or both of another one."""
    row, column = where
    keeps_format = content in {"values", "formulas"}
    style = sheet.style(row, column) if keeps_format else int(original.get("s"))
    if keeps_format and sheet.number_format(row, column) == "General":  # a date stays one
        style = sheet.file.styles.with_number_format(style, sheet.file.styles.number_format(int(original.get("s"))))
    if content != "formats":
        sheet.written.setdefault(where, sheet.raw(row, column))
        sheet.write(row, column, None)
    cell = sheet.make(row, column)
    if style or cell.get("s"):
        cell.set("s", str(style))
    if content == "formats":
        return
    for name in ("t", "cm") if content != "values" else ("t",):
        if original.get(name):
            cell.set(name, original.get(name))
    cell.extend(copy.deepcopy(child) for child in original if content != "values" or child.tag != FORMULA)
    formula = cell.find(FORMULA)
    if formula is not None:
        _move_formula(sheet, formula, where, old, transpose=transpose)
        for result in cell.findall(VALUE):
            cell.remove(result)
        cell.attrib.pop("t", None)
    sheet.changed.add(where)


def _move_formula(
    sheet: Sheet, formula: Element, where: tuple[int, int], old: tuple[int, int], *, transpose: bool
) -> None:
    down, right = where[0] - old[0], where[1] - old[1]
    text = translated(formula.text or "", down, right)
    if transpose and (text != formula.text or formula.get("ref")):
        msg = f"the formula of {where_of(*old)} reads cells by their distance; copy values, or write the formula again"
        raise ToolError(msg)
    if leaves_sheet(formula.text or "", text):
        msg = (
            f"the formula of {where_of(*old)} can't be copied to {where_of(*where)}: a reference would leave the sheet"
        )
        raise ToolError(msg)
    formula.text = text
    if formula.get("ref"):
        area = CellRange(formula.get("ref"))
        area.shift(col_shift=right, row_shift=down)
        formula.set("ref", area.coord)
        sheet.__dict__.pop("arrays", None)
    sheet.file.formulas_moved = True


def _copy_merges(source: SheetRange, sheet: Sheet, area: CellRange, *, transpose: bool) -> None:
    """Merge the cells of a copy like those of its original."""
    cells = source.need()
    height, width = cells.size["rows"], cells.size["columns"]
    steps = (width, height) if transpose else (height, width)
    for merged in [entry for entry in source.sheet.merged if entry.issubset(cells)]:
        down, right = merged.min_row - cells.min_row, merged.min_col - cells.min_col
        rows, columns = merged.size["rows"], merged.size["columns"]
        if transpose:
            down, right, rows, columns = right, down, columns, rows
        for top in range(area.min_row + down, area.max_row + 1, steps[0]):
            for left in range(area.min_col + right, area.max_col + 1, steps[1]):
                merge_cells(sheet, CellRange(None, left, top, left + columns - 1, top + rows - 1))
