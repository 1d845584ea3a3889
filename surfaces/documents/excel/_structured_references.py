"""Structured references: the tables and columns that formulas name."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from callboard.messages import did_you_mean
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._cell_references import all_formulas
from callboard.surfaces.documents.excel._cell_values import escape
from callboard.surfaces.documents.excel._named_tables import check_header, tables_of

if TYPE_CHECKING:
    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents.excel._cell_references import BookFormula
    from callboard.surfaces.documents.excel._named_tables import Table
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_PART = r"\[(?:'.|[^\[\]'])*\]"  # ' escapes the next character
_PARTS = re.compile(rf"\s*{_PART}(?:\s*[,:]\s*{_PART})*\s*")
_STRUCTURED = re.compile(rf"(?P<table>[^\W\d][\w.]*)?\[(?P<inner>(?:'.|[^\[\]']|{_PART})*)\]")
_IN_FORMULA = re.compile(rf"""(?P<other>"(?:[^"]|"")*"|'(?:[^']|'')+'!)|{_STRUCTURED.pattern}""")
_PLAIN_COLUMN = re.compile(r"(\[#This Row\]\s*,\s*)((?:'.|[^\[\]'])+)(?=\]|$)", re.IGNORECASE)
"""XlsxWriter writes ``[@Price]`` as ``[[#This Row],Price]``."""
_ROW = "#This Row"
_ITEMS = {item.casefold(): item for item in ("", "#All", "#Data", "#Headers", _ROW, "#Totals")}


def as_in_files(file: ExcelFile, sheet: Sheet, cells: CellRange, reference: str, formula: str) -> str:
    """Write a structured reference as files hold it.

    ``Prices[@Price]`` becomes ``Prices[[#This Row],[Price]]``, which Excel shows as the former. In a table's own cells
    the table's name may be left out.

    Raises:
        ToolError: If the table or a column does not exist, or the reference is malformed.
    """
    tables = {table.name.casefold(): table for worksheet in file.worksheets for table in tables_of(worksheet)}

    def replacement(match: re.Match[str]) -> str:
        name = match["table"]
        if name is None:
            own_table = next((table for table in tables_of(sheet) if cells.issubset(table.cells)), None)
            if own_table is None:
                msg = (
                    f"{formula!r} is refused: {cells.coord} lies in no table; write the table's name before {match[0]}"
                )
                raise ToolError(msg)
            return _in_file_form(own_table, match["inner"], formula)
        if name.casefold() not in tables:
            names = [table.name for table in tables.values()]
            msg = f"{formula!r} is refused: the workbook has no table {name!r}{did_you_mean(name, names)}"
            raise ToolError(msg)
        return _in_file_form(tables[name.casefold()], match["inner"], formula)

    file_form = _STRUCTURED.sub(replacement, reference)
    if not _STRUCTURED.search(reference):
        msg = f"{formula!r} is refused: {reference!r} is not a reference; write Table[Column] or Table[@Column]"
        raise ToolError(msg)
    return file_form


def _in_file_form(table: Table, inner: str, formula: str) -> str:
    """Check the text in brackets, and write it as files hold it.

    Capitals become those of the table, because IronCalc takes others for another column.
    """
    if inner.startswith("@"):
        column = inner[1:].strip()
        inner = f"[{_ROW}],{column if column.startswith('[') else f'[{column}]'}" if column else _ROW
    nested = inner.lstrip().startswith("[")
    if nested and not _PARTS.fullmatch(inner):
        msg = f"{formula!r} is refused: {table.name}[{inner}] is malformed; write it like Table[[#Headers],[Column]]"
        raise ToolError(msg)
    parts = re.findall(_PART, inner) if nested else [f"[{inner}]"]
    titles = {title.casefold(): title for title in table.columns}
    for number, part in enumerate(parts):
        name = part[1:-1]
        column = re.sub(r"'(.)", r"\1", name)
        if name.casefold() in _ITEMS:
            parts[number] = f"[{_ITEMS[name.casefold()]}]"
        elif column.casefold() in titles:
            parts[number] = _bracketed(titles[column.casefold()])
        else:
            suggestion = did_you_mean(column, table.columns, "there are: " + ", ".join(map(repr, table.columns)))
            msg = f"{formula!r} is refused: the table {table.name} has no column {column!r}{suggestion}"
            raise ToolError(msg)
    if nested:
        separators = [text.strip() for text in re.split(_PART, inner)[1:]]
        return f"{table.name}[{''.join(part + separator for part, separator in zip(parts, separators, strict=True))}]"
    return f"{table.name}{parts[0]}"


