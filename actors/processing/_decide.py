"""LLM_INTERACTION: ask the model, or follow the plan."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from callboard.actors.processing._answer_repair import AnswerRepair
from callboard.actors.processing._answers import decision_of
from callboard.actors.processing._model_request import model_request, proposes
from callboard.actors.processing._next_answer import AnswerSource
from callboard.actors.processing._omission import omission
from callboard.messages import (
    AgentStatus,
    Answered,
    EventName,
    InvalidAnswerError,
    Usage,
    as_json,
    maker,
    numbers_before,
)
from callboard.models import ModelAnswer, without_nulls

if TYPE_CHECKING:
    from callboard.actors.commands import Tools
    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import Decision, Observation
    from callboard.models import ModelRequest


async def ask_model(context: Context, run: Run, observation: Observation) -> Decision:
    """Ask the agent's model until its answer is valid.

    There are at most ``limits.repairs`` retries. Each call is reserved from the budgets of step, subtask and task
    before it is made. After a crash the answers in the journal are used first, without a new call.

    Raises:
        InvalidAnswerError: If the last answer is invalid, too.
        FailedSubtaskError: If the model insists on a FINISH after a failed subtask.
        UnfoundedFinishError: If the model insists on a FINISH after failed actions only.
        ModelTimeoutError: If a call exceeds ``limits.model_seconds``.
        OutOfBudgetError: If a budget is too small for the call, which is not made then.
        ModelError: If the task's model can't be used, this kind of agent has no model, or the call fails.
    """
    source, repair = AnswerSource.of(context, run), AnswerRepair(context, run)
    journaled_answers = run.unfinished.answers if run.unfinished is not None else ()
    tools = context.services.toolbox.actions(context.kind, run.assign.target)
    while True:
        request = model_request(context, run, observation, tools, repair.reasons)
        start, is_known = time.perf_counter(), len(repair.reasons) < len(journaled_answers)
        if is_known:
            journaled_answer = journaled_answers[len(repair.reasons)].model_dump(include=set(ModelAnswer.model_fields))
            answer = ModelAnswer.model_validate(journaled_answer)
            usage = answer.usage
        else:
            answer, usage, start = await source.answer(request)
            if answer.must_succeed and not (answer.program or answer.offered):
                answer = answer.model_copy(update={"offered": request.statuses})
            answer = _checked(context, run, observation, answer, tools)
            answer = _with_omission(context, run, observation, answer, tools)
            context.note(run, _answered(request, answer, usage), lazy=True)
            if answer.summarised or answer.dropped:
                context.tell(EventName.MODEL_TRIMMED, run, summarised=answer.summarised, dropped=answer.dropped)
        call_data = {
            "duration": None if is_known or answer.replayed else time.perf_counter() - start,
            "model": source.name(answer),
            "answered_by": answer.model,
            "cost": None if answer.cost is None else usage.cost,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
        }
        repair.count()
        try:
            if answer.cut:
                raise InvalidAnswerError(answer.cut)  # noqa: TRY301 - handled like an invalid answer
            decision = _decided(context, run, observation, answer, tools)
        except InvalidAnswerError as error:
            repair.send_back(error, call_data)
            continue
        if repair.sends_back_finish(answer, decision, call_data):
            continue
        source.tell(answer, decision.status)
        if not answer.replayed:
            context.tell(EventName.MODEL_ANSWERED, run, status=decision.status, **call_data)
        repaired = {"sent_back": context.meter.sent_back, "omitted": context.meter.omitted}
        return decision.model_copy(update=repaired) if context.meter.sent_back else decision


def _checked(context: Context, run: Run, observation: Observation, answer: ModelAnswer, tools: Tools) -> ModelAnswer:
    """Mark an answer that is sent back in spite of its form.

    Its result does not fit the task's output, or its checks quote a secret. The mark is journaled with the answer:
    after a crash, and in a replay, the program's class and the secret may be missing.
    """
    schema = run.assign.output_schema
    if not answer.cut and context.services.secrets.known and proposes(context, run):
        answer = _without_secrets(context, run, observation, answer, tools)
    if schema is None or answer.cut:
        return answer
    try:
        decision = _decided(context, run, observation, answer, tools)
    except InvalidAnswerError:
        return answer  # it is sent back for that
    if decision.status != AgentStatus.FINISH:
        return answer
    problem = context.services.output_types.problem(run.assign.task_id, schema, decision.result)
    return answer.model_copy(update={"cut": f"Result does not fit its schema: {problem}"}) if problem else answer


def _with_omission(
    context: Context, run: Run, observation: Observation, answer: ModelAnswer, tools: Tools
) -> ModelAnswer:
    """Mark a FINISH that omits a part of the request.

    The mark is journaled with the answer: a replay, and recovery on another observation, send back the same answers.
    """
    if answer.omission is not None or answer.program or answer.cut or not answer.must_succeed:
        return answer
    try:
        decision = _decided(context, run, observation, answer, tools)
    except InvalidAnswerError:
        return answer
    if decision.status != AgentStatus.FINISH or decision.actions:
        return answer
    return answer.model_copy(update={"omission": omission(run, observation, decision, is_operator=context.is_operator)})


def _without_secrets(
    context: Context, run: Run, observation: Observation, answer: ModelAnswer, tools: Tools
) -> ModelAnswer:
    """Mark an answer whose proposed checks quote a secret.

    A pattern in which a reference replaces the value would be another one, or none.
    """
    try:
        decision = decision_of(context, run, observation, answer, tools)
    except InvalidAnswerError:
        return answer
    redacted = context.services.secrets.redact(run.assign.task_id, decision)
    for number, check in enumerate(decision.checks):
        if redacted.checks[number] != check:
            cut = f"Checks.{number}: it quotes a secret; leave it out, or name it as ${{secret:NAME}}"
            return answer.model_copy(update={"cut": cut})
    return answer


def _decided(context: Context, run: Run, observation: Observation, answer: ModelAnswer, tools: Tools) -> Decision:
    """Validate an answer, and redact the decision.

    Members of the task's output that strict modes required are left out.
    """
    decision = decision_of(context, run, observation, answer, tools)
    schema, secrets = run.assign.output_schema, context.services.secrets
    if schema is not None and decision.result is not None:
        decision = decision.model_copy(update={"result": without_nulls(decision.result, schema, schema)})
    return secrets.decided(run.assign.task_id, decision, program=answer.program) if secrets.known else decision


def _answered(request: ModelRequest, answer: ModelAnswer, usage: Usage) -> Answered:
    fields: dict[str, Any] = {
        "step": request.step,
        "call": request.call,
        "fingerprint": request.observation.fingerprint,
        "refers": answer.refers,
        "program": answer.program,
        "offered": answer.offered,
        "must_succeed": answer.must_succeed,
        "omission": answer.omission or "",
        "replayed": answer.replayed,
        "routine_step": answer.routine_step,
        "routine_miss": answer.routine_miss,
        "guards": answer.guards,
        "cut": answer.cut,
        "cost": None if answer.cost is None else usage.cost,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
    }
    try:
        content = as_json(answer.content)
    except ValueError:  # not JSON: the answer will be sent back as invalid
        return Answered(content=repr(answer.content), **fields)
    return _made_answered(content=content, **fields)


_made_answered = maker(Answered)


async def follow_plan(context: Context, run: Run, observation: Observation) -> Decision:
    """Decide by the plan if its step names a target.

    Otherwise ask the model. This is a HostAgent's follower mode. The plan's decision is validated like a model's
    answer: an unknown target is an invalid answer.
    """
    step = run.assign.plan_step
    if run.assign.plan:
        return decision_of(context, run, observation, ModelAnswer(content=_of_ordered_plan(run)))
    if step is None or step.target is None:
        return await ask_model(context, run, observation)
    content = {"Status": AgentStatus.ASSIGN.value, "Current Sub-Task": step.request, "ControlText": step.target}
    return decision_of(context, run, observation, ModelAnswer(content=content))


def _of_ordered_plan(run: Run) -> dict[str, Any]:
    """Return a plan's answer: all of its steps, and then the end."""
    if any(result.group for result in run.own_subtasks):
        return {"Status": AgentStatus.FINISH.value}
    plan = run.assign.plan
    subtasks = [
        {"Current Sub-Task": step.request, "ControlText": step.target, "After": [*before]}
        for step, before in zip(plan, numbers_before(plan), strict=True)
    ]
    return {"Status": AgentStatus.ASSIGN.value, "Sub-Tasks": subtasks}
