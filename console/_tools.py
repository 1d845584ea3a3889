"""The command `tools`: which tools agents have, with which arguments, effects and hazards."""

from __future__ import annotations

import dataclasses
import difflib
from typing import TYPE_CHECKING

from rich.text import Text

from callboard.actors.servers import SHIPPED
from callboard.console._journals import print_json
from callboard.console._mistakes import fail, warn
from callboard.console._offers import offers
from callboard.console._text import plain, print_hanging

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from callboard.config import Settings
    from callboard.console._offers import ServerTold, ToolTold

_STYLES = {"read": "green", "idempotent": "yellow", "once": "magenta"}


def list_tools(console: Console, settings: Settings, name: str | None, *, as_json: bool) -> bool:
    """Print the tools of all servers that the settings name, or those of one, or one tool.

    Returns:
        Whether all servers that were asked for could be asked, but for optional ones.
    """
    told = offers(settings, _server_of(settings, name or ""))
    shown = told if name is None else _chosen(told, name)
    if as_json:
        print_json([dataclasses.asdict(server) for server in shown])
    else:
        for server in shown:
            _print_server(console, server)
        if not shown:
            console.print("the settings name no surface and no MCP server")
    warn(server.failed for server in shown if server.failed)
    return all(server.optional or not server.failed for server in shown)


def _server_of(settings: Settings, name: str) -> str:
    """Name the one server that has to be asked for what is wanted; empty if each may have it."""
    named = (*SHIPPED, *settings.surfaces, *settings.mcp_servers)
    return next((server for server in named if name == server or name.startswith(f"{server}.")), "")


def _chosen(told: Sequence[ServerTold], name: str) -> list[ServerTold]:
    found = []
    for server in told:
        tools = tuple(tool for tool in server.tools if name in {server.name, tool.name, f"{server.name}.{tool.name}"})
        if tools or name == server.name or (server.failed and name.startswith(f"{server.name}.")):
            found.append(dataclasses.replace(server, tools=tools))
    if not found:
        known = [*(server.name for server in told), *(tool.name for server in told for tool in server.tools)]
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"servers are: {', '.join(s.name for s in told) or 'none'}"
        failed = "".join(f"\n{server.failed}" for server in told if server.failed)
        fail(f"there is no server or tool {name!r}; {hint}{failed}")
    return found


def _print_server(console: Console, server: ServerTold) -> None:
    count = "1 tool" if len(server.tools) == 1 else f"{len(server.tools)} tools"
    facts = ["can't be asked" if server.failed else count]
    facts += [f"resources: {', '.join(server.resource_kinds)}"] if server.resource_kinds else []
    facts += [f"{' and '.join(server.by_call)} may differ by call"] if server.by_call else []
    print_hanging(console, Text(plain(server.name), style="bold cyan").append(f"  {plain('; '.join(facts))}", "dim"), 0)
    for tool in server.tools:
        console.print()
        _print_tool(console, tool)
    console.print()


def _print_tool(console: Console, tool: ToolTold) -> None:
    head = Text(plain(tool.name), style="bold").append(f"  {tool.effect}", _STYLES[tool.effect])
    if tool.hazards:
        head.append(f"  {', '.join(tool.hazards)}", "bold red")
    facts = [f"for {', '.join(tool.agents)}"]
    facts += [f"in {', '.join(tool.applications)}"] if tool.applications else []
    facts += [f"on {', '.join(tool.controls)}"] if tool.controls else []
    facts += [f"up to {tool.seconds:g} s"]
    facts += [] if tool.offered else ["models are not told of it"]
    print_hanging(console, head, 2)
    print_hanging(console, Text(plain("; ".join(facts)), style="dim"), 4)
    if tool.description.strip():
        print_hanging(console, Text(plain(tool.description)), 4)
    for each in tool.arguments:
        left_out = f" = {each.default}" if each.default else ", required" if each.required else ", optional"
        line = Text("- ").append(plain(each.name), "cyan").append(plain(f": {each.type}{left_out}"), "dim")
        print_hanging(console, line.append(f"  {plain(each.description)}" if each.description else ""), 4, 2)
