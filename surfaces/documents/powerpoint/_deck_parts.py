"""Parts of decks that checks read: slides, tables and charts.

Each is found by the number or title of its slide, or by words of its own, and must be the only one that fits.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from callboard.surfaces.documents._tables import has_header, same_words, short, single_match
from callboard.surfaces.documents.powerpoint._chart_numbers import chart_title
from callboard.surfaces.documents.powerpoint._deck_controls import shape_lines, slide_name
from callboard.surfaces.documents.powerpoint._shapes import shapes_of, title_of
from callboard.surfaces.documents.powerpoint._slide_tables import grid_of

if TYPE_CHECKING:
    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.powerpoint._deck import DeckFile, Slide
    from callboard.surfaces.documents.powerpoint._shapes import SlideShape

_NUMBER = re.compile(r"(?:slide[ -]?)?([1-9][0-9]{0,5})", re.IGNORECASE)


def _is_called(slide: Slide, part: str) -> bool:
    """Return whether a part is a slide's number or title."""
    match = _NUMBER.fullmatch(part.strip())
    return same_words(part, title_of(slide)) or (match is not None and int(match[1]) == slide.number)


def deck_text(file: DeckFile, part: str) -> str:
    """Return the text of all slides, or of one below its title.

    Footers, notes and comments are no part of it.

    Raises:
        ToolError: If no slide fits, or several.
    """
    slides = file.slides()
    if not part:
        return "\n\n".join(_text_of(slide, with_title=True) for slide in slides)
    matches = [slide for slide in slides if _is_called(slide, part)]
    return _text_of(single_match(matches, part, "slide", slides, _slide_words), with_title=False)


def _text_of(slide: Slide, *, with_title: bool) -> str:
    shapes = [shape for shape in shapes_of(slide) if with_title or shape.kind != "title"]
    return "\n".join(line for shape in shapes for line in shape_lines(shape))


def find_slide_table(file: DeckFile, part: str) -> Element:
    """Find a table by its slide or the words of its header.

    Raises:
        ToolError: If none fits, or several.
    """
    tables = [shape for slide in file.slides() for shape in shapes_of(slide) if shape.table is not None]
    matches = [
        shape for shape in tables if not part or _is_called(shape.slide, part) or has_header(_header(shape), part)
    ]
    return single_match(matches, part, "table", tables, _shape_words).table


def find_slide_chart(file: DeckFile, part: str) -> SlideShape:
    """Find a chart by its slide or its title.

    Raises:
        ToolError: If none fits, or several.
    """
    charts = [shape for slide in file.slides() for shape in shapes_of(slide) if shape.chart_part]
    matches = [
        shape for shape in charts if not part or _is_called(shape.slide, part) or same_words(part, _title(shape))
    ]
    return single_match(matches, part, "chart", charts, _shape_words)


def _title(shape: SlideShape) -> str:
    return chart_title(shape.file.package.tree(shape.chart_part))


def _header(shape: SlideShape) -> list[str]:
    return next(iter(grid_of(shape.table).texts), [])


def _slide_words(slide: Slide) -> str:
    return f"{slide.number} ({slide_name(slide)})"


def _shape_words(shape: SlideShape) -> str:
    words = _title(shape) if shape.chart_part else short(" | ".join(_header(shape)))
    return f"{words!r} on slide {_slide_words(shape.slide)}"
