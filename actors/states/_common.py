"""Base classes of the states; each machine derives its own from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from callboard.actors.states import _run
from callboard.actors.states._machine import AgentState, Processing
from callboard.actors.states._move import By, Move
from callboard.actors.states._notes import CLAIMS
from callboard.messages import (
    AgentStatus,
    Answer,
    ApprovalAnswer,
    AtDeadline,
    Cancel,
    Captured,
    Held,
    Message,
    Outcome,
    RequestExpired,
    RoundEnding,
    StepDone,
    StepFailure,
    SubtaskResult,
    subtask_ended,
)

if TYPE_CHECKING:
    from callboard.actors.states._run import Run


class WorkingState(AgentState):
    """A state that runs the four phases."""

    __slots__ = ()

    takes_steps = True

    on_exception: ClassVar[str] = AgentStatus.ERROR
    """The target status after an exception in a phase."""

    async def handle(self, agent: Processing, context: Run) -> Message:
        """Run the four phases, or the held actions once they are released.

        An agent whose machine has no CONFIRM requests the policy's approval from here. A step that a crash interrupted
        after its decision resumes from that decision.
        """
        if context.broken_off:
            return await agent.process_recovered(context)
        if not context.held:
            return await agent.process(context)
        if context.held_by is Held.PAUSE or context.answer is not None:
            return await agent.process_resume(context)
        return await agent.process_confirmation(context)

    def decide(self, run: Run) -> Move | None:
        """Follow the model's status unless an exception, limit or policy overrides it."""
        match run.last:
            case Cancel():
                return Move(AgentStatus.FAIL, By.SYSTEM)
            case StepFailure(outcome=Outcome.ERROR):
                outcome = Outcome.ERROR if self.on_exception == AgentStatus.ERROR else Outcome.FAILED
                return Move(self.on_exception, By.SYSTEM, outcome)
            case StepFailure(outcome=outcome):
                return Move(AgentStatus.FAIL, By.SYSTEM, outcome)
            case StepDone():
                return None if run.held_by is Held.PAUSE else self.after_step(run)
            case Answer() | ApprovalAnswer() | RequestExpired():
                return self.after_answer(run)
            case None if run.due:
                return self.after_approval(run)
            case None if run.steps >= run.limits.steps + run.usage.replayed <= run.decided:  # a routine ends by itself
                most = run.limits.steps
                reason = f"the limit of {most} step{'' if most == 1 else 's'} was reached"
                return Move(AgentStatus.FAIL, By.SYSTEM, Outcome.OUT_OF_BUDGET, reason)
            case _:
                return None

    def after_step(self, run: Run) -> Move | None:
        """Return the move after a completed step."""
        stuck = no_progress(run)
        if stuck is not None:
            return stuck
        if run.held_by is Held.POLICY:
            return Move(AgentStatus.CONFIRM, By.SYSTEM) if AgentStatus.CONFIRM in self.manager.transitions else None
        record = run.memory[-1]
        if record.decision.status in CLAIMS and record.incomplete:
            return Move(AgentStatus.CONTINUE, By.SYSTEM)
        return refused_finish(run) or self.follow(record.decision.status, record.decision.comment)

    def after_approval(self, run: Run) -> Move:
        """Follow the status of the answer whose actions were approved.

        The move is the one that would have followed without an approval, except after the model's own CONFIRM, which
        leads back to CONTINUE.
        """
        record = run.records[-1]
        given_in = next(step.status for step in reversed(run.records) if not step.resumed)
        if run.due not in self.manager.offered(given_in) or (record.incomplete and run.due in CLAIMS):
            return Move(AgentStatus.CONTINUE, By.SYSTEM)
        return refused_finish(run) or self.follow(run.due, record.decision.comment)

    def after_answer(self, run: Run) -> Move | None:
        """Return the move after the answer to a working state's request."""
        match run.last:
            case Answer() | RequestExpired() if on_doubt(run):
                return after_doubt(run, AgentStatus.FAIL)
            case ApprovalAnswer(approved=False):
                return Move(AgentStatus.FAIL, By.USER, Outcome.REJECTED, rejection(run.last))
            case RequestExpired(at_deadline=AtDeadline.ALLOW) | ApprovalAnswer() | Answer(texts=(_run.GO_ON,)):
                return None
            case RequestExpired() if run.held:
                return expired_approval(run.last, AgentStatus.FAIL)
            case Answer():
                return Move(
                    AgentStatus.FAIL, By.USER, Outcome.OUT_OF_BUDGET, "a person said stop at the limit of the budget"
                )
            case _:
                reason = "the budget is used up, and nobody said in time whether to go on"
                return Move(AgentStatus.FAIL, By.TIMEOUT, Outcome.OUT_OF_BUDGET, reason)

    def follow(self, status: str, comment: str) -> Move:
        """Return the move to the model's status, with the outcome it implies."""
        outcomes: dict[str, Outcome] = {
            AgentStatus.FINISH: Outcome.FINISHED,
            AgentStatus.FAIL: Outcome.FAILED,
            AgentStatus.ERROR: Outcome.ERROR,
        }
        return Move(status, By.MODEL, outcomes.get(status), comment or f"the model said {status}")


