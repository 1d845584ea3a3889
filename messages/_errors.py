"""The exceptions of this library, and whose fault each one is.

::

    CallboardError
    ├── SettingsError            the operator's: a setting is unknown, missing or wrong, or its package or program is
    ├── TaskRefusedError         the caller's: an invalid task; nothing was started
    │   └── UnknownTargetError   it names a target that no surface offers
    ├── NotAllTakenError         the caller's or the machine's: some of several tasks were not accepted; it names them
    ├── UnknownTaskError         the caller's: no task has this id
    ├── SupervisorStoppedError   the caller's: the supervisor is down, or went down while the caller waited
    ├── WouldDeadlockError       the caller's: a blocking call from one of our own threads
    ├── UndoRefusedError         the caller's: a task's files can't be brought back to what they were
    ├── NotWaitingError          the caller's: an answer to a question or approval that is not open
    ├── AnswerRefusedError       the caller's: an answer that does not fit its question
    ├── OutputTypeError          the caller's: the output of a task is not of the type that the caller gave
    ├── ScriptError              the script's author's: it lacks an answer, or refers to something that does not exist
    ├── RoutineError             the caller's: a routine's file is invalid, or no routine can be made of a task
    ├── RoutineMissError         the surface's: it is not as it was when a routine was recorded
    ├── ModelError               the model's: no answer
    │   ├── InvalidAnswerError   its answers were invalid, after all repairs
    │   │   ├── FailedSubtaskError  it insists on a subtask that failed, or on FINISH after it
    │   │   └── UnfoundedFinishError  it insists on FINISH after failed actions only
    │   └── ModelTimeoutError    it took too long
    ├── OutOfBudgetError         the task's: its budget is used up
    ├── JournalError             the machine's or the operator's: the journal can't be read or written; work stops
    │   ├── JournalInUseError    another process has it open
    │   ├── JournalDamagedError  it is no journal, or an incomplete one; the file was not changed
    │   ├── JournalPathError     the operator's: its path is a device, a link, or a file of another user
    │   └── JournalNewerError    a newer version of this library wrote it; the file was not changed
    ├── ToolError                the tool's: the reason is for the model; also an error of MCP's library
    │   └── InDoubtError         it can't tell whether its action was done
    ├── ToolTimeoutError         the tool's: it took too long
    ├── StepTimeoutError         the step's: it took too long
    ├── DoubtError               a crash's: it is unknown whether an action was done, and no person may be asked
    ├── BrokenMachineError       the author's of a state machine: refused when the class is made
    ├── IllegalMoveError         ours: a move that the transition table does not have
    ├── LeaseVoidError           no one's: an action came too late, and was refused
    ├── PhaseError               raised by a failing phase; its cause has the reason
    ├── JobHungError             an agent's job is long past its deadline
    ├── RunStalledError          a run that no message will continue
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
    """A setting is unknown, missing or wrong, or its dependency is missing.

    Attributes:
        commands: The commands that install the missing parts; the text has them too.
    """

    def __init__(self, message: str = "", commands: tuple[str, ...] = ()) -> None:
        self.commands = commands
        super().__init__(message)


class TaskRefusedError(CallboardError):
    """A task was not accepted; nothing was started."""


class UnknownTargetError(TaskRefusedError):
    """A task names a target that no surface offers.

    Attributes:
        target: The requested target.
        known: The ids of the targets that exist.
        reason: Why it is none, and what to do, where a surface knows.
    """

    def __init__(self, target: str, known: tuple[str, ...], reason: str = "") -> None:
        self.target = target
        self.known = known
        self.reason = reason
        there = ", ".join(known) if known else "none"
        why = f"{target!r} is no target: {reason}" if reason else f"there is no target {target!r}"
        super().__init__(f"{why}; there are: {there}")


class NotAllTakenError(CallboardError):
    """Some of the tasks submitted together were not accepted; the others run.

    Where a task's error is a `TimeoutError` or a `SupervisorStoppedError`, it is unknown whether it was accepted.

    Attributes:
        errors: Each task that was not accepted, and why, in their order.
        handles: The `TaskHandle` of each that was accepted, in their order.
    """

    def __init__(self, errors: Sequence[tuple[Task, Exception]], handles: Sequence[Any]) -> None:
        self.errors = tuple(errors)
        self.handles = tuple(handles)
        task, first = self.errors[0]
        count, why = len(handles) + len(errors), str(first) or type(first).__name__
        more = f"; and {len(errors) - 1} more" if len(errors) > 1 else ""
        super().__init__(f"{len(handles)} of {count} tasks were accepted; {task.id}: {why}{more}")


class UnknownTaskError(CallboardError):
    """No task has this id, or its records were deleted.

    Attributes:
        task_id: The requested id.
    """

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        super().__init__(f"there is no task {task_id!r}: it has ended and was not kept, or never existed")


class SupervisorStoppedError(CallboardError):
    """The supervisor is down, or went down while the caller waited."""


class WouldDeadlockError(CallboardError):
    """A blocking call was made from a thread that the answer needs."""


class UndoRefusedError(CallboardError):
    """A task's files can't be brought back.

    The text says why, for each of them.
    """


class NotWaitingError(CallboardError):
    """The question or approval that an answer is for is not open."""


class AnswerRefusedError(CallboardError):
    """An answer that does not fit its question; the question stays open."""


class ScriptError(CallboardError):
    """A scripted model's script is invalid, or has no further answer.

    Invalid is a malformed script, or one with an invalid reference.
    """


class RoutineError(CallboardError):
    """A routine's file is invalid, or no routine can be made."""


