"""The tools for what stands in windows: buttons, fields, boxes, lists and menus."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from callboard.actors.runtime import committing
from callboard.actors.servers._server import ToolError, tool
from callboard.actors.servers.desktop._calls import BusError, attribute, method, value
from callboard.actors.servers.desktop._hands import (
    PRESSES,
    READY_SECONDS,
    SHOWN_SECONDS,
    Answer,
    Button,
    ControlId,
    Modifiers,
    Process,
)
from callboard.actors.servers.desktop._tree import TABLES, TEXTS, VALUES, State
from callboard.messages import Effect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from callboard.actors.servers.desktop._hands import Hands
    from callboard.actors.servers.desktop._tree import Node

_EXPANDS = ("expand or contract", "expand", "collapse", "toggle", "activate", "press", "click")
_FIELDS = frozenset({"text", "entry", "password text", "text box", "search box", "editbar", "combo box"}) | VALUES
"""The roles whose text is all that ctrl+a selects in them."""
_WHEEL = {"up": "up", "down": "down", "left": "back", "right": "forth"}


class WidgetTools:
    """Press, fill in, choose and switch the controls of a process.

    Args:
        hands: Gives what does it, once the desktop is open.
    """

    def __init__(self, hands: Callable[[], Hands]) -> None:
        self._hands = hands

    @tool(effect=Effect.ONCE)
    def press(self, process: Process, control_id: ControlId) -> Answer:
        """Press a button, follow a link, or choose a menu item, without the pointer.

        The answer says whether anything has changed to see: a program may take a press and do nothing.
        """
        hands = self._hands()
        node, before = hands.ready(process, control_id), hands.mark(process)
        acted = hands.act(process, node.path, PRESSES)
        if not acted:
            hands.click(process, hands.middle(node), node=node)
        return hands.changed(process, before)

    @tool(effect=Effect.ONCE)
    def click(
        self,
        process: Process,
        control_id: ControlId,
        *,
        button: Button = "left",
        count: Annotated[int, Field(ge=1, le=3, description="2 for a double click.")] = 1,
        modifiers: Modifiers | None = None,
    ) -> Answer:
        """Click on the middle of a control with the pointer."""
        hands = self._hands()
        node, before = hands.ready(process, control_id), hands.mark(process)
        hands.click(process, hands.middle(node), button, count, modifiers or (), node=node)
        return hands.changed(process, before)

    @tool(effect=Effect.ONCE)
    def drag(
        self,
        process: Process,
        control_id: ControlId,
        to: Annotated[str, Field(description="The id of the control on which it is dropped.")],
    ) -> Answer:
        """Drag a control onto another one."""
        hands = self._hands()
        start, end = hands.ready(process, control_id), hands.desk.node(process, to)
        points, before = (hands.middle(start), hands.middle(end)), hands.mark(process)
        hands.at(process, lambda: hands.desk.pointer.drag(*points), (points[0], start), (points[1], end))
        return hands.changed(process, before)

    @tool(effect=Effect.IDEMPOTENT)
    def scroll(
        self,
        process: Process,
        control_id: ControlId,
        *,
        direction: Literal["up", "down", "left", "right"] = "down",
        steps: Annotated[int, Field(ge=1, le=100, description="Steps of the wheel.")] = 5,
    ) -> Answer:
        """Turn the wheel over a control."""
        hands = self._hands()
        node, before = hands.desk.node(process, control_id), hands.mark(process)
        hands.click(process, hands.middle(node), _WHEEL[direction], steps, node=node)
        return hands.changed(process, before)

    @tool(effect=Effect.IDEMPOTENT)
    def set_text(self, process: Process, control_id: ControlId, text: str) -> Answer:
        """Replace all the text of a field."""
        hands = self._hands()
        node, program = hands.ready(process, control_id), hands.program(process)
        hidden = node.role == "password text"

        def is_set() -> bool:
            answer = program.ask([method(node.path, "Text", "GetText", "ii", 0, -1)])[0]
            return hidden or (not isinstance(answer, BusError) and answer[0] == text)

        with committing():
            answer = program.ask([method(node.path, "EditableText", "SetTextContents", "s", text)])[0]
        if isinstance(answer, BusError) or not hands.desk.wait(is_set, 1.0):
            if node.role not in _FIELDS:  # there ctrl+a selects all of a document or a sheet
                msg = f"{node.role} {node.name!r} is no field: type_text types into it, write_cells writes into a sheet"
                raise ToolError(msg)
            window = hands.grab(process, node)
            hands.keys(window, "ctrl+a")
            if text:
                hands.type(window, text)
            else:
                hands.keys(window, "Delete")
            if not hands.desk.wait(is_set, SHOWN_SECONDS):
                msg = f"{node.role} {node.name!r} does not take the text, or changes it"
                raise ToolError(msg)
        return {"characters": len(text)}

    @tool(effect=Effect.IDEMPOTENT)
    def check(self, process: Process, control_id: ControlId, *, on: bool = True) -> Answer:
        """Switch a check box, radio button or toggle on or off."""
        hands = self._hands()
        node = _switchable(hands.ready(process, control_id))
        hands.switch(process, node, lambda: hands.has(process, node.path, State.CHECKED, State.PRESSED) == on, PRESSES)
        return {"on": on}

    @tool(effect=Effect.IDEMPOTENT)
    def expand(self, process: Process, control_id: ControlId, *, open: bool = True) -> Answer:  # noqa: A002 - what a model reads
        """Open or close a part of a tree, or an expander."""
        hands = self._hands()
        node = _switchable(hands.ready(process, control_id))
        hands.switch(process, node, lambda: hands.has(process, node.path, State.EXPANDED) == open, _EXPANDS)
        return {"open": open}

    @tool(effect=Effect.IDEMPOTENT)
    def select(
        self,
        process: Process,
        control_id: ControlId,
        *,
        item: Annotated[str, Field(description="Of a combo box or list: the entry to choose.")] = "",
    ) -> Answer:
        """Select a tab, a row or a list entry; or choose an entry of a combo box or list by its name."""
        hands = self._hands()
        node = hands.ready(process, control_id)
        if item:
            return self._choose(process, node, item)

        def is_selected() -> bool:
            if hands.has(process, node.path, State.SELECTED, State.CHECKED):
                return True
            tree = hands.desk.tree(process)  # LibreOffice makes tabs anew that stand in two rows
            like = [each for each in (tree.nodes if tree else ()) if (each.role, each.name) == (node.role, node.name)]
            return all(each.path != node.path for each in like) and any(each.has(State.SELECTED) for each in like)

        if not is_selected() and node.parent is not None:
            _select(hands, process, node.parent.path, node.path)
            if not hands.desk.wait(is_selected, 0.5):
                hands.switch(process, node, is_selected, ())
        return {"selected": node.name}

    def _choose(self, process: int, node: Node, item: str) -> Answer:
        """Choose an entry by its name, whether or not it is in sight."""
        hands = self._hands()
        entries: list[tuple[str, str, str]] = []

        def is_there() -> bool:
            entries[:] = _below(hands, process, node.path)
            return any(_same(name, item) for _, _, name in entries)

        if not hands.desk.wait(is_there, READY_SECONDS):
            names = [name for _, _, name in entries if name]
            msg = f"there is no entry {item!r}; there are: {', '.join(names[:40]) or 'none'}"
            raise ToolError(msg)
        parent, path, name = next(entry for entry in reversed(entries) if _same(entry[2], item))
        before = hands.mark(process)
        if not hands.act(process, path, PRESSES):
            _select(hands, process, parent, path)
        return {"chosen": name, **hands.changed(process, before)}

    @tool(effect=Effect.ONCE)
    def choose_menu(
        self,
        process: Process,
        path: Annotated[list[str], Field(min_length=1, description='Such as ["File", "Save As"].')],
    ) -> Answer:
        """Choose an item of the menu bar by its path."""
        hands = self._hands()
        here = hands.menu_bars(process)
        if not here:
            msg = "the window has no menu bar"
            raise ToolError(msg)
        before = hands.mark(process)
        for depth, wanted in enumerate(path):
            entry = _entry(hands, process, here, wanted)
            if entry is None and depth:  # it may be filled when it is opened
                hands.act(process, here[0], PRESSES)
                hands.desk.wait(lambda: _entry(hands, process, here, wanted) is not None, SHOWN_SECONDS)  # noqa: B023 - called now
                entry = _entry(hands, process, here, wanted)
            if entry is None:
                names = [name for each in here for _, name in hands.children(process, each) if name]
                msg = f"there is no menu item {wanted!r}; there are: {', '.join(names)}"
                raise ToolError(msg)
            here = [entry]
        if not hands.desk.wait(lambda: hands.is_sensitive(process, here[0]), READY_SECONDS):
            msg = f"the menu item {path[-1]!r} can't be chosen now: it is grey"
            raise ToolError(msg)
        acted = hands.act(process, here[0], PRESSES)
        if not acted:
            msg = f"the menu item {path[-1]!r} does not act"
            raise ToolError(msg)
        return hands.changed(process, before)

    @tool(effect=Effect.READ)
    def wait_for(
        self,
        process: Process,
        text: Annotated[str, Field(min_length=1, description="What stands in a control or a title.")],
        *,
        gone: Annotated[bool, Field(description="Whether to wait until it is there no more.")] = False,
        seconds: Annotated[float, Field(gt=0, le=55)] = 10.0,
    ) -> Answer:
        """Wait until a text is to be seen, or until it no longer is."""
        hands = self._hands()

        def is_there() -> bool:
            tree = hands.desk.tree(process)
            nodes = tree.nodes if tree is not None else []
            titles = hands.desk.screen.processes().get(process, [])
            shown = [*titles, *(each for node in nodes for each in (node.name, node.text) if each)]
            return any(text.casefold() in each.casefold() for each in shown)

        begin = time.monotonic()
        if not hands.desk.wait(lambda: is_there() != gone, seconds):
            msg = f"{text!r} is {'still' if gone else 'not'} to be seen after {seconds:g} s"
            raise ToolError(msg)
        return {"seconds": round(time.monotonic() - begin, 1)}


def _switchable(node: Node) -> Node:
    """Refuse what has nothing to switch, before it is clicked on.

    Raises:
        ToolError: If the control is a text, a table, or a document.
    """
    if node.role in TEXTS | TABLES or node.role.startswith("document"):
        msg = f"{node.name!r} is a {node.role}: there is nothing to switch, open or close"
        raise ToolError(msg)
    return node


def _select(hands: Hands, process: int, parent: str, path: str) -> None:
    program = hands.program(process)
    index = value(program.ask([attribute(path, "Accessible", "IndexInParent")])[0])
    if not isinstance(index, int):
        index = program.one(method(path, "Accessible", "GetIndexInParent"))[0]
    row = program.ask([method(parent, "Table", "GetRowAtIndex", "i", index)])[0]
    with committing():
        if isinstance(row, BusError):
            program.ask([method(parent, "Selection", "SelectChild", "i", index)])
        else:
            program.ask([method(parent, "Table", "AddRowSelection", "i", row[0])])


def _entry(hands: Hands, process: int, parents: Sequence[str], wanted: str) -> str | None:
    """Find an item of a menu by its name; Qt has its items in an object without a name."""
    found = [entry for parent in parents for entry in hands.children(process, parent)]
    found += [entry for path, name in found if not name for entry in hands.children(process, path)]
    return next((path for path, name in found if _same(name, wanted)), None)


def _below(hands: Hands, process: int, parent: str, depth: int = 4) -> Iterator[tuple[str, str, str]]:
    """Give all objects below one: each with the path of its parent, its own, and its name."""
    for path, name in hands.children(process, parent):
        yield parent, path, name
        if depth:
            yield from _below(hands, process, path, depth - 1)


def _same(name: str, wanted: str) -> bool:
    """Return whether two names are equal but for capitals, an ellipsis and a mnemonic."""
    return _plain(name) == _plain(wanted)


def _plain(name: str) -> str:
    return name.replace("…", "").replace("...", "").replace("_", "").strip().casefold()
