"""The base of the PowerPoint tools: editing a deck, and common parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._formats import FormatTools
from callboard.surfaces.documents._office import replacing
from callboard.surfaces.documents._package import local
from callboard.surfaces.documents.powerpoint._deck import DeckFile, parse_xml, placeholder_of
from callboard.surfaces.documents.powerpoint._deck_controls import control_of, find
from callboard.surfaces.documents.powerpoint._shapes import Frame, SlideShape, add_shape, next_shape_id, shapes_of
from callboard.surfaces.documents.powerpoint._text_fit import overflow_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents._workspace import Snapshot
    from callboard.surfaces.documents.powerpoint._deck import Slide

POWERPOINT = ("powerpoint",)
SLIDE = ("slide",)
TEXT = ("title", "text")
TABLE = ("table",)
TEXT_OR_TABLE = (*TEXT, *TABLE)
CHART = ("chart",)
SHAPES = (*TEXT, *TABLE, *CHART, "picture", "object")
ANY = (*SLIDE, *SHAPES)

Lines = Annotated[
    list[str],
    Field(min_length=1, max_length=500, description="The paragraphs; two spaces at the start for each deeper level."),
]
Place = Annotated[
    list[float],
    Field(max_length=4, description="Left, top, width and height in percent of the slide; empty for a free place."),
]
Number = Annotated[int | None, Field(ge=1, description="Its new number in the deck, from 1; null for the usual place.")]
_GROWS = '<a:bodyPr wrap="square" rtlCol="0"><a:spAutoFit/></a:bodyPr>'
_MARGIN = 5
_LOWEST = 92
"""Of a free place, in percent of the slide."""


class PowerPointEditor(FormatTools):
    """Reads and replaces ``.pptx`` files; no file stays open."""

    def _load(self, snapshot: Snapshot) -> DeckFile:
        return DeckFile.load(snapshot, self._workspace.max_bytes)

    def _editing(self, document: str) -> AbstractContextManager[DeckFile]:
        return replacing(self._workspace, document, self._load)


def add_text_box(slide: Slide, place: list[float]) -> Element:
    """Add an empty text box, by default at a free place.

    Raises:
        ToolError: If the place is not on the slide.
    """
    frame, number = frame_for(slide, place, None), next_shape_id(slide)
    shape = parse_xml(
        f'<p:sp><p:nvSpPr><p:cNvPr id="{number}" name="TextBox {number}"/><p:cNvSpPr txBox="1"/><p:nvPr/></p:nvSpPr>'
        f'<p:spPr><a:xfrm><a:off x="{frame.left}" y="{frame.top}"/><a:ext cx="{frame.width}" cy="{frame.height}"/>'
        '</a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom><a:noFill/></p:spPr>'
        f"<p:txBody>{_GROWS}<a:lstStyle/><a:p/></p:txBody></p:sp>"
    )
    add_shape(slide, shape)
    return shape


def shape_answer(slide: Slide, element: Element) -> Answer:
    """Name a shape's control, and warn of overflow and covered shapes."""
    answer = control_of(slide, element)
    shapes = shapes_of(slide)
    shape = next(shape for shape in shapes if shape.element is element)
    if overflow := overflow_of(shape):
        answer["overflow"] = overflow
    covered_ids = [other.id for other in shapes if other is not shape and _covers(shape, other)]
    return answer | ({"covers": [*covered_ids]} if covered_ids else {})


def _covers(shape: SlideShape, other: SlideShape) -> bool:
    """Return whether a shape covers another one.

    Empty placeholders, and shapes without text behind all of it, do not count.
    """
    frame, other_frame = shape.frame, other.frame
    if not _meet(frame, other_frame) or frame is None or other_frame is None:
        return False
    is_behind = other_frame.left <= frame.left and other_frame.top <= frame.top
    is_behind = is_behind and other_frame.left + other_frame.width >= frame.left + frame.width
    is_behind = is_behind and other_frame.top + other_frame.height >= frame.top + frame.height
    return not (other.is_empty and (other.placeholder or is_behind))


