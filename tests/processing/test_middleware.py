"""The middleware that ships: another try for looking."""

from __future__ import annotations

import asyncio

import pytest

from callboard import EventName
from callboard.actors.processing import PhaseCall, retried
from callboard.messages import LeaseVoidError, Phase


class Flaky:
    """A phase that raises its errors one by one, then gives 42."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return 42


def call(stage, phase=Phase.DATA_COLLECTION):
    return PhaseCall(phase, stage.pipeline.context, stage.run())


@pytest.mark.parametrize("retries", [0, 1, 2])
async def test_phase_is_retried_up_to_the_limit(stage, retries):
    here = stage(limits={"phase_retries": retries})
    flaky = Flaky(*[OSError("gone")] * 5)
    with pytest.raises(OSError, match="gone"):
        await retried({Phase.DATA_COLLECTION})(call(here), flaky)
    assert flaky.calls == retries + 1
    assert [event.data for event in here.events(EventName.PHASE_RETRIED)] == [{"error": "gone"}] * retries


async def test_a_retry_that_succeeds_is_a_success(stage):
    here = stage()
    assert await retried({Phase.DATA_COLLECTION})(call(here), Flaky(OSError("gone"))) == 42


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.DATA_COLLECTION])
async def test_a_phase_that_is_not_named_is_never_repeated(stage, phase):
    here, flaky = stage(limits={"phase_retries": 3}), Flaky(OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        await retried({Phase.DATA_COLLECTION})(call(here, phase), flaky)
    assert flaky.calls == 1
    assert here.events(EventName.PHASE_RETRIED) == []


@pytest.mark.parametrize("error", [LeaseVoidError("too late"), asyncio.CancelledError()])
async def test_stopped_phase_is_not_retried(stage, error):
    here, flaky = stage(limits={"phase_retries": 3}), Flaky(error)
    with pytest.raises(type(error)):
        await retried({Phase.DATA_COLLECTION})(call(here), flaky)
    assert flaky.calls == 1


async def test_the_shipped_pipeline_repeats_only_looking(stage, monkeypatch):
    answers = [{"Status": "FINISH"}]
    here = stage(answers, limits={"phase_retries": 1})
    look, errors = here.surface.observe, [OSError("blink")]

    def observe(target):
        if errors:
            raise errors.pop()
        return look(target)

    monkeypatch.setattr(here.surface, "observe", observe)
    done = await here.pipeline.process(here.run())
    assert done.record.decision.status == "FINISH"
    told = [(e.name, e.phase) for e in iter(here.feed.take, None) if e.phase]
    assert told == [(EventName.PHASE_RETRIED, "data_collection")]
