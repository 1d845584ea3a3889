"""The MobileAgent: does the subtasks of one target."""

from __future__ import annotations

from callboard.actors.agent import Agent
from callboard.actors.states import MobileAgentStateManager
from callboard.messages import AgentKind


@MobileAgentStateManager.register_agent
class MobileAgent(Agent):
    """Works on one Android device. Kept and reused, at ``mobile/<serial>``."""

    kind = AgentKind.MOBILE
