"""PowerPoint tools for whole slides: add, copy, move, hide, notes, footers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import ESSENTIAL, Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._tables import Answer, ControlId, ControlName, Document, Text, clean, listed
from callboard.surfaces.documents.powerpoint import _slide_list as slides
from callboard.surfaces.documents.powerpoint._deck import p
from callboard.surfaces.documents.powerpoint._deck_controls import find, slide_name, slide_of
from callboard.surfaces.documents.powerpoint._deck_editor import (
    POWERPOINT,
    SLIDE,
    Number,
    PowerPointEditor,
    add_text_box,
    shape_answer,
)
from callboard.surfaces.documents.powerpoint._shapes import body_placeholders, footers_of, shapes_of
from callboard.surfaces.documents.powerpoint._slide_notes import comments_of, notes_of, write_notes
from callboard.surfaces.documents.powerpoint._slide_texts import set_text, write_lines
from callboard.surfaces.documents.powerpoint._text_fit import overflow_of

if TYPE_CHECKING:
    from pydantic import JsonValue

    from callboard.surfaces.documents.powerpoint._deck import DeckFile, Slide

_DATES, _FOOTERS, _NUMBERS = ("dt", "ftr", "sldNum")
_FOOTER_NAMES = {_FOOTERS: "footer", _DATES: "date", _NUMBERS: "number"}


class SlideTools(PowerPointEditor):
    """The tools of whole slides in ``.pptx`` files."""

    @tool(effect=Effect.ONCE, roots=POWERPOINT)
    def add_slide(
        self,
        document: Document,
        *,
        title: Annotated[str, Field(description="The slide's title.", json_schema_extra={ESSENTIAL: True})] = "",
        lines: Annotated[
            list[str],
            Field(max_length=500, description="The text below it; two spaces at the start for each deeper level."),
        ] = [],  # noqa: B006 - read only
        layout: Annotated[str, Field(description="The name of a layout; empty for a title and contents.")] = "",
        number: Number = None,
        notes: Annotated[str, Field(description="The speaker's notes.")] = "",
    ) -> Answer:
        """Add a slide with a layout, usually at the end.

        Lines without a placeholder get a text box. Other placeholders stay empty; write_text, insert_table,
        insert_chart and insert_picture fill them.
        """
        with self._editing(document) as file:
            part = file.find_layout(layout) if layout else slides.default_layout(file)
            slide = slides.add_slide(file, part, _number(file, number))
            answer = slide_answer(slide)
            overflow: list[str] = []
            shapes = shapes_of(slide)
            if title:
                title_shape = next((shape for shape in shapes if shape.kind == "title"), None)
                if title_shape is None or title_shape.body is None:
                    raise _no_title_error(file, part, title)
                write_lines(title_shape.body, [clean(title)])
                overflow += filter(None, [overflow_of(title_shape)])
            if lines:
                bodies = [shape for shape in body_placeholders(shapes) if shape.body is not None]
                element = bodies[0].element if bodies else add_text_box(slide, [])
                write_lines(element.find(p("txBody")), lines)
                text_answer = shape_answer(slide, element)
                overflow += filter(None, [str(text_answer.get("overflow", ""))])
                answer |= {} if bodies else {"text_box": text_answer["control_id"]}
            if notes:
                write_notes(slide, clean(notes), append=False)
            answer["control_name"] = slide_name(slide)
            empty = [shape.id for shape in shapes if shape.is_empty]
            answer |= {"empty_placeholders": [*empty]} if empty else {}
            return file.answers(answer | ({"overflow": overflow[0]} if overflow else {}))

    @tool(effect=Effect.ONCE, roots=POWERPOINT, controls=SLIDE)
    def duplicate_slide(
        self, document: Document, control_id: ControlId, *, number: Number = None, control_name: ControlName = ""
    ) -> Answer:
        """Copy a slide with its notes and charts, usually right behind it.

        Comments stay with the original.
        """
        with self._editing(document) as file:
            slide = slide_of(file, control_id, control_name)
            comments = len(comments_of(slide))
            new = slides.duplicate_slide(slide, _number(file, number or slide.number + 1))
            answer = slide_answer(new)
            return file.answers(answer | ({"comments_not_copied": comments} if comments else {}))

    @tool(effect=Effect.ONCE, roots=POWERPOINT, controls=SLIDE)
    def move_slide(
        self,
        document: Document,
        control_id: ControlId,
        number: Annotated[
            int | None, Field(ge=1, description="Its new number in the deck, from 1; null to stay.")
        ] = None,
        *,
        hidden: Annotated[
            bool | None, Field(description="Whether the show leaves it out; null to leave it as it is.")
        ] = None,
        control_name: ControlName = "",
    ) -> Answer:
        """Move a slide to another place, hide it, or show it again.

        Moving a slide changes the numbers of others.
        """
        if number is None and hidden is None:
            msg = "nothing to change: pass number or hidden"
            raise ToolError(msg)
        with self._editing(document) as file:
            slide = slide_of(file, control_id, control_name)
            if number is not None and number > len(file.slides()):
                msg = f"the deck has {len(file.slides())} slides; {number} is no place in it"
                raise ToolError(msg)
            if hidden is not None:
                slides.hide_slide(slide, hidden=hidden)
            if number is not None:
                slides.move_slide(slide, number)
            moved_slide = file.slides()[(number or slide.number) - 1]
            return file.answers(slide_answer(moved_slide) | {"hidden": moved_slide.hidden})

    @tool(effect=Effect.ONCE, roots=POWERPOINT, controls=SLIDE)
    def write_notes(
        self,
        document: Document,
        control_id: ControlId,
        text: Text,
        *,
        append: Annotated[bool, Field(description="Whether present notes stay, and these follow.")] = False,
        control_name: ControlName = "",
    ) -> Answer:
        """Write the speaker's notes of a slide."""
        with self._editing(document) as file:
            slide = slide_of(file, control_id, control_name)
            write_notes(slide, clean(text), append=append)
            slides.count_slides(file)
            return file.answers(slide_answer(slide) | {"characters": len(notes_of(slide))})

    @tool(effect=Effect.IDEMPOTENT, roots=POWERPOINT)
    def set_footer(
        self,
        document: Document,
        *,
        text: Annotated[str | None, Field(description="The footer; empty for none, null to leave it.")] = None,
        numbers: Annotated[bool | None, Field(description="Whether slides are numbered; null to leave it.")] = None,
        date: Annotated[str | None, Field(description="The date as text; empty for none, null to leave it.")] = None,
        title_slides: Annotated[bool, Field(description="Whether slides with a title layout have them, too.")] = False,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Set the footer, date and numbers of all slides, or of one."""
        changes = {
            kind: value for kind, value in ((_FOOTERS, text), (_DATES, date), (_NUMBERS, numbers)) if value is not None
        }
        if not changes:
            msg = "nothing to set: pass text, numbers or date"
            raise ToolError(msg)
        with self._editing(document) as file:
            candidates = [slide_of(file, control_id, control_name)] if control_id else file.slides()
            footer_slides = [
                slide for slide in candidates if control_id or title_slides or not _has_title_layout(slide)
            ]
            missing: dict[str, list[JsonValue]] = {}
            for kind, value in changes.items():
                slides_without = [slide.number for slide in footer_slides if not _set_footer(slide, kind, value)]
                missing |= {_FOOTER_NAMES[kind]: [*slides_without]} if slides_without else {}
            is_nothing_set = sum(map(len, missing.values())) == len(footer_slides) * len(changes)
            if missing and is_nothing_set:
                msg = f"no layout has a place for the {listed(missing)}; write_text on a slide adds a text box instead"
                raise ToolError(msg)
            answer: Answer = {"slides": len(footer_slides)}
            return file.answers(answer | ({"layout_has_no_place_for": {**missing}} if missing else {}))


def _set_footer(slide: Slide, kind: str, value: object) -> bool:
    """Set or remove a footer, date or number; return if done."""
    shape = footers_of(slide).get(kind)
    if not value:
        if shape is not None:
            slide.edit()
            shape.getparent().remove(shape)
        return True
    if shape is None:
        shape = slides.copy_footer(slide, kind)
    if shape is None or (body := shape.find(p("txBody"))) is None:
        return False
    if isinstance(value, str):
        slide.edit()
        for field in list(body.iter("{*}fld")):
            field.getparent().remove(field)
        set_text(body, clean(value))
    return True


def _has_title_layout(slide: Slide) -> bool:
    return bool(slide.layout) and slide.file.package.tree(slide.layout).get("type") == "title"


def _no_title_error(file: DeckFile, layout: str, title: str) -> ToolError:
    """Return the error of a layout without a place for titles."""
    names = [name for part, name in file.layouts().items() if slides.has_title(file, part)]
    way_out = f"choose another layout: {listed(names)}" if names else "no layout has one; pass it as the first of lines"
    return ToolError(f"the layout {file.layout_name(layout)!r} has no place for the title {title!r}; {way_out}")


def _number(file: DeckFile, number: int | None) -> int:
    """Return the place of a new slide.

    Raises:
        ToolError: If the deck has too few slides for it.
    """
    last = len(file.slides()) + 1
    if number is not None and number > last:
        msg = f"the deck has {last - 1} slides; a new one can have a number from 1 to {last}"
        raise ToolError(msg)
    return number or last


def slide_answer(slide: Slide) -> Answer:
    """Name a slide's control, and count the slides."""
    name = find(slide.file, slide.id).control.name
    return {"control_id": slide.id, "control_name": name, "slides": len(slide.file.slides())}
