"""Formatting of Word text: fonts, alignment, styles."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Literal, TypeAlias

from docx.enum.text import WD_PARAGRAPH_ALIGNMENT
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Pt, RGBColor
from docx.text.font import Font

from callboard.surfaces.documents._tables import clean, color_code
from callboard.surfaces.documents.word._document import paragraph_of
from callboard.surfaces.documents.word._paragraph_edits import texts_of

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

    from docx.oxml.text.paragraph import CT_P
    from docx.oxml.text.run import CT_R
    from docx.oxml.xmlchemy import BaseOxmlElement

Alignment: TypeAlias = Literal["left", "center", "right", "justify"]

_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def set_font(
    runs: Iterable[CT_R],
    *,
    name: str = "",
    size: float | None = None,
    bold: bool | None = None,
    italic: bool | None = None,
    underline: bool | None = None,
    color: str = "",
) -> int:
    """Set font properties of runs, and return the number of runs.

    Raises:
        ToolError: If the color is none.
    """
    rgb = color_code(color)
    count = 0
    for run in runs:
        font = Font(run)
        count += 1
        if name:
            font.name = clean(name)
            run.get_or_add_rPr().get_or_add_rFonts().set(qn("w:eastAsia"), clean(name))
        if size is not None:
            font.size = Pt(size)
        if bold is not None:
            font.bold = bold
        if italic is not None:
            font.italic = italic
        if underline is not None:
            font.underline = underline
        if color:
            font.color.rgb = RGBColor.from_string(rgb) if rgb else None
    return count


def align(paragraph: CT_P, alignment: Alignment) -> None:
    """Align a paragraph."""
    paragraph_of(paragraph).alignment = WD_PARAGRAPH_ALIGNMENT[alignment.upper()]


def runs_of(paragraph: CT_P, pattern: re.Pattern[str]) -> list[CT_R]:
    """Split runs around the matches of a pattern.

    Returns:
        The runs that hold exactly the matches. The text and its format stay.
    """
    paragraph_text = "".join(text for _, text in texts_of(paragraph))
    matches = [match.span() for match in pattern.finditer(paragraph_text) if match.group()]
    for boundary in sorted({boundary for match in matches for boundary in match}):
        _split(paragraph, boundary)
    runs: list[CT_R] = []
    position = 0
    for piece, text in texts_of(paragraph):
        run = piece.getparent()
        inside = any(start <= position < end for start, end in matches)
        if inside and run not in runs:
            runs.append(run)
        position += len(text)
    return runs


def _split(paragraph: CT_P, boundary: int) -> None:
    """Split the run around a boundary in the visible text.

    Args:
        paragraph: The paragraph.
        boundary: The number of characters before it.
    """
    position = 0
    for piece, text in texts_of(paragraph):
        offset = boundary - position
        position += len(text)
        if 0 <= offset < len(text):
            if offset:
                remainder = OxmlElement("w:t")
                for part, words in ((piece, text[:offset]), (remainder, text[offset:])):
                    part.text = words
                    part.set(_SPACE, "preserve")
                piece.addnext(remainder)
                piece = remainder  # noqa: PLW2901 - the piece that begins at the boundary
            _split_before(piece)
            return


def _split_before(piece: BaseOxmlElement) -> None:
    """Move a text and its followers to a run of their own."""
    run, looks = piece.getparent(), piece.getparent().find(qn("w:rPr"))
    previous = piece.getprevious()
    if previous is None or previous is looks:
        return
    second = OxmlElement("w:r")
    if looks is not None:
        second.append(copy.deepcopy(looks))
    second.extend([piece, *piece.itersiblings()])
    run.addnext(second)
