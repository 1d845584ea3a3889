"""The HostAgent: plans one task."""

from __future__ import annotations

from callboard.actors.agent import Agent
from callboard.actors.states import HostAgentStateManager


@HostAgentStateManager.register_agent
class HostAgent(Agent):
    """Plan tasks, assign their subtasks and report their outcomes.

    It waits while the subtasks of an answer work, one or several at once.
    There is one for each conversation, at ``host/<its first task>``.
    """
