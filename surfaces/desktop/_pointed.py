"""Points at which the pointer reaches a control."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from callboard.surfaces import committing
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.desktop._calls import NOTHING, BusError, method
from callboard.surfaces.desktop._places import CLIPS, below, covering, in_popup, visible_part, window_of
from callboard.surfaces.desktop._view import CONTROLS, label_of

if TYPE_CHECKING:
    from callboard.surfaces.desktop._open_desktop import OpenDesktop
    from callboard.surfaces.desktop._tree import AccessibleNode
    from callboard.surfaces.desktop._xscreen import XWindow

Point = tuple[int, int]
_ANYWHERE = 6
"""AT-SPI's `ATSPI_SCROLL_ANYWHERE`: as little as necessary."""
_SCROLLED_SECONDS = 0.5
_MOST_TURNS = 60
_TURN_SECONDS = 0.2
_TOOLTIP_SECONDS = 1.0
"""The time after which a program has closed a tooltip below the pointer."""
_DEEPEST = 60


class OutOfReachError(ToolError):
    """The pointer can't reach a control; nothing was done."""


class PointedControls:
    """Finds and checks the points at which clicks reach a control.

    Args:
        desktop: The desktop.
    """

    def __init__(self, desktop: OpenDesktop) -> None:
        self._desktop = desktop

    def reach(self, pid: int, node: AccessibleNode) -> tuple[AccessibleNode, Point]:
        """Return a control, and the center of its visible part.

        It is scrolled to if necessary. Its window must be uppermost.

        Raises:
            OutOfReachError: If no part of it can be made visible; the text gives the reason.
        """
        if node.box is None:
            msg = f"{node.role} {node.name!r} is not visible: scroll, or open the menu, list or tab that contains it"
            raise OutOfReachError(msg)
        screen = self._desktop.screen.size
        part = visible_part(node, screen)
        if part is None:
            node = self._scrolled(pid, node)
            part = visible_part(node, screen)
        if part is None:
            pane = next((ancestor for ancestor in node.above() if ancestor.role in CLIPS), None)
            hidden = pane is not None and visible_part(pane, screen) is not None
            state = (
                "is scrolled out of sight" if hidden else f"is outside the screen of {screen[0]} by {screen[1]} pixels"
            )
            msg = f"{node.role} {node.name!r} {state}: press it without the pointer, or bring it into sight"
            raise OutOfReachError(msg)
        return node, (part.x + part.width // 2, part.y + part.height // 2)

    def locate_again(self, pid: int, node: AccessibleNode) -> tuple[AccessibleNode, Point]:
        """Return the present position of a control that was reached, without scrolling.

        Raises:
            OutOfReachError: If it is no longer in sight.
        """
        current = self._desktop.node(pid, self._desktop.ids(pid).of(node.path))
        part = visible_part(current, self._desktop.screen.size)
        if part is None:
            msg = f"{node.role} {node.name!r} is out of sight while the other control is in sight; nothing was done"
            raise OutOfReachError(msg)
        return current, (part.x + part.width // 2, part.y + part.height // 2)

    def _scrolled(self, pid: int, node: AccessibleNode) -> AccessibleNode:
        """Scroll to a control: by the program itself, else by the wheel."""
        program = self._desktop.programs.of_process(pid)
        if program is None:
            return node
        control_id, screen = self._desktop.ids(pid).of(node.path), self._desktop.screen.size

        def is_visible() -> bool:
            nonlocal node
            node = self._desktop.node(pid, control_id)
            return visible_part(node, screen) is not None

        with committing():
            answer = program.ask([method(node.path, "Component", "ScrollTo", "u", _ANYWHERE)])[0]
        scrolls = not isinstance(answer, BusError) and bool(answer[0])
        if scrolls and self._desktop.wait(is_visible, _SCROLLED_SECONDS):
            return node
        for _ in range(_MOST_TURNS):
            button, point = self._turn(node)
            if not button:
                break
            old_box = node.box
            with committing():
                self._desktop.pointer.click(*point, button)
            self._desktop.wait(lambda: is_visible() or node.box != old_box, _TURN_SECONDS)  # noqa: B023 - called now
            if visible_part(node, screen) is not None or node.box == old_box:
                break
        return node

    def _turn(self, node: AccessibleNode) -> tuple[str, Point]:
        """Return the turn of the wheel that brings a control closer."""
        pane = next((ancestor for ancestor in node.above() if ancestor.role in CLIPS), None)
        part = visible_part(pane, self._desktop.screen.size) if pane is not None else None
        if part is None or node.box is None or in_popup(node):
            return "", (0, 0)
        box, point = node.box, (part.x + part.width // 2, part.y + part.height // 2)
        if box.y >= part.y + part.height or box.y + box.height <= part.y:
            return "down" if box.y > part.y else "up", point
        return "forth" if box.x > part.x else "back", point

    def must_show(self, pid: int, point: Point, node: AccessibleNode | None) -> None:
        """Check that a point shows a process's window, and a control.

        Raises:
            OutOfReachError: If something else is there; the text names it.
        """
        width, height = self._desktop.screen.size
        if not (0 <= point[0] < width and 0 <= point[1] < height):
            msg = f"{point} is outside the screen of {width} by {height} pixels; nothing was done"
            raise OutOfReachError(msg)
        self._must_be(pid, self._desktop.screen.window_at(*point), point, node, settled=False)
        if node is not None:
            self._must_not_be_covered(pid, point, node)

    def settle(self, pid: int, point: Point, node: AccessibleNode | None) -> None:
        """Check that a click at the pointer's place would arrive.

        A tooltip closes when the pointer moves.

        Raises:
            OutOfReachError: If it would not; the text gives the reason.
        """
        end = time.monotonic() + _TOOLTIP_SECONDS
        while True:
            position, window = self._desktop.screen.pointed()
            if position != point:
                msg = f"the pointer is at {position} instead of {point}: something else moves it; nothing was done"
                raise OutOfReachError(msg)
            try:
                return self._must_be(pid, window, point, node, settled=True)
            except OutOfReachError:
                if window is None or not window.popup or time.monotonic() > end:
                    raise
            self._desktop.wait(lambda: False, _TURN_SECONDS)

    def _must_be(
        self, pid: int, window: XWindow | None, point: Point, node: AccessibleNode | None, *, settled: bool
    ) -> None:
        """Refuse a window that is not the control's, or the process's."""
        if window is None or window.pid != pid:
            obstacle = f"a window of another program (process {window.pid})" if window is not None else "no window"
            msg = f"at {point} there is {obstacle}; nothing was done"
            raise OutOfReachError(msg)
        if node is None or (window.popup and not settled):
            return  # a tooltip may close when the pointer comes
        if window.popup:
            if not in_popup(node):
                msg = f"at {point} an open menu, list or tooltip covers {node.role} {node.name!r}; nothing was done"
                raise OutOfReachError(msg)
            return
        target_window = window_of(self._desktop.screen.of_process(pid), node.window)
        if target_window is not None and window.id != target_window:
            msg = f"at {point} there is another window of the program, {window.title!r}; nothing was done"
            raise OutOfReachError(msg)

    def _must_not_be_covered(self, pid: int, point: Point, node: AccessibleNode) -> None:
        """Refuse a point where another control is on top."""
        program, tree = self._desktop.programs.of_process(pid), self._desktop.tree(pid)
        current = (
            next((candidate for candidate in tree.nodes if candidate.path == node.path), None)
            if tree is not None
            else None
        )
        if program is None or current is None or program.draws_itself or program.relative or in_popup(node):
            return
        obstacle = (
            covering(current, point, CONTROLS) if "gtk" in program.toolkit.lower() else self._hit(pid, current, point)
        )
        if obstacle is not None:
            msg = (
                f"at {point} {obstacle.role} {label_of(obstacle)!r} covers {node.role} {node.name!r}; nothing was done"
            )
            raise OutOfReachError(msg)

    def _hit(self, pid: int, node: AccessibleNode, point: Point) -> AccessibleNode | None:
        """Ask a program which other control is at a point."""
        x, y = (round(coordinate / node.scale) for coordinate in point)
        program, path = self._desktop.programs.of_process(pid), node.window.path
        for _ in range(_DEEPEST if program is not None else 0):
            assert program is not None  # noqa: S101 - for the type checker
            answer = program.ask([method(path, "Component", "GetAccessibleAtPoint", "iiu", x, y, 0)])[0]
            if isinstance(answer, BusError) or answer[0][1] in {NOTHING, path}:
                break
            path = str(answer[0][1])
        control = next((candidate for candidate in below(node.window) if candidate.path == path), None)
        unrelated = control is not None and node not in {control, *control.above()} and control not in set(node.above())
        return control if control is not None and unrelated and control.role in CONTROLS else None
