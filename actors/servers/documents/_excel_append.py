"""Rows appended and copied, and texts replaced."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lxml import etree
from openpyxl.formula.translate import Translator
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.cell_range import CellRange

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.documents._excel_cells import check_empty, held, several_blocks, spread, write_cells
from callboard.actors.servers.documents._excel_controls import SheetRange, destination, parse_cells, place
from callboard.actors.servers.documents._excel_extend import extend_readers, extend_rules, extend_totals
from callboard.actors.servers.documents._excel_format import set_width, width_at
from callboard.actors.servers.documents._excel_insert_delete import shift
from callboard.actors.servers.documents._excel_results import fill_results, need_result
from callboard.actors.servers.documents._excel_rich_text import change_text
from callboard.actors.servers.documents._excel_sheet import LAST_ROW
from callboard.actors.servers.documents._excel_sheets import add_sheet, check_structure, check_title
from callboard.actors.servers.documents._excel_shift import Shift
from callboard.actors.servers.documents._excel_tables import blocks_of, tables_of
from callboard.actors.servers.documents._excel_totals import totals_of
from callboard.actors.servers.documents._office import q

if TYPE_CHECKING:
    from pydantic import JsonValue

    from callboard.actors.servers.documents._excel_file import ExcelFile
    from callboard.actors.servers.documents._excel_sheet import Sheet
    from callboard.actors.servers.documents._excel_values import Value
    from callboard.actors.servers.documents._tables import Answer


_SHOWN = 20
"""Maximum number of names in an answer."""


def place_to_append(file: ExcelFile, sheet: str, control_id: str, control_name: str) -> SheetRange:
    """Find the cells below which rows are appended.

    A sheet's only table is meant, else its only block. Single cells above and beside it, like a title, are no blocks.

    Raises:
        ToolError: If several tables or blocks may be meant.
    """
    found = place(file, sheet, "", control_id, control_name)
    if control_id.startswith("table-"):
        return found
    tables = tables_of(found.sheet)
    if len(tables) > 1:
        listed = ", ".join(f"{table.name} in {table.cells.coord}" for table in tables)
        msg = f"the sheet {found.sheet.title!r} has several tables: {listed}; give the control_id of one"
        raise ToolError(msg)
    if tables and not control_id.startswith("range-"):
        return SheetRange(found.sheet, tables[0].cells)
    blocks = blocks_of(found.sheet)
    large = [block for block in blocks if block.size != {"rows": 1, "columns": 1}]
    if len(large) == 1 and not any(
        block.min_row > large[0].max_row and large[0].min_col <= block.min_col <= large[0].max_col for block in blocks
    ):
        blocks = large
    if len(blocks) > 1:
        advice = "write the rows below one of them with write_range; insert rows first if it has totals"
        raise several_blocks(found.sheet, blocks, advice)
    return SheetRange(found.sheet, blocks[0] if blocks else None)


def append(file: ExcelFile, found: SheetRange, values: list[list[Value]]) -> Answer:
    """Add rows below a range's last one; totals stay below them.

    Raises:
        ToolError: If a row is longer than the table, or something stands below it.
    """
    sheet, cells = found.sheet, found.cells
    if cells is None:
        width = max(len(row) for row in values)
        cells = spread(found, len(values), width)
        write_cells(sheet, cells, values)
        return {"sheet": sheet.title, "cells": cells.coord, "rows_appended": len(values)}
    table = next((each for each in tables_of(sheet) if each.cells.coord == cells.coord), None)
    width = cells.size["columns"]
    longest = max(len(row) for row in values)
    if longest > width:
        msg = f"a row has {longest} values, and {cells.coord} has {width} columns"
        raise ToolError(msg)
    totals = totals_of(sheet, cells)
    last, count = cells.max_row - totals, len(values)
    if last + count + totals > LAST_ROW:
        msg = f"{count} rows do not fit below {cells.coord}"
        raise ToolError(msg)
    new = CellRange(None, cells.min_col, last + 1, cells.max_col, last + count)
    if totals:
        shift(file, Shift(sheet, "row", last + 1, count))
        extend_totals(sheet, cells, last, count, totals)
    else:
        check_empty(sheet, new, "insert rows first, or name the table that is meant")
    for row in range(new.min_row, new.max_row + 1):
        _copy_looks(sheet, last, row, cells)
    write_cells(sheet, new, values)
    if last > cells.min_row:
        _fill_formulas(sheet, cells, last, values)
    if table is not None:
        table.resize(CellRange(None, cells.min_col, cells.min_row, cells.max_col, cells.max_row + count))
    extend_rules(sheet, cells, last, count)
    answer: Answer = {"sheet": sheet.title, "cells": new.coord, "rows_appended": count}
    left: list[JsonValue] = [*extend_readers(file, found, last, count, table)]
    return {**answer, "not_extended": left[:_SHOWN]} if left else answer


def copy_rows(file: ExcelFile, found: SheetRange, rows: list[int], to: str, *, header: bool) -> Answer:
    """Copy rows of a range to an empty place.

    Formats and widths are copied too; formulas become their results.

    Raises:
        ToolError: If the place is not free, or a formula has no result.
    """
    source, cells = found.sheet, found.need()
    title, corner = destination(to)
    start = parse_cells(corner or "A1")
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
    area = spread(SheetRange(target, start), len(copied), cells.size["columns"])
    check_empty(target, area, "choose a free place")
    fill_results(file, source, cells)
    for row, old in enumerate(copied, start=area.min_row):
        for offset in range(cells.size["columns"]):
            _copy_cell(source, (old, cells.min_col + offset), target, (row, area.min_col + offset))
    for offset in range(cells.size["columns"]) if target is not source else ():
        set_width(target, area.min_col + offset, width_at(source, cells.min_col + offset))
    return {"sheet": target.title, "cells": area.coord, "rows_copied": len(rows)}


def replace(found: SheetRange, find: str, replacement: str, match_case: bool, whole_cell: bool) -> list[str]:  # noqa: FBT001 - passed on
    """Replace a text in cells that hold texts; return the changed cells.

    What an array formula fills stays, like every result.

    Raises:
        ToolError: If a text would become too long, or the text to replace stands in several runs of a rich text.
    """
    sheet = found.sheet
    pattern = re.compile(re.escape(find), 0 if match_case else re.IGNORECASE)

    def substitute(text: str) -> str:
        return pattern.sub(lambda _: replacement, text)

    changed = []
    for row, column in held(sheet, found.need()):
        value, kind = sheet.raw(row, column)
        if kind != "text" or sheet.is_formula(row, column) or sheet.is_within_array(row, column):
            continue
        if whole_cell and not pattern.fullmatch(value):
            continue
        new = substitute(value)
        if new != value:
            change_text(sheet, row, column, new, substitute)
            changed.append(f"{get_column_letter(column)}{row}")
    return changed


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
        origin = f"{get_column_letter(column)}{last}"
        for row, line in enumerate(values, start=last + 1):
            place = column - cells.min_col
            if place >= len(line) or line[place] is None:
                here = f"{get_column_letter(column)}{row}"
                sheet.write_formula(row, column, Translator(formula, origin=origin).translate_formula(here))


def _copy_cell(source: Sheet, place: tuple[int, int], target: Sheet, to: tuple[int, int]) -> None:
    row, column = place
    to_row, to_column = to
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
        old = source.cells[row, column]
        cell = target.make(to_row, to_column)
        cell.attrib.update({"t": old.get("t")} if old.get("t") else {})
        etree.SubElement(cell, q("v")).text = old.findtext(q("v"))
        target.changed.add((to_row, to_column))
