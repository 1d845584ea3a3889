"""Events of the supervisor, and of tasks, rounds and subtasks."""

from __future__ import annotations

from typing import Literal

from callboard.messages._event import EventName
from callboard.messages._outcome import Outcome
from callboard.messages.events._typed_event import Datum, TypedEvent


class SupervisorStarted(TypedEvent):
    """The supervisor accepts tasks."""

    name: Literal[EventName.SUPERVISOR_STARTED] = EventName.SUPERVISOR_STARTED
    recovered: Datum[int]
    """The number of tasks that it resumes from the journal."""


class SupervisorStopped(TypedEvent):
    """The supervisor is down."""

    name: Literal[EventName.SUPERVISOR_STOPPED] = EventName.SUPERVISOR_STOPPED
    left: Datum[tuple[str, ...]]
    """The parts that could not be ended."""


class TaskSubmitted(TypedEvent):
    """A task was accepted."""

    name: Literal[EventName.TASK_SUBMITTED] = EventName.TASK_SUBMITTED
    request: Datum[str]
    """The work, in words."""
    target: Datum[str]
    """The target that it names; empty without one."""
    labels: Datum[dict[str, str]]
    """The host program's own."""


class TaskEnded(TypedEvent):
    """A task is over. The last event of a task."""

    name: Literal[EventName.TASK_ENDED] = EventName.TASK_ENDED
    outcome: Datum[Outcome | Literal["refused"]]
    """Its outcome; `refused` if it could not be stored, and was not started."""
    causes: Datum[tuple[str, ...]]
    """Why it did not finish, the nearest cause first."""
    artifacts: Datum[tuple[str, ...]] = ()
    """Files that were made or changed."""


class TaskCancelling(TypedEvent):
    """A cancel, a deadline or a budget stops a task or run."""

    name: Literal[EventName.TASK_CANCELLING] = EventName.TASK_CANCELLING
    outcome: Datum[Outcome]
    """The outcome that it will have: it names which of them."""
    reason: Datum[str]
    """The reason, as a person or the supervisor gave it."""


class TaskRecovered(TypedEvent):
    """A task that another process began resumes from the journal."""

    name: Literal[EventName.TASK_RECOVERED] = EventName.TASK_RECOVERED
    runs: Datum[int]
    """The number of its unfinished runs."""
    labels: Datum[dict[str, str]]
    """The host program's own."""


class TaskPaused(TypedEvent):
    """A task stops before its next action."""

    name: Literal[EventName.TASK_PAUSED] = EventName.TASK_PAUSED
    reason: Datum[str] = ""
    """The thing that it lacks in this process; empty for a pause that was asked for."""


class TaskResumed(TypedEvent):
    """A paused task resumes."""

    name: Literal[EventName.TASK_RESUMED] = EventName.TASK_RESUMED


class RoundStarted(TypedEvent):
    """A HostAgent begins a request, or the next step of a plan."""

    name: Literal[EventName.ROUND_STARTED] = EventName.ROUND_STARTED
    round: Datum[int]
    """The number of the round, from 1."""
    request: Datum[str]
    """The work, in words."""


class RoundEnded(TypedEvent):
    """A HostAgent ended a round."""

    name: Literal[EventName.ROUND_ENDED] = EventName.ROUND_ENDED
    round: Datum[int]
    """The number of the round, from 1."""
    outcome: Datum[Outcome]
    """Its outcome."""
    causes: Datum[tuple[str, ...]]
    """Why it did not finish, the nearest cause first."""


class SubtaskPlanned(TypedEvent):
    """A subtask was assigned with others, and waits for its turn."""

    name: Literal[EventName.SUBTASK_PLANNED] = EventName.SUBTASK_PLANNED
    request: Datum[str]
    """The work, in words."""
    group: Datum[int]
    """The number of the first subtask of its group."""
    after: Datum[tuple[int, ...]] = ()
    """The numbers of the subtasks that must have finished before it begins."""
    after_any: Datum[tuple[int, ...]] = ()
    """The numbers of the subtasks that must have ended before, with any outcome."""


class SubtaskQueued(TypedEvent):
    """A subtask waits for its target, which another one uses."""

    name: Literal[EventName.SUBTASK_QUEUED] = EventName.SUBTASK_QUEUED
    ahead: Datum[int]
    """The number of subtasks before it."""


class SubtaskAssigned(TypedEvent):
    """A subtask went to its agent, with a lease on its target."""

    name: Literal[EventName.SUBTASK_ASSIGNED] = EventName.SUBTASK_ASSIGNED
    request: Datum[str]
    """The work, in words."""


class SubtaskEnded(TypedEvent):
    """A subtask is over, or never began; `duration` is its jobs' time."""

    name: Literal[EventName.SUBTASK_ENDED] = EventName.SUBTASK_ENDED
    outcome: Datum[Outcome]
    """Its outcome."""
    causes: Datum[tuple[str, ...]]
    """Why it did not finish, the nearest cause first."""
    machine: Datum[str] = ""
    """The machine that did it; empty for this one."""
    steps: Datum[int] = 0
    """The number of its steps."""
