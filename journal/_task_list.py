"""Lists of a journal's tasks: filtered, counted, and in pages."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.journal._search import (
    BODIES,
    TEXT_CHARACTERS,
    label_word,
    matches,
    outcome_word,
    query_of,
    searchable,
    words_in,
)
from callboard.journal._words import words_of
from callboard.messages import Outcome

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from callboard.journal._search import Alternatives
    from callboard.messages import Timestamp

COUNTED = 1_000
"""The highest count of matching tasks."""

LOOKED_AT = 2_000
"""The maximum number of tasks that are read one by one without an index."""

_WORDS = 32
"""The maximum number of words of a filter; others are ignored."""

_SHORT = 2
"""The minimum length of a last word that is a prefix."""

_HIGHEST = 2**63 - 1

_LINE = """
SELECT tasks.number, id, request, session, submitted, ended, outcome, (
    SELECT CASE WHEN json_valid(body) THEN json_extract(body, '$.verified') END
    FROM rows WHERE task = tasks.id AND kind = 'task_result' ORDER BY rows.id LIMIT 1
), (
    SELECT CASE WHEN json_valid(body) THEN json_extract(body, '$.labels') END
    FROM rows WHERE task = tasks.id AND kind = 'task' ORDER BY rows.id LIMIT 1
), key"""
_TASKS = f"{_LINE} FROM tasks ORDER BY number"
_WITH_KEY = "SELECT id FROM tasks WHERE key = ?"
_KEYS = "SELECT key FROM tasks WHERE key IS NOT NULL ORDER BY number DESC LIMIT ?"
_IDS = "SELECT id FROM tasks WHERE id >= :first AND id < :last ORDER BY number"
_UNFINISHED_IDS = "SELECT id FROM tasks WHERE ended IS NULL ORDER BY number"
_OUTCOMES = "SELECT outcome, count(*) FROM tasks GROUP BY outcome"
_FIRST = "SELECT min(+number) FROM tasks WHERE submitted >= ?"
_LAST = "SELECT max(+number) FROM tasks WHERE submitted < ?"

# A plus keeps SQLite from an index by time, after which it would have to sort all matches by number; and above, from a
# search for the first number in the whole table.
_ALL = """
FROM tasks WHERE tasks.number < :before AND tasks.number BETWEEN :first AND :last
AND +submitted >= :since AND +submitted < :until
"""
_FOUND = """
FROM search CROSS JOIN tasks ON tasks.number = search.rowid
WHERE search MATCH :query AND search.rowid < :before AND search.rowid BETWEEN :first AND :last
AND +submitted >= :since AND +submitted < :until
"""
_PAGE = f"{_LINE} {_ALL} ORDER BY tasks.number DESC LIMIT :limit"
_PAGE_FOUND = f"{_LINE} {_FOUND} ORDER BY search.rowid DESC LIMIT :limit"
_COUNT = f"SELECT count(*) FROM (SELECT 1 {_ALL} LIMIT :limit)"  # noqa: S608 - of constants
_COUNT_FOUND = f"SELECT count(*) FROM (SELECT 1 {_FOUND} LIMIT :limit)"  # noqa: S608 - of constants
_SCAN = f"SELECT tasks.number, outcome, {BODIES} {_ALL} ORDER BY tasks.number DESC LIMIT :limit"
_ONE = f"{_LINE} FROM tasks WHERE number = ?"


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A summary of a task, for a list."""

    id: str
    request: str
    session: str | None
    """The id of its conversation's first task; None if it is the first."""
    submitted: Timestamp
    ended: Timestamp | None
    """None until it has ended."""
    outcome: Outcome | None
    verified: bool | None = None
    """Whether it finished with all of its checks held; None without checks, and until it has ended."""
    labels: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    """Its idempotency key."""


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """A filter of tasks; all of its parts must match."""

    text: str = ""
    """Words, each in the request, or in the result's comment, output or reasons.

    The last word is also found at the beginning of longer words. Case, accents and punctuation do not count. All tasks
    match a text without words."""
    outcomes: frozenset[Outcome | None] = frozenset()
    """The possible outcomes of the task; None stands for unfinished tasks. Empty for any outcome."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that the task has."""
    since: Timestamp | None = None
    """The earliest time of the submission."""
    until: Timestamp | None = None
    """The time before which the task was submitted."""

    def groups(self) -> list[Alternatives]:
        """Return the words that a task must have; of each group, one."""
        words = words_of(self.text[:TEXT_CHARACTERS])[:_WORDS]
        if words and len(words[-1]) >= _SHORT:
            words[-1] += "*"
        groups: list[Alternatives] = [(word,) for word in words]
        groups += [(label_word(name, value),) for name, value in self.labels.items()]
        if self.outcomes:
            groups.append(tuple(outcome_word(outcome) for outcome in self.outcomes))
        return groups


ALL_TASKS = TaskFilter()
"""The filter that all tasks match."""


@dataclass(frozen=True, slots=True)
class TaskPage:
    """A part of a list of tasks, newest first."""

    tasks: tuple[TaskLine, ...]
    next: int | None
    """The position of the next page, for `JournalReader.page`; None after the last."""
    complete: bool = True
    """False if the page is shorter than it could be, because the journal has no index of words, and only its newest
    tasks up to `next` were looked at."""