class PendingState(AgentState):
    """Wait for a person's answer. No phase runs."""

    __slots__ = ()

    async def handle(self, agent: Processing, context: Run) -> Message:
        """Put the model's questions to a person."""
        return await agent.process_asker(context)

    def decide(self, run: Run) -> Move | None:
        """Return to work after an answer; fail at the deadline."""
        match run.last:
            case Cancel():
                return Move(AgentStatus.FAIL, By.SYSTEM)
            case Answer(nobody=nobody):
                return Move(AgentStatus.CONTINUE, By.SYSTEM if nobody else By.USER)
            case RequestExpired():
                return Move(AgentStatus.FAIL, By.TIMEOUT, Outcome.TIMED_OUT, "nobody answered the question in time")
            case StepFailure():
                return failed_step(run.last)
            case _:
                return None


class ConfirmState(AgentState):
    """Hold actions until a person approves them; then run exactly those.

    The agent observes the target again before it runs them.
    """

    __slots__ = ()

    on_rejection: ClassVar[str] = AgentStatus.FAIL
    """The target status after a rejection."""

    async def handle(self, agent: Processing, context: Run) -> Message:
        """Request the approval with an observation, or run the approved actions."""
        if context.broken_off:
            return await agent.process_recovered(context)
        if context.answer is not None:
            return await agent.process_resume(context)
        return await agent.process_confirmation(context)

    def decide(self, run: Run) -> Move | None:
        """Continue once the approved actions ran; a rejection never runs them."""
        match run.last:
            case Cancel():
                return Move(AgentStatus.FAIL, By.SYSTEM)
            case ApprovalAnswer(approved=False) as answer:
                return Move(self.on_rejection, By.USER, Outcome.REJECTED, rejection(answer))
            case StepDone() if run.held_by in {Held.PAUSE, Held.POLICY}:  # or asked about again, as another action now
                return None
            case StepDone() if (stuck := no_progress(run)) is not None:
                return stuck
            case StepDone():
                unattended = run.answer is not None and run.answer.unattended
                return Move(AgentStatus.CONTINUE, By.SYSTEM if unattended else By.USER)
            case Answer() | RequestExpired() if on_doubt(run):
                return after_doubt(run, self.on_rejection)
            case RequestExpired(at_deadline=AtDeadline.ALLOW):
                return None
            case RequestExpired() as expired:
                return expired_approval(expired, self.on_rejection)
            case StepFailure():
                return failed_step(run.last)
            case _:
                return None


class CleanupState(AgentState):
    """FAIL and ERROR: take a last observation for the record, then FINISH.

    The outcome does not change.
    """

    __slots__ = ()

    async def handle(self, agent: Processing, context: Run) -> Message:
        """Take a last observation, unless the work was stopped from outside.

        After a cancel, a timeout or an exhausted budget, the target is not touched again.
        """
        if context.outcome in _run.STOPPED:
            return Captured(observation=None)
        return await agent.capture(context)

    def decide(self, run: Run) -> Move | None:
        """Move to FINISH after the last observation, even if it failed."""
        return Move(AgentStatus.FINISH, By.SYSTEM) if isinstance(run.last, Captured | StepFailure | Cancel) else None

    def is_subtask_end(self) -> bool:
        """Return True."""
        return True


class FinishState(AgentState):
    """The end of a subtask: archive its result; the HostAgent acts next."""

    __slots__ = ()

    only_decides = True

    async def handle(self, agent: Processing, context: Run) -> Message:
        """Return the final message for the recorded outcome."""
        return archive(context)

    def decide(self, run: Run) -> Move | None:
        """Return None: this state is final."""
        return None

    def next_agent(self, run: Run) -> str:
        """Return the address of the HostAgent, if there is one."""
        return run.assign.host or run.assign.address

    def is_subtask_end(self) -> bool:
        """Return True."""
        return True


class NoneState(AgentState):
    """Placeholder for an unknown status: it does nothing and never moves."""

    __slots__ = ()

    async def handle(self, agent: Processing, context: Run) -> Message:
        """Do nothing."""
        return Captured(observation=None)

    def decide(self, run: Run) -> Move | None:
        """Return None."""
        return None

    @classmethod
    def name(cls) -> str:
        """Return an empty string: it stands for no status."""
        return ""


def no_progress(run: Run) -> Move | None:
    """End the work after too many failed or repeated steps.

    Steps with a failed action count in a row; a step whose actions succeed resets the count.
    """
    if run.failures >= run.limits.action_failures:
        reason = f"repeated action failures: {run.failures} in a row"
    elif run.repeats > run.limits.repeats:
        reason = f"no progress: the same {run.repeats} times, and nothing changed"
    else:
        return None
    return Move(AgentStatus.FAIL, By.SYSTEM, Outcome.FAILED, reason)


