"""Acting in the windows of a process: what all tools of a desktop do it with."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from callboard.actors.runtime import committing
from callboard.actors.servers._server import ToolError
from callboard.actors.servers.desktop._calls import BusError, attribute, method, states, value
from callboard.actors.servers.desktop._processes import is_alive
from callboard.actors.servers.desktop._tree import ObjectState
from callboard.messages import LookBudget

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from callboard.actors.servers.desktop._accessible_programs import AccessibleProgram
    from callboard.actors.servers.desktop._open_desktop import OpenDesktop
    from callboard.actors.servers.desktop._tree import AccessibleNode
    from callboard.actors.servers.desktop._xscreen import XWindow

Answer = dict[str, Any]
Process = Annotated[int, Field(description="The process.")]
ControlId = Annotated[str, Field(description="The control.")]
Button = Literal["left", "middle", "right"]
Modifiers = list[Literal["shift", "ctrl", "alt", "super"]]
PRESSES = ("click", "press", "activate", "jump", "open", "toggle", "do default", "select")
"""The names of actions that do what a click does; else it is the first one."""
READY_SECONDS = 5.0
"""The wait for a control that does not react to input yet."""
SHOWN_SECONDS = 2.0
"""The wait for the effect of an action."""
_MOST_CHILDREN = 100_000
CHANGED_SECONDS = 1.0
"""The wait for any change at all."""


class WindowActions:
    """The hands of the agents on a desktop: accessibility first, and the pointer and the keyboard where there is none.

    What an action is done to is waited for, and so is what comes of it: that a program takes an action proves nothing.

    Args:
        desktop: The desktop.
    """

    def __init__(self, desktop: OpenDesktop) -> None:
        self.desktop = desktop
        self._turn = threading.Lock()
        """Held while keys are pressed: a HostAgent that brings another window to the front waits for it."""

    # Finding

    def program(self, pid: int) -> AccessibleProgram:
        """Give a process as the accessibility bus knows it.

        Raises:
            ToolError: If it does not know it, or it has ended.
        """
        program = self.desktop.programs.of_process(pid)
        if program is None:
            raise ToolError(gone(pid) if pid not in self.desktop.screen.processes() else _SILENT)
        return program

    def ready(self, pid: int, control_id: str) -> AccessibleNode:
        """Find a control once it reacts to input.

        Raises:
            ToolError: If it is not there, or stays grey.
        """
        self.program(pid)
        node = self.desktop.node(pid, control_id)
        if not self.desktop.wait(lambda: self.is_sensitive(pid, node.path), READY_SECONDS):
            msg = f"{node.role} {node.name!r} does not react to input: it is grey"
            raise ToolError(msg)
        return node

    def states(self, pid: int, path: str) -> int:
        """Give the states of an object now."""
        return states(self.program(pid).ask([method(path, "Accessible", "GetState")])[0])

    def has(self, pid: int, path: str, *wanted: ObjectState) -> bool:
        """Return whether an object is in one of some states now."""
        found = self.states(pid, path)
        return any(found >> state & 1 for state in wanted)

    def is_sensitive(self, pid: int, path: str) -> bool:
        """Return whether an object reacts to input now."""
        return self.has(pid, path, ObjectState.SENSITIVE, ObjectState.ENABLED)

    def children(self, pid: int, path: str) -> list[tuple[str, str]]:
        """Give the objects in one, with their names.

        Raises:
            ToolError: If there are too many: a program that lists two thousand million cells never answers again.
        """
        program = self.program(pid)
        count = value(program.ask([attribute(path, "Accessible", "ChildCount")])[0])
        if isinstance(count, int) and not 0 <= count <= _MOST_CHILDREN:
            msg = "there are too many entries to list: use read_table, select_cells, or the id of one in sight"
            raise ToolError(msg)
        answer = program.ask([method(path, "Accessible", "GetChildren")])[0]
        paths = [] if isinstance(answer, BusError) else [str(child) for _, child in answer[0]]
        names = program.ask([attribute(each, "Accessible", "Name") for each in paths])
        return [(each, str(value(name) or "")) for each, name in zip(paths, names, strict=True)]

    def menu_bars(self, pid: int) -> list[str]:
        """Give the menu bars of the window that has the focus, else of the uppermost one that has some."""
        tree = self.desktop.tree(pid)
        bars = [node for node in tree.nodes if node.role == "menu bar"] if tree is not None else []
        windows = [window for window in self.desktop.screen.of_process(pid) if not window.popup]
        order = [window.id for window in windows]
        active, _ = self.desktop.screen.active()

        def rank(bar: AccessibleNode) -> int:
            window = self.window(windows, bar.window)
            return len(order) if window == active else order.index(window) if window is not None else -1

        best = max(map(rank, bars), default=0)
        return [bar.path for bar in bars if rank(bar) == best]

    # Waiting

    def mark(self, pid: int) -> str:
        """Give what tells whether anything has changed in the windows of a process."""
        return self.desktop.view(pid, None, LookBudget()).fingerprint

    def changed(self, pid: int, before: str) -> Answer:
        """Wait for something to change to see, and say whether it did; a program that ended has changed, too."""
        try:
            return {"changed": self.desktop.wait(lambda: self.mark(pid) != before, CHANGED_SECONDS)}
        except ToolError:
            if is_alive(pid):
                raise
            return {"changed": True, "ended": True}

    # Doing

    def focus(self, pid: int, node: AccessibleNode | None = None) -> int:
        """Give a process's window the focus: that of a control, else the one that has it, else the uppermost one.

        Returns:
            The window, to which keys may go.

        Raises:
            ToolError: If it does not get it.
        """
        windows = [window for window in self.desktop.screen.of_process(pid) if not window.popup]
        if not windows:
            hidden = self.desktop.screen.clients_of(pid)  # all are minimized
            if not hidden:
                raise ToolError(gone(pid))
            with self._turn, committing():
                return self.desktop.screen.activate(hidden[-1])
        active, _ = self.desktop.screen.active()
        chosen = next((each for each in windows if each.id == active), windows[-1]).id
        if node is not None:
            chosen = self.window(windows, node.window) or chosen
        if chosen != active:
            with self._turn, committing():
                chosen = self.desktop.screen.activate(chosen)
        return chosen

    @staticmethod
    def window(windows: Sequence[XWindow], node: AccessibleNode) -> int | None:
        """Find a window of the accessibility tree on the screen: by its title, and by its place if several have it."""
        found = [each for each in windows if each.title == node.name]
        here = [each for each in found if node.box is not None and each.content == (node.box.x, node.box.y)]
        return next((each.id for each in reversed(here or found)), None)

    def grab(self, pid: int, node: AccessibleNode) -> int:
        """Give a control the keyboard; by a click if it does not take it otherwise.

        Returns:
            Its window, to which keys may go.
        """
        window = self.focus(pid, node)
        if not self.has(pid, node.path, ObjectState.FOCUSED):
            self.program(pid).act(method(node.path, "Component", "GrabFocus"))
            if not self.desktop.wait(lambda: self.has(pid, node.path, ObjectState.FOCUSED), 1.0):
                self.click(pid, self.middle(node), node=node)
        return window

    def act(self, pid: int, path: str, names: Sequence[str]) -> bool:
        """Have an object do one of its own actions; False if it has none."""
        program = self.program(pid)
        answer = program.ask([method(path, "Action", "GetActions")])[0]
        if isinstance(answer, BusError) or not answer[0]:
            return False
        known = [str(action[0]).lower() for action in answer[0]]
        index = next((known.index(name) for name in names if name in known), 0)
        program.act(method(path, "Action", "DoAction", "i", index))
        return True

    def switch(self, pid: int, node: AccessibleNode, is_so: Callable[[], bool], names: Sequence[str]) -> None:
        """Bring a control to be as it should: by its own action first, then by the pointer.

        Raises:
            ToolError: If it stays as it is.
        """

        def by_itself() -> None:
            self.act(pid, node.path, names)

        def by_pointer() -> None:
            now = self.desktop.node(pid, self.desktop.ids(pid).of(node.path))  # what was tried first may have moved it
            self.click(pid, self.middle(now), node=now)

        for attempt in (by_itself, by_pointer) if names else (by_pointer,):
            if is_so():
                return
            attempt()
            if self.desktop.wait(is_so, SHOWN_SECONDS):
                return
        msg = f"{node.role} {node.name!r} stays as it is"
        raise ToolError(msg)

    def click(
        self,
        pid: int,
        point: tuple[int, int],
        button: str = "left",
        count: int = 1,
        modifiers: Collection[str] = (),
        *,
        node: AccessibleNode | None = None,
    ) -> None:
        """Click at a point of the screen that a window of the process shows.

        Raises:
            ToolError: If another window is there.
        """
        keyboard, pointer = self.desktop.keyboard, self.desktop.pointer
        self.at(pid, lambda: keyboard.hold(modifiers, lambda: pointer.click(*point, button, count)), (point, node))

    def keys(self, window: int, keys: str) -> None:
        """Press one combination of keys, if a window has the focus.

        Raises:
            ToolError: If another one has it, of whichever process.
        """
        symbols = self.desktop.keyboard.symbols(keys)
        with self._turn, committing():
            self._must_have_focus(window)
            self.desktop.keyboard.press(symbols)

    def type(self, window: int, text: str) -> int:
        """Type a text as long as a window has the focus, and give how many characters were typed.

        Raises:
            ToolError: If another one takes the focus, of whichever process; the text says how far it came.
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

    def middle(self, node: AccessibleNode) -> tuple[int, int]:
        """Give the point of the screen in the middle of a control.

        Raises:
            ToolError: If it is not in sight.
        """
        if node.box is None:
            msg = f"{node.role} {node.name!r} is not in sight: scroll, or open what it is in"
            raise ToolError(msg)
        return node.box.x + node.box.width // 2, node.box.y + node.box.height // 2

    def at(self, pid: int, what: Callable[[], None], *places: tuple[tuple[int, int], AccessibleNode | None]) -> None:
        """Do something at places: points of the screen that a window of the process shows, each of a control or none.

        Raises:
            ToolError: If another window is at one of them.
        """
        self.focus(pid, places[0][1])
        with self._turn, committing():
            for point, node in places:
                self._must_show(pid, *point, node)
            what()

    def _must_show(self, pid: int, x: int, y: int, node: AccessibleNode | None) -> None:
        """Refuse a point at which the process's window, or that of a control, is not the uppermost one."""
        meant = self.window(self.desktop.screen.of_process(pid), node.window) if node is not None else None
        found = self.desktop.screen.window_at(x, y)
        if found is None or found.pid != pid:
            there = f"a window of another program (process {found.pid})" if found is not None else "no window"
            msg = f"at ({x}, {y}) there is {there}; nothing was done"
            raise ToolError(msg)
        if meant is not None and not found.popup and found.id != meant:
            msg = f"at ({x}, {y}) there is another window of the program, {found.title!r}; nothing was done"
            raise ToolError(msg)

    def _must_type_plainly(self) -> None:
        """Refuse keys that give other characters. On a private desktop, Caps Lock is switched off instead."""
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
            msg = f"a person holds {held} down"
            raise ToolError(msg)


_SILENT = "this program tells nothing of what is in its windows: only an operator, who sees pixels, can work there"


def gone(pid: int) -> str:
    """Say that a process is not there any more."""
    return f"the program has ended (process {pid}); its windows are closed"
