"""Third-party MCP servers: one session each, which outlives its connections."""

from __future__ import annotations

import asyncio
import hashlib
import math
from typing import TYPE_CHECKING, Any

from callboard.actors.commands._bound_tools import (
    BoundTool,
    ConnectionLostError,
    ToolFailure,
    declared_secret,
    effect_of,
    schema_problem,
)
from callboard.actors.commands._canonical import by_schema
from callboard.actors.commands._mcp_programs import program_needed
from callboard.actors.commands._modern_schema import modern
from callboard.actors.commands._policy_rules import Facts
from callboard.actors.commands._secrets import SecretPlace
from callboard.actors.commands._unmatched import nearest
from callboard.actors.commands.mcp._bounded_content import answer_of
from callboard.actors.commands.mcp._running_calls import RunningCalls
from callboard.actors.commands.mcp._server_connection import About, McpConnection, Tell
from callboard.actors.commands.mcp._server_restarts import McpRestarts
from callboard.config import McpTool, in_url, masked
from callboard.messages import CommandType, Effect, Hazard, SettingsError, reason_of
from callboard.models import ToolInfo
from callboard.surfaces import UNKNOWN, check_needs, current_call

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import Tool
    from pydantic import JsonValue

    from callboard.actors.commands._policy_rules import Asked
    from callboard.actors.commands.mcp._bounded_content import ToolAnswer
    from callboard.config import McpServer, Settings
    from callboard.surfaces import EffectGuard


COMPARED = 1000
"""The most calls whose latest answer is remembered."""
REMOVED = 1000
"""The most removed tools whose names are remembered."""
_PLAIN = McpTool()


def _ignore(*_: object, **__: object) -> None:
    """Drop an event."""


