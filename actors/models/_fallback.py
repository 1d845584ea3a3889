"""Models in a row: if one gives no answer, the next is asked."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from callboard.actors.models._model import Expected, Model, ModelAnswer
from callboard.messages import ModelError, ModelTimeoutError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from callboard.actors.models._model import ModelRequest
    from callboard.messages import Seconds


class FallbackModel(Model):
    """Asks a model, and if that gives no answer, or not in its time, the next one. An answer says who gave it."""

    def __init__(self, models: Sequence[Model], seconds: Sequence[Seconds]) -> None:
        """Take the models, the first choice first, and how long each may take."""
        self._models = tuple(models)
        self._seconds = tuple(seconds)
        self.name = models[0].name

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait for the first one's turn."""
        return self._models[0].turn()

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Ask one after the other.

        Raises:
            ModelError: If none gives an answer; it tells why each did not.
        """
        failed: list[ModelError] = []
        for place, (model, seconds) in enumerate(zip(self._models, self._seconds, strict=True)):
            try:
                async with model.turn() if place else contextlib.nullcontext():
                    answer = await _in_time(model, request, seconds)
            except ModelError as error:
                failed.append(error)
            else:
                return answer.model_copy(update={"model": model.name}) if place else answer
        if len(failed) == 1:
            raise failed[0]
        msg = f"no model gave an answer: {'; '.join(map(str, failed))}"
        raise ModelError(msg) from failed[-1]

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


async def _in_time(model: Model, request: ModelRequest, seconds: Seconds) -> ModelAnswer:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await model.answer(request)
    except TimeoutError as error:
        if not limit.expired():
            raise
        msg = f"{model.name} gave no answer within {seconds:g} s"
        raise ModelTimeoutError(msg) from error
