"""Tools that let HostAgents open and close targets.

They exist for surfaces with `start` and `stop`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from callboard.actors.commands._bound_tools import LocalTool, schema_problem
from callboard.messages import CLOSE, OPEN, AgentKind, CommandType, Effect, Hazard, Target, TargetKind
from callboard.surfaces import Server, SurfaceTool, ToolError, ToolFunction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from callboard.surfaces import EffectGuard

_PAUSE = 0.05
"""Seconds between two checks whether a group of targets is free."""


def opener(surface: str) -> str:
    """Name the tool that opens the applications of a surface."""
    return f"{OPEN}{surface}"


def opening_tools(surface: Server) -> tuple[SurfaceTool, ...]:
    """Make the tools that open and close the targets of a surface."""

    def open_application(
        application: Annotated[str, Field(description="The application, by its id.")],
        arguments: Annotated[dict[str, Any] | None, Field(description="What to open in it, as it says.")] = None,
    ) -> tuple[str, dict[str, Any] | None]:
        return application, arguments

    def close_window(window: Annotated[str, Field(description="The window, by its id.")]) -> str:
        return window

    tools = []
    if _has(surface, "start"):
        tools.append(_door(opener(surface.name), open_application, "Open an application, and give its new window."))
    if _has(surface, "stop"):
        tools.append(_door(f"{CLOSE}{surface.name}", close_window, "Close a window that this task has opened."))
    return tuple(tools)


def _has(surface: Server, method: str) -> bool:
    """Return whether a surface overrides a method.

    A tool of the same name does not count.
    """
    implementation, inherited = getattr(type(surface), method), getattr(Server, method)
    return implementation is not inherited and not any(
        entry.tool.fn == getattr(surface, method) for entry in surface.tools()
    )


def _door(name: str, function: Any, description: str) -> SurfaceTool:
    tool = ToolFunction.of(function, description, name)
    agents, hazards = frozenset({AgentKind.HOST}), frozenset({Hazard.LAUNCHES})
    return SurfaceTool(tool, CommandType.ACTION, Effect.ONCE, agents, frozenset(), hazards)


class OpeningTool(LocalTool):
    """Opens or closes a target on its group's lane.

    It waits until no agent holds the group's lease. A new window takes the focus. Between two calls of another agent,
    that would send its keys to the wrong window.
    """

    async def call(self, arguments: Mapping[str, JsonValue], guard: EffectGuard) -> JsonValue:
        """Find the target and make the server open or close it."""
        validated_arguments = self._tool.validate(arguments)
        with guard.active():
            if "application" in validated_arguments:
                return await self._open(
                    str(validated_arguments["application"]), validated_arguments.get("arguments") or {}, guard
                )
            return await self._close(str(validated_arguments["window"]), guard)

    async def _open(self, name: str, arguments: dict[str, JsonValue], guard: EffectGuard) -> JsonValue:
        target = await self._target_called(name, guard)
        if target.kind is not TargetKind.APPLICATION:
            msg = f"{name!r} is open already: assign a subtask to it"
            raise ToolError(msg)
        problem = schema_problem({"additionalProperties": False, **target.takes}, arguments)
        if problem is not None:
            msg = f"{name!r} can't be opened with these arguments: {problem}"
            raise ToolError(msg)
        window = await self._run(functools.partial(self._surface.start, target, arguments), target, guard)
        if not isinstance(window, Target):
            msg = f"{self._surface.name} opened a {type(window).__name__}, not a Target"
            raise TypeError(msg)
        window_json: JsonValue = window.model_dump(mode="json")
        return window_json

    async def _close(self, name: str, guard: EffectGuard) -> JsonValue:
        target = await self._target_called(name, guard)
        if not target.owner:
            msg = f"{name!r} was not opened by this task, so it is not closed by it"
            raise ToolError(msg)
        await self._run(functools.partial(self._surface.stop, target), target, guard)
        return None

    async def _target_called(self, name: str, guard: EffectGuard) -> Target:
        """Find a target by id.

        The call's task must be allowed to see the target.
        """
        task_id = "" if guard.command is None else guard.command.task_id
        session = None if guard.keeper is None else guard.keeper.session
        listed: tuple[Target, ...] = await self._ask(self._surface.targets)
        targets = [target for target in listed if target.open_to(task_id, session)]
        targets_by_name = {target.id: target for target in targets}
        for target in targets:  # targets for plug-in agents are offered to HostAgents as `kind:id`
            targets_by_name |= {f"{kind}:{target.id}": target for kind in target.kinds}
        if name not in targets_by_name:
            msg = f"there is no {name!r}; there are: {', '.join(targets_by_name) or 'none'}"
            raise ToolError(msg)
        return targets_by_name[name]

    async def _run(self, function: Any, target: Target, guard: EffectGuard) -> Any:
        def call() -> Any:
            guard.check()  # the lease may have become void while the call waited for the lane
            holder = guard.lease.holder_of(target.lease_key)
            if holder:  # that agent has observed already: it would not notice that the focus moves
                msg = f"{holder} works there now: nothing was done"
                raise ToolError(msg)
            try:
                return function()
            finally:
                guard.returned()

        with contextlib.nullcontext() if guard.keeper is None else guard.keeper.waiting():
            while guard.lease.holder_of(target.lease_key):
                if guard.lease.suspended:
                    msg = "the supervisor stops: nothing was done"
                    raise ToolError(msg)
                await asyncio.sleep(_PAUSE)
        return await self._lanes.run(self._surface.lane(target), call)
