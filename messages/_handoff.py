"""The hand-offs: typed messages between agents, all of them through the supervisor's switchboard."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, JsonValue, model_validator

from callboard.messages._base import Address, Message, RunId, TaskId, Token
from callboard.messages._outcome import Cause, Outcome, Usage
from callboard.messages._target import Target
from callboard.messages._task import PlanStep, SubtaskResult


class Assign(Message):
    """Work for one agent: a round for a HostAgent, a subtask for any other."""

    kind: Literal["assign"] = "assign"
    task_id: TaskId
    run_id: RunId
    address: Address
    token: Token = 0
    """The lease on the target; set by the switchboard when the target is free."""
    request: str
    """What this agent has to do."""
    task_request: str = ""
    """What the whole task is about."""
    round: int = Field(default=1, ge=1)
    number: int = Field(default=0, ge=0)
    """A subtask's place within its task, from 1; 0 for a HostAgent's round."""
    target: Target | None = None
    host: Address | None = None
    """The HostAgent that hears of its end; None for a HostAgent's own round, and without one."""
    plan_step: PlanStep | None = None
    """Follower mode: the step of the plan that this round follows."""
    session: TaskId | None = None
    """The conversation that it belongs to; None: its task's own."""
    subtasks: tuple[SubtaskResult, ...] = ()
    """What the task's earlier subtasks left."""
    made: tuple[str, ...] = ()
    """Files that the task has made so far."""

    def lean(self) -> Assign:
        """Leave out what a journal has in other rows of the conversation: each would grow with all that was done in it.

        It is what the HostAgent knows that waits for this subtask, and so can be folded back.
        """
        return self.model_copy(update={"subtasks": (), "made": ()}) if self.subtasks or self.made else self


class SubtaskEnded(Message):
    """What the three endings of a subtask have in common. Sent last, from FINISH."""

    task_id: TaskId
    run_id: RunId
    token: Token
    result: SubtaskResult

    outcomes: ClassVar[frozenset[Outcome]] = frozenset()

    @model_validator(mode="after")
    def _honest(self) -> Self:
        if self.result.outcome not in self.outcomes:
            msg = f"{type(self).__name__} can't carry the outcome {self.result.outcome.value!r}"
            raise ValueError(msg)
        return self


class SubtaskFinished(SubtaskEnded):
    """FINISH: the subtask was done."""

    kind: Literal["subtask_finished"] = "subtask_finished"
    outcomes: ClassVar[frozenset[Outcome]] = frozenset({Outcome.FINISHED})


class SubtaskFailed(SubtaskEnded):
    """FAIL: the subtask was not done; the HostAgent may go another way."""

    kind: Literal["subtask_failed"] = "subtask_failed"
    outcomes: ClassVar[frozenset[Outcome]] = frozenset(Outcome) - {Outcome.FINISHED, Outcome.ERROR}


class SubtaskErrored(SubtaskEnded):
    """ERROR: an exception or crash ended the subtask, and with it the round."""

    kind: Literal["subtask_errored"] = "subtask_errored"
    outcomes: ClassVar[frozenset[Outcome]] = frozenset({Outcome.ERROR})


def subtask_ended(task_id: str, token: int, result: SubtaskResult) -> SubtaskEnded:
    """Make the one ending that fits the result's outcome."""
    kinds: tuple[type[SubtaskEnded], ...] = (SubtaskFinished, SubtaskFailed, SubtaskErrored)
    kind = next(kind for kind in kinds if result.outcome in kind.outcomes)
    return kind(task_id=task_id, run_id=result.run_id, token=token, result=result)


class RoundEnded(Message):
    """A HostAgent's round is over."""

    kind: Literal["round_ended"] = "round_ended"
    task_id: TaskId
    run_id: RunId
    token: Token
    outcome: Outcome
    causes: tuple[Cause, ...] = ()
    output: JsonValue = None
    comment: str = ""
    artifacts: tuple[str, ...] = ()
    """Files that the HostAgent's own actions wrote."""
    changed: tuple[str, ...] = ()
    """What these actions changed, or may have."""
    actions: int = Field(default=0, ge=0)
    """How many of them changed something, or may have."""
    usage: Usage = Field(default_factory=Usage)


class Cancel(Message):
    """Stop a task's work in any state: asked for by the host program, a deadline or a budget."""

    kind: Literal["cancel"] = "cancel"
    task_id: TaskId
    run_id: RunId = "*"
    """One run, or ``*`` for all of the task."""
    outcome: Literal[Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.OUT_OF_BUDGET] = Outcome.CANCELLED
    reason: str = "cancelled by the host program"


class Pause(Message):
    """Stop a task before its next action; a model call that runs is finished."""

    kind: Literal["pause"] = "pause"
    task_id: TaskId
    lacks: str = ""
    """What it can't go on without in this process; empty where somebody asked for the pause."""


class Resume(Message):
    """Let a paused task go on from where it stopped."""

    kind: Literal["resume"] = "resume"
    task_id: TaskId


class TaskForgotten(Message):
    """A task is over, or a conversation, which its first task names: agents drop what they remember of it."""

    kind: Literal["task_forgotten"] = "task_forgotten"
    task_id: TaskId
