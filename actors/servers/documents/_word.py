"""Word tools: read, insert and edit text, headings, tables and fonts."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Annotated, Literal

from docx.oxml.ns import qn
from docx.table import Table
from pydantic import Field

from callboard.actors.servers._server import ToolError, tool
from callboard.actors.servers.documents import _word_edit as edit
from callboard.actors.servers.documents import _word_tables as tables
from callboard.actors.servers.documents._tables import (
    Answer,
    Cell,
    ControlId,
    ControlName,
    Document,
    Text,
    clean,
    nearest,
    width_of,
)
from callboard.actors.servers.documents._word_controls import WordControl, find, find_all, tree
from callboard.actors.servers.documents._word_file import WordFile, visible_text
from callboard.messages import ESSENTIAL, Control, Effect, Hazard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.actors.servers.documents._word_file import Block
    from callboard.actors.servers.documents._workspace import Snapshot, Workspace

WORD = ("word",)
TABLE = ("table",)
TEXT = ("heading", "paragraph")
ANY = (*TEXT, *TABLE)

Position = Annotated[
    Literal["before", "after"],
    Field(description="On which side of the chosen control.", json_schema_extra={ESSENTIAL: True}),
]
Style = Annotated[str, Field(description="The name of a style that the document has; empty for the usual one.")]
Rows = Annotated[list[list[Cell]], Field(description="The rows, each as long as the header.")]


class WordTools:
    """The tools of ``.docx`` files.

    Each call reads the file, and an edit replaces it; no file stays open.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def controls(self, snapshot: Snapshot) -> list[Control]:
        """List a document's controls, in order."""
        return [found.control for found in find_all(self._load(snapshot))]

    def tree(self, snapshot: Snapshot) -> Answer:
        """Arrange a document's controls in a tree, by headings."""
        return tree(self._load(snapshot), snapshot.path.name)

    def not_writable(self, snapshot: Snapshot) -> str:
        """Explain why a document must not be written; empty if it may."""
        return self._load(snapshot).not_writable()

    def empty(self) -> bytes:
        """Return the bytes of a new document."""
        return WordFile.new().to_bytes()

    @tool(effect=Effect.READ, roots=WORD, controls=ANY)
    def read_text(
        self,
        document: Document,
        *,
        control_id: ControlId = "",
        control_name: ControlName = "",
        offset: Annotated[int, Field(ge=0, description="How many characters to skip.")] = 0,
        limit: Annotated[int, Field(ge=1, le=50_000, description="How many characters to read at most.")] = 20_000,
    ) -> Answer:
        """Read the text of the document or of one control.

        The text of a heading includes its section.
        """
        file = self._load(self._workspace.read(document))
        blocks = list(file.blocks())
        if control_id:
            blocks = _below(file, blocks, find(file, control_id, control_name))
        text = "\n".join(_text_of(file, block) for block in blocks)
        shown = text[offset : offset + limit]
        return {"text": shown, "characters": len(text), "left_out": max(0, len(text) - offset - len(shown))}

    @tool(effect=Effect.READ, roots=WORD, controls=TABLE)
    def read_table(
        self,
        document: Document,
        control_id: ControlId,
        *,
        control_name: ControlName = "",
        numbers: Annotated[
            bool, Field(description="Whether cells that are unambiguous numbers become numbers.")
        ] = True,
        decimal: Annotated[Literal["auto", ".", ","], Field(description="The decimal separator.")] = "auto",
        header: Annotated[bool, Field(description="Whether the first row is the header.")] = True,
        start: Annotated[int, Field(ge=0, description="How many rows to skip.")] = 0,
        limit: Annotated[int, Field(ge=1, le=5000, description="How many rows to read at most.")] = 1000,
    ) -> Answer:
        """Read a table: its header, its rows and the columns' units.

        With ``numbers``, an empty cell is null, and a percentage is divided by 100 (its column's unit is then ``%``).
        An ambiguous number (``1,234``) stays text and is listed in ``kept_as_text`` (rows and columns from 1, the
        header not counted); pass ``decimal`` to have it read. Without it, the decimal separator is inferred from the
        other cells of the column. A merged cell's text is in its top left cell.
        """
        file = self._load(self._workspace.read(document))
        grid = tables.grid_of(find(file, control_id, control_name).table)
        mark = None if decimal == "auto" else decimal
        return tables.answer_of(grid, header=header, numbers=numbers, decimal=mark, start=start, limit=limit)

    @tool(effect=Effect.ONCE, roots=WORD)
    def insert_paragraph(
        self,
        document: Document,
        text: Text,
        *,
        control_id: ControlId = "",
        control_name: ControlName = "",
        position: Position = "after",
        style: Style = "",
    ) -> Answer:
        """Insert a paragraph before or after a control.

        Without a control it is inserted at the end of the document.
        """
        with self._editing(document) as file:
            place = _place(file, control_id, control_name)
            made = edit.insert_paragraph(file.document, text, style, place, before=position == "before")
            return file.answers(_made(file, made))

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
        with self._editing(document) as file:
            place = _place(file, control_id, control_name)
            return file.answers(
                _made(file, edit.insert_heading(file.document, text, level, place, before=position == "before"))
            )

    @tool(effect=Effect.ONCE, roots=WORD)
    def insert_table(
        self,
        document: Document,
        header: Annotated[list[str], Field(description="The texts of the header row; empty for no header.")],
        rows: Rows,
        *,
        control_id: ControlId = "",
        control_name: ControlName = "",
        position: Position = "after",
        style: Style = "",
    ) -> Answer:
        """Insert a table before or after a control.

        Without a control it is inserted at the end of the document.
        """
        width_of(rows, header or None)
        with self._editing(document) as file:
            place = _place(file, control_id, control_name)
            made = tables.make_table(file.document, header, rows, style)
            edit.move(made, place, before=position == "before")
            edit.separate(made)
            return file.answers(_made(file, made))

    @tool(effect=Effect.ONCE, roots=WORD, controls=TABLE)
    def append_rows(
        self, document: Document, control_id: ControlId, rows: Rows, *, control_name: ControlName = ""
    ) -> Answer:
        """Append rows to a table, formatted like its last row."""
        width_of(rows)
        with self._editing(document) as file:
            found = find(file, control_id, control_name)
            tables.append_rows(found.table, rows)
            return file.answers({"control_id": control_id, "rows_added": len(rows)})

    @tool(effect=Effect.IDEMPOTENT, roots=WORD, controls=TABLE)
    def write_cell(
        self,
        document: Document,
        control_id: ControlId,
        row: Annotated[int, Field(ge=1, description="The row, from 1; the header counts.")],
        column: Annotated[int, Field(ge=1, description="The column, from 1.")],
        value: Annotated[Cell, Field(description="The new text or number; null empties the cell.")],
        *,
        control_name: ControlName = "",
    ) -> Answer:
        """Write one cell of a table, in its present font."""
        with self._editing(document) as file:
            grid = tables.grid_of(find(file, control_id, control_name).table)
            tables.write_cell(grid, row - 1, column - 1, tables.text_of(value))
            return file.answers({"control_id": control_id, "row": row, "column": column})

    @tool(effect=Effect.IDEMPOTENT, roots=WORD, controls=TEXT)
    def edit_paragraph(
        self, document: Document, control_id: ControlId, text: Text, *, control_name: ControlName = ""
    ) -> Answer:
        """Replace the text of a paragraph or heading, keeping its format."""
        with self._editing(document) as file:
            found = find(file, control_id, control_name)
            edit.set_text(found.paragraph, text)
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
        """Replace a text in the whole body or in one control.

        Tables and links are included. Fonts stay.
        """
        if "\n" in clean(new_text):
            msg = "new_text must not have line breaks; insert paragraphs instead"
            raise ToolError(msg)
        bound = r"(?<!\w){}(?!\w)" if whole_words else "{}"
        pattern = re.compile(bound.format(re.escape(clean(find_text))), 0 if match_case else re.IGNORECASE)
        with self._editing(document) as file:
            place = _place(file, control_id, control_name)
            blocks = list(file.blocks()) if place is None else [place]
            paragraphs = [paragraph for block in blocks for paragraph in edit.paragraphs_of(block)]
            count = sum(edit.replace_in(paragraph, pattern, clean(new_text)) for paragraph in paragraphs)
            if not count:
                words = {word for paragraph in paragraphs for word in visible_text(paragraph).split()}
                msg = f"{find_text!r} does not occur there; nothing was replaced{nearest(find_text, words)}"
                raise ToolError(msg)
            return file.answers({"replaced": count})

    @tool(effect=Effect.IDEMPOTENT, roots=WORD)
    def set_font(
        self,
        document: Document,
        control_id: ControlId,
        *,
        control_name: ControlName = "",
        name: Annotated[str, Field(description="The font's name, such as Arial; empty to leave it.")] = "",
        size: Annotated[float | None, Field(ge=1, le=1638, description="In points; null to leave it.")] = None,
        bold: Annotated[bool | None, Field(description="Null to leave it.")] = None,
        italic: Annotated[bool | None, Field(description="Null to leave it.")] = None,
        underline: Annotated[bool | None, Field(description="Null to leave it.")] = None,
        color: Annotated[str, Field(pattern="^(#?[0-9A-Fa-f]{6})?$", description="As RRGGBB; empty to leave it.")] = "",
    ) -> Answer:
        """Set the font of a heading, a paragraph or a table.

        Omitted properties stay.
        """
        if not name and not color and all(side is None for side in (size, bold, italic, underline)):
            msg = "nothing to set: pass name, size, bold, italic, underline or color"
            raise ToolError(msg)
        with self._editing(document) as file:
            block = find(file, control_id, control_name).block
            count = edit.set_font(
                block, name=name, size=size, bold=bold, italic=italic, underline=underline, color=color
            )
            return file.answers({"control_id": control_id, "runs": count})

    @tool(effect=Effect.ONCE, roots=WORD, hazards=[Hazard.DELETES])
    def delete_control(self, document: Document, control_id: ControlId, *, control_name: ControlName = "") -> Answer:
        """Delete a paragraph, a heading (but not its section) or a table."""
        with self._editing(document) as file:
            found = find(file, control_id, control_name)
            element = found.block._element  # python-docx can't remove a block
            if element.find(f"{qn('w:pPr')}/{qn('w:sectPr')}") is not None:
                msg = (
                    f"{control_id!r} ends a section of the document; deleting it would change the page layout before it"
                )
                raise ToolError(msg)
            element.getparent().remove(element)
            return file.answers({"deleted": found.control.name, "kind": found.control.kind})

    def _load(self, snapshot: Snapshot) -> WordFile:
        return WordFile.load(snapshot, self._workspace.max_bytes)

    @contextlib.contextmanager
    def _editing(self, document: str) -> Iterator[WordFile]:
        """Open a document for one edit; replace it unless the body raises."""
        snapshot = self._workspace.read_to_write(document)
        file = self._load(snapshot)
        if reason := file.not_writable():
            msg = f"{document!r} is not written: {reason}"
            raise ToolError(msg)
        yield file
        self._workspace.replace(snapshot, file.to_bytes(), file.answer)


