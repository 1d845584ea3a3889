"""What can go wrong, and whose fault it is.

::

    CallboardError
    ├── SettingsError            the operator's: a setting is unknown, missing or wrong, or its package or program is
    ├── TaskRefusedError         the caller's: a task that can't be taken; nothing was started
    │   └── UnknownTargetError   it names a target that no server offers
    ├── NotAllTakenError         the caller's or the machine's: of several tasks some were not taken; it says which
    ├── UnknownTaskError         the caller's: no task has this id
    ├── SupervisorStoppedError   the caller's: the supervisor is down, or went down while somebody waited
    ├── WouldDeadlockError       the caller's: a blocking call from one of our own threads
    ├── NotWaitingError          the caller's: an answer to something that nobody waits for any more
    ├── AnswerRefusedError       the caller's: an answer that does not fit its question
    ├── ScriptError              the script's author's: it ran dry, or refers to what is not there
    ├── ModelError               the model's: no answer
    │   ├── InvalidAnswerError   it answered, but not what was asked for, after all repairs
    │   └── ModelTimeoutError    it took too long
    ├── OutOfBudgetError         the task's: what it may use is used up
    ├── JournalError             the machine's or the operator's: the journal can't be read or written; work stops
    │   ├── JournalInUseError    another process has it open
    │   ├── JournalDamagedError  it is no journal, or not a whole one; the file was left as it is
    │   └── JournalNewerError    a newer version of this library wrote it; the file was left as it is
    ├── ToolTimeoutError         the tool's: it took too long
    ├── StepTimeoutError         the step's: it took too long
    ├── DoubtError               a crash's: nobody can tell whether an action was done, and nobody is asked
    ├── BrokenMachineError       the author's of a state machine: refused when the class is made
    ├── IllegalMoveError         ours: a move that the transition table does not have
    ├── LeaseVoidError           nobody's: an effect came too late, and was refused
    ├── PhaseError               what a failing phase raises; its cause says why
    ├── JobHungError             an agent's job is long past its deadline
    └── AgentCrashedError        ours: an exception escaped an agent's message handler
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from callboard.messages._texts import reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from callboard.messages._outcome import Usage
    from callboard.messages._task import Task


class CallboardError(Exception):
    """The root of all exceptions that this library raises on purpose."""


class SettingsError(CallboardError):
    """A setting is unknown, missing or of the wrong type, or what it needs on this machine is missing.

    Attributes:
        commands: The commands that bring what is missing; the text has them too.
    """

    def __init__(self, message: str = "", commands: tuple[str, ...] = ()) -> None:
        self.commands = commands
        super().__init__(message)


class TaskRefusedError(CallboardError):
    """A task was not taken; nothing was started."""


class UnknownTargetError(TaskRefusedError):
    """A task names a target that no server offers.

    Attributes:
        target: What was asked for.
        known: The ids of the targets that there are.
    """

    def __init__(self, target: str, known: tuple[str, ...]) -> None:
        self.target = target
        self.known = known
        there = ", ".join(known) if known else "none"
        super().__init__(f"no target is called {target!r}; there are: {there}")


class NotAllTakenError(CallboardError):
    """Of tasks that were submitted together some were not taken; the others run.

    Where the error of one is a `TimeoutError` or a `SupervisorStoppedError`, nobody knows whether it was taken.

    Attributes:
        errors: Each task that was not taken, and why, in their order.
        handles: The `TaskHandle` of each that was taken, in their order.
    """

    def __init__(self, errors: Sequence[tuple[Task, Exception]], handles: Sequence[Any]) -> None:
        self.errors = tuple(errors)
        self.handles = tuple(handles)
        task, first = self.errors[0]
        count, why = len(handles) + len(errors), str(first) or type(first).__name__
        more = f"; and {len(errors) - 1} more" if len(errors) > 1 else ""
        super().__init__(f"{len(handles)} of {count} tasks were taken; {task.id}: {why}{more}")


class UnknownTaskError(CallboardError):
    """No task has this id, or none that is kept.

    Attributes:
        task_id: What was asked for.
    """

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        super().__init__(f"no task is called {task_id!r}: it is over and not kept, or never was")


class SupervisorStoppedError(CallboardError):
    """The supervisor is down, or went down while somebody waited."""


class WouldDeadlockError(CallboardError):
    """A blocking call was made from a thread that the answer needs."""


class NotWaitingError(CallboardError):
    """An answer to a question or approval that is not open (any more)."""


class AnswerRefusedError(CallboardError):
    """An answer that does not fit its question; the question stays open."""


class ScriptError(CallboardError):
    """A scripted model's script ran dry, is malformed, or refers to what is not there."""


