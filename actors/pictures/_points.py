"""Marks for points: a ring with a cross, and lines for drags.

The cross leaves the pixel that is meant free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from PIL.ImageDraw import ImageDraw

    Point = tuple[int, int]

_RING, _REACH, _GAP = 20, 30, 10
"""The ring's radius, and the beginning and end of the cross's arms, in pixels from the point."""
_EDGE, _LINE = 7, 3
"""The width of the light edge and of the line in it."""
_INK, _PAPER = (200, 0, 60), "white"
"""Dark on light: one of both stands out from any background."""


def mark_points(canvas: ImageDraw, strokes: Iterable[Sequence[Point]], scale: float) -> None:
    """Draw a mark at each point, with lines between them.

    A line connects the points of a stroke.

    Args:
        canvas: The picture.
        strokes: One point for a click, two for a drag, in the picture's pixels.
        scale: The factor by which everything is enlarged.
    """
    lines = [tuple(stroke) for stroke in strokes]
    for width, colour in ((_EDGE, _PAPER), (_LINE, _INK)):
        line = max(1, round(width * scale))
        for stroke in lines:
            canvas.line(stroke, fill=colour, width=line)
            for point in stroke:
                _mark(canvas, point, scale, line, colour)


def _mark(canvas: ImageDraw, point: Point, scale: float, line: int, colour: str | tuple[int, int, int]) -> None:
    x, y = point
    ring, reach, gap = (round(length * scale) for length in (_RING, _REACH, _GAP))
    out = ring + line // 2  # Pillow draws an outline inwards: so the dark ring runs in the middle of the light one
    canvas.ellipse((x - out, y - out, x + out, y + out), outline=colour, width=line)
    for way in (-1, 1):
        canvas.line((x + way * gap, y, x + way * reach, y), fill=colour, width=line)
        canvas.line((x, y + way * gap, x, y + way * reach), fill=colour, width=line)
