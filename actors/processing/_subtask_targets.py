"""The targets and the order of the subtasks in an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.commands import find_target
from callboard.actors.states import earlier_positions
from callboard.messages import (
    FailedSubtaskError,
    InvalidAnswerError,
    Outcome,
    PlannedSubtask,
    TargetKind,
    tool_of_absent_target,
)
from callboard.models import chosen, labelled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callboard.actors.states import Run
    from callboard.messages import Observation, Target
    from callboard.models import HostResponse, SubtaskResponse


def assigned_target(
    run: Run,
    request: str,
    response: HostResponse | SubtaskResponse,
    observation: Observation,
    needs: Mapping[str, str],
) -> Target:
    """Return the target of a subtask.

    Raises:
        InvalidAnswerError: If there is no such target, it belongs to one machine although labels are needed, or the
            subtask failed there too often.
    """
    target = _target(response, observation)
    try:
        target = target.needing(needs)
    except ValueError as error:
        raise InvalidAnswerError(str(error)) from error
    _check_retries(run, target, request)
    return target


def end_of_dry_run(run: Run, response: HostResponse, observation: Observation) -> str:
    """Return why an assignment ends a dry run, or empty.

    A target is not there if the action that makes it was not executed.
    """
    for subtask in response.subtasks or (response,):
        name = subtask.text or subtask.label
        tool = name and tool_of_absent_target(run.records, run.subtasks, name)
        if tool and _named(name, observation) is None:
            return f"the dry run ends here: {name} is not there, because {tool} was not executed"
    return ""


def planned_group(run: Run, response: HostResponse, observation: Observation) -> tuple[PlannedSubtask, ...]:
    """Check the subtasks of an answer that assigns several, and their order.

    Each may come after earlier ones only, so that no cycle can be written.

    Raises:
        InvalidAnswerError: If there are too many, or one has no known target or an order that is not possible, or two
            without an order have the same open target. The message is written for the model.
    """
    most = run.limits.subtasks_per_assign
    if len(response.subtasks) > most and not run.assign.plan:
        msg = f"Sub-Tasks: at most {most} at once (limits.subtasks_per_assign), not {len(response.subtasks)}"
        raise InvalidAnswerError(msg)
    numbered = enumerate(response.subtasks, 1)
    group = tuple(_planned(run, subtask, position, observation) for position, subtask in numbered)
    if not run.assign.plan:
        _check_orders(group)
    return group


def _check_orders(group: tuple[PlannedSubtask, ...]) -> None:
    """Refuse two subtasks of one open target without an order.

    They could not work side by side, and neither would see what the other one did.
    """
    for position, (planned, before) in enumerate(zip(group, earlier_positions(group), strict=True), 1):
        for earlier, other in enumerate(group[: position - 1], 1):
            same = planned.target == other.target and not (
                planned.target.kind is TargetKind.APPLICATION or planned.target.copies
            )
            if same and earlier not in before:
                msg = (
                    f"Sub-Tasks[{position}]: {planned.target.id} is the target of subtask {earlier}, too; make one "
                    f"subtask of both, or name {earlier} in After or AfterAny"
                )
                raise InvalidAnswerError(msg)


def _planned(run: Run, response: SubtaskResponse, position: int, observation: Observation) -> PlannedSubtask:
    where = f"plan[{position - 1}]" if run.assign.plan else f"Sub-Tasks[{position}]"
    for name, positions in (("After", response.after), ("AfterAny", response.after_any)):
        wrong = [number for number in positions if not 1 <= number < position]
        if wrong:
            choices = f"1 to {position - 1}" if position > 1 else "none, since it is the first"
            msg = f"{where}.{name}: {wrong[0]} is no earlier subtask; it may name {choices}"
            raise InvalidAnswerError(msg)
    request = response.subtask or run.assign.request
    step = run.assign.plan[position - 1] if run.assign.plan else None
    try:
        target = assigned_target(run, request, response, observation, {} if step is None else step.needs)
    except InvalidAnswerError as error:
        msg = f"{where}: {error}"
        raise type(error)(msg) from error
    return PlannedSubtask(
        request=request,
        target=target,
        after=tuple(sorted({*response.after})),
        after_any=tuple(sorted({*response.after_any})),
        checks=() if step is None else step.checks,
    )


def _target(response: HostResponse | SubtaskResponse, observation: Observation) -> Target:
    targets = observation.targets
    names = (response.label, response.text)
    named = [target for name in names if name and (target := _named(name, observation)) is not None]
    if named and named[0] != named[-1] and response.text != named[0].name:  # a name may be the id of another target
        msg = f"{response.label!r} and {response.text!r} are two targets; name the one that is meant"
        raise InvalidAnswerError(msg)
    if named:
        return named[0]
    target_names = ", ".join(f"{target.id} ({target.name})" for target in targets) or "none"
    wanted_name = response.text or response.label
    msg = (
        f"there is no target {wanted_name!r}; there are: {target_names}"
        if wanted_name
        else f"ASSIGN needs a target; there are: {target_names}"
    )
    raise InvalidAnswerError(msg)


def _named(name: str, observation: Observation) -> Target | None:
    return find_target(observation.targets, name) or chosen(labelled(observation.targets), name)


def _check_retries(run: Run, target: Target, request: str) -> None:
    failed = [
        done
        for done in run.own_subtasks
        if done.outcome is not Outcome.FINISHED
        and done.address == target.of_run(done.run_id).address
        and done.request == request
    ]
    if len(failed) > run.limits.subtask_retries:
        msg = (
            f"the subtask {request!r} failed {len(failed)} times on {target.id}, and may not be assigned again: "
            "go another way, or say FAIL"
        )
        raise FailedSubtaskError(msg)
