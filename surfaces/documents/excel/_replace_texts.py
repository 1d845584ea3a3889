"""Texts replaced in cells, and in the links that they show."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from callboard.surfaces._numbers import parse_number
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._find_text import find_pattern, variants_in
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import R_ID
from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._cell_ranges import filled_positions
from callboard.surfaces.documents.excel._cell_values import escape, unescape
from callboard.surfaces.documents.excel._sheet import SPACE, where_of
from callboard.surfaces.documents.excel._text_patterns import compiled, expansion

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._sheet_controls import SheetRange


_MOST_CELLS = 100


def replace(
    target: SheetRange, find: str, replacement: str, *, match_case: bool, whole_cell: bool, is_pattern: bool = False
) -> Answer:
    """Replace a text or a pattern in cells that hold texts.

    A whole text that becomes a number is one, as in Excel, but not in a cell that is formatted as text. The target of a
    link follows if its cell shows it. Numbers, formulas and other targets with the text stay, and are named.

    Raises:
        ToolError: If a text would become too long, or the text to replace stands in several runs of a rich text.
    """
    sheet = target.sheet
    pattern = compiled(find, match_case=match_case) if is_pattern else find_pattern(find, match_case=match_case)
    fill = expansion(pattern, replacement) if is_pattern else lambda _: replacement
    matches: set[str] = set()

    def substitute(text: str) -> str:
        if not is_pattern:
            matches.update(pattern.findall(text))
        return str(pattern.sub(fill, text))

    changed_cells: list[JsonValue] = []
    formulas: list[JsonValue] = []
    numbers: list[JsonValue] = []
    for row, column in filled_positions(sheet, target.need()):
        value, kind = sheet.raw(row, column)
        if sheet.is_formula(row, column) or sheet.is_within_array(row, column):
            if pattern.search(sheet.formula(row, column) + (value if kind == "text" else "")):
                formulas.append(where_of(row, column))
        elif kind != "text":
            if pattern.search(str(sheet.value(row, column) or "")):
                numbers.append(where_of(row, column))
        elif (pattern.fullmatch(value) if whole_cell else True) and (new := substitute(value)) != value:
            _write(sheet, row, column, new, substitute)
            changed_cells.append(where_of(row, column))
    literal = pattern if is_pattern else re.compile(re.escape(find), 0 if match_case else re.IGNORECASE)
    changed_links, unchanged_links = (
        _follow_links(target, literal, fill, {*changed_cells}) if changed_cells else ([], [])
    )
    cell_lists = {"formulas_not_changed": formulas, "numbers_not_changed": numbers}
    cell_lists |= {
        "links_changed": changed_links,
        "links_not_changed": unchanged_links,
        "also_matched": [*variants_in(matches, find)],
    }
    answer: Answer = {"sheet": sheet.title, "changed": len(changed_cells), "cells": changed_cells[:_MOST_CELLS]}
    return answer | {name: cells[:_MOST_CELLS] for name, cells in cell_lists.items() if cells}


def _write(sheet: Sheet, row: int, column: int, new: str, substitute: Callable[[str], str]) -> None:
    """Write a changed text, as a number if it is one now."""
    number = parse_number(new)
    if number is None or number.unit or sheet.is_text(row, column) or is_rich(sheet, row, column):
        change_text(sheet, row, column, new, substitute)
    else:
        sheet.write(row, column, number.value)


def _follow_links(
    target: SheetRange, pattern: Any, fill: Callable[[Any], str], changed_cells: set[JsonValue]
) -> tuple[list[JsonValue], list[JsonValue]]:
    """Change the targets of links that their cells show.

    Returns:
        The cells of these links, and those of other links that contain the text.
    """
    sheet, package = target.sheet, target.sheet.file.package
    links = {link.id: link for link in package.relationships(sheet.part)}
    elements = sheet.root.findall(f"{q('hyperlinks')}/{q('hyperlink')}")
    changed_links: list[JsonValue] = []
    unchanged_links: list[JsonValue] = []
    for element in elements:
        old, area = element.get(R_ID, ""), area_of(element.get("ref"))
        if old not in links or area.isdisjoint(target.need()) or not pattern.search(links[old].target):
            continue
        where = where_of(area.min_row, area.min_col)
        new = pattern.sub(fill, links[old].target)
        text = str(sheet.value(area.min_row, area.min_col) or "")
        if where not in changed_cells or not _shows(text, new):
            unchanged_links.append(where)
            continue
        sheet.edit()
        element.set(R_ID, package.relate_outside(sheet.part, "hyperlink", new))
        if not any(hyperlink.get(R_ID) == old for hyperlink in elements):
            package.unrelate(sheet.part, old)
        changed_links.append(where)
    return changed_links, unchanged_links


def _shows(text: str, target: str) -> bool:
    """Return whether a text is a target, perhaps without a scheme."""
    return bool(text) and target.casefold().rstrip("/").endswith(text.casefold().rstrip("/"))


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
