"""What is on a device's screen, as its accessibility tells it: parsed from what `uiautomator dump` writes."""

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
_STATES = ("checked", "selected", "focused")
_ACTIONS = ("clickable", "long-clickable", "checkable", "scrollable")
_NUMBERS = 100_000
_MOST_DEPTH = 400
_MOST_NODES = 10_000
_MOST_SIZE = 10_000_000
"""The characters of a hierarchy: a crowded screen has some 200,000."""
_MOST_NAME = 500
_MOST_TEXT = 5_000
"""The characters of a name, and of a field's text, that are told."""


class HierarchyError(ValueError):
    """The device has told something that is no hierarchy."""


@dataclass(eq=False)
class ScreenNode:
    """One thing on the screen."""

    values: dict[str, str]
    place: int
    """Where it stands: a checksum of the classes and places of what it is in."""
    parent: ScreenNode | None
    children: list[ScreenNode] = field(default_factory=list)

    def is_(self, name: str) -> bool:
        """Return whether it has a property."""
        return self.values.get(name) == "true"

    @property
    def package(self) -> str:
        """The application that shows it."""
        return self.values.get("package", "")

    @property
    def resource(self) -> str:
        """The name that its application's programmers have given it: the last part of its resource id."""
        return self.values.get("resource-id", "").rpartition("/")[2]

    @property
    def text(self) -> str:
        """The text that it shows; that of a password's field is not told, nor a hint in place of a text."""
        text = self.values.get("text", "")
        return "" if self.is_("password") or text == self.values.get("hint") else text

    @property
    def kind(self) -> str:
        """The kind of control that it is."""
        name = self.values.get("class", "").rpartition(".")[2]
        if self.is_("scrollable") and name not in {"EditText", "Spinner", "SeekBar", "WebView"}:
            return "list"
        return _KINDS.get(name) or ("check box" if self.is_("checkable") else "item" if self.acts else name.lower())

    @property
    def acts(self) -> bool:
        """Whether it can be acted on."""
        return any(self.is_(each) for each in _ACTIONS)

    @property
    def box(self) -> Box | None:
        """Where it is on the screen; None if nowhere."""
        found = _BOUNDS.fullmatch(self.values.get("bounds", ""))
        if found is None:
            return None
        left, top, right, bottom = map(int, found.groups())
        left, top = max(left, 0), max(top, 0)
        return Box(x=left, y=top, width=right - left, height=bottom - top) if right > left and bottom > top else None

    @property
    def name(self) -> str:
        """What a person would call it: its description, its text, or the texts in it; cut where it is too long."""
        return _cut(self._name(), _MOST_NAME)

    def _name(self) -> str:
        told = self.values.get("content-desc", "") or self.values.get("hint", "")
        if self.kind == FIELD:
            return told or self.resource.replace("_", " ")
        if told or self.text:
            return told or self.text
        if self.acts and not self.is_("scrollable"):
            found = ", ".join(dict.fromkeys(self.labels()))
            return found or self.resource.replace("_", " ")
        return ""

    def labels(self) -> Iterator[str]:
        """Give the texts of what is in it, but not of what can be acted on by itself."""
        for child in self.children:
            if not child.acts:
                told = child.values.get("content-desc", "") or child.text
                if told:
                    yield told
                yield from child.labels()

    def is_part(self) -> bool:
        """Return whether it only says what something that it is in is called."""
        above = self.parent
        while above is not None and not above.acts:
            above = above.parent
        return not self.acts and above is not None and not above.is_("scrollable") and above.kind != FIELD


