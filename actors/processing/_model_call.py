"""One model call: its turn, time limit and budget."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from callboard.actors.runtime import UNPRICED
from callboard.messages import Answered, EventName, ModelError, ModelTimeoutError, ScriptError, Usage, encodable
from callboard.models import Model, ModelAnswer, ModelRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run


async def call_model(
    context: Context, run: Run, model: Model, request: ModelRequest
) -> tuple[ModelAnswer, Usage, float]:
    """Ask once, on the model's turn.

    Returns the answer, its usage and its start time.
    """
    if getattr(model.turn, "__func__", None) is Model.turn:  # not overridden: the model takes no turns
        return await _ask_now(context, run, model, request)
    async with model.turn():
        return await _ask_now(context, run, model, request)


async def _ask_now(context: Context, run: Run, model: Model, request: ModelRequest) -> tuple[ModelAnswer, Usage, float]:
    """Reserve the estimated usage, ask, and settle the difference."""
    start = time.perf_counter()
    expected = model.estimate(request)
    reserved = {"tokens": float(max(1, expected.tokens)), "cost": expected.cost or 0.0}  # every call uses a token
    if context.budget is not None:
        context.budget.reserve(model_calls=1, **reserved)
    context.meter.amounts["model_calls"] += 1
    usage: Usage | None = None  # stays None for a cancelled call: its usage is unknown
    bounded = expected.cost is not None
    try:
        answer = await _in_time(context, run, model, request)
        usage, bounded = answer.usage, bounded and answer.cost is not None
    except (ModelError, ScriptError) as error:
        usage = _usage_of(error)
        raise
    finally:
        _settle(context, reserved, usage, bounded=bounded)
        if context.budget is not None:
            context.budget.made(request.call)
    return answer, usage, start


def _usage_of(error: BaseException) -> Usage | None:
    """Return the usage of a failed call; None if it is unknown."""
    if isinstance(error, ScriptError):
        return Usage()  # a script or a recording without an answer costs nothing
    return error.usage if isinstance(error, ModelError) else None


def _settle(context: Context, reserved: Mapping[str, float], usage: Usage | None, *, bounded: bool) -> None:
    """Book a call's usage in the meter and the budget.

    If the usage is unknown, the reservation stays spent, provided it is an upper bound of the cost.
    """
    free = bounded and not reserved["cost"]
    booked_usage = usage or Usage(unpriced_calls=0 if free else 1)
    cost, unpriced = booked_usage.cost, booked_usage.unpriced_calls
    used = context.meter.amounts
    used["input_tokens"] += booked_usage.input_tokens
    used["output_tokens"] += booked_usage.output_tokens
    used["cost"] += cost
    used["unpriced_calls"] += unpriced
    tokens = float(booked_usage.input_tokens + booked_usage.output_tokens)
    if usage is None or (unpriced and bounded):
        tokens, cost = max(tokens, reserved["tokens"]), max(cost, reserved["cost"])
    if context.budget is not None:
        context.budget.settle(tokens=tokens - reserved["tokens"], cost=cost - reserved["cost"])
    if unpriced and not bounded:
        count_unpriced(context)


async def _in_time(context: Context, run: Run, model: Model, request: ModelRequest) -> ModelAnswer:
    """Wait for an answer.

    Emits an event if the call fails or is cancelled.
    """
    seconds = context.services.settings.limits.model_seconds
    start = time.perf_counter()
    limit = context.services.clock.timeout(seconds)
    why, usage = "", None
    try:
        async with limit:
            return encodable(await model.answer(request))
    except TimeoutError as error:
        if not limit.expired():
            why = str(error) or type(error).__name__
            raise
        why = f"the model gave no answer within {seconds:g} s (waited {time.perf_counter() - start:.1f} s)"
        raise ModelTimeoutError(why) from error
    except BaseException as error:
        why = str(error) or type(error).__name__
        usage = _usage_of(error)
        raise
    finally:
        if why:
            took = time.perf_counter() - start
            name = model.name or type(model).__name__
            usage_data: dict[str, Any] = {}
            if usage is not None:
                cost = None if usage.unpriced_calls else usage.cost
                usage_data = {"cost": cost, "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
            context.tell(EventName.MODEL_FAILED, run, duration=took, model=name, error=why, **usage_data)


def count_unpriced(context: Context) -> None:
    """Spend the cost budget on a call of unknown price, if configured."""
    if context.budget is not None and context.services.settings.budget.unknown_price == "all":
        context.budget.exhaust("cost", UNPRICED)


def book(context: Context, answers: Iterable[Answered]) -> None:
    """Book answers from before a crash in the budgets.

    They are paid for.
    """
    for answer in answers:
        if context.budget is not None:
            context.budget.settle_again(answer.call, **answer.used)
        if answer.cost is None:
            count_unpriced(context)
