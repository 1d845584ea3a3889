"""The AppAgent: does the subtasks of one target."""

from __future__ import annotations

from callboard.actors.agent import Agent
from callboard.actors.states import AppAgentStateManager


@AppAgentStateManager.register_agent
class AppAgent(Agent):
    """Work in one application window.

    The agent is reused for every subtask on the window, at ``app/<root>/<process>``.
    """
