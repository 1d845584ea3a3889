"""One step of an agent.

It has the model's decision and the record in memory.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Literal

from pydantic import Field, JsonValue

from callboard.messages._agent_status import AgentStatus
from callboard.messages._base import Message, RunId, Seconds, TaskId, Term, Token, Value
from callboard.messages._checks import Check, CheckResult
from callboard.messages._command import Action, CommandResult, ResultStatus
from callboard.messages._outcome import Cause, Outcome, Usage
from callboard.messages._target import Observation, Target
from callboard.messages._task_judge import JudgeResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from callboard.messages._subtask_result import SubtaskResult


class Phase(Term):
    """The four phases of a step, in order."""

    DATA_COLLECTION = "data_collection"
    """Look at the surface."""
    LLM_INTERACTION = "llm_interaction"
    """Ask the model what to do."""
    ACTION_EXECUTION = "action_execution"
    """Run the actions."""
    MEMORY_UPDATE = "memory_update"
    """Record the results."""


class AskedQuestion(Value):
    """A question of an agent's model to a person."""

    text: str = Field(min_length=1)
    choices: tuple[str, ...] = ()
    """The possible answers; empty for free text."""


class Held(Term):
    """The reason why actions are held."""

    NOT = ""
    """Nothing is held."""
    MODEL = "model"
    """The model itself asked for approval."""
    POLICY = "policy"
    """A rule wants approval."""
    PAUSE = "pause"
    """The task was paused."""


class PlannedSubtask(Value):
    """One subtask of an answer that assigns several.

    Others are named by their places in the answer, from 1.
    """

    request: str
    target: Target
    after: tuple[int, ...] = ()
    """The subtasks that must have finished before it begins."""
    after_any: tuple[int, ...] = ()
    """The subtasks that must have ended before, with any outcome."""
    checks: tuple[Check, ...] = ()
    """The checks of its FINISH, from a plan."""


class Decision(Value):
    """A model's valid answer, the same shape for all agents."""

    status: str
    """The next state of the state machine; legal from the state in which the model was asked."""
    observation: str = ""
    thought: str = ""
    comment: str = ""
    plan: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    subtask: str = ""
    """HostAgent: the request to the assigned agent."""
    target: Target | None = None
    """HostAgent: the target of the subtask."""
    group: tuple[PlannedSubtask, ...] = ()
    """HostAgent: several subtasks, in place of `subtask` and `target`."""
    stops_group: bool = False
    """HostAgent: whether the others of the group are stopped once one of them did not finish."""
    questions: tuple[AskedQuestion, ...] = ()
    reannotate: tuple[str, ...] = ()
    """AppAgent: ids or names of the controls that the next capture should annotate."""
    result: JsonValue = None
    """The result of the work, where the model reports one itself."""
    sent_back: bool = False
    """Whether the model answered FINISH first, which nothing supported, and was asked once more."""
    omitted: bool = False
    """Whether that FINISH omitted a part of the request."""
    routine_step: int = Field(default=0, ge=0)
    """The place of the routine's step that it repeats, from 1, with each repetition of a loop counted; 0 for a model's
    own answer."""
    checks: tuple[Check, ...] = ()
    """HostAgent: the checks that its first answer proposes."""


def paired(
    actions: Iterable[Action], results: Iterable[CommandResult]
) -> tuple[tuple[Action | None, CommandResult], ...]:
    """Pair each result with its action by the call id.

    None where no action has that id.
    """
    actions_by_id = {action.call_id: action for action in actions}
    return tuple((actions_by_id.get(result.call_id), result) for result in results)


_NOT_DONE = frozenset({ResultStatus.FAILURE, ResultStatus.SKIPPED})
_status_of = operator.attrgetter("status")


