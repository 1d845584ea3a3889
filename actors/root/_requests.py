"""Messages to the root from the supervisor, the runtime and itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from callboard.actors.agent import Inbox
    from callboard.actors.commands import OutputType
    from callboard.actors.root._recovery import RecoveredTask
    from callboard.journal import Row
    from callboard.messages import Assign, Cause, Outcome, Target, Task
    from callboard.surfaces import Server


@dataclass(frozen=True)
class Submit:
    """A request to take a task.

    It is answered with the task, the future of its result, and a future that is done once the task is safe.
    """

    task: Task
    target: Target | None
    earlier: tuple[str, ...] = ()
    """The tasks of a follow-up's conversation that the journal has."""
    output_type: OutputType[Any] | None = None
    """The type of its output, if the program gave one."""
    unmatched: tuple[tuple[int, str], ...] = ()
    """The rules of its policy that can match nothing: the number of each, and the reason."""
    files: Mapping[str, str] | None = None
    """The digests of the files that its checks and judge compare; None if they compare none."""
    contents: Mapping[str, bytes] | None = None
    """The contents of these files, if its judge compares them and no journal in a file has them."""


@dataclass(frozen=True)
class NotKept:
    """A task could not be written, and so is not taken."""

    task_id: str
    error: Exception


@dataclass(frozen=True)
class Restore:
    """A request to resume the tasks of an earlier process."""

    recovered_tasks: tuple[RecoveredTask, ...]


@dataclass(frozen=True)
class GiveSecrets:
    """A request to take the secrets of an unfinished task.

    The task is resumed if it was paused only for lack of them. The answer is a future that is done once that is safe.
    """

    task: Task


@dataclass(frozen=True)
class GiveOutputType:
    """A request to take the output type of an unfinished task."""

    task_id: str
    output_type: OutputType[Any]


@dataclass(frozen=True)
class GetTasks:
    """A query for all unfinished tasks and the futures of their results."""


@dataclass(frozen=True)
class GetStatus:
    """A query for the `SupervisorStatus`."""


@dataclass(frozen=True)
class GetProgress:
    """A query for the `TaskProgress` of an unfinished task; None for others."""

    task_id: str


@dataclass(frozen=True)
class CloseIntake:
    """A request to take no more tasks, and to stop all.

    They are suspended if the journal survives the process, else cancelled. The answer is the futures of their results.
    """


@dataclass(frozen=True)
class StopAgents:
    """A request to stop all agents and the blackboard.

    It is answered with a future for the end of each.
    """


@dataclass(frozen=True)
class AgentCrash:
    """An agent's actor died."""

    address: str
    error: BaseException
    urn: str = ""
    """The URN of the actor; empty for the current one at the address."""


@dataclass(frozen=True)
class LeaseIdle:
    """No job runs under a lease."""

    token: int


@dataclass(frozen=True)
class LeaseStuck:
    """Only a job that can't be stopped still runs under a lease."""

    token: int


@dataclass(frozen=True)
class LeaseHung:
    """A job under a lease is long past its deadline."""

    token: int
    stack: str


@dataclass(frozen=True)
class StallCheck:
    """A check for stalled runs is due, or has passed all mailboxes."""

    behind: bool


@dataclass(frozen=True)
class Deliver:
    """A message for an agent that is being restarted."""

    address: str
    message: Inbox


@dataclass(frozen=True)
class RunHistory:
    """The journal rows of a run whose agent is restarted."""

    assign: Assign
    rows: Sequence[Row] | Exception


@dataclass(frozen=True)
class ConversationRests:
    """A conversation with open targets may have no unfinished task."""

    session: str


@dataclass(frozen=True)
class CloseOpened:
    """The targets opened for a conversation are due to be closed."""

    server: Server
    session: str


@dataclass(frozen=True)
class AgentlessRun:
    """The journal rows and the outcome of a run without agent."""

    run: Assign
    outcome: Outcome
    causes: tuple[Cause, ...]
    rows: Sequence[Row] | Exception


@dataclass(frozen=True)
class RestartDue:
    """The backoff of a crashed agent's run is over."""

    run: Assign
    """The run, with the fencing token under which it crashed."""


@dataclass(frozen=True)
class DeadlineDue:
    """The deadline of a task may have passed."""

    task_id: str


@dataclass(frozen=True)
class JournalBroken:
    """The journal can no longer be written."""

    error: Exception


@dataclass(frozen=True)
class BlackboardCrashed:
    """The blackboard's actor died."""

    error: BaseException
