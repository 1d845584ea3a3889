"""The LinuxAgent: does the subtasks of one target."""

from __future__ import annotations

from callboard.actors.agent import Agent
from callboard.actors.states import LinuxAgentStateManager
from callboard.messages import AgentKind


@LinuxAgentStateManager.register_agent
class LinuxAgent(Agent):
    """Works in one shell. Kept and reused, at ``linux/<host>``."""

    kind = AgentKind.LINUX
