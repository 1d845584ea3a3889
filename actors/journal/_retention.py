"""Retention: delete whole tasks that ended, the earliest end first."""

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
"""  # no task of a conversation is deleted while one of its tasks is unfinished
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
"""  # keeps the settings under which the remaining tasks ran, including those at the start of the oldest task
_FIRST = "SELECT coalesce(min(submitted), 1e99) FROM tasks"  # the submission of the oldest remaining task
_BEGINNINGS = "SELECT id, at FROM rows WHERE task = '' AND kind = 'in_force' AND id <= ? ORDER BY id"
_BEFORE = "SELECT at FROM rows WHERE id < ? ORDER BY id DESC LIMIT 1"
_NO_ID = 2**63 - 1


@dataclass(frozen=True)
class Era:
    """The rows of one process, whose clock did not jump."""

    first: int
    """The id of its first row."""
    ahead: float
    """The offset of its clock to the accumulated working time, in seconds; only differences are meaningful."""


def eras_of(connection: sqlite3.Connection, last: int, now: float, longest: float) -> tuple[Era, ...]:
    """Find the eras of a journal, including the current one.

    Between two processes the wall clock may have jumped, which can't be told from idle time. So such a gap counts as
    at most `longest` seconds, and as none if the clock went back.

    Args:
        connection: The connection to the journal.
        last: The id of the last row when the journal was opened.
        now: The wall time when the journal was opened.
        longest: The maximum that a gap between two processes counts, in seconds.
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
    """One pruning of a journal.

    The caller opens and commits the transaction for `drop`.
    """

    def __init__(self, connection: sqlite3.Connection, eras: Sequence[Era] = (Era(0, 0.0),)) -> None:
        """Prune a journal; the last era is the current one."""
        self._connection = connection
        self._eras = eras

    def drop(self, *, oldest: float | None, max_bytes: int | None, kept_since: float | None = None) -> int:
        """Delete tasks that ended before a time or exceed the size.

        Returns the number of deleted tasks. They are deleted in the order of their ends. Those that ended at
        `kept_since` or later are kept.

        The time `oldest` is one of the current clock. The times of earlier processes are converted to it.
        """
        dropped = 0
        pictures = self._number(_ALL_PICTURES)
        if max_bytes is not None and self._used() + pictures > max_bytes:
            self._connection.execute(_OF_NO_TASK, (*self._connection.execute(_FIRST).fetchone(), 0, _NO_ID))
        ends = [
            (self._now(ended, row), number, task_id)
            for task_id, number, ended, row in self._connection.execute(_ENDED).fetchall()
            if kept_since is None or ended < kept_since
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
        """Convert a row's time to the current clock."""
        era = self._eras[bisect.bisect_right(self._eras, row, key=lambda era: era.first) - 1]
        return at - era.ahead + self._eras[-1].ahead

    def pictures(self) -> frozenset[str]:
        """Return the digests of the pictures that are still referred to."""
        return frozenset(name for (name,) in self._connection.execute("SELECT DISTINCT name FROM pictures"))

    def give_back(self) -> None:
        """Return the freed space to the file system."""
        self._connection.executescript("PRAGMA incremental_vacuum")  # `execute` would free one page
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _used(self) -> int:
        pages = self._number("PRAGMA page_count") - self._number("PRAGMA freelist_count")
        return pages * self._number("PRAGMA page_size")

    def _number(self, query: str, *parameters: str) -> int:
        found: int = self._connection.execute(query, parameters).fetchone()[0]
        return found
