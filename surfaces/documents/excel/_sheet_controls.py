"""The controls of a workbook: sheets, ranges, tables, charts, pivot tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openpyxl.utils import column_index_from_string, get_column_letter, range_boundaries
from openpyxl.worksheet.cell_range import CellRange

from callboard.messages import Control
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._tables import nearest, short
from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._cell_values import NOT_COMPUTED
from callboard.surfaces.documents.excel._charts import charts_of
from callboard.surfaces.documents.excel._conditional_formats import conditional_formats_of
from callboard.surfaces.documents.excel._formula_text import LAST_COLUMN, LAST_ROW
from callboard.surfaces.documents.excel._hidden_rows import facts_of, filters_of_table
from callboard.surfaces.documents.excel._named_tables import header_of, tables_of
from callboard.surfaces.documents.excel._pivot_tables import all_pivots, pivots_of
from callboard.surfaces.documents.excel._protection import unlocked
from callboard.surfaces.documents.excel._validations import validations_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import JsonValue

    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._charts import Chart
    from callboard.surfaces.documents.excel._named_tables import Table
    from callboard.surfaces.documents.excel._pivot_tables import PivotTable
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_CORNER = re.compile(r"\$?[A-Za-z]{1,3}\$?[0-9]{1,7}(:.*)?")
_COMMA = re.compile(r",(?=(?:[^']*'[^']*')*[^']*$)")
"""A comma that stands in no quoted title."""
_MOST_RANGES = 1_000
"""The most ranges that one call names."""
_MAX_HEADER = 30
_FIRST_ROWS = 3
_FIRST_COLUMNS = 8
_LONGEST_CELL = 24
"""Limits of the content that an observation shows: rows, columns, characters of a cell."""
_MAX_TITLES = 10
"""The most rows of titles above a header that is looked for."""


@dataclass(frozen=True)
class SheetRange:
    """A sheet and a range of its cells."""

    sheet: Sheet
    cells: CellRange | None
    """None for an empty sheet."""

    def need(self) -> CellRange:
        """Return the cells, which must exist.

        Raises:
            ToolError: If the sheet is empty and no cells were given.
        """
        if self.cells is None:
            msg = f"the sheet {self.sheet.title!r} is empty"
            raise ToolError(msg)
        return self.cells


def find_all(file: ExcelFile) -> list[Control]:
    """List the controls of a workbook, numbered by kind across all sheets.

    The ids are ``sheet-1``, ``range-1`` (the used range of ``sheet-1``), ``table-1``, ``chart-1`` and so on.
    """
    controls: list[Control] = []
    tables = charts = pivots = 0
    for number, sheet in enumerate(file.sheets, start=1):
        used = sheet.used() if sheet.is_grid else None
        controls.extend(_of_sheet(sheet, number, used))
        for table in tables_of(sheet):
            tables += 1
            controls.append(_of_table(table, number, tables, used))
        for chart in charts_of(sheet):
            charts += 1
            controls.append(_of_chart(chart, number, charts))
        for pivot in pivots_of(sheet):
            pivots += 1
            controls.append(_of_pivot(pivot, number, pivots))
    return controls


def _of_sheet(sheet: Sheet, number: int, used: CellRange | None) -> Iterator[Control]:
    visible = sheet.state == "visible"
    detail: dict[str, JsonValue] = {"state": sheet.state}
    if sheet.is_grid:
        detail |= {"used": used.coord if used else None, "protected": sheet.protected}
        detail |= unlocked(sheet) | facts_of(sheet, used) | validations_of(sheet)
        detail |= conditional_formats_of(sheet)
    yield Control(id=f"sheet-{number}", name=sheet.title, kind=sheet.kind, visible=visible, detail=detail)
    if used:
        header = _lettered(header_of(sheet, used), used)
        about: dict[str, JsonValue] = {"sheet": f"sheet-{number}", "cells": used.coord, "header": header}
        about |= _content(sheet, used)
        name = f"{sheet.title}!{used.coord}"
        yield Control(id=f"range-{number}", name=name, kind="range", visible=visible, place=sheet.title, detail=about)


def _lettered(texts: Iterable[str], cells: CellRange) -> dict[str, JsonValue]:
    """Return a header's texts by the letters of their columns."""
    columns = range(cells.min_col, min(cells.max_col, cells.min_col + _MAX_HEADER - 1) + 1)
    return {get_column_letter(column): short(text) for column, text in zip(columns, texts, strict=False)}