def refused_finish(run: Run) -> Move | None:
    """Return the move after a FINISH that its checks or judge refuse.

    The agent goes on, `check_retries` times at most.
    """
    if not run.records[-1].refused:
        return None
    if sum(record.refused for record in run.records) <= run.limits.check_retries:
        return Move(AgentStatus.CONTINUE, By.SYSTEM)
    return Move(AgentStatus.FAIL, By.SYSTEM, Outcome.FAILED, _run.UNVERIFIED)


def failed_step(failed: StepFailure) -> Move:
    """Return the move after a failure outside the four phases.

    It leads to ERROR, unless time or a budget ran out.
    """
    return Move(AgentStatus.ERROR if failed.outcome is Outcome.ERROR else AgentStatus.FAIL, By.SYSTEM, failed.outcome)


def rejection(answer: ApprovalAnswer) -> str:
    """Return a reason that names the person who rejected, and why."""
    return f"rejected by {answer.by or 'a person'}: {answer.reason or 'no reason given'}"


def expired_approval(expired: RequestExpired, on_rejection: str) -> Move:
    """Return the move after an approval request that expired."""
    if expired.at_deadline is AtDeadline.DENY:
        return Move(on_rejection, By.TIMEOUT, Outcome.REJECTED, _run.TOO_LATE)
    return Move(AgentStatus.FAIL, By.TIMEOUT, Outcome.TIMED_OUT, _run.TOO_LATE)


def on_doubt(run: Run) -> bool:
    """Report whether the last answer was about an action in doubt.

    An approval granted at the deadline is not: it belongs to the step itself.
    """
    allowed = isinstance(run.last, RequestExpired) and run.last.at_deadline is AtDeadline.ALLOW
    return run.broken_off and run.at_limit is None and not allowed


def after_doubt(run: Run, on_stop: str) -> Move | None:
    """Return the move after an answer about an action in doubt.

    None means that the work continues. The decision depends on the answer alone, not on the state of the step: the step
    may have continued, and crashed again, before this run was saved.
    """
    match run.last:
        case Answer(texts=(_run.WAS_DONE | _run.WAS_NOT_DONE,)):
            return None
        case Answer():
            return Move(on_stop, By.USER, Outcome.FAILED, "a person said stop at an action in doubt")
        case _:
            reason = "nobody said in time whether an action in doubt was done"
            return Move(AgentStatus.FAIL, By.TIMEOUT, Outcome.TIMED_OUT, reason)


def archive(run: Run) -> Message:
    """Build the final message of a subtask, or of a HostAgent's round."""
    assign = run.assign
    outcome = run.outcome or Outcome.ERROR
    if assign.number == 0:
        return RoundEnding(
            task_id=assign.task_id,
            run_id=assign.run_id,
            token=assign.token,
            outcome=outcome,
            causes=run.causes,
            output=_round_output(run),
            comment=run.decision_comment,
            artifacts=run.artifacts,
            made=run.made,
            changed=run.changed,
            actions=len(run.effects),
            failed_actions=run.failed_actions,
            would_do=run.would_do,
            checks=run.checks,
            judged=run.judged,
            usage=run.usage,
        )
    if run.remote_result is not None:
        ended = {"outcome": outcome, "causes": run.causes, "usage": run.usage}
        return subtask_ended(assign.task_id, assign.token, run.remote_result.model_copy(update=ended))
    result = SubtaskResult(
        run_id=assign.run_id,
        number=assign.number,
        group=assign.group,
        request=assign.request,
        address=assign.address,
        target="" if assign.target is None else assign.target.name,
        outcome=outcome,
        causes=run.causes,
        output=run.output,
        comment=run.decision_comment,
        artifacts=run.artifacts,
        made=run.made,
        changed=run.changed,
        actions=len(run.effects),
        failed_actions=run.failed_actions,
        would_do=run.would_do,
        checks=run.checks,
        judged=run.judged,
        last_seen=run.last_seen,
        usage=run.usage,
    )
    return subtask_ended(assign.task_id, assign.token, result)


def _round_output(run: Run) -> object:
    typed = run.assign.output_schema is not None
    if run.assign.plan and run.outcome is Outcome.FINISHED and run.own_subtasks:  # a dry run may have none
        return run.own_subtasks[-1].output
    if typed and (run.outcome is not Outcome.FINISHED or run.records[-1].decision.status == AgentStatus.FINISH):
        return run.output
    own_result = next((r.decision.result for r in reversed(run.records) if r.decision.result is not None), None)
    if own_result is not None and not typed:
        return own_result
    finished = [result.output for result in run.own_subtasks if result.outcome is Outcome.FINISHED]
    return finished[-1] if finished else run.output
