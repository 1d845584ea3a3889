"""Parts of texts that checks read: tables of Word documents, sections.

Each is found by its words, and must be the only one that fits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from docx.oxml.ns import qn
from docx.table import Table

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._tables import has_header, listed, nearest, same_words, short, single_match
from callboard.surfaces.documents.word import (
    find_all,
    header_of,
    heading_text,
    section_of,
    style_of,
    text_of,
    unseen_parts,
    visible_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from docx.oxml.text.paragraph import CT_P

    from callboard.surfaces.documents.word import Block, WordFile

_LABEL = re.compile(r"\w+\s+[\w.\-]*\d[\w.\-]*\s*[:.\u2013\u2014-]?\s+(?P<text>.+)", re.DOTALL)
"""A caption that begins with a label and a number, such as ``Table 2: Revenue``."""
_NUMBERED = re.compile(r"\s*SEQ\s", re.IGNORECASE)
_ATX = re.compile(r" {0,3}(?P<marks>#{1,6})(?:[ \t](?P<text>.*))?")
_SETEXT = re.compile(r" {0,3}(?P<marks>=+|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<rest>.*)")
_NO_TEXT = re.compile(r"[ \t]*|(?: {4}|\t| {0,3}(?:[-+*>]|[0-9]{1,9}[.)])(?:\s|$)).*")
"""A line that no line of ``---`` makes a heading: an empty one, code, a quotation or the item of a list."""


@dataclass(frozen=True)
class TitledTable:
    """A table of a Word document, and the texts that name it."""

    table: Table
    header: list[str]
    heading: str
    captions: list[str]

    def __str__(self) -> str:
        """Return the words of its header, and its heading."""
        below = f" below {short(self.heading)!r}" if self.heading else ""
        return f"{short(' | '.join(self.header))!r}{below}"

    def is_called(self, name: str) -> bool:
        """Return whether a name is one of its texts."""
        titles = (self.heading, *self.captions)
        return has_header(self.header, name) or any(same_words(name, title) for title in titles)


def find_table(file: WordFile, part: str) -> Table:
    """Find a table by its heading, caption or header.

    Raises:
        ToolError: If none fits, or several.
    """
    tables = _tables_in(file)
    return single_match([table for table in tables if not part or table.is_called(part)], part, "table", tables).table


def _tables_in(file: WordFile) -> list[TitledTable]:
    blocks = [block for block in file.blocks() if isinstance(block, Table) or visible_text(block._p).strip()]
    tables = []
    heading = ""
    for number, block in enumerate(blocks):
        if isinstance(block, Table):
            neighbors = [*blocks[max(0, number - 1) : number], *blocks[number + 1 : number + 2]]
            captions = [text for neighbor in neighbors for text in _captions(file, neighbor)]
            tables.append(TitledTable(block, header_of(block), heading, captions))
        elif file.heading_level(block) is not None:
            heading = visible_text(block._p)
    return tables


def _captions(file: WordFile, block: Block) -> list[str]:
    """Return a caption, whole and without its number; none of another block."""
    if isinstance(block, Table) or not _is_caption(file, block._p):
        return []
    text = visible_text(block._p)
    match = _LABEL.fullmatch(text.strip())
    return [text, match["text"]] if match else [text]


def _is_caption(file: WordFile, paragraph: CT_P) -> bool:
    """Return whether a paragraph has the style of captions or their number."""
    style = style_of(paragraph)
    codes = [element.text or "" for element in paragraph.iter(qn("w:instrText"))]
    codes += [element.get(qn("w:instr"), "") for element in paragraph.iter(qn("w:fldSimple"))]
    return bool(style and style == file.styles.has("paragraph", "caption")) or any(map(_NUMBERED.match, codes))


def word_text(file: WordFile, document: str, part: str) -> str:
    """Return the text of a document, or that below one heading.

    Raises:
        ToolError: If no heading has these words, or several have, or the document has no text but other parts that a
            person sees.
    """
    blocks = list(file.blocks())
    if part:
        headings = [word_control for word_control in find_all(file) if word_control.control.kind == "heading"]
        number = _heading(part, [visible_text(word_control.paragraph._p) for word_control in headings])
        return "\n".join(text_of(file, block) for block in section_of(file, blocks, headings[number])[1:])
    text = "\n".join(text_of(file, block) for block in blocks)
    if not text.strip() and (unseen := unseen_parts(file)):
        msg = f"{document!r} has no text, but {unseen}, which can't be read"
        raise ToolError(msg)
    return text


def markdown_section(text: str, part: str) -> str:
    """Return the text below one heading of a Markdown file.

    It ends at the next heading of the same or a higher level.

    Raises:
        ToolError: If no heading has these words, or several have.
    """
    lines = text.split("\n")
    headings = _markdown_headings(lines)
    number = _heading(part, [heading for _, _, _, heading in headings])
    _, start, level, _ = headings[number]
    end = next((first for first, _, next_level, _ in headings[number + 1 :] if next_level <= level), len(lines))
    return "\n".join(lines[start:end]).strip("\n")


def _markdown_headings(lines: Sequence[str]) -> list[tuple[int, int, int, str]]:
    """List headings: first line, line after the last one, level, text."""
    headings: list[tuple[int, int, int, str]] = []
    fence = ""
    paragraph = 0  # the first line of the paragraph that a line of === or --- would make a heading
    for number, line in enumerate(lines):
        if match := _FENCE.fullmatch(line):
            mark = match["mark"]
            if not fence:
                fence = mark if "`" not in match["rest"] or mark[0] == "~" else ""
            elif mark.startswith(fence) and not match["rest"].strip():
                fence = ""
            paragraph = number + 1
        elif fence:
            paragraph = number + 1
        elif match := _ATX.fullmatch(line):
            headings.append((number, number + 1, len(match["marks"]), heading_text(match["text"] or "")))
            paragraph = number + 1
        elif paragraph < number and (match := _SETEXT.fullmatch(line)):
            text = " ".join(lines[paragraph:number])
            headings.append((paragraph, number + 1, 1 if match["marks"][0] == "=" else 2, text))
            paragraph = number + 1
        elif _NO_TEXT.fullmatch(line):
            paragraph = number + 1
    return headings


def _heading(part: str, headings: Sequence[str]) -> int:
    """Return the number of the only heading with some words."""
    matches = [number for number, text in enumerate(headings) if same_words(part, text)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        msg = f"{len(matches)} headings are called {part!r}; give the one that is meant words of its own"
        raise ToolError(msg)
    msg = f"there is no heading {part!r}; there are: {_quote_names(headings)}{nearest(part, headings)}"
    raise ToolError(msg)


def _quote_names(texts: Iterable[str]) -> str:
    return listed(repr(text) for text in texts if text.strip())