def _content(sheet: Sheet, cells: CellRange) -> dict[str, JsonValue]:
    """Count the rows below a header, and read the first ones."""
    last_row = min(cells.max_row, cells.min_row + _FIRST_ROWS)
    last_column = min(cells.max_col, cells.min_col + _FIRST_COLUMNS - 1)
    rows: dict[str, JsonValue] = {}
    for row in range(cells.min_row + 1, last_row + 1):
        values: list[JsonValue] = []
        for column in range(cells.min_col, last_column + 1):
            value = sheet.value(row, column)
            if value is None and sheet.is_formula(row, column):
                value = NOT_COMPUTED
            values.append(short(value, _LONGEST_CELL) if isinstance(value, str) else value)
        rows[f"{get_column_letter(cells.min_col)}{row}"] = values
    return {"rows": cells.max_row - cells.min_row, "first_rows": rows}


def _of_table(table: Table, number: int, count: int, used: CellRange | None) -> Control:
    header = _lettered(table.columns, table.cells)
    about: dict[str, JsonValue] = {"sheet": f"sheet-{number}", "cells": table.cells.coord, "header": header}
    about |= _content(table.sheet, table.cells) | filters_of_table(table)
    if used is not None and used.coord == table.cells.coord:
        del about["first_rows"]  # the used range shows them
    visible = table.sheet.state == "visible"
    title = table.sheet.title
    return Control(id=f"table-{count}", name=table.name, kind="table", visible=visible, place=title, detail=about)


def _of_chart(chart: Chart, number: int, count: int) -> Control:
    about: dict[str, JsonValue] = {"sheet": f"sheet-{number}", "type": chart.type, "at": chart.at}
    name = short(chart.title) or f"Chart {count}"
    title, visible = chart.sheet.title, chart.sheet.state == "visible"
    return Control(id=f"chart-{count}", name=name, kind="chart", visible=visible, place=title, detail=about)


def _of_pivot(pivot: PivotTable, number: int, count: int) -> Control:
    about: dict[str, JsonValue] = {"sheet": f"sheet-{number}", "cells": pivot.block.coord, **pivot.facts}
    name, title, visible = pivot.name or f"Pivot table {count}", pivot.sheet.title, pivot.sheet.state == "visible"
    return Control(id=f"pivot-{count}", name=name, kind="pivot", visible=visible, place=title, detail=about)


def find(file: ExcelFile, control_id: str, control_name: str = "") -> Control:
    """Find a control by its id, and check the given name.

    Raises:
        ToolError: If the control does not exist, or has another name now.
    """
    controls = find_all(file)
    for control in controls:
        if control.id == control_id:
            if control_name and control.name != control_name:
                msg = f"{control_id!r} is now called {control.name!r}, not {control_name!r}; observe it again"
                raise ToolError(msg)
            return control
    msg = f"there is no control {control_id!r} in the workbook; observe it again to see its controls"
    msg += nearest(control_id, [name for control in controls for name in (control.id, control.name)])
    raise ToolError(msg)


def find_range(file: ExcelFile, sheet: str, cells: str, control_id: str = "", control_name: str = "") -> SheetRange:
    """Find the sheet and the cells that a call's arguments select.

    A control selects its sheet, and a range or table also its cells. Without a control the title selects the sheet,
    and without a title the workbook's active sheet is used. Without cells the used range is selected. Cells may also
    be the name of a table.

    Raises:
        ToolError: If the control, sheet or range does not exist, or the sheet and the control contradict each other.
    """
    prefix, _, range_text = cells.rpartition("!")
    title = unquoted(prefix) or sheet
    if table := _table_called(file, range_text):
        title, range_text = table.sheet.title, table.cells.coord
    for sheet_name in filter(None, (unquoted(prefix), sheet)):
        if sheet_name.casefold() != title.casefold():
            msg = f"the cells {cells!r} are not on the sheet {sheet_name!r}"
            raise ToolError(msg)
    if control_id:
        control = find(file, control_id, control_name)
        parent = file.sheets[int(str(control.detail.get("sheet", control.id)).rpartition("-")[2]) - 1].title
        if title and title.casefold() != parent.casefold():
            msg = f"{control_id!r} is not on the sheet {title!r}"
            raise ToolError(msg)
        title = parent
        if control.kind in {"range", "table", "pivot"}:
            range_text = range_text or str(control.detail["cells"])
    target_sheet = file.sheet(title) if title else file.active
    if unquoted(range_text).casefold() in map(str.casefold, file.titles) and not _CORNER.fullmatch(range_text):
        msg = f"{range_text!r} is the title of a sheet; give it as sheet, and leave cells empty for all used cells"
        raise ToolError(msg)
    return SheetRange(
        target_sheet,
        parse_cells(range_text, "a range of cells or the name of a table") if range_text else target_sheet.used(),
    )


