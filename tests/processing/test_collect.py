"""DATA_COLLECTION: after actions the surface is looked at until it is quiet."""

from __future__ import annotations

from typing import Any

import pytest

from callboard.messages import CommandResult, Decision, Observation, ResultStatus, StepRecord, Target
from callboard.testing import MemoryServer


class Moving(MemoryServer):
    """A surface that looks another way at each of its first looks."""

    def __init__(self, *targets: Target, **more: Any) -> None:
        super().__init__(*targets, **more)
        self.looks = 0
        self.quiet_from = 1

    def observe(self, target: Target) -> Observation:
        self.looks += 1
        now = min(self.looks, self.quiet_from)
        return super().observe(target).model_copy(update={"fingerprint": f"look {now}"})


def after(here, *results):
    """Give the run of an agent whose last step ended so."""
    ended = tuple(
        CommandResult(call_id=str(number), tool="write", status=status) for number, status in enumerate(results)
    )
    record = StepRecord(
        step=1, status="CONTINUE", observation=Observation(), decision=Decision(status="CONTINUE"), results=ended
    )
    return here.run(memory=(record,), steps=1)


async def looked(here, run):
    return (await here.pipeline.capture(run)).observation.fingerprint, here.surface.looks


@pytest.mark.parametrize("quiet_from", [1, 2, 3])
async def test_after_an_action_the_observation_is_the_second_of_two_equal_looks(stage, quiet_from):
    here = stage(surface=Moving)
    here.surface.quiet_from = quiet_from
    assert await looked(here, after(here, ResultStatus.SUCCESS)) == (f"look {quiet_from}", quiet_from + 1)


@pytest.mark.parametrize("results", [(), (ResultStatus.SKIPPED, ResultStatus.SKIPPED)])
async def test_where_nothing_was_done_one_look_is_enough(stage, results):
    here = stage(surface=Moving)
    here.surface.quiet_from = 3
    assert await looked(here, after(here, *results)) == ("look 1", 1)


async def test_an_action_that_failed_may_have_moved_the_surface_too(stage):
    here = stage(surface=Moving)
    here.surface.quiet_from = 2
    assert await looked(here, after(here, ResultStatus.FAILURE)) == ("look 2", 3)


async def test_at_the_first_step_one_look_is_enough(stage):
    here = stage(surface=Moving)
    assert await looked(here, here.run()) == ("look 1", 1)


async def test_a_surface_that_can_not_move_by_itself_is_looked_at_once(stage):
    here = stage(surface=Moving)
    here.surface.settles = False
    assert await looked(here, after(here, ResultStatus.SUCCESS)) == ("look 1", 1)


async def test_a_surface_that_never_settles_is_taken_as_it_is_at_the_timeout(stage):
    here = stage(surface=Moving, limits={"settle_seconds": 0.5})
    here.surface.quiet_from = 10**9
    seen, looks = await looked(here, after(here, ResultStatus.SUCCESS))
    assert seen == f"look {looks}"
    assert looks > 1


async def test_without_time_to_settle_one_look_is_enough(stage):
    here = stage(surface=Moving, limits={"settle_seconds": 0})
    here.surface.quiet_from = 3
    assert await looked(here, after(here, ResultStatus.SUCCESS)) == ("look 1", 1)
