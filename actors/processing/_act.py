"""ACTION_EXECUTION: do what was decided, as far as the policy allows."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from callboard.actors.processing._collect import target_of
from callboard.actors.processing._phases import Acted
from callboard.config import Verdict
from callboard.messages import (
    Action,
    Command,
    CommandResult,
    Decision,
    EventName,
    Observation,
    ResultStatus,
    Target,
    TargetKind,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from callboard.actors.processing._phases import Context
    from callboard.actors.states import Run


async def act(context: Context, run: Run, observation: Observation, decision: Decision) -> Acted:  # noqa: ARG001 - a strategy's signature
    """Run the actions of an answer in order, up to the first that is denied or needs approval.

    With CONFIRM the model itself wants approval: then none runs yet. A denial holds whatever anybody approves.
    """
    sorted_out = _sort_out(context, run, decision.actions)
    if decision.status == "CONFIRM" and not sorted_out.denied:
        return Acted(decision, held=decision.actions)
    runnable = () if decision.status == "CONFIRM" else sorted_out.allowed
    results = await dispatch(context, run, runnable)
    if any(result.status is not ResultStatus.SUCCESS for result in results):
        rest = decision.actions[len(runnable) :]
        return Acted(decision, results=(*results, *_refused(run, len(results), rest, "")))
    if sorted_out.denied:
        return Acted(decision, results=(*results, *_refused(run, len(results), sorted_out.denied, sorted_out.why)))
    return Acted(decision, results=results, held=sorted_out.held, held_by_policy=sorted_out.why)


async def act_as_host(context: Context, run: Run, observation: Observation, decision: Decision) -> Acted:
    """HostAgent: as `act`; an application that is assigned to is started first, and its new window gets the subtask."""
    target = decision.target
    if target is None or target.kind is not TargetKind.APPLICATION or target.start is None:
        return await act(context, run, observation, decision)
    start = Action(tool=target.start, arguments={"name": target.id})
    acted = await act(context, run, observation, decision.model_copy(update={"actions": (*decision.actions, start)}))
    if acted.held or not acted.results or acted.results[-1].status is not ResultStatus.SUCCESS:
        return acted
    started = acted.results[-1]
    try:
        window = Target.model_validate(started.value, strict=False)
    except ValidationError as error:
        msg = f"{target.start} answered with no target: {error}"
        raise TypeError(msg) from error
    return Acted(acted.decision.model_copy(update={"target": window}), results=acted.results)


async def act_held(context: Context, run: Run) -> Acted:
    """Look again, then run exactly the held actions; if a control of one is gone or another one, run nothing."""
    record = run.memory[-1]
    if run.assign.target is not None:
        gone = await _gone(context, run, record.observation)
        if gone:
            return Acted(record.decision, results=tuple(_gone_result(run, i, a, gone) for i, a in enumerate(run.held)))
    sorted_out = _sort_out(context, run, run.held, approved=True)
    results = await dispatch(context, run, sorted_out.allowed)
    if sorted_out.denied:
        why = "" if any(result.status is not ResultStatus.SUCCESS for result in results) else sorted_out.why
        results += tuple(_refused(run, len(results), sorted_out.denied, why))
    return Acted(record.decision, results=results)


async def dispatch(context: Context, run: Run, actions: Sequence[Action]) -> tuple[CommandResult, ...]:
    """Send actions to their tools."""
    seconds = context.services.settings.limits.command_seconds
    commands = [
        Command(
            task_id=run.assign.task_id,
            run_id=run.assign.run_id,
            token=run.assign.token,
            call_id=_call_id(run, number),
            tool=action.tool,
            parameters=action.arguments,
            timeout=seconds,
        )
        for number, action in enumerate(actions)
    ]
    tools = context.services.toolbox.actions(context.kind, run.assign.target)
    results = await context.services.dispatcher.run(commands, tools, context.lease)
    context.meter.add(commands=sum(result.status is not ResultStatus.SKIPPED for result in results))
    return results


@dataclass(frozen=True)
class _Sorted:
    """A list of actions, split at the first that may not simply run."""

    allowed: tuple[Action, ...]
    denied: tuple[Action, ...] = ()
    held: tuple[Action, ...] = ()
    why: str = ""


def _sort_out(context: Context, run: Run, actions: tuple[Action, ...], *, approved: bool = False) -> _Sorted:
    tools = context.services.toolbox.actions(context.kind, run.assign.target)
    for number, action in enumerate(actions):
        ruling = context.services.policy.rule(run.assign.address, tools[action.tool].info)
        _report(context, run, action, ruling.verdict, ruling.reason)
        before, rest = actions[:number], actions[number:]
        if ruling.verdict is Verdict.DENY:
            return _Sorted(before, denied=rest, why=f"denied: {ruling.reason}")
        if ruling.verdict is Verdict.APPROVE and not approved and context.services.settings.system.safe_guard:
            if "CONFIRM" in context.manager.transitions:
                return _Sorted(before, held=rest, why=ruling.reason)
            why = f"denied, because it needs approval and this agent can't ask: {ruling.reason}"
            return _Sorted(before, denied=rest, why=why)
    return _Sorted(actions)


def _report(context: Context, run: Run, action: Action, verdict: Verdict, reason: str) -> None:
    context.services.stream.emit(
        EventName.POLICY_DECIDED,
        task_id=run.assign.task_id,
        run_id=run.assign.run_id,
        agent=run.assign.address,
        state=run.status,
        step=run.steps + 1,
        tool=action.tool,
        verdict=verdict.value,
        reason=reason,
    )


async def _gone(context: Context, run: Run, observation: Observation) -> str:
    """Say which control of the held actions is gone or another one; empty if all are still there."""
    target = target_of(run)
    server = context.services.toolbox.server(target)
    for action in run.held:
        control = observation.control(action.control) if action.control is not None else None
        if control is None:
            continue
        now = await context.services.lanes.run(server.lane(target), functools.partial(server.resolve, target, control))
        if now is None:
            return f"{control.kind} {control.id} ({control.name})"
    return ""


def _gone_result(run: Run, number: int, action: Action, gone: str) -> CommandResult:
    why = f"approved, but {gone} is gone or another one by now; nothing was done"
    return CommandResult(call_id=_call_id(run, number), tool=action.tool, status=ResultStatus.SKIPPED, error=why)


def _refused(run: Run, start: int, actions: tuple[Action, ...], why: str) -> Iterator[CommandResult]:
    """Make the results of actions that are not run: the first one's reason, if any, and the others skipped."""
    for number, action in enumerate(actions):
        first = number == 0 and why
        yield CommandResult(
            call_id=_call_id(run, start + number),
            tool=action.tool,
            status=ResultStatus.FAILURE if first else ResultStatus.SKIPPED,
            error=why if first else "skipped, because an action failed before it",
        )


def _call_id(run: Run, number: int) -> str:
    return f"{run.assign.run_id}.{run.steps + 1}.{number}"
