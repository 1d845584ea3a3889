"""What a journal lets go of: whole tasks that ended, the oldest end first."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

_ENDED = """
    SELECT id, number, ended, coalesce(
        (SELECT min(rows.id) FROM rows WHERE rows.task = over.id AND rows.kind = 'task_result'), 0
    ) FROM tasks AS over WHERE ended IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM tasks AS running
        WHERE running.ended IS NULL AND coalesce(running.session, running.id) = coalesce(over.session, over.id)
    )
"""  # a conversation is kept whole while one of its tasks is not over
_ALL_PICTURES = "SELECT coalesce(sum(bytes), 0) FROM (SELECT DISTINCT name, bytes FROM pictures)"
_OWN_PICTURES = """
    SELECT coalesce(sum(bytes), 0) FROM pictures AS own WHERE task = ?
    AND NOT EXISTS (SELECT 1 FROM pictures AS other WHERE other.name = own.name AND other.task <> own.task)
"""
_DROPS = (
    "DELETE FROM rows WHERE task = ?",
    "DELETE FROM pictures WHERE task = ?",
    """
    DELETE FROM observations WHERE name IN (SELECT name FROM observed WHERE task = ?1) AND NOT EXISTS (
        SELECT 1 FROM observed AS other WHERE other.name = observations.name AND other.task <> ?1
    )
    """,
    "DELETE FROM observed WHERE task = ?",
    "DELETE FROM tasks WHERE id = ?",
)


_OF_NO_TASK = """
    DELETE FROM rows WHERE task = '' AND at < ? AND id >= ? AND id < ? AND (kind <> 'in_force' OR id < (
        SELECT id FROM rows WHERE task = '' AND kind = 'in_force' AND id < coalesce(
            (SELECT min(id) FROM rows WHERE task <> ''), (SELECT max(id) + 1 FROM rows)
        ) ORDER BY id DESC LIMIT 1
    ))
"""  # the settings under which tasks ran that are kept, those under which the oldest began included
_FIRST = "SELECT coalesce(min(submitted), 1e99) FROM tasks"  # when the oldest task that is kept began
_BEGINNINGS = "SELECT id, at FROM rows WHERE task = '' AND kind = 'in_force' AND id <= ? ORDER BY id"
_BEFORE = "SELECT at FROM rows WHERE id < ? ORDER BY id DESC LIMIT 1"
_NO_ID = 2**63 - 1


@dataclass(frozen=True)
class Era:
    """What one process wrote: its rows have one clock, which did not jump."""

    first: int
    """Its first row."""
    ahead: float
    """How far its clock is ahead of the time that was worked, in seconds; only differences mean something."""


def eras_of(connection: sqlite3.Connection, last: int, now: float, longest: float) -> tuple[Era, ...]:
    """Find the eras of a journal, the one that begins now included.

    Between two processes a wall clock can have jumped, and nobody can tell that from a time in which nobody worked:
    such a time counts so many seconds at most, and none if the clock went back.

    Args:
        connection: To the journal.
        last: Its last row, as it was when it was opened.
        now: What the clock said then.
        longest: How many seconds may count between two processes.
    """
    found, ahead = [Era(0, 0.0)], 0.0
    for first, at in (*connection.execute(_BEGINNINGS, (last,)).fetchall(), (last + 1, now)):
        before = connection.execute(_BEFORE, (first,)).fetchone()
        if before is not None:
            gap = at - before[0]
            ahead += gap - min(max(gap, 0.0), longest)
            found.append(Era(first, ahead))
    return tuple(found)


class Retention:
    """One pruning of a journal. The caller opens and commits the transaction around `drop`."""

    def __init__(self, connection: sqlite3.Connection, eras: Sequence[Era] = (Era(0, 0.0),)) -> None:
        """Make it; the last era is the one that runs."""
        self._connection = connection
        self._eras = eras

    def drop(self, *, oldest: float | None, max_bytes: int | None) -> int:
        """Drop tasks that ended before a time, and then more while all takes too many bytes. Returns how many.

        The time is one of the clock that runs now; those of earlier processes are compared by what was worked since.
        """
        dropped = 0
        pictures = self._number(_ALL_PICTURES)
        if max_bytes is not None and self._used() + pictures > max_bytes:
            self._connection.execute(_OF_NO_TASK, (*self._connection.execute(_FIRST).fetchone(), 0, _NO_ID))
        ends = [
            (self._now(ended, row), number, task_id)
            for task_id, number, ended, row in self._connection.execute(_ENDED).fetchall()
        ]
        for ended, _, task_id in sorted(ends):
            large = max_bytes is not None and self._used() + pictures > max_bytes
            if not large and (oldest is None or ended >= oldest):
                break
            pictures -= self._number(_OWN_PICTURES, task_id)
            for statement in _DROPS:
                self._connection.execute(statement, (task_id,))
            dropped += 1
        if oldest is not None:
            ahead = self._eras[-1].ahead
            for era, following in zip(self._eras, (*self._eras[1:], Era(_NO_ID, 0.0)), strict=True):
                self._connection.execute(_OF_NO_TASK, (oldest - ahead + era.ahead, era.first, following.first))
        return dropped

    def _now(self, at: float, row: int) -> float:
        """Tell a row's time as the clock that runs now would."""
        era = self._eras[bisect.bisect_right(self._eras, row, key=lambda era: era.first) - 1]
        return at - era.ahead + self._eras[-1].ahead

    def pictures(self) -> frozenset[str]:
        """Name the pictures that are still needed."""
        return frozenset(name for (name,) in self._connection.execute("SELECT DISTINCT name FROM pictures"))

    def give_back(self) -> None:
        """Give the space of what was dropped back to the file system."""
        self._connection.executescript("PRAGMA incremental_vacuum")  # `execute` would give back one page
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _used(self) -> int:
        pages = self._number("PRAGMA page_count") - self._number("PRAGMA freelist_count")
        return pages * self._number("PRAGMA page_size")

    def _number(self, query: str, *parameters: str) -> int:
        found: int = self._connection.execute(query, parameters).fetchone()[0]
        return found
