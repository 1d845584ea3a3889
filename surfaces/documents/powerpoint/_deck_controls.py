"""The controls of a deck: its slides, and the shapes on them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from callboard.messages import Control
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._tables import nearest, short
from callboard.surfaces.documents.powerpoint._chart_numbers import chart_kinds, chart_title, numbers_of
from callboard.surfaces.documents.powerpoint._shapes import footers_of, shapes_of, title_of
from callboard.surfaces.documents.powerpoint._slide_list import section_of
from callboard.surfaces.documents.powerpoint._slide_notes import comments_of, notes_of
from callboard.surfaces.documents.powerpoint._slide_tables import grid_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.powerpoint._chart_numbers import ChartNumbers
    from callboard.surfaces.documents.powerpoint._deck import DeckFile, Slide
    from callboard.surfaces.documents.powerpoint._shapes import SlideShape

MOST_DETAILED = 400
"""The most controls of a deck whose slides are each followed by their shapes; in a larger one all slides come first."""
_MAX_OUTLINE = 60
_FIRST_ROWS = 3
_FIRST_COLUMNS = 8
_LONGEST_CELL = 24
_NO_TITLE = "(no title)"


@dataclass(frozen=True)
class DeckControl:
    """A control with its slide; a shape has both."""

    control: Control
    slide: Slide
    shape: SlideShape | None = None

    def need(self, *kinds: str) -> SlideShape:
        """Return the shape, which has to be of some kinds.

        Raises:
            ToolError: If it is of another kind.
        """
        if self.shape is not None and self.shape.kind in kinds:
            return self.shape
        msg = f"{self.control.id!r} is a {self.control.kind}; this needs a {' or '.join(kinds)}"
        raise ToolError(msg)


def find_all(file: DeckFile) -> list[DeckControl]:
    """List the controls: each slide, followed by its shapes.

    Of a large deck all slides come first, so that a look that shows the first controls shows the slides.
    """
    slides = [(DeckControl(_slide_control(slide), slide), _shape_controls(slide)) for slide in file.slides()]
    if sum(1 + len(shapes) for _, shapes in slides) <= MOST_DETAILED:
        return [control for slide, shapes in slides for control in (slide, *shapes)]
    return [*(slide for slide, _ in slides), *(control for _, shapes in slides for control in shapes)]


def find(file: DeckFile, control_id: str, control_name: str = "") -> DeckControl:
    """Find a control by its id, and check a passed name.

    Raises:
        ToolError: If the control does not exist, or has another name now.
    """
    prefix = "-".join(control_id.split("-")[:2])
    for slide in file.slides():
        if slide.id == prefix:
            for control in (DeckControl(_slide_control(slide), slide), *_shape_controls(slide)):
                if control.control.id == control_id:
                    name = control.control.name
                    if control_name and name != control_name:
                        msg = f"{control_id!r} is now called {name!r}, not {control_name!r}; observe it again"
                        raise ToolError(msg)
                    return control
    controls = find_all(file)
    msg = f"there is no control {control_id!r} in the deck; observe it again to see its controls"
    msg += nearest(control_id, [name for control in controls for name in (control.control.id, control.control.name)])
    raise ToolError(msg)


def slide_of(file: DeckFile, control_id: str, control_name: str = "") -> Slide:
    """Find a slide by its control.

    Raises:
        ToolError: If the control does not exist, or is no slide.
    """
    control = find(file, control_id, control_name)
    if control.shape is not None:
        msg = f"{control_id!r} is a {control.control.kind}; this needs a slide, such as {control.slide.id}"
        raise ToolError(msg)
    return control.slide


def control_of(slide: Slide, element: object) -> Answer:
    """Name the control of a shape's element."""
    for control in _shape_controls(slide):
        if control.shape is not None and control.shape.element is element:
            return {"control_id": control.control.id, "control_name": control.control.name}
    return {"control_id": None, "control_name": ""}


def slide_name(slide: Slide) -> str:
    """Return the name of a slide's control."""
    return short(title_of(slide)) or _NO_TITLE


def _slide_control(slide: Slide) -> Control:
    footers = footers_of(slide)
    facts: dict[str, JsonValue] = {
        "layout": slide.file.layout_name(slide.layout),
        "hidden": slide.hidden,
        "section": section_of(slide),
        "notes": len(notes_of(slide)),
        "comments": len(comments_of(slide)),
        "numbered": "sldNum" in footers,
        "footer": "ftr" in footers,
    }
    return Control(
        id=slide.id, name=slide_name(slide), kind="slide", detail={name: fact for name, fact in facts.items() if fact}
    )


def _shape_controls(slide: Slide) -> list[DeckControl]:
    place = slide_name(slide)
    return [
        DeckControl(
            Control(id=shape.id, name=_name(shape), kind=shape.kind, place=place, detail=_detail(shape)), slide, shape
        )
        for shape in shapes_of(slide)
    ]


