"""The time that a journal has seen pass; it never goes back."""

from __future__ import annotations

import bisect
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import sqlite3

    from callboard.messages import Seconds, Timestamp

MARK_SECONDS = 60.0
"""The most time between a task's end and the mark that tells its age."""

_MARKS = "SELECT first, observed, wall, highest FROM ages ORDER BY first"
_LAST_MARK = f"{_MARKS} DESC LIMIT 1"
_LAST_ROW = "SELECT coalesce(max(id), 0), coalesce((SELECT at FROM rows ORDER BY id DESC LIMIT 1), -1e99) FROM rows"
_MARK = "INSERT OR REPLACE INTO ages VALUES (?, ?, ?, ?)"
_PRUNE = "DELETE FROM ages WHERE first < (SELECT max(first) FROM ages WHERE first <= (SELECT min(id) FROM rows))"


class Mark(NamedTuple):
    """A moment of the observed time."""

    first: int
    """The id of the first row that was written after it."""
    observed: float
    """The observed time: seconds since the first wall time that the journal saw, plus that."""
    wall: Timestamp
    highest: Timestamp
    """The highest wall time so far."""


class ObservedTime:
    """The observed time of an open journal.

    Within a process a monotonic clock counts it. Between two processes there is only the wall clock, which may have
    been far ahead or far behind. See `_between`.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._wall, self._monotonic = time.time(), time.monotonic()
        stored = connection.execute(_LAST_MARK).fetchone()
        self._last = Mark(*stored) if stored is not None else Mark(0, self._wall, self._wall, self._wall)
        self._began = self._last.observed
        self._resumed = stored is None
        written: float = connection.execute(_LAST_ROW).fetchone()[1]
        latest = max(self._last.wall, written)
        self.behind: Seconds = max(0.0, latest - self._wall)
        """The time by which the wall clock was behind the journal's last entry when it was opened."""

    def resume(self, longest: Seconds) -> None:
        """Count the time since the last process, once."""
        if not self._resumed:
            self._resumed = True
            self._began += _between(self._last, self._wall, longest)

    @property
    def now(self) -> float:
        """The observed time."""
        return self._began + time.monotonic() - self._monotonic

    def mark(self, *, due: Seconds = 0.0) -> None:
        """Store the observed time, if the last mark is that old.

        It is part of the open transaction.
        """
        now = self.now
        if now - self._last.observed < due and self._last.first:
            return
        last_id: int = self._connection.execute(_LAST_ROW).fetchone()[0]
        wall = time.time()
        self._last = Mark(last_id + 1, now, wall, max(wall, self._last.highest))
        self._connection.execute(_MARK, self._last)

    def prune(self) -> None:
        """Delete the marks that no row needs, in the open transaction."""
        self._connection.execute(_PRUNE)


def _between(last: Mark, wall: Timestamp, longest: Seconds) -> Seconds:
    """Return the time to count between two processes.

    It runs from the last mark to the start. A jump of the clock can't be told from time without a process, so at most
    `longest` counts. A clock that went back counts nothing. One that swings counts its way once: time that counted
    before it went back does not count again, and a jump of more than `longest` counts only from the highest wall time.
    """
    since = wall - last.wall
    if since > longest:
        since = min(longest, wall - last.highest)
    return max(0.0, min(since, wall - last.observed))


class Ages:
    """The observed times of a journal's rows, by its marks."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._marks = [Mark(*stored) for stored in connection.execute(_MARKS)]

    def observed(self, row: int) -> float:
        """Return the observed time of a row, by its id."""
        number = bisect.bisect_right(self._marks, row, key=lambda mark: mark.first)
        return self._marks[max(0, number - 1)].observed

    def first_since(self, observed: float) -> int:
        """Return the id before which all rows are older."""
        return max((mark.first for mark in self._marks if mark.observed < observed), default=0)
