"""Parts of a workbook that checks read: cells, tables and charts.

Each is found by its sheet, name or title, and must be the only one that fits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._tables import listed, nearest, same_words, single_match
from callboard.surfaces.documents.excel._cell_ranges import filled_positions, positions_in, several_blocks
from callboard.surfaces.documents.excel._cell_references import quoted_title
from callboard.surfaces.documents.excel._named_tables import blocks_of, tables_of
from callboard.surfaces.documents.excel._outdated_results import Formulas
from callboard.surfaces.documents.excel._sheet import where_of
from callboard.surfaces.documents.excel._sheet_controls import SheetRange, all_charts, parse_cells, unquoted
from callboard.surfaces.documents.excel._touched_cells import TouchedCells

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._charts import Chart
    from callboard.surfaces.documents.excel._named_tables import Table
    from callboard.surfaces.documents.excel._outdated_results import CellPosition
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_MOST_CELLS = 100_000
"""The most cells that one reading has."""
_REFERENCE = re.compile(r"(?:(?P<sheet>'(?:[^']|'')+'|[^!\[\]]+)!)?(?P<name>.+)", re.DOTALL)
_CELLS = re.compile(r"\$?[A-Za-z]{1,3}\$?[0-9]{1,7}(?::\$?[A-Za-z]{1,3}\$?[0-9]{1,7})?")
_COLUMN = re.compile(r"(?P<table>[^\[\]]+)\[(?P<column>.+)\]", re.DOTALL)
_CHART = re.compile(r"(?P<sheet>'(?:[^']|'')+'|[^'!][^!]*)!(?P<title>.*)", re.DOTALL)
_SAVE = "open and save the workbook in Excel or LibreOffice"


@dataclass(frozen=True)
class NamedTable:
    """An Excel table or the only block of a sheet."""

    name: str
    sheet: Sheet
    cells: CellRange
    has_header: bool

    def __str__(self) -> str:
        """Return its name and its place."""
        return f"{self.name!r} ({quoted_title(self.sheet.title)}!{self.cells.coord})"


# Cells


def find_cells(file: ExcelFile, part: str) -> SheetRange:
    """Find cells by a range, a name, a table or its column.

    Raises:
        ToolError: If there are no such cells, or more than one range fits.
    """
    match = _REFERENCE.fullmatch(part)
    if match is None:
        msg = "no cells are named; write them behind the file's name, like report.xlsx!Sales!B8"
        raise ToolError(msg)
    sheet = file.sheet(unquoted(match["sheet"])) if match["sheet"] else None
    name = match["name"].strip()
    if _CELLS.fullmatch(name):
        return SheetRange(sheet or _only_sheet(file), parse_cells(name))
    column = _COLUMN.fullmatch(name)
    key = (column["table"] if column else name).casefold()
    ranges = [
        _data_of(table, column["column"] if column else "")
        for table in _tables(file)
        if table.name.casefold() == key and sheet in {None, table.sheet}
    ]
    if not column:
        ranges += [
            _cells_of_name(file, defined_name, element.text or "")
            for defined_name, local, element in file.names()
            if defined_name.casefold() == key and sheet in {None, local}
        ]
    if len(ranges) == 1:
        return ranges[0]
    if ranges:
        fitting = ", ".join(
            TouchedCells(target.sheet, target.cells).resource.removeprefix("range:") for target in ranges
        )
        msg = f"{part!r} is the name of {len(ranges)} ranges ({fitting}); name the sheet and the cells"
        raise ToolError(msg)
    names = [*(table.name for table in _tables(file)), *(defined_name for defined_name, _, _ in file.names())]
    titles = ", ".join(repr(worksheet.title) for worksheet in file.worksheets)
    msg = f"{part!r} is no range of cells, and no name or table; write it like Sales!B8 or Sales!A1:C10"
    msg += f"; the sheets are {titles}{nearest(name, names)}"
    raise ToolError(msg)


def _only_sheet(file: ExcelFile) -> Sheet:
    visible = [sheet for sheet in file.worksheets if sheet.state == "visible"]
    if len(visible) == 1:
        return visible[0]
    msg = f"the workbook has {len(visible)} visible sheets ({listed(sheet.title for sheet in visible)}); name one, "
    raise ToolError(msg + "like Sales!B8")


def _tables(file: ExcelFile) -> Iterator[Table]:
    return (table for sheet in file.worksheets for table in tables_of(sheet))


def _data_of(table: Table, column: str) -> SheetRange:
    """Return the data of a table or column, as in formulas."""
    area = table.cells
    first, last, left, right = area.min_row + table.has_header, area.max_row - table.totals, area.min_col, area.max_col
    if column:
        numbers = [number for number, name in enumerate(table.columns) if name.casefold() == column.casefold()]
        if not numbers:  # a rule may deny its sheet: no column is named
            msg = f"the table {table.name!r} has no column {column!r}"
            raise ToolError(msg)
        left = right = area.min_col + numbers[0]
    if first > last:
        msg = f"the table {table.name!r} has no rows of data"
        raise ToolError(msg)
    return SheetRange(table.sheet, CellRange(min_col=left, max_col=right, min_row=first, max_row=last))


def _cells_of_name(file: ExcelFile, name: str, text: str) -> SheetRange:
    match = _REFERENCE.fullmatch(text)
    if match is None or not match["sheet"] or not _CELLS.fullmatch(match["name"]):
        msg = f"the name {name!r} does not stand for one range of cells; name the cells"
        raise ToolError(msg)
    return SheetRange(file.sheet(unquoted(match["sheet"])), parse_cells(match["name"]))


def stored_values(file: ExcelFile, sheet: Sheet, cells: CellRange) -> list[list[JsonValue]]:
    """Read all cells of a range by row; formulas give stored results.

    Raises:
        ToolError: If there are too many cells, or a formula has no result, or one that is outdated.
    """
    count = cells.size["rows"] * cells.size["columns"]
    if count > _MOST_CELLS:
        msg = f"{quoted_title(sheet.title)}!{cells.coord} has {count} cells; at most {_MOST_CELLS} are read: name fewer"
        raise ToolError(msg)
    formulas = [position for position in filled_positions(sheet, cells) if sheet.is_formula(*position)]
    missing = [position for position in formulas if _lacks_result(sheet, *position)]
    if arrays := [area for area in sheet.arrays if not area.isdisjoint(cells)]:
        array_positions = (position for position in positions_in(cells) if sheet.is_within_array(*position))
        missing = sorted({*missing, *(position for position in array_positions if _lacks_result(sheet, *position))})
        formulas = sorted({*formulas, *((area.min_row, area.min_col) for area in arrays)})
    if missing:
        raise _unreadable(sheet, missing, f"no computed result; {_SAVE} first")
    _check_results(file, sheet, formulas)
    across = range(cells.min_col, cells.max_col + 1)
    return [[sheet.value(row, column) for column in across] for row in range(cells.min_row, cells.max_row + 1)]


def _lacks_result(sheet: Sheet, row: int, column: int) -> bool:
    return sheet.raw(row, column)[1] == "empty"


def _unreadable(sheet: Sheet, cells: list[tuple[int, int]], why: str) -> ToolError:
    first_cell = f"{quoted_title(sheet.title)}!{where_of(*cells[0])}"
    more = f" and {len(cells) - 1} more formulas have" if len(cells) > 1 else " is a formula that has"
    return ToolError(f"{first_cell}{more} {why}")


def _check_results(file: ExcelFile, sheet: Sheet, cells: list[tuple[int, int]]) -> None:
    """Refuse stored results that are outdated.

    Raises:
        ToolError: If the workbook was saved before it was computed, or a formula reads one that has no result.
    """
    if not cells:
        return
    settings = file.package.tree(file.part).find(q("calcPr"))
    flags = {} if settings is None else settings.attrib
    if flags.get("calcCompleted") in {"0", "false"}:
        raise _unreadable(sheet, cells, f"a result from before the last change; {_SAVE} first")
    sheets = {worksheet.title.casefold(): worksheet for worksheet in file.worksheets}
    positions_by_cell: dict[CellPosition, tuple[int, int]] = {
        (sheet.title.casefold(), *position): position for position in cells
    }
    missing: list[CellPosition] = [
        (title, *position)
        for title, worksheet in sheets.items()
        for position in worksheet.filled()
        if worksheet.is_formula(*position) and _lacks_result(worksheet, *position)
    ]
    if missing:
        formulas = Formulas.of(file)
        seeds = [*missing, *(cell for anchor in missing for cell in formulas.spilled(anchor)), *formulas.volatile]
        outdated = {*formulas.volatile, *formulas.depending(seeds)}
        if outdated_positions := [position for key, position in positions_by_cell.items() if key in outdated]:
            raise _unreadable(
                sheet, outdated_positions, f"an outdated result: it reads formulas that were not computed; {_SAVE}"
            )


# Tables


def find_table(file: ExcelFile, part: str) -> NamedTable:
    """Find an Excel table, or a sheet's only block, by its name.

    Raises:
        ToolError: If none fits, or several.
    """
    tables = [
        NamedTable(excel_table.name, excel_table.sheet, excel_table.cells, excel_table.has_header)
        for excel_table in _tables(file)
    ]
    title = unquoted(part).casefold()
    matches = [table for table in tables if not part or table.name.casefold() == part.casefold()]
    visible = [sheet for sheet in file.worksheets if sheet.state == "visible"]
    for sheet in file.worksheets:
        if sheet.title.casefold() != title and (part or sheet not in visible):
            continue
        blocks = blocks_of(sheet)
        if len(blocks) > 1 and part and not matches:
            raise several_blocks(sheet, blocks, "name the table, or read the cells of one")
        fitting = {(table.sheet, table.cells.coord) for table in matches}
        matches += [NamedTable(sheet.title, sheet, area, True) for area in blocks if (sheet, area.coord) not in fitting]  # noqa: FBT003 - has a header
    if not matches and part:
        alternatives = [*map(str, tables), *(f"the sheet {sheet.title!r}" for sheet in visible)]
        msg = f"there is no table {part!r}; there are: {listed(alternatives)}"
        raise ToolError(msg + nearest(part, [*(table.name for table in tables), *file.titles]))
    return single_match(matches, part, "table", tables)


def rows_of(file: ExcelFile, table: NamedTable, *, header: bool) -> list[list[JsonValue]]:
    """Read all rows of a table, without its header."""
    rows = stored_values(file, table.sheet, table.cells)
    return rows[1:] if header and table.has_header else rows


# Charts


def find_chart(file: ExcelFile, part: str) -> Chart:
    """Find a chart by its sheet, its title, or both.

    Raises:
        ToolError: If none fits, or several.
    """
    charts = all_charts(file)
    match = _CHART.fullmatch(part)
    if match is not None and (sheet := unquoted(match["sheet"]).casefold()) in map(str.casefold, file.titles):
        title = match["title"]
        fitting_charts = [
            chart
            for chart in charts
            if chart.sheet.title.casefold() == sheet and (not title or same_words(title, title_of(chart)))
        ]
    else:
        fitting_charts = [
            chart
            for chart in charts
            if not part
            or chart.sheet.title.casefold() == unquoted(part).casefold()
            or same_words(part, title_of(chart))
        ]
    return single_match(fitting_charts, part, "chart", charts, _label)


def _label(chart: Chart) -> str:
    """Describe a chart by its title and place."""
    location = f"{quoted_title(chart.sheet.title)}!{chart.at}" if chart.at else chart.sheet.title
    return f"{chart.title!r} ({location})"


def title_of(chart: Chart) -> str:
    """Return a chart's title, which may stand in a cell."""
    return chart.title or _text_at(chart.sheet.file, chart.title_reference)


