"""Rows appended and copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lxml import etree
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents.excel._cell_formats import hide_column, set_width, width_at
from callboard.surfaces.documents.excel._cell_ranges import check_empty, several_blocks, spread, writable, write_cells
from callboard.surfaces.documents.excel._extend import extend_readers, extend_rules, extend_totals
from callboard.surfaces.documents.excel._formula_results import fill_results, need_result
from callboard.surfaces.documents.excel._formula_text import LAST_ROW, translated
from callboard.surfaces.documents.excel._hidden_rows import column_spans, hidden_columns, hidden_rows
from callboard.surfaces.documents.excel._insert_delete import shift
from callboard.surfaces.documents.excel._named_tables import blocks_of, tables_of
from callboard.surfaces.documents.excel._sheet_controls import SheetRange, destination, find_range, parse_cells
from callboard.surfaces.documents.excel._sheets import add_sheet, check_structure, check_title
from callboard.surfaces.documents.excel._shift import Shift
from callboard.surfaces.documents.excel._total_rows import last_data_row, totals_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._cell_values import Value
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile


_SHOWN = 20
"""Maximum number of names in an answer."""


def append_target(file: ExcelFile, sheet: str, control_id: str, control_name: str) -> SheetRange:
    """Find the cells below which rows are appended.

    The sheet's only table is the target, else its only block. Single cells above and beside it, like a title, are no
    blocks.

    Raises:
        ToolError: If several tables or blocks could be the target.
    """
    target = find_range(file, sheet, "", control_id, control_name)
    if control_id.startswith("table-"):
        return target
    tables = tables_of(target.sheet)
    if len(tables) > 1:
        listed = ", ".join(f"{table.name} in {table.cells.coord}" for table in tables)
        msg = f"the sheet {target.sheet.title!r} has several tables: {listed}; give the control_id of one"
        raise ToolError(msg)
    if tables and not control_id.startswith("range-"):
        return SheetRange(target.sheet, tables[0].cells)
    blocks = blocks_of(target.sheet)
    large = [block for block in blocks if block.size != {"rows": 1, "columns": 1}]
    if len(large) == 1 and not any(
        block.min_row > large[0].max_row and large[0].min_col <= block.min_col <= large[0].max_col for block in blocks
    ):
        blocks = large
    if len(blocks) > 1:
        advice = "write the rows below one of them with write_range; insert rows first if it has totals"
        raise several_blocks(target.sheet, blocks, advice)
    return SheetRange(target.sheet, blocks[0] if blocks else None)


def append(file: ExcelFile, target: SheetRange, values: list[list[Value]]) -> Answer:
    """Add rows below a range's last one; totals stay below them.

    Raises:
        ToolError: If a row is longer than the table, or something stands below it.
    """
    sheet, cells = target.sheet, target.cells
    if cells is None:
        width = max(len(row) for row in values)
        cells = spread(target, len(values), width)
        write_cells(sheet, cells, values)
        return {"sheet": sheet.title, "cells": cells.coord, "rows_appended": len(values)}
    longest = max(len(row) for row in values)
    if longest > cells.size["columns"]:
        msg = f"a row has {longest} values, and {cells.coord} has {cells.size['columns']} columns"
        raise ToolError(msg)
    table = next((table for table in tables_of(sheet) if table.cells.coord == cells.coord), None)
    end = cells.max_row - totals_of(sheet, cells)
    last = _last_before(sheet, cells, values, header=table is None or table.has_header)
    more = max(0, len(values) - (end - last))  # rows that a template has not prefilled
    if cells.max_row + more > LAST_ROW:
        msg = f"{len(values)} rows do not fit below {cells.coord}"
        raise ToolError(msg)
    new = CellRange(None, cells.min_col, last + 1, cells.max_col, last + len(values))
    _check_formulas_stay(sheet, new, values[: len(values) - more])
    if more:
        _make_room(file, target, end, more)
    _write_values(sheet, new, values)
    if more and end > cells.min_row:
        _fill_formulas(sheet, cells, end, values[-more:])
    answer: Answer = {"sheet": sheet.title, "cells": new.coord, "rows_appended": len(values)}
    if typed := [*_typed_numbers(sheet, cells, range(end + more + 1, cells.max_row + more + 1))]:
        answer["totals_not_updated"] = typed[:_SHOWN]
    if more:
        if table is not None:
            table.resize(CellRange(None, cells.min_col, cells.min_row, cells.max_col, cells.max_row + more))
        extend_rules(sheet, cells, end, more)
        if readers := [*extend_readers(file, target, end, more, table)]:
            answer["not_extended"] = [*readers[:_SHOWN]]
    return answer


def _last_before(sheet: Sheet, cells: CellRange, values: list[list[Value]], *, header: bool) -> int:
    """Return the row below which values go.

    Rows that a template has numbered, or given the same values, are filled if these stay.
    """
    first = last_data_row(sheet, cells, header=header, defaults=True)
    for row, line in enumerate(values, start=first + 1):
        for column, value in enumerate(line, start=cells.min_col):
            old, kind = sheet.raw(row, column)
            is_default = kind != "empty" and not sheet.is_formula(row, column) and row <= cells.max_row
            if value is not None and is_default and not (kind == "number" and value == old):
                return last_data_row(sheet, cells, header=header)
    return first


def _make_room(file: ExcelFile, target: SheetRange, end: int, count: int) -> None:
    """Make rows below a range's last one, formatted like it.

    Raises:
        ToolError: If something stands there that is no total.
    """
    sheet, cells = target.sheet, target.need()
    is_table = any(table.cells.coord == cells.coord for table in tables_of(sheet))
    if is_table or cells.max_row > end:
        writable(target)
    if totals := cells.max_row - end:
        shift(file, Shift(sheet, "row", end + 1, count))
        extend_totals(sheet, cells, end, count, totals)
    else:
        free = CellRange(None, cells.min_col, end + 1, cells.max_col, end + count)
        check_empty(sheet, free, "insert rows first, or name the table that is meant")
    for row in range(end + 1, end + count + 1):
        _copy_looks(sheet, end, row, cells)


def _check_formulas_stay(sheet: Sheet, cells: CellRange, values: list[list[Value]]) -> None:
    """Refuse values in place of the formulas that a template has prefilled.

    Raises:
        ToolError: If there are some.
    """
    for row, line in enumerate(values, start=cells.min_row):
        for column, value in enumerate(line, start=cells.min_col):
            if value is not None and sheet.is_formula(row, column):
                where = f"{get_column_letter(column)}{row}"
                msg = f"{where} holds the formula {sheet.formula(row, column)} of a prefilled row; give null to keep it"
                raise ToolError(msg)


def _write_values(sheet: Sheet, cells: CellRange, values: list[list[Value]]) -> None:
    """Write rows of values; null leaves a cell as it is."""
    for row, line in enumerate(values, start=cells.min_row):
        for column, value in enumerate(line, start=cells.min_col):
            if value is not None:
                sheet.write(row, column, value)


def _typed_numbers(sheet: Sheet, cells: CellRange, rows: range) -> Iterator[JsonValue]:
    """Yield the cells of totals whose number no formula keeps right."""
    for row in rows:
        for column in range(cells.min_col, cells.max_col + 1):
            if sheet.raw(row, column)[1] == "number" and not sheet.is_formula(row, column):
                yield f"{get_column_letter(column)}{row}"


def copy_rows(file: ExcelFile, selection: SheetRange, rows: list[int], to: str, *, header: bool) -> Answer:
    """Copy rows of a range to an empty place.

    Formats and widths are copied too; formulas become their results.

    Raises:
        ToolError: If the place is not free, or a formula has no result.
    """
    source, cells = selection.sheet, selection.need()
    title, corner = destination(to)
    start = parse_cells(corner or "A1")
    concealed = hidden_columns(source, cells)
    if title and title.casefold() not in {sheet.title.casefold() for sheet in file.sheets}:
        check_title(file, title)
        check_structure(file)
        target = add_sheet(file, title, None)
    else:
        target = file.sheet(title) if title else source
    copied = [cells.min_row, *rows] if header else rows
    if not copied:
        msg = "no row meets the conditions"
        raise ToolError(msg)
    area = spread(writable(SheetRange(target, start)), len(copied), cells.size["columns"])
    check_empty(target, area, "choose a free place")
    fill_results(file, source, cells)
    for row, old in enumerate(copied, start=area.min_row):
        for offset in range(cells.size["columns"]):
            _copy_cell(source, (old, cells.min_col + offset), target, (row, area.min_col + offset))
    for offset in range(cells.size["columns"]) if target is not source else ():
        set_width(target, area.min_col + offset, width_at(source, cells.min_col + offset))
        if cells.min_col + offset in concealed:
            hide_column(target, area.min_col + offset)
    answer: Answer = {"sheet": target.title, "cells": area.coord, "rows_copied": len(rows)}
    if hidden := hidden_rows(source, cells):
        answer["hidden_rows_copied"] = len({*hidden} & {*rows})
    if concealed and target is source:
        answer["hidden_columns_copied"] = column_spans(concealed)
    return answer


def _copy_looks(sheet: Sheet, model: int, row: int, cells: CellRange) -> None:
    """Copy to the cells of a row the formats of another row's."""
    for column in range(cells.min_col, cells.max_col + 1):
        style = sheet.style(model, column)
        if style != sheet.style(row, column):
            sheet.set_style(row, column, style)


