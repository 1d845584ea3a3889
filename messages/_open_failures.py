"""The failed subtasks that a HostAgent has not answered with another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages._outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.messages._subtask_result import SubtaskResult


def open_failures(subtasks: Sequence[SubtaskResult]) -> tuple[SubtaskResult, ...]:
    """Return the subtasks assigned last that did not finish.

    They are the last subtask, or all that were assigned together with it. Once another subtask is assigned, it counts
    instead of them.

    Args:
        subtasks: The results of a task's subtasks, in order.
    """
    if not subtasks:
        return ()
    last = subtasks[-1]
    latest = [subtask for subtask in subtasks if last.group and subtask.group == last.group] or [last]
    return tuple(subtask for subtask in latest if subtask.outcome is not Outcome.FINISHED)