def describe(chart: Chart) -> Answer:
    """Describe a chart: kind, title, place and the cells it draws."""
    file = chart.sheet.file
    series = chart.series
    categories = [_plain(data_series.categories) for data_series in series]
    same_categories = len({*categories}) <= 1
    return {
        "kind": "+".join(chart.types) or chart.type,
        "title": title_of(chart),
        "sheet": chart.sheet.title,
        "at": chart.at,
        "categories": next(iter(categories), None) if same_categories else [*categories],
        "ranges": [_plain(data_series.values) for data_series in series],
        "series": [_text_at(file, data_series.name_reference) or data_series.name for data_series in series],
    }


def resources_of(chart: Chart) -> list[str]:
    """Name a chart's sheet, and the cells with its title and names."""
    resources = [TouchedCells(chart.sheet).resource]
    for reference in (chart.title_reference, *(data_series.name_reference for data_series in chart.series)):
        cells = _cells_at(chart.sheet.file, reference)
        resources += [TouchedCells(cells.sheet, cells.cells).resource] if cells else []
    return [*dict.fromkeys(resources)]


def _plain(reference: str) -> str | None:
    """Write a reference as in a check: no signs, quotes where needed."""
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        return None
    if not match["sheet"] or not _CELLS.fullmatch(match["name"]):
        return reference
    return f"{quoted_title(unquoted(match['sheet']))}!{match['name'].replace('$', '')}"


def _text_at(file: ExcelFile, reference: str) -> str:
    """Read the cells that name a series or a chart."""
    target = _cells_at(file, reference)
    values = (target.sheet.value(*position) for position in positions_in(target.need())) if target else ()
    return " ".join(str(value) for value in values if value is not None)


def _cells_at(file: ExcelFile, reference: str) -> SheetRange | None:
    """Find a reference's cells; None for a name or another file."""
    match = _REFERENCE.fullmatch(reference)
    if match is None or not match["sheet"] or not _CELLS.fullmatch(match["name"]):
        return None
    title = unquoted(match["sheet"]).casefold()
    sheet = next((worksheet for worksheet in file.worksheets if worksheet.title.casefold() == title), None)
    return SheetRange(sheet, parse_cells(match["name"])) if sheet else None
