"""Level 3, tools: calls, their policy, the dispatcher, the MCP client."""

from callboard.actors.commands._approved import IDENTITY, Approved
from callboard.actors.commands._canonical import text_of
from callboard.actors.commands._dispatcher import Dispatcher, stopped
from callboard.actors.commands._doors import doors
from callboard.actors.commands._life import ServerLife
from callboard.actors.commands._lookup import TargetLookup
from callboard.actors.commands._may_change import MayChange
from callboard.actors.commands._mcp_client import McpSession, RemoteTool, open_sessions
from callboard.actors.commands._mcp_program import program_needed
from callboard.actors.commands._mcp_surface import McpSurface
from callboard.actors.commands._policy import Asked, Facts, Policy, Ruling, matches
from callboard.actors.commands._secrets import Place, SecretRefusedError, Secrets, UnknownSecretError, secrets_named
from callboard.actors.commands._toolbox import Toolbox, Tools, actions_of, find_target
from callboard.actors.commands._tools import BoundTool, ToolFailure

__all__ = [
    "IDENTITY",
    "Approved",
    "Asked",
    "BoundTool",
    "Dispatcher",
    "Facts",
    "MayChange",
    "McpSession",
    "McpSurface",
    "Place",
    "Policy",
    "RemoteTool",
    "Ruling",
    "SecretRefusedError",
    "Secrets",
    "ServerLife",
    "TargetLookup",
    "ToolFailure",
    "Toolbox",
    "Tools",
    "UnknownSecretError",
    "actions_of",
    "doors",
    "find_target",
    "matches",
    "open_sessions",
    "program_needed",
    "secrets_named",
    "stopped",
    "text_of",
]