@dataclass(frozen=True, slots=True)
class TaskCount:
    """The number of tasks in a list."""

    tasks: int
    more: bool = False
    """Whether there are, or may be, more tasks than were counted."""


class TaskList:
    """The tasks of a journal, read through a connection in one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self) -> tuple[TaskLine, ...]:
        """List all tasks, in the order of their submission."""
        return tuple(_line(*columns) for _, *columns in self._connection.execute(_TASKS).fetchall())

    def ids(self, beginning: str) -> tuple[str, ...]:
        """List the ids with a beginning, in the order of submission."""
        bounds = {"first": beginning, "last": f"{beginning}{chr(sys.maxunicode)}"}
        return tuple(task_id for (task_id,) in self._connection.execute(_IDS, bounds))

    def with_key(self, key: str) -> str | None:
        """Return the id of the task with a key."""
        return next((task_id for (task_id,) in self._connection.execute(_WITH_KEY, (key,))), None)

    def keys(self, limit: int) -> tuple[str, ...]:
        """List the keys of tasks, the newest first."""
        return tuple(key for (key,) in self._connection.execute(_KEYS, (limit,)))

    def unfinished_ids(self) -> tuple[str, ...]:
        """List the ids of unfinished tasks, in the order of submission."""
        return tuple(task_id for (task_id,) in self._connection.execute(_UNFINISHED_IDS))

    def outcomes(self) -> dict[Outcome | None, int]:
        """Count the tasks of each outcome; None stands for unfinished tasks."""
        counts = self._connection.execute(_OUTCOMES).fetchall()
        return {Outcome(outcome) if outcome else None: count for outcome, count in counts}

    def page(self, tasks: TaskFilter, before: int | None, limit: int) -> TaskPage:
        """Read a page; see `JournalReader.page`."""
        groups, bounds = tasks.groups(), self._bounds(tasks, before)
        if groups and not searchable(self._connection):
            return self._scanned_page(groups, bounds, limit)
        bounds |= {"limit": limit + 1, "query": query_of(groups)}
        lines = self._connection.execute(_PAGE_FOUND if groups else _PAGE, bounds).fetchall()
        position = lines[limit - 1][0] if len(lines) > limit else None
        return TaskPage(tuple(_line(*columns) for _, *columns in lines[:limit]), position)

    def count(self, tasks: TaskFilter) -> TaskCount:
        """Count the tasks of a list; see `JournalReader.count`."""
        groups, bounds = tasks.groups(), self._bounds(tasks, None)
        if groups and not searchable(self._connection):
            numbers, position = self._scan(groups, bounds, LOOKED_AT)
            return TaskCount(min(len(numbers), COUNTED), position is not None or len(numbers) > COUNTED)
        bounds |= {"limit": COUNTED + 1, "query": query_of(groups)}
        (count,) = self._connection.execute(_COUNT_FOUND if groups else _COUNT, bounds).fetchone()
        return TaskCount(min(count, COUNTED), count > COUNTED)

    def _bounds(self, tasks: TaskFilter, before: int | None) -> dict[str, float | str]:
        """Return the bounds of tasks, by number and by time.

        Numbers nearly follow the times. So those outside of the interval are left out by number first.
        """
        first, last = 0, _HIGHEST
        if tasks.since is not None:
            first = self._connection.execute(_FIRST, (tasks.since,)).fetchone()[0] or _HIGHEST
        if tasks.until is not None:
            last = self._connection.execute(_LAST, (tasks.until,)).fetchone()[0] or 0
        return {
            "before": _HIGHEST if before is None else before,
            "first": first,
            "last": last,
            "since": -math.inf if tasks.since is None else tasks.since,
            "until": math.inf if tasks.until is None else tasks.until,
        }

    def _scanned_page(self, groups: list[Alternatives], bounds: dict[str, float | str], limit: int) -> TaskPage:
        numbers, position = self._scan(groups, bounds, limit)
        lines = [self._connection.execute(_ONE, (number,)).fetchone() for number in numbers[:limit]]
        more = len(numbers) > limit
        return TaskPage(
            tuple(_line(*columns) for _, *columns in lines),
            numbers[limit - 1] if more else position,
            complete=more or position is None,
        )

    def _scan(
        self, groups: list[Alternatives], bounds: dict[str, float | str], limit: int
    ) -> tuple[list[int], int | None]:
        """Look for tasks in their rows.

        Returns:
            The numbers of matching tasks, at most one above the limit, and that of the last task looked at if there
            may be older ones.
        """
        numbers: list[int] = []
        looked_at, number = 0, None
        for number, *columns in self._connection.execute(_SCAN, {**bounds, "limit": LOOKED_AT}):
            looked_at += 1
            if matches(groups, words_in(*columns)):
                numbers.append(number)
            if len(numbers) > limit:
                break
        return numbers, number if looked_at == LOOKED_AT else None


def _line(  # noqa: PLR0917 - a line has nine columns
    task_id: str,
    request: str,
    session: str | None,
    submitted: float,
    ended: float | None,
    outcome: str | None,
    verified: object,
    labels: str | None,
    key: str | None,
) -> TaskLine:
    return TaskLine(
        id=task_id,
        request=request,
        session=session,
        submitted=submitted,
        ended=ended,
        outcome=Outcome(outcome) if outcome else None,
        verified=None if verified is None else verified == 1,
        labels=json.loads(labels) if labels else {},
        key=key,
    )
