"""The operator's machine: the AppAgent's with its own registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from callboard.actors.states._app import AppAgentStateManager

if TYPE_CHECKING:
    from callboard.actors.states._machine import Table


class OperatorAgentStateManager(AppAgentStateManager):
    """The machine of an agent that sees only pictures of its target.

    Its states are the AppAgent's, bound to this machine.
    """

    initial = "CONTINUE"
    transitions: ClassVar[Table] = AppAgentStateManager.transitions