class Hierarchy:
    """All that is on a screen.

    Args:
        text: What `uiautomator dump` has written.

    Raises:
        HierarchyError: If it is something else.
    """

    def __init__(self, text: str) -> None:
        if len(text) > _MOST_SIZE:
            msg = f"the device has told a hierarchy of {len(text):,} characters"
            raise HierarchyError(msg)
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            msg = "the device has told entities in place of a hierarchy"
            raise HierarchyError(msg)
        try:
            root = ET.fromstring(_REFERENCE.sub(_allowed, _NO_XML.sub("\ufffd", text)))  # noqa: S314 - without a document type there are no entities
        except ET.ParseError as error:
            msg = f"the device has told no hierarchy: {error}"
            raise HierarchyError(msg) from error
        self.rotation = _ROTATIONS.get(root.get("rotation", ""), 0)
        """The turns of the screen by 90 degrees, counted from upright."""
        self.nodes: list[ScreenNode] = []
        """Parents stand before their children, and what is drawn later after what it covers."""
        self._ids: dict[str, ScreenNode] = {}
        self._names: dict[ScreenNode, str] = {}
        left: list[tuple[ET.Element, ScreenNode | None, int, int]] = [(each, None, 0, 0) for each in reversed(root)]
        while left:
            element, parent, above, depth = left.pop()
            if depth > _MOST_DEPTH or len(self.nodes) == _MOST_NODES:
                msg = "the device has told a hierarchy that is too deep or too large"
                raise HierarchyError(msg)
            step = f"/{element.get('index', '')}{element.get('class', '')}#{element.get('resource-id', '')}"
            place = zlib.crc32(step.encode(errors="surrogatepass"), above)
            node = ScreenNode(dict(element.attrib), place, parent)
            if parent is not None:
                parent.children.append(node)
            self.nodes.append(node)
            left += [(each, node, place, depth + 1) for each in reversed(element)]
        following: dict[int, int] = {}
        for node in self.nodes:
            first = node.place % _NUMBERS
            number = following.get(first, first)
            while str(number) in self._ids:
                number += 1
            following[first] = number + 1
            self._ids[str(number)], self._names[node] = node, str(number)

    @property
    def package(self) -> str:
        """The application in front."""
        return next((node.package for node in self.nodes if node.package), "")

    def node(self, control_id: str) -> ScreenNode | None:
        """Give what a control's id stands for."""
        return self._ids.get(control_id)

    def at(self, x: int, y: int) -> ScreenNode | None:
        """Give what a touch of a point acts on: the last drawn thing there that can be acted on."""
        found = None
        for node in self.nodes:
            box = node.box
            if node.acts and box and box.x <= x < box.x + box.width and box.y <= y < box.y + box.height:
                found = node
        return found

    @property
    def focused(self) -> ScreenNode | None:
        """The field that keys go to."""
        return next((node for node in self.nodes if node.is_("focused") and node.kind == FIELD), None)

    def shown(self) -> Iterator[ScreenNode]:
        """Give what is worth telling: what can be acted on, and what says something."""
        for node in self.nodes:
            if node.box is not None and (node.acts or (node.name and not node.is_part())):
                yield node

    def controls(self, budget: LookBudget) -> tuple[tuple[Control, ...], tuple[str, ...]]:
        """Give the controls, and notes on what was left out."""
        found, room = list[Control](), budget.text
        for node in self.shown():
            control = self.control(node)
            room -= len(control.name) + len(str(control.detail.get("text", "")))
            if len(found) == budget.controls or room < 0:
                return tuple(found), ("There are more controls than fit: scroll.",)
            found.append(control)
        return tuple(found), ()

    def control(self, node: ScreenNode) -> Control:
        """Tell one thing as a control."""
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
            detail=detail,
        )

    def fingerprint(self) -> str:
        """Give a digest of what is shown: not of where it is, nor of the focus."""
        marks = hashlib.sha256(self.package.encode())
        for node in self.shown():
            states = [name for name in _STATES[:2] if node.is_(name)]
            mark = (self._names[node], node.name, node.kind, node.text, node.values.get("enabled"), states)
            marks.update(repr(mark).encode(errors="surrogatepass"))
        return marks.hexdigest()


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _allowed(reference: re.Match[str]) -> str:
    """Replace a reference to a character that XML does not allow."""
    number = int(reference[1], 16) if reference[1] else int(reference[2])
    known = number <= sys.maxunicode and not _NO_XML.match(chr(number))
    return reference[0] if known else "\ufffd"
