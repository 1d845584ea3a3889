"""The client of third-party MCP servers."""

from callboard.actors.commands.mcp._server_session import McpSession, RemoteTool, open_sessions
from callboard.actors.commands.mcp._server_target import McpSurface

__all__ = [
    "McpSession",
    "McpSurface",
    "RemoteTool",
    "open_sessions",
]
