"""Check before an action that its control is unchanged.

A control or point must still be there.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from callboard.actors.processing._collect import on_lane, snapshot, target_of
from callboard.surfaces import ToolError

if TYPE_CHECKING:
    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import Action, Control, Observation

OTHER_POINT = "the picture changed: something else is at its point by now; nothing was done"
UNSEEN_POINT = "its point can't be seen any more: "
"""Reasons for not running an action with a point; a replay recognises them by these texts."""


class Recheck:
    """Check of the surface, with at most one look per action."""

    def __init__(self, context: Context, run: Run, observation: Observation) -> None:
        """Initialise the check.

        `observation` is the one that the decision is based on.
        """
        self._context = context
        self._run = run
        self._observation = observation
        self._last_look = observation
        self.latest: Observation | None = None
        """The look taken for the current action, if any."""

    async def changed(self, action: Action, *, takes_disabled: bool) -> str:
        """Return why an action must not run; empty if it may.

        It must not if its control is gone, replaced or hidden, or disabled and not for the tool. The control is the
        same if its id, name and kind are those that the model saw.
        """
        self.latest = None
        control = None if action.control is None else self._observation.control(action.control)
        if control is None or self._context.is_host:
            return await self._pointed(action) if action.points else ""
        what = f"{control.kind} {control.id} ({control.name})"
        try:
            self.latest = self._last_look = await snapshot(self._context, self._run, self._last_look)
            target = target_of(self._run)
            surface = self._context.services.toolbox.surface(target)
            find = functools.partial(surface.resolve, self._last_look, control)
            now = await on_lane(self._context, surface, target, find)
            return _problem(what, now, takes_disabled=takes_disabled)
        except ToolError as error:
            return f"{what} can't be seen any more: {error}"

    async def _pointed(self, action: Action) -> str:
        """Return why an action with points must not run, or empty.

        The reason is another control at one of the points. If the surface does not report the positions of
        its controls, no check is possible, and the result is empty.
        """
        if not any(control.box for control in self._observation.controls):
            return ""
        try:
            self.latest = self._last_look = await snapshot(self._context, self._run, self._last_look)
        except ToolError as error:
            return f"{UNSEEN_POINT}{error}"
        if not any(control.box for control in self._last_look.controls):
            return ""
        for x, y in action.points:
            if _identity(self._observation.at(x, y)) != _identity(self._last_look.at(x, y)):
                return OTHER_POINT
        return ""


def _identity(control: Control | None) -> tuple[str, ...]:
    return () if control is None else (control.id, control.name, control.kind)


def _problem(what: str, now: Control | None, *, takes_disabled: bool) -> str:
    if now is None:
        return f"{what} is gone or another one by now; nothing was done"
    if not (now.enabled or takes_disabled):
        return f"{what} is disabled now; nothing was done"
    return "" if now.visible else f"{what} is hidden now; nothing was done"
