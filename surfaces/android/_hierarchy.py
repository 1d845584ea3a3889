"""Parser for `uiautomator dump`: the accessibility hierarchy of a device's screen."""

from __future__ import annotations

import hashlib
import re
import sys
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from callboard.messages import Box, Control, LookBudget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

PASSWORD = "password"  # noqa: S105 - a control's state
FIELD = "text field"
_BOUNDS = re.compile(r"\[(-?\d{1,6}),(-?\d{1,6})\]\[(-?\d{1,6}),(-?\d{1,6})\]", re.ASCII)
_ROTATIONS = {"1": 1, "2": 2, "3": 3}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REFERENCE = re.compile(r"&#(?:x([0-9a-f]{1,8})|([0-9]{1,10}));", re.IGNORECASE)
_KINDS = {
    "EditText": FIELD,
    "AutoCompleteTextView": FIELD,
    "MultiAutoCompleteTextView": FIELD,
    "Button": "button",
    "ImageButton": "button",
    "CheckBox": "check box",
    "CheckedTextView": "check box",
    "RadioButton": "radio button",
    "Switch": "switch",
    "ToggleButton": "switch",
    "SeekBar": "slider",
    "Spinner": "drop-down",
    "TextView": "label",
    "ImageView": "image",
    "ProgressBar": "progress bar",
    "WebView": "web page",
    "TabWidget": "tabs",
}
_LISTS = frozenset({"RecyclerView", "ListView", "GridView", "ExpandableListView"})
"""The classes whose children are entries."""
_DIALOG_PARTS = frozenset({"alertTitle", "parentPanel", "grant_dialog"})
"""The resource ids of Android's and Material's dialogs."""
_DIALOG_TITLES = ("alertTitle", "permission_message", "message")
_STATES = ("checked", "selected", "focused")
_ACTIONS = ("clickable", "long-clickable", "checkable", "scrollable")
_NUMBERS = 100_000
_MOST_DEPTH = 400
_MOST_NODES = 10_000
_MOST_SIZE = 10_000_000
"""The characters of a hierarchy: a crowded screen has some 200,000."""
_MOST_NAME = 500
_MOST_TEXT = 5_000
_MOST_PLACE = 80
"""The longest name of a control, text of a field, and name of a place, in characters; more is cut off."""


class HierarchyError(ValueError):
    """The device's output is not a valid hierarchy."""


