"""Formulas: check them, and fill ranges with them."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from typing import TYPE_CHECKING, Any

from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token, TokenizerError
from openpyxl.utils import column_index_from_string, get_column_letter, quote_sheetname

from callboard.messages import did_you_mean
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._tables import short
from callboard.surfaces.documents.excel._cell_references import areas, bounds_of, functions, ranges
from callboard.surfaces.documents.excel._cell_values import DATE_CODE, SPAN_CODE
from callboard.surfaces.documents.excel._formula_text import LAST_COLUMN, LAST_ROW, leaves_sheet, translated
from callboard.surfaces.documents.excel._functions import named_in_files
from callboard.surfaces.documents.excel._named_tables import tables_of
from callboard.surfaces.documents.excel._sheet import position_of
from callboard.surfaces.documents.excel._structured_references import as_in_files

if TYPE_CHECKING:
    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_MAX_LENGTH = 8192
_PLACES = frozenset(
    ["AREAS", "CELL", "COLUMN", "COLUMNS", "FORMULATEXT", "ISFORMULA", "OFFSET", "ROW", "ROWS", "SHEET", "SHEETS"]
)
"""Functions that may get a formula's own cell: they read where it is, and not its value."""
_DATES = frozenset({"DATE(", "DATEVALUE(", "EDATE(", "EOMONTH(", "TODAY(", "WORKDAY("})
"""The openings of functions that give a date, without a time."""
_OF_SPANS = frozenset({"SUM(", "AVERAGE(", "MEDIAN(", "MIN(", "MAX(", "(", ")", ",", "+", "-", " "})
"""The parts of formulas that make times of times."""
_CELL = re.compile(r"(?P<column>[A-Za-z]{1,3})?(?P<row>[0-9]{1,8})?")  # also a whole column or row
_SHEET = re.compile(r"(?P<start>^|:)(?P<title>'(?:[^']|'')+'|[^'!:]+(?::[^'!:]+)?)!")
_OPENING, _CLOSING = Token.OPEN, Token.CLOSE


def checked(formula: str) -> str:
    """Check an English formula, and return it in the file's notation.

    The braces of an array formula are left out.

    Raises:
        ToolError: If the formula does not begin with ``=``, is malformed, uses an unknown function, or accesses data
            outside the workbook (other files, programs, the network).
    """
    text = formula.strip()
    text = text[1:-1].strip() if is_array(formula) else text
    if not text.startswith("=") or not text[1:].strip() or len(text) > _MAX_LENGTH:
        msg = f"a formula begins with = and has at most {_MAX_LENGTH} characters; {short(text, 40)!r} is not one"
        raise ToolError(msg)
    try:
        tokens: Any = Tokenizer(text)
    except (TokenizerError, IndexError) as error:
        msg = f"{text!r} is not a formula: {error}"
        raise ToolError(msg) from error
    depth = 0
    for token in tokens.items:
        depth += (token.subtype == _OPENING) - (token.subtype == _CLOSING)
        if token.type == Token.SEP and token.subtype == Token.ROW and "{" not in text:
            msg = f"{text!r} is not a formula: arguments are separated by commas"
            raise ToolError(msg)
        if token.type == Token.FUNC and token.subtype == _OPENING:
            token.value = f"{named_in_files(token.value.removesuffix('('), text)}("
        elif token.type == Token.OPERAND and token.subtype == Token.RANGE:
            _check_reference(token.value, text)
    if depth or not tokens.items:
        msg = f"{text!r} is not a formula: its parentheses do not match"
        raise ToolError(msg)
    return str(tokens.render())


def is_array(formula: str) -> bool:
    """Return whether a formula is an array formula, in braces."""
    text = formula.strip()
    return text.startswith("{") and text.endswith("}")


def resolved(file: ExcelFile, sheet: Sheet, cells: CellRange, formula: str) -> str:
    """Check the sheets, names and tables of a formula for some cells.

    Titles are returned as the workbook spells them, and structured references as files hold them.

    Raises:
        ToolError: If one of them is not defined; the error suggests a correction.
    """
    defined_names = {name.casefold() for name, _, _ in file.names()}
    defined_names |= {table.name.casefold() for worksheet in file.worksheets for table in tables_of(worksheet)}
    tokens: Any = Tokenizer(formula)
    for token in tokens.items:
        if token.type != Token.OPERAND or token.subtype != Token.RANGE or token.value.startswith("#"):
            continue
        token.value = _with_titles(file, token.value, formula)
        text = token.value.rpartition("!")[2].strip()
        if "[" in text:
            token.value = as_in_files(file, sheet, cells, text, formula)
        elif text and text.casefold() not in defined_names and not _is_cells(text):
            msg = f"{formula!r} is refused: the workbook has no name {text!r}{_suggestion(sheet, text)}"
            raise ToolError(msg)
    return str(tokens.render())


