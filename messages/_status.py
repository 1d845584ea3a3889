"""What a supervisor is doing at one moment."""

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
    """Whether it works; otherwise it waits for its target."""


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
    """What another process's task is paused for: what it can't go on without here. Empty where somebody paused it."""


class SupervisorStatus(Message):
    """What runs, waits, and can't be used."""

    kind: Literal["supervisor_status"] = "supervisor_status"
    accepting: bool
    tasks: tuple[TaskStatus, ...] = ()
    agents: tuple[Address, ...] = ()
    """Agents that are alive, idle ones included."""
    abandoned: tuple[Address, ...] = ()
    """Targets in which a call can't be stopped; leased to nobody."""
    approvals: tuple[ApprovalRequest, ...] = ()
    """Approvals that wait for a person."""
    questions: tuple[Question, ...] = ()
    ended_tasks: int = Field(default=0, ge=0)