@dataclass(eq=False)
class ScreenNode:
    """One node of the hierarchy."""

    values: dict[str, str]
    path_checksum: int
    """A checksum of its path: the indexes, classes and resource ids of itself and its ancestors."""
    parent: ScreenNode | None
    children: list[ScreenNode] = field(default_factory=list)

    def is_(self, name: str) -> bool:
        """Return whether a boolean property is true."""
        return self.values.get(name) == "true"

    @property
    def package(self) -> str:
        """The package of the application that shows it."""
        return self.values.get("package", "")

    @property
    def resource(self) -> str:
        """The last part of its resource id, which the application's developers chose."""
        return self.values.get("resource-id", "").rpartition("/")[2]

    @property
    def text(self) -> str:
        """The text that it shows; empty for passwords and for hints."""
        text = self.values.get("text", "")
        return "" if self.is_("password") or text == self.values.get("hint") else text

    @property
    def kind(self) -> str:
        """The kind of control."""
        name = self.values.get("class", "").rpartition(".")[2]
        if self.is_("scrollable") and name not in {"EditText", "Spinner", "SeekBar", "WebView"}:
            return "list"
        return _KINDS.get(name) or ("check box" if self.is_("checkable") else "item" if self.acts else name.lower())

    @property
    def acts(self) -> bool:
        """True if it accepts actions."""
        return any(self.is_(action) for action in _ACTIONS)

    @property
    def box(self) -> Box | None:
        """Its bounds on the screen; None if it has none."""
        match = _BOUNDS.fullmatch(self.values.get("bounds", ""))
        if match is None:
            return None
        left, top, right, bottom = map(int, match.groups())
        left, top = max(left, 0), max(top, 0)
        return Box(x=left, y=top, width=right - left, height=bottom - top) if right > left and bottom > top else None

    @property
    def name(self) -> str:
        """Its description, text, or the texts in it, at most 500 characters."""
        return _cut(self._name(), _MOST_NAME)

    def _name(self) -> str:
        described = self.values.get("content-desc", "") or self.values.get("hint", "")
        if self.kind == FIELD:
            return described or self.resource.replace("_", " ")
        if described or self.text:
            return described or self.text
        if self.acts and not self.is_("scrollable"):
            label_text = ", ".join(dict.fromkeys(self.labels()))
            return label_text or self.resource.replace("_", " ")
        return ""

    @property
    def place(self) -> str:
        """The list entry that it is in, or the named part around.

        The name of a part is its description, or its resource id.
        """
        ancestors = list(self.ancestors())
        for ancestor in ancestors:
            above = ancestor.parent
            if above is not None and above.values.get("class", "").rpartition(".")[2] in _LISTS:
                entry = next(ancestor.labels(), "") or next(ancestor.texts(), "")
                if entry:
                    return _cut(entry, _MOST_PLACE)
        for ancestor in ancestors:
            described = ancestor.values.get("content-desc", "") or ancestor.resource.replace("_", " ")
            if described:
                return _cut(described, _MOST_PLACE)
        return ""

    def ancestors(self) -> Iterator[ScreenNode]:
        """Yield the nodes around it, the nearest first."""
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    def texts(self) -> Iterator[str]:
        """Yield the texts of all its descendants, except fields."""
        for child in self.children:
            described = child.values.get("content-desc", "") or child.text
            if described and child.kind != FIELD:
                yield described
            yield from child.texts()

    def labels(self) -> Iterator[str]:
        """Yield the texts of its descendants, except those that accept actions."""
        for child in self.children:
            if not child.acts:
                described = child.values.get("content-desc", "") or child.text
                if described:
                    yield described
                yield from child.labels()

    def is_part(self) -> bool:
        """Return whether it is only the label of a control around it."""
        above = self.parent
        while above is not None and not above.acts:
            above = above.parent
        return not self.acts and above is not None and not above.is_("scrollable") and above.kind != FIELD


