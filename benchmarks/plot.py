"""An SVG plot of milliseconds per task over tasks at once.

Both axes are in powers of ten. No library is needed.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.contest import Spread

WIDTH, HEIGHT = 1140, 560
LEFT, RIGHT, TOP, BOTTOM = 70, 560, 50, 500
LINE = 17
"""Minimum of pixels between two labels."""
RAW = ("#222222", "#888888")
OURS = ("#2f8fd8", "#0b3f8f", "#7a3fb0", "#c0369f", "#1fa39a", "#6b7fd7")
THEIRS = ("#d9822b", "#b55d0c", "#b7a12c", "#8a7a13", "#6a9a3b", "#3f7a2a", "#c0504d", "#8f5a5a")


@dataclass(frozen=True)
class Series:
    """One line."""

    title: str
    kind: Literal["raw", "ours", "theirs"]
    points: Mapping[int, Spread]
    """Milliseconds per task, by tasks at once."""


def drawn(series: Sequence[Series], heading: str) -> str:
    """Draw lines, each with its name at its end."""
    lines = [line for line in series if line.points]
    sizes = sorted({size for line in lines for size in line.points})
    values = [value for line in lines for point in line.points.values() for value in (point.low, point.high)]
    scale = Scale(sizes, math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))))
    parts = [*_frame(scale, heading)]
    colours = {"raw": itertools.cycle(RAW), "ours": itertools.cycle(OURS), "theirs": itertools.cycle(THEIRS)}
    ends = _apart([scale.y(line.points[max(line.points)].median) for line in lines])
    for line, end in zip(lines, ends, strict=True):
        parts += _line(scale, line, next(colours[line.kind]), end)
    return "\n".join([*parts, "</svg>", ""])


@dataclass(frozen=True)
class Scale:
    """The place of a value."""

    sizes: Sequence[int]
    low: int
    high: int
    """The axis of values, as powers of ten."""

    def x(self, size: int) -> float:
        """Give the place of a number of tasks."""
        wide = math.log10(self.sizes[-1] / self.sizes[0]) or 1.0
        return LEFT + 20 + (RIGHT - LEFT - 40) * math.log10(size / self.sizes[0]) / wide

    def y(self, value: float) -> float:
        """Give the place of a time."""
        return BOTTOM - (BOTTOM - TOP) * (math.log10(value) - self.low) / max(1, self.high - self.low)


def _frame(scale: Scale, heading: str) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="DejaVu Sans, Verdana, sans-serif" font-size="13">'
    )
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    yield f'<text x="{LEFT}" y="28" font-size="16" font-weight="bold">{escape(heading)}</text>'
    for power in range(scale.low, scale.high + 1):
        for step in range(1, 10 if power < scale.high else 2):
            y = scale.y(step * 10.0**power)
            grey = "#bbbbbb" if step == 1 else "#eeeeee"
            yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}" stroke="{grey}"/>'
        yield f'<text x="{LEFT - 8}" y="{scale.y(10.0**power) + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
    for size in scale.sizes:
        yield f'<text x="{scale.x(size):.1f}" y="{BOTTOM + 22}" text-anchor="middle">{size}</text>'
    middle = (LEFT + RIGHT) / 2
    yield f'<text x="{middle}" y="{BOTTOM + 46}" text-anchor="middle">tasks at once</text>'
    yield (
        f'<text transform="translate(20 {(TOP + BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        "milliseconds per task (lower is better)</text>"
    )


def _line(scale: Scale, line: Series, colour: str, end: float) -> Iterator[str]:
    points = [(scale.x(size), line.points[size]) for size in sorted(line.points)]
    path = " ".join(f"{x:.1f},{scale.y(point.median):.1f}" for x, point in points)
    style = {"raw": 'stroke-dasharray="5 4" stroke-width="2"', "ours": 'stroke-width="3"'}.get(line.kind, "")
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" {style}/>'
    for x, point in points:
        low, high = scale.y(point.low), scale.y(point.high)
        yield f'<line x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}" stroke="{colour}" stroke-width="2"/>'
        yield f'<circle cx="{x:.1f}" cy="{scale.y(point.median):.1f}" r="3.5" fill="{colour}"/>'
    x, last = points[-1]
    weight = ' font-weight="bold"' if line.kind == "ours" else ""
    yield (
        f'<polyline points="{x + 6:.1f},{scale.y(last.median):.1f} {RIGHT + 12},{end:.1f} {RIGHT + 22},{end:.1f}" '
        f'fill="none" stroke="{colour}" stroke-opacity="0.5"/>'
    )
    label = escape(f"{line.title.replace('`', '')}: {last.median:.3g} ms")
    yield f'<text x="{RIGHT + 27}" y="{end + 4:.1f}" fill="{colour}"{weight}>{label}</text>'


def _apart(heights: Sequence[float]) -> list[float]:
    """Move labels apart as little as possible, within the frame."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    placed: list[float] = []
    for index in order:
        placed.append(max(heights[index], placed[-1] + LINE if placed else TOP))
    for back in range(len(placed) - 1, -1, -1):
        limit = BOTTOM if back == len(placed) - 1 else placed[back + 1] - LINE
        placed[back] = min(placed[back], limit)
    places = dict(zip(order, placed, strict=True))
    return [places[index] for index in range(len(heights))]
