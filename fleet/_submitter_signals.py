"""The words of submitters about the work that this machine does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from callboard.fleet._engine import Bucket
from callboard.fleet._repeated_calls import repeat
from callboard.fleet._work_messages import BEAT_SECONDS, TaskSignals, signals_key, submitter_of

if TYPE_CHECKING:
    from callboard.fleet._engine import BucketEntry, FleetEngine
    from callboard.messages import Task


class SubmitterSignals:
    """The words of submitters: cancels, pauses, answers and approvals.

    It belongs to the event loop. Those about a task are kept from the first `read` on, until `forget`.
    """

    def __init__(self, engine: FleetEngine, name: str) -> None:
        """Create it for the machine of a name."""
        self._engine = engine
        self._name = name
        self._news: dict[str, asyncio.Queue[BucketEntry]] = {}
        """The words that are still to be done, by the keys of their tasks."""
        self._revisions: dict[str, int] = {}
        """The revisions that were read of them."""

    def _key(self, task: Task) -> str:
        return signals_key(self._name, submitter_of(task), task.id)

    async def read(self, task: Task) -> TaskSignals | None:
        """Return all that a submitter has said.

        None once it has the result.
        """
        key = self._key(task)
        self._news.setdefault(key, asyncio.Queue())
        entry = await repeat(lambda: self._engine.get(Bucket.SIGNALS, key))
        if entry is None or entry.value is None:
            return None
        self._revisions[key] = entry.revision
        return TaskSignals.model_validate_json(entry.value)

    def has_news(self, task: Task) -> bool:
        """Return whether there are words since the first `read`."""
        return not self._news[self._key(task)].empty()

    async def newer(self, task: Task) -> TaskSignals | None:
        """Wait for a newer word; None once the submitter has deleted them.

        The watch may come later to one that was read.
        """
        key = self._key(task)
        while True:
            entry = await self._news[key].get()
            if entry.revision > self._revisions.get(key, 0):
                return None if entry.value is None else TaskSignals.model_validate_json(entry.value)

    def forget(self, task: Task) -> None:
        """Keep no more words about a task."""
        self._news.pop(self._key(task), None)
        self._revisions.pop(self._key(task), None)

    async def watch(self) -> None:
        """Take the words, until it is cancelled.

        One watch serves all tasks, since it begins with every entry that there is.
        """
        while True:
            async for entry in self._engine.watch(Bucket.SIGNALS, self._name):
                if entry is not None and entry.key in self._news:
                    self._news[entry.key].put_nowait(entry)
            await asyncio.sleep(BEAT_SECONDS / 2)  # the server was not reached yet
