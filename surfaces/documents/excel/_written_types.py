"""Types of written values: what changes them is said in the answer."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

from openpyxl.utils.datetime import WINDOWS_EPOCH

from callboard.surfaces._numbers import is_ambiguous, parse_number
from callboard.surfaces.documents._tables import short
from callboard.surfaces.documents.excel._cell_elements import is_within
from callboard.surfaces.documents.excel._cell_values import to_json
from callboard.surfaces.documents.excel._sheet import where_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue

    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_MOST_CELLS = 20
_LITERAL = re.compile(r'"[^"]*"|\\.')
"""A text in a number format."""
_DATE = re.compile(r"\s*[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}\b|\s*[0-9]{1,3}:[0-9]{2}")
_NAMES = {"number": "the number", "text": "the text", "truth": "the truth value", "error": "the error"}
_NAMES |= {"date": "the date or time"}


def say_types(file: ExcelFile) -> None:
    """Name in the answer the cells whose values changed their type."""
    notes: dict[str, str] = {}
    for sheet in file.worksheets:
        for row, column in sheet.written:
            if sheet.is_formula(row, column) or _is_of_pivot(sheet, row, column):
                continue
            if change := _change(sheet, row, column):
                notes[where_of(row, column)] = change
    if notes and file.answer is not None:
        file.answer["types"] = {**dict(list(notes.items())[:_MOST_CELLS])}
        if len(notes) > _MOST_CELLS:
            file.answer["types_left_out"] = len(notes) - _MOST_CELLS


def _is_of_pivot(sheet: Sheet, row: int, column: int) -> bool:
    """Return whether a pivot table was written into a cell."""
    areas = (cells for title, cells in sheet.file.pivots_written if title == sheet.title)
    return any(is_within(cells, row, column) for cells in areas)


def _change(sheet: Sheet, row: int, column: int) -> str:
    """Describe what a person may not expect of a written value."""
    value, kind = sheet.raw(row, column)
    old, old_kind = sheet.written[row, column]
    text = short(str(sheet.value(row, column)), 40)
    written_as_date = (row, column) in sheet.dated
    if kind == "date" and not written_as_date:
        return f"the number {sheet.serial(row, column):.15g} shows as {text}, by the format of the cell"
    if kind == "number" and written_as_date:
        return f"the date or time shows as the number {text}, by the format of the cell"
    if isinstance(value, dt.timedelta) and value < dt.timedelta() and sheet.file.epoch == WINDOWS_EPOCH:
        return f"Excel shows the negative time {text} as ####"
    if "empty" not in {kind, old_kind} and kind != old_kind:
        old_text = short(str(to_json(old)), 40)
        return f"{_NAMES[old_kind]} {old_text} has become {_NAMES[kind]} {text}"
    code = sheet.number_format(row, column)
    if kind == "number" and code == "@":
        return f"the number {text} stands in a cell that is formatted as text"
    if kind == "number" and "%" in _LITERAL.sub("", code) and abs(value) > 1 >= abs(old or 0):
        return f"the number {text} shows as {value * 100:.15g}%, by the format of the cell"
    return _text_change(sheet, row, column) if kind == "text" and value != old else ""


def _text_change(sheet: Sheet, row: int, column: int) -> str:
    """Describe a text that a person may take for another type."""
    value, old = str(sheet.raw(row, column)[0]), str(sheet.written[row, column][0])
    text = short(value, 40)
    if sheet.file.styles.is_date(sheet.style(row, column)) and any(map(str.isdigit, value)):
        return f"the text {text!r} is no date or time, although the cell shows such values"
    if not reads_as_number(value):
        return ""
    above = row - 1
    while (above, column) in sheet.written and reads_as_number(str(sheet.raw(above, column)[0])):
        above -= 1
    if any(sheet.raw(row_above, column)[1] == "number" for row_above in (row - 1, above)):
        return f"the text {text!r} below a number is no number, and sums leave it out"
    had_words = any(map(str.isalpha, old)) or not reads_as_number(old)
    if sheet.written[row, column][1] == "text" and had_words and not sheet.is_text(row, column):
        return f"the text {text!r} reads as a number, and stays a text"
    return ""


def reads_as_number(text: str) -> bool:
    """Return whether a person would take a text for a number."""
    return parse_number(text) is not None or is_ambiguous(text)


def numbers_as_text(sheet: Sheet, rows: Iterable[int], columns: Iterable[int]) -> list[JsonValue]:
    """List cells whose text reads as a number, or date among dates."""
    rows, columns = [*rows], [*columns]
    date_columns = {column for column in columns if any(sheet.raw(row, column)[1] == "date" for row in rows)}
    cells: list[JsonValue] = []
    for row in rows:
        for column in columns:
            value, kind = sheet.raw(row, column)
            if kind == "text" and (reads_as_number(str(value)) or (column in date_columns and _DATE.match(str(value)))):
                cells.append(where_of(row, column))
    return cells[:_MOST_CELLS] + ([f"{len(cells) - _MOST_CELLS} more"] if len(cells) > _MOST_CELLS else [])
