"""Actions in the windows of a process, shared by all desktop tools."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from callboard.messages import LookBudget
from callboard.surfaces import committing
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.desktop._calls import BusError, attribute, method, states, value
from callboard.surfaces.desktop._places import window_of
from callboard.surfaces.desktop._pointed import OutOfReachError, PointedControls
from callboard.surfaces.desktop._processes import is_alive
from callboard.surfaces.desktop._tree import ObjectState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from callboard.surfaces.desktop._accessible_programs import AccessibleProgram
    from callboard.surfaces.desktop._open_desktop import OpenDesktop
    from callboard.surfaces.desktop._tree import AccessibleNode

Answer = dict[str, Any]
Process = Annotated[int, Field(description="The process.")]
ControlId = Annotated[str, Field(description="The control.")]
Button = Literal["left", "middle", "right"]
Modifiers = list[Literal["shift", "ctrl", "alt", "super"]]
PRESSES = ("click", "press", "activate", "jump", "open", "toggle", "do default", "select")
"""The names of actions that are equivalent to a click; without any of them, the first action is used."""
READY_SECONDS = 5.0
"""The time limit for a control to become enabled."""
SHOWN_SECONDS = 2.0
"""The time limit for the intended effect of an action."""
_MOST_MENUS = 5
_CLOSED_SECONDS = 0.5
_MOST_CHILDREN = 100_000
CHANGED_SECONDS = 1.0
"""The time limit for any visible change."""


class WindowActions:
    """Performs actions by accessibility, else by the pointer and the keyboard.

    An action waits until its control is enabled, and afterwards for its effect: an accepted action is not proof of an
    effect.

    Args:
        desktop: The desktop.
    """

    def __init__(self, desktop: OpenDesktop) -> None:
        self.desktop = desktop
        self._pointed = PointedControls(desktop)
        self._turn = threading.Lock()
        """Held while keys are pressed, so that a HostAgent does not bring another window to the front meanwhile."""
        self._old_windows: dict[int, set[int]] = {}
        """The windows of processes right before an accessible action that may have opened others."""
        self.judged: dict[int, int] = {}
        """The window of each process for which the hazards of the next keys were determined."""

    # Finding

    def program(self, pid: int) -> AccessibleProgram:
        """Return a process's program on the accessibility bus.

        Raises:
            ToolError: If the bus does not list it, or it has ended.
        """
        program = self.desktop.programs.of_process(pid)
        if program is None:
            raise ToolError(gone(pid) if pid not in self.desktop.screen.processes() else _SILENT)
        return program

    def ready(self, pid: int, control_id: str) -> AccessibleNode:
        """Find a control, and wait until it is enabled.

        Raises:
            ToolError: If it no longer exists, or stays disabled.
        """
        self.program(pid)
        node = self.desktop.node(pid, control_id)
        if not self.desktop.wait(lambda: self.is_sensitive(pid, node.path), READY_SECONDS):
            msg = f"{node.role} {node.name!r} does not react to input: it is disabled"
            raise ToolError(msg)
        return node

    def states(self, pid: int, path: str) -> int:
        """Return the current states of an object, as a bit set."""
        return states(self.program(pid).ask([method(path, "Accessible", "GetState")])[0])

    def has(self, pid: int, path: str, *expected_states: ObjectState) -> bool:
        """Return whether an object is currently in one of some states."""
        current_states = self.states(pid, path)
        return any(current_states >> state & 1 for state in expected_states)

    def is_sensitive(self, pid: int, path: str) -> bool:
        """Return whether an object currently reacts to input."""
        return self.has(pid, path, ObjectState.SENSITIVE, ObjectState.ENABLED)

    def children(self, pid: int, path: str) -> list[tuple[str, str]]:
        """List the children of an object, with their names.

        Raises:
            ToolError: If there are too many. A program that has to list two billion cells never answers again.
        """
        program = self.program(pid)
        count = value(program.ask([attribute(path, "Accessible", "ChildCount")])[0])
        if isinstance(count, int) and not 0 <= count <= _MOST_CHILDREN:
            msg = "there are too many entries to list: use read_table, select_cells, or the id of one in sight"
            raise ToolError(msg)
        answer = program.ask([method(path, "Accessible", "GetChildren")])[0]
        paths = [] if isinstance(answer, BusError) else [str(child) for _, child in answer[0]]
        names = program.ask([attribute(child_path, "Accessible", "Name") for child_path in paths])
        return [(child_path, str(value(name) or "")) for child_path, name in zip(paths, names, strict=True)]

    def menu_bars(self, pid: int) -> list[str]:
        """Return the menu bars of the focused window, else the topmost one."""
        tree = self.desktop.tree(pid)
        bars = [node for node in tree.nodes if node.role == "menu bar"] if tree is not None else []
        windows = [window for window in self.desktop.screen.of_process(pid) if not window.popup]
        order = [window.id for window in windows]
        active, _ = self.desktop.screen.active()

        def rank(bar: AccessibleNode) -> int:
            window = window_of(windows, bar.window)
            return len(order) if window == active else order.index(window) if window is not None else -1

        best = max(map(rank, bars), default=0)
        return [bar.path for bar in bars if rank(bar) == best]

    # Waiting

    def mark(self, pid: int) -> str:
        """Return a fingerprint of a process's windows, to detect changes."""
        return self.desktop.view(pid, None, LookBudget()).fingerprint

    def changed(self, pid: int, old_mark: str) -> Answer:
        """Wait for a visible change or the program's end, and report it."""
        try:
            return {"changed": self.desktop.wait(lambda: self.mark(pid) != old_mark, CHANGED_SECONDS)}
        except ToolError:
            if not self.desktop.wait(lambda: not is_alive(pid), CHANGED_SECONDS):  # it may be ending
                raise
            return {"changed": True, "ended": True}

    # Acting

    def focus(self, pid: int, node: AccessibleNode | None = None) -> int:
        """Focus a window of a process.

        It is the window of the control; without one, the window that has the focus, else the topmost one.

        Returns:
            The focused window, to which keys may go.

        Raises:
            ToolError: If it does not get the focus.
        """
        chosen = self.chosen(pid, node)
        if chosen != self.desktop.screen.active()[0]:
            with self._turn, committing():
                chosen = self.desktop.screen.activate(chosen)
        return chosen

    def chosen(self, pid: int, node: AccessibleNode | None = None) -> int:
        """Return the window that `focus` would focus.

        Raises:
            ToolError: If the process has no window.
        """
        windows = [window for window in self.desktop.screen.of_process(pid) if not window.popup]
        if not is_alive(pid):  # the X server may still list its windows
            raise ToolError(gone(pid))
        if not windows:
            hidden = self.desktop.screen.clients_of(pid)  # all are minimized
            if not hidden:
                raise ToolError(gone(pid))
            return hidden[-1]
        active, _ = self.desktop.screen.active()
        chosen = next((window for window in windows if window.id == active), windows[-1]).id
        return (node is not None and window_of(windows, node.window)) or chosen

    def grab(self, pid: int, node: AccessibleNode) -> int:
        """Focus a control, by a click if necessary.

        Returns:
            Its window, to which keys may go.
        """
        window = self.focus(pid, node)
        if not self.has(pid, node.path, ObjectState.FOCUSED):
            self.program(pid).act(method(node.path, "Component", "GrabFocus"))
            if not self.desktop.wait(lambda: self.has(pid, node.path, ObjectState.FOCUSED), 1.0):
                self.click(pid, node)
        return window

    def act(self, pid: int, path: str, names: Sequence[str]) -> bool:
        """Invoke one of an object's own actions; return False without any."""
        program = self.program(pid)
        if not self._new_windows(pid):
            self._old_windows[pid] = set(self.desktop.screen.clients_of(pid))
        answer = program.ask([method(path, "Action", "GetActions")])[0]
        if isinstance(answer, BusError) or not answer[0]:
            return False
        action_names = [str(action[0]).lower() for action in answer[0]]
        index = next((action_names.index(name) for name in names if name in action_names), 0)
        program.act(method(path, "Action", "DoAction", "i", index))
        return True

    def press(self, pid: int, node: AccessibleNode) -> None:
        """Press a control: by its own action, else by the pointer.

        The pointer comes first where a dialog would run within the call of the action.

        Raises:
            ToolError: If it has no action, and the pointer can't reach it.
        """
        if self.program(pid).nests and node.box is not None:
            with contextlib.suppress(OutOfReachError):
                return self.click(pid, node)
        if not self.act(pid, node.path, PRESSES):
            self.click(pid, node)
        return None

    def close_menus(self, pid: int) -> None:
        """Close the open menus and lists of a process."""
        for _ in range(_MOST_MENUS):
            popups = [window.id for window in self.desktop.screen.of_process(pid) if window.popup]
            active, owner = self.desktop.screen.active()
            if not popups or owner != pid:
                return
            self.keys(active, "Escape")
            self.desktop.wait(
                lambda: len([window for window in self.desktop.screen.of_process(pid) if window.popup]) < len(popups),  # noqa: B023 - called now
                _CLOSED_SECONDS,
            )

    def switch(self, pid: int, node: AccessibleNode, is_so: Callable[[], bool], names: Sequence[str]) -> None:
        """Switch a control by its own action, then by the pointer.

        Raises:
            ToolError: If its state does not change.
        """

        def by_itself() -> None:
            self.act(pid, node.path, names)

        def by_pointer() -> None:
            now = self.desktop.node(pid, self.desktop.ids(pid).of(node.path))  # the first attempt may have moved it
            self.click(pid, now)

        for attempt in (by_itself, by_pointer) if names else (by_pointer,):
            if is_so():
                return
            attempt()
            if self.desktop.wait(is_so, SHOWN_SECONDS):
                return
        msg = f"the state of {node.role} {node.name!r} does not change"
        raise ToolError(msg)

    def click(
        self,
        pid: int,
        position: AccessibleNode | tuple[int, int],
        button: str = "left",
        count: int = 1,
        modifiers: Collection[str] = (),
    ) -> None:
        """Click on a control, or at a point of the screen.

        Raises:
            ToolError: If the control can't be reached by the pointer, or something else is at the point.
        """
        keyboard, pointer = self.desktop.keyboard, self.desktop.pointer
        self.at(
            pid,
            lambda point: keyboard.hold(modifiers, lambda: pointer.click(point[0], point[1], button, count)),
            position,
        )

    def drag(
        self,
        pid: int,
        start: AccessibleNode | tuple[int, int],
        end: AccessibleNode | tuple[int, int],
        button: str = "left",
    ) -> None:
        """Press a button at a control or point, release it at another.

        Raises:
            ToolError: As `click`.
        """
        self.at(pid, lambda first, last: self.desktop.pointer.drag(first, last, button), start, end)

    def must_take_keys(self, pid: int) -> None:
        """Refuse keys for a dialog that an accessible action has opened.

        Raises:
            ToolError: If a key would block the program.
        """
        program, tree = self.desktop.programs.of_process(pid), self.desktop.tree(pid)
        if program is None or tree is None or not program.nests or not self._new_windows(pid):
            return
        if any(node.has(ObjectState.MODAL) for node in tree.windows()):
            msg = "the program still runs the action that opened its dialog, and keys would block it: " + _WITHOUT_KEYS
            raise ToolError(msg)

    def _new_windows(self, pid: int) -> set[int]:
        """Return the windows opened since an accessible action; forget it otherwise."""
        now = set(self.desktop.screen.clients_of(pid))
        new = now - self._old_windows.get(pid, now)
        if not new:
            self._old_windows.pop(pid, None)
        return new

    def keys(self, window: int, keys: str) -> None:
        """Press one combination of keys, if a window has the focus.

        Raises:
            ToolError: If another window has the focus, of this or another process.
        """
        symbols = self.desktop.keyboard.symbols(keys)
        with self._turn, committing():
            self._must_have_focus(window)
            self.desktop.keyboard.press(symbols)

    def type(self, window: int, text: str) -> int:
        """Type a text while a window has the focus.

        Returns:
            The number of typed characters.

        Raises:
            ToolError: If another window takes the focus, of this or another process. The text gives the number of typed
                characters.
        """
        typed = 0

        def press(symbol: int) -> None:
            nonlocal typed
            with committing():
                self._must_have_focus(window)
                self._must_type_plainly()
                self.desktop.keyboard.press([symbol])
            typed += 1

        try:
            with self._turn:
                self.desktop.keyboard.type(text, press)
        except ToolError as error:
            msg = f"{error}; {typed} of {len(text)} characters were typed" if typed < len(text) else str(error)
            raise ToolError(msg) from error
        return typed

    def at(self, pid: int, action: Callable[..., None], *positions: AccessibleNode | tuple[int, int]) -> None:
        """Perform an action at controls, or points, of the process's windows.

        Args:
            pid: The process.
            action: Performs the action; it gets the points.
            positions: Controls, or points of the screen.

        Raises:
            ToolError: If a control can't be reached by the pointer, or something else is at one of the points.
        """
        first = positions[0]
        self._new_windows(pid)
        self.focus(pid, None if isinstance(first, tuple) else first)
        with self._turn:
            reached = [
                (None, position) if isinstance(position, tuple) else self._pointed.reach(pid, position)
                for position in positions
            ]
            if len(reached) > 1:  # reaching one of them may have scrolled the others
                reached = [
                    (node, point) if node is None else self._pointed.locate_again(pid, node) for node, point in reached
                ]
            for node, point in reversed(reached):
                self._pointed.must_show(pid, point, node)
            node, point = reached[0]
            with committing():
                self.desktop.pointer.move(*point)
            self._pointed.settle(pid, point, node)
            with committing():
                action(*(point for _, point in reached))

    def _must_type_plainly(self) -> None:
        """Refuse to type while a lock changes the characters of keys.

        On a private desktop, Caps Lock is switched off instead.
        """
        locked = self.desktop.keyboard.locked()
        if locked and self.desktop.session is not None:
            self.desktop.keyboard.unlock()
            locked = self.desktop.keyboard.locked()
        if locked:
            raise ToolError(locked)

    def _must_have_focus(self, window: int) -> None:
        if self.desktop.screen.active()[0] != window:
            msg = "another window has taken the focus"
            raise ToolError(msg)
        held = "" if self.desktop.session is not None else self.desktop.keyboard.held()
        if held:
            msg = f"a person is holding {held} down"
            raise ToolError(msg)


_WITHOUT_KEYS = "use set_text, press and click until the dialog is closed; no key was pressed"
_SILENT = "this program does not expose its controls: only an operator, which sees pixels, can work there"


def gone(pid: int) -> str:
    """Return the error message for a process that has ended."""
    return f"the program has ended (process {pid}); its windows are closed"
