"""View of a program for agents: its windows as controls and notes."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.messages import Box, Control, LookBudget
from callboard.surfaces.desktop._places import POPUPS, in_popup
from callboard.surfaces.desktop._tree import CELLS, TABLES, TEXTS, VALUES, AccessibleNode, ObjectState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pydantic import JsonValue

_ACTED_ON = frozenset(
    {
        "push button",
        "button",
        "push button menu",
        "toggle button",
        "switch",
        "check box",
        "radio button",
        "menu",
        "menu item",
        "check menu item",
        "radio menu item",
        "tearoff menu item",
        "combo box",
        "page tab",
        "list item",
        "list box",
        "tree item",
        "link",
        "icon",
        "color chooser",
        "document spreadsheet",
        "document text",
        "document web",
        "document frame",
        "calendar",
    }
)
CONTROLS = _ACTED_ON | CELLS | TABLES | TEXTS | VALUES
"""The roles that are shown as controls, whether or not they have a name."""
_READ = frozenset({"label", "image", "status bar", "alert", "notification", "info bar", "tool tip", "list", "section"})
"""The roles that are shown only with a name."""
DIALOGS = frozenset({"dialog", "alert", "alert dialog", "file chooser", "color chooser", "font chooser", "popover"})
_WINDOWS = DIALOGS | {"frame", "window"}
_ENTRIES = frozenset({"list item", "tree item", "table row"})
_BARS = frozenset({"info bar", "menu bar", "page tab list", "popup menu", "status bar", "tool bar"})
"""The roles that name a place where nothing has a name."""
_UNSTABLE = frozenset(
    {
        *("combo box", "document frame", "document spreadsheet", "document text", "document web", "glass pane"),
        *("layered pane", "paragraph", "root pane", "scroll pane", "viewport"),
    }
)
"""The roles whose names are titles of files, or values."""
_HEADERS = frozenset({"column header", "table column header"})
_WHOLES = frozenset(
    {"push button", "toggle button", "list item", "tree item", "table cell", "check box", "radio button"}
)
"""The roles that include their labels and pictures."""
_STATES = {
    ObjectState.CHECKED: "checked",
    ObjectState.PRESSED: "pressed",
    ObjectState.SELECTED: "selected",
    ObjectState.EXPANDED: "expanded",
    ObjectState.EXPANDABLE: "expandable",
    ObjectState.INDETERMINATE: "indeterminate",
    ObjectState.FOCUSED: "focused",
    ObjectState.BUSY: "busy",
}
_FOCUSED = "focused"
PASSWORD = "password"  # noqa: S105 - a control's state
_MOST_NUMBER = 1_000_000


class Ids:
    """Short names for a program's objects.

    A name is the number in the object's path if that is small, else a digest of the path. An object keeps its name as
    long as it exists, also for other processes that observe it.
    """

    def __init__(self) -> None:
        self._by_path: dict[str, str] = {}
        self._paths: dict[str, str] = {}

    def of(self, path: str) -> str:
        """Return the name of an object."""
        if path not in self._by_path:
            last = path.rpartition("/")[2]
            name = last if last.isdigit() and int(last) < _MOST_NUMBER else ""
            digest = zlib.crc32(path.encode())
            while not name or name in self._paths:
                name, digest = f"n{digest % _MOST_NUMBER}", digest + 1
            self._by_path[path], self._paths[name] = name, path
        return self._by_path[path]

    def path(self, name: str) -> str | None:
        """Return the path of a named object; None if none was seen."""
        return self._paths.get(name)


@dataclass(frozen=True)
class ProgramView:
    """The view of a program for an agent."""

    controls: tuple[Control, ...]
    fingerprint: str
    dialog: str = ""
    """The title of an open modal dialog; only its controls are shown then. Empty if none is open."""
    dialogs: tuple[str, ...] = ()
    """The titles of open dialogs that are not modal, beside a main window."""
    notes: tuple[str, ...] = field(default=())


def program_view(
    nodes: Sequence[AccessibleNode],
    ids: Ids,
    area: Box | None,
    budget: LookBudget,
    *,
    popups: Sequence[Box] = (),
    masked: Collection[str] = (),
) -> ProgramView:
    """Select the controls to show from the objects of a snapshot.

    Args:
        nodes: The objects, parents before children.
        ids: The short names of the program's objects.
        area: The area of the screen that the picture shows; boxes are relative to its corner.
        budget: The limits for the number of controls, and for their text.
        popups: The boxes of open menus and lists. Controls that they cover get no box, except masked ones.
        masked: The controls that hold secrets; they always have a box.
    """
    controls, notes, room, dialog, dialogs = list[Control](), list[str](), budget.text, "", list[str]()
    marks = hashlib.sha256()
    names = {label for node in nodes for label in node.labels}
    named = {(node.window, node.name) for node in nodes if node.role in TEXTS | VALUES or node.role == "combo box"}
    names |= {node for node in nodes if node.role == "label" and (node.window, node.name) in named}
    for node in _in_reach(nodes):
        if node.depth == 0:
            marks.update(repr((node.path, node.name, node.role)).encode())
            if node.has(ObjectState.MODAL):
                dialog = node.name or node.role
            elif node.role in DIALOGS:
                dialogs.append(node.name or node.role)
        elif node in names or not _is_shown(node):
            continue
        else:
            control = _control(node, ids, area)
            if _is_covered(node, popups) and PASSWORD not in control.states and control.id not in masked:
                control = control.model_copy(update={"box": None})
            marks.update(repr(_mark(control)).encode())
            room -= len(control.name) + sum(len(entry) for entry in control.detail.values() if isinstance(entry, str))
            if len(controls) < budget.controls and room >= 0:
                controls.append(control)
            elif not notes:
                notes.append("There are more controls than fit; scroll, or close what is not needed.")
    has_frame = any(node.depth == 0 and node.role == "frame" for node in nodes)
    return ProgramView(tuple(controls), marks.hexdigest(), dialog, tuple(dialogs) if has_frame else (), tuple(notes))


def _in_reach(nodes: Sequence[AccessibleNode]) -> Iterator[AccessibleNode]:
    """Yield the objects of reacting windows: only the modal ones if any."""
    modal = any(node.depth == 0 and node.has(ObjectState.MODAL) for node in nodes)
    reached: dict[AccessibleNode, bool] = {}
    for node in nodes:
        if node.parent is None:
            reached[node] = not modal or node.has(ObjectState.MODAL) or node.role not in _WINDOWS
        else:
            reached[node] = reached[node.parent]
        if reached[node]:
            yield node


def _is_shown(node: AccessibleNode) -> bool:
    if any(ancestor.role in _WHOLES for ancestor in node.above()) and node.role in (_READ | CELLS):
        return False  # a part of a control that is shown already
    if node.role in _READ or node.box is None:
        return bool(node.name or node.text)
    return node.role in CONTROLS and bool(node.role != "paragraph" or node.text)


def _is_covered(node: AccessibleNode, popups: Sequence[Box]) -> bool:
    """Return whether an open popup covers the center of an outside object."""
    if node.box is None or node.role in POPUPS or in_popup(node):
        return False
    x, y = node.box.x + node.box.width // 2, node.box.y + node.box.height // 2
    return any(box.holds(x, y) for box in popups)


def _control(node: AccessibleNode, ids: Ids, area: Box | None) -> Control:
    states = [name for state, name in _STATES.items() if node.has(state)]
    if node.role == "password text":
        states.append(PASSWORD)
    detail: dict[str, JsonValue] = {}
    if node.text is not None and node.role != "password text":
        detail["text"] = node.text
    if node.value is not None:
        detail["value"] = node.value
    if node.size is not None:
        detail["rows"], detail["columns"] = node.size
    if node.role == "menu item" and node.parent is not None and node.parent.role == "menu":
        detail["menu"] = ids.of(node.parent.path)
    return Control(
        id=ids.of(node.path),
        name=label_of(node),
        kind=node.role,
        enabled=node.enabled,
        box=within(node.box, area),
        states=tuple(states),
        place=_place(node),
        columns=tuple(child.name for child in node.children if child.role in _HEADERS) if node.role in TABLES else (),
        detail=detail,
    )


def _place(node: AccessibleNode) -> str:
    """Name the entry, group or dialog around an object."""
    for ancestor in node.above():
        if ancestor.role in _ENTRIES and label_of(ancestor) not in {"", node.name}:
            return label_of(ancestor)
    for ancestor in node.above():
        if ancestor.depth == 0:
            return (ancestor.name or ancestor.role) if ancestor.role in DIALOGS else ""
        if ancestor.name and ancestor.role not in _UNSTABLE:
            return ancestor.name
        if ancestor.role in _BARS:
            return ancestor.role
    return ""


def label_of(node: AccessibleNode) -> str:
    """Return an object's name, or the label inside a nameless button."""
    if node.name or node.role not in _WHOLES:
        return node.name
    below = list(node.children)
    while below and not any(child.name for child in below):
        below = [grandchild for child in below for grandchild in child.children]
    return next((child.name for child in below if child.name), "")


def _mark(control: Control) -> tuple[object, ...]:
    """Return the properties of a control whose changes count.

    Its place does not count, nor the focus, which any other window may take.
    """
    states = tuple(state for state in control.states if state != _FOCUSED)
    return control.id, control.name, control.kind, control.enabled, states, sorted(control.detail.items())


def within(box: Box | None, area: Box | None) -> Box | None:
    """Clip a box to the picture, in its pixels; None if outside."""
    if box is None or area is None:
        return None
    left, top = max(box.x - area.x, 0), max(box.y - area.y, 0)
    right = min(box.x + box.width - area.x, area.width)
    bottom = min(box.y + box.height - area.y, area.height)
    if right <= left or bottom <= top:
        return None
    return Box(x=left, y=top, width=right - left, height=bottom - top)