class StepRecord(Value):
    """The record of one step in the agent's memory."""

    step: int = Field(ge=1)
    status: str
    """The state in which the step ran."""
    observation: Observation
    decision: Decision
    results: tuple[CommandResult, ...] = ()
    resumed: bool = False
    """Whether it ran held actions that an earlier step had decided on."""
    checks: tuple[CheckResult, ...] = ()
    """The results of the checks of its FINISH; empty for another status, or without checks."""
    judged: tuple[JudgeResult, ...] = ()
    """The judge's answers; empty if it was not asked."""
    judge_calls: int = 0
    """The number of model calls of the judge, which are none of the agent's."""

    @property
    def calls(self) -> tuple[tuple[Action | None, CommandResult], ...]:
        """Each result of this step with its action.

        None where no action of the answer has that call id.
        """
        return paired(self.decision.actions, self.results)

    @property
    def not_run(self) -> tuple[Action, ...]:
        """The actions of its answer that the step held back."""
        ran = {result.call_id for result in self.results}
        return () if self.resumed else tuple(action for action in self.decision.actions if action.call_id not in ran)

    @property
    def acted(self) -> bool:
        """True if it called a tool, or decided on a subtask."""
        return bool(self.results) or self.decision.status == AgentStatus.ASSIGN

    @property
    def failures(self) -> int:
        """The number of actions of this step that failed."""
        return sum(result.status == "failure" for result in self.results)

    @property
    def failed_checks(self) -> tuple[CheckResult, ...]:
        """The checks for which its FINISH does not hold."""
        return tuple([check for check in self.checks if not check.held and check.source == "task"])

    @property
    def denials(self) -> tuple[JudgeResult, ...]:
        """The judge's answers for which its FINISH does not hold."""
        return tuple([judge_result for judge_result in self.judged if judge_result.answer == "no"])

    @property
    def refused(self) -> bool:
        """True if its FINISH does not hold."""
        return bool(self.failed_checks or self.denials)

    @property
    def incomplete(self) -> bool:
        """True if an action of this step failed, or was not run."""
        return not _NOT_DONE.isdisjoint(map(_status_of, self.results))


def tool_of_absent_target(records: Iterable[StepRecord], subtasks: Iterable[SubtaskResult], name: str) -> str:
    """Return the tool that would have made a target, or empty.

    A dry run did not execute the call, whose arguments name the target.

    Args:
        records: The HostAgent's steps.
        subtasks: The results of its subtasks.
        name: The target, as an answer names it.
    """
    calls = [call for record in records for call in record.calls]
    planned = [
        (result.tool, action.arguments) for action, result in calls if result.status is ResultStatus.DRY_RUN and action
    ]
    planned += [(action.tool, action.arguments) for done in subtasks for action in done.would_do]
    return next((tool for tool, arguments in planned if name in arguments.values()), "")


class Step(Message):
    """A request of an agent to itself to take its next step."""

    kind: Literal["step"] = "step"
    task_id: TaskId
    run_id: RunId
    token: Token
    job: int


class StepDone(Message):
    """A step ran.

    It ran all four phases, or the held actions after an approval.
    """

    kind: Literal["step_done"] = "step_done"
    record: StepRecord
    held: tuple[Action, ...] = ()
    """Actions that were not run yet; empty when nothing is held."""
    held_by: Held = Held.NOT
    held_why: str = ""
    """The rule that wants an approval."""
    left: str = ""
    """The state at a pause, on a surface that changes by calls alone: the surface's fingerprint at the end of the step.
    """
    follows: str = ""
    """For held actions that ran: the status of their answer, which applies after an approval. Empty if the model itself
    asked for the approval, and in journals of versions without this field."""
    usage: Usage = Field(default_factory=Usage)


class StepFailure(Message):
    """A phase failed, and with it the step; never a success."""

    kind: Literal["step_failed"] = "step_failed"
    phase: Phase | None
    """The phase that failed; None for an exception outside the phases."""
    causes: tuple[Cause, ...] = Field(min_length=1)
    outcome: Literal[Outcome.ERROR, Outcome.TIMED_OUT, Outcome.OUT_OF_BUDGET, Outcome.FAILED] = Outcome.ERROR
    """The consequence of the failure for the work: an error, its time or budget used up, or an action in doubt."""
    results: tuple[CommandResult, ...] = ()
    """The results of the actions before it failed."""
    seen: Observation | None = None
    """The observation at its beginning, if it got so far."""
    usage: Usage = Field(default_factory=Usage)


class Captured(Message):
    """A look at the surface outside a step.

    It is for cleanup after a failure.
    """

    kind: Literal["captured"] = "captured"
    observation: Observation | None
    """None where the surface shows nothing, or looking failed."""
    seconds: Seconds = Field(default=0.0, ge=0)