def find_ranges(
    file: ExcelFile, sheet: str, cells: str, control_id: str = "", control_name: str = ""
) -> tuple[Sheet, list[CellRange]]:
    """Find the ranges of one sheet that a call's arguments select.

    Commas separate them.

    Raises:
        ToolError: If one does not exist, they lie on several sheets, or there are too many.
    """
    if cells.count(",") >= _MOST_RANGES:
        msg = f"there are more than {_MOST_RANGES} ranges; split the call"
        raise ToolError(msg)
    texts = [text.strip() for text in _COMMA.split(cells)]
    first = find_range(file, sheet, texts[0], control_id, control_name)
    ranges = [first.need()]
    for text in texts[1:]:
        if not text:
            msg = f"{cells!r} has an empty range between commas; write them like B3:C3,B7:C7"
            raise ToolError(msg)
        ranges.append(find_range(file, first.sheet.title, text, control_id, control_name).need())
    return first.sheet, ranges


def drawn_cells(sheet: Sheet, cells: str) -> SheetRange:
    """Find cells for a chart, by default on its own sheet.

    Raises:
        ToolError: If there are no such cells.
    """
    elsewhere = "!" in cells or _table_called(sheet.file, cells) is not None
    return find_range(sheet.file, "" if elsewhere else sheet.title, cells)


def _table_called(file: ExcelFile, name: str) -> Table | None:
    """Find a table by its name, which never looks like a cell."""
    if not name or ":" in name or _CORNER.fullmatch(name):
        return None
    tables = (table for sheet in file.sheets for table in tables_of(sheet))
    return next((table for table in tables if table.name.casefold() == name.casefold()), None)


def destination(to: str) -> tuple[str, str]:
    """Split a place like ``New!A1`` into a title and a cell.

    Each may be left out, and is then empty.
    """
    title, mark, corner = to.rpartition("!")
    if mark:
        return unquoted(title), corner
    return ("", corner) if not corner or _CORNER.fullmatch(corner) else (corner, "")


def unquoted(title: str) -> str:
    """Return a sheet's title without the quotes around it."""
    return title.strip("'").replace("''", "'")


def sheet_of(file: ExcelFile, sheet: str, control_id: str, control_name: str) -> Sheet:
    """Find a sheet by its title or its control.

    Raises:
        ToolError: If the sheet does not exist, or the title and the control contradict each other.
    """
    if not control_id:
        return file.sheet(sheet)
    control = find(file, control_id, control_name)
    if control.kind != "sheet" or sheet.casefold() not in {"", control.name.casefold()}:
        msg = f"{control_id!r} is not a sheet, or its title is not {sheet!r}; observe the workbook again"
        raise ToolError(msg)
    return file.sheet(control.name)


def parse_cells(text: str, accepted: str = "a range of cells") -> CellRange:
    """Parse a range such as ``A1`` or ``A1:C10``.

    `accepted` is for the error: all that the caller accepts.

    Raises:
        ToolError: If the text is not a range, has no end, or ends beyond the last cell of a sheet.
    """
    try:
        bounds = [bound for bound in range_boundaries(text.replace("$", "").upper()) if bound is not None]
        left, top, right, bottom = bounds  # whole rows and columns have fewer bounds
        if left > right or top > bottom:
            msg = f"{text!r} does not begin at its top left cell; write it as {area_of(text).coord}"
            raise ToolError(msg)
        if right > LAST_COLUMN or bottom > LAST_ROW:
            msg = f"{text!r} lies beyond {get_column_letter(LAST_COLUMN)}{LAST_ROW}, the last cell of a sheet"
            raise ToolError(msg)
        return CellRange(min_col=left, min_row=top, max_col=right, max_row=bottom)
    except (ValueError, TypeError):
        msg = f"{text!r} is not {accepted}; write it like A1:C10"
        raise ToolError(msg) from None


