"""Hazards of presses in windows, however a control is pressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import Hazard
from callboard.surfaces._hazard_words import of_answer, of_name
from callboard.surfaces.desktop._calls import BusError, method
from callboard.surfaces.desktop._places import below, window_of
from callboard.surfaces.desktop._tree import TABLES, TEXTS, VALUES, AccessibleNode, ObjectState
from callboard.surfaces.desktop._view import DIALOGS, label_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pydantic import JsonValue

    from callboard.surfaces.desktop._input import KeyPress
    from callboard.surfaces.desktop._window_actions import WindowActions

_BUTTONS = frozenset({"push button", "button", "push button menu", "link"})
_SWITCHES = frozenset(
    {"toggle button", "switch", "check box", "radio button", "menu item", "check menu item", "radio menu item", "icon"}
)
"""The roles that are pressed in dialogs, too."""
_FIELDS = {"entry", "text", "password text", "text box", "search box", "combo box", "page tab", *TABLES, *VALUES}
_FEWEST_ANSWERS = 2
_POINTED = frozenset({"click_at", "drag_at"})
_PRESSED = frozenset({"press", "click", "check", "select", "expand", "drag"})
_KEYED = frozenset({"press_keys", "type_text"})
_GRABBED = frozenset({"copy", "paste"})
"""Tools that may click on their control to focus it."""


class PressHazards:
    """Determines the hazards of calls that may press a control.

    Args:
        actions: Returns the window actions, once the desktop is open.
    """

    def __init__(self, actions: Callable[[], WindowActions]) -> None:
        self._actions = actions

    def of_call(self, pid: int, tool: str, arguments: Mapping[str, JsonValue]) -> set[Hazard]:
        """Return the hazards of a call in a process's windows.

        Raises:
            ToolError: If the process has ended, or does not answer.
        """
        if tool not in _POINTED | _PRESSED | _KEYED | _GRABBED:
            return set()
        actions = self._actions()
        tree = actions.desktop.tree(pid)
        nodes = tree.nodes if tree is not None else []
        ids = actions.desktop.ids(pid)
        paths = {ids.path(str(arguments.get(name) or "")) for name in ("control_id", "to")}
        pressed = [node for node in nodes if node.path in paths]
        if tool in _POINTED:
            pressed = [node for name in ("", "to_") for node in self._at(pid, nodes, arguments, name)]
        hazards = set[Hazard]().union(*map(of_press, pressed))
        if tool == "select" and arguments.get("item"):
            hazards |= of_name(str(arguments["item"]))
        if tool in _KEYED:
            keyboard = actions.desktop.keyboard
            keys = keyboard.presses(str(arguments.get("keys") or ""), str(arguments.get("text") or ""))
            hazards |= self._of_keys(pid, nodes, pressed, keys)
        return hazards

    def _at(
        self, pid: int, nodes: Sequence[AccessibleNode], arguments: Mapping[str, JsonValue], name: str
    ) -> Iterator[AccessibleNode]:
        """Yield the objects at a point of the picture."""
        area = self._actions().desktop.area(pid)[1]
        x, y = arguments.get(f"{name}x"), arguments.get(f"{name}y")
        if area is not None and isinstance(x, int) and isinstance(y, int):
            x, y = area.x + x, area.y + y
            yield from (node for node in nodes if node.box is not None and node.box.holds(x, y))

    def _of_keys(
        self, pid: int, nodes: Sequence[AccessibleNode], named: Sequence[AccessibleNode], keys: Iterable[KeyPress]
    ) -> set[Hazard]:
        """Return the hazards of keys that go to the focused window."""
        actions = self._actions()
        window = actions.chosen(pid, named[0] if named else None)
        actions.judged[pid] = window
        windows = actions.desktop.screen.of_process(pid)
        window_nodes = [node for node in nodes if window_of(windows, node.window) == window] or nodes
        hazardous = {node: hazards for node in window_nodes if node.enabled and (hazards := of_press(node))}
        focused = next(iter(named), None) or next(
            (node for node in window_nodes if node.has(ObjectState.FOCUSED)), None
        )
        default = [node for node in window_nodes if node.has(ObjectState.IS_DEFAULT)]
        unsure = [node for node in hazardous if in_dialog(node)]
        """The controls that a key may press while the focus, or the default button, is unknown."""
        targets = set[AccessibleNode]()
        for key in keys if hazardous else ():
            if key.enters and key.modified:
                targets |= hazardous.keys()
            elif key.enters:
                knows = default or (focused is not None and focused.role in _BUTTONS)
                targets.update([*default, *([focused] if focused is not None else [])] if knows else unsure)
            elif key.spaces:
                targets.update([focused] if focused is not None else unsure)
            elif key.letter and key.modified:
                targets.update(node for node in hazardous if self._has_mnemonic(pid, node, key.letter))
            elif key.letter and (focused is None or focused.role not in TEXTS):  # Qt needs no Alt in message boxes
                targets.update(node for node in unsure if self._has_mnemonic(pid, node, key.letter))
            focused = None if key.moves else focused
        return set().union(*(hazardous[node] for node in targets if node in hazardous))

    def _has_mnemonic(self, pid: int, node: AccessibleNode, letter: str) -> bool:
        """Return whether a letter presses a control.

        A program that does not report it may use any letter of the name.
        """
        answer = self._actions().program(pid).ask([method(node.path, "Action", "GetKeyBinding", "i", 0)])[0]
        binding = "" if isinstance(answer, BusError) else str(answer[0])
        return letter in (binding[-1] if binding else label_of(node)).casefold()


def in_dialog(node: AccessibleNode) -> bool:
    """Return whether an object is in a dialog, or is one."""
    return any(element.role in DIALOGS or element.has(ObjectState.MODAL) for element in (node, *node.above()))


def of_press(node: AccessibleNode) -> set[Hazard]:
    """Return the hazards of a press on a control.

    Outside dialogs, a button that replaces something edits the open document.
    """
    if not in_dialog(node):
        return of_name(label_of(node)) - {Hazard.OVERWRITES} if node.role in _BUTTONS else set()
    if node.role not in _BUTTONS | _SWITCHES:
        return set()
    return of_name(label_of(node)) | of_answer(label_of(node), _question(node))


def _question(node: AccessibleNode) -> list[str]:
    """Return the texts of the dialog that a button answers.

    Empty for a dialog with fields, whose texts name the fields, and for a message with a single button.
    """
    dialog = next(
        (ancestor for ancestor in node.above() if ancestor.role in DIALOGS or ancestor.has(ObjectState.MODAL)),
        node.window,
    )
    parts = list(below(dialog))
    buttons = sum(part.role in _BUTTONS for part in parts)
    fields = any(part.role in _FIELDS for part in parts) and dialog.role != "alert"
    return [] if fields or buttons < _FEWEST_ANSWERS else [dialog.name, *(part.text or part.name for part in parts)]