def _meet(first: Frame | None, second: Frame | None) -> bool:
    """Return whether a frame covers a tenth of another one or more."""
    if first is None or second is None:
        return False
    width = min(first.left + first.width, second.left + second.width) - max(first.left, second.left)
    height = min(first.top + first.height, second.top + second.height) - max(first.top, second.top)
    return (
        width > 0 and height > 0 and 10 * width * height > min(first.width * first.height, second.width * second.height)
    )


def target_of(file: DeckFile, control_id: str, control_name: str, kind: str) -> tuple[Slide, SlideShape | None]:
    """Return a new shape's slide, and the placeholder that it fills.

    Args:
        file: The deck.
        control_id: The id of a slide or of an empty placeholder.
        control_name: The observed name; empty for any.
        kind: The kind of the new shape.

    Raises:
        ToolError: If the control is neither.
    """
    control = find(file, control_id, control_name)
    if control.shape is None:
        candidates = [shape for shape in shapes_of(control.slide) if _takes(shape, kind)]
        return control.slide, next(iter(candidates), None)
    if _takes(control.shape, kind):
        return control.slide, control.shape
    msg = f"{control_id!r} is no empty placeholder for a {kind}; pass a slide, such as {control.slide.id}"
    raise ToolError(msg)


def _takes(shape: SlideShape, kind: str) -> bool:
    mark = placeholder_of(shape.element)
    if mark is None or not shape.is_empty or local(shape.element) != "sp":
        return False
    kinds = {"table": {"tbl", "obj"}, "chart": {"chart", "obj"}, "picture": {"pic", "clipArt", "obj"}}[kind]
    return mark.get("type", "obj") in kinds


def frame_for(slide: Slide, place: list[float], placeholder: SlideShape | None) -> Frame:
    """Return the frame of a new shape: named, the placeholder's, or free.

    Raises:
        ToolError: If the place is not on the slide.
    """
    if place:
        return frame_of(slide, place)
    if placeholder is not None and placeholder.frame is not None:
        return placeholder.frame
    return _free_frame(slide)


def frame_of(slide: Slide, place: list[float]) -> Frame:
    """Return the frame of a place in percent.

    Raises:
        ToolError: If it is not on the slide.
    """
    width, height = slide.file.size
    if len(place) != 4 or min(place[2:]) <= 0 or max(place) > 200 or min(place) < -100:
        msg = f"{place} is no place; give left, top, width and height in percent of the slide, such as 5, 25, 90, 65"
        raise ToolError(msg)
    left, top, wide, high = place
    return Frame(
        round(left * width / 100), round(top * height / 100), round(wide * width / 100), round(high * height / 100)
    )


def _free_frame(slide: Slide) -> Frame:
    """Find a free place below the title, else all of it."""
    frames = [(shape, frame) for shape in shapes_of(slide) if (frame := shape.frame) is not None]
    width, height = slide.file.size
    titles = [frame for shape, frame in frames if shape.kind == "title"]
    drawn = [frame for shape, frame in frames if shape.kind != "title" and not (shape.is_empty and shape.placeholder)]
    filled = [frame for shape, frame in frames if shape.kind != "title" and not shape.is_empty]
    top = max([_MARGIN * height // 100, *(frame.top + frame.height for frame in titles if frame.top < height // 3)])
    left, right, bottom = _MARGIN * width // 100, (100 - _MARGIN) * width // 100, _LOWEST * height // 100
    gap = width // 50
    for others in filter(None, (drawn, filled)):  # shapes without text may be decoration at the edges
        lowest = max([top, *(frame.top + frame.height for frame in others)])
        rightmost = max([left, *(frame.left + frame.width for frame in others)])
        if bottom - lowest > height // 4:
            return Frame(left, lowest + gap, right - left, bottom - lowest - gap)
        if right - rightmost > width * 3 // 10:
            return Frame(rightmost + gap, top, right - rightmost - gap, bottom - top)
    return Frame(left, top, right - left, max(bottom - top, height // 5))
