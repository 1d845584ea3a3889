"""Approvals and questions that a step asks a person, with their deadlines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.processing._picture import picture_before
from callboard.messages import ApprovalAnswer, ApprovalRequest, AtDeadline, Effect, Held, Question

if TYPE_CHECKING:
    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import AskedQuestion, Observation


def request_id(run: Run) -> str:
    """Return the id of a step's request to a person."""
    return _safe(f"{run.assign.run_id}~ask-{run.assign.round}.{run.job}")


def _safe(name: str) -> str:
    """Make an id one part of a URL's path."""
    return name.replace("/", "~")  # runs of earlier journals have slashes


def unattended_approval(context: Context, run: Run) -> ApprovalAnswer | None:
    """Approve the held actions if no person need be asked.

    They were approved for the rest of the task, or approvals are switched off.
    """
    assign, services = run.assign, context.services
    last_observation = run.memory[-1].observation if run.memory else None
    approvals = (
        services.approved.has(assign.task_id, assign.address, assign.target, a, last_observation) for a in run.held
    )
    remembered = run.held and all(approvals)
    if services.settings.system.safe_guard and not remembered:
        return None
    reason = "approved for the rest of the task" if remembered else "safe_guard is off"
    return ApprovalAnswer(id=request_id(run), task_id=assign.task_id, approved=True, unattended=True, reason=reason)


async def approval_request(context: Context, run: Run, observation: Observation) -> ApprovalRequest:
    """Build the request for the held actions.

    Its deadline is ``limits.approval_seconds`` from now.
    """
    assign = run.assign
    return ApprovalRequest(
        id=request_id(run),
        task_id=assign.task_id,
        run_id=assign.run_id,
        token=assign.token,
        address=assign.address,
        target=assign.target,
        actions=run.held,
        reason="; ".join(filter(None, (_words_of_model(run), run.held_why))),
        before=await picture_before(context, run, observation),
        observation=observation,
        deadline=context.services.clock.now() + run.limits.approval_seconds,
        at_deadline=_at_deadline(context, run),
    )


def _words_of_model(run: Run) -> str:
    """Return the model's words if it asks for the approval itself."""
    if run.held_by is Held.POLICY and run.held_why:
        return ""
    return run.decision_comment or "the agent's model asks for approval"


def _at_deadline(context: Context, run: Run) -> AtDeadline:
    """Return the outcome that the settings set for a deadline.

    A deadline never allows an action that must not run twice.
    """
    configured = run.limits.at_approval_deadline
    tools = context.services.toolbox.actions(context.kind, run.assign.target)
    effects = [tools[action.tool].info.effect for action in run.held if action.tool in tools]
    once = Effect.ONCE in effects or len(effects) < len(run.held)  # a missing tool counts as such an action
    return AtDeadline.DENY if configured is AtDeadline.ALLOW and once else configured


def question(context: Context, run: Run, questions: tuple[AskedQuestion, ...], name: str = "") -> Question:
    """Build a question; its deadline is ``limits.question_seconds`` from now.

    Its id is made from `name`, by default from the step.
    """
    assign = run.assign
    return Question(
        id=_safe(name) or request_id(run),
        task_id=assign.task_id,
        run_id=assign.run_id,
        token=assign.token,
        address=assign.address,
        questions=questions,
        deadline=context.services.clock.now() + run.limits.question_seconds,
    )


async def illustrated(context: Context, run: Run, plain_question: Question, observation: Observation) -> Question:
    """Add the pictures of the surface to a question."""
    earlier_picture = await picture_before(context, run, observation)
    return plain_question.model_copy(
        update={"before": earlier_picture, "picture": observation.annotated or observation.picture}
    )
