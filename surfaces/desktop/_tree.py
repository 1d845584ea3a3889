"""Snapshot of the accessibility tree of a program's windows."""

from __future__ import annotations

import itertools
import operator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from callboard.messages import Box
from callboard.surfaces.desktop._calls import NOTHING, BusError, attribute, method, states, value
from callboard.surfaces.desktop._places import scale_of, scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from callboard.surfaces.desktop._accessible_programs import AccessibleProgram
    from callboard.surfaces.desktop._calls import Answer, Ask
    from callboard.surfaces.desktop._xscreen import XWindow

MOST_NODES = 5_000
"""The most objects of one snapshot."""
LONGEST_TEXT = 2_000
"""The most characters of one object's text in a snapshot."""
_DEEPEST = 60
_ROWS, _COLUMNS = 80, 8
"""The rows and columns of a large table in which visible cells are searched."""
_LABELLED = frozenset(
    {"text", "entry", "text box", "password text", "combo box", "spin button", "slider", "list box", "table"}
)
_CHOICES = frozenset({"combo box"})
_LABELLED_BY = 2
"""The number of this relation in AT-SPI's `AtspiRelationType`."""
_SCREEN, _WINDOW = 0, 1
_CELLS = 400
"""The most cells of a table that are all listed; of larger tables only visible cells are listed."""
TABLES = frozenset({"table", "tree table", "tree"})
CELLS = frozenset({"table cell", "column header", "row header", "table column header", "table row header"})
TEXTS = frozenset(
    {
        "text",
        "entry",
        "password text",
        "paragraph",
        "heading",
        "terminal",
        "editbar",
        "static",
        "spin button",
        "text box",
        "search box",
    }
)
VALUES = frozenset({"spin button", "slider", "scroll bar", "progress bar", "dial", "level bar"})


class ObjectState(IntEnum):
    """The used states of objects, numbered as in AT-SPI's `AtspiStateType`."""

    BUSY = 3
    CHECKED = 4
    DEFUNCT = 6
    ENABLED = 8
    EXPANDABLE = 9
    EXPANDED = 10
    FOCUSED = 12
    MODAL = 16
    PRESSED = 20
    SELECTED = 23
    SENSITIVE = 24
    SHOWING = 25
    VISIBLE = 30
    INDETERMINATE = 32
    IS_DEFAULT = 39


