"""An estimate of the room that a text needs in its box."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.surfaces.documents._package import Element, local
from callboard.surfaces.documents.powerpoint._deck import a, p, path, placeholder_of
from callboard.surfaces.documents.powerpoint._slide_texts import level_of, paragraph_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.surfaces.documents.powerpoint._deck import DeckFile, Slide
    from callboard.surfaces.documents.powerpoint._shapes import SlideShape

_POINT = 12_700
_CENTIMETRE = 360_000
_INSETS = {"lIns": 91_440, "rIns": 91_440, "tIns": 45_720, "bIns": 45_720}
_SIZE = 1800
_LINE = 1.2
"""The height of a line, as a multiple of the size of its letters."""
_TOLERANCE = 1.03
_NARROW = frozenset("iljtfrI.,:;'|!()[]- ")
_WIDE = frozenset("mwMW@%")
_STYLES = {"title": "titleStyle", "ctrTitle": "titleStyle"}


@dataclass(frozen=True)
class _Looks:
    """The format that decides the room of a paragraph."""

    size: float
    """Of its letters, in points."""
    indent: int
    """In EMU."""
    line: float
    space_before: float
    """In points."""


def overflow_of(shape: SlideShape) -> str:
    """Warn that a text or table probably needs more room.

    Returns:
        Empty if it probably fits, or its box is not known.
    """
    frame, (_, slide_height) = shape.frame, shape.file.size
    if frame is None:
        return ""
    if (table := shape.table) is not None:
        height, room = _table_height(shape, table), slide_height - frame.top
        return _words(height, room, "the table", "to the slide's lower edge") if height > room * _TOLERANCE else ""
    if (body := shape.body) is None:
        return ""
    sources = [body, *(element.find(p("txBody")) for element in shape.ancestors)]
    settings = [source.find(a("bodyPr")) for source in sources if source is not None]
    insets = {name: _inherited(settings, name, usual) for name, usual in _INSETS.items()}
    width = frame.width - insets["lIns"] - insets["rIns"]
    room = frame.height - insets["tIns"] - insets["bIns"]
    height = sum(_paragraph_heights(body, list(_styles(shape)), width))
    if _grows(settings):
        height, room = height + insets["tIns"] + insets["bIns"], slide_height - frame.top
        return _words(height, room, "the text", "to the slide's lower edge") if height > room * _TOLERANCE else ""
    return _words(height, room, "the text", "in its box") if height > room * _TOLERANCE else ""


def _words(height: float, room: float, subject: str, where: str) -> str:
    height_cm, room_cm = height / _CENTIMETRE, max(0, room) / _CENTIMETRE
    return (
        f"estimate: {subject} needs about {height_cm:.1f} cm of height, and has {room_cm:.1f} cm {where}; shorten it, "
        "or use another slide"
    )


def _inherited(settings: list[Element | None], name: str, usual: int) -> int:
    for element in settings:
        text = element.get(name, "") if element is not None else ""
        if text.lstrip("-").isdigit():
            return int(text)
    return usual


def _grows(settings: list[Element | None]) -> bool:
    """Return whether the box grows with its text."""
    for element in settings:
        for child in element if element is not None else ():
            if local(child) in {"spAutoFit", "normAutofit", "noAutofit"}:
                return local(child) == "spAutoFit"
    return False


def _styles(shape: SlideShape) -> Iterator[Element]:
    """Yield a shape's lists of styles, the nearest first."""
    for element in (shape.element, *shape.ancestors):
        body = element.find(p("txBody"))
        style = body.find(a("lstStyle")) if body is not None else None
        if style is not None:
            yield style
    yield from _deck_styles(shape.slide, placeholder_of(shape.element))


