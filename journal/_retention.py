"""Retention: delete whole tasks that ended, the earliest end first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.journal._observed_time import Ages

if TYPE_CHECKING:
    import sqlite3

    from callboard.journal._search import SearchIndex

_ENDED = """
    SELECT id, ended, coalesce(
        (SELECT min(rows.id) FROM rows WHERE rows.task = over.id AND rows.kind = 'task_result'), 0
    ) AS row FROM tasks AS over WHERE ended IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM tasks AS running
        WHERE running.ended IS NULL AND coalesce(running.session, running.id) = coalesce(over.session, over.id)
    ) ORDER BY row, number
"""  # no task of a conversation is deleted while one of its tasks is unfinished
_ALL_PICTURES = "SELECT coalesce(sum(bytes), 0) FROM (SELECT DISTINCT name, bytes FROM pictures)"
_OWN_PICTURES = """
    SELECT coalesce(sum(bytes), 0) FROM pictures AS own WHERE task = ?
    AND NOT EXISTS (SELECT 1 FROM pictures AS other WHERE other.name = own.name AND other.task <> own.task)
"""
_DROPS = (
    "DELETE FROM rows WHERE task = :task",
    "DELETE FROM pictures WHERE task = :task",
    """
    DELETE FROM observations WHERE name IN (SELECT name FROM observed WHERE task = :task) AND NOT EXISTS (
        SELECT 1 FROM observed AS other WHERE other.name = observations.name AND other.task <> :task
    )
    """,
    "DELETE FROM observed WHERE task = :task",
    "DELETE FROM tasks WHERE id = :task",
)


_OF_NO_TASK = """
    DELETE FROM rows WHERE task = '' AND id < ? AND (kind <> 'in_force' OR id < (
        SELECT id FROM rows WHERE task = '' AND kind = 'in_force' AND id < coalesce(
            (SELECT min(id) FROM rows WHERE task <> ''), (SELECT max(id) + 1 FROM rows)
        ) ORDER BY id DESC LIMIT 1
    ))
"""  # keeps the settings under which the remaining tasks ran, including those at the start of the oldest task
_FIRST = "SELECT coalesce(min(id), 9223372036854775807) FROM rows WHERE task <> ''"


class Retention:
    """One pruning of a journal.

    The caller opens and commits the transaction for `drop`.
    """

    def __init__(self, connection: sqlite3.Connection, search: SearchIndex) -> None:
        self._connection = connection
        self._search = search

    def drop(self, *, oldest: float | None, max_bytes: int | None, kept_since: float | None = None) -> int:
        """Delete tasks that ended before a time or exceed the size.

        Returns the number of deleted tasks. They are deleted in the order of their ends.

        Args:
            oldest: The observed time before which a task's end is too old.
            max_bytes: The maximum size.
            kept_since: The wall time; tasks that ended then or later are kept.
        """
        dropped = 0
        pictures = self._number(_ALL_PICTURES)
        if max_bytes is not None and self._used() + pictures > max_bytes:
            self._connection.execute(_OF_NO_TASK, (self._number(_FIRST),))
        ages = Ages(self._connection)
        for task_id, ended, row in self._connection.execute(_ENDED).fetchall():
            if kept_since is not None and ended >= kept_since:
                continue
            large = max_bytes is not None and self._used() + pictures > max_bytes
            if not large and (oldest is None or ages.observed(row) >= oldest):
                break
            pictures -= self._number(_OWN_PICTURES, task_id)
            self._search.drop(task_id)
            for statement in _DROPS:
                self._connection.execute(statement, {"task": task_id})
            dropped += 1
        if oldest is not None:
            self._connection.execute(_OF_NO_TASK, (ages.first_since(oldest),))
        return dropped

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
        number: int = self._connection.execute(query, parameters).fetchone()[0]
        return number