def row_number(text: str) -> int:
    """Read the number of a row.

    Raises:
        ToolError: If it is none.
    """
    digits = text.strip().removeprefix("$")
    if digits.isascii() and digits.isdigit() and 1 <= int(digits[:8]) <= LAST_ROW:
        return int(digits)
    msg = f"{text!r} is no row; write its number, like 5"
    raise ToolError(msg)


def column_number(text: str) -> int:
    """Read the letter of a column, or its number.

    Raises:
        ToolError: If it is none.
    """
    name = text.strip().removeprefix("$").upper()
    if name.isascii() and name.isdigit() and 1 <= int(name[:8]) <= LAST_COLUMN:
        return int(name)
    if (
        name.isascii()
        and name.isalpha()
        and len(name) <= 3
        and (number := column_index_from_string(name)) <= LAST_COLUMN
    ):
        return number
    msg = f"{text!r} is no column; write its letter, like C"
    raise ToolError(msg)


def chart_of(file: ExcelFile, control_id: str, control_name: str = "") -> Chart:
    """Find a chart by its control.

    Raises:
        ToolError: If there is no such control, or it is no chart.
    """
    control = find(file, control_id, control_name)
    if control.kind != "chart":
        msg = f"{control_id!r} is no chart, but a {control.kind}"
        raise ToolError(msg)
    return all_charts(file)[int(control.id.rpartition("-")[2]) - 1]


def pivot_of(file: ExcelFile, control_id: str, control_name: str = "") -> PivotTable:
    """Find a pivot table by its control.

    Raises:
        ToolError: If there is no such control, or it is no pivot table.
    """
    control = find(file, control_id, control_name)
    if control.kind != "pivot":
        msg = f"{control_id!r} is no pivot table, but a {control.kind}"
        raise ToolError(msg)
    return all_pivots(file)[int(control.id.rpartition("-")[2]) - 1]


def all_charts(file: ExcelFile) -> list[Chart]:
    """List a workbook's charts, in the order of their ids."""
    return [chart for sheet in file.sheets for chart in charts_of(sheet)]


def column_of(sheet: Sheet, cells: CellRange, name: str, *, header: bool) -> int:
    """Find a column of a range by its header or letter.

    Returns:
        The column's number on the sheet. A header takes precedence over a letter, and a letter over a header in other
        capitals.

    Raises:
        ToolError: If there is no such column, or two with that header.
    """
    names = header_of(sheet, cells) if header else []
    if names.count(name) > 1:
        msg = f"two columns are called {name!r}; use their letters"
        raise ToolError(msg)
    if name in names:
        return cells.min_col + names.index(name)
    if name.isascii() and name.isalpha():
        for column in range(cells.min_col, cells.max_col + 1):
            if get_column_letter(column) == name.upper():
                return column
    matches = [title for title in names if title.casefold() == name.casefold()]
    if len(matches) == 1:
        return cells.min_col + names.index(matches[0])
    headers = ", ".join(repr(title) for title in names if title)
    msg = (
        f"there is no column {name!r} in {cells.coord}"
        + (f"; there are: {headers}" if headers else "")
        + (_lower_header(sheet, cells, name) or nearest(name, filter(None, names)) if header else "")
    )
    raise ToolError(msg)


def _lower_header(sheet: Sheet, cells: CellRange, name: str) -> str:
    """Name the row below a title that has a header, if any."""
    filled_count = len(list(filter(None, header_of(sheet, cells))))
    for row in range(cells.min_row + 1, min(cells.min_row + _MAX_TITLES, cells.max_row) + 1):
        below = CellRange(None, cells.min_col, row, cells.max_col, cells.max_row)
        texts = [text.casefold() for text in header_of(sheet, below)]
        if name.casefold() in texts and len(list(filter(None, texts))) > filled_count:
            return f"; row {row} has it: name the cells {below.coord}"
    return ""


def tree(file: ExcelFile, name: str) -> Answer:
    """Arrange the controls in a tree, by sheets."""
    sheets: dict[str, list[JsonValue]] = {}
    top: list[JsonValue] = []
    for control in find_all(file):
        node: dict[str, JsonValue] = {"id": control.id, "name": control.name, "kind": control.kind}
        if "sheet" in control.detail:
            sheets[str(control.detail["sheet"])].append(node)
        else:
            children: list[JsonValue] = []
            sheets[control.id] = children
            top.append({**node, "children": children})
    return {"id": "workbook", "name": name, "kind": "workbook", "children": top}
