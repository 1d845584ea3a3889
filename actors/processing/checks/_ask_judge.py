"""Ask the judge of a FINISH, who sees the evidence alone."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from callboard.actors.processing._collect import look_to_show, on_lane
from callboard.actors.processing._model_call import call_model
from callboard.actors.states import evolve
from callboard.messages import (
    AgentKind,
    EventName,
    InvalidAnswerError,
    JournalDamagedError,
    JudgeResult,
    ModelError,
    Observation,
    OutOfBudgetError,
    StepDone,
    encodable,
    reason_of,
)
from callboard.models import Evidence, ModelRequest, read_judgement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import Target
    from callboard.models import Model

_MOST_PICTURES = 4
"""The most pictures of the end."""


async def asked_judge(
    context: Context, run: Run, changes: str, unseen: list[str]
) -> tuple[tuple[JudgeResult, ...], int]:
    """Ask the judge about the end of a task.

    Without a valid answer, each question counts as `unsure`, with the problem.

    Args:
        context: The context of the step.
        run: The run that finishes.
        changes: The difference of all files, in words.
        unseen: Remarks on what is missing in it.

    Returns:
        The results, and the number of model calls.

    Raises:
        OutOfBudgetError: If a budget is too small for a call.
    """
    judge, assign = run.assign.judge, run.assign
    if judge is None:
        return (), 0
    pictures_before, pictures_after, dark = await _pictures(context, run)
    evidence = Evidence(
        request=assign.judge_request or assign.task_request or assign.request,
        questions=judge.question,
        changes=changes,
        unseen=(*unseen, *dark),
        before=pictures_before,
        after=pictures_after,
    )
    start, judge_usage = time.perf_counter(), _JudgeUsage()
    try:
        results = await _answers(context, run, evidence, judge_usage)
    except OutOfBudgetError:
        raise
    except Exception as error:  # third-party code boundary: a model of the host program
        problem = str(error) if isinstance(error, ModelError) else f"{type(error).__name__}: {reason_of(error)}"
        results = [JudgeResult(question=question, answer="unsure", problem=problem) for question in judge.question]
    redact = context.services.secrets.redact
    redacted_results = tuple(redact(assign.task_id, encodable(result)) for result in results)
    answers = [result.model_dump(mode="json") for result in redacted_results]
    duration = time.perf_counter() - start
    context.tell(
        EventName.JUDGE_ANSWERED,
        run,
        answers=answers,
        duration=duration,
        model=judge_usage.model,
        calls=judge_usage.answered,
        cost=judge_usage.cost,
        input_tokens=judge_usage.tokens[0],
        output_tokens=judge_usage.tokens[1],
    )
    return redacted_results, judge_usage.calls


class _JudgeUsage:
    """The usage of a judge's calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.answered = 0
        self.model = ""
        self.cost: float | None = 0.0
        self.tokens = [0, 0]


async def _answers(context: Context, run: Run, evidence: Evidence, judge_usage: _JudgeUsage) -> list[JudgeResult]:
    """Ask until an answer is valid, with `limits.repairs` retries."""
    model, reasons = _model(context, run), tuple[str, ...]()
    judge_usage.model = model.name or type(model).__name__
    earlier = sum(record.judge_calls for record in run.records)
    while True:
        request = _request(context, run, evidence, earlier + len(reasons) + 1, reasons)
        judge_usage.calls += 1
        answer, usage, _ = await call_model(context, run, model, request)
        judge_usage.answered += 1
        judge_usage.tokens = [judge_usage.tokens[0] + usage.input_tokens, judge_usage.tokens[1] + usage.output_tokens]
        judge_usage.cost = None if answer.cost is None or judge_usage.cost is None else judge_usage.cost + usage.cost
        context.meter.amounts["repairs"] += bool(reasons)
        try:
            if answer.cut:
                raise InvalidAnswerError(answer.cut)  # noqa: TRY301 - handled like an invalid answer
            verdicts = read_judgement(answer.content, len(evidence.questions))
        except InvalidAnswerError as error:
            reasons = (*reasons, str(error))
            most = run.limits.repairs
            if len(reasons) > most:
                msg = f"the judge's answer is invalid: {error} (after {most} {'repair' if most == 1 else 'repairs'})"
                raise InvalidAnswerError(msg) from error
            continue
        pairs = zip(evidence.questions, verdicts, strict=True)
        return [JudgeResult(question=question, answer=verdict, reason=reason) for question, (verdict, reason) in pairs]


