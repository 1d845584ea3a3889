"""The client of third-party MCP servers."""

from callboard.actors.commands.mcp._server_connection import ConnectionLostError
from callboard.actors.commands.mcp._server_session import McpSession, RemoteTool, open_sessions, program_needed
from callboard.actors.commands.mcp._server_target import McpSurface

__all__ = [
    "ConnectionLostError",
    "McpSession",
    "McpSurface",
    "RemoteTool",
    "open_sessions",
    "program_needed",
]
