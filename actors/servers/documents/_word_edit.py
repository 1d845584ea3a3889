"""Edits of Word paragraphs that keep their formatting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Pt, RGBColor
from docx.text.paragraph import Paragraph
from docx.text.run import Run

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.documents._tables import clean
from callboard.actors.servers.documents._word_file import HIDDEN, MARKS

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from docx.document import Document
    from docx.oxml.xmlchemy import BaseOxmlElement
    from docx.table import Table

    from callboard.actors.servers.documents._word_file import Block

_PLAIN = frozenset(
    qn(f"w:{name}")
    for name in ("pPr", "r", "proofErr", "bookmarkStart", "bookmarkEnd", "permStart", "permEnd", "smartTag")
)
_PLAIN_RUN = frozenset(
    qn(f"w:{name}") for name in ("rPr", "t", "tab", "br", "cr", "noBreakHyphen", "lastRenderedPageBreak", "softHyphen")
)
_WORDS = {
    "hyperlink": "a link",
    "drawing": "a picture",
    "pict": "a picture",
    "object": "an embedded object",
    "fldChar": "a field",
    "fldSimple": "a field",
    "instrText": "a field",
    "footnoteReference": "a footnote",
    "endnoteReference": "an endnote",
    "commentReference": "a comment",
    "commentRangeStart": "a comment",
    "ins": "tracked changes",
    "del": "tracked changes",
    "oMath": "a formula",
    "oMathPara": "a formula",
    "sdt": "a content control",
    "AlternateContent": "a text box or shape",
}
_HEADING_SIZES = {1: 16, 2: 14, 3: 12}


def set_text(paragraph: Paragraph, text: str) -> None:
    """Replace a paragraph's text, in the font of its first run.

    Line breaks and tabs in the new text are kept.

    Raises:
        ToolError: If the paragraph holds more than text (a link, picture, field, note …), which would be lost.
    """
    lost = sorted({_WORDS.get(name, name) for name in _more_than_text(paragraph._p)})
    if lost:
        msg = (
            f"the paragraph holds {', '.join(lost)}, which a new text would remove; replace_text can change words in it"
        )
        raise ToolError(msg)
    text = clean(text)
    runs = [Run(element, paragraph) for element in paragraph._p.iter(qn("w:r"))]
    if runs:
        runs[0].text = text
        for run in runs[1:]:
            element = run._r  # python-docx can't remove a run
            element.getparent().remove(element)
    elif text:
        paragraph.add_run(text)


def replace_in(paragraph: BaseOxmlElement, pattern: re.Pattern[str], new: str) -> int:
    """Replace all matches in a paragraph, and return their number.

    A match may span runs; the new text gets the font of the first character that it replaces. Field codes, deleted
    text and text boxes are left alone.
    """
    pieces = list(_texts(paragraph))
    whole = "".join(text for _, text in pieces)
    matches = [match.span() for match in pattern.finditer(whole) if match.group()]
    for start, end in reversed(matches):
        _splice(pieces, start, end, new)
    return len(matches)


def paragraphs_of(block: Block) -> Iterator[BaseOxmlElement]:
    """Yield the paragraphs of a block and of its nested tables.

    Those of text boxes are left out.
    """
    for paragraph in _element(block).iter(qn("w:p")):
        if next(paragraph.iterancestors(qn("w:txbxContent")), None) is None:
            yield paragraph


def insert_paragraph(document: Document, text: str, style: str, place: Block | None, *, before: bool) -> Paragraph:
    """Insert a paragraph beside a block, or at the end without one.

    Raises:
        ToolError: If the document has no such paragraph style.
    """
    known = {entry.name: entry for entry in document.styles if entry.type == WD_STYLE_TYPE.PARAGRAPH}
    if style and style not in known:
        names = ", ".join(sorted(name for name in known if name))
        msg = f"the document has no paragraph style {style!r}; it has: {names}"
        raise ToolError(msg)
    paragraph = document.add_paragraph(clean(text), style=style or None)
    move(paragraph, place, before=before)
    return paragraph


def insert_heading(document: Document, text: str, level: int, place: Block | None, *, before: bool) -> Paragraph:
    """Insert a heading beside a block, or at the end without one.

    Level 0 is the title. A missing style is added to the document.
    """
    style = f"Heading {level}" if level else "Title"
    if style not in {entry.name for entry in document.styles}:
        made = document.styles.add_style(style, WD_STYLE_TYPE.PARAGRAPH, builtin=True)
        made.font.bold = True
        made.font.size = Pt(_HEADING_SIZES.get(level, 11) if level else 24)
        if level:
            outline = OxmlElement("w:outlineLvl")
            outline.set(qn("w:val"), str(level - 1))
            made.element.get_or_add_pPr().append(outline)
    return insert_paragraph(document, text, style, place, before=before)


def move(block: Block, place: Block | None, *, before: bool) -> None:
    """Move a block beside another one, if there is one."""
    if place is None:
        return
    target, element = _element(place), _element(block)
    if before:
        target.addprevious(element)
    else:
        target.addnext(element)


def separate(table: Table) -> None:
    """Insert empty paragraphs between adjacent tables, because Word would join them."""
    element = table._tbl
    following, previous = element.getnext(), element.getprevious()
    if following is None or following.tag in {qn("w:tbl"), qn("w:sectPr")}:
        element.addnext(OxmlElement("w:p"))
    if previous is not None and previous.tag == qn("w:tbl"):
        element.addprevious(OxmlElement("w:p"))


def set_font(
    block: Block,
    *,
    name: str = "",
    size: float | None = None,
    bold: bool | None = None,
    italic: bool | None = None,
    underline: bool | None = None,
    color: str = "",
) -> int:
    """Set font properties of a block, and return the number of runs."""
    count = 0
    for element in _element(block).iter(qn("w:r")):
        run = Run(element, block)
        count += 1
        if name:
            run.font.name = clean(name)
            run._r.get_or_add_rPr().get_or_add_rFonts().set(qn("w:eastAsia"), clean(name))
        if size is not None:
            run.font.size = Pt(size)
        if bold is not None:
            run.font.bold = bold
        if italic is not None:
            run.font.italic = italic
        if underline is not None:
            run.font.underline = underline
        if color:
            run.font.color.rgb = RGBColor.from_string(color.lstrip("#").upper())
    return count


def _element(block: Block) -> BaseOxmlElement:
    return block._p if isinstance(block, Paragraph) else block._tbl


def _more_than_text(paragraph: BaseOxmlElement) -> Iterator[str]:
    for child in paragraph.iterchildren():
        if child.tag not in _PLAIN:
            yield child.tag.rpartition("}")[2]
    for run in paragraph.iter(qn("w:r")):
        for child in run.iterchildren():
            if child.tag not in _PLAIN_RUN:
                yield child.tag.rpartition("}")[2]


def _texts(element: BaseOxmlElement) -> Iterator[tuple[BaseOxmlElement, str]]:
    """Yield the visible texts.

    Tabs and line breaks become a character that matches nothing.
    """
    for child in element.iterchildren():
        if child.tag == qn("w:t"):
            yield child, child.text or ""
        elif child.tag in MARKS:
            yield child, "\0"
        elif child.tag not in HIDDEN and child.tag != qn("w:pPr"):
            yield from _texts(child)


def _splice(pieces: list[tuple[BaseOxmlElement, str]], start: int, end: int, new: str) -> None:
    """Replace the characters from start to end of consecutive texts.

    The caller splices the last match first, so that earlier positions stay valid.
    """
    position, written = 0, False
    for piece, before in pieces:
        text = piece.text or "" if piece.tag == qn("w:t") else before
        first, last = max(start - position, 0), min(end - position, len(before))
        position += len(before)
        if first >= last:
            continue
        piece.text = text[:first] + ("" if written else new) + text[last:]
        piece.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
        written = True
