"""Level 3, tools: calls, their policy, the dispatcher, the MCP client."""

from callboard.actors.commands._approved import IDENTITY, Approved
from callboard.actors.commands._bound_tools import BoundTool, ToolFailure
from callboard.actors.commands._canonical import text_of
from callboard.actors.commands._dispatcher import Dispatcher, stopped
from callboard.actors.commands._lookup import TargetLookup
from callboard.actors.commands._may_change import MayChange
from callboard.actors.commands._mcp_program import program_needed
from callboard.actors.commands._mcp_session import McpSession, RemoteTool, open_sessions
from callboard.actors.commands._mcp_surface import McpSurface
from callboard.actors.commands._opening_tools import opening_tools
from callboard.actors.commands._output_types import OutputType, OutputTypes
from callboard.actors.commands._policy_rules import (
    OF_TASK,
    Asked,
    Facts,
    Policy,
    Ruling,
    TaskPolicies,
    matches,
    stricter,
)
from callboard.actors.commands._secrets import (
    SecretPlace,
    SecretRefusedError,
    Secrets,
    UnknownSecretError,
    secrets_named,
)
from callboard.actors.commands._server_lifecycle import ServerLifecycle
from callboard.actors.commands._toolbox import Toolbox, Tools, actions_of, find_target

__all__ = [
    "IDENTITY",
    "OF_TASK",
    "Approved",
    "Asked",
    "BoundTool",
    "Dispatcher",
    "Facts",
    "MayChange",
    "McpSession",
    "McpSurface",
    "OutputType",
    "OutputTypes",
    "Policy",
    "RemoteTool",
    "Ruling",
    "SecretPlace",
    "SecretRefusedError",
    "Secrets",
    "ServerLifecycle",
    "TargetLookup",
    "TaskPolicies",
    "ToolFailure",
    "Toolbox",
    "Tools",
    "UnknownSecretError",
    "actions_of",
    "find_target",
    "matches",
    "open_sessions",
    "opening_tools",
    "program_needed",
    "secrets_named",
    "stopped",
    "stricter",
    "text_of",
]