def _name(shape: SlideShape) -> str:
    if (table := shape.table) is not None:
        return short(" | ".join(next(iter(grid_of(table).texts), [])))
    if part := shape.chart_part:
        root = shape.file.package.tree(part)
        return short(chart_title(root)) or f"{chart_kinds(root)[0]} chart"
    facts = shape.facts
    return short(shape.text or facts.get("descr", "") or facts.get("name", "")) or shape.kind


def _detail(shape: SlideShape) -> dict[str, JsonValue]:
    detail: dict[str, JsonValue] = {}
    if shape.placeholder:
        detail["placeholder"] = shape.placeholder
    if shape.is_empty:
        detail["empty"] = True
    elif shape.kind == "text":
        detail["lines"] = shape.text.count("\n") + 1
    if (table := shape.table) is not None:
        rows = grid_of(table).texts
        detail |= {"rows": len(rows), "columns": len(rows[0]) if rows else 0}
        detail["first_rows"] = {
            str(number): [short(text, _LONGEST_CELL) for text in row[:_FIRST_COLUMNS]]
            for number, row in enumerate(rows[1 : 1 + _FIRST_ROWS], start=2)
        }
    if part := shape.chart_part:
        detail["type"] = "+".join(chart_kinds(shape.file.package.tree(part)))
    if shape.kind == "picture" and not shape.is_empty:
        detail["alternative_text"] = bool(shape.facts.get("descr"))
    if (frame := shape.frame) is not None and shape.kind != "title":
        width, height = shape.file.size
        numbers = (frame.left / width, frame.top / height, frame.width / width, frame.height / height)
        detail["place"] = ", ".join(str(round(100 * number)) for number in numbers)
    return detail


def deck_outline(file: DeckFile) -> list[JsonValue]:
    """List the slides with their numbers and titles, up to a limit."""
    slides = file.slides()
    marks = (" (hidden)" if slide.hidden else "" for slide in slides)
    lines: list[JsonValue] = [
        f"{slide.number}. {slide_name(slide)}{mark}" for slide, mark in zip(slides[:_MAX_OUTLINE], marks, strict=False)
    ]
    more = len(slides) - _MAX_OUTLINE
    return [*lines, f"({more} more slides)"] if more > 0 else lines


def deck_tree(file: DeckFile, name: str) -> Answer:
    """Arrange the controls in a tree, by slides."""
    children: list[JsonValue] = []
    for slide in file.slides():
        shapes: list[JsonValue] = [_node(control.control) for control in _shape_controls(slide)]
        children.append({**_node(_slide_control(slide)), "children": shapes})
    return {"id": "document", "name": name, "kind": "document", "children": children}


def _node(control: Control) -> dict[str, JsonValue]:
    return {"id": control.id, "name": control.name, "kind": control.kind}


def slide_lines(slide: Slide) -> Iterator[str]:
    """Yield a slide's shapes with their ids, notes and comments, as text."""
    marks = [slide.file.layout_name(slide.layout), *(["hidden"] if slide.hidden else [])]
    yield f"# Slide {slide.number}: {slide_name(slide)} ({', '.join(filter(None, marks))})"
    for shape in shapes_of(slide):
        if shape.kind != "title" or shape.is_empty:
            yield f"[{shape.id}]{_empty_words(shape)}"
            yield from shape_lines(shape)
    yield from _footer_lines(slide)
    if notes := notes_of(slide):
        yield "[notes]"
        yield notes
    for comment in comments_of(slide):
        yield f"[comment of {comment.author or 'unknown'}] {comment.text}"


def _footer_lines(slide: Slide) -> Iterator[str]:
    footer = footers_of(slide).get("ftr")
    texts = [text.text or "" for text in footer.iter("{*}t")] if footer is not None else []
    if "".join(texts).strip():
        yield f"[footer] {''.join(texts)}"


def _empty_words(shape: SlideShape) -> str:
    if not shape.is_empty:
        return ""
    return f" (empty placeholder: {shape.placeholder})" if shape.placeholder else " (empty)"


def shape_lines(shape: SlideShape) -> Iterator[str]:
    """Yield a shape's contents as text."""
    if (table := shape.table) is not None:
        yield from ("\t".join(" ".join(text.split()) for text in row) for row in grid_of(table).texts)
    elif shape.chart_part or (shape.kind in {"picture", "object"} and not shape.is_empty):
        kind = shape.kind if shape.kind != "chart" else f"{_detail(shape)['type']} chart"
        yield f"({kind}: {_name(shape)})"
        if shape.chart_part:
            yield from _chart_lines(numbers_of(shape.file.package.tree(shape.chart_part)))
    elif not shape.is_empty:
        yield shape.text


def _chart_lines(numbers: ChartNumbers) -> Iterator[str]:
    """Yield the data of a chart as rows with tabs."""
    if numbers.series:
        yield "\t".join(["", *numbers.series])
    columns = [numbers.categories, *([_number_text(value) for value in values] for values in numbers.series.values())]
    for row in zip_longest(*columns, fillvalue=""):
        yield "\t".join(" ".join(text.split()) for text in row)


def _number_text(value: float | None) -> str:
    return "" if value is None else f"{value:.15g}"
