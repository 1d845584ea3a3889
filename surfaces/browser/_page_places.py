"""Places of a page's controls: their row, heading or group, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from callboard.surfaces.browser._page_snapshot import PageNode

_ENTRIES = frozenset({"row", "listitem", "treeitem"})
_GROUPS = frozenset(
    {
        *("article", "form", "grid", "group", "list", "listbox", "menubar", "radiogroup", "region", "table", "tablist"),
        *("tabpanel", "tree", "treegrid"),
    }
)
"""The groups that count where they have a name."""
_LANDMARKS = frozenset(
    {"alertdialog", "banner", "complementary", "contentinfo", "dialog", "menu", "navigation", "search", "toolbar"}
)
"""The groups whose role says enough where they have no name."""
_LONGEST = 80


def places_of(nodes: Iterable[PageNode]) -> dict[PageNode, str]:
    """Name the place of each control, at most 80 characters.

    That is the first text beside it in the row or entry around it; else the last heading before it, unless the group
    that it is in has begun since; else the name or role of that group. A frame's name comes first.

    Args:
        nodes: All parts of a page, in reading order.
    """
    heading: PageNode | None = None
    places: dict[PageNode, str] = {}
    for node in nodes:
        if node.is_control:
            place = _entry(node) or _section(node, heading)
            if node.is_framed:
                frame = next((part.name for part in node.ancestors() if part.role == "iframe"), "")
                place = ": ".join(filter(None, (frame or "frame", place)))
            places[node] = place if len(place) <= _LONGEST else f"{place[: _LONGEST - 1]}…"
        if node.role == "heading" and node.words():
            heading = node
    return places


def columns_of(table: PageNode) -> tuple[str, ...]:
    """Return the headers of a table's columns; empty if it marks none."""
    header = next((part for part in table.below() if part.role == "row"), None)
    cells = header.children if header is not None else []
    return tuple(cell.words() for cell in cells) if any(cell.role == "columnheader" for cell in cells) else ()


def _entry(node: PageNode) -> str:
    """Return the first text beside a control in its row or entry.

    Empty if it is a link with that text itself.
    """
    around = node
    for ancestor in node.ancestors():
        if ancestor.role in _ENTRIES:
            texts = ((part, part.words()) for part in ancestor.children if part is not around or node.role == "link")
            first, text = next((pair for pair in texts if pair[1]), (None, ""))
            return ancestor.text or ("" if first is around else text)
        around = ancestor
    return ""


def _section(node: PageNode, heading: PageNode | None) -> str:
    """Return the heading above a control, or the group around it."""
    group = next(
        (part for part in node.ancestors() if part.role in _LANDMARKS or (part.name and part.role in _GROUPS)), None
    )
    if heading is not None and (group is None or any(ancestor is group for ancestor in heading.ancestors())):
        return heading.words()
    return (group.name or group.role) if group is not None else ""
