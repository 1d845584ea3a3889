"""The HostAgent: plans one task."""

from __future__ import annotations

from callboard.actors.agent import Agent
from callboard.actors.states import HostAgentStateManager
from callboard.messages import AgentKind


@HostAgentStateManager.register_agent
class HostAgent(Agent):
    """Plans a task, assigns its subtasks and says how it ended. One for each task, at ``host/<task>``."""

    kind = AgentKind.HOST
