"""Find the cells a call touches, and compare policy patterns with them."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openpyxl.utils import column_index_from_string, get_column_letter
from openpyxl.worksheet.cell_range import CellRange

from callboard.config import fits
from callboard.messages import Coverage
from callboard.surfaces._surface import UNKNOWN, ToolError
from callboard.surfaces.documents._tables import width_of
from callboard.surfaces.documents.excel._cell_ranges import spread, start_of
from callboard.surfaces.documents.excel._cell_references import all_formulas, mentions, quoted_title, ranges
from callboard.surfaces.documents.excel._dynamic_arrays import spills
from callboard.surfaces.documents.excel._formula_text import LAST_COLUMN, LAST_ROW
from callboard.surfaces.documents.excel._formulas import checked, filled, is_array
from callboard.surfaces.documents.excel._met_conditions import table_around
from callboard.surfaces.documents.excel._named_tables import tables_of
from callboard.surfaces.documents.excel._pivot_plans import source_of
from callboard.surfaces.documents.excel._pivots import new_title
from callboard.surfaces.documents.excel._sheet_controls import (
    chart_of,
    destination,
    drawn_cells,
    find_range,
    find_ranges,
    parse_cells,
    pivot_of,
    sheet_of,
    unquoted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_INDIRECT = re.compile(r"\b(?:INDIRECT|OFFSET)\s*\(", re.IGNORECASE)
"""Functions that read cells beyond those that they name."""
_AREA = re.compile(r"([A-Z]{1,3})?([0-9]{1,7})?(?::([A-Z]{1,3})?([0-9]{1,7})?)?", re.IGNORECASE)
_MAX_COMPARED = 2600
"""The largest number of cells that are compared one by one with a pattern that names no area."""


@dataclass(frozen=True)
class TouchedCells:
    """A sheet and its touched cells; None for the whole sheet."""

    sheet: Sheet
    cells: CellRange | None = None

    @property
    def resource(self) -> str:
        """The name of the sheet or range in policy rules."""
        return f"range:{self.sheet.title}!{self.cells.coord}" if self.cells else f"sheet:{self.sheet.title}"


def touched(file: ExcelFile, arguments: Mapping[str, Any]) -> list[TouchedCells]:
    """List the sheets and the cells that a call touches, if any.

    Raises:
        ToolError: If the sheet, control or range does not exist.
    """
    if "delete" in arguments:
        find = pivot_of if "totals" in arguments else chart_of
        return [TouchedCells(find(file, arguments["control_id"], arguments["control_name"]).sheet)]
    if "path" in arguments and arguments.get("cells"):
        return [pictured_cells(file, arguments["cells"])]
    if "sheet" not in arguments:
        return []
    selector = (arguments["sheet"], arguments["control_id"], arguments["control_name"])
    if arguments.get("what") == "sheet":
        return [TouchedCells(sheet_of(file, *selector))]
    if "what" in arguments:  # whole rows and columns
        return [TouchedCells(find_range(file, selector[0], "", *selector[1:]).sheet)]
    if "," in arguments.get("cells", ""):
        sheet, ranges_of_call = find_ranges(file, selector[0], arguments["cells"], *selector[1:])
        return [TouchedCells(sheet, cells) for cells in ranges_of_call]
    if "cells" in arguments:
        target = find_range(file, selector[0], arguments["cells"], *selector[1:])
        return [TouchedCells(target.sheet, target.cells)]
    if "cell" in arguments:
        rows = arguments.get("values") or [arguments.get("header", []), *arguments.get("rows", [])]
        target = start_of(file, selector[0], arguments["cell"], *selector[1:])
        return [TouchedCells(target.sheet, spread(target, len(rows), width_of(rows)))]
    if "values" in arguments:
        return [TouchedCells(find_range(file, selector[0], "", *selector[1:]).sheet)]
    return [TouchedCells(sheet_of(file, *selector))]


def pictured_cells(file: ExcelFile, cells: str) -> TouchedCells:
    """Find the range, table or sheet that a picture shows.

    Raises:
        ToolError: If there are no such cells.
    """
    sheets = [sheet for sheet in file.worksheets if sheet.title.casefold() == unquoted(cells).casefold()]
    if sheets:
        return TouchedCells(sheets[0])
    target = find_range(file, "", cells)
    return TouchedCells(target.sheet, target.need())


def canonical(file: ExcelFile, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Make the sheet and the cells, like ``A1:C3``, explicit in the arguments.

    Raises:
        ToolError: If the sheet, control or range does not exist.
    """
    explicit_arguments = dict(arguments)
    targets = touched(file, arguments)
    if not targets:
        return explicit_arguments
    target = targets[0]
    if "path" in arguments:
        title = quoted_title(target.sheet.title)
        return {**arguments, "cells": f"{title}!{target.cells.coord}" if target.cells else target.sheet.title}
    if "sheet" in arguments:
        explicit_arguments["sheet"] = target.sheet.title
    if target.cells is not None and "cells" in arguments:
        explicit_arguments["cells"] = ",".join(entry.cells.coord for entry in targets if entry.cells is not None)
    if target.cells is not None and "cell" in arguments:
        explicit_arguments["cell"] = f"{get_column_letter(target.cells.min_col)}{target.cells.min_row}"
    if anchor := arguments.get("anchor"):
        explicit_arguments["anchor"] = parse_cells(str(anchor)).coord
    return explicit_arguments


