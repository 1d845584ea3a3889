"""The AppAgent's machine: seven states."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from callboard.actors.states._common import (
    CleanupState,
    ConfirmState,
    FinishState,
    NoneState,
    PendingState,
    WorkingState,
)
from callboard.actors.states._machine import AgentState, AgentStateManager
from callboard.actors.states._move import By, Move, Table
from callboard.messages import AppAgentStatus

if TYPE_CHECKING:
    from callboard.actors.states._run import Run

CONTINUE, SCREENSHOT, PENDING, CONFIRM, FAIL, ERROR, FINISH = AppAgentStatus
MODEL, USER, SYSTEM, TIMEOUT = By.MODEL, By.USER, By.SYSTEM, By.TIMEOUT


class AppAgentStateManager(AgentStateManager):
    """The machine of an agent that works in one application window."""

    initial: ClassVar[str] = CONTINUE
    transitions: ClassVar[Table] = {
        # CONTINUE by the system: the answer's status does not hold, because an action failed. CONFIRM by the system:
        # the policy requires an approval. ERROR by the model is legal but rare. FAIL by the user or a timeout: a
        # budget is used up, and a person was asked whether to continue.
        CONTINUE: {
            CONTINUE: MODEL | SYSTEM,
            SCREENSHOT: MODEL,
            FINISH: MODEL,
            FAIL: MODEL | SYSTEM | USER | TIMEOUT,
            PENDING: MODEL,
            CONFIRM: MODEL | SYSTEM,
            ERROR: MODEL | SYSTEM,
        },
        # CONTINUE by the system: the model named no controls to annotate, or the limit was reached.
        SCREENSHOT: {
            SCREENSHOT: MODEL,
            CONTINUE: MODEL | SYSTEM,
            CONFIRM: MODEL | SYSTEM,
            FAIL: SYSTEM | USER | TIMEOUT,
            ERROR: SYSTEM,
        },
        # CONTINUE by the system: questions or approvals are switched off.
        PENDING: {CONTINUE: USER | SYSTEM, FAIL: TIMEOUT | SYSTEM, ERROR: SYSTEM},
        CONFIRM: {CONTINUE: USER | SYSTEM, FINISH: USER | TIMEOUT, FAIL: TIMEOUT | SYSTEM, ERROR: SYSTEM},
        FAIL: {FINISH: SYSTEM},
        ERROR: {FINISH: SYSTEM},
        FINISH: {},
    }


class AppAgentState(AgentState):
    """A state of an AppAgent."""

    __slots__ = ()


@AppAgentStateManager.register_none
class NoneAppAgentState(NoneState, AppAgentState):
    """Placeholder for a status that the AppAgent does not have."""

    __slots__ = ()


@AppAgentStateManager.register(CONTINUE)
class ContinueAppAgentState(WorkingState, AppAgentState):
    """Work: observe the controls, ask the model, act, remember."""

    __slots__ = ()


@AppAgentStateManager.register(SCREENSHOT)
class ScreenshotAppAgentState(WorkingState, AppAgentState):
    """Work on a fresh capture with only the named controls annotated."""

    __slots__ = ()

    def decide(self, run: Run) -> Move | None:
        """Stay while the model names controls to annotate, up to the limit.

        Any other answer leads to CONTINUE.
        """
        move = super().decide(run)
        if move is None or move.by is not MODEL or move.target == CONFIRM:
            return move
        if move.target not in self.manager.offered(self.name()):
            return Move(CONTINUE, SYSTEM)
        named = run.records[-1].decision.reannotate
        if named and run.reannotations < run.limits.reannotations:
            return Move(SCREENSHOT, MODEL)
        return Move(CONTINUE, MODEL if move.target == CONTINUE and not named else SYSTEM)


@AppAgentStateManager.register(PENDING)
class PendingAppAgentState(PendingState, AppAgentState):
    """Wait for a person's answer."""

    __slots__ = ()


@AppAgentStateManager.register(CONFIRM)
class ConfirmAppAgentState(ConfirmState, AppAgentState):
    """Wait for a person's approval; a rejection ends the subtask as `rejected`."""

    __slots__ = ()

    on_rejection = FINISH


@AppAgentStateManager.register(FAIL)
class FailAppAgentState(CleanupState, AppAgentState):
    """The subtask failed: clean up. The HostAgent may try another way."""

    __slots__ = ()


@AppAgentStateManager.register(ERROR)
class ErrorAppAgentState(CleanupState, AppAgentState):
    """An exception ended the subtask and the round: clean up."""

    __slots__ = ()

    def is_round_end(self) -> bool:
        """Return True."""
        return True


@AppAgentStateManager.register(FINISH)
class FinishAppAgentState(FinishState, AppAgentState):
    """The subtask is over."""

    __slots__ = ()
