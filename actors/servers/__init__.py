"""Surfaces and their tools, as MCP servers."""

from callboard.actors.servers._documents import DocumentServer
from callboard.actors.servers._server import Server, ServerTool, ToolError, tool

__all__ = ["DocumentServer", "Server", "ServerTool", "ToolError", "tool"]
