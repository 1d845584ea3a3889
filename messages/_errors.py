"""What can go wrong, and whose fault it is.

::

    CallboardError
    ├── SettingsError            the operator's: a setting is unknown, missing or of the wrong type
    ├── TaskRefusedError         the caller's: a task that can't be taken; nothing was started
    │   └── UnknownTargetError   it names a target that no server offers
    ├── SupervisorStoppedError   the caller's: the supervisor is down, or went down while somebody waited
    ├── WouldDeadlockError       the caller's: a blocking call from one of our own threads
    ├── NotWaitingError          the caller's: an answer to something that nobody waits for any more
    ├── AnswerRefusedError       the caller's: an answer that does not fit its question
    ├── ScriptError              the script's author's: it ran dry, or refers to what is not there
    ├── ModelError               the model's: no answer
    │   ├── InvalidAnswerError   it answered, but not what was asked for, after all repairs
    │   └── ModelTimeoutError    it took too long
    ├── OutOfBudgetError         the task's: what it may use is used up
    ├── ToolTimeoutError         the tool's: it took too long
    ├── StepTimeoutError         the step's: it took too long
    ├── BrokenMachineError       the author's of a state machine: refused when the class is made
    ├── IllegalMoveError         ours: a move that the transition table does not have
    ├── LeaseVoidError           nobody's: a deed came too late, and was refused
    ├── PhaseError               what a failing phase raises; its cause says why
    └── AgentCrashedError        ours: an exception escaped an agent's message handler
"""

from __future__ import annotations


class CallboardError(Exception):
    """The root of all exceptions that this library raises on purpose."""


class SettingsError(CallboardError):
    """A setting is unknown, missing or of the wrong type."""


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
    """A model gave no answer."""


class InvalidAnswerError(ModelError):
    """A model's answer could not be used, after all repairs.

    Attributes:
        reasons: Why each of the answers was sent back.
    """

    def __init__(self, message: str, reasons: tuple[str, ...] = ()) -> None:
        self.reasons = reasons
        super().__init__(message)


class ModelTimeoutError(ModelError):
    """A model took too long."""


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
    """A deed came too late: its task was cancelled, or its time is over. Nothing was changed."""


class PhaseError(CallboardError):
    """A phase failed; ``__cause__`` says why.

    Attributes:
        phase: The phase's name.
    """

    def __init__(self, phase: str, error: BaseException) -> None:
        self.phase = phase
        super().__init__(f"{phase} failed: {str(error) or type(error).__name__}")


class AgentCrashedError(CallboardError):
    """An exception escaped an agent's message handler.

    Attributes:
        address: The agent's address.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__(f"the agent {address} crashed")
