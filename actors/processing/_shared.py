"""Read the conversation's shared entries from the blackboard during DATA_COLLECTION."""

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
"""Attempts and their timeout: a blackboard restarted after a crash has lost pending queries."""


class SharedNotes:
    """Access of steps to the blackboard's actor.

    The starter of the actor sets `ask`.
    """

    def __init__(self) -> None:
        self.ask: Callable[[SharedQuery, Answered], bool] | None = None
        """Send a query and the callback for its answer; return whether the actor exists."""
        self.pages: Mapping[str, tuple[Shared, ...]] | None = None
        """The entries by conversation, kept up to date by the actor.

        None while the actor restarts: then it has to be asked. The actor runs on the thread of the steps, so a step
        sees all entries that were kept before it began.
        """

    async def read(self, run: Run) -> tuple[Shared, ...]:
        """Ask the actor for a conversation's shared awaited_entries; empty without a blackboard.

        Raises:
            ToolTimeoutError: If the actor does not answer.
        """
        if self.ask is None:
            return ()
        query = SharedQuery(task_id=run.assign.task_id)
        for _ in range(TRIES):
            awaited_entries = Awaited[tuple["Shared", ...]]()
            self.ask(query, awaited_entries.settle)
            try:
                async with asyncio.timeout(SECONDS):
                    return await awaited_entries
            except TimeoutError:
                continue
        msg = f"the blackboard did not answer within {TRIES * SECONDS:g} s"
        raise ToolTimeoutError(msg)


async def with_shared(context: Context, run: Run, collect: Collect) -> Observation:
    """Observe the target and add the shared entries.

    The agent's own requests are left out.
    """
    observation = await collect(context, run)
    notes, assign = context.services.shared, run.assign
    entries = await notes.read(run) if notes.pages is None else notes.pages.get(memory_key(assign))
    if not entries:
        return observation
    own_requests = {assign.request, assign.task_request}
    if max(map(len, own_requests)) > MOST_CHARACTERS:
        own_requests = set(map(shown, own_requests))
    shared = tuple([entry for entry in entries if not (entry.board is Board.REQUESTS and entry.text in own_requests)])
    return observation.model_copy(update={"shared": shared}) if shared else observation
