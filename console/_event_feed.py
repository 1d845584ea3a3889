"""The journal's new events, as server-sent events."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING

from callboard.journal import JournalReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from callboard.messages import Event

LOOK_SECONDS = 0.25
"""The interval at which the journal is looked at for new events."""
_QUIET_LOOKS = 60
"""The number of looks without news after which a comment shows that the connection holds."""
_MOST_AT_ONCE = 500
_MOST_LOOKS = 2_400
"""The number of looks after which a feed ends: the page signs in again, and continues."""


class _Follower:
    """A reader of one connection.

    A browser may leave while a thread reads. The journal is closed after that: SQLite must not be closed in a query.
    """

    def __init__(self, journal: Path) -> None:
        self._reader = JournalReader.open(journal, pictures=False)
        self._lock = threading.Lock()

    def last_seq(self) -> int:
        with self._lock:
            return self._reader.last_seq()

    def changes(self, after_seq: int) -> list[Event]:
        with self._lock:
            return self._reader.changes(after_seq, _MOST_AT_ONCE)

    def close(self) -> None:
        with self._lock:
            self._reader.close()


async def event_feed(journal: Path, after_seq: int | None) -> AsyncGenerator[bytes]:
    """Yield the events after a number, with their numbers as ids.

    A browser that lost the connection continues after the last id that it has.

    Args:
        journal: The journal.
        after_seq: The number; None for new events only. One that the journal does not have yet, such as that of a
            journal that was deleted since, is not waited for.
    """
    follower = await asyncio.to_thread(_Follower, journal)
    try:
        last_seq = await asyncio.to_thread(follower.last_seq)
        seq = last_seq if after_seq is None else min(after_seq, last_seq)
        yield f"id: {seq}\nevent: ready\ndata: {{}}\n\n".encode()
        quiet_looks = 0
        for _ in range(_MOST_LOOKS):
            events = await asyncio.to_thread(follower.changes, seq)
            for event in events:
                yield _encoded(event)
            if events:
                seq, quiet_looks = events[-1].seq, 0
                continue
            quiet_looks += 1
            if quiet_looks % _QUIET_LOOKS == 0:
                yield b": quiet\n\n"
            await asyncio.sleep(LOOK_SECONDS)
    finally:  # it may be cancelled here, so nothing is awaited
        asyncio.get_running_loop().run_in_executor(None, follower.close)


def _encoded(event: Event) -> bytes:
    """Encode the name and the task of an event.

    The page reads the rest again.
    """
    facts = {"name": event.name.value, "task": event.task_id, "run": event.run_id}
    return f"id: {event.seq}\ndata: {json.dumps(facts)}\n\n".encode()
