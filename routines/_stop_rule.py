"""Refuse routines that miss in run after run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.journal import RoutineRun
    from callboard.messages import Routine

_LOOKED_AT = 10
"""The number of runs that are looked at, for each miss that is allowed."""


def looked_at(misses: int) -> int:
    """Return the number of latest runs that decide, however large the journal."""
    return _LOOKED_AT * (misses + 1)


def stop_reason(routine: Routine, runs: Sequence[RoutineRun], misses: int, file: str = "") -> str:
    """Return the reason against a routine; empty if it may run.

    Runs of another content of the routine do not count, nor do dry runs, nor those that ended before they were over
    without a miss.

    Args:
        routine: The routine.
        runs: Its latest runs, newest first.
        misses: The most runs in a row that may miss; 0 for any number.
        file: Its file, for the advice.
    """
    missed: list[str] = []
    for run in runs:
        if run.digest != routine.digest or run.dry_run:
            continue
        if run.missed:
            missed.append(run.task)
        elif run.outcome == "finished":
            break
    if not misses or len(missed) <= misses:
        return ""
    name = file or "FILE"
    return (
        f"the routine {routine.routine} missed a step in each of its last {len(missed)} runs, of which "
        f"`routines.misses` allows {misses} in a row; the last one is the task {missed[0]}. Promote its repair with "
        f"`callboard routine promote {name}`, or edit the routine: then it is counted from 0"
    )
