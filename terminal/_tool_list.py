"""The command `tools`: agents' tools.

It prints their arguments, effects and hazards.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from callboard.actors.commands import Secrets, opening_tools
from callboard.config import keys_of
from callboard.history import plain
from callboard.messages import CommandType, SettingsError, did_you_mean, each_text
from callboard.surfaces import SHIPPED, Server, check_needs, named_surfaces
from callboard.terminal._commands import existing_path, fail, warn
from callboard.terminal._journals import SETTINGS_FILE, SETTINGS_SUFFIXES, print_json
from callboard.terminal._text import print_hanging

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

    from callboard.actors.commands.mcp import McpSession
    from callboard.config import Settings
    from callboard.surfaces import NamedSurface, SurfaceTool


_DEEPEST = 5
"""The depth to which a nested type is described."""
_NOTHING = "no surface and no MCP server is configured: name a folder or a file with settings: callboard tools FOLDER"


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
class SurfaceListing:
    """One surface or MCP server, with its tools."""

    name: str
    tools: tuple[ToolListing, ...] = ()
    resource_kinds: tuple[str, ...] = ()
    """The kinds of resource that rules of the policy can name; none for a surface that does not report the resources
    of a call."""
    by_call: tuple[str, ...] = ()
    """The properties, effect or hazards, that the surface may set for a single call."""
    failed: str = ""
    """The reason why its tools are unknown."""
    optional: bool = False
    """Whether a supervisor starts without it."""


def folder_and_name(arguments: Sequence[str], settings: Path | None) -> tuple[Path | None, str | None]:
    """Parse the arguments: settings, and the name to list.

    Settings are a file, or a folder with one. Both arguments are optional.
    """
    names = list(arguments)
    if names and settings is None and _has_settings(names[0]):
        settings = existing_path(Path(names.pop(0)))
    if len(names) > 1:
        fail(f"{' and '.join(map(repr, names))}: name one surface, MCP server or tool, after the folder")
    return settings, names[0] if names else None


def _has_settings(argument: str) -> bool:
    """Return whether an argument is a path of settings.

    A folder without them may have the name of a surface.
    """
    path = Path(argument)
    is_path = os.sep in argument or path.suffix.lower() in SETTINGS_SUFFIXES
    return is_path or (path / SETTINGS_FILE).is_file()


def offers(settings: Settings, asked: str = "") -> tuple[SurfaceListing, ...]:
    """Describe the tools of all surfaces and MCP servers.

    Starts the MCP servers, and ends them; surfaces are only made, and not opened.

    Args:
        settings: The settings that name them.
        asked: The name of the one to describe; empty for all.

    Raises:
        SettingsError: If a surface names no plug-in.
    """
    surfaces = [surface for surface in list(named_surfaces(settings)) if asked in {"", surface.name}]
    mcp_servers = [name for name in settings.mcp_servers if asked in {"", name}]
    listed = tuple(_surface(surface, settings) for surface in surfaces)
    return (*_redacted(listed, settings), *mcp_offers(settings, mcp_servers))


def mcp_offers(settings: Settings, names: Iterable[str]) -> tuple[SurfaceListing, ...]:
    """Start MCP servers, describe their tools, and end them."""
    from callboard.actors.commands.mcp import McpSession

    sessions = [McpSession(name, settings.mcp_servers[name], settings) for name in names]
    return _redacted(asyncio.run(_started(sessions, settings)), settings) if sessions else ()


def _redacted(listed: Iterable[SurfaceListing], settings: Settings) -> tuple[SurfaceListing, ...]:
    """Redact keys and secrets: an MCP server may reveal its start arguments."""
    redacted_listings: tuple[SurfaceListing, ...] = each_text(
        tuple(listed), Secrets(settings.secrets, keys_of(settings)).redactor("").text
    )
    return redacted_listings


def _surface(named: NamedSurface, settings: Settings) -> SurfaceListing:
    try:
        check_needs((named.where, need) for need in named.needs(settings))
        surface = named.make(settings)
    except SettingsError as error:
        return SurfaceListing(name=named.name, failed=str(error))
    limit = settings.limits.command_seconds
    overrides = {name: getattr(type(surface), name) is not getattr(Server, name) for name in ("effect", "hazards")}
    return SurfaceListing(
        name=surface.name,
        tools=tuple(_of_surface(tool, limit) for tool in (*surface.tools(), *opening_tools(surface))),
        resource_kinds=tuple(surface.resource_kinds),
        by_call=tuple(name for name, defined in overrides.items() if defined),
    )


def _of_surface(tool: SurfaceTool, limit: float) -> ToolListing:
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


async def _started(sessions: list[McpSession], settings: Settings) -> list[SurfaceListing]:
    """Start MCP servers side by side, list their tools, and end them."""
    try:
        outcomes = await asyncio.gather(*(session.open() for session in sessions), return_exceptions=True)
        return [_session(session, error, settings) for session, error in zip(sessions, outcomes, strict=True)]
    finally:
        await asyncio.gather(*(session.close() for session in sessions))


def _session(session: McpSession, error: BaseException | None, settings: Settings) -> SurfaceListing:
    if isinstance(error, SettingsError):
        return SurfaceListing(name=session.name, failed=str(error), optional=session.optional)
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
    return SurfaceListing(name=session.name, tools=tools, optional=session.optional)


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
    """Print the tools of the settings' surfaces and MCP servers.

    A name selects one of these, or one tool.

    Returns:
        Whether all that were asked answered, except for optional MCP servers.
    """
    named, query = (*SHIPPED, *settings.surfaces, *settings.mcp_servers), name or ""
    # the one to ask for the tool; empty if each may have it
    asked = next((each for each in named if query == each or query.startswith(f"{each}.")), "")
    listed = offers(settings, asked)
    selection = listed if name is None else _chosen(listed, name)
    if as_json:
        print_json([dataclasses.asdict(listing) for listing in selection])
    else:
        for listing in selection:
            _print_listing(console, listing)
        if not selection:
            console.print(_NOTHING)
    warn(listing.failed for listing in selection if listing.failed)
    return all(listing.optional or not listing.failed for listing in selection)


def _chosen(listed: Sequence[SurfaceListing], name: str) -> list[SurfaceListing]:
    selection = []
    for listing in listed:
        tools = tuple(
            tool for tool in listing.tools if name in {listing.name, tool.name, f"{listing.name}.{tool.name}"}
        )
        if tools or name == listing.name or (listing.failed and name.startswith(f"{listing.name}.")):
            selection.append(dataclasses.replace(listing, tools=tools))
    if not selection:
        known_names = [
            *(listing.name for listing in listed),
            *(tool.name for listing in listed for tool in listing.tools),
        ]
        overview = f"there are: {', '.join(s.name for s in listed)}" if listed else _NOTHING
        hint = did_you_mean(name, known_names, overview)
        failed = "".join(f"\n{listing.failed}" for listing in listed if listing.failed)
        fail(f"there is no surface, MCP server or tool {name!r}{hint}{failed}")
    return selection


def _print_listing(console: Console, listing: SurfaceListing) -> None:
    count = "1 tool" if len(listing.tools) == 1 else f"{len(listing.tools)} tools"
    facts = ["can't be asked" if listing.failed else count]
    facts += [f"resources: {', '.join(listing.resource_kinds)}"] if listing.resource_kinds else []
    facts += [f"{' and '.join(listing.by_call)} may differ by call"] if listing.by_call else []
    print_hanging(
        console, Text(plain(listing.name), style="bold cyan").append(f"  {plain('; '.join(facts))}", "dim"), 0
    )
    for tool in listing.tools:
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