@dataclass(slots=True, eq=False)
class AccessibleNode:
    """One visible object of the tree."""

    path: str
    parent: AccessibleNode | None
    depth: int
    role: str = ""
    states: int = 0
    name: str = ""
    box: Box | None = None
    """Its place on the screen; None if it is not drawn."""
    text: str | None = None
    """Its own text, if it has one."""
    value: float | None = None
    """Its number, if it has one."""
    size: tuple[int, int] | None = None
    """A table's numbers of rows and columns."""
    extents: Box | None = None
    """Its place as the program counts, with the correction."""
    shift: tuple[int, int] = (0, 0)
    """The correction of its extents, and of those of its descendants, as the program counts."""
    scale: float = 1.0
    """The pixels of the screen per unit of the extents."""
    children: list[AccessibleNode] = field(default_factory=list)
    labels: list[AccessibleNode] = field(default_factory=list)
    """The labels that its name is taken from."""

    def has(self, state: ObjectState) -> bool:
        """Return whether the object is in a state."""
        return bool(self.states >> state & 1)

    @property
    def enabled(self) -> bool:
        """True if it reacts to input."""
        return self.has(ObjectState.SENSITIVE) or self.has(ObjectState.ENABLED)

    @property
    def window(self) -> AccessibleNode:
        """The window that contains it."""
        return next((ancestor for ancestor in self.above() if ancestor.parent is None), self)

    def above(self) -> Iterator[AccessibleNode]:
        """Yield its ancestors, its parent first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


class Tree:
    """All visible objects in a program's windows.

    They are read level by level, each level in a few batches.

    Args:
        program: The program.
        windows: The program's windows on the screen. The scale of each accessible window is measured by them; and
            toolkits that report only places relative to their windows (GTK 4) are in them, by title.

    Raises:
        ToolError: If the program has ended, or does not answer.
    """

    def __init__(self, program: AccessibleProgram, windows: Sequence[XWindow] = ()) -> None:
        self._program = program
        self._screen = windows
        self.nodes: list[AccessibleNode] = []
        """All visible objects, parents before children."""
        self.complete = True
        """False if objects were left out, because there are too many."""
        self._met: set[str] = set()
        listed = program.ask_one(method(program.root, "Accessible", "GetChildren"))[0]
        level = self._new(AccessibleNode(str(path), None, 0) for _, path in listed)
        while level and level[0].depth < _DEEPEST:
            level = self._below(self._described(self._visible(level)))
        self._read()

    def windows(self) -> list[AccessibleNode]:
        """Return its windows, including dialogs."""
        return [node for node in self.nodes if node.depth == 0]

    def _visible(self, level: list[AccessibleNode]) -> list[AccessibleNode]:
        """Read a level's roles and states, and return its visible objects."""
        visible_nodes = []
        for node, (role, state_words) in self._answers(level, _role_and_states):
            if isinstance(role, BusError):
                continue  # it has been removed meanwhile
            node.role, node.states = str(role[0]), states(state_words)
            is_visible = node.has(ObjectState.SHOWING) or (self._program.relative and node.has(ObjectState.VISIBLE))
            menu = self._program.draws_itself and node.role == "menu bar"
            # LibreOffice has its own menu bar beside GTK's
            second = menu and any(ancestor.role == "root pane" for ancestor in node.above())
            if is_visible and not node.has(ObjectState.DEFUNCT) and not second:
                visible_nodes.append(node)
        room = MOST_NODES - len(self.nodes)
        self.complete = self.complete and len(visible_nodes) <= room
        return visible_nodes[:room]

    def _described(self, level: list[AccessibleNode]) -> list[AccessibleNode]:
        """Read a level's names and extents."""
        system = _WINDOW if self._program.relative else _SCREEN

        def name_and_extents(path: str) -> tuple[Ask, ...]:
            return attribute(path, "Accessible", "Name"), method(path, "Component", "GetExtents", "u", system)

        answers = list(self._answers(level, name_and_extents))
        for node, (name, extents) in answers:
            node.name = str(value(name) or "")
            if not isinstance(extents, BusError):
                x, y, width, height = map(int, extents[0])
                node.extents = Box(x=x, y=y, width=max(width, 0), height=max(height, 0))
        self._measure([node for node in level if node.parent is None])
        for node in level:
            self._locate(node)
            if node.parent is not None:
                node.parent.children.append(node)
        for node, sizes in self._answers([table for table in level if table.role in TABLES], _rows_and_columns):
            rows, columns = map(value, sizes)
            node.size = (rows, columns) if isinstance(rows, int) and isinstance(columns, int) else None
        self.nodes += level
        return level

    def _measure(self, windows: Sequence[AccessibleNode]) -> None:
        """Measure the scale of each window; popups get the smallest."""
        managed = [window for window in self._screen if not window.popup]
        scales = dict[AccessibleNode, float]()
        for node in windows:
            titled = [window for window in managed if window.title == node.name]
            scale = scale_of(titled or managed, node.extents)
            if scale is not None:
                scales[node] = scale
        for node in windows:
            node.scale = scales.get(node) or min(scales.values(), default=1.0)

    def _locate(self, node: AccessibleNode) -> None:
        """Correct an object's extents, and convert them to pixels."""
        parent, extents = node.parent, node.extents
        if parent is not None:
            node.shift, node.scale = parent.shift, parent.scale
        if extents is None:
            return
        if self._program.relative and parent is None:
            origin = next((window.content for window in reversed(self._screen) if window.title == node.name), None)
            if origin is not None:
                node.shift = (round(origin.x / node.scale), round(origin.y / node.scale))
        elif parent is not None and parent.extents is not None and self._program.draws_itself:
            # LibreOffice counts from the frame's corner, and ignores the menu bar that GTK puts above its content.
            # GTK widgets inside that content report their correct places.
            outer = parent.extents
            if node.role == "root pane":
                node.shift = (outer.x - extents.x, outer.y - extents.y)
            elif (extents.x, extents.y, extents.width) == (outer.x, outer.y, outer.width):
                node.shift = (0, 0)
        # an item of a closed menu is at INT_MIN
        if not extents.width or not extents.height or min(extents.x, extents.y) <= -(1 << 30):
            node.extents = None
            return
        node.extents = extents.model_copy(update={"x": extents.x + node.shift[0], "y": extents.y + node.shift[1]})
        node.box = scaled(node.extents, node.scale)

    def _below(self, level: list[AccessibleNode]) -> list[AccessibleNode]:
        """List the children of a level that may be visible."""
        new_nodes = []
        for node, (children,) in self._answers([parent for parent in level if _opens(parent)], _children):
            if not isinstance(children, BusError):
                new_nodes += [AccessibleNode(path, node, node.depth + 1) for _, path in children[0]]
        for node in level:
            if node.role in TABLES and node.size is not None and node.box is not None and not _opens(node):
                new_nodes += self._cells_in_sight(node)
        return self._new(new_nodes)

    def _new(self, nodes: Iterable[AccessibleNode]) -> list[AccessibleNode]:
        """Filter out known objects: Chromium lists some dialogs in two places."""
        new = {node.path: node for node in nodes if node.path not in self._met}
        self._met |= new.keys()
        return list(new.values())

    def _cells_in_sight(self, table: AccessibleNode) -> list[AccessibleNode]:
        """List a large table's cells in the rows around its center.

        Only these may be visible.
        """
        if table.parent is not None and table.parent.role == "document spreadsheet":
            return []  # hundreds of empty cells; they are read and written by their addresses
        extents = table.extents
        assert extents is not None  # noqa: S101 - it has a box
        point = (extents.x + extents.width // 2, extents.y + extents.height // 2)
        middle = self._program.ask([method(table.path, "Component", "GetAccessibleAtPoint", "iiu", *point, _SCREEN)])[0]
        rows, columns = table.size or (0, 0)
        first = 0
        if not isinstance(middle, BusError):
            index = self._program.ask([method(middle[0][1], "Accessible", "GetIndexInParent")])[0]
            if not isinstance(index, BusError) and columns:
                first = max(0, int(index[0]) // columns - _ROWS // 2)
        asks = [
            method(table.path, "Table", "GetAccessibleAt", "ii", row, column)
            for row in range(first, min(rows, first + _ROWS))
            for column in range(min(columns, _COLUMNS))
        ]
        cells = [answer[0][1] for answer in self._program.ask(asks) if not isinstance(answer, BusError)]
        return [AccessibleNode(path, table, table.depth + 1) for path in cells if path != NOTHING]

    def _read(self) -> None:
        """Read texts and numbers, except the texts of password fields."""
        texts = [control for control in self.nodes if control.role in TEXTS and control.role != "password text"]
        counts = {node: value(count) for node, (count,) in self._answers(texts, _length)}
        lengths = {node.path: min(int(str(count)), LONGEST_TEXT) for node, count in counts.items() if count is not None}

        def text(path: str) -> tuple[Ask, ...]:
            return (method(path, "Text", "GetText", "ii", 0, lengths[path]),)

        for node, (answer,) in self._answers([control for control in texts if control.path in lengths], text):
            node.text = None if isinstance(answer, BusError) else str(answer[0])
        for node, (number,) in self._answers([control for control in self.nodes if control.role in VALUES], _number):
            current_value = value(number)
            node.value = float(current_value) if isinstance(current_value, (int, float)) else None
        nameless = [
            control
            for control in self.nodes
            if control.role in _LABELLED and (not control.name or control.role in _CHOICES)
        ]
        labels = {node.path: node for node in self.nodes if node.role == "label"}
        for node, (relations,) in self._answers(nameless, _relations):
            if not isinstance(relations, BusError):
                paths = [path for kind, targets in relations[0] if kind == _LABELLED_BY for _, path in targets]
                node.labels = [labels[path] for path in paths if path in labels]
            node.labels = node.labels or _beside(node, labels.values())
            if node.labels:
                node.text = node.text or node.name or None  # GTK names a combo box after its chosen entry
                node.name = " ".join(filter(None, (label.name for label in node.labels)))

    def _answers(
        self, nodes: Sequence[AccessibleNode], asks: Callable[[str], tuple[Ask, ...]]
    ) -> Iterator[tuple[AccessibleNode, list[Answer | BusError]]]:
        """Make the same calls to several nodes, all at once."""
        if not nodes:
            return
        batches = [asks(node.path) for node in nodes]
        answers = iter(self._program.ask([ask for batch in batches for ask in batch]))
        for node, batch in zip(nodes, batches, strict=True):
            yield node, list(itertools.islice(answers, len(batch)))


def _beside(node: AccessibleNode, labels: Iterable[AccessibleNode]) -> list[AccessibleNode]:
    """Return the nearest label to the left of a field, if any."""
    box = node.box
    if box is None:
        return []
    candidates = [
        (box.x - label.box.x, label)
        for label in labels
        if label.box is not None
        and label.window is node.window
        and label.box.y < box.y + box.height
        and box.y < label.box.y + label.box.height
        and label.box.x < box.x
    ]
    return [min(candidates, key=operator.itemgetter(0))[1]] if candidates else []


def _opens(node: AccessibleNode) -> bool:
    """Return whether all children of an object are listed.

    Large tables are excluded: a sheet has billions of cells.
    """
    if node.role in TABLES:
        rows, columns = node.size or (0, 0)
        return 0 < rows * columns <= _CELLS
    return node.role != "menu" or node.has(ObjectState.SELECTED) or node.has(ObjectState.EXPANDED)


def _role_and_states(path: str) -> tuple[Ask, ...]:
    return method(path, "Accessible", "GetRoleName"), method(path, "Accessible", "GetState")


def _rows_and_columns(path: str) -> tuple[Ask, ...]:
    return attribute(path, "Table", "NRows"), attribute(path, "Table", "NColumns")


def _children(path: str) -> tuple[Ask, ...]:
    return (method(path, "Accessible", "GetChildren"),)


def _length(path: str) -> tuple[Ask, ...]:
    return (attribute(path, "Text", "CharacterCount"),)


def _number(path: str) -> tuple[Ask, ...]:
    return (attribute(path, "Value", "CurrentValue"),)


def _relations(path: str) -> tuple[Ask, ...]:
    return (method(path, "Accessible", "GetRelationSet"),)
