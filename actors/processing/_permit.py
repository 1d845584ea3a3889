"""Apply the policy to an action.

Allow it, deny it, or require a person's approval.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from callboard.actors.commands import SecretRefusedError, UnknownSecretError, stricter, text_of
from callboard.actors.processing._collect import in_time
from callboard.config import Verdict
from callboard.messages import EventName, Hazard

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from callboard.actors.commands import Asked, BoundTool, Facts, Ruling
    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import Action, CommandResult, Observation


_written = json.JSONEncoder(ensure_ascii=False).encode
SHOWN = 500
"""Maximum length of an action's arguments in an event, in characters of JSON."""


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
    """Return the policy's ruling on an action.

    The facts that it is based on come with it. A required approval that was given before, or that the settings waive,
    becomes ALLOW.

    Args:
        context: The context of the step.
        run: The run that the action belongs to.
        observation: The observation that the decision is based on.
        action: The action.
        tool: Its tool.
        approved: The reason why the action counts as approved, or empty. It holds for the facts that the action was
            held with. An approved action can still be denied.
        results: Results of earlier actions that are not part of a finished step yet.

    Raises:
        SecretRefusedError: If a model's answer names a secret where it is not granted.
        ToolTimeoutError: If the tool's surface takes too long to report the facts of the call.
    """
    services, assign = context.services, run.assign
    task_policy = services.task_policies.of(assign.task_id)
    policy_needs = services.policy.asked if task_policy is None else services.policy.asked | task_policy.asked
    facts = tool.same_facts(policy_needs)
    arguments = action.arguments
    if facts is None or services.secrets.known:  # raises for a secret that is not granted here
        arguments = _filled(context, run, action, tool)
    if facts is None:
        asking = tool.facts(arguments, _new_paths(run, results), policy_needs)
        facts = await in_time(context, asking, f"asking what {action.tool} would do")
    names = services.may_change.names(assign.task_id)
    if names and Hazard.OVERWRITES in facts.hazards:
        overwritten = await in_time(context, tool.overwritten(arguments), f"asking what {action.tool} would overwrite")
        facts = replace(facts, may_change=tuple(overwritten) if names.issuperset(overwritten) else ())
    if facts.hazards == {Hazard.DELETES}:
        deleted = await in_time(context, tool.deleted(arguments), f"asking what {action.tool} would delete")
        if deleted and _are_own(context, run, action, deleted, results):
            facts = replace(facts, own_files=tuple(deleted))
    ruled = services.policy.rule(assign.address, tool.info, facts)
    if task_policy is not None:
        ruled = stricter(ruled, task_policy.rule(assign.address, tool.info, facts))
    waived = ""
    if ruled.verdict is Verdict.APPROVE:
        if Hazard.SENDS in facts.hazards:
            sending = tool.recipient(_filled(context, run, action, tool))
            recipient = await in_time(context, sending, f"asking where {action.tool} would send to")
            facts = replace(facts, recipient=recipient)
        current = facts.kept()
        is_covered = action.facts is None or action.facts.covers(current)
        waived = (approved if is_covered else "") or _waiver(
            context, run, observation, action.model_copy(update={"facts": current})
        )
    context.tell(
        EventName.POLICY_DECIDED,
        run,
        tool=action.tool,
        arguments=_written(action.arguments)[:SHOWN],
        control=action.control.id if action.control is not None else "",
        effect=str(facts.effect or tool.info.effect),
        verdict=str(ruled.verdict),
        reason=ruled.reason,
        hazards=sorted(map(str, facts.hazards)),
        canonical=_canonical(facts, action, policy_needs) if facts.arguments else {},
        inexact=sorted(facts.inexact if policy_needs.explain else facts.inexact & policy_needs.arguments),
        resources={name: dict(resource) for name, resource in facts.resources.items()} if facts.resources else {},
        waived=waived,
        may_change=list(facts.may_change),
        own_files=list(facts.own_files),
        recipient=facts.recipient,
    )
    return (type(ruled)(Verdict.ALLOW, ruled.reason) if waived else ruled), facts


async def explained(context: Context, run: Run, action: Action, tool: BoundTool, facts: Facts, *, reason: str) -> str:
    """Add the content that an action would replace to its ruling.

    A person is asked with it. The tool's surface may have to look at the target, so only a question is worth it.

    Raises:
        ToolTimeoutError: If the tool's surface takes too long.
    """
    if Hazard.OVERWRITES in facts.hazards:
        replaced = tool.replaced(_filled(context, run, action, tool))
        content = await in_time(context, replaced, f"asking what {action.tool} would replace")
        reason += f"; it would replace {content}" if content else ""
    return reason


def _new_paths(run: Run, results: Iterable[CommandResult]) -> tuple[str, ...]:
    """Return the files that the task created before an action."""
    return (*run.made, *(path for result in results for path in result.made))


def _are_own(
    context: Context, run: Run, action: Action, digests: Mapping[str, str], results: Iterable[CommandResult]
) -> bool:
    """Return whether the task created all of these files.

    None may have changed since. Files of subtasks that work at the same time do not count: their order must not matter.
    """
    own_files, task_id = context.services.own_files, run.assign.task_id
    return digests.keys() <= set(_new_paths(run, results)) and all(
        digest and digest == own_files.digest(task_id, path, action.call_id) for path, digest in digests.items()
    )


def _waiver(context: Context, run: Run, observation: Observation, action: Action) -> str:
    """Return the reason to waive a required approval, or empty."""
    services, assign = context.services, run.assign
    if not services.settings.system.safe_guard:
        return "safe_guard is off"
    if services.approved.has(assign.task_id, assign.address, assign.target, action, observation):
        return "approved for the rest of the task"
    return ""


def _filled(context: Context, run: Run, action: Action, tool: BoundTool) -> dict[str, JsonValue]:
    """Return an action's arguments with secrets filled in.

    They are unchanged if a secret is unknown.
    """
    secret_place = None if action.program else tool.place
    try:
        return context.services.secrets.fill(run.assign.task_id, action.arguments, secret_place)
    except UnknownSecretError:
        return action.arguments
    except SecretRefusedError as error:
        details = {"secret": error.name, "tool": action.tool, "parameter": error.parameter}
        context.tell(EventName.SECRET_REFUSED, run, **details)
        raise


def _canonical(facts: Facts, action: Action, policy_needs: Asked) -> dict[str, JsonValue]:
    """Return the arguments as the policy saw them.

    These are all arguments if an explanation was requested, otherwise those that differ from the action's.
    """
    if policy_needs.explain:
        return dict(facts.arguments)
    policy_values = ((name, facts.arguments[name]) for name in policy_needs.arguments & facts.arguments.keys())
    action_arguments = action.arguments
    return {
        name: value
        for name, value in policy_values
        if name not in action_arguments or text_of(action_arguments[name]) != text_of(value)
    }
