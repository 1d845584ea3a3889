"""DATA_COLLECTION reads the conversation's shared entries from the blackboard."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from callboard.actors.runtime import Awaited
from callboard.actors.states import memory_key
from callboard.messages import MOST_CHARACTERS, Board, SharedQuery, ToolTimeoutError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from callboard.actors.processing._phases import Collect, Context
    from callboard.actors.states import Run
    from callboard.messages import Observation, Shared

    Answered = Callable[[tuple[Shared, ...]], None]

TRIES, SECONDS = 3, 10.0
"""How often, and for how long, the blackboard is asked: one that crashed is made anew, and knows of no question."""


class SharedNotes:
    """How steps reach the blackboard's actor; whoever starts the actor sets `ask`."""

    def __init__(self) -> None:
        self.ask: Callable[[SharedQuery, Answered], bool] | None = None
        """Send a query, and where its answer goes. Returns whether there is an actor."""
        self.pages: Mapping[str, tuple[Shared, ...]] | None = None
        """The entries by conversation, which the actor keeps up to date; None while it is made anew, and must be asked.

        It works on the thread of the steps, so that all that was kept before a step began is there.
        """

    async def read(self, run: Run) -> tuple[Shared, ...]:
        """Ask the actor for the shared entries of a run's conversation; empty if there is no blackboard.

        Raises:
            ToolTimeoutError: If it does not answer.
        """
        if self.ask is None:
            return ()
        query = SharedQuery(task_id=run.assign.task_id)
        for _ in range(TRIES):
            found = Awaited[tuple["Shared", ...]]()
            self.ask(query, found.settle)
            try:
                async with asyncio.timeout(SECONDS):
                    return await found
            except TimeoutError:
                continue
        msg = f"the blackboard did not answer within {TRIES * SECONDS:g} s"
        raise ToolTimeoutError(msg)


async def with_shared(context: Context, run: Run, collect: Collect) -> Observation:
    """Observe the target and add the shared entries, except the agent's own requests."""
    seen = await collect(context, run)
    notes, assign = context.services.shared, run.assign
    entries = await notes.read(run) if notes.pages is None else notes.pages.get(memory_key(assign))
    if not entries:
        return seen
    own = {assign.request, assign.task_request}
    if max(map(len, own)) > MOST_CHARACTERS:
        own = set(map(shown, own))
    shared = tuple([each for each in entries if not (each.board is Board.REQUESTS and each.text in own)])
    return seen.model_copy(update={"shared": shared}) if shared else seen
