"""Subtasks that another machine of the fleet does."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from callboard.messages._base import Message, RunId, Value
from callboard.messages._subtask_result import SubtaskResult

MachineName = Annotated[str, StringConstraints(pattern="^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38}[A-Za-z0-9])?$")]
"""The name of a machine of a fleet: letters, digits and ``-`` between them, at most 40."""


class TaskOrigin(Value):
    """The subtask that a task of another machine does.

    It has what an assignment has, and a task alone has not.
    """

    submitter: MachineName
    """The machine whose task the subtask belongs to."""
    run_id: RunId
    """The subtask there."""
    number: int = Field(ge=1)
    """Its place within the task there."""
    task_request: str
    """The request of the whole task."""
    subtasks: tuple[SubtaskResult, ...] = ()
    """The earlier results that the subtask sees."""
    made: tuple[str, ...] = ()
    """The files that the task has made so far, where they are on this machine."""


class RemoteEnded(Message):
    """The other machine has ended the subtask."""

    kind: Literal["remote_ended"] = "remote_ended"
    result: SubtaskResult
    """Its result there, under the run and number of the subtask here."""