def _deck_styles(slide: Slide, mark: Element | None) -> Iterator[Element]:
    file: DeckFile = slide.file
    kind = "otherStyle" if mark is None else _STYLES.get(mark.get("type", "obj"), "bodyStyle")
    for master in file.package.related(slide.layout, "slideMaster") if slide.layout and mark is not None else ():
        yield from file.package.tree(master).iterfind(f"{p('txStyles')}/{p(kind)}")
    yield from file.package.tree(file.main).iterfind(p("defaultTextStyle"))


def _looks(paragraph: Element, styles: list[Element]) -> _Looks:
    level = f"lvl{level_of(paragraph) + 1}pPr"
    inherited = [settings for style in styles if (settings := style.find(a(level))) is not None]
    properties = paragraph.find(a("pPr"))
    nearest_first = inherited if properties is None else [properties, *inherited]
    sizes = [run.get("sz") for run in paragraph.iterfind(path("a:r", "a:rPr")) if run.get("sz")]
    sizes += [font.get("sz") for style in inherited if (font := style.find(a("defRPr"))) is not None and font.get("sz")]
    size = int(sizes[0]) / 100 if sizes and sizes[0].isdigit() else _SIZE / 100
    indent = next((int(style.get("marL")) for style in nearest_first if style.get("marL", "").isdigit()), 0)
    line = _spacing(nearest_first, "lnSpc", size * _LINE)
    before = _spacing(nearest_first, "spcBef", size)
    return _Looks(size, indent, size * _LINE if line is None else line, before or 0)


def _spacing(styles: list[Element], name: str, of: float) -> float | None:
    """Return a spacing in points; a percentage is one of a height."""
    for style in styles:
        for percent in style.iterfind(f"{a(name)}/{a('spcPct')}"):
            text = percent.get("val", "").removesuffix("%")
            return of * float(text) / (100_000 if text.isdigit() and float(text) > 1000 else 100)
        for points in style.iterfind(f"{a(name)}/{a('spcPts')}"):
            return int(points.get("val", "0")) / 100
    return None


def _paragraph_heights(body: Element, styles: list[Element], width: float) -> Iterator[float]:
    for number, paragraph in enumerate(body.iterfind(a("p"))):
        looks = _looks(paragraph, styles)
        lines = sum(
            _line_count(text, (width - looks.indent) / _POINT / looks.size)
            for text in paragraph_text(paragraph).split("\n")
        )
        yield (lines * looks.line + (looks.space_before if number else 0)) * _POINT


def _line_count(text: str, width: float) -> int:
    """Count the lines of a text, wrapped between words.

    Args:
        text: The text, without line breaks.
        width: Of the box, as a multiple of the size of the letters.
    """
    lines, line_width = 1, 0.0
    for word in text.split(" "):
        word_width = sum(map(_letter_width, word))
        if line_width and line_width + word_width > width:
            lines, line_width = lines + 1, 0.0
        lines += int(max(0.0, word_width - 0.01) // width) if width > 0 and word_width > width else 0
        line_width += (word_width % width if 0 < width < word_width else word_width) + _letter_width(" ")
    return lines


def _letter_width(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if letter in _NARROW:
        return 0.29
    if letter in _WIDE:
        return 0.86
    return 0.65 if letter.isupper() else 0.52


def _table_height(shape: SlideShape, table: Element) -> float:
    widths = [int(column.get("w", "0")) for column in table.iterfind(path("a:tblGrid", "a:gridCol"))]
    styles = list(_deck_styles(shape.slide, None))
    height = 0.0
    for row in table.iterfind(a("tr")):
        heights = [float(row.get("h", "0"))]
        for width, cell in zip(widths, row.iterfind(a("tc")), strict=False):
            body = cell.find(a("txBody"))
            if body is not None and cell.get("gridSpan", "1") == "1":
                room = width - _INSETS["lIns"] - _INSETS["rIns"]
                text_height = sum(_paragraph_heights(body, styles, room))
                heights.append(text_height + _INSETS["tIns"] + _INSETS["bIns"])
        height += max(heights)
    return height
