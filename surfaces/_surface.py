"""Base class of surfaces, and their MCP tools."""

from __future__ import annotations

import functools
import inspect
import weakref
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

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
from callboard.surfaces._tool_function import InDoubtError, ToolError, ToolFunction

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from mcp.server.mcpserver import MCPServer
    from pydantic import JsonValue

    from callboard.surfaces._need import Need
    from callboard.surfaces._stage import Stage

__all__ = ["UNKNOWN", "InDoubtError", "Server", "SurfaceTool", "ToolError", "observed", "tool"]

_F = TypeVar("_F", bound="Callable[..., Any]")
_MARK = "__callboard_tool__"
_HARMLESS = "__callboard_reads_are_harmless__"
UNKNOWN = "unknown"
"""A resource that can't be named. No rule allows it, except a rule without a resource pattern."""


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
    takes_disabled: bool


@dataclass(frozen=True)
class SurfaceTool:
    """One MCP tool of a surface, with its effect and agents."""

    tool: ToolFunction
    type: CommandType
    effect: Effect
    agents: frozenset[str]
    roots: frozenset[str]
    """The application roots it works in (``word``, ``excel``); empty for any."""
    hazards: frozenset[Hazard] = frozenset()
    """The hazards of every call, for which a person may want to give an approval."""
    controls: frozenset[str] = frozenset()
    """The kinds of control that it acts on; empty for any."""
    offered: bool = True
    """Whether models are offered it."""
    seconds: Seconds | None = None
    """The longest that a call may take; None: `limits.command_seconds`."""
    takes_disabled: bool = False
    """Whether it is called for disabled controls, too, because it changes none."""

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
    takes_disabled: bool = False,
) -> Callable[[_F], _F]:
    """Mark a method of a surface as an MCP tool.

    Models read the first paragraph of the docstring. The signature gives the schema. A synchronous method runs on its
    target's lane, an ``async`` method on the event loop. It raises `ToolError` with a text for the model.

    Args:
        effect: The effect of a repeated call; becomes MCP's ``readOnlyHint`` and ``idempotentHint``.
        agents: The kinds of agent that are offered it.
        roots: The application roots in which it works; empty for any.
        type: Whether the system uses it to observe, or a model to act.
        hazards: The hazards of every call, which need an approval by default. Deleting and overwriting become MCP's
            ``destructiveHint``.
        controls: The kinds of control that it acts on; empty for any. A model may choose only from these controls, and
            may call the tool only where there is one.
        offered: Whether models are offered it. A tool that only returns information which an agent has anyway misleads
            small models. Scripts, programs and other MCP clients can call it in any case.
        seconds: The longest that a call may take; None: `limits.command_seconds`. After that the call is in doubt.
        takes_disabled: Whether it is called for disabled controls, too, because it changes none: it scrolls.

    Example:
        >>> class Clock(MemoryServer):
        ...     @tool(effect=Effect.READ)
        ...     def now(self) -> str:
        ...         'Return the time.'
        ...         return "12:00"
        >>> "now" in [entry.name for entry in Clock().tools()]
        True
    """
    if not isinstance(effect, Effect):
        msg = f"tool: effect is one of {', '.join(f'Effect.{each.name}' for each in Effect)}, not {effect!r}"
        raise TypeError(msg)
    kinds, hazardous = frozenset(controls), frozenset(hazards)
    mark = _Mark(type, effect, frozenset(agents), frozenset(roots), hazardous, kinds, offered, seconds, takes_disabled)

    def decorate(function: _F) -> _F:
        setattr(function, _MARK, mark)
        return function

    return decorate


