"""Windows of the applications that a HostAgent starts for its subtasks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from callboard.messages import AgentStatus, ResultStatus, Target, TargetKind, agent_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.actors.processing._context import Context
    from callboard.actors.processing._phases import Acted
    from callboard.actors.states import Run
    from callboard.messages import Action, CommandResult, Decision


def starts_of(context: Context, decision: Decision) -> list[tuple[int, Action]]:
    """Return the starts of assigned applications, by the subtask's index."""
    calls = [
        (index, context.services.toolbox.start_of(target))
        for index, target in enumerate(_assigned_targets(decision))
        if target.kind is TargetKind.APPLICATION
    ]
    return [(index, call) for index, call in calls if call is not None]


def _assigned_targets(decision: Decision) -> tuple[Target, ...]:
    alone = () if decision.target is None else (decision.target,)
    return tuple(planned.target for planned in decision.group) or alone


def in_windows(context: Context, run: Run, acted: Acted) -> Acted:
    """Assign subtasks to the windows that were opened for them.

    This happens once the whole list has run. Parts of it may have run in earlier steps, before an approval or a pause.
    """
    starts = starts_of(context, acted.decision)
    if not starts or acted.held:
        return acted
    calls = acted.decision.actions[-len(starts) :]
    if [call.tool for call in calls] != [start.tool for _, start in starts]:
        return acted  # they could not be started when this was decided
    steps = (*(record.results for record in run.records), acted.results)
    results = {result.call_id: result for step in steps for result in step}
    started = [results[call.call_id] for call in calls if call.call_id in results]
    if any(result.status is ResultStatus.DRY_RUN for result in started):
        return replace(acted, decision=_without_windows(run, acted.decision))
    if any(map(_is_lost, started)):
        return replace(acted, decision=_without_answer(run, acted.decision))
    if len(started) < len(calls) or any(result.status is not ResultStatus.SUCCESS for result in started):
        return acted
    windows = list(_assigned_targets(acted.decision))
    for (index, _), result in zip(starts, started, strict=True):
        windows[index] = _window(windows[index], result)
    return replace(acted, decision=_assigned_to(acted.decision, windows))


def lost_window(decision: Decision, results: Sequence[CommandResult]) -> str:
    """Return why no more applications are started, or empty.

    One was started before a crash, and its answer is lost, so that nothing can be assigned to its window.
    """
    assigns_application = any(target.kind is TargetKind.APPLICATION for target in _assigned_targets(decision))
    start = next(filter(_is_lost, results), None) if assigns_application else None
    return f"skipped, because the window that {start.tool} opened before a crash is not known" if start else ""


def _is_lost(result: CommandResult) -> bool:
    return result.status is ResultStatus.SUCCESS and isinstance(result.value, str)


def _window(application: Target, started: CommandResult) -> Target:
    """Return the window that a start opened, for the application's agents."""
    try:
        window = Target.model_validate(started.value, strict=False)
    except ValidationError as error:
        msg = f"{started.tool} answered with no target: {error}"
        raise TypeError(msg) from error
    return next(iter(window.offers({agent_kind(application.address)})), window)


def _assigned_to(decision: Decision, targets: Sequence[Target]) -> Decision:
    if not decision.group:
        return decision.model_copy(update={"target": targets[0]})
    pairs = zip(decision.group, targets, strict=True)
    group = tuple(planned.model_copy(update={"target": target}) for planned, target in pairs)
    return decision.model_copy(update={"group": group})


def _decide_again(decision: Decision) -> Decision:
    """Make a HostAgent look and decide again, instead of assigning its subtasks."""
    return decision.model_copy(update={"status": AgentStatus.CONTINUE.value, "target": None, "group": ()})


def _without_windows(run: Run, decision: Decision) -> Decision:
    """Continue a dry run, which has no windows to work in.

    A plan, or a step of one, that names an application is over: its next decision would be the same. It fails if it had
    to return an output of a type.
    """
    if not _follows_plan(run):
        return _decide_again(decision)
    if run.assign.output_schema is None:
        return decision.model_copy(update={"status": AgentStatus.FINISH.value, "target": None, "group": ()})
    return _failed(decision, "a dry run starts no application, so that this step has no output")


def _without_answer(run: Run, decision: Decision) -> Decision:
    """Continue after a crash that lost the answer of a start.

    A model sees the windows, and decides again. A plan fails: to follow it again would start its applications again.
    """
    if not _follows_plan(run):
        return _decide_again(decision)
    return _failed(decision, "an application was started before a crash, and its window is not known")


def _follows_plan(run: Run) -> bool:
    step = run.assign.plan_step
    return bool(run.assign.plan) or (step is not None and step.target is not None)


def _failed(decision: Decision, why: str) -> Decision:
    return decision.model_copy(update={"status": AgentStatus.FAIL.value, "target": None, "group": (), "comment": why})