def _fill_formulas(sheet: Sheet, cells: CellRange, last: int, values: list[list[Value]]) -> None:
    """Fill the last row's formulas down where new rows have no value."""
    for column in range(cells.min_col, cells.max_col + 1):
        formula = sheet.formula(last, column)
        if not formula or formula.startswith("{"):
            continue
        for row, line in enumerate(values, start=last + 1):
            offset = column - cells.min_col
            if offset >= len(line) or line[offset] is None:
                sheet.write_formula(row, column, translated(formula, row - last, 0))


def _copy_cell(source: Sheet, position: tuple[int, int], target: Sheet, new_position: tuple[int, int]) -> None:
    row, column = position
    to_row, to_column = new_position
    value, kind = source.raw(row, column)
    if kind == "empty":
        need_result(source, row, column)
    style = source.style(row, column)
    if kind == "empty" and not style:
        return
    target.set_style(to_row, to_column, style)
    if kind == "text":
        target.write(to_row, to_column, str(value))
    elif kind != "empty":
        target.written.setdefault((to_row, to_column), target.raw(to_row, to_column))
        old = source.cells[row, column]
        cell = target.make(to_row, to_column)
        cell.attrib.update({"t": old.get("t")} if old.get("t") else {})
        etree.SubElement(cell, q("v")).text = old.findtext(q("v"))
        target.changed.add((to_row, to_column))
