"""Level 3, tools: calls, their policy, the dispatcher, the MCP client."""

from callboard.actors.commands._approved import IDENTITY, Approved
from callboard.actors.commands._bound_tools import BoundTool, ToolFailure
from callboard.actors.commands._canonical import text_of
from callboard.actors.commands._content_changes import described_changes
from callboard.actors.commands._dispatcher import Dispatcher, stopped
from callboard.actors.commands._file_contents import Contents, contents_in, contents_of
from callboard.actors.commands._file_damage import damage
from callboard.actors.commands._file_differences import differences_in_words
from callboard.actors.commands._file_digests import MOST_KEPT, compared_files, digests_of, join_files
from callboard.actors.commands._lookup import TargetLookup
from callboard.actors.commands._may_change import MayChange
from callboard.actors.commands._mcp_programs import program_needed
from callboard.actors.commands._modern_schema import validator_of
from callboard.actors.commands._opening_tools import opening_tools
from callboard.actors.commands._output_types import OutputType, OutputTypes
from callboard.actors.commands._own_files import OwnFiles
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
from callboard.actors.commands._skill_tools import SkillTools
from callboard.actors.commands._surface_lifecycle import SurfaceLifecycle
from callboard.actors.commands._toolbox import Toolbox, Tools, actions_of, find_target

__all__ = [
    "IDENTITY",
    "MOST_KEPT",
    "OF_TASK",
    "Approved",
    "Asked",
    "BoundTool",
    "Contents",
    "Dispatcher",
    "Facts",
    "MayChange",
    "OutputType",
    "OutputTypes",
    "OwnFiles",
    "Policy",
    "Ruling",
    "SecretPlace",
    "SecretRefusedError",
    "Secrets",
    "SkillTools",
    "SurfaceLifecycle",
    "TargetLookup",
    "TaskPolicies",
    "ToolFailure",
    "Toolbox",
    "Tools",
    "UnknownSecretError",
    "actions_of",
    "compared_files",
    "contents_in",
    "contents_of",
    "damage",
    "described_changes",
    "differences_in_words",
    "digests_of",
    "find_target",
    "join_files",
    "matches",
    "opening_tools",
    "program_needed",
    "secrets_named",
    "stopped",
    "stricter",
    "text_of",
    "validator_of",
]