def fill(sheet: Sheet, cells: CellRange, formula: str) -> None:
    """Fill a range with a formula, moving relative references like Excel.

    The formula is written for the top left cell.

    Raises:
        ToolError: If a cell lies within a merged one, or a reference would leave the sheet or is to the cell itself.
    """
    origin = f"{get_column_letter(cells.min_col)}{cells.min_row}"
    furthest = filled(formula, cells)
    for token, _, _ in ranges(furthest[1:]):
        _check_reference(token.value, furthest)
    by_place = {*functions(formula)} & _PLACES
    for row in range(cells.min_row, cells.max_row + 1):
        for column in range(cells.min_col, cells.max_col + 1):
            where = f"{get_column_letter(column)}{row}"
            if sheet.is_within_merged(row, column):
                msg = f"{where} lies within a merged cell; write to that cell's top left corner"
                raise ToolError(msg)
            moved = _moved(formula, origin, where)
            if not by_place:
                _check_circle(sheet, row, column, moved)
            sheet.write_formula(row, column, moved)


def fill_array(sheet: Sheet, cells: CellRange, formula: str) -> None:
    """Fill a range with one array formula.

    Raises:
        ToolError: If the range has merged cells, or several cells in a table, or the formula reads one of its cells.
    """
    several = cells.size != {"rows": 1, "columns": 1}
    blocked_ranges = [*sheet.merged, *(table.cells for table in tables_of(sheet) if several)]
    if area := next((area for area in blocked_ranges if not area.isdisjoint(cells)), None):
        msg = f"{cells.coord} can't hold an array formula: {area.coord} is merged or a table; choose other cells"
        raise ToolError(msg)
    if not {*functions(formula)} & _PLACES:
        for row in range(cells.min_row, cells.max_row + 1):
            for column in range(cells.min_col, cells.max_col + 1):
                _check_circle(sheet, row, column, formula)
    sheet.write_array(cells, formula)


def show_dates(file: ExcelFile, sheet: Sheet, cells: CellRange, formula: str) -> None:
    """Show dates and durations in cells with the format General.

    The first cell's formula counts: one function that gives a date, a date cell plus or minus numbers, or a sum, a mean
    or a limit of times alone.
    """
    code = DATE_CODE if _is_date(file, sheet, formula) else SPAN_CODE if _is_span(file, sheet, formula) else ""
    if not code:
        return
    for row in range(cells.min_row, cells.max_row + 1):
        for column in range(cells.min_col, cells.max_col + 1):
            sheet.show_date(row, column, code)


def _is_span(file: ExcelFile, formula_sheet: Sheet, formula: str) -> bool:
    tokens: Any = Tokenizer(formula).items
    cells = [token.value for token in tokens if token.subtype == Token.RANGE]
    parts = {token.value.upper() for token in tokens if token.subtype != Token.RANGE}
    if not (parts <= _OF_SPANS and all(map(_is_cells, cells))):
        return False
    sheets = {sheet.title.casefold(): sheet for sheet in file.worksheets}
    has_time = False
    for title, text in areas(formula[1:]):
        sheet = sheets.get(title.casefold()) if title else formula_sheet
        if sheet is None:
            return False
        top, left, bottom, right = bounds_of(text)
        for row, column in sheet.filled():
            if top <= row <= bottom and left <= column <= right:
                value, kind = sheet.raw(row, column)
                is_time = isinstance(value, (dt.time, dt.timedelta))
                if kind in {"number", "date"} and not is_time:
                    return False
                has_time |= is_time
    return has_time


def _is_date(file: ExcelFile, sheet: Sheet, formula: str) -> bool:
    tokens: Any = [token for token in Tokenizer(formula).items if token.type != Token.WSPACE]
    if tokens[0].value.upper() in _DATES:
        depths = itertools.accumulate((token.subtype == _OPENING) - (token.subtype == _CLOSING) for token in tokens)
        return [*depths].index(0) == len(tokens) - 1
    terms, signs = tokens[::2], ["+", *(token.value for token in tokens[1::2])]
    if len(terms) != len(signs) or not {*signs} <= {"+", "-"}:
        return False
    kinds = [_kind(file, sheet, term) for term in terms]
    return kinds.count("date") == 1 and {*kinds} <= {"date", "number"} and signs[kinds.index("date")] == "+"


def _kind(file: ExcelFile, formula_sheet: Sheet, term: Token) -> str:
    """Classify an operand: ``number``, ``date`` or another."""
    if term.subtype == Token.NUMBER:
        return "number"
    title, mark, text = term.value.casefold().rpartition("!")
    match = _CELL.fullmatch(text.replace("$", ""))
    sheets_by_title = {
        name.casefold(): worksheet
        for worksheet in file.worksheets
        for name in (worksheet.title, quote_sheetname(worksheet.title))
    }
    sheet = sheets_by_title.get(title) if mark else formula_sheet
    if term.subtype != Token.RANGE or match is None or not all(match.groups()) or sheet is None:
        return ""
    row, column = int(match["row"]), column_index_from_string(match["column"])
    kind = sheet.raw(row, column)[1]
    if kind == "date" or (sheet.is_formula(row, column) and file.styles.is_date(sheet.style(row, column))):
        return "date" if "y" in sheet.number_format(row, column).lower() else ""
    return kind


