"""PowerPoint tools: read, write and replace text, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import Control, Effect, Hazard
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._find_text import find_pattern, no_match_error, variants_in
from callboard.surfaces.documents._formats import Limit, Offset, part_of
from callboard.surfaces.documents._package import local
from callboard.surfaces.documents._tables import Answer, ControlId, ControlName, Document, clean
from callboard.surfaces.documents.powerpoint import _deck_controls as controls
from callboard.surfaces.documents.powerpoint import _slide_list as slides
from callboard.surfaces.documents.powerpoint._animations import paragraph_count, remove_animations
from callboard.surfaces.documents.powerpoint._deck import p, parse_xml
from callboard.surfaces.documents.powerpoint._deck_editor import (
    ANY,
    POWERPOINT,
    TEXT,
    Lines,
    Place,
    add_text_box,
    shape_answer,
)
from callboard.surfaces.documents.powerpoint._deck_replacement import DeckReplacement
from callboard.surfaces.documents.powerpoint._new_deck import empty_deck
from callboard.surfaces.documents.powerpoint._shapes import shapes_of
from callboard.surfaces.documents.powerpoint._slide_notes import notes_of
from callboard.surfaces.documents.powerpoint._slide_object_tools import SlideObjectTools
from callboard.surfaces.documents.powerpoint._slide_pictures import unused_links
from callboard.surfaces.documents.powerpoint._slide_table_tools import SlideTableTools
from callboard.surfaces.documents.powerpoint._slide_texts import Bullets, write_lines
from callboard.surfaces.documents.powerpoint._slide_tools import SlideTools
from callboard.surfaces.documents.powerpoint._slide_views import SlideViewTools
from callboard.surfaces.documents.powerpoint._text_fit import overflow_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents._workspace import Snapshot
    from callboard.surfaces.documents.powerpoint._deck import DeckFile, Slide
    from callboard.surfaces.documents.powerpoint._shapes import SlideShape

SlideNumber = Annotated[int | None, Field(ge=1, description="Null for all.")]


class PowerPointTools(SlideTools, SlideTableTools, SlideObjectTools, SlideViewTools):
    """The tools of ``.pptx`` files.

    Each call reads the file, and an edit replaces it; no file stays open.
    """

    def controls(self, snapshot: Snapshot) -> list[Control]:
        """List a deck's controls."""
        return [control.control for control in controls.find_all(snapshot.once(self._load))]

    def facts(self, snapshot: Snapshot) -> dict[str, JsonValue]:
        """Return the slides' titles, the layouts and the size."""
        file = snapshot.once(self._load)
        width, height = file.size
        return {
            "slides": len(file.slides()),
            "outline": controls.deck_outline(file),
            "layouts": [*dict.fromkeys(file.layouts().values())],
            "proportions": f"{width / height:.2f} : 1",
        }

    def tree(self, snapshot: Snapshot) -> Answer:
        """Arrange a deck's controls in a tree, by slides."""
        return controls.deck_tree(snapshot.once(self._load), snapshot.path.name)

    def not_writable(self, snapshot: Snapshot) -> str:
        """Explain why a deck must not be written; empty if it may."""
        return snapshot.once(self._load).not_writable()

    def empty(self) -> bytes:
        """Return the bytes of a deck without slides."""
        return empty_deck()

    def overwrites(self, document: str, tool: str, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether a call replaces content of the deck."""
        if tool == "move_slide":
            return arguments.get("number") is not None
        if tool not in {"write_text", "write_notes"}:
            return True
        try:
            control = controls.find(self._load(self._workspace.read(document)), str(arguments.get("control_id")))
        except ToolError:
            return True
        if arguments.get("append"):
            return False
        if tool == "write_notes":
            return bool(notes_of(control.slide))
        return control.shape is not None and not control.shape.is_empty

    @tool(effect=Effect.READ, roots=POWERPOINT, controls=ANY)
    def read_text(
        self,
        document: Document,
        *,
        first_slide: SlideNumber = None,
        last_slide: SlideNumber = None,
        control_id: ControlId = "",
        control_name: ControlName = "",
        offset: Offset = 0,
        limit: Limit = 20_000,
    ) -> Answer:
        """Read the text of the deck, some slides or one control.

        Each shape stands below its id, with two spaces for each level; tables have tabs between cells. Notes and
        comments are included.
        """
        file = self._load(self._workspace.read(document))
        if control_id:
            control = controls.find(file, control_id, control_name)
            lines = (
                controls.slide_lines(control.slide) if control.shape is None else controls.shape_lines(control.shape)
            )
            return part_of("\n".join(lines), offset, limit)
        numbers = range(first_slide or 1, (last_slide or len(file.slides())) + 1)
        range_slides = [slide for slide in file.slides() if slide.number in numbers]
        return part_of("\n\n".join("\n".join(controls.slide_lines(slide)) for slide in range_slides), offset, limit)

    @tool(effect=Effect.ONCE, roots=POWERPOINT, controls=(*TEXT, "slide"))
    def write_text(
        self,
        document: Document,
        control_id: Annotated[str, Field(description="A title or text to fill, or a slide for a new text box.")],
        lines: Lines,
        *,
        append: Annotated[bool, Field(description="Whether the present text stays, and these lines follow.")] = False,
        bullets: Annotated[Bullets | None, Field(description="Null for those that the text has.")] = None,
        place: Place = [],  # noqa: B006 - read only
        control_name: ControlName = "",
    ) -> Answer:
        """Write a shape's text; on a slide, add a text box.

        The format of the present text stays. ``overflow`` says if it probably needs more room than there is.
        """
        with self._editing(document) as file:
            control = controls.find(file, control_id, control_name)
            slide = control.slide
            slide.edit()
            element = add_text_box(slide, place) if control.shape is None else _writable(control.need(*TEXT))
            write_lines(element.find(p("txBody")), lines, append=append, bullets=bullets)
            if control.shape is not None:
                remove_animations(control.shape, paragraphs=paragraph_count(control.shape))
            return file.answers(shape_answer(slide, element))

    @tool(effect=Effect.ONCE, roots=POWERPOINT, controls=ANY)
    def replace_text(
        self,
        document: Document,
        find_text: Annotated[str, Field(min_length=1, description="The text to look for; within one paragraph.")],
        new_text: Annotated[str, Field(description="The replacement.")],
        *,
        match_case: Annotated[bool, Field(description="Whether capitals matter.")] = True,
        whole_words: Annotated[bool, Field(description="Whether parts of words are left alone.")] = False,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Find and replace a text in the deck or a control.

        Tables, groups, footers and notes are included. Formats stay. Other forms of quotation marks, hyphens and spaces
        match, too. Charts, SmartArt and comments are left alone.
        """
        if "\n" in clean(new_text):
            msg = "new_text must not have line breaks; write_text writes several paragraphs"
            raise ToolError(msg)
        text = clean(find_text)
        pattern = find_pattern(text, match_case=match_case, whole_words=whole_words)
        with self._editing(document) as file:
            replacement = DeckReplacement(pattern, clean(new_text))
            control = controls.find(file, control_id, control_name) if control_id else None
            for slide in file.slides() if control is None else [control.slide]:
                replacement.apply_to(slide, [control.shape.element] if control and control.shape else None)
            if not replacement.count:
                words = {word for paragraph in replacement.texts for word in paragraph.split()}
                raise no_match_error(find_text, ", ".join(replacement.skip_counts), words)
            answer: Answer = {"replaced": replacement.count, "slides": [*sorted(replacement.slides)]}
            notes = {
                "not_replaced": [f"{count} in {skipped}" for skipped, count in replacement.skip_counts.items()],
                "also_matched": variants_in(replacement.matches, text),
                "links_keep_their_targets": replacement.links,
                "overflow": _overflows(file, replacement.slides),
            }
            return file.answers({**answer, **{name: [*texts] for name, texts in notes.items() if texts}})

    @tool(effect=Effect.ONCE, roots=POWERPOINT, controls=ANY, hazards=[Hazard.DELETES])
    def delete_control(self, document: Document, control_id: ControlId, *, control_name: ControlName = "") -> Answer:
        """Delete a slide, or a text, table, chart or picture of one."""
        with self._editing(document) as file:
            control = controls.find(file, control_id, control_name)
            if control.shape is None:
                slides.delete_slide(control.slide)
            else:
                _delete_shape(control.slide, control.shape)
            return file.answers({"deleted": control.control.name, "kind": control.control.kind})


def _overflows(file: DeckFile, numbers: set[int]) -> list[str]:
    """List the shapes of some slides whose text probably does not fit."""
    shapes = [shape for slide in file.slides() if slide.number in numbers for shape in shapes_of(slide)]
    return [f"{shape.id}: {overflow}" for shape in shapes if (overflow := overflow_of(shape))]


def _writable(shape: SlideShape) -> Element:
    """Return a shape with a body for text.

    Raises:
        ToolError: If it can have none.
    """
    if shape.body is None:
        body = parse_xml("<p:txBody><a:bodyPr/><a:lstStyle/><a:p/></p:txBody>")
        following = shape.element.find(p("extLst"))
        shape.element.append(body) if following is None else following.addprevious(body)
    return shape.element


def _has_shapes(parent: Element, *, without: Element) -> bool:
    """Return whether a group has other shapes."""
    kinds = {"sp", "pic", "graphicFrame", "cxnSp", "grpSp", "AlternateContent"}
    return local(parent) == "grpSp" and any(child is not without and local(child) in kinds for child in parent)


def _delete_shape(slide: Slide, shape: SlideShape) -> None:
    """Delete a shape, and the parts that only it uses."""
    slide.edit()
    package, element = slide.file.package, shape.element
    remove_animations(shape)
    while element.getparent() is not slide.shapes and not _has_shapes(element.getparent(), without=element):
        element = element.getparent()
    element.getparent().remove(element)
    for link in dict.fromkeys(unused_links(slide, element)):
        target = package.target(slide.part, link)
        package.unrelate(slide.part, link)
        if target is not None and not any(package.sources_of(target)):
            package.remove(target)