def resources(file: ExcelFile, tool: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Name the sheets and ranges that a call and its formula touch.

    Raises:
        ToolError: If the sheet, control or range does not exist.
    """
    targets = touched(file, arguments)
    if not targets:
        yield from (f"sheet:{title}" for title in ([arguments["title"]] if "title" in arguments else file.titles))
        return
    yield from (entry.resource for entry in targets)
    target = targets[0]
    if tool == "rename_sheet":
        yield f"sheet:{arguments['title']}"
        followers = (
            reference.sheet for reference in all_formulas(file) if mentions(reference.formula, target.sheet.title)
        )
        yield from (f"sheet:{title}" for title in followers if title)
    if tool == "format_cells" and (where := arguments.get("where")):
        columns = [str(condition.get("column", "")) for condition in where]
        areas_read = (
            table_around(target.sheet, entry.cells, columns) for entry in targets if entry.cells and any(columns)
        )
        yield from (TouchedCells(target.sheet, area).resource for area in areas_read)
    if to := arguments.get("to"):
        title, _ = destination(str(to))
        yield f"sheet:{_title(file, title) if title else target.sheet.title}"
    elif tool == "insert_pivot":
        yield f"sheet:{new_title(file)}"
    if "delete" in arguments:
        yield from _drawn(file, tool, arguments, target.sheet)
    if anchor := arguments.get("anchor"):
        yield TouchedCells(target.sheet, parse_cells(anchor)).resource
    for formula in filter(None, (arguments.get("formula"), arguments.get("source"))):
        if spills(str(formula)):  # its results may fill any free cells
            yield f"sheet:{target.sheet.title}"
        yield from _read_by(file, target, str(formula) if str(formula).lstrip()[:1] in "={" else f"={formula}")


def _drawn(file: ExcelFile, tool: str, arguments: Mapping[str, Any], sheet: Sheet) -> Iterator[str]:
    """Name the cells that a chart or pivot table will show."""
    cells = arguments.get("cells", "")
    if tool == "edit_pivot" and not arguments["delete"]:
        source = source_of(pivot_of(file, arguments["control_id"], arguments["control_name"]), cells)
        yield TouchedCells(source.sheet, source.cells).resource
    elif cells:
        source = drawn_cells(sheet, cells)
        yield TouchedCells(source.sheet, source.cells).resource


def _read_by(file: ExcelFile, target: TouchedCells, formula: str) -> Iterator[str]:
    """Name the ranges that a filled formula reads.

    A reference whose range is unknown counts as its whole sheet.
    """
    if target.cells is None:
        return
    text = checked(formula)
    if _INDIRECT.search(text):
        yield UNKNOWN
    furthest = text if is_array(formula) else filled(text, target.cells)
    for (_, sheet, first), (_, _, last) in zip(ranges(text[1:]), ranges(furthest[1:]), strict=True):
        if ":" in sheet:  # a span of sheets: those between count too
            yield from (f"sheet:{title}" for title in file.titles)
            continue
        try:
            area: CellRange = parse_cells(first).union(parse_cells(last))  # type: ignore[no-untyped-call]
        except ToolError:
            yield from _sheets_of(file, target.sheet, sheet, first, frozenset())
        else:
            title = _title(file, sheet) or target.sheet.title
            yield f"sheet:{title}" if _INDIRECT.search(text) else f"range:{title}!{area.coord}"


def _sheets_of(
    file: ExcelFile, formula_sheet: Sheet, sheet: str, name: str, visited_names: frozenset[str]
) -> Iterator[str]:
    """Name the sheets of a reference that is not a range.

    The reference is whole rows, a table or a defined name.

    Names that refer to other names are followed.
    """
    key = name.partition("[")[0].casefold()
    if sheet or _area(name) is not None:
        yield f"sheet:{_title(file, sheet) or formula_sheet.title}"
    for worksheet in file.worksheets:
        if key in {table.name.casefold() for table in tables_of(worksheet)}:
            yield f"sheet:{worksheet.title}"
            return
    definitions = [
        (local or formula_sheet, element.text or "")
        for defined_name, local, element in file.names()
        if defined_name.casefold() == key
    ]
    for owner, text in definitions if key not in visited_names else ():
        if _INDIRECT.search(text):
            yield UNKNOWN
        for _, inner_sheet, inner in ranges(text):
            if inner_sheet:
                yield from (f"sheet:{title}" for title in file.titles if mentions(text, title))
            else:
                yield from _sheets_of(file, owner, "", inner, visited_names | {key})
    if not definitions and not sheet and _area(name) is None:
        yield UNKNOWN


def _title(file: ExcelFile, sheet: str) -> str:
    """Return a sheet's title in the workbook's spelling."""
    return next((title for title in file.titles if title.casefold() == sheet.casefold()), sheet)


def coverage(pattern: str, resource: str) -> Coverage:
    """Compare a pattern for sheets and ranges with a resource.

    Titles are case-insensitive.

    A pattern whose cells are unknown counts as covering a part of the resource.
    """
    kind, _, name = resource.partition(":")
    title, _, cells = name.rpartition("!") if kind == "range" else (name, "", "")
    pattern_kind, _, pattern_name = pattern.casefold().partition(":")
    if pattern_kind == "sheet":
        return Coverage.ALL if fits(unquoted(pattern_name), title.casefold()) else Coverage.NONE
    if pattern_kind == "range":
        pattern_title, mark, pattern_cells = pattern_name.rpartition("!")
        pattern_title, pattern_cells = (pattern_title, pattern_cells) if mark else (pattern_name, "*")
        if not fits(unquoted(pattern_title), title.casefold()):
            return Coverage.NONE
        return _coverage_of_cells(pattern_cells, cells)
    if any(
        fits(pattern, text) for candidate in (resource, f"sheet:{title}") for text in (candidate, candidate.casefold())
    ):
        return Coverage.ALL
    area = parse_cells(cells) if cells else CellRange("A1:Z100")
    positions = itertools.product(range(area.min_row, area.max_row + 1), range(area.min_col, area.max_col + 1))
    first = itertools.islice(positions, _MAX_COMPARED)  # only a part of a large range or a whole sheet
    cell_resources = (f"range:{title}!{get_column_letter(column)}{row}" for row, column in first)
    touched_in_part = any(
        fits(pattern, text) for cell_resource in cell_resources for text in (cell_resource, cell_resource.casefold())
    )
    return Coverage.PART if touched_in_part else Coverage.NONE


def _coverage_of_cells(pattern: str, cells: str) -> Coverage:
    """Compare a pattern's cells with a range; empty for a whole sheet."""
    if pattern == "*":
        return Coverage.ALL
    areas = [_area(part) for part in pattern.split(",")]
    is_single = bool(cells) and ":" not in cells
    if any(area is None for area in areas):  # a glob matches the text of one cell; its larger areas are unknown
        globbed = set(pattern) & set("*?[")
        cell_coverage = Coverage.ALL if fits(pattern, cells.casefold()) else Coverage.NONE
        return cell_coverage if is_single and globbed else Coverage.PART
    if not cells:
        return Coverage.PART
    target = parse_cells(cells)
    if any(target.issubset(area) for area in areas if area is not None):
        return Coverage.ALL
    return Coverage.NONE if all(target.isdisjoint(area) for area in areas if area is not None) else Coverage.PART


def _area(text: str) -> CellRange | None:
    """Parse cells like ``b2`` or ``A1:C3``, or whole lines like ``B:D``."""
    match = _AREA.fullmatch(text.strip().replace("$", ""))
    if match is None:
        return None
    first, top, last, bottom = match.groups()
    is_range = ":" in text
    if not is_range and not (first and top):
        return None
    last, bottom = (last, bottom) if is_range else (first, top)
    columns = sorted((column_index_from_string(first or "A"), column_index_from_string(last or "XFD")))
    rows = sorted((int(top or 1), int(bottom or LAST_ROW)))
    if columns[1] > LAST_COLUMN or not 1 <= rows[0] <= rows[1] <= LAST_ROW:
        return None
    return CellRange(min_col=columns[0], min_row=rows[0], max_col=columns[1], max_row=rows[1])
