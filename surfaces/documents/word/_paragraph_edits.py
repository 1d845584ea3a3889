"""Edits of Word paragraphs that keep their formatting."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.text.paragraph import Paragraph
from docx.text.run import Run

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._tables import clean
from callboard.surfaces.documents.word._document import paragraph_of, shown_texts, visible_text
from callboard.surfaces.documents.word._text_sources import (
    TextSources,
    fill_placeholders,
    is_closed,
    text_sources,
    with_emptied_controls,
)

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator

    from docx.oxml.text.paragraph import CT_P
    from docx.oxml.xmlchemy import BaseOxmlElement

    from callboard.surfaces.documents.word._document import Block, WordFile

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
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"


def set_text(paragraph: Paragraph, text: str) -> None:
    """Replace a paragraph's text, in the font of its first run.

    Line breaks and tabs in the new text are kept.

    Raises:
        ToolError: If the paragraph holds more than text (a link, picture, page break, note …), which would be lost.
    """
    tags = {child.tag for child in paragraph._p.iterchildren()} - _PLAIN
    tags |= {child.tag for run in paragraph._p.iter(qn("w:r")) for child in run.iterchildren()} - _PLAIN_RUN
    names = [tag.rpartition("}")[2] for tag in tags]
    kinds = {break_element.get(qn("w:type")) for break_element in paragraph._p.iter(qn("w:br"))} & _BREAKS
    obstacles = sorted({_WORDS.get(name, name) for name in names} | {f"a {kind} break" for kind in kinds})
    if obstacles:
        msg = (
            f"the paragraph holds {', '.join(obstacles)}, which a new text would remove; "
            "replace_text can change words in it"
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
    fill_placeholders([paragraph._p])


@dataclass
class Replacement:
    """The replacement of all matches of a pattern, counted over paragraphs.

    A match may span runs; the new text gets the font of the first character that it replaces. Field codes and deleted
    text are left alone, and so are texts with a source elsewhere.
    """

    pattern: re.Pattern[str]
    new: str
    sources: TextSources
    count: int = 0
    matches: set[str] = field(default_factory=set)
    skip_counts: Counter[str] = field(default_factory=Counter)
    """The matches that are left alone, by reason."""
    links: list[str] = field(default_factory=list)
    """The new texts of links, whose targets stay."""

    def apply(self, paragraph: BaseOxmlElement, *, counted: bool = True) -> None:
        """Replace all matches in a paragraph."""
        pieces = list(texts_of(paragraph))
        paragraph_text = "".join(text for _, text in pieces)
        matches = [match for match in self.pattern.finditer(paragraph_text) if match.group()]
        changed_pieces: list[BaseOxmlElement] = []
        for match in reversed(matches):  # the last one first, so that earlier positions stay valid
            match_pieces = list(_covered_pieces(pieces, *match.span()))
            if reason := next(
                (self.sources.reasons[piece] for piece, *_ in match_pieces if piece in self.sources.reasons), ""
            ):
                self.skip_counts[reason] += counted
                continue
            self.count += counted
            self.matches.add(match.group())
            for number, (piece, first, last) in enumerate(match_pieces):
                _put_text(piece, first, last, "" if number else self.new)
                changed_pieces.append(piece)
        fill_placeholders(changed_pieces)
        of_link = self.sources.links
        links = (
            dict.fromkeys(of_link[piece] for piece in reversed(changed_pieces) if piece in of_link) if counted else {}
        )
        for link in links:
            words = [piece.text or "" for piece, _ in shown_texts(paragraph) if of_link.get(piece) is link]
            self.links.append("".join(words))

    def apply_everywhere(self, file: WordFile) -> None:
        """Replace all matches, also in text boxes, headers, footers and notes."""
        for part in (file.package.main, *(name for kind in _STORIES for name in file.package.beside(kind))):
            root = file.package.tree(part)
            self.sources = text_sources(root)
            for paragraph in root.iter(qn("w:p")):
                is_copy = next(paragraph.iterancestors(_FALLBACK), None) is not None  # a text box, for old programs
                self.apply(paragraph, counted=not is_copy)
        self._count_elsewhere(file)

    def _count_elsewhere(self, file: WordFile) -> None:
        """Count the matches in parts that are not written."""
        for part in file.package.beside("comments"):
            comment_texts = map(visible_text, file.package.tree(part).iter(qn("w:p")))
            self.skip_counts["comments"] += sum(len(self.pattern.findall(text)) for text in comment_texts)
        for folder, name in (("diagrams/data", "SmartArt graphics"), ("charts/chart", "charts")):
            for part in [part for part in file.package if f"/{folder}" in part and part.endswith(".xml")]:
                for paragraph in file.package.tree(part).iter(f"{_DRAWING}p"):
                    text = "".join(run.text or "" for run in paragraph.iter(f"{_DRAWING}t"))
                    self.skip_counts[name] += len(self.pattern.findall(text))
        pictures = file.body.iter("{*}docPr")
        texts = (text for picture in pictures for name in ("title", "descr") if (text := picture.get(name)))
        self.skip_counts["alternative texts of pictures"] += sum(len(self.pattern.findall(text)) for text in texts)
        self.skip_counts = +self.skip_counts


def _covered_pieces(
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
    file: WordFile, texts: Iterable[str], style: str, neighbor: Block | None, *, is_before: bool
) -> list[Paragraph]:
    """Insert paragraphs beside a block, or at the end without one.

    Args:
        file: The document.
        texts: Their texts, in order; line breaks and tabs in them stay.
        style: The id of their style; empty for none.
        neighbor: The block.
        is_before: Whether they stand before the block.
    """
    paragraphs: list[Paragraph] = []
    for text in texts:
        paragraph = paragraph_of(OxmlElement("w:p"))
        if style:
            paragraph._p.style = style
        if text:
            paragraph.add_run(text)
        put(file, paragraph._p, paragraphs[-1] if paragraphs else neighbor, is_before=is_before and not paragraphs)
        paragraphs.append(paragraph)
    return paragraphs


def put(file: WordFile, element: BaseOxmlElement, neighbor: Block | None, *, is_before: bool) -> None:
    """Put a new block beside another one, or at the end."""
    if neighbor is None:
        end = file.body.find(qn("w:sectPr"))
        if end is None:
            file.body.append(element)
        else:
            end.addprevious(element)
    else:
        anchor = element_of(neighbor)
        for control in list(anchor.iterancestors(qn("w:sdt"))):
            anchor = control if is_closed(control) else anchor
        (anchor.addprevious if is_before else anchor.addnext)(element)


def texts_of(element: BaseOxmlElement) -> Iterator[tuple[BaseOxmlElement, str]]:
    """Yield the visible texts.

    Tabs, line breaks, symbols and equations become a character that matches nothing.
    """
    for child, text in shown_texts(element):
        if child.tag == qn("w:t"):
            letters = child.text or ""
            yield child, letters if text == letters else "\0" * len(letters)
        else:
            yield child, "\u2011" if child.tag == qn("w:noBreakHyphen") else "\0"


def separate(element: BaseOxmlElement) -> None:
    """Insert empty paragraphs between adjacent tables, because Word would join them."""
    following, previous = element.getnext(), element.getprevious()
    if following is None or following.tag in {qn("w:tbl"), qn("w:sectPr")}:
        element.addnext(OxmlElement("w:p"))
    if previous is not None and previous.tag == qn("w:tbl"):
        element.addprevious(OxmlElement("w:p"))


def remove(element: BaseOxmlElement) -> None:
    """Remove a block, but leave an empty paragraph where Word needs one.

    Word joins adjacent tables, and a table at the end needs a paragraph below. A content control ends with its last
    block.
    """
    element = with_emptied_controls(element)
    previous, following = (
        next((sibling for sibling in element.itersiblings(preceding=preceding) if sibling.tag in _BLOCKS), None)
        for preceding in (True, False)
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
            preceding, following = (element.xpath(f"{axis}::w:p[1]") for axis in ("preceding", "following"))
            if end is not None and preceding:
                preceding[0].append(end)
            elif start is not None and following:
                properties = following[0].find(qn("w:pPr"))
                following[0].insert(0 if properties is None else 1, start)
            elif start is None:
                element.addprevious(end)
            else:
                element.addnext(start)


def element_of(block: Block) -> BaseOxmlElement:
    """Return the element of a paragraph or a table."""
    return block._p if isinstance(block, Paragraph) else block._tbl
