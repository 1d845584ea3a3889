"""The RemoteAgent: has a subtask done by another machine of the fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.agent import Agent, Continue
from callboard.actors.states import RemoteAgentStateManager
from callboard.messages import Pause, Resume

if TYPE_CHECKING:
    from callboard.actors.agent import Inbox


@RemoteAgentStateManager.register_agent
class RemoteAgent(Agent):
    """Stand for an agent of another machine, at ``remote/<machine>/<its address there>``.

    It has no model. It sends its subtask as a task of its own to the other machine, asks here what is asked there, and
    takes the result.
    """

    def receive(self, message: Inbox) -> None:
        """Handle one message; the other machine is told of pauses.

        After a restart, a request that was open is watched: it may have been answered on the other machine.
        """
        super().receive(message)
        run, remote = self._run, self._context.remote
        if run is None or remote is None:
            return
        if run.over:
            remote.forget(run)
        elif isinstance(message, Pause | Resume):
            remote.pause(run, paused=run.paused)
        elif isinstance(message, Continue) and run.waiting:
            remote.expect_answer(run)
