"""Opening the journal: what the process before this one left, read before anything is started."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.actors.journal import FileJournal, Journal, JournalFile, MemoryJournal, Row
from callboard.actors.root._recovery import Past, past_of
from callboard.config import in_force
from callboard.messages import InForce

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.runtime import Clock
    from callboard.config import Settings
    from callboard.messages import Event


@dataclass(frozen=True)
class Opened:
    """A journal, and what it knows."""

    journal: Journal
    pasts: tuple[Past, ...] = ()
    """The tasks that are not over."""
    token: int = 0
    """The highest lease."""
    seq: int = 0
    """The number of the last event."""
    sink: Callable[[Event], None] | None = None
    """Takes events, where they are kept."""
    events: Callable[[int, int], list[Event]] | None = None
    """Reads older events, where they are kept."""


def open_journal(settings: Settings, clock: Clock, broken: Callable[[Exception], None]) -> Opened:
    """Open the journal that the settings name, or make one in memory; what is past its time is dropped.

    Raises:
        JournalError: If it is in use, damaged, newer, or can't be read or written; nothing was changed.
    """
    where = settings.journal
    if where.path is None:
        return Opened(MemoryJournal())
    file = JournalFile.open(settings.path(where.path), durability=where.durability)
    try:
        file.prune(days=where.days, max_bytes=where.max_bytes)
        found = (past_of(tuple(file.rows(task_id)), clock.elapsed()) for task_id in file.unfinished())
        pasts = tuple(past for past in found if past is not None)
        token, seq = max((past.token for past in pasts), default=0), file.last_seq
    except BaseException:
        file.close()
        raise
    journal = FileJournal(file, broken=broken, later=clock.after)
    journal.retain(where.days, where.max_bytes)
    in_use = InForce(sections=in_force(settings))
    journal.append((Row(time.time(), "", "", in_use),), lazy=True)  # goes before the first that is needed
    return Opened(journal, pasts, token, seq, journal.event, journal.events)
