"""Surfaces and their tools, as MCP servers."""

from callboard.actors.servers._server import UNKNOWN, Server, ServerTool, ToolError, observed, tool
from callboard.actors.servers._shipped import shipped
from callboard.actors.servers._stage import Stage
from callboard.actors.servers.documents import DocumentServer

__all__ = ["UNKNOWN", "DocumentServer", "Server", "ServerTool", "Stage", "ToolError", "observed", "shipped", "tool"]
