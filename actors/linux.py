"""The LinuxAgent: does the subtasks of one target."""

from __future__ import annotations

from callboard.actors.agent import Agent
from callboard.actors.states import LinuxAgentStateManager
from callboard.messages import AgentKind


@LinuxAgentStateManager.register_agent
class LinuxAgent(Agent):
    """Work in one shell, at ``linux/<host>``; reused for every subtask."""

    kind = AgentKind.LINUX
