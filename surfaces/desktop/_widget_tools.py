"""Tools for the controls of windows: buttons, fields, boxes, lists and menus."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from callboard.messages import Effect
from callboard.surfaces import committing
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.desktop._calls import BusError, attribute, method, value
from callboard.surfaces.desktop._pointed import OutOfReachError
from callboard.surfaces.desktop._tree import TABLES, TEXTS, VALUES, ObjectState
from callboard.surfaces.desktop._window_actions import (
    PRESSES,
    READY_SECONDS,
    SHOWN_SECONDS,
    Answer,
    Button,
    ControlId,
    Modifiers,
    Process,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from callboard.surfaces.desktop._tree import AccessibleNode
    from callboard.surfaces.desktop._window_actions import WindowActions

_EXPANDS = ("expand or contract", "expand", "collapse", "toggle", "activate", "press", "click")
_FIELDS = frozenset({"text", "entry", "password text", "text box", "search box", "editbar", "combo box"}) | VALUES
"""The roles in which ctrl+a selects only the control's own text."""
_DRAWN_SECONDS = 1.0
"""The time limit for a menu to be drawn."""
_WHEEL = {"up": "up", "down": "down", "left": "back", "right": "forth"}


class WidgetTools:
    """Tools that press, fill in, choose and switch controls.

    Args:
        actions: Returns the window actions, once the desktop is open.
    """

    def __init__(self, actions: Callable[[], WindowActions]) -> None:
        self._actions = actions

    @tool(effect=Effect.ONCE)
    def press(self, process: Process, control_id: ControlId) -> Answer:
        """Press a button, link or menu item, also out of reach.

        The answer reports whether there was a visible change: a program may accept a press and do nothing.
        """
        actions = self._actions()
        node, old_mark = actions.ready(process, control_id), actions.mark(process)
        actions.press(process, node)
        return actions.changed(process, old_mark)

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
        actions = self._actions()
        node, old_mark = actions.ready(process, control_id), actions.mark(process)
        actions.click(process, node, button, count, modifiers or ())
        return actions.changed(process, old_mark)

    @tool(effect=Effect.ONCE)
    def drag(
        self,
        process: Process,
        control_id: ControlId,
        to: Annotated[str, Field(description="The id of the control on which it is dropped.")],
    ) -> Answer:
        """Drag a control onto another one."""
        actions = self._actions()
        start, end = actions.ready(process, control_id), actions.desktop.node(process, to)
        old_mark = actions.mark(process)
        actions.drag(process, start, end)
        return actions.changed(process, old_mark)

    @tool(effect=Effect.IDEMPOTENT, takes_disabled=True)
    def scroll(
        self,
        process: Process,
        control_id: ControlId,
        *,
        direction: Literal["up", "down", "left", "right"] = "down",
        steps: Annotated[int, Field(ge=1, le=100, description="Steps of the wheel.")] = 5,
    ) -> Answer:
        """Turn the wheel over a control."""
        actions = self._actions()
        node, old_mark = actions.desktop.node(process, control_id), actions.mark(process)
        actions.click(process, node, _WHEEL[direction], steps)
        return actions.changed(process, old_mark)

    @tool(effect=Effect.IDEMPOTENT)
    def set_text(self, process: Process, control_id: ControlId, text: str) -> Answer:
        """Replace all the text of a field."""
        actions = self._actions()
        node, program = actions.ready(process, control_id), actions.program(process)
        hidden = node.role == "password text"

        def is_set() -> bool:
            answer = program.ask([method(node.path, "Text", "GetText", "ii", 0, -1)])[0]
            return hidden or (not isinstance(answer, BusError) and answer[0] == text)

        with committing():
            answer = program.ask([method(node.path, "EditableText", "SetTextContents", "s", text)])[0]
        if isinstance(answer, BusError) or not actions.desktop.wait(is_set, 1.0):
            if node.role not in _FIELDS:  # ctrl+a would select a whole document or sheet
                msg = f"{node.role} {node.name!r} is not a field: use type_text, or write_cells for a sheet"
                raise ToolError(msg)
            window = actions.grab(process, node)
            actions.keys(window, "ctrl+a")
            if text:
                actions.type(window, text)
            else:
                actions.keys(window, "Delete")
            if not actions.desktop.wait(is_set, SHOWN_SECONDS):
                msg = f"{node.role} {node.name!r} does not accept the text, or changes it"
                raise ToolError(msg)
        return {"characters": len(text)}

    @tool(effect=Effect.IDEMPOTENT)
    def check(self, process: Process, control_id: ControlId, *, on: bool = True) -> Answer:
        """Switch a check box, radio button or toggle on or off."""
        actions = self._actions()
        node = _switchable(actions.ready(process, control_id))
        actions.switch(
            process,
            node,
            lambda: actions.has(process, node.path, ObjectState.CHECKED, ObjectState.PRESSED) == on,
            PRESSES,
        )
        return {"on": on}

    @tool(effect=Effect.IDEMPOTENT)
    def expand(self, process: Process, control_id: ControlId, *, open: bool = True) -> Answer:  # noqa: A002 - what a model reads
        """Open or close a part of a tree, or an expander."""
        actions = self._actions()
        node = _switchable(actions.ready(process, control_id))
        actions.switch(process, node, lambda: actions.has(process, node.path, ObjectState.EXPANDED) == open, _EXPANDS)
        return {"open": open}

    @tool(effect=Effect.IDEMPOTENT)
    def select(
        self,
        process: Process,
        control_id: ControlId,
        *,
        item: Annotated[str, Field(description="Of a combo box or list: the entry to choose.")] = "",
    ) -> Answer:
        """Select a tab, row or entry; or choose an item by name."""
        actions = self._actions()
        node = actions.ready(process, control_id)
        if item:
            return self._choose(process, node, item)

        def is_selected() -> bool:
            if actions.has(process, node.path, ObjectState.SELECTED, ObjectState.CHECKED):
                return True
            tree = actions.desktop.tree(process)  # LibreOffice recreates tabs that are in two rows
            twins = [twin for twin in (tree.nodes if tree else ()) if (twin.role, twin.name) == (node.role, node.name)]
            return all(twin.path != node.path for twin in twins) and any(
                twin.has(ObjectState.SELECTED) for twin in twins
            )

        if not is_selected() and node.parent is not None:
            _select(actions, process, node.parent.path, node.path)
            if not actions.desktop.wait(is_selected, 0.5):
                actions.switch(process, node, is_selected, ())
        return {"selected": node.name}

    def _choose(self, process: int, node: AccessibleNode, item: str) -> Answer:
        """Choose an entry by its name, whether or not it is visible."""
        actions = self._actions()
        entries: list[tuple[str, str, str]] = []

        def is_there() -> bool:
            entries[:] = _below(actions, process, node.path)
            return any(_same(name, item) for _, _, name in entries)

        if not actions.desktop.wait(is_there, READY_SECONDS):
            names = [name for _, _, name in entries if name]
            msg = f"there is no entry {item!r}; there are: {', '.join(names[:40]) or 'none'}"
            raise ToolError(msg)
        parent, path, name = next(entry for entry in reversed(entries) if _same(entry[2], item))
        old_mark = actions.mark(process)
        if not actions.act(process, path, PRESSES):
            _select(actions, process, parent, path)
        return {"chosen": name, **actions.changed(process, old_mark)}

    @tool(effect=Effect.ONCE)
    def choose_menu(
        self,
        process: Process,
        path: Annotated[list[str], Field(min_length=1, description='Such as ["File", "Save As"].')],
    ) -> Answer:
        """Choose an item of the menu bar by its path."""
        actions = self._actions()
        bars = actions.menu_bars(process)
        if not bars:
            msg = "the window has no menu bar"
            raise ToolError(msg)
        old_mark = actions.mark(process)
        try:
            _choose_entry(actions, process, bars, path)
        except ToolError:
            actions.close_menus(process)
            raise
        return actions.changed(process, old_mark)

    @tool(effect=Effect.READ)
    def wait_for(
        self,
        process: Process,
        text: Annotated[str, Field(min_length=1, description="A text in a control or a title.")],
        *,
        gone: Annotated[bool, Field(description="Whether to wait until it is gone.")] = False,
        seconds: Annotated[float, Field(gt=0, le=55)] = 10.0,
    ) -> Answer:
        """Wait until a text is visible, or until it no longer is."""
        actions = self._actions()

        def is_there() -> bool:
            tree = actions.desktop.tree(process)
            nodes = tree.nodes if tree is not None else []
            titles = actions.desktop.screen.processes().get(process, [])
            labels = [*titles, *(label for node in nodes for label in (node.name, node.text) if label)]
            return any(text.casefold() in label.casefold() for label in labels)

        begin = time.monotonic()
        if not actions.desktop.wait(lambda: is_there() != gone, seconds):
            msg = f"{text!r} is {'still' if gone else 'not'} visible after {seconds:g} s"
            raise ToolError(msg)
        return {"seconds": round(time.monotonic() - begin, 1)}


