"""What the facade and the machinery say to the switchboard; agents say messages to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.actors.agent import Inbox
    from callboard.actors.journal import Row
    from callboard.actors.root._recovery import RecoveredTask
    from callboard.actors.servers import Server
    from callboard.messages import Assign, Cause, Outcome, Target, Task


@dataclass(frozen=True)
class Submit:
    """Ask: take a task. Answered with the future of its result."""

    task: Task
    target: Target | None
    earlier: tuple[str, ...] = ()
    """Of a follow-up: the tasks of its conversation that the journal has."""


@dataclass(frozen=True)
class NotKept:
    """A task could not be written down: it never was."""

    task_id: str
    error: Exception


@dataclass(frozen=True)
class Restore:
    """Ask: go on with tasks that another process began."""

    recovered_tasks: tuple[RecoveredTask, ...]


@dataclass(frozen=True)
class GiveSecrets:
    """Ask: take the secrets of a task that is not over; it goes on if it was paused for lack of them, and nothing else.

    Answered with a future, once that is safe.
    """

    task: Task


@dataclass(frozen=True)
class GetTasks:
    """Ask: which tasks are not over? Answered with each and the future of its result."""


@dataclass(frozen=True)
class GetStatus:
    """Ask: what runs? Answered with a `SupervisorStatus`."""


@dataclass(frozen=True)
class CloseIntake:
    """Ask: take no more tasks; suspend those that run, where the journal survives, else cancel them.

    Answered with the futures of their results.
    """


@dataclass(frozen=True)
class StopAgents:
    """Ask: stop all agents and the blackboard. Answered with what to wait for."""


@dataclass(frozen=True)
class AgentCrashed:
    """An agent's actor died."""

    address: str
    error: BaseException
    urn: str = ""
    """Which actor it was; empty for whoever lives there now."""


@dataclass(frozen=True)
class LeaseIdle:
    """Nothing works under a lease any more."""

    token: int


@dataclass(frozen=True)
class LeaseStuck:
    """Only a blocking call is left under a lease; it can't be stopped."""

    token: int


@dataclass(frozen=True)
class LeaseHung:
    """A job under a lease is long past its deadline."""

    token: int
    stack: str


@dataclass(frozen=True)
class Deliver:
    """An agent that is being started anew gets a message."""

    address: str
    message: Inbox


@dataclass(frozen=True)
class History:
    """What the journal has of a run whose agent is started anew."""

    assign: Assign
    found: Sequence[Row] | Exception


@dataclass(frozen=True)
class ConversationRests:
    """A conversation for which something is open may have no task any more."""

    session: str


@dataclass(frozen=True)
class CloseOpened:
    """What was opened for a conversation is due to be closed, unless it was gone on with."""

    server: Server
    session: str


@dataclass(frozen=True)
class Left:
    """What the journal has of a run that nobody goes on with, and how it ends."""

    run: Assign
    outcome: Outcome
    causes: tuple[Cause, ...]
    found: Sequence[Row] | Exception


@dataclass(frozen=True)
class RestartDue:
    """A crashed agent's work may go on, once nothing works under its lease any more."""

    run: Assign
    """With the lease under which it crashed."""


@dataclass(frozen=True)
class JournalBroken:
    """The journal can't be written any more."""

    error: Exception


@dataclass(frozen=True)
class BlackboardCrashed:
    """The blackboard's actor died."""

    error: BaseException
