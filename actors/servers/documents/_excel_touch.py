"""Which sheets and cells a call touches, whichever way it names them, and how they compare with a rule's pattern."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openpyxl.utils import get_column_letter

from callboard.actors.servers._server import UNKNOWN, ToolError
from callboard.actors.servers.documents._excel_cells import spread, start_of
from callboard.actors.servers.documents._excel_controls import parse_cells, place, sheet_of
from callboard.actors.servers.documents._excel_formulas import checked, filled
from callboard.actors.servers.documents._excel_references import holders, mentions, ranges
from callboard.actors.servers.documents._tables import width_of
from callboard.config import fits
from callboard.messages import Coverage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openpyxl.worksheet.cell_range import CellRange
    from openpyxl.worksheet.worksheet import Worksheet
    from pydantic import JsonValue

    from callboard.actors.servers.documents._excel_file import ExcelFile

_INDIRECT = re.compile(r"\bINDIRECT\s*\(", re.IGNORECASE)


@dataclass(frozen=True)
class Touched:
    """A sheet, and the cells of it that are meant; None for all of it."""

    sheet: Worksheet
    cells: CellRange | None = None

    @property
    def resource(self) -> str:
        """Its name for the policy's rules."""
        return f"range:{self.sheet.title}!{self.cells.coord}" if self.cells else f"sheet:{self.sheet.title}"


def touched(file: ExcelFile, arguments: Mapping[str, Any]) -> Touched | None:
    """Find the sheet and the cells that a call means; None for a call that means none.

    Raises:
        ToolError: If there is no such sheet, control or range.
    """
    if "sheet" not in arguments:
        return None
    named = (arguments["sheet"], arguments["control_id"], arguments["control_name"])
    if "cells" in arguments:
        found = place(file, named[0], arguments["cells"], *named[1:])
        return Touched(found.sheet, found.cells)
    if "cell" in arguments:
        rows = arguments.get("values") or [arguments.get("header", []), *arguments.get("rows", [])]
        found = start_of(file, named[0], arguments["cell"], *named[1:])
        return Touched(found.sheet, spread(found, len(rows), width_of(rows)))
    return Touched(sheet_of(file, *named))


def canonical(file: ExcelFile, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Write the sheet that a call means by its title, and its cells like ``A1:C3``.

    Raises:
        ToolError: If there is no such sheet, control or range.
    """
    written = dict(arguments)
    found = touched(file, arguments)
    if found is None:
        return written
    written["sheet"] = found.sheet.title
    if found.cells is not None and "cells" in arguments:
        written["cells"] = found.cells.coord
    if found.cells is not None and "cell" in arguments:
        written["cell"] = f"{get_column_letter(found.cells.min_col)}{found.cells.min_row}"
    if anchor := arguments.get("anchor"):
        written["anchor"] = parse_cells(str(anchor)).coord
    return written


def resources(file: ExcelFile, tool: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Name the sheets and ranges that a call touches, those that its formula reads included.

    Raises:
        ToolError: If there is no such sheet, control or range.
    """
    found = touched(file, arguments)
    if found is None:
        yield from (f"sheet:{title}" for title in ([arguments["title"]] if "title" in arguments else _titles(file)))
        return
    yield found.resource
    if tool == "rename_sheet":
        yield f"sheet:{arguments['title']}"
        followers = (holder.sheet for holder in holders(file) if mentions(holder.formula, found.sheet.title))
        yield from (f"sheet:{title}" for title in followers if title)
    if anchor := arguments.get("anchor"):
        yield Touched(found.sheet, parse_cells(anchor)).resource
    if formula := arguments.get("formula"):
        yield from _read_by(file, found, str(formula))


def _titles(file: ExcelFile) -> list[str]:
    return [sheet.title for sheet in file.book._sheets]  # type: ignore[attr-defined]  # noqa: SLF001 - with chart sheets


def _read_by(file: ExcelFile, found: Touched, formula: str) -> Iterator[str]:
    """Name what a formula reads when it fills some cells: ranges, and sheets where the ranges can't be told."""
    if found.cells is None:
        return
    text = checked(formula)
    if _INDIRECT.search(text):
        yield UNKNOWN
    for (_, sheet, first), (_, _, last) in zip(ranges(text[1:]), ranges(filled(text, found.cells)[1:]), strict=True):
        if ":" in sheet:  # from one sheet to another one: those between count too
            yield from (f"sheet:{title}" for title in _titles(file))
            continue
        try:
            area: CellRange = parse_cells(first).union(parse_cells(last))  # type: ignore[no-untyped-call]
        except ToolError:
            yield from (f"sheet:{title}" for title in _named(file, found.sheet, sheet, first))
        else:
            yield f"range:{_title(file, sheet) or found.sheet.title}!{area.coord}"


def _named(file: ExcelFile, own: Worksheet, sheet: str, name: str) -> list[str]:
    """List the sheets that whole rows, a table or a defined name mean in a formula."""
    if sheet:
        return [_title(file, sheet)]
    wanted = name.partition("[")[0].casefold()
    for other in file.book.worksheets:
        if wanted in {table.displayName.casefold() for table in other.tables.values()}:
            return [other.title]
    for names in (own.defined_names, file.book.defined_names):
        for known, defined in names.items():
            if known.casefold() == wanted:
                return [title for title in _titles(file) if mentions(defined.attr_text or "", title)]
    return [own.title]


def _title(file: ExcelFile, sheet: str) -> str:
    """Give a sheet's title as the workbook writes it."""
    return next((title for title in _titles(file) if title.casefold() == sheet.casefold()), sheet)


def coverage(pattern: str, resource: str) -> Coverage:
    """Compare a pattern for sheets and ranges with one of them; titles are the same in capitals and small letters."""
    kind, _, name = resource.partition(":")
    title, _, cells = name.rpartition("!") if kind == "range" else (name, "", "")
    wanted_kind, _, wanted = pattern.casefold().partition(":")
    if wanted_kind == "sheet":
        return Coverage.ALL if fits(wanted, title.casefold()) else Coverage.NONE
    if wanted_kind == "range":
        wanted_title, _, wanted_cells = wanted.rpartition("!")
        if not fits(wanted_title.strip("'").replace("''", "'"), title.casefold()):
            return Coverage.NONE
        return _of_cells(wanted_cells, cells)
    if any(fits(pattern, text) for text in (resource, f"sheet:{title}")):
        return Coverage.ALL
    # Nobody can tell which cells of a whole sheet an expression for ranges means.
    return Coverage.PART if kind == "sheet" and fits(pattern, f"range:{title}!A1") else Coverage.NONE


def _of_cells(wanted: str, cells: str) -> Coverage:
    """Compare the cells of a pattern with those of a range; it has none if all of a sheet is meant."""
    if wanted == "*":
        return Coverage.ALL
    try:
        area = parse_cells(wanted)
    except ToolError:  # a glob: it fits the text of one cell, and nobody can tell which larger areas it means
        one = bool(cells) and ":" not in cells
        return (Coverage.ALL if fits(wanted, cells.casefold()) else Coverage.NONE) if one else Coverage.PART
    if not cells:
        return Coverage.PART
    meant = parse_cells(cells)
    if meant.issubset(area):
        return Coverage.ALL
    return Coverage.NONE if meant.isdisjoint(area) else Coverage.PART
