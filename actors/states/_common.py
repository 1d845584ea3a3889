"""What the states of all agents have in common; each machine's own file says which of it holds there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.states._machine import AgentState, By, Move, Processing
from callboard.actors.states._run import CLAIMS
from callboard.messages import (
    Answer,
    ApprovalAnswer,
    Cancel,
    Captured,
    Message,
    Outcome,
    RequestExpired,
    RoundEnded,
    StepDone,
    StepFailed,
    SubtaskResult,
    subtask_ended,
)

if TYPE_CHECKING:
    from callboard.actors.states._run import Run

STOPPED = frozenset({Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.OUT_OF_BUDGET})
"""Endings that come from outside of the agent's work."""


class WorkingState(AgentState):
    """A state that runs the four phases."""

    __slots__ = ()

    on_exception = "ERROR"
    """Where an exception in a phase leads."""

    async def handle(self, agent: Processing, context: Run) -> Message:
        """Run the four phases."""
        return await agent.process(context)

    def decide(self, run: Run) -> Move | None:
        """Follow the model's status where it holds; exceptions, limits and the policy come before it."""
        match run.last:
            case Cancel():
                return Move("FAIL", By.SYSTEM)
            case StepFailed():
                outcome = Outcome.ERROR if self.on_exception == "ERROR" else Outcome.FAILED
                return Move(self.on_exception, By.SYSTEM, outcome)
            case StepDone():
                return self.after_step(run)
            case _ if run.steps >= run.limits.steps:
                reason = f"the limit of {run.limits.steps} steps was reached"
                return Move("FAIL", By.SYSTEM, Outcome.OUT_OF_BUDGET, reason)
            case _:
                return None

    def after_step(self, run: Run) -> Move:
        """Say where a step that ran leads."""
        too_many = repeated_failures(run)
        if too_many is not None:
            return too_many
        if run.held_by_policy:
            return Move("CONFIRM", By.SYSTEM)
        record = run.records[-1]
        if record.failures and record.decision.status in CLAIMS:
            return Move("CONTINUE", By.SYSTEM)
        return self.follow(record.decision.status, record.decision.comment)

    def follow(self, status: str, comment: str) -> Move:
        """Go where the model wants to, with the outcome that this means."""
        outcome = {"FINISH": Outcome.FINISHED, "FAIL": Outcome.FAILED, "ERROR": Outcome.ERROR}.get(status)
        return Move(status, By.MODEL, outcome, comment or f"the model said {status}")


class PendingState(AgentState):
    """Wait for a person's answer. No phase runs."""

    __slots__ = ()

    async def handle(self, agent: Processing, context: Run) -> Message:
        """Ask."""
        return await agent.process_asker(context)

    def decide(self, run: Run) -> Move | None:
        """An answer leads back to work, a deadline to FAIL."""
        match run.last:
            case Cancel():
                return Move("FAIL", By.SYSTEM)
            case Answer(nobody=nobody):
                return Move("CONTINUE", By.SYSTEM if nobody else By.USER)
            case RequestExpired():
                return Move("FAIL", By.TIMEOUT, Outcome.TIMED_OUT, "nobody answered the question in time")
            case StepFailed():
                return Move("ERROR", By.SYSTEM, Outcome.ERROR)
            case _:
                return None


class ConfirmState(AgentState):
    """Hold actions back until a person approves them; then look again and run exactly those."""

    __slots__ = ()

    on_rejection = "FAIL"
    """Where a rejection leads."""

    async def handle(self, agent: Processing, context: Run) -> Message:
        """Ask with what the agent sees, or go on with what was approved."""
        if context.answer is not None:
            return await agent.process_resume(context)
        return await agent.process_confirmation(context)

    def decide(self, run: Run) -> Move | None:  # noqa: PLR0911 - one match, a case an event
        """An approval leads back to work once its actions ran; a rejection never runs them."""
        match run.last:
            case Cancel():
                return Move("FAIL", By.SYSTEM)
            case ApprovalAnswer(approved=False) as answer:
                who = answer.by or "a person"
                return Move(
                    self.on_rejection,
                    By.USER,
                    Outcome.REJECTED,
                    f"rejected by {who}: {answer.reason or 'no reason given'}",
                )
            case StepDone() if (too_many := repeated_failures(run)) is not None:
                return too_many
            case StepDone():
                unattended = run.answer is not None and run.answer.unattended
                return Move("CONTINUE", By.SYSTEM if unattended else By.USER)
            case RequestExpired():
                return Move("FAIL", By.TIMEOUT, Outcome.TIMED_OUT, "nobody decided on the approval in time")
            case StepFailed():
                return Move("ERROR", By.SYSTEM, Outcome.ERROR)
            case _:
                return None


