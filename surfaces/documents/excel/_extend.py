"""Extend formulas, charts and rules to appended rows."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from openpyxl.utils import get_column_letter

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import local
from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._cell_references import all_formulas, bounds_of, rewritten

if TYPE_CHECKING:
    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents.excel._cell_references import BookFormula
    from callboard.surfaces.documents.excel._named_tables import Table
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._sheet_controls import SheetRange
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_RULES = (q("conditionalFormatting"), q("dataValidation"))
_SQREF = "{http://schemas.microsoft.com/office/excel/2006/main}sqref"
_FILTER = "the name _xlnm._FilterDatabase"
"""Excel keeps it for the filter of a sheet, and extends it itself."""


def extend_totals(sheet: Sheet, cells: CellRange, last: int, count: int, totals: int) -> None:
    """Extend the formulas below new rows that read up to them.

    Raises:
        ToolError: If one of them reads only a single cell of the last row.
    """

    def stretched(title: str, text: str) -> str | None:
        top, left, bottom, right = bounds_of(text)
        if title or bottom != last:
            return None
        if ":" not in text:
            where = f"{get_column_letter(column)}{row - count}"
            msg = (
                f"the total in {where} reads {text} alone, and would leave out new rows; "
                "let its formula read a range first, like =SUM(B2:B5)"
            )
            raise ToolError(msg)
        if top == bottom and left < right:
            return None
        return _lengthened(text, last, count)

    for row in range(last + count + 1, last + count + totals + 1):
        for column in range(cells.min_col, cells.max_col + 1):
            old = sheet.formula(row, column)
            if old and not old.startswith("{"):
                new = rewritten(old[1:], stretched)
                if new != old[1:]:
                    sheet.write_formula(row, column, f"={new}")


def extend_readers(file: ExcelFile, target: SheetRange, last: int, count: int, table: Table | None) -> dict[str, None]:
    """Extend what reads whole columns of a table, as Excel does.

    Return the other charts, names and formulas that end at the former last row.

    Args:
        file: The workbook.
        target: The range before the rows were appended.
        last: Its last row without totals.
        count: The number of new rows.
        table: The table in the range, if it is one.
    """
    sheet, cells = target.sheet, target.need()
    unextended_readers: dict[str, None] = {}

    def longer(reference: BookFormula, title: str, text: str) -> str | None:
        top, left, bottom, right = bounds_of(text)
        if ":" in title and top < bottom == last:  # the same cells of several sheets
            unextended_readers[reference.where] = None
        if (
            (title or reference.sheet).casefold() != sheet.title.casefold()
            or not top < bottom == last
            or left > cells.max_col
            or right < cells.min_col
            or _moves(reference, text, target, count)
        ):
            return None
        covers_column = (
            table is not None
            and cells.min_row <= top <= cells.min_row + table.has_header
            and cells.min_col <= left <= right <= cells.max_col
        )
        new = _lengthened(text, last, count) if covers_column else text
        if new == text:
            unextended_readers[reference.where] = None
        return new

    for reference in list(all_formulas(file)):
        if str(last) in reference.formula and reference.where != _FILTER:  # reading each formula takes long
            changed = rewritten(reference.formula, partial(longer, reference))
            if changed != reference.formula:
                reference.write(changed)
    return unextended_readers


def _moves(reference: BookFormula, text: str, target: SheetRange, count: int) -> bool:
    """Return whether a row reads up to itself, as running totals do."""
    if reference.cell is None or reference.sheet != target.sheet.title:
        return False
    at, cells = area_of(reference.cell.get("r")), target.need()
    within = cells.min_col <= at.min_col <= cells.max_col and bounds_of(text)[0] <= at.min_row <= cells.max_row + count
    return within and not re.search(r"\$[0-9]+$", text)


def _lengthened(text: str, last: int, count: int) -> str:
    return re.sub(rf"(?<=:)(\$?[A-Za-z]+\$?){last}$", rf"\g<1>{last + count}", text)


def extend_rules(sheet: Sheet, cells: CellRange, last: int, count: int) -> None:
    """Extend the last row's conditional formats and validations to new rows."""

    def longer(text: str) -> str:
        area = area_of(text)
        within = cells.min_row <= area.min_row and cells.min_col <= area.min_col <= area.max_col <= cells.max_col
        if not within or area.max_row != last:
            return text
        area.expand(down=count)
        return area.coord

    for element in sheet.root.iter(*_RULES, _SQREF):
        inner = element.tag == _SQREF
        if inner and local(element.getparent()) not in {"conditionalFormatting", "dataValidation"}:  # of a sparkline
            continue
        old = ((element.text if inner else element.get("sqref")) or "").split()
        new = [longer(text) for text in old]
        if new == old:
            continue
        if inner:
            element.text = " ".join(new)
        else:
            element.set("sqref", " ".join(new))
