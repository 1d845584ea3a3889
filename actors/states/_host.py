"""The HostAgent's machine: seven states."""

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
from callboard.actors.states._group_assigns import assignment, group_of
from callboard.actors.states._machine import AgentState, AgentStateManager, Processing
from callboard.actors.states._move import By, Move, Table
from callboard.messages import (
    Assign,
    Cancel,
    HostAgentStatus,
    Message,
    Outcome,
    StepFailure,
    SubtaskEnding,
    open_failures,
)

if TYPE_CHECKING:
    from callboard.actors.states._run import Run

CONTINUE, ASSIGN, PENDING, CONFIRM, FAIL, ERROR, FINISH = HostAgentStatus
MODEL, USER, SYSTEM, TIMEOUT = By.MODEL, By.USER, By.SYSTEM, By.TIMEOUT


class HostAgentStateManager(AgentStateManager):
    """The machine of an agent that plans a task and assigns subtasks."""

    initial: ClassVar[str] = CONTINUE
    transitions: ClassVar[Table] = {
        # CONTINUE by the system: the answer's status does not hold, because an action failed. FAIL by the model: the
        # task is impossible; without this move it could only report success. FAIL by the user or a timeout: a budget
        # is used up, and a person was asked whether to continue.
        CONTINUE: {
            CONTINUE: MODEL | SYSTEM,
            ASSIGN: MODEL,
            FINISH: MODEL,
            FAIL: MODEL | SYSTEM | USER | TIMEOUT,
            PENDING: MODEL,
            CONFIRM: MODEL | SYSTEM,
            ERROR: SYSTEM,
        },
        # FINISH: the subtask ended in an error, or the step of the plan that this round follows is over.
        ASSIGN: {CONTINUE: SYSTEM, FINISH: SYSTEM, FAIL: SYSTEM, ERROR: SYSTEM},
        # CONTINUE by the system: questions or approvals are switched off.
        PENDING: {CONTINUE: USER | SYSTEM, FAIL: TIMEOUT | SYSTEM, ERROR: SYSTEM},
        CONFIRM: {CONTINUE: USER | SYSTEM, FAIL: USER | TIMEOUT | SYSTEM, ERROR: SYSTEM},
        FAIL: {FINISH: SYSTEM},
        ERROR: {FINISH: SYSTEM},
        FINISH: {},
    }


class HostAgentState(AgentState):
    """A state of a HostAgent."""

    __slots__ = ()


@HostAgentStateManager.register_none
class NoneHostAgentState(NoneState, HostAgentState):
    """Placeholder for a status that the HostAgent does not have."""

    __slots__ = ()


@HostAgentStateManager.register(CONTINUE)
class ContinueHostAgentState(WorkingState, HostAgentState):
    """Plan: observe the targets, ask the model, act, remember."""

    __slots__ = ()


@HostAgentStateManager.register(ASSIGN)
class AssignHostAgentState(HostAgentState):
    """Assign subtasks, and wait until all of them have ended."""

    __slots__ = ()

    only_decides = True

    async def handle(self, agent: Processing, context: Run) -> Message:
        """Return the assignment that the model decided on."""
        decision = context.records[-1].decision
        if decision.group:
            return group_of(context, decision)
        target = decision.target
        if target is None:
            msg = "ASSIGN without a target: the answer's check should have refused it"
            raise LookupError(msg)
        assign, follows = context.assign, context.assign.plan_step is not None
        alone = assignment(context, decision.subtask or assign.request, target, context.next_number)
        if not follows:
            return alone
        ends = {
            "output_schema": assign.output_schema,
            "checks": context.checks_of(decision),
            "judge": assign.judge,
            "judge_request": assign.judge_request,
        }
        return alone.model_copy(update=ends)

    def decide(self, run: Run) -> Move | None:
        """Continue once all assigned subtasks have ended.

        An error ends the round; in a round that follows one step of a plan, every outcome does. Of subtasks that were
        assigned together, the last one to end decides.
        """
        match run.last:
            case Cancel():
                return Move(FAIL, SYSTEM)
            case StepFailure():
                return Move(ERROR, SYSTEM, Outcome.ERROR)
            case SubtaskEnding() if run.awaited:
                return None
            case SubtaskEnding(result=result) if result.group:
                return _after_group(run)
            case SubtaskEnding(result=result):
                if result.outcome is Outcome.ERROR or run.assign.plan_step is not None:
                    return Move(FINISH, SYSTEM, result.outcome)
                return Move(CONTINUE, SYSTEM)
            case _:
                return None

    def next_agent(self, run: Run) -> str:
        """Return the address of a lone subtask's agent while it works."""
        return run.last.address if isinstance(run.last, Assign) else run.assign.address


def _after_group(run: Run) -> Move:
    """Continue after the last ending of a group.

    An error ends the round. A plan that is followed as a whole ends with its first outcome that is no success, in the
    order of its steps.
    """
    outcomes = [result.outcome for result in open_failures(run.own_subtasks)]
    if Outcome.ERROR in outcomes:
        return Move(FINISH, SYSTEM, Outcome.ERROR)
    if run.assign.plan and outcomes:
        return Move(FINISH, SYSTEM, outcomes[0])
    return Move(CONTINUE, SYSTEM)


@HostAgentStateManager.register(PENDING)
class PendingHostAgentState(PendingState, HostAgentState):
    """Wait for a person's answer."""

    __slots__ = ()


@HostAgentStateManager.register(CONFIRM)
class ConfirmHostAgentState(ConfirmState, HostAgentState):
    """Wait for a person's approval; a rejection fails the round."""

    __slots__ = ()


class _RoundEnd(HostAgentState):
    __slots__ = ()

    def is_round_end(self) -> bool:
        """Return True."""
        return True

    def is_subtask_end(self) -> bool:
        """Return False: a HostAgent has rounds, its agents have subtasks."""
        return False


@HostAgentStateManager.register(FAIL)
class FailHostAgentState(_RoundEnd, CleanupState):
    """The task can't be done: clean up."""

    __slots__ = ()


@HostAgentStateManager.register(ERROR)
class ErrorHostAgentState(_RoundEnd, CleanupState):
    """An exception ended the round: clean up."""

    __slots__ = ()


@HostAgentStateManager.register(FINISH)
class FinishHostAgentState(_RoundEnd, FinishState):
    """The round is over."""

    __slots__ = ()
