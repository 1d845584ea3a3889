"""MEMORY_UPDATE: the record of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import StepRecord

if TYPE_CHECKING:
    from callboard.actors.processing._phases import Acted, Context
    from callboard.actors.states import Run
    from callboard.messages import Observation


async def remember(context: Context, run: Run, observation: Observation, acted: Acted) -> StepRecord:  # noqa: ARG001 - a strategy's signature
    """Keep what was seen, decided and done."""
    return StepRecord(
        step=run.steps + 1,
        status=run.status,
        observation=observation,
        decision=acted.decision,
        results=acted.results,
    )
