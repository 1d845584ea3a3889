"""The policy between LLM_INTERACTION and ACTION_EXECUTION: what may run, what is denied, what waits for a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.config import Verdict
from callboard.messages import EventName

if TYPE_CHECKING:
    from callboard.actors.commands import Ruling
    from callboard.actors.processing._phases import Context
    from callboard.actors.states import Run
    from callboard.messages import Action, Observation


@dataclass(frozen=True)
class Permit:
    """A list of actions, split at the first that may not simply run."""

    allowed: tuple[Action, ...]
    denied: tuple[Action, ...] = ()
    held: tuple[Action, ...] = ()
    why: str = ""


async def permit(
    context: Context, run: Run, observation: Observation, actions: tuple[Action, ...], *, approved: str = ""
) -> Permit:
    """Ask the rules about each action.

    Args:
        context: What the step runs with.
        run: The work that the actions belong to.
        observation: What the actions were decided on.
        actions: In order.
        approved: Why they count as approved, where they do: then only denials count.
    """
    for number, action in enumerate(actions):
        ruling = await _ruling(context, run, observation, action, approved=approved)
        if ruling.verdict is Verdict.DENY:
            return Permit(actions[:number], denied=actions[number:], why=f"denied: {ruling.reason}")
        if ruling.verdict is Verdict.APPROVE:
            return Permit(actions[:number], held=actions[number:], why=ruling.reason)
    return Permit(actions)


async def _ruling(context: Context, run: Run, observation: Observation, action: Action, *, approved: str) -> Ruling:
    """Give the verdict that counts: one that wants an approval counts as allowed when there is one already."""
    services, assign = context.services, run.assign
    tool = services.toolbox.actions(context.kind, assign.target)[action.tool]
    hazards = await tool.hazards(action.arguments, run.made)
    ruling = services.policy.rule(assign.address, tool.info, action.arguments, hazards)
    waived = ""
    if ruling.verdict is Verdict.APPROVE:
        if approved:
            waived = approved
        elif not services.settings.system.safe_guard:
            waived = "safe_guard is off"
        elif services.approved.has(assign.task_id, assign.address, action, observation):
            waived = "approved for the rest of the task"
    services.stream.emit(
        EventName.POLICY_DECIDED,
        task_id=assign.task_id,
        run_id=assign.run_id,
        agent=assign.address,
        state=run.status,
        step=run.steps + 1,
        tool=action.tool,
        verdict=ruling.verdict.value,
        reason=ruling.reason,
        hazards=sorted(hazard.value for hazard in hazards),
        waived=waived,
    )
    return type(ruling)(Verdict.ALLOW, ruling.reason) if waived else ruling
