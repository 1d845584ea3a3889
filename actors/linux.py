"""The LinuxAgent: does the subtasks of one target."""

from __future__ import annotations

from callboard.actors.agent import Agent
from callboard.actors.states import LinuxAgentStateManager


@LinuxAgentStateManager.register_agent
class LinuxAgent(Agent):
    """Work in one shell, at ``linux/<host>``; reused for every subtask."""
