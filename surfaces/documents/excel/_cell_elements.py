"""The elements of a sheet's rows and cells, by their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openpyxl.utils import column_index_from_string, get_column_letter, range_boundaries
from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces.documents._office import q
from callboard.surfaces.documents.excel._formula_text import LAST_COLUMN, LAST_ROW
from callboard.surfaces.documents.excel._plain_cells import PlainCell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from callboard.surfaces.documents._package import Element

ROW, CELL, VALUE, FORMULA, INLINE = (q(name) for name in ("row", "c", "v", "f", "is"))
SIGNS = {
    "equal": "=", "notEqual": "<>", "lessThan": "<", "lessThanOrEqual": "<=", "greaterThan": ">",
    "greaterThanOrEqual": ">=",
}  # fmt: skip
"""The operators of rules, validations and filters, and their signs in formulas."""
OPERATORS = {sign: operator for operator, sign in SIGNS.items()}


def index_rows(
    lines: Iterable[Element], number: int, damaged: Callable[[str], Exception]
) -> tuple[dict[int, Element], dict[tuple[int, int], Element]]:
    """Number rows and their cells; cells without a name get one.

    Args:
        lines: The elements of the rows.
        number: The number of the row before them; 0 for none.
        damaged: Makes the error for a row or a column that no sheet has.
    """
    rows: dict[int, Element] = {}
    cells: dict[tuple[int, int], Element] = {}
    letters: dict[str, int] = {}
    for row in lines:
        number = parse_number(row.get("r"), number + 1, damaged)
        if not 1 <= number <= LAST_ROW:
            msg = f"there is no row {number}"
            raise damaged(msg)
        rows[number] = row
        column = 0
        for cell in row.iterchildren(CELL):
            reference = cell.get("r")
            if reference is None:
                column += 1
                cell.set("r", f"{get_column_letter(column)}{number}")
            else:
                name = reference.rstrip("0123456789")
                column = letters.get(name) or letters.setdefault(name, parse_column(name, damaged))
            cells[number, column] = cell
        row.set("r", str(number))
    return rows, cells


def parse_number(text: str | None, default: int, damaged: Callable[[str], Exception]) -> int:
    """Read a whole number of an attribute, which may be missing."""
    if text is None:
        return default
    try:
        return int(text)
    except ValueError as error:
        msg = f"{text!r} is no number"
        raise damaged(msg) from error


def parse_column(name: str, damaged: Callable[[str], Exception]) -> int:
    """Read the letters of a column as its number."""
    try:
        column = column_index_from_string(name.upper())
    except (ValueError, AttributeError):
        column = LAST_COLUMN + 1
    if column > LAST_COLUMN:
        msg = f"{name!r} is no column"
        raise damaged(msg)
    return column


def area_of(text: str) -> CellRange:
    """Read the cells of a reference, whole rows and columns too."""
    left, top, right, bottom = range_boundaries(text.replace("$", "").upper())
    columns, rows = sorted((left or 1, right or LAST_COLUMN)), sorted((top or 1, bottom or LAST_ROW))
    return CellRange(min_col=columns[0], min_row=rows[0], max_col=columns[1], max_row=rows[1])


def is_within(area: CellRange, row: int, column: int) -> bool:
    """Return whether a cell lies within a range."""
    return bool(area.min_row <= row <= area.max_row and area.min_col <= column <= area.max_col)


def holds(cell: Element) -> bool:
    """Return whether a cell holds something; a format alone is nothing."""
    if isinstance(cell, PlainCell):
        return cell.is_filled
    return any(
        child.tag in {FORMULA, INLINE} or (child.tag == VALUE and (child.text or cell.get("t") == "str"))
        for child in cell
    )


def is_hidden(line: Element, size: str) -> bool:
    """Return whether a row or column is hidden, or has no size."""
    return line.get("hidden") in {"1", "true"} or line.get(size) in {"0", "0.0"}


def drop_placeholders(cells: dict[tuple[int, int], Element], arrays: Iterable[CellRange] = ()) -> None:
    """Remove zeros that stand for the results of formulas.

    Args:
        cells: The cells; the array formulas among them count.
        arrays: The ranges of array formulas in other cells.
    """
    formulas = {position: formula for position, cell in cells.items() if (formula := cell.find(FORMULA)) is not None}
    areas = [area_of(formula.get("ref")) for formula in formulas.values() if formula.get("t") == "array"]
    areas += arrays
    spilled = {position for position in cells if any(is_within(area, *position) for area in areas)} if areas else set()
    for position in formulas.keys() | spilled:
        result = cells[position].find(VALUE)
        if result is not None and result.text == "0" and cells[position].get("t", "n") == "n":
            cells[position].remove(result)
