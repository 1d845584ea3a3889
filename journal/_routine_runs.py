"""The runs of a routine, found by its name."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from callboard.messages import Outcome, Routine

if TYPE_CHECKING:
    import sqlite3

    from callboard.messages import Seconds, Task, TaskResult, Timestamp

INDEXED = 14
"""The first version of a journal that finds tasks by their routine."""

_HIGHEST = 2**63 - 1
_TASK = "'$.routine', '$.dry_run', '$.routine_file'"
_RESULT = "'$.verified', '$.seconds', '$.usage.missed', '$.usage.replayed', '$.usage.model_calls', '$.usage.cost'"
_RUNS = f"""
SELECT tasks.number, id, submitted, outcome, (
    SELECT CASE WHEN json_valid(body) THEN json_extract(body, {_TASK}) END
    FROM rows WHERE task = tasks.id AND kind = 'task' ORDER BY rows.id LIMIT 1
), (
    SELECT CASE WHEN json_valid(body) THEN json_extract(body, {_RESULT}) END
    FROM rows WHERE task = tasks.id AND kind = 'task_result' ORDER BY rows.id LIMIT 1
)
FROM tasks WHERE routine = :name AND ended IS NOT NULL AND number < :before ORDER BY number DESC LIMIT :limit
"""  # noqa: S608 - of constants


@dataclass(frozen=True, slots=True)
class RoutineRun:
    """An ended task that repeated a routine."""

    task: str
    """The task's id."""
    number: int
    """Its place in the journal, for `JournalReader.routine_runs`."""
    submitted: Timestamp
    outcome: Outcome
    digest: str
    """The digest of the routine as it was then; empty if it can't be read."""
    file: str = ""
    """The routine's file; empty if the program had none."""
    dry_run: bool = False
    verified: bool | None = None
    seconds: Seconds = 0.0
    missed: int = 0
    replayed: int = 0
    model_calls: int = 0
    cost: float = 0.0

    @classmethod
    def of(cls, task: Task, result: TaskResult, *, number: int = 0, submitted: Timestamp = 0.0) -> RoutineRun:
        """Describe a task by its messages."""
        return cls(
            task=task.id,
            number=number,
            submitted=submitted,
            outcome=result.outcome,
            digest=task.routine.digest if isinstance(task.routine, Routine) else "",
            file=task.routine_file,
            dry_run=task.dry_run,
            verified=result.verified,
            seconds=result.seconds,
            missed=result.usage.missed,
            replayed=result.usage.replayed,
            model_calls=result.usage.model_calls,
            cost=result.usage.cost,
        )


def routine_runs(
    connection: sqlite3.Connection, name: str, *, before: int | None = None, limit: int
) -> tuple[RoutineRun, ...]:
    """List the ended tasks of a routine, newest first."""
    if connection.execute("PRAGMA user_version").fetchone()[0] < INDEXED:
        return ()
    bounds = {"name": name, "before": _HIGHEST if before is None else before, "limit": limit}
    return tuple(_run(*columns) for columns in connection.execute(_RUNS, bounds).fetchall())


def _run(  # noqa: PLR0917 - a line has six columns
    number: int, task_id: str, submitted: float, outcome: str, task: str | None, result: str | None
) -> RoutineRun:
    routine, dry_run, file = json.loads(task) if task else (None, False, "")
    verified, seconds, *counts, cost = json.loads(result) if result else (None, 0.0, 0, 0, 0, 0.0)
    missed, replayed, model_calls = (count or 0 for count in counts)
    return RoutineRun(
        task=task_id,
        number=number,
        submitted=submitted,
        outcome=Outcome(outcome),
        digest=_digest(json.dumps(routine)),
        file=file or "",
        dry_run=bool(dry_run),
        verified=verified,
        seconds=seconds or 0.0,
        missed=missed,
        replayed=replayed,
        model_calls=model_calls,
        cost=cost or 0.0,
    )


@functools.lru_cache(maxsize=64)
def _digest(routine: str) -> str:
    """Return the digest of a stored routine, which many tasks share."""
    content: Any = json.loads(routine)
    try:
        return Routine.model_validate(content).digest
    except ValidationError:
        return ""