class McpSession:
    """The session with one MCP server, across all of its connections.

    Runs on the event loop; any task there may call its tools.

    A lost server is restarted by the next use (`McpRestarts`). Its tools are those that it has listed last.
    """

    def __init__(self, name: str, server: McpServer, settings: Settings, tell: Tell = _ignore) -> None:
        """Create it; `tell` emits events that do not belong to a call."""
        self.name = name
        self.everywhere = server.everywhere
        self.on_target = server.on_target
        self.agents = tuple(dict.fromkeys((*server.on_target, *server.everywhere)))
        """The kinds of agent that have its tools, on its own target or everywhere."""
        self.target_surface = f"mcp:{name}"
        """The name of the surface of its target."""
        self.about = About()
        self.trusted = server.trusted
        self.optional = server.optional
        self._server = server
        self._settings = settings
        self._tell = tell
        self._calls = RunningCalls(name, tell, asks=settings.system.ask_question)
        self._tools: tuple[Tool, ...] = ()
        self.version = 0
        """The number of times that its tools have changed."""
        self._removed: dict[str, None] = {}
        self.restarts = McpRestarts(name, self._new_connection, settings.supervision)
        self._answers: dict[bytes, bytes] = {}
        """The digest of the latest answer, by the digest of the call."""
        self.changes = 0
        """The number of calls whose answer differed from that of the same call before."""

    async def open(self) -> None:
        """Connect and list the tools.

        Raises:
            SettingsError: If the server can't be started or reached in time.
        """
        check_needs((f"mcpServers.{self.name}", need) for need in program_needed(self._server))
        try:
            connection = await self.restarts.open()
        except Exception as error:
            url = self._server.url
            where = "" if url is None else f" to {masked(url, in_url(url))}"
            msg = f"mcpServers.{self.name}: no connection{where}: {reason_of(error)}"
            raise SettingsError(msg) from error
        self.about = connection.about

    def _new_connection(self) -> McpConnection:
        return McpConnection(
            self.name, self._server, self._settings, self._tell, self._calls.elicit, listed=self._listed
        )

    def _listed(self, tools: tuple[Tool, ...]) -> None:
        """Take the tools that the server has now."""
        if tools == self._tools:
            return
        names = {tool.name for tool in tools}
        removed = {**self._removed, **{tool.name: None for tool in self._tools}}
        self._removed = dict.fromkeys([name for name in removed if name not in names][-REMOVED:])
        self._tools = tools
        self.version += 1

    def has_removed(self, name: str) -> bool:
        """Return whether the server has removed a tool of this full name."""
        server, _, tool = name.partition(".")
        return server == self.name and tool in self._removed

    async def close(self) -> None:
        """Disconnect for good, and end the server's program if there is one."""
        await self.restarts.close()

    @property
    def ready(self) -> bool:
        """True while its tools can be called without another connection."""
        connection = self.restarts.connection
        return connection is not None and connection.connected

    def tools(self) -> tuple[RemoteTool, ...]:
        """Return its tools, named ``<server>.<tool>``."""
        settings = self._server.tools
        return tuple(
            RemoteTool(self, tool, settings.get(tool.name, _PLAIN))
            for tool in self._tools
            if settings.get(tool.name, _PLAIN).offered
        )

    def unknown_tools(self) -> Iterator[str]:
        """Report tools in the settings that the server lacks.

        Each comes with the nearest name.
        """
        names = [tool.name for tool in self._tools]
        for name in self._server.tools.keys() - set(names):
            yield f"mcpServers.{self.name}.tools: the server has no tool {name!r}{nearest(name, names)}"

    async def call(self, tool: str, arguments: Mapping[str, JsonValue], guard: EffectGuard | None = None) -> JsonValue:
        """Call a tool over the protocol.

        `guard` receives the answer's pictures and the progress.

        Raises:
            ToolFailure: If the tool answered with an error.
            ConnectionLostError: If the server went away during the call.
            ConnectionError: If the server is not connected, and can't be reconnected: nothing was sent.
        """
        connection = await self.restarts.connected()
        try:
            with self._calls.run(tool, guard):
                answer = answer_of(await connection.call(tool, arguments, _progress_of(guard)))
        except asyncio.CancelledError:  # the call timed out, or its task was stopped: the server may hang
            self.restarts.check_later(connection)
            raise
        await connection.listed()
        self._compare((tool, arguments), answer)
        if guard is not None:
            guard.pictures += answer.pictures
        return answer.value

    def _compare(self, call: object, answer: ToolAnswer) -> None:
        """Count an answer that differs from the same call's last one.

        The server's state has then changed.
        """
        key, answered = (hashlib.sha256(repr(part).encode()) for part in (call, answer.value))
        for picture in answer.pictures:
            answered.update(picture)
        previous_digest = self._answers.pop(key.digest(), answered.digest())
        self.changes += previous_digest != answered.digest()
        self._answers[key.digest()] = answered.digest()
        if len(self._answers) > COMPARED:
            del self._answers[next(iter(self._answers))]


def _progress_of(guard: EffectGuard | None) -> ProgressFnT | None:
    """Make a callback that reports a server's progress as the call's.

    None without a keeper.
    """
    if guard is None or guard.keeper is None:
        return None
    with guard.active():
        call = current_call()

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        share = progress / total if total and math.isfinite(progress / total) else None
        amount = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        call.progress(message or amount, None if share is None else min(1.0, max(0.0, share)))

    return tell


async def open_sessions(sessions: Sequence[McpSession]) -> dict[str, str]:
    """Open sessions concurrently.

    Returns:
        The reason for each optional server that can't be started, by the server's name.

    Raises:
        SettingsError: If other servers can't be started; it names all of them. The caller closes the sessions.
    """
    outcomes = await asyncio.gather(*(session.open() for session in sessions), return_exceptions=True)
    failed = []
    for session, error in zip(sessions, outcomes, strict=True):
        if isinstance(error, SettingsError):
            failed.append((session, error))
        elif error is not None:
            raise error
    needed = [error for session, error in failed if not session.optional]
    if needed:
        commands = dict.fromkeys(command for error in needed for command in error.commands)
        raise SettingsError("; ".join(map(str, needed)), tuple(commands))
    return {session.name: str(error) for session, error in failed}


_BRANCHES = ("allOf", "anyOf", "oneOf")


