"""The routines of the tasks that repeat one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import Routine
from callboard.routines._follower import RoutineFollower

if TYPE_CHECKING:
    from callboard.messages import Task


class TaskRoutines:
    """The routines of tasks, by task."""

    def __init__(self) -> None:
        self._followers: dict[str, RoutineFollower] = {}

    def take(self, task: Task) -> None:
        """Follow the routine of a task, if it has one."""
        if isinstance(task.routine, Routine):
            values = task.routine.values(task.parameters)
            self._followers[task.id] = RoutineFollower(
                task.routine, values, strict=task.strict_routine, dry_run=task.dry_run
            )

    def of(self, task_id: str) -> RoutineFollower | None:
        """Return the routine of a task; None without one."""
        return self._followers.get(task_id)

    def drop(self, task_id: str) -> None:
        """Forget a task."""
        self._followers.pop(task_id, None)
