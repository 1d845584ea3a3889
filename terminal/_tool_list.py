"""The command `tools`: agents' tools.

It prints their arguments, effects and hazards.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

from callboard.actors.commands import Secrets, opening_tools
from callboard.config import keys_of
from callboard.messages import CommandType, SettingsError, did_you_mean, each_text
from callboard.surfaces import SHIPPED, Server, check_needs, named_surfaces
from callboard.terminal._commands import fail, warn
from callboard.terminal._journals import print_json
from callboard.terminal._text import plain, print_hanging

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

    from callboard.actors.commands.mcp import McpSession
    from callboard.config import Settings
    from callboard.surfaces import NamedSurface, ServerTool


_DEEPEST = 5
"""The depth to which a nested type is described."""
_NOTHING = "no surface and no MCP server is configured: pass settings that name one (--settings FILE)"


@dataclass(frozen=True, kw_only=True)
class ArgumentListing:
    """One argument of a tool, from its JSON Schema."""

    name: str
    type: str
    required: bool
    default: str = ""
    """As JSON; empty if there is none."""
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class ToolListing:
    """One tool, as far as it can be described without its target."""

    name: str
    description: str
    arguments: tuple[ArgumentListing, ...]
    effect: str
    hazards: tuple[str, ...]
    agents: tuple[str, ...]
    applications: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    seconds: float
    """The time limit of a call."""
    offered: bool = True
    """Whether models see it; others are for programs, or for the system itself."""


@dataclass(frozen=True, kw_only=True)
class ServerListing:
    """One server, with its tools."""

    name: str
    tools: tuple[ToolListing, ...] = ()
    resource_kinds: tuple[str, ...] = ()
    """The kinds of resource that rules of the policy can name; none for a server that does not report the resources of
    a call."""
    by_call: tuple[str, ...] = ()
    """The properties, effect or hazards, that the server may set for a single call."""
    failed: str = ""
    """The reason why its tools are unknown."""
    optional: bool = False
    """Whether a supervisor starts without it."""


def offers(settings: Settings, server_name: str = "") -> tuple[ServerListing, ...]:
    """Describe the tools of all servers.

    Starts the MCP servers, and ends them; all others are only made, and not opened.

    Args:
        settings: The settings that name them.
        server_name: The one server to describe; empty for all.

    Raises:
        SettingsError: If a surface names no plug-in.
    """
    surfaces = [surface for surface in list(named_surfaces(settings)) if server_name in {"", surface.name}]
    servers = [name for name in settings.mcp_servers if server_name in {"", name}]
    listed = tuple(_surface(surface, settings) for surface in surfaces)
    return (*_redacted(listed, settings), *mcp_offers(settings, servers))


def mcp_offers(settings: Settings, names: Iterable[str]) -> tuple[ServerListing, ...]:
    """Start MCP servers, describe their tools, and end them."""
    from callboard.actors.commands.mcp import McpSession

    sessions = [McpSession(name, settings.mcp_servers[name], settings) for name in names]
    return _redacted(asyncio.run(_started(sessions, settings)), settings) if sessions else ()


def _redacted(listed: Iterable[ServerListing], settings: Settings) -> tuple[ServerListing, ...]:
    """Redact keys and secrets: a server may reveal its start arguments."""
    redacted_listings: tuple[ServerListing, ...] = each_text(
        tuple(listed), Secrets(settings.secrets, keys_of(settings)).redactor("").text
    )
    return redacted_listings


def _surface(surface: NamedSurface, settings: Settings) -> ServerListing:
    try:
        check_needs((surface.where, need) for need in surface.needs(settings))
        server = surface.make(settings)
    except SettingsError as error:
        return ServerListing(name=surface.name, failed=str(error))
    limit = settings.limits.command_seconds
    overrides = {name: getattr(type(server), name) is not getattr(Server, name) for name in ("effect", "hazards")}
    return ServerListing(
        name=server.name,
        tools=tuple(_of_server(tool, limit) for tool in (*server.tools(), *opening_tools(server))),
        resource_kinds=tuple(server.resource_kinds),
        by_call=tuple(name for name, defined in overrides.items() if defined),
    )


def _of_server(tool: ServerTool, limit: float) -> ToolListing:
    return ToolListing(
        name=tool.name,
        description=tool.tool.description,
        arguments=arguments_of(tool.tool.parameters),
        effect=tool.effect.value,
        hazards=tuple(sorted(tool.hazards)),
        agents=tuple(sorted(tool.agents)),
        applications=tuple(sorted(tool.roots)),
        controls=tuple(sorted(tool.controls)),
        seconds=tool.seconds or limit,
        offered=tool.offered and tool.type is CommandType.ACTION,
    )


async def _started(sessions: list[McpSession], settings: Settings) -> list[ServerListing]:
    """Start MCP servers side by side, list their tools, and end them."""
    try:
        outcomes = await asyncio.gather(*(session.open() for session in sessions), return_exceptions=True)
        return [_session(session, error, settings) for session, error in zip(sessions, outcomes, strict=True)]
    finally:
        await asyncio.gather(*(session.close() for session in sessions))


def _session(session: McpSession, error: BaseException | None, settings: Settings) -> ServerListing:
    if isinstance(error, SettingsError):
        return ServerListing(name=session.name, failed=str(error), optional=session.optional)
    if error is not None:
        raise error
    limit = settings.limits.command_seconds
    tools = tuple(
        ToolListing(
            name=tool.info.name,
            description=tool.info.description,
            arguments=arguments_of(tool.info.schema),
            effect=tool.info.effect.value,
            hazards=tuple(sorted(tool.hazards)),
            agents=tuple(session.agents),
            seconds=tool.seconds or limit,
        )
        for tool in session.tools()
    )
    return ServerListing(name=session.name, tools=tools, optional=session.optional)


def arguments_of(schema: Mapping[str, Any]) -> tuple[ArgumentListing, ...]:
    """Read the arguments from a JSON Schema.

    A third party's schema may hold anything.
    """
    parts, required = schema.get("properties"), schema.get("required")
    named = parts if isinstance(parts, dict) else {}
    required_names = required if isinstance(required, list) else []
    arguments = []
    for name, part in named.items():
        argument = part if isinstance(part, dict) else {}
        arguments.append(
            ArgumentListing(
                name=str(name),
                type=_type(argument, schema),
                required=name in required_names,
                default=json.dumps(argument["default"], ensure_ascii=False) if "default" in argument else "",
                description=str(argument.get("description") or ""),
            )
        )
    return tuple(arguments)


def _type(part: Any, schema: Mapping[str, Any], depth: int = 0) -> str:
    """Format a type in the words of JSON Schema."""
    if not isinstance(part, dict) or depth > _DEEPEST:
        return "any"
    if "$ref" in part:
        name = str(part["$ref"]).rpartition("/")[2]
        definitions = schema.get("$defs")
        definition = definitions.get(name) if isinstance(definitions, dict) else None
        return name if definition is None else _type(definition, schema, depth + 1)
    values = [part["const"]] if "const" in part else part.get("enum")
    if isinstance(values, list):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    branches = part.get("anyOf") or part.get("oneOf")
    if isinstance(branches, list):
        return " | ".join(dict.fromkeys(_type(branch, schema, depth + 1) for branch in branches))
    if part.get("type") == "array":
        items = _type(part.get("items"), schema, depth + 1)
        return f"array of ({items})" if " | " in items else f"array of {items}"
    types = part.get("type", "any")
    return " | ".join(map(str, types)) if isinstance(types, list) else str(types)


_STYLES = {"read": "green", "idempotent": "yellow", "once": "magenta"}


def list_tools(console: Console, settings: Settings, name: str | None, *, as_json: bool) -> bool:
    """Print the tools of all servers, of one, or one tool.

    The servers are those in the settings.

    Returns:
        Whether all requested servers answered, except for optional ones.
    """
    named, query = (*SHIPPED, *settings.surfaces, *settings.mcp_servers), name or ""
    # the server to ask for the tool; empty if each may have it
    server_name = next((server for server in named if query == server or query.startswith(f"{server}.")), "")
    listed = offers(settings, server_name)
    selection = listed if name is None else _chosen(listed, name)
    if as_json:
        print_json([dataclasses.asdict(server) for server in selection])
    else:
        for server in selection:
            _print_server(console, server)
        if not selection:
            console.print(_NOTHING)
    warn(server.failed for server in selection if server.failed)
    return all(server.optional or not server.failed for server in selection)


def _chosen(listed: Sequence[ServerListing], name: str) -> list[ServerListing]:
    selection = []
    for server in listed:
        tools = tuple(tool for tool in server.tools if name in {server.name, tool.name, f"{server.name}.{tool.name}"})
        if tools or name == server.name or (server.failed and name.startswith(f"{server.name}.")):
            selection.append(dataclasses.replace(server, tools=tools))
    if not selection:
        known_names = [*(server.name for server in listed), *(tool.name for server in listed for tool in server.tools)]
        overview = f"servers are: {', '.join(s.name for s in listed)}" if listed else _NOTHING
        hint = did_you_mean(name, known_names, overview)
        failed = "".join(f"\n{server.failed}" for server in listed if server.failed)
        fail(f"there is no server or tool {name!r}{hint}{failed}")
    return selection


def _print_server(console: Console, server: ServerListing) -> None:
    count = "1 tool" if len(server.tools) == 1 else f"{len(server.tools)} tools"
    facts = ["can't be asked" if server.failed else count]
    facts += [f"resources: {', '.join(server.resource_kinds)}"] if server.resource_kinds else []
    facts += [f"{' and '.join(server.by_call)} may differ by call"] if server.by_call else []
    print_hanging(console, Text(plain(server.name), style="bold cyan").append(f"  {plain('; '.join(facts))}", "dim"), 0)
    for tool in server.tools:
        console.print()
        _print_tool(console, tool)
    console.print()


def _print_tool(console: Console, tool: ToolListing) -> None:
    head = Text(plain(tool.name), style="bold").append(f"  {tool.effect}", _STYLES[tool.effect])
    if tool.hazards:
        head.append(f"  {', '.join(tool.hazards)}", "bold red")
    facts = [f"for {', '.join(tool.agents)}"]
    facts += [f"in {', '.join(tool.applications)}"] if tool.applications else []
    facts += [f"on {', '.join(tool.controls)}"] if tool.controls else []
    facts += [f"up to {tool.seconds:g} s"]
    facts += [] if tool.offered else ["not offered to models"]
    print_hanging(console, head, 2)
    print_hanging(console, Text(plain("; ".join(facts)), style="dim"), 4)
    if tool.description.strip():
        print_hanging(console, Text(plain(tool.description)), 4)
    for argument in tool.arguments:
        left_out = f" = {argument.default}" if argument.default else ", required" if argument.required else ", optional"
        line = Text("- ").append(plain(argument.name), "cyan").append(plain(f": {argument.type}{left_out}"), "dim")
        print_hanging(console, line.append(f"  {plain(argument.description)}" if argument.description else ""), 4, 2)