class Hierarchy:
    """All nodes on a screen.

    Args:
        text: The output of `uiautomator dump`.

    Raises:
        HierarchyError: If the text is not a valid hierarchy.
    """

    def __init__(self, text: str) -> None:
        if len(text) > _MOST_SIZE:
            msg = f"the device's hierarchy has {len(text):,} characters; at most {_MOST_SIZE:,} are possible"
            raise HierarchyError(msg)
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            msg = "the device's hierarchy has a document type or entities"
            raise HierarchyError(msg)
        try:
            root = ET.fromstring(_REFERENCE.sub(_replace_invalid, _NO_XML.sub("\ufffd", text)))  # noqa: S314 - without a document type there are no entities
        except ET.ParseError as error:
            msg = f"the device's hierarchy is not valid XML: {error}"
            raise HierarchyError(msg) from error
        self.rotation = _ROTATIONS.get(root.get("rotation", ""), 0)
        """The rotation of the screen from upright, in steps of 90 degrees."""
        self.nodes: list[ScreenNode] = []
        """All nodes in drawing order: parents before children, covered nodes before those that cover them."""
        self._ids: dict[str, ScreenNode] = {}
        self._names: dict[ScreenNode, str] = {}
        stack: list[tuple[ET.Element, ScreenNode | None, int, int]] = [(child, None, 0, 0) for child in reversed(root)]
        while stack:
            element, parent, parent_checksum, depth = stack.pop()
            if depth > _MOST_DEPTH or len(self.nodes) == _MOST_NODES:
                msg = f"the device's hierarchy has more than {_MOST_DEPTH} levels or {_MOST_NODES:,} nodes"
                raise HierarchyError(msg)
            step = f"/{element.get('index', '')}{element.get('class', '')}#{element.get('resource-id', '')}"
            path_checksum = zlib.crc32(step.encode(errors="surrogatepass"), parent_checksum)
            node = ScreenNode(dict(element.attrib), path_checksum, parent)
            if parent is not None:
                parent.children.append(node)
            self.nodes.append(node)
            stack += [(child, node, path_checksum, depth + 1) for child in reversed(element)]
        following: dict[int, int] = {}
        for node in self.nodes:
            first = node.path_checksum % _NUMBERS
            number = following.get(first, first)
            while str(number) in self._ids:
                number += 1
            following[first] = number + 1
            self._ids[str(number)], self._names[node] = node, str(number)

    @property
    def package(self) -> str:
        """The package of the foreground application."""
        return next((node.package for node in self.nodes if node.package), "")

    @property
    def dialog(self) -> str:
        """The title of the dialog on the screen; empty for none.

        A dialog is known by the resource ids of its parts.
        """
        parts = {node.resource: node.text for node in self.nodes if node.resource in {*_DIALOG_PARTS, *_DIALOG_TITLES}}
        if _DIALOG_PARTS.isdisjoint(parts):
            return ""
        return next((parts[name] for name in _DIALOG_TITLES if parts.get(name)), "dialog")

    def node(self, control_id: str) -> ScreenNode | None:
        """Return the node of a control's id; None if there is none."""
        return self._ids.get(control_id)

    def at(self, x: int, y: int) -> ScreenNode | None:
        """Return the topmost node at a point that accepts actions."""
        topmost = None
        for node in self.nodes:
            box = node.box
            if node.acts and box and box.x <= x < box.x + box.width and box.y <= y < box.y + box.height:
                topmost = node
        return topmost

    @property
    def focused(self) -> ScreenNode | None:
        """The text field that has the focus."""
        return next((node for node in self.nodes if node.is_("focused") and node.kind == FIELD), None)

    def reported_nodes(self) -> Iterator[ScreenNode]:
        """Yield the nodes to report: they accept actions or have names."""
        for node in self.nodes:
            if node.box is not None and (node.acts or (node.name and not node.is_part())):
                yield node

    def controls(self, budget: LookBudget) -> tuple[tuple[Control, ...], tuple[str, ...]]:
        """Return the controls that fit the budget, and notes about omitted ones."""
        fitting_controls, room = list[Control](), budget.text
        for node in self.reported_nodes():
            control = self.control(node)
            room -= len(control.name) + len(str(control.detail.get("text", "")))
            if len(fitting_controls) == budget.controls or room < 0:
                return tuple(fitting_controls), ("There are more controls than fit: scroll.",)
            fitting_controls.append(control)
        return tuple(fitting_controls), ()

    def control(self, node: ScreenNode) -> Control:
        """Convert a node to a control."""
        states = [name for name in _STATES if node.is_(name)]
        if node.is_("password"):
            states.append(PASSWORD)
        detail: dict[str, JsonValue] = {}
        if node.kind == FIELD and not node.is_("password"):
            detail["text"] = _cut(node.text, _MOST_TEXT)
        return Control(
            id=self._names[node],
            name=node.name,
            kind=node.kind,
            enabled=node.values.get("enabled") != "false",
            box=node.box,
            states=tuple(states),
            place=node.place,
            detail=detail,
        )

    def fingerprint(self) -> str:
        """Return a digest of the reported nodes, without bounds and focus."""
        marks = hashlib.sha256(self.package.encode())
        for node in self.reported_nodes():
            states = [name for name in _STATES[:2] if node.is_(name)]
            mark = (self._names[node], node.name, node.kind, node.text, node.values.get("enabled"), states)
            marks.update(repr(mark).encode(errors="surrogatepass"))
        return marks.hexdigest()


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _replace_invalid(reference: re.Match[str]) -> str:
    """Return a character reference, or U+FFFD if XML forbids the character."""
    number = int(reference[1], 16) if reference[1] else int(reference[2])
    is_valid = number <= sys.maxunicode and not _NO_XML.match(chr(number))
    return reference[0] if is_valid else "\ufffd"
