"""From a model's answer to a decision: everything that is checked before anything happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.commands import find_target
from callboard.actors.models import AppResponse, HostResponse, read_response
from callboard.messages import Action, AgentKind, ControlRef, Decision, InvalidAnswerError, Outcome

if TYPE_CHECKING:
    from callboard.actors.commands import BoundTool
    from callboard.actors.models import AgentResponse
    from callboard.actors.processing._phases import Context
    from callboard.actors.states import Run
    from callboard.messages import Observation, Target


def decision_of(context: Context, run: Run, observation: Observation, content: object) -> Decision:
    """Read and check an answer.

    Raises:
        InvalidAnswerError: If it is not in the schema, or wishes for what is not there: a status that is not legal
            now, an unknown target, tool or control, arguments that do not fit. The text is for the model.
    """
    response = read_response(context.kind, content)
    status = _status(response, context.manager.offered(run.status))
    actions = tuple(_action(context, run, observation, action) for action in response.decided_actions())
    target = subtask = None
    if isinstance(response, HostResponse) and status == "ASSIGN":
        target = _target(response, observation)
        subtask = response.subtask or run.assign.request
        _check_retries(run, target, subtask)
    return Decision(
        status=status,
        observation=response.observation,
        thought=response.thought,
        comment=response.comment,
        plan=tuple(line for line in response.plan if line.strip()),
        actions=actions,
        subtask=subtask or "",
        target=target,
        questions=response.asked(),
        reannotate=tuple(response.reannotate) if isinstance(response, AppResponse) else (),
        result=response.result,
    )


def _status(response: AgentResponse, offered: tuple[str, ...]) -> str:
    status = response.decided_status()
    if not status:
        msg = f"the answer has no Status; legal now are: {', '.join(offered)}"
        raise InvalidAnswerError(msg)
    if status not in offered:
        msg = f"Status: {status!r} is not legal now; legal are: {', '.join(offered)}"
        raise InvalidAnswerError(msg)
    return status


def _target(response: HostResponse, observation: Observation) -> Target:
    known = ", ".join(f"{target.id} ({target.name})" for target in observation.targets) or "none"
    for wanted in (response.label, response.text):
        target = find_target(observation.targets, wanted) if wanted else None
        if target is not None:
            return target
    wanted = response.text or response.label
    msg = (
        f"no target is called {wanted!r}; there are: {known}"
        if wanted
        else f"ASSIGN needs a target; there are: {known}"
    )
    raise InvalidAnswerError(msg)


def _check_retries(run: Run, target: Target, request: str) -> None:
    failed = [
        done
        for done in run.own_subtasks
        if done.outcome is not Outcome.FINISHED and done.address == target.address and done.request == request
    ]
    if len(failed) > run.limits.subtask_retries:
        msg = (
            f"the subtask {request!r} failed {len(failed)} times on {target.id}, and may not be assigned again: "
            "go another way, or say FAIL"
        )
        raise InvalidAnswerError(msg)


def _action(context: Context, run: Run, observation: Observation, action: Action) -> Action:
    tools = context.services.toolbox.actions(context.kind, run.assign.target)
    tool = tools.get(action.tool)
    if tool is None:
        msg = f"there is no tool {action.tool!r}; there are: {', '.join(sorted(tools)) or 'none'}"
        raise InvalidAnswerError(msg)
    if context.kind is not AgentKind.HOST:
        _check_control(observation, action.control)
    complete = _with_control(tool, action)
    problem = tool.check(complete.arguments)
    if problem:
        raise InvalidAnswerError(problem)
    return complete


def _check_control(observation: Observation, control: ControlRef | None) -> None:
    if control is None or observation.control(control) is not None:
        return
    known = ", ".join(f"{seen.id} ({seen.name})" for seen in observation.controls[:50]) or "none"
    wanted = f"{control.id!r} with the name {control.name!r}" if control.name else repr(control.id)
    msg = f"there is no control {wanted}; there are: {known}"
    raise InvalidAnswerError(msg)


def _with_control(tool: BoundTool, action: Action) -> Action:
    """Fill in the parameters that stand for the control, for answers that name it beside the arguments."""
    if action.control is None:
        return action
    given = {"control_id": action.control.id, "control_name": action.control.name}
    missing = {
        name: value for name, value in given.items() if value and tool.takes(name) and name not in action.arguments
    }
    return action.model_copy(update={"arguments": {**action.arguments, **missing}}) if missing else action
