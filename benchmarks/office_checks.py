"""Check programs of the eval sets in `benchmarks/office`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import docx
import openpyxl
from openpyxl.worksheet.cell_range import CellRange

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


def formulas(files: Mapping[str, Path], file: str, sheet: str, cells: Sequence[str], allowed: Sequence[str]) -> object:
    """Check that cells have one of some formulas.

    A column in a formula stands for a cell of the same row.
    """
    book = openpyxl.load_workbook(files[file])
    for name in cells:
        value, row = book[sheet][name].value, re.sub(r"\D", "", name)
        formula_text = re.sub(r"[\s$]", "", str(value)).upper()
        if formula_text not in {re.sub(r"\b([A-Z])\b", rf"\g<1>{row}", formula) for formula in allowed}:
            return f"{name} is {value!r}"
    return True


def number_format(
    files: Mapping[str, Path], file: str, sheet: str, cells: str, places: int | None = None, *, percent: bool = False
) -> object:
    """Check that cells show percentages, or so many decimals."""
    for row in openpyxl.load_workbook(files[file])[sheet][cells]:
        for cell in row:
            match = re.search(r"0(?:\.(0+))?(?![0-9#?])", cell.number_format)
            right = match is not None and (places is None or len(match[1] or "") == places)
            if not right or cell.number_format.endswith("%") is not percent:
                return f"{cell.coordinate} has the format {cell.number_format}"
    return True


def bold(files: Mapping[str, Path], file: str, beginning: str) -> object:
    """Check that only the paragraph with this beginning is bold."""
    for paragraph in docx.Document(str(files[file])).paragraphs:
        expects_bold = paragraph.text.startswith(beginning)
        if paragraph.style.name == "Normal" and any(bool(run.bold) is not expects_bold for run in paragraph.runs):
            return f"{paragraph.text[:30]!r} is {'not' if expects_bold else 'also'} bold"
    return True


def charted_table(files: Mapping[str, Path], file: str) -> object:
    """Check that a workbook has the first table of a document, charted.

    Its name, sheet and place are free. Numbers are numbers, and a chart draws all of them.
    """
    table = [[cell.text for cell in row.cells] for row in docx.Document(str(files[file])).tables[0].rows]
    books = [path for name, path in sorted(files.items()) if name.endswith(".xlsx")]
    differences = [_difference(sheet, table) for book in books for sheet in openpyxl.load_workbook(book).worksheets]
    return True if "" in differences else differences[0] if differences else "there is no workbook"


def _difference(sheet: Any, table: list[list[str]]) -> str:
    corner = next((cell for row in sheet.iter_rows() for cell in row if cell.value == table[0][0]), None)
    if corner is None:
        return "there is no header"
    last_row, last_column = corner.row + len(table) - 1, corner.column + len(table[0]) - 1
    rows = list(sheet.iter_rows(corner.row, last_row, corner.column, last_column, values_only=True))
    expected = [tuple(table[0]), *((row[0], *(float(text.replace(",", "")) for text in row[1:])) for row in table[1:])]
    if rows != expected:
        return "there are other values"
    drawn = [
        CellRange(series.val.numRef.f.rpartition("!")[2].replace("$", ""))
        for chart in sheet._charts
        for series in chart.series
    ]
    numbers = [
        CellRange(min_col=column, max_col=column, min_row=corner.row + 1, max_row=last_row)
        for column in range(corner.column + 1, last_column + 1)
    ]
    if not drawn:
        return "there is no chart"
    complete = all(any(column.issubset(area) for area in drawn) for column in numbers)
    return "" if complete else "the chart draws only a part of the table"


PROGRAMS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function for function in (formulas, number_format, bold, charted_table)
}
"""The functions by the names that the sets use."""
