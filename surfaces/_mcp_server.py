"""A surface's tools as a stand-alone MCP server."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError as McpToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations

from callboard.messages import Effect, Hazard
from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from callboard.surfaces._surface import SurfaceTool


def mcp_server(name: str, entries: Sequence[SurfaceTool]) -> MCPServer:
    """Build an MCP server with some tools.

    It may be served over stdio or HTTP. A tool name that several applications use gets the
    application's name as a prefix.
    """
    names = [entry.name for entry in entries]
    tools = [
        _mcp_tool(entry, entry.name if names.count(entry.name) == 1 else "_".join([*sorted(entry.roots), entry.name]))
        for entry in entries
    ]
    return MCPServer(name, tools=tools)


def _mcp_tool(entry: SurfaceTool, name: str) -> Tool:
    annotations = ToolAnnotations(
        read_only_hint=entry.effect is Effect.READ,
        idempotent_hint=entry.effect in {Effect.READ, Effect.IDEMPOTENT},
        destructive_hint=bool(entry.hazards & {Hazard.DELETES, Hazard.OVERWRITES}),
        open_world_hint=False,
    )
    tool = Tool.from_function(entry.tool.fn, name=name, description=entry.tool.description, annotations=annotations)
    return tool.model_copy(update={"fn": _with_mcp_errors(entry.tool.fn)})


def _with_mcp_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Raise a function's `ToolError` as the MCP library's.

    Its text is then sent to the client.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ToolError as error:
            raise McpToolError(str(error)) from error

    async def run_async(*args: Any, **kwargs: Any) -> Any:
        try:
            return await function(*args, **kwargs)
        except ToolError as error:
            raise McpToolError(str(error)) from error

    return functools.wraps(function)(run_async if inspect.iscoroutinefunction(function) else run)
