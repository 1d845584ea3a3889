"""A chain of models: if one fails, the next is asked."""

from __future__ import annotations

import asyncio
import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING

from callboard.messages import ModelError, ModelTimeoutError, Usage
from callboard.models._model import Expected, Model, ModelAnswer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from callboard.messages import Seconds
    from callboard.models._model import ModelRequest


_held: ContextVar[tuple[Model, contextlib.AsyncExitStack] | None] = ContextVar("held", default=None)
"""The model whose first turn the caller holds, and the stack that releases the turn early."""


# pydantic-ai's FallbackModel does not fit: it chains only pydantic-ai's models, no recorded ones or plug-ins, has no
# time limit per model, and does not report the usage of failed calls.
class FallbackModel(Model):
    """A model that asks several models in order until one answers.

    A caller never waits for a turn while it holds another one. Otherwise two callers could deadlock, or one could with
    itself.
    """

    def __init__(self, models: Sequence[Model], seconds: Sequence[Seconds]) -> None:
        """Initialise the chain; `seconds` are the time limits of the models.

        Waiting for the turn of a model other than the first counts towards its time limit.
        """
        self._models = tuple(models)
        self._seconds = tuple(seconds)
        self.name = models[0].name

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the first model's turn.

        It is released before another model is asked.
        """
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self._models[0].turn())
            token = _held.set((self, stack))
            try:
                yield
            finally:
                _held.reset(token)

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Ask the models in order.

        Raises:
            ModelError: If all models fail; the message has the reasons.
        """
        failed: list[ModelError] = []
        failed_usage = Usage()
        owner, stack = _held.get() or (None, None)
        for index, (model, seconds) in enumerate(zip(self._models, self._seconds, strict=True)):
            has_turn = index == 0 and owner is self
            try:
                answer = await _in_time(model, request, seconds, contextlib.nullcontext() if has_turn else model.turn())
            except ModelError as error:
                failed.append(error)
                failed_usage += _used(model, request, error)
            else:
                return answer.model_copy(update={"model": model.name, "before": failed_usage}) if index else answer
            if has_turn and stack is not None:
                await stack.aclose()
        if len(failed) == 1:
            raise failed[0]
        msg = f"no model gave an answer: {'; '.join(map(str, failed))}"
        raise ModelError(msg, failed_usage) from failed[-1]

    def estimate(self, request: ModelRequest) -> Expected:
        """Return the highest of the models' estimates."""
        all_of_them = [model.estimate(request) for model in self._models]
        costs = [expected.cost for expected in all_of_them]
        priced_costs = [cost for cost in costs if cost is not None]
        return Expected(
            tokens=max(expected.tokens for expected in all_of_them),
            cost=max(priced_costs) if len(priced_costs) == len(costs) else None,
        )

    async def close(self) -> None:
        """Close all models."""
        for model in self._models:
            await model.close()


def _used(model: Model, request: ModelRequest, error: ModelError) -> Usage:
    """Return the usage of a failed call.

    It is unpriced if unknown and not free.
    """
    return error.usage or Usage(unpriced_calls=0 if model.estimate(request).cost == 0 else 1)


async def _in_time(
    model: Model, request: ModelRequest, seconds: Seconds, turn: AbstractAsyncContextManager[None]
) -> ModelAnswer:
    limit = asyncio.timeout(seconds)
    try:
        async with limit, turn:
            return await model.answer(request)
    except TimeoutError as error:
        if not limit.expired():
            raise
        msg = f"{model.name} gave no answer within {seconds:g} s"
        raise ModelTimeoutError(msg) from error
