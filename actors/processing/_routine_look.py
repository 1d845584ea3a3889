"""Wait for the screen on which a routine's next step was recorded."""

from __future__ import annotations

import asyncio
import functools
import time
from typing import TYPE_CHECKING

from callboard.actors.processing._model_request import model_request
from callboard.actors.processing._next_answer import AnswerSource
from callboard.messages import AgentStatus, ModelError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import Observation

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 0.8


async def fitting(context: Context, run: Run, look: Callable[[], Awaitable[Observation]]) -> Observation:
    """Observe until the guard of a routine's next step holds.

    It does so for `routines.wait_seconds` at the most. A routine acts faster than the model or the person that was
    recorded, so that a dialog or a page may be late. It is a part of DATA_COLLECTION: only the last observation is
    journaled, and a replay does not wait.
    """
    observation = await look()
    source = _source(context, run)
    if source is None:
        return observation
    tools = context.services.toolbox.actions(context.kind, run.assign.target)
    end = time.monotonic() + context.services.settings.routines.wait_seconds
    pause = _FIRST_PAUSE
    while source.waits(functools.partial(model_request, context, run, observation, tools, ())):
        remaining_seconds = end - time.monotonic()
        if remaining_seconds <= 0:
            break
        await asyncio.sleep(min(pause, remaining_seconds))
        pause = min(2 * pause, _LONGEST_PAUSE)
        observation = await look()
    return observation


def _source(context: Context, run: Run) -> AnswerSource | None:
    """Return the source of an answer that is about to be decided."""
    begun = run.unfinished is not None and (run.unfinished.answers or run.unfinished.decided is not None)
    if run.status != AgentStatus.CONTINUE or run.held or begun:
        return None
    try:
        return AnswerSource.of(context, run)
    except ModelError:  # the decision fails with it
        return None
