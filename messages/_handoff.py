"""Hand-offs: typed messages between agents, sent through the root."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, JsonValue, model_validator

from callboard.messages._base import Address, Message, RunId, TaskId, Token, Value
from callboard.messages._checks import Check, CheckResult
from callboard.messages._command import PlannedAction
from callboard.messages._outcome import Cause, Outcome, Usage
from callboard.messages._subtask_result import SubtaskResult
from callboard.messages._target import Target
from callboard.messages._task import PlanStep
from callboard.messages._task_judge import Judge, JudgeResult
from callboard.messages._terms import Budget, TaskLimits


class GroupMember(Value):
    """The order of a subtask among those assigned with it.

    Subtasks are named by their numbers.
    """

    first: int = Field(ge=1)
    """The first subtask of the group."""
    after: tuple[int, ...] = ()
    """The subtasks that must have finished before it begins."""
    after_any: tuple[int, ...] = ()
    """The subtasks that must have ended before, with any outcome."""
    sees: tuple[int, ...] = ()
    """The subtasks of the group whose results it gets: all that it comes after, directly or not."""
    stops_group: bool = False
    """Whether the rest of the group is stopped if it does not finish."""
    share: Budget | None = None
    """Its share of the rest of the task's budget, reserved when it was handed over. Subtasks that work side by side
    otherwise take from each other, and a replay would depend on which of them was faster."""


class Assign(Message):
    """Work for one agent.

    It is a round for a HostAgent, a subtask for any other.
    """

    kind: Literal["assign"] = "assign"
    task_id: TaskId
    run_id: RunId
    address: Address
    token: Token = 0
    """The fencing token of the lease on the target; the root sets it when the target is free."""
    request: str
    """The work of this agent."""
    task_request: str = ""
    """The request of the whole task."""
    round: int = Field(default=1, ge=1)
    number: int = Field(default=0, ge=0)
    """A subtask's place within its task, from 1; 0 for a HostAgent's round."""
    target: Target | None = None
    host: Address | None = None
    """The HostAgent that receives the end; None for a HostAgent's own round, and where there is none."""
    plan_step: PlanStep | None = None
    """Follower mode: the step of the plan that this round follows."""
    plan: tuple[PlanStep, ...] = ()
    """Follower mode: the whole plan, if its steps name those that they come after; it is one round then."""
    member: GroupMember | None = None
    """Its order among the subtasks that were assigned together; None if it was assigned alone."""
    session: TaskId | None = None
    """The conversation that it belongs to; None: its task's own."""
    subtasks: tuple[SubtaskResult, ...] = ()
    """The results of the task's earlier subtasks."""
    made: tuple[str, ...] = ()
    """Files that the task has made so far."""
    dry_run: bool = False
    """Whether its actions are not executed."""
    limits: TaskLimits | None = None
    """The limits of its task, if they are not those of the settings."""
    output_schema: dict[str, JsonValue] | None = None
    """The JSON Schema of its output, if that is the task's."""
    checks: tuple[Check, ...] = ()
    """The checks of its FINISH: those of the plan's step, and of the task if it ends with it."""
    judge: Judge | None = None
    """The judge of its FINISH, if the task ends with it."""
    judge_request: str = ""
    """The request that the judge sees: the task's, with the steps of its plan."""
    last_round: bool = True
    """Whether the task ends with this round of a HostAgent, whose proposed checks are then read."""

    @property
    def group(self) -> int:
        """The number of its group's first subtask; 0 without a group."""
        return 0 if self.member is None else self.member.first

    def lean(self) -> Assign:
        """Leave out fields that other rows of the conversation have.

        With them, each row would grow with all the earlier work. The HostAgent that waits for this subtask knows them,
        so the fold can put them back.
        """
        return self.model_copy(update={"subtasks": (), "made": ()}) if self.subtasks or self.made else self


class SubtaskEnding(Message):
    """The common fields of the three endings of a subtask.

    An ending is sent last, from FINISH.
    """

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


class SubtaskFinished(SubtaskEnding):
    """FINISH: the subtask was done."""

    kind: Literal["subtask_finished"] = "subtask_finished"
    outcomes: ClassVar[frozenset[Outcome]] = frozenset({Outcome.FINISHED})


class SubtaskFailed(SubtaskEnding):
    """FAIL: the subtask was not done; the HostAgent may go another way."""

    kind: Literal["subtask_failed"] = "subtask_failed"
    outcomes: ClassVar[frozenset[Outcome]] = frozenset(Outcome) - {Outcome.FINISHED, Outcome.ERROR}


class SubtaskErrored(SubtaskEnding):
    """ERROR: an exception or crash ended the subtask.

    The round ends with it.
    """

    kind: Literal["subtask_errored"] = "subtask_errored"
    outcomes: ClassVar[frozenset[Outcome]] = frozenset({Outcome.ERROR})


def subtask_ended(task_id: str, token: int, result: SubtaskResult) -> SubtaskEnding:
    """Make the ending message that fits the result's outcome."""
    kinds: tuple[type[SubtaskEnding], ...] = (SubtaskFinished, SubtaskFailed, SubtaskErrored)
    kind = next(kind for kind in kinds if result.outcome in kind.outcomes)
    return kind(task_id=task_id, run_id=result.run_id, token=token, result=result)


class RoundEnding(Message):
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
    made: tuple[str, ...] = ()
    """Files that did not exist before the task, and that its actions, in rounds and subtasks so far, created."""
    changed: tuple[str, ...] = ()
    """Files and targets that these actions changed, or may have changed."""
    actions: int = Field(default=0, ge=0)
    """The number of these actions that changed something, or may have."""
    failed_actions: int = Field(default=0, ge=0)
    """The number of its own actions that failed or were denied; 0 in journals of versions that did not count them."""
    would_do: tuple[PlannedAction, ...] = ()
    """The actions of its own that a dry run did not execute."""
    checks: tuple[CheckResult, ...] = ()
    """The results of the checks at its last FINISH, or at that of the subtask which ended it."""
    judged: tuple[JudgeResult, ...] = ()
    """The judge's answers at that FINISH."""
    usage: Usage = Field(default_factory=Usage)


class Cancel(Message):
    """Stop a task's work in any state.

    The host program, a deadline or a budget requires it.
    """

    kind: Literal["cancel"] = "cancel"
    task_id: TaskId
    run_id: RunId = "*"
    """One run, or ``*`` for all of the task."""
    outcome: Literal[Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.OUT_OF_BUDGET] = Outcome.CANCELLED
    reason: str = "cancelled by the host program"


class Pause(Message):
    """Stop a task before its next action.

    A running model call is finished.
    """

    kind: Literal["pause"] = "pause"
    task_id: TaskId
    lacks: str = ""
    """The resources that the work needs and this process lacks; empty where a caller asked for the pause."""


class Resume(Message):
    """Resume a paused task where it stopped."""

    kind: Literal["resume"] = "resume"
    task_id: TaskId


class TaskForgotten(Message):
    """End of a task or a conversation.

    Agents drop their memory of it. A conversation is named by its first task.
    """

    kind: Literal["task_forgotten"] = "task_forgotten"
    task_id: TaskId
