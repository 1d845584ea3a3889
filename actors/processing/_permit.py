"""The policy between LLM_INTERACTION and ACTION_EXECUTION: what may run, what is denied, what waits for a person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from callboard.actors.commands import SecretRefusedError, UnknownSecretError, text_of
from callboard.actors.processing._collect import in_time
from callboard.config import Verdict
from callboard.messages import EventName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue

    from callboard.actors.commands import Asked, BoundTool, Facts, Ruling
    from callboard.actors.processing._phases import Context
    from callboard.actors.states import Run
    from callboard.messages import Action, CommandResult, Observation


_written = json.JSONEncoder(ensure_ascii=False).encode
SHOWN = 500
"""How much of an action's arguments an event shows, in characters of JSON."""


async def ruling(
    context: Context,
    run: Run,
    observation: Observation,
    action: Action,
    tool: BoundTool,
    *,
    approved: str,
    results: Iterable[CommandResult],
) -> tuple[Ruling, Facts]:
    """Ask the rules about one action, and give what they saw of it.

    An approval that is there already, or is not asked for, counts as allowed.

    Args:
        context: What the step runs with.
        run: The work that the action belongs to.
        observation: What the action was decided on.
        action: The action.
        tool: Its tool.
        approved: Why it counts as approved, where it does: then only a denial counts.
        results: Results of the run that no finished step tells yet: of the actions before it.

    Raises:
        SecretRefusedError: If a model's answer names a secret where it was not granted.
        ToolTimeoutError: If the tool's server took too long to say what a call would do.
    """
    services, assign = context.services, run.assign
    asked = services.policy.asked
    facts = tool.same_facts(asked)
    arguments = action.arguments
    if facts is None or services.secrets.known:  # to put one in where it was not granted is refused
        arguments = _filled(context, run, action, tool)
    if facts is None:
        made = (*run.made, *(path for result in results for path in result.made))
        asking = tool.facts({**arguments}, made, asked)
        facts = await in_time(context, asking, f"asking what {action.tool} would do")
    said = services.policy.rule(assign.address, tool.info, facts)
    waived = ""
    if said.verdict is Verdict.APPROVE:
        if approved:
            waived = approved
        elif not services.settings.system.safe_guard:
            waived = "safe_guard is off"
        elif services.approved.has(assign.task_id, assign.address, assign.target, action, observation):
            waived = "approved for the rest of the task"
    context.tell(
        EventName.POLICY_DECIDED,
        run,
        tool=action.tool,
        arguments=_written(action.arguments)[:SHOWN],
        control=action.control.id if action.control is not None else "",
        effect=str(facts.effect or tool.info.effect),
        verdict=str(said.verdict),
        reason=said.reason,
        hazards=sorted(map(str, facts.hazards)),
        canonical=_canonical(facts, action, asked) if facts.arguments else {},
        inexact=sorted(facts.inexact if asked.explain else facts.inexact & asked.arguments),
        resources={name: dict(known) for name, known in facts.resources.items()} if facts.resources else {},
        waived=waived,
    )
    return (type(said)(Verdict.ALLOW, said.reason) if waived else said), facts


def _filled(context: Context, run: Run, action: Action, tool: BoundTool) -> dict[str, JsonValue]:
    """Give an action's arguments as the tool will get them; of secrets that nobody knows, the names."""
    place = None if action.program else tool.place
    try:
        return context.services.secrets.fill(run.assign.task_id, action.arguments, place)
    except UnknownSecretError:
        return action.arguments
    except SecretRefusedError as error:
        told = {"secret": error.name, "tool": action.tool, "parameter": error.parameter}
        context.tell(EventName.SECRET_REFUSED, run, **told)
        raise


def _canonical(facts: Facts, action: Action, asked: Asked) -> dict[str, JsonValue]:
    """Give the arguments as the rules saw them: all of them where that is asked for, else what the action lacks."""
    if asked.explain:
        return dict(facts.arguments)
    seen = ((name, facts.arguments[name]) for name in asked.arguments & facts.arguments.keys())
    given = action.arguments
    return {name: value for name, value in seen if name not in given or text_of(given[name]) != text_of(value)}
