"""Word tools: read, insert and edit text, headings, tables and fonts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from docx.oxml.ns import qn
from docx.table import Table
from pydantic import Field

from callboard.messages import Control, Effect, Hazard
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._find_text import find_pattern, no_match_error, variants_in
from callboard.surfaces.documents._formats import Limit, Offset, part_of
from callboard.surfaces.documents._tables import Answer, ControlId, ControlName, Document, Text, clean
from callboard.surfaces.documents.word import _paragraph_edits as edit
from callboard.surfaces.documents.word._document import empty_document, visible_text
from callboard.surfaces.documents.word._document_editor import (
    ANY,
    TEXT,
    WORD,
    Position,
    Style,
    block_of,
    control_answer,
)
from callboard.surfaces.documents.word._document_table_tools import WordTableTools
from callboard.surfaces.documents.word._document_tables import grid_of
from callboard.surfaces.documents.word._outline import WordControl, find, iter_controls, tree
from callboard.surfaces.documents.word._text_format_tools import (
    ListKind,
    ListLevel,
    WordFormatTools,
    format_paragraphs,
)
from callboard.surfaces.documents.word._text_formats import Alignment  # noqa: TC001 - schemas are made of it
from callboard.surfaces.documents.word._text_sources import check_own_text, check_removable, text_sources
from callboard.surfaces.documents.word._unseen_parts import unseen_parts

if TYPE_CHECKING:
    from pydantic import JsonValue

    from callboard.surfaces.documents._workspace import Snapshot
    from callboard.surfaces.documents.word._document import Block, WordFile

_WORD_TEXT = "text of a Word document"


class WordTools(WordTableTools, WordFormatTools):
    """The tools of ``.docx`` files.

    Each call reads the file, and an edit replaces it; no file stays open.
    """

    def controls(self, snapshot: Snapshot) -> list[Control]:
        """List a document's controls, in order."""
        return [word_control.control for word_control in iter_controls(snapshot.once(self._load))]

    def facts(self, snapshot: Snapshot) -> dict[str, JsonValue]:
        """Count the parts that a person sees and no tool shows."""
        unseen = unseen_parts(snapshot.once(self._load))
        return {"not_shown": unseen} if unseen else {}

    def tree(self, snapshot: Snapshot) -> Answer:
        """Arrange a document's controls in a tree, by headings."""
        return tree(snapshot.once(self._load), snapshot.path.name)

    def not_writable(self, snapshot: Snapshot) -> str:
        """Explain why a document must not be written; empty if it may."""
        return snapshot.once(self._load).not_writable()

    def empty(self) -> bytes:
        """Return the bytes of a new document."""
        return empty_document()

    @tool(effect=Effect.READ, roots=WORD, controls=ANY)
    def read_text(
        self,
        document: Document,
        *,
        control_id: ControlId = "",
        control_name: ControlName = "",
        offset: Offset = 0,
        limit: Limit = 20_000,
    ) -> Answer:
        """Read the text of the document or of one control.

        The text of a heading includes its section. ``not_shown`` counts what the document's text leaves out.
        """
        snapshot = self._workspace.read(document)
        if not control_id:
            text, unseen = self._whole_text(snapshot)
            answer = part_of(text, offset, limit)
            return {**answer, "not_shown": unseen} if unseen else answer
        file = self._load(snapshot)
        blocks = section_of(file, list(file.blocks()), find(file, control_id, control_name))
        return part_of("\n".join(text_of(file, block) for block in blocks), offset, limit)

    @tool(effect=Effect.ONCE, roots=WORD)
    def insert_paragraph(
        self,
        document: Document,
        text: Text,
        *,
        more_texts: Annotated[list[str], Field(description="More paragraphs, which follow the first one.")] = [],  # noqa: B006 - read only
        control_id: ControlId = "",
        control_name: ControlName = "",
        position: Position = "after",
        style: Style = "",
        alignment: Annotated[Alignment | None, Field(description="Null for that of the style.")] = None,
        list_type: ListKind = None,
        list_level: ListLevel = 1,
    ) -> Answer:
        """Insert paragraphs or list items before or after a control.

        Without a control they are inserted at the end of the document.
        """
        with self._editing(document) as file:
            neighbor = block_of(file, control_id, control_name)
            style_id = file.styles.find("paragraph", style) if style else ""
            texts = [clean(paragraph_text) for paragraph_text in (text, *more_texts)]
            elements = [
                block._p
                for block in edit.insert_paragraphs(file, texts, style_id, neighbor, is_before=position == "before")
            ]
            format_paragraphs(file, elements, alignment=alignment, list_type=list_type, list_level=list_level)
            answer = control_answer(file, elements[0])
            if more_texts:
                answer["more"] = [control_answer(file, element) for element in elements[1:]]
            return file.answers(answer)

    @tool(effect=Effect.ONCE, roots=WORD)
    def insert_heading(
        self,
        document: Document,
        text: Text,
        *,
        level: Annotated[int, Field(ge=0, le=9, description="1 for the highest, 0 for the document's title.")] = 1,
        control_id: ControlId = "",
        control_name: ControlName = "",
        position: Position = "after",
    ) -> Answer:
        """Insert a heading before or after a control.

        Without a control it is inserted at the end of the document.
        """
        if not text.strip():
            msg = "the heading's text is empty; write one, or use insert_paragraph for an empty paragraph"
            raise ToolError(msg)
        with self._editing(document) as file:
            neighbor, style = block_of(file, control_id, control_name), file.styles.heading(level)
            paragraphs = edit.insert_paragraphs(file, [clean(text)], style, neighbor, is_before=position == "before")
            return file.answers(control_answer(file, paragraphs[0]._p))

    @tool(effect=Effect.IDEMPOTENT, roots=WORD, controls=TEXT)
    def edit_paragraph(
        self, document: Document, control_id: ControlId, text: Text, *, control_name: ControlName = ""
    ) -> Answer:
        """Replace the text of a paragraph or heading, keeping its format."""
        if not text.strip():
            msg = f"the text is empty; delete_control removes {control_id!r}"
            raise ToolError(msg)
        with self._editing(document) as file:
            word_control = find(file, control_id, control_name)
            check_own_text(word_control.paragraph._p, file.package.tree(file.package.main))
            edit.set_text(word_control.paragraph, text)
            return file.answers({"control_id": control_id, "text": clean(text)})

    @tool(effect=Effect.ONCE, roots=WORD, controls=ANY)
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
        """Find and replace a text in the document or a control.

        Tables, links, text boxes, headers, footers and notes are included. Fonts stay. Other forms of quotation marks,
        hyphens and spaces match, too. Texts that Word computes, and the choices of content controls, are left alone.
        """
        if "\n" in clean(new_text):
            msg = "new_text must not have line breaks; insert paragraphs instead"
            raise ToolError(msg)
        text = clean(find_text)
        pattern = find_pattern(text, match_case=match_case, whole_words=whole_words)
        with self._editing(document) as file:
            selected_block = block_of(file, control_id, control_name)
            blocks = list(file.blocks()) if selected_block is None else [selected_block]
            paragraphs = [paragraph for block in blocks for paragraph in edit.paragraphs_of(block)]
            replacement = edit.Replacement(pattern, clean(new_text), text_sources(file.package.tree(file.package.main)))
            if selected_block is None:
                replacement.apply_everywhere(file)
            else:
                for paragraph in paragraphs:
                    replacement.apply(paragraph)
            if not replacement.count:
                words = {word for paragraph in paragraphs for word in visible_text(paragraph).split()}
                raise no_match_error(find_text, "; ".join(replacement.skip_counts), words)
            answer: Answer = {"replaced": replacement.count}
            notes = {
                "not_replaced": [f"{count} in {reason}" for reason, count in replacement.skip_counts.items()],
                "also_matched": variants_in(replacement.matches, text),
                "links_keep_their_targets": replacement.links,
            }
            return file.answers({**answer, **{name: [*texts] for name, texts in notes.items() if texts}})

    @tool(effect=Effect.ONCE, roots=WORD, hazards=[Hazard.DELETES])
    def delete_control(self, document: Document, control_id: ControlId, *, control_name: ControlName = "") -> Answer:
        """Delete a paragraph, a heading (but not its section) or a table."""
        with self._editing(document) as file:
            word_control = find(file, control_id, control_name)
            element = word_control.block._element
            if element.find(f"{qn('w:pPr')}/{qn('w:sectPr')}") is not None:
                msg = (
                    f"{control_id!r} ends a section of the document; deleting it would change the page layout before it"
                )
                raise ToolError(msg)
            check_removable(element, file.package.tree(file.package.main))
            edit.remove(element)
            return file.answers({"deleted": word_control.control.name, "kind": word_control.control.kind})

    def _whole_text(self, snapshot: Snapshot) -> tuple[str, str]:
        """Read the text of a version once, and count unseen parts."""
        texts: tuple[str, str] | None = snapshot.cache.get(snapshot.fingerprint, _WORD_TEXT)
        if texts is None:
            file = self._load(snapshot)
            texts = "\n".join(text_of(file, block) for block in file.blocks()), unseen_parts(file)
            snapshot.cache.keep(snapshot.fingerprint, _WORD_TEXT, texts, sys.getsizeof(texts[0]))
        return texts


def section_of(file: WordFile, blocks: list[Block], word_control: WordControl) -> list[Block]:
    """Return a control's block; for a heading, its section's blocks."""
    start = next(n for n, block in enumerate(blocks) if block._element is word_control.block._element)
    if word_control.control.kind != "heading":
        return blocks[start : start + 1]
    level = file.heading_level(word_control.paragraph)
    end = start + 1
    while end < len(blocks):
        block = blocks[end]
        block_level = None if isinstance(block, Table) else file.heading_level(block)
        if block_level is not None and level is not None and block_level <= level:
            break
        end += 1
    return blocks[start:end]


def text_of(file: WordFile, block: Block) -> str:
    """Format a block as text.

    A heading begins with ``#`` marks. A table has one line per row and tabs between cells.
    """
    if isinstance(block, Table):
        return "\n".join("\t".join(" ".join(text.split()) for text in row) for row in grid_of(block).texts)
    level = file.heading_level(block)
    text = visible_text(block._p)
    return text if level is None else f"{'#' * max(1, level)} {text}"
