"""Models in a row that have to wait for their turns."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from callboard.messages import ModelError
from callboard.models import Model, ModelAnswer
from callboard.models.live._fallback import FallbackModel
from callboard.models.live._rate_limit import RateLimit
from support import PATIENCE


class Limited(Model):
    """A model at a provider that answers one call at a time."""

    def __init__(self, name, rate, *, fails=False, meets=None):
        self.name = name
        self.rate = rate
        self.fails = fails
        self.meets = meets

    def turn(self):
        return self.rate.turn()

    async def answer(self, request):
        if self.meets is not None:
            await self.meets.wait()
        if self.fails:
            msg = f"{self.name} is out of order"
            raise ModelError(msg)
        return ModelAnswer(content=self.name)


async def ask(model, asks):
    async with asyncio.timeout(PATIENCE), model.turn():
        return (await model.answer(asks())).content


async def test_a_fallback_of_the_same_provider_has_the_turn_of_the_first(asks):
    rate = RateLimit(concurrent=1)
    model = FallbackModel([Limited("a", rate, fails=True), Limited("b", rate)], [60, 60])
    assert await ask(model, asks) == "b"


async def test_two_providers_may_be_each_others_fallback(asks):
    one, other, both = RateLimit(concurrent=1), RateLimit(concurrent=1), asyncio.Barrier(2)
    there = FallbackModel([Limited("a", one, fails=True, meets=both), Limited("b", other)], [60, 60])
    back = FallbackModel([Limited("c", other, fails=True, meets=both), Limited("d", one)], [60, 60])
    assert await asyncio.gather(ask(there, asks), ask(back, asks)) == ["b", "d"]


async def test_waiting_for_a_fallbacks_turn_takes_of_its_time(asks):
    busy = RateLimit(concurrent=1)
    models = [Limited("a", RateLimit(), fails=True), Limited("b", busy), Limited("c", RateLimit())]
    async with busy.turn():
        assert await ask(FallbackModel(models, [60, 0.01, 60]), asks) == "c"


async def test_waiting_for_the_first_ones_turn_takes_of_nobodys_time(asks):
    busy = RateLimit(concurrent=1)
    model = FallbackModel([Limited("a", busy), Limited("b", RateLimit())], [0.01, 60])
    async with contextlib.AsyncExitStack() as other:
        await other.enter_async_context(busy.turn())
        waiting = asyncio.create_task(ask(model, asks))
        await asyncio.sleep(0.05)
    assert await waiting == "a"


async def test_every_turn_is_given_back(asks):
    rate = RateLimit(concurrent=1)
    model = FallbackModel([Limited("a", rate, fails=True), Limited("b", rate, fails=True)], [60, 60])
    for _ in range(2):
        with pytest.raises(ModelError, match="a is out of order; b is out of order"):
            await ask(model, asks)


async def test_fallback_answers_when_the_first_model_has_no_free_turn(asks):
    rate = RateLimit(concurrent=1)
    model = FallbackModel([Limited("a", rate), Limited("b", RateLimit())], [0.01, 60])
    async with rate.turn():
        assert (await model.answer(asks())).content == "b"
