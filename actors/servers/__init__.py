"""Surfaces and their tools as MCP servers."""

from callboard.actors.servers._need import Need, check_needs
from callboard.actors.servers._numbers import Number, parse_number
from callboard.actors.servers._server import (
    UNKNOWN,
    InDoubtError,
    Server,
    ServerTool,
    ToolError,
    observed,
    reads_are_harmless,
    tool,
)
from callboard.actors.servers._stage import Stage
from callboard.actors.servers._surfaces import (
    SHIPPED,
    NamedSurface,
    named_servers,
    named_surfaces,
    shipped_surface,
    surface_needs,
    surface_of,
)
from callboard.actors.servers.documents import DocumentServer, advice_on

__all__ = [
    "SHIPPED",
    "UNKNOWN",
    "DocumentServer",
    "InDoubtError",
    "NamedSurface",
    "Need",
    "Number",
    "Server",
    "ServerTool",
    "Stage",
    "ToolError",
    "advice_on",
    "check_needs",
    "named_servers",
    "named_surfaces",
    "observed",
    "parse_number",
    "reads_are_harmless",
    "shipped_surface",
    "surface_needs",
    "surface_of",
    "tool",
]