def _place(file: WordFile, control_id: str, control_name: str) -> Block | None:
    return find(file, control_id, control_name).block if control_id else None


def _made(file: WordFile, block: Block) -> Answer:
    """Name the control of a new block; an empty paragraph has none."""
    for found in find_all(file):
        if found.block._element is block._element:  # the same element, though another proxy
            return {"control_id": found.control.id, "control_name": found.control.name}
    return {"control_id": None, "control_name": ""}


def _below(file: WordFile, blocks: list[Block], found: WordControl) -> list[Block]:
    """Return a control's block; for a heading, its section's blocks."""
    start = next(n for n, block in enumerate(blocks) if block._element is found.block._element)
    if found.control.kind != "heading":
        return blocks[start : start + 1]
    level = file.heading_level(found.paragraph)
    end = start + 1
    while end < len(blocks):
        block = blocks[end]
        other = None if isinstance(block, Table) else file.heading_level(block)
        if other is not None and level is not None and other <= level:
            break
        end += 1
    return blocks[start:end]


def _text_of(file: WordFile, block: Block) -> str:
    """Format a block as text.

    A heading begins with ``#`` marks. A table has one line per row and tabs between cells.
    """
    if isinstance(block, Table):
        return "\n".join("\t".join(" ".join(text.split()) for text in row) for row in tables.grid_of(block).texts)
    level = file.heading_level(block)
    text = visible_text(block._p)
    return text if level is None else f"{'#' * max(1, level)} {text}"
