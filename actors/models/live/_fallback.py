"""Models in a row: if one gives no answer, the next is asked."""

from __future__ import annotations

import asyncio
import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING

from callboard.actors.models._model import Expected, Model, ModelAnswer
from callboard.messages import ModelError, ModelTimeoutError, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from callboard.actors.models._model import ModelRequest
    from callboard.messages import Seconds


_held: ContextVar[tuple[Model, contextlib.AsyncExitStack] | None] = ContextVar("held", default=None)
"""Whose first model's turn the caller has, and how to give it back before the caller does."""


# pydantic-ai's FallbackModel was looked at: it chains pydantic-ai's models alone, no recorded or plugged-in ones, gives
# none of them a time of its own, and does not say what those used that gave no answer.
class FallbackModel(Model):
    """Asks a model, and if that gives no answer, or not in its time, the next one. An answer says who gave it.

    Nobody waits for a turn while it has another one: it may be the same, or that of somebody who waits for this one.
    """

    def __init__(self, models: Sequence[Model], seconds: Sequence[Seconds]) -> None:
        """Take the models, the first choice first, and how long each may take.

        To wait for the turn of a further one takes of its time.
        """
        self._models = tuple(models)
        self._seconds = tuple(seconds)
        self.name = models[0].name

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the first one's turn; it is given back before another one is asked."""
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self._models[0].turn())
            before = _held.set((self, stack))
            try:
                yield
            finally:
                _held.reset(before)

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Ask one after the other.

        Raises:
            ModelError: If none gives an answer; it tells why each did not.
        """
        failed: list[ModelError] = []
        before = Usage()
        owner, stack = _held.get() or (None, None)
        for place, (model, seconds) in enumerate(zip(self._models, self._seconds, strict=True)):
            has_turn = place == 0 and owner is self
            try:
                answer = await _in_time(model, request, seconds, contextlib.nullcontext() if has_turn else model.turn())
            except ModelError as error:
                failed.append(error)
                before += _used(model, request, error)
            else:
                return answer.model_copy(update={"model": model.name, "before": before}) if place else answer
            if has_turn and stack is not None:
                await stack.aclose()
        if len(failed) == 1:
            raise failed[0]
        msg = f"no model gave an answer: {'; '.join(map(str, failed))}"
        raise ModelError(msg, before) from failed[-1]

    def estimate(self, request: ModelRequest) -> Expected:
        """Say what the most expensive of them will use."""
        all_of_them = [model.estimate(request) for model in self._models]
        costs = [expected.cost for expected in all_of_them]
        known = [cost for cost in costs if cost is not None]
        return Expected(
            tokens=max(expected.tokens for expected in all_of_them),
            cost=max(known) if len(known) == len(costs) else None,
        )

    async def close(self) -> None:
        """Close them all."""
        for model in self._models:
            await model.close()


def _used(model: Model, request: ModelRequest, error: ModelError) -> Usage:
    """Say what a model took that gave no answer; where nobody knows, only what costs nothing has a price."""
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
