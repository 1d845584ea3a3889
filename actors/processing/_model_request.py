"""Build a step's request to a model, with names for secrets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from callboard.config import READ_SKILL
from callboard.models import ModelRequest, ProposingHostResponse

if TYPE_CHECKING:
    from callboard.actors.commands import Tools
    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.config import Redactor
    from callboard.messages import Observation
    from callboard.models import ToolInfo


def model_request(
    context: Context, run: Run, observation: Observation, tools: Tools, reasons: tuple[str, ...]
) -> ModelRequest:
    """Build the request of a step.

    `reasons` say why the answers so far were sent back.
    """
    assign = run.assign
    request = ModelRequest(
        address=assign.address,
        kind=context.kind,
        task_id=assign.task_id,
        run_id=assign.run_id,
        step=run.steps + 1,
        call=run.asked + len(reasons) + 1,
        status=run.status,
        statuses=context.manager.offered(run.status),
        instructions=context.services.prompts[context.kind],
        task_request=assign.task_request or assign.request,
        request=assign.request,
        target=assign.target,
        plan=run.plan,
        observation=observation,
        memory=run.memory,
        subtasks=run.subtasks,
        tools=tools.offered,
        reasons=reasons,
        replies=run.replies,
        attended=context.services.settings.system.ask_question,
        history_tokens=run.limits.history_tokens,
        observation_tokens=run.limits.observation_tokens,
        response=context.spec.response,
        picture_kinds=context.services.picture_kinds,
        output_schema=assign.output_schema,
        proposes=proposes(context, run),
        skills=context.services.skills if READ_SKILL in tools else (),
        skill_tokens=run.limits.skill_tokens,
        most_subtasks=run.limits.subtasks_per_assign if context.is_host and run.limits.parallel_subtasks > 1 else 0,
    )
    return _with_names(context, request, tools) if context.services.secrets.known else request


def _with_names(context: Context, request: ModelRequest, tools: Tools) -> ModelRequest:
    """Replace secret values by their names.

    Also lists the secrets and their grants.
    """
    secrets, task_id = context.services.secrets, request.task_id
    redactor = secrets.redactor(task_id)
    places = [(tool.place, tool.parameters) for tool in tools.values()]
    full_request = replace(
        request,
        tools=tuple([_described(tool, redactor) for tool in request.tools]) if redactor.known else request.tools,
        secrets=secrets.names(task_id),
        granted=secrets.granted(task_id, places),
    )
    return redactor.redact(full_request)


def _described(tool: ToolInfo, redactor: Redactor) -> ToolInfo:
    """Redact a tool's description and schema; its name stays."""
    return replace(tool, description=redactor.text(tool.description), schema=redactor.schema(tool.schema))


def proposes(context: Context, run: Run) -> bool:
    """Return whether an answer may propose checks."""
    return run.may_propose and issubclass(context.spec.response, ProposingHostResponse)