class ModelError(CallboardError):
    """A model gave no answer.

    Attributes:
        usage: What it took all the same: a refusal is paid for too. None: nobody knows.
    """

    def __init__(self, message: str = "", usage: Usage | None = None) -> None:
        self.usage = usage
        super().__init__(message)


class InvalidAnswerError(ModelError):
    """A model's answer could not be used, after all repairs.

    Attributes:
        reasons: Why each of the answers was sent back.
    """

    def __init__(self, message: str, reasons: tuple[str, ...] = ()) -> None:
        self.reasons = reasons
        super().__init__(message)


class FailedSubtaskError(InvalidAnswerError):
    """A HostAgent's model insists on a subtask that failed: to try it again once too often, or to call it a success."""


class ModelTimeoutError(ModelError):
    """A model took too long."""


class JournalError(CallboardError):
    """The journal can't be opened, read or written; ``__cause__`` is what the system said, where it said something.

    Attributes:
        path: The journal's file.
    """

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        super().__init__(f"the journal {path} {problem}")


class JournalInUseError(JournalError):
    """Another process, or another supervisor of this one, has the journal open. It was not touched.

    Attributes:
        pid: The number of that process; 0 if it did not say.
        host: The machine on which it runs.
        since: When it opened the journal.
    """

    def __init__(self, path: Path, *, pid: int, host: str, since: float) -> None:
        self.pid = pid
        self.host = host
        self.since = since
        start = dt.datetime.fromtimestamp(since, dt.UTC)
        who = f"process {pid} on {host} since {start:%Y-%m-%d %H:%M:%S} UTC" if pid else "another process"
        super().__init__(path, f"is in use by {who}: stop that one, or give this one a journal of its own")


class JournalDamagedError(JournalError):
    """The file is no journal, or not a whole one. It was left as it is."""


class JournalNewerError(JournalError):
    """A newer version of this library wrote the journal. It was left as it is.

    Attributes:
        version: The version of its tables.
        known: The highest version that this library can read.
    """

    def __init__(self, path: Path, *, version: int, known: int) -> None:
        self.version = version
        self.known = known
        super().__init__(
            path,
            f"was written by a newer callboard (its tables have version {version}, this one knows {known}): "
            "use that one, or give this one a journal of its own",
        )


class ToolTimeoutError(CallboardError):
    """A tool took too long."""


class OutOfBudgetError(CallboardError):
    """What may be used is used up; nothing was called.

    Attributes:
        node: What the budget is for: a task, a subtask, a step.
        kind: What ran out: steps, rounds, model_calls, tokens or cost.
        limit: How much there was of it.
    """

    def __init__(self, node: str, kind: str, limit: float, why: str = "") -> None:
        self.node = node
        self.kind = kind
        self.limit = limit
        super().__init__(f"{node} has used its {limit:g} {kind.replace('_', ' ')}{f' ({why})' if why else ''}")


class StepTimeoutError(CallboardError):
    """A step took too long."""


class DoubtError(CallboardError):
    """Nobody can tell whether an action was done before a crash, and nobody may be asked."""


class BrokenMachineError(CallboardError, TypeError):
    """A state machine is not sound; refused when its class is made."""


class IllegalMoveError(CallboardError):
    """A move that the transition table does not have. The status is unchanged.

    Attributes:
        source: The status in which the machine is and stays.
        target: The status that was wished for.
        by: Who wished it.
    """

    def __init__(self, source: str, target: str, by: str) -> None:
        self.source = source
        self.target = target
        self.by = by
        super().__init__(f"{source} → {target} by {by} is not in the transition table")


class LeaseVoidError(CallboardError):
    """A effect came too late: its task was cancelled, or its time is over. Nothing was changed."""


_FAILED = {
    "data_collection": "nothing could be seen",
    "llm_interaction": "the model gave no decision",
    "action_execution": "what was decided could not be done",
    "memory_update": "the step could not be kept",
}
"""What the failure of a phase means, by its name."""


class PhaseError(CallboardError):
    """A phase failed; ``__cause__`` says why.

    Attributes:
        phase: The phase's name.
    """

    def __init__(self, phase: str, error: BaseException) -> None:
        self.phase = phase
        super().__init__(f"{_FAILED.get(phase, phase)}: {reason_of(error)}")


class AgentCrashedError(CallboardError):
    """An exception escaped an agent's message handler.

    Attributes:
        address: The agent's address.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__(f"the agent {address} crashed")


class JobHungError(CallboardError):
    """A job of an agent is long past its deadline, and does not heed that it was cancelled.

    Attributes:
        run_id: Whose job.
        stack: Where its thread hangs; empty if that is not known.
    """

    def __init__(self, run_id: str, stack: str = "") -> None:
        self.run_id = run_id
        self.stack = stack
        super().__init__(f"a job of {run_id} is long past its deadline, and can't be stopped")
