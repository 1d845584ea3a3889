"""A new Word document from a text with light marks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from docx.enum.section import WD_ORIENT
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Inches

from callboard.surfaces.documents._tables import clean
from callboard.surfaces.documents._workspace import Snapshot
from callboard.surfaces.documents.word._document import WordFile, empty_document, paragraph_of
from callboard.surfaces.documents.word._document_tables import make_table
from callboard.surfaces.documents.word._lists import set_list
from callboard.surfaces.documents.word._paragraph_edits import put, separate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docx.oxml.text.paragraph import CT_P

    from callboard.surfaces.documents._tables import Cell

_LARGEST = 50_000_000
_HEADING = re.compile(r"(?P<marks>#{1,6}) (?P<text>.*)")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?P<mark>[-*+•]|[0-9]{1,3}[.)])[ \t]+(?P<text>.+)")
_RULE = re.compile(r" {0,3}([-*_])(?: *\1){2,} *")
_ROW = re.compile(r" {0,3}\|(?P<cells>.+)\| *")
_CELL_END = re.compile(r"(?<!\\)\|")
_UNDER_HEADER = re.compile(r" {0,3}\|(?: *:?-+:? *\|)+ *")
_BOLD = re.compile(r"\*\*(?=\S)((?:[^*]|\*(?!\*))+)(?<=\S)\*\*")
"""It looks no further than the next mark: a text of many marks takes no longer than others."""
_DEEPEST = 9
_MOST_UPRIGHT = 7
"""The most columns of a table on upright pages."""


def marked_document(text: str, header: list[str], rows: list[list[Cell]]) -> bytes:
    """Make a document of a text, and a table behind it.

    Lines that begin with ``#`` marks are headings, those with ``-`` or ``1.`` items of lists (two spaces for each
    level), and those between ``|`` rows of tables. An empty line begins a new paragraph; other line breaks stay. ``**``
    stands around bold words, and lines of ``---`` are left out.

    Raises:
        ToolError: If the text has characters that no document can hold.
    """
    file = WordFile.load(Snapshot("new.docx", Path("new.docx"), empty_document(), "", 0.0, 0o600), _LARGEST)
    widths = (len(_cells_of(line)) for line in text.splitlines())
    if max(len(header), *(len(row) for row in rows[:1]), *widths, 0) > _MOST_UPRIGHT:
        _turn_pages(file)
    for lines in _blocks(clean(text)):
        if heading := _HEADING.fullmatch(lines[0]):
            _add_paragraph(file, heading_text(heading["text"]), file.styles.heading(len(heading["marks"])))
        elif item := _ITEM.fullmatch(lines[0]):
            _add_item(file, item, lines[1:])
        elif _ROW.fullmatch(lines[0]):
            has_header = len(lines) > 1 and _UNDER_HEADER.fullmatch(lines[1]) is not None
            cells = [_cells_of(line) for line in lines if not _UNDER_HEADER.fullmatch(line)]
            width = max(map(len, cells), default=0)
            table = [[*row, *[""] * (width - len(row))] for row in cells]
            if table:
                _add_table(file, table[0] if has_header else [], [[*row] for row in table[has_header:]])
        else:
            _add_paragraph(file, "\n".join(line.strip() for line in lines))
    if header or rows:
        _add_table(file, header, rows)
    return file.to_bytes()


def _turn_pages(file: WordFile) -> None:
    """Make pages wider than high, and narrow their margins."""
    section = file.body.find(qn("w:sectPr"))
    section.page_width, section.page_height = section.page_height, section.page_width
    section.orientation = WD_ORIENT.LANDSCAPE
    section.left_margin = section.right_margin = Inches(0.6)


def heading_text(text: str) -> str:
    """Return a heading without the marks that may close it."""
    text = text.strip(" \t")
    words = text.rstrip("#")
    return text if words and words[-1] not in " \t" else words.rstrip(" \t")


def _blocks(text: str) -> Iterator[list[str]]:
    """Divide a text into lines of headings, items, tables and paragraphs."""
    block: list[str] = []
    for line in text.expandtabs(4).split("\n"):
        kind = _kind_of(line)
        if block and (kind in {"", "heading", "item"} or (kind == "row") != (_kind_of(block[0]) == "row")):
            yield block
            block = []
        if kind:
            block.append(line)
            if kind == "heading":
                yield block
                block = []
    if block:
        yield block


def _kind_of(line: str) -> str:
    """Name the kind of a line; empty for one that only divides."""
    if not line.strip() or _RULE.fullmatch(line):
        return ""
    if _HEADING.fullmatch(line):
        return "heading"
    return "item" if _ITEM.fullmatch(line) else "row" if _ROW.fullmatch(line) else "text"


def _cells_of(line: str) -> list[str]:
    match = _ROW.fullmatch(line)
    cells = _CELL_END.split(match["cells"]) if match else []
    return [cell.strip().replace("\\|", "|").replace("**", "") for cell in cells]


def _add_item(file: WordFile, item: re.Match[str], more_lines: list[str]) -> None:
    text = "\n".join([item["text"], *(line.strip() for line in more_lines)])
    paragraph = _add_paragraph(file, text)
    level = min(len(item["indent"]) // 2 + 1, _DEEPEST)
    set_list(file, paragraph, "number" if item["mark"][0].isdigit() else "bullet", level)


def _add_paragraph(file: WordFile, text: str, style: str = "") -> CT_P:
    """Add a paragraph at the end; words between ``**`` are bold."""
    paragraph = paragraph_of(OxmlElement("w:p"))
    if style:
        paragraph._p.style = style
    for number, part in enumerate(_BOLD.split(text)):
        if part:
            paragraph.add_run(part).bold = True if number % 2 else None
    put(file, paragraph._p, None, is_before=False)
    return paragraph._p


def _add_table(file: WordFile, header: list[str], rows: list[list[Cell]]) -> None:
    table = make_table(file, header, rows, "")
    put(file, table, None, is_before=False)
    separate(table)
