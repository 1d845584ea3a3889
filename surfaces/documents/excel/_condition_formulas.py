"""Conditions written as formulas, which Excel computes again."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from openpyxl.utils import get_column_letter

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents.excel._cell_values import Date, serial_of
from callboard.surfaces.documents.excel._sheet_controls import column_of

if TYPE_CHECKING:
    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents.excel._met_conditions import CellCondition
    from callboard.surfaces.documents.excel._sheet import Sheet

_MAX_LENGTH = 8_192


def formula_of(sheet: Sheet, cells: CellRange, table: CellRange, where: list[CellCondition], *, header: bool) -> str:
    """Write conditions as one formula for the first cell of a range.

    It is true for the same cells as `cells_meeting`: numbers alone compare with numbers, and capitals do not count.

    Raises:
        ToolError: If a column is missing, or a value can't be compared so.
    """
    tests = []
    for condition in where:
        column = column_of(sheet, table, condition.column, header=header) if condition.column else cells.min_col
        cell = f"{'$' if condition.column else ''}{get_column_letter(column)}{cells.min_row}"
        tests.append(_test(sheet, cell, condition))
    formula = tests[0] if len(tests) == 1 else f"AND({','.join(tests)})"
    if len(formula) > _MAX_LENGTH:
        msg = "the conditions are too long for a formula"
        raise ToolError(msg)
    return formula


def _test(sheet: Sheet, cell: str, condition: CellCondition) -> str:
    operator, value = condition.operator, condition.value
    if operator in {"empty", "filled"}:
        is_filled = f"IFERROR(LEN({cell})>0,TRUE)"
        return is_filled if operator == "filled" else f"NOT({is_filled})"
    text = _quoted(str(value))
    if operator in {"contains", "begins", "ends"} and not str(value):
        return f"NOT(ISBLANK({cell}))"
    if operator == "contains":
        return f"ISNUMBER(SEARCH({_quoted(without_wildcards(str(value)))},{cell}))"
    if operator in {"begins", "ends"}:
        side = "LEFT" if operator == "begins" else "RIGHT"
        return f"IFERROR({side}({cell},{len(str(value))})={text},FALSE)"
    number = number_text(sheet, value)
    if operator in {"=", "<>"}:
        tests = [] if isinstance(value, Date) else [f"EXACT(UPPER({cell}),UPPER({text}))"]
        if isinstance(value, bool):
            tests = [f"IF(ISLOGICAL({cell}),{cell}={str(value).upper()},FALSE)", f"IF(ISTEXT({cell}),{tests[0]},FALSE)"]
        elif tests:
            tests = [f"IF(ISTEXT({cell}),{tests[0]},FALSE)"]
        tests += [f"IF(ISNUMBER({cell}),{cell}={number},FALSE)"] if number else []
        tests += [f"ISBLANK({cell})"] if value == "" else []
        is_equal = tests[0] if len(tests) == 1 else f"OR({','.join(tests)})"
        return is_equal if operator == "=" else f"NOT({is_equal})"
    if not number:
        msg = f"{value!r} is no number and no date, and {operator} compares those"
        raise ToolError(msg)
    return f"IF(ISNUMBER({cell}),{cell}{operator}{number},FALSE)"


def number_text(sheet: Sheet, value: str | bool | float | Date) -> str:  # noqa: FBT001 - a value
    """Write a number or date for a formula; empty for other values."""
    if isinstance(value, bool):
        return ""
    if isinstance(value, Date):
        moment = value.date
        if isinstance(moment, dt.timedelta):
            return repr(moment / dt.timedelta(days=1))
        return f"{serial_of(moment, sheet.file.epoch, 'the condition'):.15g}"
    try:
        return f"{float(str(value)):.15g}"
    except ValueError:
        return ""


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def without_wildcards(text: str) -> str:
    """Escape the wildcards of Excel's searches and filters."""
    return "".join(f"~{letter}" if letter in "~*?" else letter for letter in text)
