"""Edits of Word paragraphs that keep their formatting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.text.paragraph import Paragraph
from docx.text.run import Run

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.documents._tables import clean
from callboard.actors.servers.documents._word_file import HIDDEN, MARKS, paragraph_of

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator

    from docx.oxml.text.paragraph import CT_P
    from docx.oxml.xmlchemy import BaseOxmlElement

    from callboard.actors.servers.documents._word_file import Block, WordFile

_PLAIN = frozenset(
    qn(f"w:{name}")
    for name in ("pPr", "r", "proofErr", "bookmarkStart", "bookmarkEnd", "permStart", "permEnd", "smartTag")
)
_PLAIN_RUN = frozenset(
    qn(f"w:{name}") for name in ("rPr", "t", "tab", "br", "cr", "noBreakHyphen", "lastRenderedPageBreak", "softHyphen")
)
_BREAKS = frozenset({"page", "column"})
_BLOCKS = frozenset(qn(f"w:{name}") for name in ("p", "tbl", "sdt", "customXml", "sectPr"))
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
    "commentRangeEnd": "a comment",
    "ins": "tracked changes",
    "del": "tracked changes",
    "delText": "tracked changes",
    "moveFrom": "tracked changes",
    "moveTo": "tracked changes",
    "ruby": "a reading aid (ruby)",
    "sym": "a symbol",
    "oMath": "a formula",
    "oMathPara": "a formula",
    "sdt": "a content control",
    "AlternateContent": "a text box or shape",
}
_STORIES = ("header", "footer", "footnotes", "endnotes")
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"


def set_text(paragraph: Paragraph, text: str) -> None:
    """Replace a paragraph's text, in the font of its first run.

    Line breaks and tabs in the new text are kept.

    Raises:
        ToolError: If the paragraph holds more than text (a link, picture, page break, note …), which would be lost.
    """
    more = {child.tag for child in paragraph._p.iterchildren()} - _PLAIN
    more |= {child.tag for run in paragraph._p.iter(qn("w:r")) for child in run.iterchildren()} - _PLAIN_RUN
    names = [tag.rpartition("}")[2] for tag in more]
    kinds = {each.get(qn("w:type")) for each in paragraph._p.iter(qn("w:br"))} & _BREAKS
    lost = sorted({_WORDS.get(name, name) for name in names} | {f"a {kind} break" for kind in kinds})
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
    pieces = list(texts_of(paragraph))
    whole = "".join(text for _, text in pieces)
    matches = [match.span() for match in pattern.finditer(whole) if match.group()]
    for start, end in reversed(matches):  # the last one first, so that earlier positions stay valid
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
    return len(matches)


def paragraphs_of(block: Block) -> Iterator[CT_P]:
    """Yield the paragraphs of a block and of its nested tables.

    Those of text boxes are left out.
    """
    for paragraph in element_of(block).iter(qn("w:p")):
        if next(paragraph.iterancestors(qn("w:txbxContent")), None) is None:
            yield paragraph


def replace_everywhere(file: WordFile, pattern: re.Pattern[str], new: str) -> int:
    """Replace all matches in a document, and return their number.

    Text boxes, headers, footers and notes are included.
    """
    count = 0
    for part in (file.package.main, *(name for kind in _STORIES for name in file.package.beside(kind))):
        for paragraph in file.package.tree(part).iter(qn("w:p")):
            replaced = replace_in(paragraph, pattern, new)
            if next(paragraph.iterancestors(_FALLBACK), None) is None:  # the same text box again, for old programs
                count += replaced
    return count


def insert_paragraphs(
    file: WordFile, texts: Iterable[str], style: str, place: Block | None, *, before: bool
) -> list[Paragraph]:
    """Insert paragraphs beside a block, or at the end without one.

    Args:
        file: The document.
        texts: Their texts, in order; line breaks and tabs in them stay.
        style: The id of their style; empty for none.
        place: The block.
        before: Whether they stand before the block.
    """
    made: list[Paragraph] = []
    for text in texts:
        paragraph = paragraph_of(OxmlElement("w:p"))
        if style:
            paragraph._p.style = style
        if text:
            paragraph.add_run(text)
        put(file, paragraph._p, made[-1] if made else place, before=before and not made)
        made.append(paragraph)
    return made


def put(file: WordFile, element: BaseOxmlElement, place: Block | None, *, before: bool) -> None:
    """Put a new block beside another one, or at the end."""
    if place is None:
        end = file.body.find(qn("w:sectPr"))
        if end is None:
            file.body.append(element)
        else:
            end.addprevious(element)
    elif before:
        element_of(place).addprevious(element)
    else:
        element_of(place).addnext(element)


def texts_of(element: BaseOxmlElement) -> Iterator[tuple[BaseOxmlElement, str]]:
    """Yield the visible texts.

    Tabs and line breaks become a character that matches nothing.
    """
    for child in element.iterchildren():
        if child.tag == qn("w:t"):
            yield child, child.text or ""
        elif child.tag in MARKS:
            yield child, "\0"
        elif child.tag not in HIDDEN and child.tag != qn("w:pPr"):
            yield from texts_of(child)


def separate(element: BaseOxmlElement) -> None:
    """Insert empty paragraphs between adjacent tables, because Word would join them."""
    following, previous = element.getnext(), element.getprevious()
    if following is None or following.tag in {qn("w:tbl"), qn("w:sectPr")}:
        element.addnext(OxmlElement("w:p"))
    if previous is not None and previous.tag == qn("w:tbl"):
        element.addprevious(OxmlElement("w:p"))


def remove(element: BaseOxmlElement) -> None:
    """Remove a block, but leave an empty paragraph where Word needs one.

    Word joins adjacent tables, and a table at the end needs a paragraph below.
    """
    previous, following = (
        next((each for each in element.itersiblings(preceding=before) if each.tag in _BLOCKS), None)
        for before in (True, False)
    )
    ends = following is None or following.tag in {qn("w:tbl"), qn("w:sectPr")}
    if ends and previous is not None and previous.tag == qn("w:tbl"):
        element.addprevious(OxmlElement("w:p"))
    element.getparent().remove(element)


def element_of(block: Block) -> BaseOxmlElement:
    """Return the element of a paragraph or a table."""
    return block._p if isinstance(block, Paragraph) else block._tbl