def _switchable(node: AccessibleNode) -> AccessibleNode:
    """Refuse a control without a state to switch, before it is clicked.

    Raises:
        ToolError: If the control is a text, a table, or a document.
    """
    if node.role in TEXTS | TABLES or node.role.startswith("document"):
        msg = f"{node.name!r} is a {node.role}: there is nothing to switch, open or close"
        raise ToolError(msg)
    return node


def _select(actions: WindowActions, process: int, parent: str, path: str) -> None:
    program = actions.program(process)
    index = value(program.ask([attribute(path, "Accessible", "IndexInParent")])[0])
    if not isinstance(index, int):
        index = program.ask_one(method(path, "Accessible", "GetIndexInParent"))[0]
    row = program.ask([method(parent, "Table", "GetRowAtIndex", "i", index)])[0]
    with committing():
        if isinstance(row, BusError):
            program.ask([method(parent, "Selection", "SelectChild", "i", index)])
        else:
            program.ask([method(parent, "Table", "AddRowSelection", "i", row[0])])


def _entry(actions: WindowActions, process: int, parents: Sequence[str], item_name: str) -> str | None:
    """Find a menu item by its name.

    Qt has the items in an object without a name.
    """
    entries = [entry for parent in parents for entry in actions.children(process, parent)]
    entries += [entry for path, name in entries if not name for entry in actions.children(process, path)]
    return next((path for path, name in entries if _same(name, item_name)), None)


