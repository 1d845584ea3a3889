"""Word tools for formatting: fonts, alignment, styles and lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from docx.oxml.ns import qn
from docx.table import Table
from pydantic import Field

from callboard.messages import Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._find_text import find_pattern
from callboard.surfaces.documents._tables import Answer, Color, ControlId, ControlName, Document, clean
from callboard.surfaces.documents.word import _paragraph_edits as edit
from callboard.surfaces.documents.word import _text_formats as looks
from callboard.surfaces.documents.word._document_editor import ANY, WORD, WordEditor
from callboard.surfaces.documents.word._lists import ListType, set_list
from callboard.surfaces.documents.word._outline import find
from callboard.surfaces.documents.word._text_formats import Alignment  # noqa: TC001 - schemas are made of it

if TYPE_CHECKING:
    from collections.abc import Sequence

    from docx.oxml.text.paragraph import CT_P

    from callboard.surfaces.documents.word._document import WordFile

ListKind = Annotated[ListType | None, Field(description="Bullets, numbers, or none for no list.")]
ListLevel = Annotated[int, Field(ge=1, le=9, description="The depth within the list; 1 for the highest.")]


class WordFormatTools(WordEditor):
    """The tools that change the look of ``.docx`` files."""

    @tool(effect=Effect.IDEMPOTENT, roots=WORD, controls=ANY)
    def set_font(
        self,
        document: Document,
        control_id: ControlId,
        *,
        control_name: ControlName = "",
        find_text: Annotated[str, Field(description="Format only this text in the control; empty for all of it.")] = "",
        name: Annotated[str, Field(description="The font's name, such as Arial; empty to leave it.")] = "",
        size: Annotated[float | None, Field(ge=1, le=1638, description="In points; null to leave it.")] = None,
        bold: Annotated[bool | None, Field(description="Null to leave it.")] = None,
        italic: Annotated[bool | None, Field(description="Null to leave it.")] = None,
        underline: Annotated[bool | None, Field(description="Null to leave it.")] = None,
        color: Annotated[Color, Field(description="#RRGGBB or a name like red; none; empty to leave it.")] = "",
    ) -> Answer:
        """Set the font of a control or a part of its text.

        Omitted properties stay.
        """
        if not name and not color and all(side is None for side in (size, bold, italic, underline)):
            msg = "nothing to set: pass name, size, bold, italic, underline or color"
            raise ToolError(msg)
        with self._editing(document) as file:
            block = find(file, control_id, control_name).block
            if find_text:
                pattern = find_pattern(clean(find_text))
                runs = [run for paragraph in edit.paragraphs_of(block) for run in looks.runs_of(paragraph, pattern)]
            else:
                runs = list(edit.element_of(block).iter(qn("w:r")))
            if find_text and not runs:
                msg = f"{find_text!r} does not occur in {control_id!r}; no font was set"
                raise ToolError(msg)
            count = looks.set_font(
                runs, name=name, size=size, bold=bold, italic=italic, underline=underline, color=color
            )
            return file.answers({"control_id": control_id, "runs": count})

    @tool(effect=Effect.IDEMPOTENT, roots=WORD, controls=ANY)
    def format_paragraph(
        self,
        document: Document,
        control_id: ControlId,
        *,
        control_name: ControlName = "",
        alignment: Annotated[Alignment | None, Field(description="Null to leave it.")] = None,
        style: Annotated[str, Field(description="The name of a style that the document has; empty to leave it.")] = "",
        list_type: ListKind = None,
        list_level: ListLevel = 1,
    ) -> Answer:
        """Set the alignment, style or list of a control.

        A list item joins a list of its kind right before or after it.
        """
        if alignment is None and not style and list_type is None:
            msg = "nothing to set: pass alignment, style or list_type"
            raise ToolError(msg)
        with self._editing(document) as file:
            block = find(file, control_id, control_name).block
            if not isinstance(block, Table):
                style_id = file.styles.find("paragraph", style) if style else ""
                format_paragraphs(
                    file,
                    [block._p],
                    style_id=style_id,
                    alignment=alignment,
                    list_type=list_type,
                    list_level=list_level,
                )
                return file.answers({"control_id": control_id, "paragraphs": 1})
            if list_type is not None:
                msg = f"{control_id!r} is a table; only paragraphs and headings can be list items"
                raise ToolError(msg)
            if style:
                block._tbl.tblStyle_val = file.styles.find("table", style)
            paragraphs = list(edit.paragraphs_of(block))
            format_paragraphs(file, paragraphs, alignment=alignment)
            return file.answers({"control_id": control_id, "paragraphs": len(paragraphs)})


def format_paragraphs(
    file: WordFile,
    paragraphs: Sequence[CT_P],
    *,
    style_id: str = "",
    alignment: Alignment | None = None,
    list_type: ListType | None = None,
    list_level: int = 1,
) -> None:
    """Set properties of paragraphs; None or an empty text changes nothing."""
    for paragraph in paragraphs:
        if style_id:
            paragraph.style = style_id
        if alignment is not None:
            looks.align(paragraph, alignment)
        if list_type is not None:
            set_list(file, paragraph, list_type, list_level)