class RoutineMissError(CallboardError):
    """A surface differs from a routine's recorded step.

    Attributes:
        expected: The recorded thing, in words.
        found: The present thing, in words.
    """

    def __init__(self, expected: str, found: str) -> None:
        self.expected = expected
        self.found = found
        super().__init__(f"expected {expected}; found {found}")


class OutputTypeError(CallboardError):
    """The output of a task is not of the caller's type.

    The task was submitted with another type, or with none.
    """


class ModelError(CallboardError):
    """A model gave no answer.

    Attributes:
        usage: The usage of the failed calls: providers charge for a refusal too. None: unknown.
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
    """A HostAgent's model insists on a subtask that failed.

    It assigned the subtask again once too often, or said FINISH after it.
    """


class UnfoundedFinishError(InvalidAnswerError):
    """A model insists on FINISH, and all of its actions failed."""


class ModelTimeoutError(ModelError):
    """A model took too long."""


class JournalError(CallboardError):
    """The journal can't be opened, read or written.

    ``__cause__`` is the system's error, where there was one.

    Attributes:
        path: The journal's file.
    """

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        super().__init__(f"the journal {path} {problem}")


class JournalInUseError(JournalError):
    """The journal is open in another process or supervisor.

    The supervisor may be another one of this process. The journal was not touched.

    Attributes:
        pid: The id of that process; 0 if it is not known.
        host: The machine on which it runs.
        since: When it opened the journal.
    """

    def __init__(self, path: Path, *, pid: int, host: str, since: float) -> None:
        self.pid = pid
        self.host = host
        self.since = since
        start = dt.datetime.fromtimestamp(since, dt.UTC)
        who = f"process {pid} on {host} since {start:%Y-%m-%d %H:%M:%S} UTC" if pid else "another process"
        super().__init__(path, f"is in use by {who}: stop that process, or use another journal")


class JournalPathError(JournalError, SettingsError):
    """The journal, or a path beside it, is not this user's own.

    It is, for example, a device, a pipe, a link, or a file of another user. Nothing was changed.
    """


class JournalDamagedError(JournalError):
    """The file is not a journal, or an incomplete one.

    It was not changed.
    """


class JournalNewerError(JournalError):
    """A newer version of this library wrote the journal.

    It was not changed.

    Attributes:
        version: The version of its tables.
        known: The highest version that this library can read.
    """

    def __init__(self, path: Path, *, version: int, known: int) -> None:
        self.version = version
        self.known = known
        super().__init__(
            path,
            f"was written by a newer callboard (table version {version}; this one reads up to {known}): "
            "use the newer one, or another journal",
        )


class ToolTimeoutError(CallboardError):
    """A tool took too long."""


class OutOfBudgetError(CallboardError):
    """A budget is used up; nothing was called.

    Attributes:
        node: The owner of the budget: a task, a subtask, a step.
        kind: The exhausted resource: steps, rounds, model_calls, tokens or cost.
        limit: The limit of that resource.
    """

    def __init__(self, node: str, kind: str, limit: float, why: str = "") -> None:
        self.node = node
        self.kind = kind
        self.limit = limit
        words = (kind.removesuffix("s") if limit == 1 else kind).replace("_", " ")
        super().__init__(f"{node} has used its {limit:g} {words}{f' ({why})' if why else ''}")


class StepTimeoutError(CallboardError):
    """A step took too long."""


class DoubtError(CallboardError):
    """An action is in doubt after a crash.

    No person may be asked about it.
    """


class BrokenMachineError(CallboardError, TypeError):
    """A state machine is invalid; refused when its class is made."""


class IllegalMoveError(CallboardError):
    """A move is not in the transition table. The status is unchanged.

    Attributes:
        source: The status in which the machine is and stays.
        target: The requested status.
        by: The source of the request.
    """

    def __init__(self, source: str, target: str, by: str) -> None:
        self.source = source
        self.target = target
        self.by = by
        super().__init__(f"{source} → {target} by {by} is not in the transition table")


class LeaseVoidError(CallboardError):
    """An action came too late: its lease is void. Nothing was changed.

    Its task was cancelled, or its time is over.
    """


_FAILED = {
    "data_collection": "the target could not be observed",
    "llm_interaction": "the model gave no usable answer",
    "action_execution": "the actions could not be run",
    "memory_update": "the step could not be recorded",
}
"""The description of a phase's failure, by the phase's name."""


class PhaseError(CallboardError):
    """A phase failed; ``__cause__`` has the reason.

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


class RunStalledError(CallboardError):
    """A run that nothing will continue: its next message was lost.

    Attributes:
        run_id: The run, or the task if it has none.
    """

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        who = run_id or "a target"
        super().__init__(f"{who} has no job, waits for nothing, and is in no queue: a message was lost")


class JobHungError(CallboardError):
    """An agent's job is long past its deadline, and ignores its cancellation.

    Attributes:
        run_id: The run of the job.
        stack: Where its thread hangs; empty if that is not known.
    """

    def __init__(self, run_id: str, stack: str = "") -> None:
        self.run_id = run_id
        self.stack = stack
        super().__init__(f"a job of {run_id} is long past its deadline, and can't be stopped")
