"""The look before an action: what it is meant for must still be there, and be the same."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from callboard.actors.processing._collect import on_lane, target_of
from callboard.actors.servers import ToolError
from callboard.messages import AgentKind

if TYPE_CHECKING:
    from callboard.actors.processing._phases import Context
    from callboard.actors.states import Run
    from callboard.messages import Action, Observation


async def changed(context: Context, run: Run, observation: Observation, action: Action) -> str:
    """Say why an action must not run: its control is gone, another one, disabled or hidden; empty if it may.

    The control is the one that the model saw: the same id, name and kind.
    """
    if context.kind is AgentKind.HOST or action.control is None:
        return ""
    seen = observation.control(action.control)
    if seen is None:
        return ""
    target = target_of(run)
    server = context.services.toolbox.server(target)
    what = f"{seen.kind} {seen.id} ({seen.name})"
    try:
        real = context.services.secrets.shown_as(run.assign.task_id, seen)
        now = await on_lane(context, server, target, functools.partial(server.resolve, target, seen))
        if now is None and real != seen:
            now = await on_lane(context, server, target, functools.partial(server.resolve, target, real))
    except ToolError as error:
        return f"{what} can't be seen any more: {error}"
    if now is None:
        return f"{what} is gone or another one by now; nothing was done"
    if not (now.enabled and now.visible):
        return f"{what} is {'disabled' if not now.enabled else 'hidden'} now; nothing was done"
    return ""