def _offered_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Make the schema for models.

    It is without nulls, and open if branches declare parameters. Most servers omit `additionalProperties` and accept no
    further parameters. Their schemas are left without it, so that all arguments have types.
    """
    keywords = {key: part for key, part in schema.items() if part is not None}
    try:
        open_ = _declares_elsewhere(keywords)
    except (AttributeError, TypeError, RecursionError):  # a third-party schema may be anything
        open_ = True
    return {"additionalProperties": True, **keywords} if open_ else keywords


def _declares_elsewhere(schema: Mapping[str, Any]) -> bool:
    """Return whether other parts of a schema may declare parameters.

    The parts are references and branches.
    """
    properties = schema.get("properties", {})
    branches = [branch for name in _BRANCHES for branch in schema.get(name, ())]
    branches += [schema[name] for name in ("then", "else") if name in schema]
    branches += schema.get("dependentSchemas", {}).values()
    return "$ref" in schema or any(
        isinstance(branch, dict)
        and (
            not branch.get("properties", {}).keys() <= properties.keys()
            or _declares_elsewhere({**branch, "properties": properties})
        )
        for branch in branches
    )


class RemoteTool(BoundTool):
    """A tool of a third-party server.

    It has no surface, so nothing can be bound or rechecked.
    """

    def __init__(self, session: McpSession, tool: Tool, tool_settings: McpTool = _PLAIN) -> None:
        self._session = session
        self._tool = tool
        self._tool_settings = tool_settings
        self.seconds = tool_settings.seconds
        self.type = CommandType.ACTION
        self.binds = {}
        self._schema = modern(tool.input_schema)
        self.info = ToolInfo(
            name=f"{session.name}.{tool.name}",
            description=tool.description or "",
            schema=_offered_schema(self._schema),
            effect=tool_settings.effect or effect_of(tool.annotations, trusted=session.trusted),
            names_controls=False,
        )
        declared = declared_secret(self._schema) if session.trusted else frozenset[str]()
        self.place = SecretPlace(self.info.name, declared)

    def same_facts(self, query: Asked) -> Facts | None:
        """Return its hazards, unless the rules look at arguments."""
        return None if query.arguments or query.resources or query.explain else Facts(self.hazards)

    async def facts(self, arguments: Mapping[str, JsonValue], task_files: Collection[str], query: Asked) -> Facts:
        """Read the tool's schema and annotations; the resources it touches are unknown."""
        canonical_arguments, inexact = by_schema(self._schema, arguments)
        return Facts(self.hazards, None, canonical_arguments, inexact, {UNKNOWN: {}})

    @property
    def hazards(self) -> frozenset[Hazard]:
        """The reasons why a person may want to approve each call.

        A tool that may be destructive is a hazard, and so is an unknown one with effect `once`. According to MCP, a
        tool that changes something may be destructive unless its ``destructiveHint`` is false. Hazards from the
        operator's settings take precedence.
        """
        if self._tool_settings.hazards is not None:
            return frozenset(self._tool_settings.hazards)
        annotations = self._tool.annotations if self._session.trusted else None
        if self.info.effect is Effect.READ:
            return frozenset()
        if self.info.effect is Effect.ONCE and not (annotations and annotations.destructive_hint):
            return frozenset({Hazard.UNKNOWN})
        return (
            frozenset()
            if annotations is not None and annotations.destructive_hint is False
            else frozenset({Hazard.DELETES})
        )

    def check(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """Describe the error in arguments.

        Unknown ones are accepted unless the schema forbids them.
        """
        silent = "additionalProperties" not in self.info.schema
        return self._check(arguments) if silent else super().check(arguments)

    def _check(self, arguments: Mapping[str, JsonValue]) -> str | None:
        problem = schema_problem(self._schema, arguments)  # nothing is bound
        return f"{self.info.name}: {problem}" if problem else None

    async def call(self, arguments: Mapping[str, JsonValue], guard: EffectGuard) -> JsonValue:
        """Call it over the protocol, if the lease is still valid."""
        guard.check()
        try:
            return await self._session.call(self._tool.name, arguments, guard)
        except ConnectionLostError as error:
            if self.info.effect is Effect.READ:
                msg = f"{error}; it only reads"
                raise ToolFailure(msg) from error
            msg = f"{error}: whether it was done is in doubt"
            raise ConnectionLostError(msg) from error
