"""Placement of labels: near their controls, and without overlaps where possible."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from callboard.messages import Box

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CELL = 64
"""The size of the squares by which boxes are looked up, in pixels: without them a thousand controls would take a
million comparisons."""
_RINGS = 4
"""The largest distance of a label from its control, in the label's heights."""
_ON_A_TAG = 100
"""The cost of covering another label, relative to covering the same area of another control."""
_ON_ITS_OWN = 0.25
"""The relative cost of covering the control itself: its name is in the list of controls, and the label clearly belongs
to it."""
_AWAY = 0.3
"""The relative cost of distance from the control, for each height of the label: a line to it crosses other parts."""


class _Rect(NamedTuple):
    """A `Box` that is quick to make and compare.

    There are some forty candidates for each label.
    """

    left: int
    top: int
    right: int
    bottom: int

    @property
    def area(self) -> int:
        return (self.right - self.left) * (self.bottom - self.top)

    def common(self, second: _Rect) -> int:
        """Return the number of pixels that two rectangles share."""
        width = min(self.right, second.right) - max(self.left, second.left)
        height = min(self.bottom, second.bottom) - max(self.top, second.top)
        return width * height if width > 0 and height > 0 else 0

    def cells(self) -> Iterator[tuple[int, int]]:
        for column in range(self.left // _CELL, self.right // _CELL + 1):
            for row in range(self.top // _CELL, self.bottom // _CELL + 1):
                yield column, row


def place_tags(
    boxes: Mapping[str, Box], sizes: Mapping[str, tuple[int, int]], canvas: tuple[int, int]
) -> dict[str, Box]:
    """Choose the place of each label.

    Args:
        boxes: The boxes of the controls, by label, within the canvas.
        sizes: The width and height of each label, in pixels.
        canvas: The width and height of the picture.
    """
    controls, tags, tag_boxes = _Map(), _Map(), {}
    rects = {label: _Rect(box.x, box.y, box.x + box.width, box.y + box.height) for label, box in boxes.items()}
    for rect in rects.values():
        controls.add(rect)
    for label in sorted(rects, key=lambda label: rects[label].area):  # the small ones have the least choice
        tag = _best(rects[label], sizes[label], canvas, controls, tags)
        tags.add(tag)
        tag_boxes[label] = Box(x=tag.left, y=tag.top, width=tag.right - tag.left, height=tag.bottom - tag.top)
    return tag_boxes


def _best(box: _Rect, size: tuple[int, int], canvas: tuple[int, int], controls: _Map, tags: _Map) -> _Rect:
    best, least = box, float("inf")
    for away, tag in _candidates(box, size, canvas):
        cost = _AWAY * away * tag.area + _ON_ITS_OWN * tag.common(box)
        if cost >= least:
            continue
        cost += _ON_A_TAG * sum(tag.common(neighbour) for neighbour in tags.near(tag))
        # A container of the control, such as its panel, is covered wherever the label stands.
        cost += sum(tag.common(neighbour) for neighbour in controls.near(tag) if neighbour.common(box) < box.area)
        if cost < least:
            best, least = tag, cost
        if not cost:
            break
    return best


def _candidates(box: _Rect, size: tuple[int, int], canvas: tuple[int, int]) -> Iterator[tuple[int, _Rect]]:
    """Return the places for a label, and their distances from its control.

    All of them lie within the picture.
    """
    width, height = size
    places = []
    for away in range(_RINGS):
        above, below = box.top - (away + 1) * height, box.bottom + away * height
        left_side, right_side = box.left - width - away * height, box.right + away * height
        places += [(away, x, y) for y in (above, below) for x in (box.left, box.right - width)]
        places += [(away, x, y) for x in (left_side, right_side) for y in (box.top, above, below)]
    corners = [(0, x, y) for x in (box.right - width, box.left) for y in (box.top, box.bottom - height)]
    for away, x, y in [*places[:10], *corners, *places[10:]]:
        tag_x, tag_y = max(0, min(x, canvas[0] - width)), max(0, min(y, canvas[1] - height))
        yield away, _Rect(tag_x, tag_y, tag_x + width, tag_y + height)


class _Map:
    """Finds the rectangles near a given one."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], list[_Rect]] = defaultdict(list)

    def add(self, rect: _Rect) -> None:
        for cell in rect.cells():
            self._cells[cell].append(rect)

    def near(self, rect: _Rect) -> set[_Rect]:
        return {neighbour for cell in rect.cells() for neighbour in self._cells.get(cell, ())}
