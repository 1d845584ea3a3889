"""The operator's machine: the AppAgent's with its own registry."""

from __future__ import annotations

from callboard.actors.states._app import AppAgentStateManager


class OperatorAgentStateManager(AppAgentStateManager):
    """The machine of an agent that sees only pictures of its target.

    Its table and its states are the AppAgent's, bound to this machine.
    """
