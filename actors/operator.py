"""The operator: does the subtasks of one target, and sees nothing of it but its picture."""

from __future__ import annotations

from callboard.actors.agent import Agent
from callboard.actors.states import OperatorAgentStateManager
from callboard.messages import AgentKind


@OperatorAgentStateManager.register_agent
class OperatorAgent(Agent):
    """Points, clicks and types. Kept and reused for every subtask on its target, at ``operator/<root>/<process>``."""

    kind = AgentKind.OPERATOR
