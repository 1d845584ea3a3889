"""What agents leave for each other and for the host program, by task."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from callboard.messages._base import Message, TaskId, Term, Timestamp, Value


class Board(Term):
    """The parts of a task's blackboard."""

    REQUESTS = "requests"
    """What the user asked for, a row a round."""
    QUESTIONS = "questions"
    """Questions, approvals and their answers."""
    TRAJECTORIES = "trajectories"
    """One row a step: agent, state, thought, actions, results."""
    SUBTASKS = "subtasks"
    """Results of subtasks."""


class BlackboardEntry(Value):
    """One row of a blackboard."""

    at: Timestamp
    author: str
    """The agent's address, or ``supervisor``."""
    content: JsonValue


class BlackboardQuery(Message):
    """Read a task's blackboard."""

    kind: Literal["blackboard_query"] = "blackboard_query"
    task_id: TaskId


class BlackboardView(Message):
    """A task's blackboard at one moment."""

    kind: Literal["blackboard_view"] = "blackboard_view"
    task_id: TaskId
    requests: tuple[BlackboardEntry, ...] = ()
    questions: tuple[BlackboardEntry, ...] = ()
    trajectories: tuple[BlackboardEntry, ...] = ()
    subtasks: tuple[BlackboardEntry, ...] = ()
    dropped: int = Field(default=0, ge=0)
    """Rows that were given up because the bound was reached, the oldest first."""
