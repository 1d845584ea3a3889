"""Accessibility snapshot of a page: its controls, its readable text, its fingerprint."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from callboard.messages import Box, Control
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.browser._page_places import columns_of, places_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pydantic import JsonValue

PASSWORD = "password"  # noqa: S105 - a control's state
FILE = "file field"
DIALOGS = frozenset({"dialog", "alertdialog"})
DIALOG = "page dialog"
"""The kind of an open alert, confirm or prompt. No part of a page has it."""
TABLES = frozenset({"table", "grid", "treegrid"})
BUTTONS = frozenset({"button", "menuitem", "menuitemcheckbox", "menuitemradio", "tab", "switch", "option", "link"})
FIELDS = frozenset({"textbox", "searchbox", "combobox", "spinbutton"})
BOXES = frozenset({"checkbox", "radio", "switch"})
BOX_INPUT = "descendant::*[local-name()='input' and (@type='checkbox' or @type='radio')]"
"""The XPath of the input in a label."""
ENTERED = FIELDS | {"checkbox", "radio", "slider"}
"""The controls in which Enter submits their form."""
ROLES = BUTTONS | FIELDS | TABLES | DIALOGS | {"checkbox", "radio", "slider", "listbox", "treeitem"}
"""The roles that are controls. A part of any other role is one if it is clickable."""
MOST_TEXT = 12_000
"""The characters of the readable text in an observation; the tool ``read`` gives the rest."""
_MOST_NAME, _MOST_VALUE, _MOST_OPTIONS = 500, 5_000, 100
_KEY = re.compile(r'(?P<role>[\w-]+)(?: (?P<name>"(?:[^"\\]|\\.)*"))?(?P<marks>(?: \[[^\]"]*\])*)')
_MARK = re.compile(r"\[([\w-]+)(?:=([^\]]*))?\]")
_STATES = ("checked", "pressed", "selected", "expanded", "invalid")
_INLINE = frozenset({"text", "link", "strong", "emphasis", "code", "insertion", "deletion", "superscript", "subscript"})
_CELLS = frozenset({"cell", "gridcell", "columnheader", "rowheader"})
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class Inset(NamedTuple):
    """The place of a frame's content in a picture or box."""

    x: float = 0.0
    y: float = 0.0
    across: float = 1.0
    """The factor by which the content is wider than its own pixels say."""
    down: float = 1.0

    def outside(self, x: int, y: int, width: int, height: int) -> Box:
        """Return the box of a part of the content."""
        first_x, first_y = math.floor(self.x + x * self.across), math.floor(self.y + y * self.down)
        end_x, end_y = self.x + (x + width) * self.across, self.y + (y + height) * self.down
        return Box(x=first_x, y=first_y, width=math.ceil(end_x - first_x), height=math.ceil(end_y - first_y))


