"""ACTION_EXECUTION: do what was decided, as far as the policy, a pause and the surface allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from callboard.actors.processing._check import changed
from callboard.actors.processing._permit import Permit, permit
from callboard.actors.processing._phases import Acted
from callboard.messages import (
    Action,
    Command,
    CommandResult,
    Decision,
    EventName,
    Held,
    Observation,
    ResultStatus,
    Target,
    TargetKind,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from callboard.actors.processing._phases import Context
    from callboard.actors.states import Run

AFTER_FAILURE = "skipped, because an action failed before it"
AFTER_CUT = "skipped, because the list was cut before it"


async def act(context: Context, run: Run, observation: Observation, decision: Decision) -> Acted:
    """Run the actions of an answer in order, up to the first that is denied, held, or meant for something else by now.

    With CONFIRM the model itself wants approval: then none runs yet. A denial holds whatever anybody approves.
    """
    allowed = await permit(context, run, observation, decision.actions)
    if decision.status == "CONFIRM":
        if not allowed.denied:
            return Acted(decision, held=decision.actions, held_by=Held.MODEL)
        return Acted(decision, results=tuple(_not_run(context, run, 0, decision.actions, allowed.why)))
    return await _run_list(context, run, observation, decision, allowed)


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
    """Run exactly the held actions, after another look; if what one of them is meant for is not the same, run none."""
    record = run.memory[-1]
    for action in run.held:
        gone = await changed(context, run, record.observation, action)
        if gone:
            context.meter.add(cuts=1)
            _tell_cut(context, run, 0, gone)
            why = f"held back, but {gone}"
            skipped = _not_run(context, run, 0, run.held, why, later=why, first=ResultStatus.SKIPPED)
            return Acted(record.decision, results=tuple(skipped))
    allowed = await permit(context, run, record.observation, run.held, approved=_approval(run))
    return await _run_list(context, run, record.observation, record.decision, allowed)


def _approval(run: Run) -> str:
    """Say why held actions may run: a person approved them, or why none had to."""
    if run.answer is None:
        return ""
    return run.answer.reason if run.answer.unattended else "approved"


async def _run_list(context: Context, run: Run, observation: Observation, decision: Decision, allowed: Permit) -> Acted:
    """Run actions one by one; before each: is the task paused, and is the control still the same one?"""
    results: list[CommandResult] = []
    rest = (*allowed.allowed, *allowed.denied, *allowed.held)

    def acted(held_by: Held = Held.NOT, why: str = "", then: Iterator[CommandResult] | None = None) -> Acted:
        held = rest[len(results) :] if held_by is not Held.NOT else ()
        done = sum(result.status is ResultStatus.SUCCESS for result in results)
        first = len(rest) == len(decision.actions)
        context.meter.add(calls_saved=max(0, done - first))
        return Acted(decision, results=(*results, *(then or ())), held=held, held_by=held_by, held_why=why)

    for number, action in enumerate(allowed.allowed):
        if context.lease.paused:
            return acted(Held.PAUSE)
        gone = await changed(context, run, observation, action)
        if gone:
            context.meter.add(cuts=1)
            _tell_cut(context, run, number, gone)
            return acted(
                then=_not_run(context, run, number, rest[number:], gone, later=AFTER_CUT, first=ResultStatus.SKIPPED)
            )
        result = await _dispatch(context, run, number, action)
        results.append(result)
        if result.status is not ResultStatus.SUCCESS:
            why = f"skipped, because {action.tool} failed before it"
            return acted(
                then=_not_run(context, run, number + 1, rest[number + 1 :], why, later=why, first=ResultStatus.SKIPPED)
            )
    if allowed.denied:
        return acted(then=_not_run(context, run, len(results), allowed.denied, allowed.why))
    return acted(Held.POLICY, allowed.why) if allowed.held else acted()


async def _dispatch(context: Context, run: Run, number: int, action: Action) -> CommandResult:
    command = Command(
        task_id=run.assign.task_id,
        run_id=run.assign.run_id,
        token=run.assign.token,
        call_id=_call_id(run, number),
        tool=action.tool,
        parameters=action.arguments,
        timeout=context.services.settings.limits.command_seconds,
    )
    tools = context.services.toolbox.actions(context.kind, run.assign.target)
    context.meter.add(commands=1)
    (result,) = await context.services.dispatcher.run([command], tools, context.lease)
    context.meter.results.append(result)
    return result


def _tell_cut(context: Context, run: Run, number: int, gone: str) -> None:
    context.services.stream.emit(
        EventName.LIST_CUT,
        task_id=run.assign.task_id,
        run_id=run.assign.run_id,
        agent=run.assign.address,
        state=run.status,
        step=run.steps + 1,
        ran=number,
        reason=gone,
    )


def _not_run(  # noqa: PLR0913 - each says something else of what was not run
    context: Context,
    run: Run,
    start: int,
    actions: Sequence[Action],
    why: str,
    *,
    later: str = AFTER_FAILURE,
    first: ResultStatus = ResultStatus.FAILURE,
) -> Iterator[CommandResult]:
    """Make the results of actions that are not run: the first one's reason, and the later ones skipped."""
    for number, action in enumerate(actions):
        status, error = (first, why) if number == 0 else (ResultStatus.SKIPPED, later)
        result = CommandResult(call_id=_call_id(run, start + number), tool=action.tool, status=status, error=error)
        context.services.dispatcher.report(run.assign.task_id, run.assign.run_id, context.lease, result)
        yield result


def _call_id(run: Run, number: int) -> str:
    return f"{run.assign.run_id}.{run.steps + 1}.{number}"
