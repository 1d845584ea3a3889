"""Fonts of texts on slides: name, size, style and color."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lxml import etree

from callboard.surfaces.documents._package import Element, local
from callboard.surfaces.documents._tables import clean, color_code
from callboard.surfaces.documents.powerpoint._deck import a
from callboard.surfaces.documents.powerpoint._slide_texts import pieces_of

if TYPE_CHECKING:
    import re

_ORDER = (
    *("ln", "noFill", "solidFill", "gradFill", "blipFill", "pattFill", "grpFill", "effectLst", "effectDag"),
    *("highlight", "uLnTx", "uLn", "uFillTx", "uFill", "latin", "ea", "cs", "sym"),
    *("hlinkClick", "hlinkMouseOver", "rtl", "extLst"),
)
"""The children of a run's properties in their order."""
_FILLS = frozenset(_ORDER[1:7])


@dataclass(frozen=True)
class SlideFont:
    """Properties of a font; None and empty texts leave the present ones."""

    name: str = ""
    size: float | None = None
    """In points."""
    bold: bool | None = None
    italic: bool | None = None
    underline: bool | None = None
    color: str = ""
    """As `color_code` reads it; ``none`` takes the text's own color away."""

    def __bool__(self) -> bool:
        """Return whether anything is set."""
        return self != SlideFont()

    def apply_to(self, paragraphs: list[Element], pattern: re.Pattern[str] | None = None) -> int:
        """Set the font of paragraphs, or of the matches in them.

        Returns:
            The number of runs whose font was set.

        Raises:
            ToolError: If the color is none.
        """
        rgb = color_code(self.color)
        runs = [run for paragraph in paragraphs for run in _runs(paragraph, pattern)]
        for run in runs:
            self._set(_properties(run), rgb)
        for paragraph in paragraphs if pattern is None else ():
            self._set(_end_properties(paragraph), rgb)  # of what is written there next
        return len(runs)

    def _set(self, properties: Element, rgb: str | None) -> None:
        if self.size is not None:
            properties.set("sz", str(round(self.size * 100)))
        for name, value in (("b", self.bold), ("i", self.italic)):
            if value is not None:
                properties.set(name, str(int(value)))
        if self.underline is not None:
            properties.set("u", "sng" if self.underline else "none")
        if self.color:
            for child in [child for child in properties if local(child) in _FILLS]:
                properties.remove(child)
            if rgb is not None:
                etree.SubElement(_child(properties, "solidFill"), a("srgbClr")).set("val", rgb)
        for kind in ("latin", "cs") if self.name else ():
            font = _child(properties, kind)
            font.attrib.clear()
            font.set("typeface", clean(self.name))


def _runs(paragraph: Element, pattern: re.Pattern[str] | None) -> list[Element]:
    """List a paragraph's runs, line breaks and fields, or the matches.

    Runs are split around the matches; texts and formats stay.
    """
    if pattern is None:
        return [child for child in paragraph if local(child) in {"r", "br", "fld"}]
    pieces = pieces_of(paragraph)
    matches = [match.span() for match in pattern.finditer("".join(text for _, text in pieces)) if match.group()]
    runs: list[Element] = []
    for start, end in reversed(matches):  # the last one first, so that earlier positions stay valid
        position = 0
        for piece, text in pieces_of(paragraph):
            first, last = max(start - position, 0), min(end - position, len(text))
            position += len(text)
            if piece is not None and first < last:
                _split(piece, first, last)
                runs.append(piece.getparent())
    return runs


def _split(piece: Element, first: int, last: int) -> None:
    """Leave a part of a run's text, with new runs around it."""
    run, text = piece.getparent(), piece.text or ""
    properties = run.find(a("rPr"))
    for words, add in ((text[:first], run.addprevious), (text[last:], run.addnext)):
        if words:
            neighbor = etree.Element(a("r"))
            if properties is not None:
                neighbor.append(copy.deepcopy(properties))
            etree.SubElement(neighbor, a("t")).text = words
            add(neighbor)
    piece.text = text[first:last]


def _properties(run: Element) -> Element:
    properties = run.find(a("rPr"))
    if properties is None:
        properties = etree.Element(a("rPr"))
        run.insert(0, properties)
    return properties


def _end_properties(paragraph: Element) -> Element:
    properties = paragraph.find(a("endParaRPr"))
    return etree.SubElement(paragraph, a("endParaRPr")) if properties is None else properties


def _child(properties: Element, name: str) -> Element:
    """Find a child of a run's properties, or make it."""
    child = properties.find(a(name))
    if child is None:
        child = etree.Element(a(name))
        preceding_names = _ORDER[: _ORDER.index(name)]
        properties.insert(sum(local(other) in preceding_names for other in properties), child)
    return child
