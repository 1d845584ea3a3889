"""Notes, links and anchors, which follow their cells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from openpyxl.utils import get_column_letter

from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import local
from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._charts import drawings_of
from callboard.surfaces.documents.excel._sheet import position_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.excel._sheet import Sheet

    Move = Callable[[int, int], tuple[int, int] | None]
    """Gives the new row and column of a cell; None if it is deleted."""

_SHAPE = re.compile(rb"<v:shape\b.*?</v:shape>", re.DOTALL)
_AT = re.compile(rb"<x:(Row|Column)>\s*([0-9]+)\s*</x:\1>")
_ANCHOR = re.compile(rb"<x:Anchor>\s*([0-9,\s]+?)\s*</x:Anchor>")
_ANCHORED = frozenset({"twoCellAnchor", "oneCellAnchor", "anchor"})
_NOTES = ("comments", "threadedComment")


def move_marks(sheet: Sheet, move: Move) -> None:
    """Let links and notes follow their cells."""
    links = sheet.root.find(q("hyperlinks"))
    for link in list(links) if links is not None else ():
        first, _, last = str(link.get("ref", "")).partition(":")
        new = move(*position_of(first)) if first and not last else None
        if first and not last:
            _follow(sheet, sheet.part, link, new)
    if links is not None and len(links) == 0:
        sheet.edit().remove(links)
    package = sheet.file.package
    for kind in _NOTES:
        for part in package.related(sheet.part, kind):
            for note in [
                element for element in package.tree(part).iter() if local(element) in {"comment", "threadedComment"}
            ]:
                _follow(sheet, part, note, move(*position_of(note.get("ref"))))
    for part in package.related(sheet.part, "vmlDrawing"):
        old = package.bytes_of(part)
        shapes = _SHAPE.sub(lambda match: _moved_shape(match[0], move), old)
        if shapes != old:
            package.replace(part, shapes)


def move_anchors(sheet: Sheet, axis: str, index: Callable[[int], int]) -> None:
    """Let charts, pictures and controls follow the cells that they stand on.

    Args:
        sheet: The sheet.
        axis: ``row`` or ``col``.
        index: Gives the new number of a row or column, counted from 0.
    """
    package = sheet.file.package
    for part in (*drawings_of(sheet), sheet.part):
        for anchor in package.tree(part).iter():
            if local(anchor) not in _ANCHORED or anchor.get("editAs") == "absolute":
                continue
            ends = {local(end): element for end in anchor for element in end if local(element) == axis}
            if "from" not in ends:
                continue
            package.edit(part)
            old = int(ends["from"].text)
            ends["from"].text = str(index(old))
            if "to" in ends:
                last = int(ends["to"].text)
                keeps_size = anchor.get("editAs") == "oneCell"
                ends["to"].text = str(last + index(old) - old if keeps_size else index(last))
    for part in package.related(sheet.part, "vmlDrawing"):
        data = package.bytes_of(part)
        new = _SHAPE.sub(lambda shape: _moved_control(shape[0], axis, index), data)
        if new != data:
            package.replace(part, new)


def _follow(sheet: Sheet, part: str, element: Element, new: tuple[int, int] | None) -> None:
    cell = "" if new is None else f"{get_column_letter(new[1])}{new[0]}"
    if cell == element.get("ref"):
        return
    sheet.file.package.edit(part)
    if new is None:
        element.getparent().remove(element)
    else:
        element.set("ref", cell)


def _moved_shape(shape: bytes, move: Move) -> bytes:
    indices = {match[1]: int(match[2]) for match in _AT.finditer(shape)}
    if set(indices) != {b"Row", b"Column"}:
        return shape
    new = move(indices[b"Row"] + 1, indices[b"Column"] + 1)
    if new is None:
        return b""
    new_indices = {b"Row": new[0] - 1, b"Column": new[1] - 1}
    for axis, name in (("row", b"Row"), ("col", b"Column")):
        offset = new_indices[name] - indices[name]
        shape = _ANCHOR.sub(lambda match: _moved_anchor(match[1], axis, lambda number: max(0, number + offset)), shape)  # noqa: B023 - used at once
    return _AT.sub(lambda match: b"<x:%s>%d</x:%s>" % (match[1], new_indices[match[1]], match[1]), shape)


def _moved_control(shape: bytes, axis: str, index: Callable[[int], int]) -> bytes:
    """Move the anchor of a shape; notes have followed their cells."""
    if len(_AT.findall(shape)) > 1:
        return shape
    return _ANCHOR.sub(lambda match: _moved_anchor(match[1], axis, index), shape)


def _moved_anchor(numbers: bytes, axis: str, index: Callable[[int], int]) -> bytes:
    """Move an anchor of VML.

    It has left column, offset, top row, offset, right column, offset, bottom row, offset.
    """
    fields = [int(number) for number in numbers.split(b",")]
    for field_number in (2, 6) if axis == "row" else (0, 4):
        if field_number < len(fields):
            fields[field_number] = index(fields[field_number])
    return b"<x:Anchor>%s</x:Anchor>" % ", ".join(map(str, fields)).encode()


def merged_links(sheet: Sheet) -> list[tuple[Element, CellRange]]:
    """List the links of more than one cell."""
    links = sheet.root.iterfind(f"{q('hyperlinks')}/{q('hyperlink')}")
    return [(link, area_of(link.get("ref"))) for link in links if ":" in str(link.get("ref"))]
