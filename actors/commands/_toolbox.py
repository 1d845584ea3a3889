"""All targets and tools that the configured surfaces offer."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from callboard.actors.commands._bound_tools import BoundTool, LocalTool
from callboard.actors.commands._opening_tools import OpeningTool, opener, opening_tools
from callboard.actors.commands._unmatched import KnownTool, unmatched
from callboard.config import check_kind
from callboard.messages import (
    LOCAL_POOL,
    REMOTE,
    Action,
    AgentKind,
    CommandType,
    Observation,
    SettingsError,
    Target,
    encodable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from callboard.actors.commands.mcp import McpSession
    from callboard.actors.runtime import Lanes
    from callboard.config import PolicyRule
    from callboard.models import ToolInfo
    from callboard.surfaces import Server, SurfaceTool


class Tools(dict[str, BoundTool]):
    """Tools by name.

    Built once for all steps on a target, and not modified later.
    """

    @functools.cached_property
    def offered(self) -> tuple[ToolInfo, ...]:
        """The tools that are offered to models."""
        return tuple(tool.info for tool in self.values() if tool.info.offered)


KEPT = 1000
"""The most combinations of kind and target whose bound tools are cached."""
_LOCAL_MACHINES = f"{REMOTE}/{LOCAL_POOL}/"
"""The begin of addresses at which machines of this computer work."""


class Toolbox:
    """Finds a target's surface and an agent's tools on it.

    Thread-safe once built.
    """

    def __init__(
        self,
        surfaces: Sequence[Server],
        sessions: Sequence[McpSession],
        lanes: Lanes,
        *,
        kinds: Collection[str] = tuple(AgentKind),
        everywhere: Sequence[Server] = (),
        is_complete: bool = True,
    ) -> None:
        """Collect the surfaces' tools, for the known kinds of agents.

        Agents have the tools of the surfaces in `everywhere` on the targets of all others. `is_complete` is false if
        rules may be about tools of other processes, too.

        Raises:
            SettingsError: If a tool is for an unknown kind, or two surfaces have the same name, or offer HostAgents
                tools of the same name, or one has a tool of the name of one in `everywhere`.
        """
        self._surfaces: dict[str, Server] = {}
        self._tools: dict[str, tuple[SurfaceTool, ...]] = {}
        self._doors: dict[str, tuple[SurfaceTool, ...]] = {}
        self._sessions = tuple(sessions)
        self._lanes = lanes
        self._is_complete = is_complete
        self._actions: dict[tuple[object, ...], Tools] = {}
        self._offered = Observation()
        self._everywhere = tuple(everywhere)
        for surface in (*surfaces, *everywhere):
            if surface.name in self._surfaces:
                msg = f"two surfaces are called {surface.name!r}"
                raise SettingsError(msg)
            self._surfaces[surface.name] = surface
            self._doors[surface.name] = opening_tools(surface)
            self._tools[surface.name] = (*surface.tools(), *self._doors[surface.name])
            for tool in self._tools[surface.name]:
                for kind in sorted(tool.agents):
                    check_kind(f"the tool {tool.name!r} of {surface.name!r}", kind, kinds)
        self.surfaces = tuple(surfaces)
        """The surfaces that have targets."""
        self._check_host_tools()
        self._check_tools_everywhere()

    def _check_host_tools(self) -> None:
        owners: dict[str, str] = {}
        for surface, tools in self._tools.items():
            for tool in tools:
                if (
                    AgentKind.HOST in tool.agents
                    and not tool.roots
                    and owners.setdefault(tool.name, surface) != surface
                ):
                    msg = f"{owners[tool.name]!r} and {surface!r} both offer HostAgents a tool called {tool.name!r}"
                    raise SettingsError(msg)

    def _check_tools_everywhere(self) -> None:
        owners = {tool.name: surface.name for surface in self._everywhere for tool in self._tools[surface.name]}
        for surface, tools in self._tools.items():
            for tool in tools:
                if owners.get(tool.name, surface) != surface:
                    msg = f"{owners[tool.name]!r} and {surface!r} both offer a tool called {tool.name!r}"
                    raise SettingsError(msg)

    def unmatched(
        self, rules: Sequence[PolicyRule], targets: Callable[[], Sequence[Target]]
    ) -> Iterator[tuple[int, str]]:
        """Find the rules that match nothing.

        They match none of the existing tools, applications, arguments and resources. `targets` lists the targets; it is
        called only for a rule whose application no tool names.
        """
        if not self._is_complete:
            return
        known_tools = [
            KnownTool(tool.name, tool.roots, frozenset(tool.tool.parameters.get("properties", ())))
            for tools in self._tools.values()
            for tool in tools
        ]
        for session in self._sessions:
            for tool in session.tools():
                names = frozenset(tool.info.schema.get("properties", ()))
                known_tools.append(
                    KnownTool(tool.info.name, frozenset(() if session.everywhere else ("mcp",)), names or None)
                )
        kinds = {kind for surface in self.surfaces for kind in surface.resource_kinds}
        yield from unmatched(rules, known_tools, kinds, lambda: [target.address.split("/")[1] for target in targets()])

    def surface(self, target: Target) -> Server:
        """Return the surface that offers a target.

        Raises:
            LookupError: If no surface has that name.
        """
        if target.server not in self._surfaces:
            msg = f"no surface is called {target.server!r}"
            raise LookupError(msg)
        return self._surfaces[target.server]

    def start_of(self, target: Target) -> Action | None:
        """Return the call that starts a subtask's application.

        None if it can't be started.
        """
        if target.start is not None:
            return Action(tool=target.start, arguments={"name": target.native.id})
        tool = opener(target.server)
        has_opener = tool in self.actions(AgentKind.HOST, None)
        return Action(tool=tool, arguments={"application": target.native.id}) if has_opener else None

    def offered(self, targets: Sequence[Target]) -> Observation:
        """Build an observation of the targets of all surfaces.

        For the event loop's thread. While the targets are unchanged, all observations share one tuple of them.
        Otherwise, with hundreds of windows and tasks, the garbage collector would have to traverse millions of
        references.
        """
        offered_targets = tuple(targets)
        if offered_targets is not self._offered.targets and offered_targets != self._offered.targets:
            self._offered = encodable(Observation(targets=offered_targets))
        return self._offered

    def tools(self, kind: str, target: Target | None) -> Tools:
        """Return an agent kind's tools on a target, by name.

        Without a target (None), they are a HostAgent's.
        """
        surfaces = self.surfaces if target is None else (self.surface(target),)
        native = target.native if target is not None else None
        root = target.address.split("/")[1] if target is not None else ""
        tools = Tools()
        for surface in surfaces:
            for tool in self._tools[surface.name]:
                if kind in tool.agents and (not tool.roots or root in tool.roots):
                    bound = OpeningTool if tool in self._doors[surface.name] else LocalTool
                    tools[tool.name] = bound(surface, tool, native, self._lanes)
        for surface in self._everywhere:
            for tool in self._tools[surface.name]:
                if kind in tool.agents:
                    tools[tool.name] = LocalTool(surface, tool, None, self._lanes)
        for session in self._sessions:
            if kind in session.everywhere or (target is not None and target.server == session.target_surface):
                tools.update({tool.info.name: tool for tool in session.tools()})
        return tools

    def schemas(self, kind: str, name: str) -> list[dict[str, Any]]:
        """Return the schemas of all tools with a name.

        They are those that agents of a kind have on any target.
        """
        own_tools = (
            LocalTool(surface, tool, None, self._lanes)
            for surface in {*self.surfaces, *self._everywhere}
            for tool in self._tools[surface.name]
            if tool.name == name and kind in tool.agents
        )
        others = (tool for session in self._sessions for tool in session.tools() if tool.info.name == name)
        return [tool.info.schema for tool in (*own_tools, *others)]

    def actions(self, kind: str, target: Target | None) -> Tools:
        """Return the tools that a model may call.

        Cached, since each step needs them several times.
        """
        named: tuple[object, ...] = (
            kind,
            *self._versions(),
        )  # the fields that tools are bound by; JSON would be slower than the rest
        if target is not None:
            named = *named, target.server, target.id, target.address, target.group, repr(target.binds)
        tools = self._actions.get(named)
        if tools is None:
            tools = self._actions[named] = actions_of(self.tools(kind, target))
            if len(self._actions) > KEPT:
                self._actions.pop(next(iter(self._actions)), None)
        return tools

    def _versions(self) -> Iterator[int]:
        """Yield the versions of the MCP servers' tools, which may change."""
        return (session.version for session in self._sessions)

    def missing(self, kind: str, target: Target | None, name: str) -> str:
        """Describe a missing tool.

        The text names the tools that the agent has, or the target that has this tool.
        """
        folded_name = name.strip().casefold()
        for session in self._sessions:
            for tool in session.tools() if not session.everywhere else ():
                full = tool.info.name
                if folded_name in {full.casefold(), full.partition(".")[2].casefold()}:
                    return (
                        f"{full} can be called on the target {session.name!r} alone; "
                        f"`mcpServers.{session.name}.surface: both` in the settings offers it everywhere"
                    )
        tools = self.actions(kind, target)
        for session in self._sessions:
            if session.has_removed(name):
                names = ", ".join(sorted(tools)) or "none"
                return f"the MCP server {session.name} has removed its tool {name!r}; there are: {names}"
        return f"there is no tool {name!r}; there are: {', '.join(sorted(tools)) or 'none'}"


def actions_of(tools: Tools) -> Tools:
    """Return the tools that a model may call."""
    return Tools({name: tool for name, tool in tools.items() if tool.type is CommandType.ACTION})


def find_target(targets: Sequence[Target], reference: str) -> Target | None:
    """Find a target by id, else by address, else by name.

    A name must be unique. A target that machines of this computer work on has the address that it has without them.
    """
    for target in targets:
        if target.id == reference:
            return target
    for target in targets:
        if reference in {target.address, target.address.removeprefix(_LOCAL_MACHINES)}:
            return target
    named = [target for target in targets if target.name == reference]
    return named[0] if len(named) == 1 else None