class Server(ABC):
    """A surface and its tools.

    All methods except `tools` and `coverage` may block. They are called on a lane (`lane`), never on an actor's thread.
    The methods of a surface whose `blocks` is false are called on the event loop, which saves waking a thread. Each of
    them may be a coroutine function, which runs on the event loop.
    """

    name: str
    """Unique within one supervisor."""
    settles: bool = True
    """Whether the surface may keep changing after an action, so that an observation has to wait until it is quiet."""
    blocks: bool = True
    """Whether its methods, and its tools that are not coroutine functions, may block or take a while."""
    pictures: bool = False
    """Whether its observations have pictures. A target that settles is then observed without one until it is quiet,
    and once more with it."""
    affine: bool = False
    """Whether all its methods and blocking tools are bound to the thread that opened it. It then has one thread for its
    whole life, and its targets take turns on it."""
    hazards_of_host: bool = False
    """Whether `hazards` is also asked about HostAgents' calls, with None as the target."""
    closes_after: float | None = None
    """The seconds after which `stop` closes the targets that were opened for a conversation, counted from the end of
    its last task, unless a follow-up begins before; None: never."""
    keeps_versions: bool = False
    """Whether its windows are files that a task may name in `may_change`, each by the id of its target. Before it
    replaces such a file it calls `keep_version`, and `overwritten` tells which calls need no approval then."""
    resource_kinds: tuple[str, ...] = ()
    """The kinds of resource that `resources` names, so that a mistyped kind in a rule is detected."""

    def __repr__(self) -> str:
        """Show the class and the name."""
        return f"<{type(self).__name__} {getattr(self, 'name', '')!r}>"

    @classmethod
    def needs(cls, options: Mapping[str, Any]) -> Sequence[Need]:
        """List the surface's requirements on this machine, and whether each is met.

        It must be quick, and start nothing. A supervisor whose settings name the surface does not start while a
        requirement that is not optional is missing. `callboard doctor` prints all of them. So the module of a surface
        must be importable while its requirements are missing.

        Args:
            options: The validated options from the settings; empty where the settings do not name the surface.
        """
        return ()

    def open(self, stage: Stage) -> Any:  # noqa: B027 - None, or a coroutine; most surfaces need none
        """Start the surface's resources.

        Called once, before any other method, concurrently with the `open` of other surfaces.

        Raises:
            Exception: If the surface can't work here. The supervisor then reports the reason, and does not start.
        """

    def close(self) -> Any:  # noqa: B027 - as `open`
        """Release everything that `open` started: processes, threads, files and ports.

        Called once, after the last call of any other method, also after an `open` that failed.
        """

    @abstractmethod
    def targets(self) -> tuple[Target, ...]:
        """List the targets that can be assigned now.

        They are windows, startable applications, devices or shells.
        """

    @abstractmethod
    def observe(self, target: Target, look: Look) -> Observation:
        """Observe one target.

        A surface that observes in the same way for every purpose may omit the parameter `look`.

        Args:
            target: The target.
            look: The purpose of the observation.

        Raises:
            ToolError: If the target can't be read; the text gives the reason. The subtask fails with it, and the
                HostAgent may try another way. Any other exception is an error, and ends the round.
        """

    def desktop(self, look: Look) -> Observation | Awaitable[Observation | None] | None:
        """Observe the whole screen behind the targets, for HostAgents; None without one.

        Its controls are the visible windows, each with a target's id and its `box`. They get labels in the picture. A
        window into which a task has put a secret is black. The HostAgent's model gets the text, and the facts about
        the window.

        Raises:
            ToolError: If the screen can't be observed; HostAgents get the text, which gives the reason.
        """
        return None

    def start(self, target: Target, arguments: Mapping[str, JsonValue]) -> Target | Awaitable[Target]:
        """Open an application, and return its window.

        A surface that overrides this gives HostAgents the tool ``open_in_<name>``. It is also called when a subtask is
        assigned to an application that names no tool of its own in `Target.start`. It runs on the lane of the
        application's group. The window belongs to the task if its `owner` is the session of `current_call`.

        Args:
            target: The application, one of `targets`.
            arguments: The thing to open, such as a file or an address, validated against the target's `takes`.

        Raises:
            ToolError: If it can't be opened; the text gives the reason.
        """
        msg = f"{self.name} can't open targets"
        raise ToolError(msg)

    def stop(self, target: Target) -> Awaitable[None] | None:
        """Close a window.

        A surface that overrides this gives HostAgents the tool ``close_in_<name>``. HostAgents close only windows that
        their task has opened, according to `Target.owner`. It runs on the lane of the window.

        Raises:
            ToolError: If it can't be closed; the text gives the reason.
        """
        msg = f"{self.name} can't close targets"
        raise ToolError(msg)

    def files(self) -> Mapping[str, Path]:
        """List the surface's files by the names in tasks.

        Checks of changed files compare them. Empty by default, for a surface without files.

        Raises:
            ToolError: If they can't be listed; the text gives the reason. The check then does not hold.
        """
        return {}

    def no_target(self, name: str) -> str:
        """Explain why a name is no target, and what to do.

        It is asked when a task names a target that no surface lists. Empty if unknown. It must not block.
        """
        return ""

    def fingerprint(self, target: Target) -> str:
        """Return the fingerprint that an observation of the target would have now.

        It is computed before each action, and repeatedly until the surface is quiet. A surface should avoid making an
        observation for it where it can.

        Raises:
            ToolError: As `observe`.
        """
        return observed(self, target, Look(picture=False, shown=False)).fingerprint

    def busy(self, target: Target) -> bool | None:
        """Return whether the target is about to change by itself.

        It is, for example, while it loads or works on a request. None where the surface can't tell: then two equal
        fingerprints count as quiet.
        """
        return None

    def resolve(self, seen: Observation, control: Control) -> Control | None:
        """Find a control again in a later observation; None if changed.

        By default it is the same if its id, name and kind are equal.
        """
        identity = (control.id, control.name, control.kind)
        return next(
            (candidate for candidate in seen.controls if (candidate.id, candidate.name, candidate.kind) == identity),
            None,
        )

    def hazards(
        self,
        target: Target,
        tool: str,
        arguments: Mapping[str, JsonValue],
        made: Collection[str],
    ) -> set[Hazard]:
        """Return a call's hazards, in addition to those declared on the tool.

        It is asked about each call, also of tools that only read: what a call reaches is a fact about the call.

        Args:
            target: The target that it is called on.
            tool: The tool's name.
            arguments: Its validated arguments, without the bound ones.
            made: Files that the task has created itself, as absolute paths.
        """
        return set()

    def overwritten(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> Collection[str]:
        """Return the files that a call overwrites, by their targets' ids.

        If the task may change all of them, the call needs no approval by default. So it must name every file that the
        call overwrites, and nothing if one of them has no target, or is not kept by `keep_version`. It is asked only
        of a surface that `keeps_versions`.

        Args:
            target: The target that it is called on.
            tool: The tool's name.
            arguments: Its checked arguments, without what is bound.
        """
        return ()

    def deleted(self, target: Target | None, tool: str, arguments: Mapping[str, JsonValue]) -> Mapping[str, str]:
        """Return the fingerprints of the files that a call deletes.

        By their absolute paths. If the task created all of them, and each has the fingerprint that `foresee` announced
        last, the call needs no approval by default. So it must name every file that the call deletes, and nothing if
        one of them is not an ordinary file. It is asked about calls whose only hazard is that they delete. `arguments`
        as for `hazards`.
        """
        return {}

    def replaced(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        """Describe the content that a call would replace; empty if unknown.

        The text is shown to the person who is asked to approve the call. `arguments` as for `hazards`.
        """
        return ""

    def recipient(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        """Name the recipient of what a call would send; empty if unknown.

        The text is shown to the person who is asked to approve the call. `arguments` as for `hazards`.
        """
        return ""

    def effect(
        self,
        target: Target,
        tool: str,
        arguments: Mapping[str, JsonValue],
    ) -> Effect | None:
        """Return one call's effect; None for the effect declared on the tool.

        It is for tools whose effect depends on the arguments: one command line only reads, another must not be
        repeated. An effect milder than the declared one has to be computed from the parsed arguments: a model, or a
        text that it read, may have written them to look harmless.

        Args:
            target: The target that it is called on.
            tool: The tool's name.
            arguments: Its validated arguments, without the bound ones.
        """
        return None

    def form(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> JsonValue:
        """Return the parts of a call that no filled value may change.

        They are for arguments that are written in a language, such as a command line or a query. A routine fills values
        into these: parameters, items and earlier results. For each such call it is asked twice: once with a mark in
        place of each value, and once with the values. A mark is a number of 30 digits, or several with the signs of a
        parameter's usual value between them: one for each of its words. In the first answer each mark is then replaced
        by its value, in all texts but the keys of objects. If the answers differ, the call is not made. So a word that
        a value may be is a text, and a keyword, a program or an operator is a key. None, the default, is for calls
        whose arguments are plain data.

        Args:
            target: The target that it is called on.
            tool: The tool's name.
            arguments: Its validated arguments, without the bound ones.

        Raises:
            ToolError: If the form can't be told; the call is not made.
        """
        return None

    def relies_on(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """Return the facts that a call relies on, by name.

        They hold right before it, and no control or window shows them: the files that a command names. They are kept
        with each call, and a routine that is recorded from it has them. When it repeats the call, each of its facts
        must be the same, or it stops before the call: "expected 'may.csv' to be a file; found missing". A fact that
        differs from run to run, such as a time, would stop each routine. `arguments` as for `form`.
        """
        return {}

    def leaves(
        self, target: Target, tool: str, arguments: Mapping[str, JsonValue], answer: JsonValue
    ) -> Mapping[str, JsonValue]:
        """Return the facts right after a call that succeeded, by name.

        A routine that repeats the call stops if one of them is another. `arguments` as for `form`.
        """
        return {}

    def canonical(
        self,
        target: Target | None,
        tool: str,
        arguments: Mapping[str, JsonValue],
    ) -> Mapping[str, JsonValue]:
        """Return a call's arguments in the canonical form for the policy's rules.

        It is for tools that accept one thing under several names, or without a name. Otherwise rules would have to list
        all the names, and a model could choose a name that is not in the list.

        Args:
            target: The target that it is called on; None for a HostAgent's call.
            tool: The tool's name.
            arguments: All its arguments: validated, with defaults and bound ones.

        Raises:
            ToolError: If the tool would refuse them. The rules then see them unchanged.
        """
        return arguments

    def resources(
        self,
        target: Target | None,
        tool: str,
        arguments: Mapping[str, JsonValue],
    ) -> Collection[str]:
        """Name the resources that a call reads or writes, as ``<kind>:<name>``: ``file:/home/me/a.txt``.

        A container stands for its parts. A resource that can't be determined is `UNKNOWN`. A call that touches nothing
        has an empty result. The arguments are those of `canonical`.

        Raises:
            ToolError: If the tool would refuse the call; counts as `UNKNOWN`.
        """
        return (UNKNOWN,)

    def coverage(self, target: Target | None, pattern: str, resource: str) -> Coverage:
        """Return how much of a resource a rule's pattern covers.

        By default it covers all of it if it matches, else none.

        Args:
            target: The target of the call.
            pattern: A glob, or a regular expression after ``re:``.
            resource: One of those that `resources` named.
        """
        return Coverage.ALL if fits(pattern, resource) else Coverage.NONE

    def expected(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        """Predict the fingerprint after a call of a tool; empty if unknown.

        It is used for calls that must not be repeated.
        """
        return ""

    def probe(
        self,
        target: Target | None,
        intent: Intent,
        foreseen: Sequence[Foreseen],
        fingerprint: str,
    ) -> Probe:
        """Find out whether an action was done before a crash.

        It has to look at the surface, and must not guess. By default, only an action with an `expected` fingerprint can
        be verified on the surface. For any other action, no visible change is not proof.

        Args:
            target: The target of the action; None for a HostAgent's.
            intent: The action, with the fingerprints of the surface before it and, where `expected` gave one, after it.
            foreseen: The notes that it made with `foresee` right before it wrote files.
            fingerprint: The current fingerprint of the quiet surface; empty if it can't be observed.
        """
        if not (fingerprint and intent.expected):
            return Probe.UNKNOWN
        probes = {intent.fingerprint: Probe.NOT_DONE, intent.expected: Probe.DONE}
        return probes.get(fingerprint, Probe.UNKNOWN)

    def lane(self, target: Target | None) -> str:
        """Name the lane that serializes the calls for a target.

        Without a target it is the surface's own lane. The targets of a group share one lane, as they share a lease. The
        name is empty for a surface that never blocks: its calls need no lane.
        """
        if not self.blocks and not self.affine:
            return ""
        if self.affine:
            return f"{self.name}:"
        return f"{self.name}:{target.group or target.id}" if target else f"{self.name}:"

    def tools(self) -> tuple[SurfaceTool, ...]:
        """Build the tools from the marked methods, sorted by name."""
        return collect(self)

    def mcp_server(self) -> MCPServer:
        """Build a stand-alone MCP server with the tools.

        It can be served over stdio or HTTP.
        """
        from callboard.surfaces._mcp_server import mcp_server

        return mcp_server(self.name, self.tools())


def harmless_reads(hazards: _F) -> _F:
    """Mark a `Server.hazards` that reports nothing about tools that read.

    It is not asked about them, which saves waking a thread. The mark is on the method, so that a subclass which
    overrides it is asked about each call again.
    """
    setattr(hazards, _HARMLESS, True)
    return hazards


def reads_are_harmless(surface: Server) -> bool:
    """Return whether a surface's `hazards` has the mark of `harmless_reads`."""
    return getattr(surface.hazards, _HARMLESS, False)


def observed(surface: Server, target: Target, look: Look) -> Observation:
    """Observe a target, whether or not the surface's `observe` takes a `look`."""
    observe: Callable[..., Observation] = surface.observe
    return observe(target, look) if _takes_look(getattr(observe, "__func__", observe)) else observe(target)


@functools.cache
def _takes_look(observe: Callable[..., Observation]) -> bool:
    return "look" in inspect.signature(observe).parameters


def collect(owner: object) -> tuple[SurfaceTool, ...]:
    """Build tools from the marked methods of an object, sorted by name."""
    tools: list[SurfaceTool] = []
    for attribute in sorted(dir(type(owner))):
        function = getattr(type(owner), attribute)
        mark = getattr(function, _MARK, None)
        if isinstance(mark, _Mark):
            method = getattr(owner, attribute)
            entry = _BUILT.get(function) or _build_tool(method, mark)
            if function.__doc__:  # otherwise `getdoc` finds that of a base class
                _BUILT[function] = replace(entry, tool=replace(entry.tool, fn=_unbound))
            tools.append(replace(entry, tool=replace(entry.tool, fn=method)))
    return tuple(tools)


_BUILT: weakref.WeakKeyDictionary[Callable[..., Any], SurfaceTool] = weakref.WeakKeyDictionary()
"""Tools by function, not bound to a surface: building a schema takes some milliseconds."""


def _unbound(*_: object) -> None:
    """Stand for the method of a tool that no surface owns."""


def _build_tool(method: Callable[..., Any], mark: _Mark) -> SurfaceTool:
    summary = (inspect.getdoc(method) or "").partition("\n\n")[0]
    return SurfaceTool(
        ToolFunction.of(method, summary),
        mark.type,
        mark.effect,
        mark.agents,
        mark.roots,
        mark.hazards,
        mark.controls,
        mark.offered,
        mark.seconds,
        mark.takes_disabled,
    )