@dataclass(eq=False)
class PageNode:
    """One part of a page."""

    role: str
    name: str = ""
    marks: dict[str, str] = field(default_factory=dict)
    """Its states, such as ``checked`` and ``level``; empty for those without a value."""
    text: str = ""
    """The text in it, or the value of a field; empty for a password."""
    properties: dict[str, str] = field(default_factory=dict)
    """Its ``url`` and ``placeholder``."""
    box: Box | None = None
    """Its place in the picture."""
    parent: PageNode | None = None
    children: list[PageNode] = field(default_factory=list)
    is_password: bool = False
    is_file: bool = False
    """True if files are given to it."""
    is_in_label: bool = False
    """True if it is a box without an area, which has the ref and the place of the label around it."""
    is_framed: bool = False
    """True if it is in a frame of the page."""

    @property
    def ref(self) -> str:
        """Playwright's name of its element; empty for none."""
        return self.marks.get("ref", "")

    @property
    def selector(self) -> str:
        """Playwright's selector of its element."""
        return f"aria-ref={self.ref}" + (f" >> xpath={BOX_INPUT}" if self.is_in_label else "")

    @property
    def is_control(self) -> bool:
        """True if it can be acted on."""
        return bool(self.ref) and (self.role in ROLES or self.is_clickable)

    @property
    def is_clickable(self) -> bool:
        """True if a click is likely to do something, whatever the role.

        The pointer becomes a hand over it; or it has a name, which parts without a role have for a reason; or it is an
        item of a list in a clickable part, as in lists of options that pages draw themselves.
        """
        return (
            "cursor" in self.marks
            or (self.role == "generic" and bool(self.name))
            or (self.role == "listitem" and any("cursor" in ancestor.marks for ancestor in self.ancestors()))
        )

    def instead_of(self, node: PageNode) -> PageNode:
        """Put it where an earlier look had the same part."""
        self.parent = node.parent
        if any("cursor" in ancestor.marks for ancestor in self.ancestors()):  # the whole snapshot marks that alone
            self.marks.pop("cursor", None)
        return self

    def below(self) -> Iterator[PageNode]:
        """Yield all parts in it, in reading order."""
        for child in self.children:
            yield child
            yield from child.below()

    def ancestors(self) -> Iterator[PageNode]:
        """Yield the parts around it, the nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def lines(self) -> Iterator[str]:
        """Yield its readable text, line by line."""
        pieces: list[str] = []
        if self.role in _CELLS or self.role in FIELDS:
            yield self.words()
            return
        own = self.text or ("" if any(child.words() for child in self.children) else self.name)
        if own:
            pieces.append(own)
        if self.role == "row":
            yield " | ".join(child.words() for child in self.children)
            return
        for child in self.children:
            if child.role in _INLINE:
                pieces.append(child.words())
                continue
            if pieces:
                yield self._line(pieces)
                pieces = []
            yield from child.lines()
        if pieces:
            yield self._line(pieces)

    def _line(self, pieces: list[str]) -> str:
        line = " ".join(filter(None, pieces))
        if self.role == "heading":
            return f"{'#' * int(self.marks.get('level') or 1)} {line}"
        return f"- {line}" if self.role == "listitem" else line

    def words(self) -> str:
        """Return its readable text on one line.

        The value of a field is left out: it is a fact of the control.
        """
        if self.role in FIELDS:
            return self.name
        inner = " ".join(filter(None, (self.text, *(child.words() for child in self.children))))
        return inner or self.name


class PageSnapshot:
    """All parts of a page, its frames and open shadow roots included.

    Args:
        text: Playwright's accessibility snapshot with refs, as YAML.
        url: The page's address.
        passwords: The refs of password fields, whose values are left out; None: all fields may be one.
        files: The refs of fields for files; None if they are not known.
        suffixes: The suffix of the ids of controls in the page itself, and in its frames. It differs between documents,
            since refs start again in each document.
        insets: The places of the contents of frames in their boxes, by the frames' refs.

    Raises:
        ToolError: If the snapshot can't be read.
    """

    def __init__(
        self,
        text: str,
        url: str = "",
        *,
        passwords: Collection[str] | None = (),
        files: Collection[str] | None = (),
        suffixes: tuple[str, str] = ("", ""),
        insets: Mapping[str, Inset] | None = None,
    ) -> None:
        self.url = url
        self._passwords = passwords
        self._files = files or ()
        self._suffixes = suffixes
        self._insets = insets or {}
        try:
            items = yaml.load(text, Loader=_LOADER) or []  # noqa: S506 - it makes only texts, lists and mappings
            self.root = PageNode("document")
            self._add(self.root, items, Inset())
        except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
            msg = f"the page's parts can't be listed: {type(error).__name__}"
            raise ToolError(msg) from error
        self.nodes = list(self.root.below())
        self._by_id = {self.id_of(node): node for node in self.nodes if node.ref}

    def _add(self, parent: PageNode, items: list[Any], frame: Inset) -> None:
        for item in items:
            key, value = next(iter(item.items())) if isinstance(item, dict) else (item, "")
            if key.startswith("/"):
                parent.properties[key[1:]] = str(value)
                continue
            match = _KEY.fullmatch(key)
            if match is None:
                msg = f"{key[:100]!r} is no part of a page"
                raise ValueError(msg)
            marks = dict(_MARK.findall(match["marks"]))
            node = PageNode(match["role"], json.loads(match["name"] or '""'), marks, parent=parent)
            node.is_password = node.role in FIELDS if self._passwords is None else node.ref in self._passwords
            node.is_file = node.ref in self._files
            node.is_framed = parent.is_framed or parent.role == "iframe"
            if "box" in marks:
                node.box = frame.outside(*map(int, marks.pop("box").split(",")))
            parent.children.append(node)
            if isinstance(value, list):
                self._add(node, value, self._inside(node, frame))
            elif not node.is_password:
                node.text = value
            if node.is_password:
                node.children = []  # its value, beside a placeholder
            elif node.role in FIELDS and not node.text:
                selected = [child.name for child in node.children if "selected" in child.marks]
                node.text = " ".join((*(child.text for child in node.children if child.role == "text"), *selected))

    def _inside(self, node: PageNode, frame: Inset) -> Inset:
        """Return the place of the content of a node, in the picture."""
        if node.role != "iframe" or node.box is None:
            return frame
        inset = self._insets.get(node.ref, Inset())
        return Inset(
            node.box.x + inset.x * frame.across,
            node.box.y + inset.y * frame.down,
            frame.across * inset.across,
            frame.down * inset.down,
        )

    def id_of(self, node: PageNode) -> str:
        """Return the id of a control."""
        return f"{node.ref}{self._suffixes[node.is_framed]}"

    def node(self, control_id: str) -> PageNode | None:
        """Return the part with a control's id; None if it is gone."""
        return self._by_id.get(control_id)

    def boxes_without_area(self) -> list[PageNode]:
        """Return the boxes that have no ref because they have no area."""
        return [node for node in self.nodes if node.role in BOXES and not node.ref and node.parent and node.parent.ref]

    def put_in_label(self, box: PageNode) -> None:
        """Give a box the ref and place of the label around it."""
        if box.parent is not None:
            box.marks["ref"], box.box, box.is_in_label = box.parent.marks.pop("ref"), box.parent.box, True
            self._by_id[self.id_of(box)] = box

    @functools.cached_property
    def focused(self) -> PageNode | None:
        """The part that has the focus."""
        return next((node for node in reversed(self.nodes) if "active" in node.marks and node.ref), None)

    def controls(self) -> tuple[Control, ...]:
        """Return the controls, in reading order."""
        places = places_of(self.nodes)
        return tuple(self._control(node, place) for node, place in places.items())

    def filled_boxes(self) -> dict[str, Box | None]:
        """Return the places of password fields and filled ones, by id."""
        nodes = [node for node in self.nodes if node.is_password or (node.role in FIELDS and node.text)]
        return {self.id_of(node): node.box for node in nodes}

    def _control(self, node: PageNode, place: str) -> Control:
        states = [state for state in _STATES if state in node.marks]
        if node is self.focused:
            states.append("focused")
        if node.is_password:
            states.append(PASSWORD)
        detail: dict[str, JsonValue] = {
            name: _cut(value, _MOST_NAME) for name, value in node.properties.items() if value
        }
        words = "" if node.role in TABLES | DIALOGS | FIELDS else node.words()
        words = words or node.text
        if words and words != node.name and not node.is_password:
            detail["value" if node.role in FIELDS | {"slider"} else "text"] = _cut(words, _MOST_VALUE)
        options: list[PageNode] = [child for child in node.children if child.role == "option" and not child.ref]
        if options:
            detail["options"] = [_cut(option.name, _MOST_NAME) for option in options[:_MOST_OPTIONS]]
        if node.role in TABLES:
            detail["rows"] = sum(part.role == "row" for part in node.below())
        return Control(
            id=self.id_of(node),
            name=_cut(node.name or (words if node.role not in FIELDS else ""), _MOST_NAME),
            kind=FILE if node.is_file else node.role if node.role != "generic" else "clickable",
            enabled="disabled" not in node.marks,
            box=node.box,
            states=tuple(states),
            place=place,
            columns=columns_of(node) if node.role in TABLES else (),
            detail=detail,
        )

    def text(self, node: PageNode | None = None) -> str:
        """Return the readable text of the page, or of a part."""
        lines = [line for line in (node or self.root).lines() if line.strip()]
        return "\n".join(line for number, line in enumerate(lines) if number == 0 or line != lines[number - 1])

    def fingerprint(self, *facts: object) -> str:
        """Return a digest of address and parts, without places and focus.

        Args:
            facts: Further facts, such as an open dialog.
        """
        marks = hashlib.sha256(repr((self.url, facts)).encode(errors="surrogatepass"))
        for node in self.nodes:
            states = [(name, node.marks[name]) for name in (*_STATES, "disabled", "level") if name in node.marks]
            mark = (node.role, node.name, node.text, states, node.properties)
            marks.update(repr(mark).encode(errors="surrogatepass"))
        return marks.hexdigest()


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