def _model(context: Context, run: Run) -> Model:
    """Return the judge's model.

    Raises:
        ModelError: If there is none, or it could not be built.
    """
    services, judge = context.services, run.assign.judge
    if judge is not None and judge.model is not None:
        return services.task_models.called(judge.model)
    model = services.task_models.of(run.assign.task_id) or services.models.get(AgentKind.HOST)
    if model is None:
        msg = "no model is set for the judge: name one in `judge`, or set models.host"
        raise ModelError(msg)
    return model


def _request(context: Context, run: Run, evidence: Evidence, call: int, reasons: tuple[str, ...]) -> ModelRequest:
    task_id = run.assign.task_id
    request = ModelRequest(
        address=f"judge/{task_id}",
        kind="judge",
        task_id=task_id,
        run_id=run.assign.run_id,
        step=run.steps + 1,
        call=call,
        status=run.status,
        statuses=(),
        instructions="",
        task_request=evidence.request,
        request=evidence.request,
        target=None,
        plan=(),
        observation=Observation(),
        memory=(),
        subtasks=(),
        tools=(),
        reasons=reasons,
        evidence=evidence,
    )
    redactor = context.services.secrets.redactor(task_id)
    return redactor.redact(request) if redactor.known else request


async def _pictures(context: Context, run: Run) -> tuple[tuple[bytes, ...], tuple[bytes, ...], list[str]]:
    """Return pictures before and after the work, and remarks on missing ones.

    A lone agent's judge sees its target; a HostAgent's judge sees the windows that its subtasks worked on. The picture
    from before the work is that of the first look.
    """
    own_target = run.assign.target
    if own_target is not None:
        looks = (*(record.observation for record in run.records), context.meter.seen)
        pictures_before = tuple(look.picture for look in looks if look is not None and look.picture is not None)[:1]
        pictures_after, missing = await _pictured(context, run, [own_target])
        return pictures_before, pictures_after, missing
    worked = {done.run_id: done.address for done in run.own_subtasks}
    targets = [window for window in await _listed(context, run) if window.address in worked.values()] if worked else []
    pictures_after, missing = await _pictured(context, run, targets)
    try:
        first = await _first_pictures(context, run.assign.task_id, worked) if targets else {}
    except JournalDamagedError as error:
        missing.append(f"the pictures from before the work can't be read: {reason_of(error)}")
        return (), pictures_after, missing
    missing += [
        f"there is no picture of {window.name} from before the work"
        for window in targets
        if window.address not in first
    ]
    pictures_before = tuple(first[window.address] for window in targets if window.address in first)
    return pictures_before[:_MOST_PICTURES], pictures_after, missing


async def _first_pictures(context: Context, task_id: str, worked: Mapping[str, str]) -> dict[str, bytes]:
    """Return the first picture of each target, by address.

    Args:
        context: The context of the step.
        task_id: The task.
        worked: The address that each run worked on, by the id of the run.
    """
    pictures: dict[str, bytes] = {}
    for row in await asyncio.wrap_future(context.services.journal.task_rows(task_id)):
        if isinstance(row.message, StepDone) and row.run_id in worked:
            picture = row.message.record.observation.picture
            if picture is not None:
                pictures.setdefault(worked[row.run_id], picture)
    return pictures


async def _listed(context: Context, run: Run) -> list[Target]:
    candidates: list[Target] = []
    for surface in context.services.toolbox.surfaces:
        if surface.pictures:
            candidates += await on_lane(context, surface, None, surface.targets)
    return [target for target in candidates if target.open_to(run.assign.task_id, run.assign.session)]


async def _pictured(context: Context, run: Run, targets: list[Target]) -> tuple[tuple[bytes, ...], list[str]]:
    pictures_found: list[bytes] = []
    missing: list[str] = []
    for target in targets:
        if not context.services.toolbox.surface(target).pictures:
            continue
        if len(pictures_found) == _MOST_PICTURES:
            missing.append(f"{target.name} is not shown: there are at most {_MOST_PICTURES} pictures")
            continue
        work = run.assign.model_copy(update={"target": target, "address": target.address})
        try:
            observation = await look_to_show(context, evolve(run, assign=work))
        except Exception as error:  # third-party code boundary: a surface of the host program
            missing.append(f"{target.name} can't be seen: {reason_of(error)}")
            continue
        if observation.picture is None:
            missing += [f"{target.name}: {note}" for note in observation.notes] or [f"{target.name} has no picture"]
        else:
            pictures_found.append(observation.picture)
    return tuple(pictures_found), missing