class CleanupState(AgentState):
    """FAIL and ERROR: look once more for the record, then go on to FINISH. The outcome stays."""

    __slots__ = ()

    async def handle(self, agent: Processing, context: Run) -> Message:
        """Take a last look, unless the work was stopped from outside: then nothing is touched any more."""
        if context.outcome in STOPPED:
            return Captured(observation=None)
        return await agent.capture(context)

    def decide(self, run: Run) -> Move | None:
        """Go on to FINISH once the last look is done, even if it failed."""
        return Move("FINISH", By.SYSTEM) if isinstance(run.last, Captured | StepFailed | Cancel) else None

    def is_subtask_end(self) -> bool:
        """The subtask ends here."""
        return True


class FinishState(AgentState):
    """The end of a subtask: its result is archived, and the HostAgent has the next word."""

    __slots__ = ()

    async def handle(self, agent: Processing, context: Run) -> Message:  # noqa: ARG002 - the interface
        """Make the ending that the recorded outcome asks for."""
        return archive(context)

    def decide(self, run: Run) -> Move | None:  # noqa: ARG002 - the interface
        """Stay: this state is final."""
        return None

    def next_agent(self, run: Run) -> str:
        """The HostAgent, where there is one."""
        return run.assign.host or run.assign.address

    def is_subtask_end(self) -> bool:
        """The subtask ends here."""
        return True


class NoneState(AgentState):
    """What stands for an unknown status: it does nothing and leads nowhere."""

    __slots__ = ()

    async def handle(self, agent: Processing, context: Run) -> Message:  # noqa: ARG002 - the interface
        """Do nothing."""
        return Captured(observation=None)

    def decide(self, run: Run) -> Move | None:  # noqa: ARG002 - the interface
        """Stay."""
        return None

    @classmethod
    def name(cls) -> str:
        """No status."""
        return ""


def repeated_failures(run: Run) -> Move | None:
    """End the work when too many steps in a row had an action that failed."""
    if run.failures < run.limits.action_failures:
        return None
    return Move("FAIL", By.SYSTEM, Outcome.FAILED, f"repeated action failures: {run.failures} in a row")


def archive(run: Run) -> Message:
    """Turn a run that reached FINISH into the ending of its subtask, or of the HostAgent's round."""
    assign = run.assign
    outcome = run.outcome or Outcome.ERROR
    if assign.number == 0:
        return RoundEnded(
            task_id=assign.task_id,
            run_id=assign.run_id,
            token=assign.token,
            outcome=outcome,
            causes=run.causes,
            output=_round_output(run),
            comment=run.decision_comment,
            artifacts=run.artifacts,
            usage=run.usage,
        )
    result = SubtaskResult(
        run_id=assign.run_id,
        number=assign.number,
        request=assign.request,
        address=assign.address,
        outcome=outcome,
        causes=run.causes,
        output=run.output,
        comment=run.decision_comment,
        artifacts=run.artifacts,
        last_seen=run.last_seen,
        usage=run.usage,
    )
    return subtask_ended(assign.task_id, assign.token, result)


def _round_output(run: Run) -> object:
    said = next((r.decision.result for r in reversed(run.records) if r.decision.result is not None), None)
    if said is not None:
        return said
    finished = [result.output for result in run.subtasks if result.outcome is Outcome.FINISHED]
    return finished[-1] if finished else run.output
