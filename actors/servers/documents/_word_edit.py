"""Edits of Word paragraphs that keep their formatting."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.text.paragraph import Paragraph
from docx.text.run import Run

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.documents._tables import clean
from callboard.actors.servers.documents._word_file import HIDDEN, MARKS, OTHER_TEXTS, paragraph_of
from callboard.actors.servers.documents._word_sources import computed_texts

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
_RANGES = tuple(
    (qn(f"w:{name}Start"), qn(f"w:{name}End"))
    for name in ("bookmark", "commentRange", "perm", "moveFromRange", "moveToRange")
)
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


@dataclass
class Replacement:
    """The replacement of all matches of a pattern, counted over paragraphs.

    A match may span runs; the new text gets the font of the first character that it replaces. Field codes and deleted
    text are left alone, and so are matches in `computed` texts.
    """

    pattern: re.Pattern[str]
    new: str
    computed: dict[BaseOxmlElement, str]
    """The texts that are left alone, with the reasons."""
    count: int = 0
    matches: set[str] = field(default_factory=set)
    kept: Counter[str] = field(default_factory=Counter)
    """The matches that are left alone, by reason."""
    links: list[str] = field(default_factory=list)
    """The new texts of links, whose targets stay."""

    def apply(self, paragraph: BaseOxmlElement, *, counted: bool = True) -> None:
        """Replace all matches in a paragraph."""
        pieces = list(texts_of(paragraph))
        whole = "".join(text for _, text in pieces)
        matches = [match for match in self.pattern.finditer(whole) if match.group()]
        touched: list[BaseOxmlElement] = []
        for match in reversed(matches):  # the last one first, so that earlier positions stay valid
            covered = list(_covered(pieces, *match.span()))
            if reason := next((self.computed[piece] for piece, *_ in covered if piece in self.computed), ""):
                self.kept[reason] += counted
                continue
            self.count += counted
            self.matches.add(match.group())
            for number, (piece, first, last) in enumerate(covered):
                _put_text(piece, first, last, "" if number else self.new)
                touched.append(piece)
        links = dict.fromkeys(link for piece in touched for link in piece.iterancestors(qn("w:hyperlink")))
        self.links += ["".join(text for _, text in texts_of(link)) for link in links if counted]

    def apply_everywhere(self, file: WordFile) -> None:
        """Replace all matches, also in text boxes, headers, footers and notes."""
        for part in (file.package.main, *(name for kind in _STORIES for name in file.package.beside(kind))):
            root = file.package.tree(part)
            self.computed = computed_texts(root)
            for paragraph in root.iter(qn("w:p")):
                is_copy = next(paragraph.iterancestors(_FALLBACK), None) is not None  # a text box, for old programs
                self.apply(paragraph, counted=not is_copy)


def _covered(
    pieces: list[tuple[BaseOxmlElement, str]], start: int, end: int
) -> Iterator[tuple[BaseOxmlElement, int, int]]:
    position = 0
    for piece, text in pieces:
        first, last = max(start - position, 0), min(end - position, len(text))
        position += len(text)
        if first < last:
            yield piece, first, last


def _put_text(piece: BaseOxmlElement, first: int, last: int, new: str) -> None:
    """Replace a part of a text; a hyphen element becomes one."""
    text = piece.text or ""
    if piece.tag != qn("w:t"):
        hyphen, piece, text = piece, OxmlElement("w:t"), "-"
        hyphen.addprevious(piece)
        hyphen.getparent().remove(hyphen)
    piece.text = text[:first] + new + text[last:]
    piece.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")


def paragraphs_of(block: Block) -> Iterator[CT_P]:
    """Yield the paragraphs of a block and of its nested tables.

    Those of text boxes are left out.
    """
    for paragraph in element_of(block).iter(qn("w:p")):
        if next(paragraph.iterancestors(qn("w:txbxContent")), None) is None:
            yield paragraph


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

    Tabs, line breaks, symbols and equations become a character that matches nothing.
    """
    for child in element.iterchildren():
        if child.tag == qn("w:t"):
            yield child, child.text or ""
        elif child.tag == qn("w:noBreakHyphen"):
            yield child, "\u2011"
        elif child.tag in MARKS or (child.tag in OTHER_TEXTS and OTHER_TEXTS[child.tag](child)):
            yield child, "\0"
        elif child.tag not in HIDDEN and child.tag not in OTHER_TEXTS and child.tag != qn("w:pPr"):
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
    keep_range_halves(element)
    ends = following is None or following.tag in {qn("w:tbl"), qn("w:sectPr")}
    if ends and previous is not None and previous.tag == qn("w:tbl"):
        element.addprevious(OxmlElement("w:p"))
    element.getparent().remove(element)


def keep_range_halves(element: BaseOxmlElement) -> None:
    """Keep ranges whole that begin or end in a removed element.

    Bookmarks and comments may begin or end in another paragraph; Word drops one that lacks a half.
    """
    for first, last in _RANGES:
        starts, ends = ({mark.get(qn("w:id")): mark for mark in element.iter(tag)} for tag in (first, last))
        for number in starts.keys() ^ ends.keys():
            start, end = starts.get(number), ends.get(number)
            before, after = (element.xpath(f"{axis}::w:p[1]") for axis in ("preceding", "following"))
            if end is not None and before:
                before[0].append(end)
            elif start is not None and after:
                properties = after[0].find(qn("w:pPr"))
                after[0].insert(0 if properties is None else 1, start)
            elif start is None:
                element.addprevious(end)
            else:
                element.addnext(start)


def element_of(block: Block) -> BaseOxmlElement:
    """Return the element of a paragraph or a table."""
    return block._p if isinstance(block, Paragraph) else block._tbl
