"""One screen of the phone.

It is a tree of views, and its `uiautomator` hierarchy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Box = tuple[int, int, int, int]
    """Left, top, right and bottom, in pixels."""

WIDTH, HEIGHT = 1080, 2400
STATUS = 80
"""The height of the status bar, in pixels."""
TOP = 200
"""The upper edge of a page, below the status bar and the title."""
NAVIGATION = 60
"""The height of the bar at the bottom."""
ROW = 150
HINTS_SINCE = 16
"""The first Android whose hierarchy includes drawing orders and hints."""
_PACKAGES = {"RecyclerView": "androidx.recyclerview.widget.", "View": "android.view."}
_INVALID = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufde0-\ufffd\U00010000-\U0010ffff]")
"""Characters for which ``AccessibilityNodeInfoDumper`` writes a full stop."""
_NAMED_BY_OTHERS = frozenset({"ListView", "GridView", "TableLayout", "GridLayout"})


@dataclass
class Scroll:
    """A scroll position and its limit, in pixels."""

    at: int = 0
    most: int = 0

    def by(self, pixels: int) -> None:
        """Scroll, up to the limit."""
        self.at = max(0, min(self.at + pixels, self.most))


@dataclass(eq=False)
class View:
    """A view on the screen.

    The part of its box outside of its container is hidden.
    """

    kind: str
    box: Box = (0, 0, 0, 0)
    text: str = ""
    id: str = ""
    description: str = ""
    tap: Callable[[], None] | None = None
    hold: Callable[[], None] | None = None
    slide: Callable[[float], None] | None = None
    """Sets it to a share of its width."""
    drop: Callable[[View], None] | None = None
    """Handles a view that was dragged and dropped on it."""
    checked: bool | None = None
    enabled: bool = True
    password: bool = False
    focused: bool = False
    selected: bool = False
    hint: str = ""
    caret: int = 0
    share: float = 0.0
    """The place of a slider's handle, from 0 to 1."""
    scroll: Scroll | None = None
    inside: list[View] = field(default_factory=list)

    @property
    def reacts(self) -> bool:
        """True if touches have an effect."""
        return any((self.tap, self.hold, self.slide, self.drop))

    def moved(self, across: int, down: int) -> View:
        """Move it with its contents, and return it."""
        left, top, right, bottom = self.box
        self.box = (left + across, top + down, right + across, bottom + down)
        for child in self.inside:
            child.moved(across, down)
        return self

    def shown(self, window: Box) -> Iterator[tuple[View, Box]]:
        """Return it and its contents in drawing order, with their visible parts."""
        visible_box = common(self.box, window)
        if visible_box is not None:
            yield self, visible_box
            for child in self.inside:
                yield from child.shown(visible_box)


@dataclass(frozen=True)
class PhoneScreen:
    """A page or a dialog in front."""

    package: str
    activity: str
    views: Sequence[View]
    behind: Sequence[View] = ()
    """The page that a dialog darkens."""
    covers: bool = False
    """True if touches beside a dialog have no effect; otherwise they close it."""

    def at(self, x: int, y: int, accepts: Callable[[View], object]) -> tuple[View, Box] | None:
        """Return the last drawn view at a point.

        `accepts` must be true for it.
        """
        hit = None
        for top in self.views:
            for view, box in top.shown(top.box):
                if common(box, (x, y, x + 1, y + 1)) is not None and accepts(view):
                    hit = view, box
        return hit


def common(first: Box, second: Box) -> Box | None:
    """Return the intersection of two boxes."""
    left, top = max(first[0], second[0]), max(first[1], second[1])
    right, bottom = min(first[2], second[2]), min(first[3], second[3])
    return (left, top, right, bottom) if left < right and top < bottom else None


def hierarchy(screen: PhoneScreen, size: tuple[int, int], rotation: int, android: int) -> str:
    """Return a screen's hierarchy, as `uiautomator dump` of an Android does.

    Source: ``AccessibilityNodeInfoDumper``.
    """
    if screen.behind or not screen.views:
        roots = list(screen.views)
    else:
        content = View("FrameLayout", (0, 0, *size), id="android:id/content", inside=list(screen.views))
        roots = [View("FrameLayout", (0, 0, *size), inside=[content])]
    xml = "".join(text for root in roots for text in _node(screen.package, root, 0, (0, 0, *size), android))
    return (
        f"<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"{rotation}\">{xml}</hierarchy>"
    )


def _node(package: str, view: View, index: int, window: Box, android: int) -> Iterator[str]:  # each is a level deeper
    visible_box = common(view.box, window)
    if visible_box is None:
        return
    values = _values(package, view, index, visible_box, android)
    attributes = " ".join(f"{name}={_quoted(value)}" for name, value in values)
    children = [
        text
        for position, child in enumerate(view.inside)
        for text in _node(package, child, position, visible_box, android)
    ]
    if children:
        yield f"<node {attributes}>"
        yield from children
        yield "</node>"
    else:
        yield f"<node {attributes} />"


def _values(package: str, view: View, index: int, visible_box: Box, android: int) -> Iterator[tuple[str, str]]:
    clicks = view.tap is not None
    scrolls = view.scroll is not None and view.scroll.most > 0
    id_ = view.id if not view.id or ":" in view.id else f"{package}:id/{view.id}"
    if _is_nameless(view):
        yield "NAF", "true"
    yield "index", str(index)
    yield "text", "•" * len(view.text) if view.password and view.text else view.text or view.hint
    yield "resource-id", id_
    yield "class", f"{_PACKAGES.get(view.kind, 'android.widget.')}{view.kind}"
    yield "package", package
    yield "content-desc", view.description
    for name, value in (
        ("checkable", view.checked is not None),
        ("checked", bool(view.checked)),
        ("clickable", clicks),
        ("enabled", view.enabled),
        ("focusable", clicks or view.slide is not None or view.scroll is not None),
        ("focused", view.focused),
        ("scrollable", scrolls),
        ("long-clickable", view.hold is not None or view.drop is not None or view.kind == "EditText"),
        ("password", view.password),
        ("selected", view.selected),
    ):
        yield name, "true" if value else "false"
    yield "bounds", "[{},{}][{},{}]".format(*visible_box)
    if android >= HINTS_SINCE:
        yield "drawing-order", str(index)
        yield "hint", view.hint


def _is_nameless(view: View) -> bool:
    """Return whether `uiautomator` calls it "not accessibility friendly".

    It can be clicked, and has no name at all.
    """
    if view.kind in _NAMED_BY_OTHERS or not (view.tap and view.enabled):
        return False
    return not any(part.text or part.hint or part.description for part, _ in view.shown(view.box))


def _quoted(value: str) -> str:
    """Quote an attribute as Android's serializer does.

    It uses the kind of quotes that the attribute does not contain.
    """
    quote, escaped = ("'", "&apos;") if '"' in value else ('"', "&quot;")
    value = _INVALID.sub(".", value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    value = re.sub("[\n\r\t\U00010000-\U0010ffff]", lambda match: f"&#{ord(match[0])};", value)
    return f"{quote}{value.replace(quote, escaped)}{quote}"
