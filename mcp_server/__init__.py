"""Callboard as an MCP server: other agents and programs give it tasks.

It is imported where it is used: it needs the MCP library, which a plain task does not.
"""

from callboard.mcp_server._callers import LOCAL, hash_of, new_token
from callboard.mcp_server._task_service import PORT, HttpTaskServer, http_app, serve_stdio

__all__ = ["LOCAL", "PORT", "HttpTaskServer", "hash_of", "http_app", "new_token", "serve_stdio"]
