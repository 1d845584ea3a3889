"""The state of a supervisor at one moment."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from callboard.messages._base import Address, Message, RunId, TaskId, Value
from callboard.messages._person import ApprovalRequest, Question


class RunStatus(Value):
    """One agent's work on a task that is not over."""

    run_id: RunId
    address: Address
    request: str
    leased: bool
    """Whether it has its target and works; otherwise it waits for the target."""


class TaskStatus(Value):
    """One task that is not over."""

    task_id: TaskId
    request: str
    round: int
    runs: tuple[RunStatus, ...] = ()
    ended_subtasks: int = 0
    cancelling: bool = False
    paused: bool = False
    lacks: str = ""
    """The resources that this process lacks, for which a task of another process is paused. Empty where a caller paused
    it."""


class SupervisorStatus(Message):
    """Running and waiting work, and unusable targets."""

    kind: Literal["supervisor_status"] = "supervisor_status"
    accepting: bool
    tasks: tuple[TaskStatus, ...] = ()
    agents: tuple[Address, ...] = ()
    """Agents that are alive, idle ones included."""
    abandoned: tuple[Address, ...] = ()
    """Targets with a call that can't be stopped; they are not leased."""
    approvals: tuple[ApprovalRequest, ...] = ()
    """Approvals that wait for a person."""
    questions: tuple[Question, ...] = ()
    ended_tasks: int = Field(default=0, ge=0)
