"""Protected sheets: their unlocked cells may be filled in, as in Excel."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from openpyxl.utils import get_column_letter

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._sheet import where_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_MOST_SPANS = 20
_SECRETS = ("password", "hashValue", "securityDescriptor")


def check_locks(file: ExcelFile) -> None:
    """Refuse values that an edit wrote into locked cells.

    Raises:
        ToolError: If there are some; the error names the unlocked cells.
    """
    for sheet in file.worksheets:
        locked_cell = next((where_of(*position) for position in sheet.written if is_locked(sheet, *position)), "")
        if locked_cell:
            cells = ", ".join(_spans(sheet))
            free = f"fill in its unlocked cells ({cells})" if cells else "it has no unlocked cells"
            msg = (
                f"{locked_cell} is locked, and the sheet {sheet.title!r} is protected: {free}, or unprotect it in Excel"
            )
            raise ToolError(msg)


def is_locked(sheet: Sheet, row: int, column: int) -> bool:
    """Return whether a cell of a protected sheet can't be filled in."""
    if not sheet.protected or sheet.file.styles.is_unlocked(sheet.style(row, column)):
        return False
    free = (
        area_of(text)
        for entry in sheet.root.iterfind(f"{q('protectedRanges')}/{q('protectedRange')}")
        if not any(entry.get(name) for name in _SECRETS)
        for text in entry.get("sqref", "").split()
    )
    return not any(area.min_row <= row <= area.max_row and area.min_col <= column <= area.max_col for area in free)


def unlocked(sheet: Sheet) -> Answer:
    """Name the unlocked cells of a protected sheet for an observation."""
    return {"unlocked": ", ".join(_spans(sheet))} if sheet.protected else {}


def _spans(sheet: Sheet) -> Iterator[str]:
    """Yield the unlocked cells that the file has, by columns."""
    positions = sorted((column, row) for row, column in sheet.cells if not is_locked(sheet, row, column))
    groups = itertools.groupby(enumerate(positions), key=lambda pair: (pair[1][0], pair[1][1] - pair[0]))
    for count, ((column, _), group) in enumerate(groups):
        if count == _MOST_SPANS:
            yield "…"
            return
        rows = [row for _, (_, row) in group]
        name = get_column_letter(column)
        yield f"{name}{rows[0]}" if len(rows) == 1 else f"{name}{rows[0]}:{name}{rows[-1]}"