def _bracketed(column: str) -> str:
    return "[" + re.sub(r"(['\[\]#])", r"'\1", column) + "]"


def follow_headers(file: ExcelFile) -> None:
    """Update columns of tables, and references to them, from changed headers.

    Excel calls a workbook damaged in which headers and columns differ.

    Raises:
        ToolError: If a header is empty now, or twice in its table.
    """
    for sheet in file.worksheets:
        for table in tables_of(sheet):
            cells = table.cells
            row, across = cells.min_row, range(cells.min_col, cells.max_col + 1)
            if not table.has_header or not any((row, column) in sheet.changed for column in across):
                continue
            header = []
            for column in across:
                value, kind = sheet.raw(row, column)
                if kind not in {"text", "empty"}:
                    sheet.write(row, column, str(sheet.value(row, column)))
                header.append("" if value is None else str(sheet.value(row, column)))
            check_header(header)
            new_names = {}
            for element, old, new in zip(table.column_elements(), table.columns, header, strict=True):
                if old != new:
                    table.edit()
                    element.set("name", escape(new))
                    new_names[old.casefold()] = new
            if new_names:
                _rename_columns(file, table, new_names)


def with_table_names(sheet: Sheet, row: int, column: int, formula: str) -> str:
    """Name the table of references without its name, in a cell's formula.

    XlsxWriter writes totals like ``SUBTOTAL(109,[Price])``.
    """
    if "[#" in formula:
        formula = _IN_FORMULA.sub(lambda match: match[0] if match["other"] else in_brackets(match[0]), formula)
    for table in tables_of(sheet) if "[" in formula else ():
        cells, name = table.cells, table.name
        if cells.min_row <= row <= cells.max_row and cells.min_col <= column <= cells.max_col:
            formula = _IN_FORMULA.sub(lambda match: name + match[0] if _is_bare(match) else match[0], formula)  # noqa: B023 - used at once
    return formula


def refers_to_column(reference: BookFormula, table: Table, name: str) -> bool:
    """Return whether a formula names a column of a table."""
    column = _bracketed(name).casefold()
    return any(
        column in f"[{in_brackets(match['inner'])}]".casefold()
        for match in _IN_FORMULA.finditer(reference.formula)
        if match["inner"] is not None and _is_of_table(match, table, within_table=_is_within_table(reference, table))
    )


def _is_within_table(reference: BookFormula, table: Table) -> bool:
    """Return whether a formula may leave out its table's name."""
    if reference.cell is not None and reference.sheet == table.sheet.title:
        return bool(area_of(reference.cell.get("r")).issubset(table.cells))
    return reference.where == f"the table {table.name}"


def _is_of_table(match: re.Match[str], table: Table, *, within_table: bool) -> bool:
    """Return whether a structured reference names a table of this workbook."""
    if match.string[match.start() - 1 : match.start()] == "!":  # of another workbook
        return False
    return (match["table"] or "").casefold() == table.name.casefold() or (within_table and _is_bare(match))


def in_brackets(reference: str) -> str:
    """Put the column behind ``[#This Row]`` in brackets."""
    return _PLAIN_COLUMN.sub(r"\1[\2]", reference)


def _is_bare(match: re.Match[str]) -> bool:
    """Return whether a reference leaves out its table's name.

    The number of another workbook, as in ``[1]Sheet!A1``, is no such reference.
    """
    return not match["other"] and not match["table"] and not re.match(r"[\w.'!]", match.string[match.end() :])


def _rename_columns(file: ExcelFile, table: Table, new_names: dict[str, str]) -> None:
    """Rewrite all structured references to renamed columns of a table.

    In the table itself, its name may be left out.
    """

    def column(match: re.Match[str]) -> str:
        old = re.sub(r"'(.)", r"\1", match[0][1:-1]).casefold()
        return _bracketed(new_names[old]) if old in new_names else match[0]

    def reference(match: re.Match[str], *, within_table: bool) -> str:
        if match["inner"] is None or not _is_of_table(match, table, within_table=within_table):
            return match[0]
        inner = in_brackets(match["inner"])
        if not inner.lstrip().startswith("["):
            return (match["table"] or "") + re.sub(_PART, column, f"[{inner}]")
        return f"{match['table'] or ''}[{re.sub(_PART, column, inner)}]"

    for sheet in file.worksheets:
        if sheet.blocks is not None:
            sheet.blocks.change_all()
    for formula in list(all_formulas(file)):
        if "[" not in formula.formula:
            continue
        within_table = _is_within_table(formula, table)
        new_formula = _IN_FORMULA.sub(functools.partial(reference, within_table=within_table), formula.formula)
        if new_formula != formula.formula:
            formula.write(new_formula)
