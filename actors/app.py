"""The AppAgent: does the subtasks of one target."""

from __future__ import annotations

from callboard.actors.agent import Agent
from callboard.actors.states import AppAgentStateManager
from callboard.messages import AgentKind


@AppAgentStateManager.register_agent
class AppAgent(Agent):
    """Works in one application window. Kept and reused for every subtask on it, at ``app/<root>/<process>``."""

    kind = AgentKind.APP
