"""Places of accessible objects on the screen, in pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import Box

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from callboard.surfaces.desktop._tree import AccessibleNode
    from callboard.surfaces.desktop._xscreen import XWindow

CLIPS = frozenset({"scroll pane", "viewport", "document web"})
"""The roles that show only a part of their content."""
POPUPS = frozenset({"menu", "popup menu", "combo box", "tool tip", "window"})
"""The roles of popups and their parents. Main windows and dialogs have the roles frame and dialog."""
_FEWEST_SCALED = 1.1
"""The smallest scale; smaller differences come from frames and shadows."""


def scale_of(windows: Iterable[XWindow], extents: Box | None) -> float | None:
    """Measure the pixels of the screen per unit of a program's extents.

    Args:
        windows: The windows that may be the accessible one.
        extents: The extents of the accessible window, as the program reports them.

    Returns:
        The scale; None if no window has this shape.
    """
    if extents is None or not extents.width or not extents.height:
        return None
    sizes = [(box.width, box.height) for window in windows for box in (window.box, window.content)]
    scales = [
        scale
        for width, height in sizes
        if (scale := (width + height) / (extents.width + extents.height))
        and abs(scale * extents.width - width) <= max(2, 2 * scale)
        and abs(scale * extents.height - height) <= max(2, 2 * scale)
    ]
    exact = [
        float(round(scale)) if abs(scale - round(scale)) * extents.width <= 2 * scale else scale for scale in scales
    ]
    return min((1.0 if scale < _FEWEST_SCALED else scale for scale in exact), default=None)


def scaled(box: Box, scale: float) -> Box:
    """Convert extents to pixels of the screen."""
    left, top, right, bottom = (round(scale * edge) for edge in (box.x, box.y, box.x + box.width, box.y + box.height))
    return Box(x=left, y=top, width=right - left, height=bottom - top)


def window_of(windows: Sequence[XWindow], node: AccessibleNode) -> int | None:
    """Find an accessible window on the screen by title and place.

    Args:
        windows: The process's windows, the lowest first.
        node: The accessible window.
    """
    managed = [window for window in windows if not window.popup]
    titled = [window for window in managed if window.title == node.name]
    box = node.box
    if box is None:
        return next((window.id for window in reversed(titled)), None)
    if node.role == "window" and not titled:
        return next((window.id for window in reversed(windows) if window.popup and _distance(window, box) <= 4), None)
    nearest = min(reversed(titled or managed), key=lambda window: _distance(window, box), default=None)
    return nearest.id if nearest is not None else None


def _distance(window: XWindow, box: Box) -> int:
    """Return the difference of a window's and an object's edges, in pixels."""
    return min(
        abs(area.x - box.x) + abs(area.y - box.y) + abs(area.width - box.width) + abs(area.height - box.height)
        for area in (window.box, window.content)
    )


def in_popup(node: AccessibleNode) -> bool:
    """Return whether an object is in a popup."""
    return any(ancestor.role in POPUPS for ancestor in node.above())


def visible_part(node: AccessibleNode, screen: tuple[int, int]) -> Box | None:
    """Return the part of an object that is in sight, if any."""
    part = _common(node.box, Box(x=0, y=0, width=screen[0], height=screen[1]))
    for above in node.above():
        if above.role in POPUPS:
            break
        if above.role in CLIPS and above.box is not None:
            part = _common(part, above.box)
    return part


def _common(first: Box | None, second: Box) -> Box | None:
    if first is None:
        return None
    left, top = max(first.x, second.x), max(first.y, second.y)
    right = min(first.x + first.width, second.x + second.width)
    bottom = min(first.y + first.height, second.y + second.height)
    return Box(x=left, y=top, width=right - left, height=bottom - top) if right > left and bottom > top else None


def below(node: AccessibleNode) -> Iterator[AccessibleNode]:
    """Yield an object's descendants in drawing order."""
    for child in node.children:
        yield child
        yield from below(child)


def covering(node: AccessibleNode, point: tuple[int, int], roles: Collection[str]) -> AccessibleNode | None:
    """Return the control that covers an object at a point, if any.

    Args:
        node: The object.
        point: The point of the screen.
        roles: The roles of controls.
    """
    order = list(below(node.window))
    later = order[order.index(node) + 1 :] if node in order else []
    for control in reversed(later):
        at_point = control.box is not None and control.box.holds(*point)
        if at_point and control.role in roles and node not in set(control.above()) and not in_popup(control):
            return control
    return None
