"""The failed subtasks that a HostAgent has not made up for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages._outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.messages._task import SubtaskResult


def open_failures(subtasks: Sequence[SubtaskResult]) -> tuple[SubtaskResult, ...]:
    """Return the subtasks that did not finish, and still count.

    A subtask that was assigned alone counts until another one is assigned. One of a group counts until a later subtask
    finishes with the same agent.

    Args:
        subtasks: The results of a task's subtasks, in order.
    """
    last = subtasks[-1].number if subtasks else 0
    failed = (subtask for subtask in subtasks if subtask.outcome is not Outcome.FINISHED)
    return tuple(
        subtask for subtask in failed if (not _made_up(subtask, subtasks) if subtask.group else subtask.number == last)
    )


def _made_up(subtask: SubtaskResult, subtasks: Sequence[SubtaskResult]) -> bool:
    return any(
        later.address == subtask.address and later.outcome is Outcome.FINISHED and later.number > subtask.number
        for later in subtasks
    )
