"""The operator: does the subtasks of one target from its picture."""

from __future__ import annotations

from callboard.actors.agent import Agent
from callboard.actors.states import OperatorAgentStateManager


@OperatorAgentStateManager.register_agent
class OperatorAgent(Agent):
    """Point, click and type on one target.

    The agent is reused for every subtask on the target, at ``operator/<root>/<process>``.
    """
