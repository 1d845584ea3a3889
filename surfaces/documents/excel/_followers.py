"""Validations, formats and objects that follow rows and columns which change places."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._package import local
from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._charts import drawings_of
from callboard.surfaces.documents.excel._formula_text import translated
from callboard.surfaces.documents.excel._sheet import where_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._shift import Axis

_RULES = frozenset({"dataValidation", "conditionalFormatting", "ignoredError"})
_FORMULAS = frozenset({"formula", "formula1", "formula2"})
_ROW_LOOK = ("ht", "customHeight", "s", "customFormat", "thickTop", "thickBot")
_ANCHORS = frozenset({"twoCellAnchor", "oneCellAnchor"})
_CONTROL = re.compile(
    rb"<x:ClientData\s+ObjectType=\"(?!Note)(\w+)\"(?:(?!</x:ClientData>).)*?<x:Anchor>\s*([0-9,\s]+?)\s*</x:Anchor>",
    re.DOTALL,
)


def check_controls(sheet: Sheet, cells: CellRange) -> None:
    """Refuse to move cells under form controls.

    The cells that these are linked to would not follow.

    Raises:
        ToolError: If one stands on the cells.
    """
    for part in sheet.file.package.related(sheet.part, "vmlDrawing"):
        for kind, anchor in _CONTROL.findall(sheet.file.package.bytes_of(part)):
            column, _, row, *_ = (int(number) + 1 for number in anchor.split(b","))
            if cells.min_row <= row <= cells.max_row and cells.min_col <= column <= cells.max_col:
                msg = (
                    f"a form control ({kind.decode()}) stands on {where_of(row, column)}, and its linked cell would "
                    "not follow; move the cells in Excel, or delete the control first"
                )
                raise ToolError(msg)


def follow(sheet: Sheet, cells: CellRange, moves: dict[int, int], axis: Axis) -> Answer:
    """Let rules and objects follow the rows or columns of a range.

    A shape or chart follows if it stands within one row or column, a picture with its top left corner. Others stay.

    Args:
        sheet: The sheet.
        cells: The range.
        moves: The new numbers of the rows or columns that change places.
        axis: ``row`` or ``col``.

    Returns:
        The number of objects that followed, and of those that stayed, if any.
    """
    for element in _rules(sheet):
        _follow_rule(sheet, element, cells, moves, axis)
    moved_count = unmoved_count = 0
    for part in drawings_of(sheet):
        for anchor in sheet.file.package.tree(part):
            old = _anchored_number(anchor, cells, axis)
            if old not in moves:
                continue
            if _is_within_one(anchor, axis):
                sheet.file.package.edit(part)
                for end in _ends(anchor, axis):
                    end.text = str(int(end.text) + moves[old] - old)
                moved_count += 1
            else:
                unmoved_count += 1
    return {
        name: count for name, count in (("objects_moved", moved_count), ("objects_not_moved", unmoved_count)) if count
    }


def move_row_looks(sheet: Sheet, cells: CellRange, moves: dict[int, int]) -> None:
    """Let heights and formats of rows follow.

    They stay if other cells stand beside the range.
    """
    across = range(cells.min_col, cells.max_col + 1)
    if any(row in moves and column not in across for row, column in sheet.filled()):
        return
    looks = {old: {name: sheet.rows[old].get(name) for name in _ROW_LOOK} for old in moves if old in sheet.rows}
    for old, new in moves.items():
        look = {name: value for name, value in looks.get(old, {}).items() if value is not None}
        if not look and new not in sheet.rows:
            continue
        line = sheet.make_row(new)
        for name in _ROW_LOOK:
            line.attrib.pop(name, None)
        line.attrib.update(look)


def _rules(sheet: Sheet) -> Iterator[Element]:
    for part in sheet.root:
        if local(part) in {"dataValidations", "conditionalFormatting", "ignoredErrors", "extLst"}:
            yield from (element for element in part.iter() if local(element) in _RULES)


def _follow_rule(sheet: Sheet, element: Element, cells: CellRange, moves: dict[int, int], axis: Axis) -> None:
    inner = next((child for child in element if local(child) == "sqref"), None)
    text = (inner.text if inner is not None else element.get("sqref")) or ""
    old = [area_of(reference) for reference in text.split()]
    new = [area for old_area in old for area in _moved_area(old_area, cells, moves, axis)]
    if not old or [area.coord for area in new] == [area.coord for area in old]:
        return
    new.sort(key=lambda area: (area.min_row, area.min_col))
    sheet.edit()
    ranges = " ".join(area.coord for area in new)
    if inner is not None:
        inner.text = ranges
    else:
        element.set("sqref", ranges)
    down, right = new[0].min_row - old[0].min_row, new[0].min_col - old[0].min_col
    for formula in element.iter():
        holder = next((child for child in formula if local(child) == "f"), formula)
        if local(formula) in _FORMULAS and holder.text:
            holder.text = translated(holder.text, down, right)


def _moved_area(area: CellRange, cells: CellRange, moves: dict[int, int], axis: Axis) -> list[CellRange]:
    """Move the part of an area that lies within the range."""
    inside = area.intersection(cells) if not area.isdisjoint(cells) else None  # type: ignore[no-untyped-call]
    if inside is None:
        return [area]
    first, last = _span(inside, axis)
    covered = {number for number in moves if first <= number <= last}
    if {moves[number] for number in covered} == covered:
        return [area]
    numbers = sorted({*range(first, last + 1)} - covered | {moves[number] for number in covered})
    groups = itertools.groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    lines = [[number for _, number in group] for _, group in groups]
    return [_with_span(inside, axis, line[0], line[-1]) for line in lines] + _around(area, inside)


def _around(area: CellRange, inside: CellRange) -> list[CellRange]:
    """Return the parts of an area above, below and beside another."""
    left, top, right, bottom = area.bounds
    parts = [
        (left, top, right, inside.min_row - 1),
        (left, inside.max_row + 1, right, bottom),
        (left, inside.min_row, inside.min_col - 1, inside.max_row),
        (inside.max_col + 1, inside.min_row, right, inside.max_row),
    ]
    return [CellRange(None, *part) for part in parts if part[0] <= part[2] and part[1] <= part[3]]


def _span(area: CellRange, axis: Axis) -> tuple[int, int]:
    return (area.min_row, area.max_row) if axis == "row" else (area.min_col, area.max_col)


def _with_span(area: CellRange, axis: Axis, first: int, last: int) -> CellRange:
    if axis == "row":
        return CellRange(None, area.min_col, first, area.max_col, last)
    return CellRange(None, first, area.min_row, last, area.max_row)


def _ends(anchor: Element, axis: Axis) -> list[Element]:
    """Return an anchor's elements with the numbers of rows or columns."""
    ends = [end for end in anchor if local(end) in {"from", "to"}]
    return [number for end in ends for number in end if local(number) == axis]


def _anchored_number(anchor: Element, cells: CellRange, axis: Axis) -> int | None:
    """Return the row or column of an object that begins on cells."""
    if local(anchor) not in _ANCHORS or anchor.get("editAs") == "absolute":
        return None
    rows, columns = _ends(anchor, "row"), _ends(anchor, "col")
    if not rows or not columns:
        return None
    row, column = int(rows[0].text) + 1, int(columns[0].text) + 1
    if not (cells.min_row <= row <= cells.max_row and cells.min_col <= column <= cells.max_col):
        return None
    return row if axis == "row" else column


def _is_within_one(anchor: Element, axis: Axis) -> bool:
    """Return whether an object belongs to one row or column."""
    if any(local(child) == "pic" for child in anchor):
        return True
    numbers = [int(end.text) for end in _ends(anchor, axis)]
    return len(numbers) > 1 and numbers[0] == numbers[-1]
