"""Tools for operators, which see only pixels.

Points are counted from the upper left corner of the process's picture.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import AgentKind, Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.desktop._window_actions import (  # noqa: TC001 - schemas are made of them
    Answer,
    Button,
    Modifiers,
    Process,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.surfaces.desktop._window_actions import WindowActions

OPERATOR = (AgentKind.OPERATOR,)
X = Annotated[int, Field(ge=0, description="Pixels from the left.")]
Y = Annotated[int, Field(ge=0, description="Pixels from the top.")]
Steps = Annotated[int, Field(ge=-100, le=100)]


class PointTools:
    """Tools that point, click, drag and scroll at points of a picture.

    Args:
        actions: Returns the window actions, once the desktop is open.
    """

    def __init__(self, actions: Callable[[], WindowActions]) -> None:
        self._actions = actions

    @tool(effect=Effect.ONCE, agents=OPERATOR)
    def click_at(
        self,
        process: Process,
        x: X,
        y: Y,
        *,
        button: Button = "left",
        count: Annotated[int, Field(ge=1, le=3, description="2 for a double click.")] = 1,
        modifiers: Modifiers | None = None,
    ) -> Answer:
        """Click at a point."""
        actions = self._actions()
        old_mark = actions.mark(process)
        actions.click(process, self._at(process, x, y), button, count, modifiers or ())
        return actions.changed(process, old_mark)

    @tool(effect=Effect.IDEMPOTENT, agents=OPERATOR)
    def move_to(self, process: Process, x: X, y: Y) -> Answer:
        """Move the pointer to a point."""
        actions, point = self._actions(), self._at(process, x, y)
        actions.at(process, lambda _: None, point)
        return {}

    @tool(effect=Effect.ONCE, agents=OPERATOR)
    def drag_at(self, process: Process, x: X, y: Y, to_x: X, to_y: Y, *, button: Button = "left") -> Answer:
        """Press a button at a point, and release it at another."""
        actions = self._actions()
        old_mark, points = actions.mark(process), (self._at(process, x, y), self._at(process, to_x, to_y))
        actions.drag(process, *points, button)
        return actions.changed(process, old_mark)

    @tool(effect=Effect.IDEMPOTENT, agents=OPERATOR)
    def scroll_at(self, process: Process, x: X, y: Y, *, dx: Steps = 0, dy: Steps = 0) -> Answer:
        """Turn the wheel at a point: positive `dy` down, positive `dx` right."""
        actions, point = self._actions(), self._at(process, x, y)
        old_mark = actions.mark(process)
        for button, count in (("down" if dy > 0 else "up", abs(dy)), ("forth" if dx > 0 else "back", abs(dx))):
            if count:
                actions.click(process, point, button, count)
        return actions.changed(process, old_mark)

    @tool(effect=Effect.READ, agents=OPERATOR)
    def wait(self, process: Process, seconds: Annotated[float, Field(gt=0, le=55)]) -> Answer:
        """Wait."""
        actions, end = self._actions(), time.monotonic() + seconds
        actions.desktop.wait(
            lambda: time.monotonic() >= end or process not in actions.desktop.screen.processes(), seconds
        )
        return {}

    def _at(self, process: int, x: int, y: int) -> tuple[int, int]:
        """Convert a point of the picture to a point of the screen."""
        area = self._actions().desktop.area(process)[1]
        if area is None:
            self._actions().focus(process)
            msg = "the window was minimized, and is shown now: look again"
            raise ToolError(msg)
        if not (0 <= x < area.width and 0 <= y < area.height):
            msg = f"({x}, {y}) is outside the picture, which has {area.width} by {area.height} pixels"
            raise ToolError(msg)
        return area.x + x, area.y + y
