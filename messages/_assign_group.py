"""Several subtasks that a HostAgent assigns in one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from callboard.messages._base import Message, RunId, TaskId, is_of_task
from callboard.messages._handoff import Assign

if TYPE_CHECKING:
    from callboard.messages._subtask_result import SubtaskResult


class AssignGroup(Message):
    """Several subtasks of one answer.

    The root hands each over once those before it have ended.
    """

    kind: Literal["assign_group"] = "assign_group"
    task_id: TaskId
    run_id: RunId
    """The HostAgent's run."""
    assigns: tuple[Assign, ...] = Field(min_length=1)
    """In the order of their numbers, each with its `member`."""

    def lean(self) -> AssignGroup:
        """Leave out fields that other rows of the conversation have."""
        return self.model_copy(update={"assigns": tuple(assign.lean() for assign in self.assigns)})


def with_results(assign: Assign, subtasks: tuple[SubtaskResult, ...], made: tuple[str, ...]) -> Assign:
    """Put in the results of earlier subtasks that an assignment may see.

    A member of a group sees all subtasks before its group, and those of its group that it comes after, directly or not.
    It sees no other member, whether that has ended by now or not: so the time of an end changes nothing, and a replay
    finds the same. The results are in the order of their numbers.

    Args:
        assign: The assignment.
        subtasks: The results so far.
        made: The files that the task has made so far.
    """
    member = assign.member
    if member is None:
        return assign.model_copy(update={"subtasks": subtasks, "made": made})
    results = {result.run_id: result for result in subtasks}.values()
    visible = sorted(
        (
            result
            for result in results
            if not is_of_task(result.run_id, assign.task_id)
            or result.number < member.first
            or result.number in member.sees
        ),
        key=lambda result: result.number,
    )
    hidden_paths = {path for result in results if result not in visible for path in result.made}
    visible_paths = [path for result in visible for path in result.made]
    paths = dict.fromkeys([*(path for path in made if path not in hidden_paths), *visible_paths])
    return assign.model_copy(update={"subtasks": tuple(visible), "made": tuple(paths)})
