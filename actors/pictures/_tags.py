"""Where the labels of controls stand in a picture: near their controls, and apart from each other where they can be."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from callboard.messages import Box

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CELL = 64
"""Boxes are looked up by squares of so many pixels, so that a thousand controls take no million comparisons."""
_RINGS = 4
"""How far from its control a label may stand, in its own heights."""
_ON_A_TAG = 100
"""How much worse it is to cover another label than as much of another control."""
_ON_ITS_OWN = 0.25
"""The same for covering the control itself: its name stands in the list of controls, and the label is surely its."""
_AWAY = 0.3
"""The same for standing away from the control, for each height of the label: lines from it cross what is between."""


def place_tags(
    boxes: Mapping[str, Box], sizes: Mapping[str, tuple[int, int]], canvas: tuple[int, int]
) -> dict[str, Box]:
    """Give each label its place.

    Args:
        boxes: Where the controls are, by label, within the canvas.
        sizes: The width and height of each label, in pixels.
        canvas: The width and height of the picture.
    """
    controls, tags, found = _Map(), _Map(), {}
    for box in boxes.values():
        controls.add(box)
    for label in sorted(boxes, key=lambda label: _area(boxes[label])):  # the small ones have the least choice
        found[label] = _best(boxes[label], sizes[label], canvas, controls, tags)
        tags.add(found[label])
    return found


def _best(box: Box, size: tuple[int, int], canvas: tuple[int, int], controls: _Map, tags: _Map) -> Box:
    best, least = box, float("inf")
    for away, candidate in _candidates(box, size, canvas):
        on_tags = sum(_common(candidate, each) for each in tags.near(candidate))
        on_others = sum(_common(candidate, each) for each in controls.near(candidate) if not _holds(each, box))
        cost = _ON_A_TAG * on_tags + on_others + _ON_ITS_OWN * _common(candidate, box)
        cost += _AWAY * away * _area(candidate)
        if cost < least:
            best, least = candidate, cost
        if not cost:
            break
    return best


def _candidates(box: Box, size: tuple[int, int], canvas: tuple[int, int]) -> Iterator[tuple[int, Box]]:
    """Give the places that a label may have, all of them within the picture, and how far each is from its control."""
    width, height = size
    right, bottom = box.x + box.width, box.y + box.height
    places = []
    for away in range(_RINGS):
        above, below = box.y - (away + 1) * height, bottom + away * height
        before, after = box.x - width - away * height, right + away * height
        places += [(away, x, y) for y in (above, below) for x in (box.x, right - width)]
        places += [(away, x, y) for x in (before, after) for y in (box.y, above, below)]
    corners = [(0, x, y) for x in (right - width, box.x) for y in (box.y, bottom - height)]
    for away, x, y in [*places[:10], *corners, *places[10:]]:
        left, top = max(0, min(x, canvas[0] - width)), max(0, min(y, canvas[1] - height))
        yield away, Box(x=left, y=top, width=width, height=height)


class _Map:
    """Finds the boxes near another one."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], list[Box]] = defaultdict(list)

    def add(self, box: Box) -> None:
        for cell in _cells(box):
            self._cells[cell].append(box)

    def near(self, box: Box) -> set[Box]:
        return {each for cell in _cells(box) for each in self._cells.get(cell, ())}


def _cells(box: Box) -> Iterator[tuple[int, int]]:
    for column in range(box.x // _CELL, (box.x + box.width) // _CELL + 1):
        for row in range(box.y // _CELL, (box.y + box.height) // _CELL + 1):
            yield column, row


def _area(box: Box) -> int:
    return box.width * box.height


def _common(one: Box, other: Box) -> int:
    """Give how many pixels two boxes share."""
    width = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
    height = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
    return max(0, width) * max(0, height)


def _holds(outer: Box, inner: Box) -> bool:
    """Whether a box lies within another one, or is it: its label then has to cover that."""
    return _common(outer, inner) == _area(inner)