def _entries(actions: WindowActions, process: int, bars: Sequence[str], names: Sequence[str]) -> list[str]:
    """Find the menus and the item of a path, by names.

    Raises:
        ToolError: If one of them is missing; the text lists those that exist.
    """
    menus, entries = list(bars), list[str]()
    for name in names:
        entry = _entry(actions, process, menus, name)
        if entry is None and entries:  # the menu may be filled when it is opened
            actions.act(process, menus[0], PRESSES)
            actions.desktop.wait(lambda: _entry(actions, process, menus, name) is not None, SHOWN_SECONDS)  # noqa: B023 - called now
            entry = _entry(actions, process, menus, name)
        if entry is None:
            item_names = [name for menu in menus for _, name in actions.children(process, menu) if name]
            msg = f"there is no menu item {name!r}; there are: {', '.join(item_names)}"
            raise ToolError(msg)
        entries.append(entry)
        menus = [entry]
    return entries


def _choose_entry(actions: WindowActions, process: int, bars: Sequence[str], names: Sequence[str]) -> None:
    """Choose an item of the menu bars by its path.

    Raises:
        ToolError: If it is missing, stays disabled, or has no action.
    """
    entries = _entries(actions, process, bars, names)
    if not actions.desktop.wait(lambda: actions.is_sensitive(process, entries[-1]), READY_SECONDS):
        msg = f"the menu item {names[-1]!r} can't be chosen now: it is disabled"
        raise ToolError(msg)
    if actions.program(process).nests:
        with contextlib.suppress(OutOfReachError):
            return _choose_by_pointer(actions, process, entries)
    if not actions.act(process, entries[-1], PRESSES):
        msg = f"the menu item {names[-1]!r} has no action"
        raise ToolError(msg)
    return None


def _choose_by_pointer(actions: WindowActions, process: int, entries: Sequence[str]) -> None:
    """Open menus by the pointer, and click on the last entry.

    Raises:
        OutOfReachError: If the pointer can't reach an entry.
    """
    for entry in entries:
        if entry != entries[-1] and actions.has(process, entry, ObjectState.SELECTED):
            continue  # it is open

        def drawn(path: str = entry) -> AccessibleNode | None:
            tree = actions.desktop.tree(process)
            return next((node for node in (tree.nodes if tree else ()) if node.path == path and node.box), None)

        actions.desktop.wait(lambda: drawn() is not None, _DRAWN_SECONDS)
        node = drawn()
        if node is None:
            msg = "the menu does not open"
            raise OutOfReachError(msg)
        actions.click(process, node)


def _below(actions: WindowActions, process: int, parent: str, depth: int = 4) -> Iterator[tuple[str, str, str]]:
    """Yield an object's descendants, each as parent path, path and name."""
    for path, name in actions.children(process, parent):
        yield parent, path, name
        if depth:
            yield from _below(actions, process, path, depth - 1)


def _same(name: str, other_name: str) -> bool:
    """Return whether two names are equal except for case, ellipsis and mnemonic."""
    return _plain(name) == _plain(other_name)


def _plain(name: str) -> str:
    return name.replace("…", "").replace("...", "").replace("_", "").strip().casefold()
