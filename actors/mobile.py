"""The MobileAgent: does the subtasks of one target."""

from __future__ import annotations

from callboard.actors.agent import Agent
from callboard.actors.states import MobileAgentStateManager


@MobileAgentStateManager.register_agent
class MobileAgent(Agent):
    """Work on one Android device, at ``mobile/<serial>``; reused for every subtask."""
