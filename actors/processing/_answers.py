"""Validate a model's answer and convert it to a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.processing._subtask_targets import assigned_target, end_of_dry_run, planned_group
from callboard.config import REFERENCE
from callboard.messages import (
    Action,
    AgentStatus,
    ControlRef,
    Decision,
    FailedSubtaskError,
    InvalidAnswerError,
    maker,
    open_failures,
)
from callboard.models import (
    AppResponse,
    HostResponse,
    ProposingHostResponse,
    References,
    chosen,
    labelled,
    read_response,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

    from callboard.actors.commands import BoundTool, Tools
    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import Check, Control, Observation, PlannedSubtask
    from callboard.models import AgentResponse, ModelAnswer

    Labels = Mapping[str, Control]

_MOST = 50
"""Maximum number of controls listed in an error for the model."""


def decision_of(
    context: Context, run: Run, observation: Observation, answer: ModelAnswer, tools: Tools | None = None
) -> Decision:
    """Validate an answer and replace its references to results by the values.

    Args:
        context: The context of the step.
        run: The run that the answer belongs to.
        observation: The observation shown to the model.
        answer: The model's answer.
        tools: The tools that the model may call; None for all tools of the agent on its target.

    Raises:
        FailedSubtaskError: If the answer repeats a failed subtask too often, or finishes after a failed one.
        InvalidAnswerError: If it does not match the schema, or has a status that is not legal now, an unknown target,
            tool or control, or invalid arguments. The message is written for the model.
    """
    response = read_response(context.spec.response, answer.content)
    status = _status(response, context, run, answer.offered)
    labels = labelled(observation.controls)
    references = References(run.memory, run.subtasks, observation) if answer.refers else None
    if tools is None:
        tools = context.services.toolbox.actions(context.kind, run.assign.target)
    actions: list[Action] = []
    for number, action in enumerate(response.decided_actions()):
        filled = action if references is None else _filled(action, references)
        checked = _action(context, run, tools, labels, filled, program=answer.program)
        guard = answer.guards[number] if number < len(answer.guards) else None
        guards = guard is not None and (guard.marked is not None or guard.relies_on)
        actions.append(checked.model_copy(update={"guard": guard}) if guards else checked)
    _check_points(actions, observation)
    target, subtask = None, ""
    group: tuple[PlannedSubtask, ...] = ()
    if isinstance(response, HostResponse):
        _check_subtasks(response, status)
    comment = response.comment
    if isinstance(response, HostResponse) and status == AgentStatus.ASSIGN:
        dry_end = end_of_dry_run(run, response, observation) if run.assign.dry_run else ""
        if dry_end:
            status, comment = (AgentStatus.FAIL if run.assign.output_schema else AgentStatus.FINISH).value, dry_end
        elif response.subtasks:
            group = planned_group(run, response, observation)
        else:
            subtask = response.subtask or run.assign.request
            step = run.assign.plan_step
            needs = {} if step is None else step.needs
            target = assigned_target(run, subtask, response, observation, needs)
    return _decision(
        status=status,
        observation=response.observation,
        thought=response.thought,
        comment=comment,
        plan=tuple(filter(str.strip, response.plan)),
        actions=tuple(actions),
        subtask=subtask,
        target=target,
        group=group,
        stops_group=bool(group) and isinstance(response, HostResponse) and response.stops_group,
        questions=response.asked() if response.questions or status == AgentStatus.PENDING else (),
        reannotate=_reannotated(response, labels) if isinstance(response, AppResponse) and response.reannotate else (),
        result=response.result if references is None else references.put_in(response.result, result=True),
        routine_step=answer.routine_step,
        checks=_proposed(response, run) if isinstance(response, ProposingHostResponse) and response.checks else (),
    )


_decision = maker(Decision)


def _check_subtasks(response: HostResponse, status: str) -> None:
    """Check that no work in an answer would be dropped.

    Raises:
        InvalidAnswerError: If it has subtasks that would not be assigned.
    """
    if response.subtasks and status != AgentStatus.ASSIGN:
        msg = f"Sub-Tasks belong to the status ASSIGN, not {status}"
        raise InvalidAnswerError(msg)
    if response.subtasks and response.subtask:
        msg = "an ASSIGN has either Current Sub-Task and ControlText, or Sub-Tasks: put all into Sub-Tasks"
        raise InvalidAnswerError(msg)


def _proposed(response: ProposingHostResponse, run: Run) -> tuple[Check, ...]:
    """Return the checks that an answer proposes.

    Raises:
        InvalidAnswerError: If it is not the first answer, or a check is invalid.
    """
    if not run.may_propose:
        msg = "Checks: only the first answer to a task may propose checks; leave them out"
        raise InvalidAnswerError(msg)
    return response.proposed()


def _filled(action: Action, references: References) -> Action:
    """Replace references in arguments by values.

    The policy, people and the tool then see the values.
    """
    arguments = {name: references.put_in(value) for name, value in action.arguments.items()}
    return action.model_copy(update={"arguments": arguments})


def _status(response: AgentResponse, context: Context, run: Run, offered: tuple[str, ...]) -> str:
    """Return an answer's status.

    It must be one of those offered to the model. In SCREENSHOT any status of the state machine is accepted; one that
    was not offered leads to CONTINUE.
    """
    offered, status = offered or context.manager.offered(run.status), response.decided_status()
    if not status:
        msg = f"the answer has no Status; legal now are: {', '.join(offered)}"
        raise InvalidAnswerError(msg)
    if status not in offered and not (run.status == AgentStatus.SCREENSHOT and status in context.manager.transitions):
        msg = f"Status: {status!r} is not legal now; legal are: {', '.join(offered)}"
        failures = () if run.assign.number else open_failures(run.own_subtasks)
        if status == AgentStatus.FINISH and failures:
            ends = "; ".join(f"{failed.request!r}, ended as {failed.outcome.value}" for failed in failures)
            msg += f"; the last subtask, {ends}"
            raise FailedSubtaskError(msg)
        raise InvalidAnswerError(msg)
    return status


def _check_points(actions: Sequence[Action], observation: Observation) -> None:
    """Reject points outside the picture.

    Raises:
        InvalidAnswerError: If a point is outside the picture, or there is no picture.
    """
    for action in actions:
        points = action.points
        if not points:
            continue
        size = observation.picture_size
        if size is None:
            msg = f"{action.tool}: there is no picture now, so that nothing can be pointed at"
            raise InvalidAnswerError(msg)
        for x, y in points:
            if not (0 <= x < size[0] and 0 <= y < size[1]):
                msg = (
                    f"{action.tool}: the point {x}, {y} is not in the picture, which has {size[0]} x {size[1]} pixels: "
                    f"x is 0 to {size[0] - 1}, and y 0 to {size[1] - 1}"
                )
                raise InvalidAnswerError(msg)


def _reannotated(response: AppResponse, labels: Labels) -> tuple[str, ...]:
    """Return the ids of the controls that an answer names.

    Unknown names are kept.
    """
    matches = ((name, chosen(labels, name)) for name in response.reannotate)
    return tuple(name if control is None else control.id for name, control in matches)


def _action(context: Context, run: Run, tools: Tools, labels: Labels, action: Action, *, program: bool) -> Action:
    tool = tools.get(action.tool) or _tool_named_like(tools, action.tool)
    if tool is None:
        raise InvalidAnswerError(context.services.toolbox.missing(context.kind, run.assign.target, action.tool))
    control = action.control if tool.info.names_controls else _extra_control(action)
    if control is not None and not context.is_host:
        control = _control(tool, labels, control)
    complete = action.arguments if control is None else {**action.arguments, **_of_control(tool, action, control)}
    required = tool.info.schema.get("required", ())
    if None in complete.values():
        complete = {name: value for name, value in complete.items() if value is not None or name in required}
    problem = tool.check(complete)
    if problem and tool.takes_control and "control_id" in required and complete.get("control_id") is None:
        kinds = tool.info.controls
        fit = [label for label, control in labels.items() if not kinds or control.kind in kinds]
        listed = ", ".join(map(repr, fit[:_MOST])) or "none"
        problem = f"{tool.info.name} acts on a control: name it as ControlText; there are: {listed}"
    if problem:
        raise InvalidAnswerError(problem)
    return _checked_action(tool=tool.info.name, arguments=complete, control=control, program=program)


_checked_action = maker(Action)


def _extra_control(action: Action) -> ControlRef | None:
    """Return the control that an answer names beside its arguments.

    Answers for third parties' tools name none.
    """
    if action.control is None:
        return None
    named = {str(action.arguments[name]) for name in ("control_id", "control_name") if name in action.arguments}
    id_, name = ("" if text in named else text for text in (action.control.id, action.control.name))
    return ControlRef(id=id_, name=name) if id_ or name else None


def _tool_named_like(tools: Mapping[str, BoundTool], wanted_name: str) -> BoundTool | None:
    """Find a tool by name, ignoring case, spaces and the server's prefix."""
    folded = wanted_name.strip().casefold()
    for known_as in (str.casefold, _bare):
        matches = [tool for name, tool in tools.items() if known_as(name) == folded]
        if matches:
            return matches[0] if len(matches) == 1 else None
    return None


