"""Rich text: a cell's text in runs with different fonts."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from callboard.surfaces._surface import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents.excel._cell_values import escape, unescape
from callboard.surfaces.documents.excel._sheet import SPACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.excel._sheet import Sheet

_IS, _R, _T = (q(name) for name in ("is", "r", "t"))


def change_text(sheet: Sheet, row: int, column: int, new: str, change: Callable[[str], str]) -> None:
    """Change a cell's text; runs keep their fonts.

    Args:
        sheet: The sheet.
        row: The row of a cell that holds a text.
        column: Its column.
        new: The whole new text.
        change: Makes the new text of one run.

    Raises:
        ToolError: If the change concerns several runs at once, or a workbook can't hold the text.
    """
    rich = _rich_text(sheet.cells[row, column], sheet)
    runs = [copy.deepcopy(element) for element in rich if element.tag in {_R, _T}] if rich is not None else []
    texts = [text for run in runs for text in run.iter(_T)]
    new_texts = [change(unescape(text.text or "")) for text in texts]
    if runs and "".join(new_texts) != new:
        where = sheet.cells[row, column].get("r")
        msg = (
            f"{where}: the text stands in parts with different fonts, which its replacement would lose; "
            "replace a text within one part, or write the whole cell with write_range"
        )
        raise ToolError(msg)
    sheet.write(row, column, new)
    for text, content in zip(texts, new_texts, strict=True):
        text.text = escape(content)
        text.set(SPACE, "preserve")
    if runs_with_text := [run for run in runs if any(text.text for text in run.iter(_T))]:
        sheet.cells[row, column].find(_IS)[:] = runs_with_text


def is_rich(sheet: Sheet, row: int, column: int) -> bool:
    """Return whether a text has runs with different fonts."""
    return _rich_text(sheet.cells[row, column], sheet) is not None


def _rich_text(cell: Element, sheet: Sheet) -> Element | None:
    """Return the element of a cell's text if it has runs."""
    text_element = sheet.file.shared_texts[int(cell.findtext(q("v")))] if cell.get("t") == "s" else cell.find(_IS)
    return text_element if text_element is not None and text_element.find(_R) is not None else None
