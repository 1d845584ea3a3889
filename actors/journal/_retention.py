"""What a journal lets go of: whole tasks that ended, the oldest end first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

_ENDED = """
    SELECT id, ended FROM tasks AS over WHERE ended IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM tasks AS running
        WHERE running.ended IS NULL AND coalesce(running.session, running.id) = coalesce(over.session, over.id)
    ) ORDER BY ended, number
"""  # a conversation is kept whole while one of its tasks is not over
_ALL_PICTURES = "SELECT coalesce(sum(bytes), 0) FROM (SELECT DISTINCT name, bytes FROM pictures)"
_OWN_PICTURES = """
    SELECT coalesce(sum(bytes), 0) FROM pictures AS own WHERE task = ?
    AND NOT EXISTS (SELECT 1 FROM pictures AS other WHERE other.name = own.name AND other.task <> own.task)
"""
_DROPS = (
    "DELETE FROM rows WHERE task = ?",
    "DELETE FROM pictures WHERE task = ?",
    "DELETE FROM tasks WHERE id = ?",
)


_OF_NO_TASK = """
    DELETE FROM rows WHERE task = '' AND at < ? AND (kind <> 'in_force' OR id < (
        SELECT id FROM rows WHERE task = '' AND kind = 'in_force' AND id < coalesce(
            (SELECT min(id) FROM rows WHERE task <> ''), (SELECT max(id) + 1 FROM rows)
        ) ORDER BY id DESC LIMIT 1
    ))
"""  # the settings under which tasks ran that are kept, those under which the oldest began included
_FIRST = "SELECT coalesce(min(submitted), 1e99) FROM tasks"  # when the oldest task that is kept began


class Retention:
    """One pruning of a journal. The caller opens and commits the transaction around `drop`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def drop(self, *, oldest: float | None, max_bytes: int | None) -> int:
        """Drop tasks that ended before a time, and then more while all takes too many bytes. Returns how many."""
        dropped = 0
        pictures = self._number(_ALL_PICTURES)
        if max_bytes is not None and self._used() + pictures > max_bytes:
            self._connection.execute(_OF_NO_TASK, self._connection.execute(_FIRST).fetchone())
        for task_id, ended in self._connection.execute(_ENDED).fetchall():
            large = max_bytes is not None and self._used() + pictures > max_bytes
            if not large and (oldest is None or ended >= oldest):
                break
            pictures -= self._number(_OWN_PICTURES, task_id)
            for statement in _DROPS:
                self._connection.execute(statement, (task_id,))
            dropped += 1
        if oldest is not None:
            self._connection.execute(_OF_NO_TASK, (oldest,))
        return dropped

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
