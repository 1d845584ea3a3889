"""MEMORY_UPDATE: the record of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import StepRecord, maker

if TYPE_CHECKING:
    from callboard.actors.processing._context import Context
    from callboard.actors.processing._phases import Acted
    from callboard.actors.states import Run
    from callboard.messages import Observation

_record = maker(StepRecord)


async def remember(context: Context, run: Run, observation: Observation, acted: Acted) -> StepRecord:  # noqa: ARG001 - a strategy's signature
    """Record the observation, decision and results of the step."""
    return _record(
        step=run.steps + 1,
        status=run.status,
        observation=observation,
        decision=acted.decision,
        results=acted.results,
    )
