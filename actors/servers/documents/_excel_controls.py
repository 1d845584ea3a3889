"""The controls of a workbook: sheets, used ranges, tables and charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openpyxl.utils import get_column_letter, range_boundaries
from openpyxl.utils.cell import coordinate_to_tuple
from openpyxl.worksheet.cell_range import CellRange

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.documents._excel_file import LAST_COLUMN, LAST_ROW, ExcelFile, read_value
from callboard.actors.servers.documents._tables import nearest, short
from callboard.messages import Control

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openpyxl.worksheet.worksheet import Worksheet
    from pydantic import JsonValue

    from callboard.actors.servers.documents._tables import Answer

_MAX_HEADER = 30
_FIRST_ROWS = 3
_FIRST_COLUMNS = 8
_LONGEST_CELL = 24
"""Limits of the content that an observation shows: rows, columns, characters of a cell."""


@dataclass(frozen=True)
class SheetRange:
    """A sheet and a range of its cells."""

    sheet: Worksheet
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


def used_range(sheet: Worksheet) -> CellRange | None:
    """Return the range that holds values; formatted empty cells do not count."""
    cells = sheet._cells.values()  # the public way would create the cells between
    taken = [(cell.row, cell.column) for cell in cells if cell.value is not None]
    if not taken:
        return None
    rows, columns = [row for row, _ in taken], [column for _, column in taken]
    return CellRange(min_row=min(rows), max_row=max(rows), min_col=min(columns), max_col=max(columns))


def find_all(file: ExcelFile) -> list[Control]:
    """List the controls of a workbook, numbered by kind across all sheets.

    The ids are ``sheet-1``, ``range-1`` (the used range of ``sheet-1``), ``table-1``, ``chart-1`` and so on.
    """
    found: list[Control] = []
    for number, sheet in enumerate(file.book._sheets, start=1):  # type: ignore[attr-defined]  # with chart sheets
        found.extend(_of_sheet(sheet, number, sheet in file.book.worksheets))
        tables = sum(control.kind == "table" for control in found)
        charts = sum(control.kind == "chart" for control in found)
        if sheet in file.book.worksheets:
            found.extend(_of_tables(sheet, number, tables))
        found.extend(_of_charts(sheet, number, charts))
    return found


def _of_sheet(sheet: Any, number: int, is_grid: bool) -> Iterator[Control]:  # noqa: FBT001 - a chart sheet too
    visible = sheet.sheet_state == "visible"
    detail: dict[str, JsonValue] = {"state": sheet.sheet_state}
    used = used_range(sheet) if is_grid else None
    if is_grid:
        detail |= {"used": used.coord if used else None, "protected": bool(sheet.protection.sheet)}
    kind = "sheet" if is_grid else "chart_sheet"
    yield Control(id=f"sheet-{number}", name=sheet.title, kind=kind, visible=visible, detail=detail)
    if used:
        header: list[JsonValue] = [short(text) for text in header_of(sheet, used)[:_MAX_HEADER]]
        about: dict[str, JsonValue] = {"sheet": f"sheet-{number}", "cells": used.coord, "header": header}
        about |= _content(sheet, used)
        name = f"{sheet.title}!{used.coord}"
        yield Control(id=f"range-{number}", name=name, kind="range", visible=visible, detail=about)


def _content(sheet: Worksheet, cells: CellRange) -> dict[str, JsonValue]:
    """Count the rows below a header, and read some by address."""
    known = sheet._cells  # does not make cells
    last_row = min(cells.max_row, cells.min_row + _FIRST_ROWS)
    last_column = min(cells.max_col, cells.min_col + _FIRST_COLUMNS - 1)
    rows: dict[str, JsonValue] = {}
    for row in range(cells.min_row + 1, last_row + 1):
        found = (known.get((row, column)) for column in range(cells.min_col, last_column + 1))
        values = [None if cell is None else read_value(cell) for cell in found]
        first = f"{get_column_letter(cells.min_col)}{row}"
        rows[first] = [short(value, _LONGEST_CELL) if isinstance(value, str) else value for value in values]
    return {"rows": cells.max_row - cells.min_row, "first_rows": rows}


def _of_tables(sheet: Worksheet, number: int, before: int) -> Iterator[Control]:
    used = used_range(sheet) if sheet.tables else None
    for count, table in enumerate(sheet.tables.values(), start=before + 1):
        header: list[JsonValue] = [*table.column_names]
        about: dict[str, JsonValue] = {"sheet": f"sheet-{number}", "cells": table.ref, "header": header}
        about |= _content(sheet, CellRange(table.ref))
        if used is not None and used.coord == table.ref:
            del about["first_rows"]  # the used range shows them
        visible = sheet.sheet_state == "visible"
        yield Control(id=f"table-{count}", name=table.displayName, kind="table", visible=visible, detail=about)


def _of_charts(sheet: Any, number: int, before: int) -> Iterator[Control]:
    for count, chart in enumerate(sheet._charts, start=before + 1):
        kind, at = chart.tagname.removesuffix("Chart"), ""
        if isinstance(chart.anchor, str):
            row, column = coordinate_to_tuple(chart.anchor)
            at = f"{get_column_letter(column)}{row}"
        elif (start := getattr(chart.anchor, "_from", None)) is not None:
            at = f"{get_column_letter(start.col + 1)}{start.row + 1}"
        about: dict[str, JsonValue] = {"sheet": f"sheet-{number}", "type": kind, "at": at}
        name = short(chart_title(chart)) or f"Chart {count}"
        visible = sheet.sheet_state == "visible"
        yield Control(id=f"chart-{count}", name=name, kind="chart", visible=visible, detail=about)


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


def place(file: ExcelFile, sheet: str, cells: str, control_id: str = "", control_name: str = "") -> SheetRange:
    """Find the sheet and the cells that a call's arguments select.

    A control selects its sheet, and a range or table also its cells. Without a control the title selects the sheet,
    and without a title the workbook's active sheet is used. Without cells the used range is selected.

    Raises:
        ToolError: If the control, sheet or range does not exist, or the sheet and the control contradict each other.
    """
    title, wanted = sheet, cells
    if "!" in cells:
        title, _, wanted = cells.rpartition("!")
        title = title.strip("'").replace("''", "'")
        if sheet and sheet.casefold() != title.casefold():
            msg = f"the cells {cells!r} are not on the sheet {sheet!r}"
            raise ToolError(msg)
    if control_id:
        control = find(file, control_id, control_name)
        parent = control.name if control.kind == "sheet" else find(file, str(control.detail.get("sheet", ""))).name
        if title and title.casefold() != parent.casefold():
            msg = f"{control_id!r} is not on the sheet {title!r}"
            raise ToolError(msg)
        title = parent
        if control.kind in {"range", "table"}:
            wanted = wanted or str(control.detail["cells"])
    sheets = file.book.worksheets
    found = file.sheet(title) if title else next((each for each in sheets if each is file.book.active), sheets[0])
    return SheetRange(found, parse_cells(wanted) if wanted else used_range(found))


def sheet_of(file: ExcelFile, sheet: str, control_id: str, control_name: str) -> Worksheet:
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


def parse_cells(text: str) -> CellRange:
    """Parse a range such as ``A1`` or ``A1:C10``.

    Raises:
        ToolError: If the text is not a range, has no end, or ends beyond the last cell of a sheet.
    """
    try:
        bounds = [bound for bound in range_boundaries(text.replace("$", "").upper()) if bound is not None]
        left, top, right, bottom = bounds  # whole rows and columns have fewer bounds
        if right > LAST_COLUMN or bottom > LAST_ROW:
            msg = f"{text!r} lies beyond {get_column_letter(LAST_COLUMN)}{LAST_ROW}, the last cell of a sheet"
            raise ToolError(msg)
        return CellRange(min_col=left, min_row=top, max_col=right, max_row=bottom)
    except (ValueError, TypeError):
        msg = f"{text!r} is not a range of cells; write it like A1:C10"
        raise ToolError(msg) from None


def header_of(sheet: Worksheet, cells: CellRange) -> list[str]:
    """Return the texts of a range's first row."""
    cells_ = sheet._cells  # the public way would create cells
    row = (cells_.get((cells.min_row, column)) for column in range(cells.min_col, cells.max_col + 1))
    return ["" if cell is None or cell.value is None else str(read_value(cell)) for cell in row]


def column_of(sheet: Worksheet, cells: CellRange, name: str, *, header: bool) -> int:
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
    alike = [title for title in names if title.casefold() == name.casefold()]
    if len(alike) == 1:
        return cells.min_col + names.index(alike[0])
    known = ", ".join(repr(title) for title in names if title)
    msg = (
        f"there is no column {name!r} in {cells.coord}"
        + (f"; there are: {known}" if known else "")
        + nearest(name, filter(None, names))
    )
    raise ToolError(msg)


def chart_title(chart: Any) -> str:
    """Return a chart's own title; empty for one taken from a cell."""
    rich = chart.title.tx.rich if chart.title is not None and chart.title.tx is not None else None
    if rich is None:
        return ""
    return "\n".join("".join(run.t for run in paragraph.r or ()) for paragraph in rich.p)


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