def filled(formula: str, cells: CellRange) -> str:
    """Translate a formula from a range's first cell to its last.

    Raises:
        ToolError: If a reference would leave the sheet.
    """
    first, last = (f"{get_column_letter(column)}{row}" for row, column in (cells.top[0], cells.bottom[-1]))
    return _moved(formula, first, last)


def _moved(formula: str, origin: str, to: str) -> str:
    (top, left), (row, column) = position_of(origin), position_of(to)
    moved = translated(formula, row - top, column - left)
    if leaves_sheet(formula, moved):
        msg = f"{formula!r} can't be filled to {to}: a reference would leave the sheet"
        raise ToolError(msg)
    return moved


def _check_circle(sheet: Sheet, row: int, column: int, formula: str) -> None:
    """Refuse a formula that reads its own cell; suggest better ones."""
    title = sheet.title.casefold()
    for reference_sheet, cells in areas(formula):
        top, left, bottom, right = bounds_of(cells)
        if reference_sheet.casefold() in {"", title} and top <= row <= bottom and left <= column <= right:
            letter = get_column_letter(column)
            msg = f"{formula!r} in {letter}{row} refers to its own cell{_above(sheet, row, column)}"
            raise ToolError(msg)


def _above(sheet: Sheet, row: int, column: int) -> str:
    """Name the adjacent numbers above a cell; empty without any."""
    used = sheet.used()
    rows = range(1, min(row, used.max_row + 1) if used else 1)
    number_flags = [isinstance(sheet.value(row_above, column), int | float) for row_above in rows]
    last = max((number for number, is_number in enumerate(number_flags, 1) if is_number), default=0)
    first = next((number for number in range(last, 0, -1) if not number_flags[number - 1]), 0) + 1
    letter = get_column_letter(column)
    return f"; the numbers above it are {letter}{first}:{letter}{last}" if last else ""


def _check_reference(text: str, formula: str) -> None:
    if "|" in text or ("[" in text.partition("!")[0] and "!" in text):
        msg = f"{formula!r} is refused: {text!r} is outside the workbook"
        raise ToolError(msg)
    ends = text.rpartition("!")[2].replace("$", "").split(":")
    for end in ends:
        match = _CELL.fullmatch(end)
        if match is None or (len(ends) == 1 and not match["row"]):  # a name
            continue
        column, row = column_index_from_string(match["column"] or "A"), int(match["row"] or 1)
        if column > LAST_COLUMN or not 1 <= row <= LAST_ROW:
            msg = f"{formula!r} refers to {end}, which lies beyond the last cell of a sheet"
            raise ToolError(msg)


def _is_cells(text: str) -> bool:
    """Return whether a reference is cells, and no name."""
    ends = text.rpartition("!")[2].replace("$", "").rstrip("#").split(":")
    matches = [_CELL.fullmatch(end) for end in ends]
    return all(match and any(match.groups()) and (len(ends) == 2 or match["row"]) for match in matches)


def _with_titles(file: ExcelFile, reference: str, formula: str) -> str:
    """Spell sheets as the workbook does, and refuse undefined ones."""
    spellings = {sheet.title.casefold(): sheet.title for sheet in file.worksheets}

    def spelled(match: re.Match[str]) -> str:
        quoted = match["title"].startswith("'")
        titles = match["title"][1:-1].replace("''", "'") if quoted else match["title"]
        for title in titles.split(":"):  # a span of sheets
            if title.casefold() not in spellings:
                suggestion = did_you_mean(
                    title, spellings.values(), "there are: " + ", ".join(map(repr, spellings.values()))
                )
                msg = f"{formula!r} is refused: there is no sheet {title!r}{suggestion}"
                raise ToolError(msg)
        spelling = ":".join(spellings[title.casefold()] for title in titles.split(":"))
        if quoted:
            spelling = "'" + spelling.replace("'", "''") + "'"
        return f"{match['start']}{spelling}!"

    return _SHEET.sub(spelled, reference)


def _suggestion(sheet: Sheet, name: str) -> str:
    """Suggest the cells of the column with this header."""
    used = sheet.used()
    if used is None:
        return "; write cells, like B2"
    for column in range(used.min_col, used.max_col + 1):
        if str(sheet.value(used.min_row, column) or "").strip().casefold() == name.casefold():
            first = f"{get_column_letter(column)}{used.min_row + 1}"
            last = f"{get_column_letter(column)}{used.max_row}"
            return f"; the column {name!r} is {first}:{last}: write {first} for the cell in the same row"
    return "; write cells, like B2, or name a range in Excel first"
