"""A third-party MCP server over HTTP, on the SDK of the protocol."""

from __future__ import annotations

import itertools
import os
import socket
import sys

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("notes", title="A shelf of notes", instructions="Put notes by key.", log_level="ERROR")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def put(key: str) -> dict[str, object]:
    """Put a note."""
    return {"key": key, "success": True}


@server.tool()
def lock() -> str:
    """Fail with a text."""
    msg = "the shelf is locked"
    raise ToolError(msg)


@server.tool(structured_output=False)
def words() -> str:
    """Say something in words."""
    return "just words"


turns = itertools.count(1)


@server.tool()
def turn() -> int:
    """Answer otherwise each time."""
    return next(turns)


@server.tool()
async def count(steps: int, total: float | None, ctx: Context) -> int:
    """Tell how far it is."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, total, None)
    return steps


@server.tool()
def pid() -> int:
    """Say which process this is."""
    return os.getpid()


@server.tool()
def header(name: str, ctx: Context) -> str:
    """Read a header of the request."""
    return ctx.request_context.request.headers.get(name, "")


@server.tool()
async def hang(port: int) -> str:
    """Say on a socket that it began, and never end."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(b"begun\n")
        try:
            await anyio.sleep_forever()
        finally:
            line.sendall(b"left\n")


@server.tool(structured_output=False)
def flood(size: int) -> str:
    """Answer with a text of some length."""
    return "x" * size


listening = socket.create_server(("127.0.0.1", int(os.environ.get("NOTES_PORT", "0"))))
sys.stdout.write(f"{listening.getsockname()[1]}\n")
sys.stdout.flush()
app = server.streamable_http_app()
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])
