"""What a server is: a surface that agents see and touch, and the MCP tools to do it with."""

from __future__ import annotations

import functools
import inspect
import weakref
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations

from callboard.config import fits
from callboard.messages import (
    AgentKind,
    CommandType,
    Control,
    Coverage,
    Effect,
    Foreseen,
    Hazard,
    Intent,
    Look,
    Observation,
    Probe,
    Seconds,
    Target,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from pydantic import JsonValue

    from callboard.actors.servers._need import Need
    from callboard.actors.servers._stage import Stage

__all__ = ["UNKNOWN", "InDoubtError", "Server", "ServerTool", "ToolError", "observed", "tool"]

_F = TypeVar("_F", bound="Callable[..., Any]")
_MARK = "__callboard_tool__"
UNKNOWN = "unknown"
"""A resource that can't be named; no rule allows it, unless it asks for no resource."""


@dataclass(frozen=True)
class _Mark:
    type: CommandType
    effect: Effect
    agents: frozenset[str]
    roots: frozenset[str]
    hazards: frozenset[Hazard]
    controls: frozenset[str]
    offered: bool
    seconds: Seconds | None


@dataclass(frozen=True)
class ServerTool:
    """One MCP tool of a server that ships with us, and who may use it for what."""

    tool: Tool
    type: CommandType
    effect: Effect
    agents: frozenset[str]
    roots: frozenset[str]
    """The application roots it works in (``word``, ``excel``); empty for any."""
    hazards: frozenset[Hazard] = frozenset()
    """What every call of it does that a person may want to see first."""
    controls: frozenset[str] = frozenset()
    """The kinds of control that it acts on; empty for any."""
    offered: bool = True
    """Whether models are told of it."""
    seconds: Seconds | None = None
    """The longest that a call may take; None: `limits.command_seconds`."""

    @property
    def name(self) -> str:
        """The tool's name, unique within an application root."""
        return self.tool.name


def tool(
    *,
    effect: Effect,
    agents: Collection[str] = (AgentKind.APP,),
    roots: Collection[str] = (),
    type: CommandType = CommandType.ACTION,  # noqa: A002 - the specification's word for it
    hazards: Collection[Hazard] = (),
    controls: Collection[str] = (),
    offered: bool = True,
    seconds: Seconds | None = None,
) -> Callable[[_F], _F]:
    """Mark a method of a server as an MCP tool.

    The docstring's first paragraph is what a model reads; the signature gives the schema. A synchronous method runs
    on its target's lane, an ``async`` one on the event loop. It raises `ToolError` with a text for the model.

    Args:
        effect: What repeating a call does; becomes MCP's ``readOnlyHint`` and ``idempotentHint``.
        agents: The kinds of agent that are offered it.
        roots: The application roots in which it works; empty for any.
        type: Whether the system uses it to see, or a model to act.
        hazards: What every call does that a person may want to see first, by default with an approval. Deleting and
            overwriting become MCP's ``destructiveHint``.
        controls: The kinds of control that it acts on; empty for any. A model may choose from those alone, and
            call it only where there is one.
        offered: Whether models are told of it. One that gives what an agent has anyway only leads small models astray;
            scripts, programs and other MCP clients have it all the same.
        seconds: The longest that a call may take; None: `limits.command_seconds`. Past it the call is in doubt.
    """
    kinds, hazardous = frozenset(controls), frozenset(hazards)
    mark = _Mark(type, effect, frozenset(agents), frozenset(roots), hazardous, kinds, offered, seconds)

    def decorate(function: _F) -> _F:
        setattr(function, _MARK, mark)
        return function

    return decorate


class InDoubtError(ToolError):
    """A tool can't tell whether it has done what it was called for. The text says why; the model is told."""


class Server(ABC):
    """A surface and its tools.

    All methods but `tools` and `coverage` may block and are called on a lane (`lane`), never on an actor's thread.
    Those of a server that says that it never `blocks` are called on the event loop: no thread has to wake up for them.
    Each of them may be a coroutine function, which runs on the event loop.
    """

    name: str
    """Unique within one supervisor."""
    settles: bool = True
    """Whether the surface may go on changing after an action, so that an observation has to wait for it to be quiet."""
    blocks: bool = True
    """Whether its methods, and its tools that are no coroutine functions, may block or take a while."""
    pictures: bool = False
    """Whether its observations have pictures: then a target that settles is looked at without one until it is quiet,
    and once more with it."""
    affine: bool = False
    """Whether all its methods and blocking tools are bound to the thread that opened it: then it has one thread for its
    whole life, and its targets take turns on it."""
    closes_after: float | None = None
    """The seconds after which what was opened for a conversation is closed by `stop`, counted from the end of its last
    task, unless a follow-up begins before; None: never."""
    keeps_versions: bool = False
    """Whether its windows are files that a task may name in `may_change`, each by the id of its target. Before it
    replaces such a file it calls `keep_version`, and `overwritten` tells which calls need no approval then."""
    resource_kinds: tuple[str, ...] = ()
    """The kinds of resource that `resources` names, so that a rule with a mistyped one is noticed."""

    @classmethod
    def needs(cls, options: Mapping[str, Any]) -> Sequence[Need]:
        """Say what the surface needs on this machine, and whether it is there. Must be quick, and start nothing.

        A supervisor whose settings name the surface does not start without what is not optional, and
        `callboard doctor` prints all of it. So the module of a server must be importable without what it needs.

        Args:
            options: The validated options that the settings give; empty where they do not name the surface.
        """
        return ()

    def open(self, stage: Stage) -> Any:  # noqa: B027 - None, or a coroutine; most servers need none
        """Start what the server needs; called once, before any other method, side by side with other servers' `open`.

        Raises:
            Exception: If it can't work here; the supervisor does not start then, and tells the reason.
        """

    def close(self) -> Any:  # noqa: B027 - as `open`
        """End what `open` started: no process, thread, file or port may be left.

        Called once, after the last call of any other method, also after an `open` that failed.
        """

    @abstractmethod
    def targets(self) -> tuple[Target, ...]:
        """List what can be assigned now: windows, startable applications, devices, shells."""

    @abstractmethod
    def observe(self, target: Target, look: Look) -> Observation:
        """Look at one target. A surface that looks the same way for every purpose may leave out `look`.

        Args:
            target: The target.
            look: What the observation is for.

        Raises:
            ToolError: If the target can't be read; the text says why. The subtask fails with it, and the HostAgent may
                go another way. Any other exception is an error, and ends the round.
        """

    def desktop(self, look: Look) -> Observation | Awaitable[Observation | None] | None:
        """Look at the whole of what the server's targets stand on, for HostAgents; None where there is no such thing.

        Its controls are the windows that it shows, each with a target's id and its `box`: they get labels in the
        picture, and one into which a task has put a secret is black. Its text and its facts about the window are told
        to the HostAgent's model.

        Raises:
            ToolError: If it can't be seen; the text says why, and HostAgents are told.
        """
        return None

    def start(self, target: Target, arguments: Mapping[str, JsonValue]) -> Target | Awaitable[Target]:
        """Open an application, and give the window to work in.

        A server that has this gives HostAgents the tool ``open_in_<name>``. It is also called when a subtask is
        assigned to an application that names no tool of its own in `Target.start`. It runs on the lane of the
        application's group. The window belongs to the task if its `owner` is the session that `current_call` tells.

        Args:
            target: The application, one of `targets`.
            arguments: What it opens, such as a file or an address: checked by the target's `takes`.

        Raises:
            ToolError: If it can't be opened; the text says why.
        """
        msg = f"{self.name} opens nothing"
        raise ToolError(msg)

    def stop(self, target: Target) -> Awaitable[None] | None:
        """Close a window. A server that has this gives HostAgents the tool ``close_in_<name>``.

        HostAgents close only what their task has opened, as `Target.owner` says. It runs on the lane of the window.

        Raises:
            ToolError: If it can't be closed; the text says why.
        """
        msg = f"{self.name} closes nothing"
        raise ToolError(msg)

    def fingerprint(self, target: Target) -> str:
        """Give the fingerprint that an observation of the target would have now, without making one where possible.

        It is asked for before each action and until the surface is quiet, so a server that can tell cheaply should.

        Raises:
            ToolError: As `observe`.
        """
        return observed(self, target, Look(picture=False, shown=False)).fingerprint

    def busy(self, target: Target) -> bool | None:
        """Say whether the target is about to change by itself: it loads, or works on what was asked of it.

        None where the server can't tell: then two equal fingerprints count as quiet.
        """
        return None

    def resolve(self, seen: Observation, control: Control) -> Control | None:
        """Find a control that was observed earlier in a later observation, if it is still the same.

        By default it is the same if id, name and kind are.
        """
        wanted = (control.id, control.name, control.kind)
        return next((each for each in seen.controls if (each.id, each.name, each.kind) == wanted), None)

    def hazards(
        self,
        target: Target,
        tool: str,
        arguments: Mapping[str, JsonValue],
        made: Collection[str],
    ) -> set[Hazard]:
        """Say what one call would do that a person may want to see first, beyond what the tool's mark says.

        Args:
            target: The target that it is called on.
            tool: The tool's name.
            arguments: Its checked arguments, without what is bound.
            made: Files that the task has made itself, as absolute paths.
        """
        return set()

    def overwritten(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> Collection[str]:
        """Name the files whose contents a call with the hazard `overwrites` replaces, each by the id of its target.

        If the task may change all of them, the call needs no approval by default. So it must name every file that the
        call overwrites, and nothing if one of them has no target, or is not kept by `keep_version`. It is asked only
        of a server that `keeps_versions`.

        Args:
            target: The target that it is called on.
            tool: The tool's name.
            arguments: Its checked arguments, without what is bound.
        """
        return ()

    def effect(
        self,
        target: Target,
        tool: str,
        arguments: Mapping[str, JsonValue],
    ) -> Effect | None:
        """Say what repeating one call would do, where that depends on its arguments; None: what the tool's mark says.

        One command line only reads, another must not be repeated. An effect that is milder than the mark's has to be
        computed from the parsed arguments: a model, or a text that it read, may have written them to look harmless.

        Args:
            target: The target that it is called on.
            tool: The tool's name.
            arguments: Its checked arguments, without what is bound.
        """
        return None

    def canonical(
        self,
        target: Target | None,
        tool: str,
        arguments: Mapping[str, JsonValue],
    ) -> Mapping[str, JsonValue]:
        """Write the arguments of a call in the one form that the policy's rules see, where there are several.

        A server whose tools take a thing under several names, or without a name, says here which one it is: rules would
        have to list all of them otherwise, and a model could choose the one that was forgotten.

        Args:
            target: The target that it is called on; None for a HostAgent's call.
            tool: The tool's name.
            arguments: All its arguments: checked, with defaults, and with what is bound.

        Raises:
            ToolError: If the tool would refuse them; the rules see them as they are.
        """
        return arguments

    def resources(
        self,
        target: Target | None,
        tool: str,
        arguments: Mapping[str, JsonValue],
    ) -> Collection[str]:
        """Name what a call touches, reading or writing, each as ``<kind>:<name>``: ``file:/home/me/a.txt``.

        A whole is named in place of its parts. What can't be told is `UNKNOWN`; nothing is named by a call that touches
        nothing. The arguments are those of `canonical`.

        Raises:
            ToolError: If the tool would refuse the call; counts as `UNKNOWN`.
        """
        return (UNKNOWN,)

    def coverage(self, target: Target | None, pattern: str, resource: str) -> Coverage:
        """Say how much of a resource the pattern of a rule stands for; by default all, if it fits its text.

        Args:
            target: The target of the call.
            pattern: A glob, or a regular expression after ``re:``.
            resource: One of those that `resources` named.
        """
        return Coverage.ALL if fits(pattern, resource) else Coverage.NONE

    def expected(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        """Give the fingerprint that a target will have after a call that must not be repeated; empty if unknown."""
        return ""

    def probe(
        self,
        target: Target | None,
        intent: Intent,
        foreseen: Sequence[Foreseen],
        fingerprint: str,
    ) -> Probe:
        """Say whether an action was done whose outcome a crash has lost. Must look, and must not guess.

        Unless a server says more, only an action whose effect was `expected` can be told from the surface: that
        nothing is to be seen of any other proves nothing.

        Args:
            target: The target that it was meant for; None for a HostAgent's.
            intent: The action, with the fingerprints of the surface before it and, where `expected` told, after it.
            foreseen: What it noted right before it wrote files, with `foresee`.
            fingerprint: What the surface has now, when it is quiet; empty if it can't be seen.
        """
        if not (fingerprint and intent.expected):
            return Probe.UNKNOWN
        known = {intent.fingerprint: Probe.NOT_DONE, intent.expected: Probe.DONE}
        return known.get(fingerprint, Probe.UNKNOWN)

    def lane(self, target: Target | None) -> str:
        """Name the lane on which calls for a target run one after the other; None for the server's own.

        The targets of a group share one, as they share a lease. Empty for a server that never blocks: its calls need no
        lane.
        """
        if not self.blocks and not self.affine:
            return ""
        if self.affine:
            return f"{self.name}:"
        return f"{self.name}:{target.group or target.id}" if target else f"{self.name}:"

    def tools(self) -> tuple[ServerTool, ...]:
        """Build the tools from the marked methods, sorted by name."""
        return collect(self)

    def mcp_server(self) -> MCPServer:
        """Make a stand-alone MCP server of the same tools, for stdio or HTTP."""
        return MCPServer(self.name, tools=[entry.tool for entry in self.tools()])


def observed(server: Server, target: Target, look: Look) -> Observation:
    """Have a server look at a target, whether or not its `observe` takes the purpose of the look."""
    observe: Callable[..., Observation] = server.observe
    return observe(target, look) if _takes_look(getattr(observe, "__func__", observe)) else observe(target)


@functools.cache
def _takes_look(observe: Callable[..., Observation]) -> bool:
    return "look" in inspect.signature(observe).parameters


def collect(owner: object) -> tuple[ServerTool, ...]:
    """Build tools from the marked methods of a server or of a part of one, sorted by name."""
    found: list[ServerTool] = []
    for attribute in sorted(dir(type(owner))):
        function = getattr(type(owner), attribute)
        mark = getattr(function, _MARK, None)
        if isinstance(mark, _Mark):
            method = getattr(owner, attribute)
            entry = _BUILT.get(function) or _built(method, mark)
            if function.__doc__:  # else it is that of a class that it is inherited from
                _BUILT[function] = replace(entry, tool=entry.tool.model_copy(update={"fn": None}))
            found.append(replace(entry, tool=entry.tool.model_copy(update={"fn": method})))
    return tuple(found)


_BUILT: weakref.WeakKeyDictionary[Callable[..., Any], ServerTool] = weakref.WeakKeyDictionary()
"""Tools by the functions that they are made of, bound to no server: a schema takes some milliseconds to make."""


def _built(method: Callable[..., Any], mark: _Mark) -> ServerTool:
    annotations = ToolAnnotations(
        read_only_hint=mark.effect is Effect.READ,
        idempotent_hint=mark.effect in {Effect.READ, Effect.IDEMPOTENT},
        destructive_hint=bool(mark.hazards & {Hazard.DELETES, Hazard.OVERWRITES}),
        open_world_hint=False,
    )
    summary = (inspect.getdoc(method) or "").partition("\n\n")[0]
    return ServerTool(
        Tool.from_function(method, description=summary, annotations=annotations),
        mark.type,
        mark.effect,
        mark.agents,
        mark.roots,
        mark.hazards,
        mark.controls,
        mark.offered,
        mark.seconds,
    )