def _bare(name: str) -> str:
    """Return a third-party tool's name without its server's: ``file_ticket`` of ``tickets.file_ticket``."""
    return name.partition(".")[2].casefold()


def _control(tool: BoundTool, labels: Labels, reference: ControlRef) -> ControlRef | None:
    """Find the control that an answer names by id, name or both.

    Raises:
        InvalidAnswerError: If no such control exists, or id and name belong to different controls.
    """
    if any(candidate.id == reference.id and reference.name in {"", candidate.name} for candidate in labels.values()):
        return reference
    matches = [chosen(labels, wanted_text) for wanted_text in (reference.id, reference.name) if wanted_text]
    control = matches[0]
    if control is not None and all(match is control for match in matches):
        return ControlRef(id=control.id, name=control.name)
    if not reference.id and not tool.takes_control:
        return None  # the tool acts on no control: ignore the name
    control_names = (
        ", ".join(f"{candidate.id} ({candidate.name})" for candidate in list(labels.values())[:_MOST]) or "none"
    )
    has_both = reference.id and reference.name
    wanted_control = (
        f"{reference.id!r} with the name {reference.name!r}" if has_both else repr(reference.id or reference.name)
    )
    msg = f"there is no control {wanted_control}; there are: {control_names}"
    raise InvalidAnswerError(msg)


def _of_control(tool: BoundTool, action: Action, control: ControlRef) -> dict[str, JsonValue]:
    """Return the arguments that identify the control, if missing or written differently."""
    name = "" if REFERENCE.search(control.name) else control.name  # a name with a secret is left out: the id is enough
    mine = {"control_id": control.id, "control_name": name}
    named = control != action.control
    return {
        name: value
        for name, value in mine.items()
        if value and tool.takes_control and tool.takes(name) and (named or action.arguments.get(name) is None)
    }
