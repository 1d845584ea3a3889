"""What the facade and the machinery say to the switchboard; agents say messages to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callboard.messages import Target, Task


@dataclass(frozen=True)
class Submit:
    """Ask: take a task. Answered with the future of its result."""

    task: Task
    target: Target | None


@dataclass(frozen=True)
class GetStatus:
    """Ask: what runs? Answered with a `SupervisorStatus`."""


@dataclass(frozen=True)
class CloseIntake:
    """Ask: take no more tasks, and cancel those that run. Answered with the futures of their results."""


@dataclass(frozen=True)
class StopAgents:
    """Ask: stop all agents and the blackboard. Answered with what to wait for."""


@dataclass(frozen=True)
class AgentCrashed:
    """An agent's actor died."""

    address: str
    error: BaseException


@dataclass(frozen=True)
class LeaseIdle:
    """Nothing works under a lease any more."""

    token: int


@dataclass(frozen=True)
class LeaseStuck:
    """Only a blocking call is left under a lease; it can't be stopped."""

    token: int
