"""The machine of an agent whose subtask another machine does."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from callboard.actors.states._common import FinishState, NoneState
from callboard.actors.states._machine import AgentState, AgentStateManager, Processing
from callboard.actors.states._move import By, Move, Table
from callboard.messages import AgentStatus, Cancel, Message, RemoteEnded, StepFailure

if TYPE_CHECKING:
    from callboard.actors.states._run import Run

CONTINUE, FAIL, FINISH = AgentStatus.CONTINUE, AgentStatus.FAIL, AgentStatus.FINISH


class RemoteAgentStateManager(AgentStateManager):
    """The machine of a RemoteAgent.

    All moves are the system's: a model decides on the other machine.
    """

    initial: ClassVar[str] = CONTINUE
    transitions: ClassVar[Table] = {
        CONTINUE: {FINISH: By.SYSTEM, FAIL: By.SYSTEM},
        FAIL: {FINISH: By.SYSTEM},
        FINISH: {},
    }


class RemoteAgentState(AgentState):
    """A state of a RemoteAgent."""

    __slots__ = ()


@RemoteAgentStateManager.register_none
class NoneRemoteAgentState(NoneState, RemoteAgentState):
    """Placeholder for a status that the RemoteAgent does not have."""

    __slots__ = ()


@RemoteAgentStateManager.register(CONTINUE)
class ContinueRemoteAgentState(RemoteAgentState):
    """Wait for the other machine's questions, approvals and end."""

    __slots__ = ()

    async def handle(self, agent: Processing, context: Run) -> Message:
        """Send what is new; return the other machine's next message."""
        return await agent.process(context)

    def decide(self, run: Run) -> Move | None:
        """Leave at the end there, or after a stop here."""
        match run.last:
            case RemoteEnded(result=result):
                reason = f"the machine {result.machine} ended it as {result.outcome.value}"
                return Move(FINISH, By.SYSTEM, result.outcome, reason)
            case StepFailure(outcome=outcome):
                return Move(FAIL, By.SYSTEM, outcome)
            case Cancel():
                return Move(FAIL, By.SYSTEM)
            case _:
                return None


@RemoteAgentStateManager.register(FAIL)
class FailRemoteAgentState(RemoteAgentState):
    """Stopped here: stop it on the other machine, and await its end."""

    __slots__ = ()

    async def handle(self, agent: Processing, context: Run) -> Message:
        """Return the other machine's end, with everything that it has done."""
        return await agent.capture(context)

    def decide(self, run: Run) -> Move | None:
        """Leave at the end there, or if it can't be asked."""
        return Move(FINISH, By.SYSTEM) if isinstance(run.last, RemoteEnded | StepFailure) else None

    def is_subtask_end(self) -> bool:
        """Return True."""
        return True


@RemoteAgentStateManager.register(FINISH)
class FinishRemoteAgentState(FinishState, RemoteAgentState):
    """The subtask is over."""

    __slots__ = ()
