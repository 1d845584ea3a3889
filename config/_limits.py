"""Limits and budgets."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from callboard.config._section import Section, Span
from callboard.messages import AtDeadline, Budget, Seconds, TaskLimits


class Limits(Section):
    """Limits on counts, sizes and times."""

    steps: int = Field(default=50, ge=1)
    """The most steps of a subtask, or of one round of a HostAgent; past that it ends as `out_of_budget`. Steps that a
    routine repeats do not count: it ends by itself."""
    repairs: int = Field(default=2, ge=0)
    """The most times that an invalid answer is sent back to its model before the step fails."""
    subtask_retries: int = Field(default=2, ge=0)
    """The most times that a HostAgent may reassign a failed subtask: the same request to the same target."""
    check_retries: int = Field(default=2, ge=0)
    """The most times that an agent goes on after a FINISH whose checks do not hold. One more ends the work as `failed`;
    these do not count as failed actions."""
    action_failures: int = Field(default=3, ge=1)
    """Failed actions in a row that end a subtask."""
    reannotations: int = Field(default=3, ge=1)
    """Steps in a row that an AppAgent may spend in SCREENSHOT."""
    phase_retries: int = Field(default=1, ge=0)
    """The most retries of DATA_COLLECTION after an error; the other phases are never retried."""
    command_seconds: Span = 60.0
    """The longest that one tool call may take."""
    model_seconds: Span = 120.0
    """The longest that one model call may take."""
    history_tokens: int = Field(default=6000, ge=200)
    """The approximate size of a prompt's history, in tokens: earlier steps and the results of subtasks. Past that the
    oldest steps are shortened to one line each, then dropped; long values are cut, with a note to the model."""
    observation_tokens: int = Field(default=6000, ge=200)
    """The approximate size of a prompt's observation, in tokens; past that it is cut, with a note to the model."""
    skill_tokens: int = Field(default=6000, ge=200)
    """The approximate size of the skills that an agent has read in a prompt, in tokens; past that those read first are
    left out, with a note to the model. A short prompt has a quarter of it for its one skill."""
    question_seconds: Span = 3600.0
    """The longest that an agent waits for the answer to a question."""
    approval_seconds: Span = 3600.0
    """The longest that an agent waits for an approval."""
    at_approval_deadline: AtDeadline = AtDeadline.DENY
    """The outcome of an approval that no person decides on in time."""
    task_seconds: Span | None = None
    """The longest that one task may run; no limit by default. Clocks stop while a person is asked."""
    subtask_seconds: Span | None = None
    """The longest that one subtask may run; no limit by default."""
    step_seconds: Span = 600.0
    """The longest that one step may take, including its model calls and tool calls."""
    repeats: int = Field(default=3, ge=1)
    """The most repetitions of the same actions on an unchanged surface. Then the model is warned; one more fails."""
    settle_seconds: Seconds = Field(default=2.0, ge=0, le=3600)
    """The longest that an observation waits after actions for the surface to settle: until it reports that it is
    idle, or two consecutive fingerprints are equal."""
    parallel_subtasks: int = Field(default=4, ge=1)
    """The most subtasks of one task that work at once."""
    subtasks_per_assign: int = Field(default=16, ge=2)
    """The most subtasks that a HostAgent may assign in one answer."""
    idle_agents: int = Field(default=50, ge=0)
    """The most idle agents of windows, devices and shells that are kept."""
    sessions: int = Field(default=20, ge=0)
    """The most ended tasks whose HostAgents are kept for follow-ups; with a journal, others are rebuilt from it."""
    kept_tasks: int = Field(default=1_000, ge=0)
    """Without a journal: the most ended tasks, the latest ones, that are kept by id and key with result and events. A
    small one takes about 75 kB of memory."""

    def under(self, task_limits: TaskLimits | None) -> Limits:
        """Return these limits with those that a task sets in their place."""
        if task_limits is None:
            return self
        return self.model_copy(update={name: limit for name, limit in task_limits if limit is not None})


class DailyBudget(Section):
    """A budget of all tasks with some labels, for each day.

    Days are those in UTC. A step counts on the day on which it begins. At least one limit is set.
    """

    labels: dict[str, str] = Field(default_factory=dict)
    """The labels that a task must have, with their values; empty for all tasks."""
    steps: int | None = Field(default=None, gt=0)
    """Steps of agents."""
    rounds: int | None = Field(default=None, gt=0)
    """Rounds of a HostAgent."""
    model_calls: int | None = Field(default=None, gt=0)
    """Calls to a model."""
    tokens: int | None = Field(default=None, gt=0)
    """Tokens, input and output."""
    cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Money, in the currency of the models' prices."""

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        if not self.limits:
            msg = "sets no limit: give steps, rounds, model_calls, tokens or cost"
            raise ValueError(msg)
        return self

    @property
    def limits(self) -> dict[str, float]:
        """The limits that it sets, by kind."""
        return {kind: limit for kind, limit in self if kind != "labels" and limit is not None}


class BudgetSettings(Section):
    """Budgets of task, subtask, step and day.

    A call is made only if all of them have enough left.
    """

    task: Budget = Budget()
    """The budget of one task."""
    subtask: Budget = Budget()
    """The budget of one subtask, or of a HostAgent's own steps."""
    step: Budget = Budget()
    """The budget of one step."""
    daily: tuple[DailyBudget, ...] = ()
    """Budgets of all tasks together, or of those with some labels, for each day in UTC."""
    at_limit: Literal["stop", "ask"] = "stop"
    """At a limit: end as `out_of_budget`, or ask a person whether to continue with the same amount again."""
    unknown_price: Literal["all", "nothing"] = "all"
    """The charge to a `cost` limit for a model call of unknown price: all that is left, or nothing."""

    @model_validator(mode="after")
    def _labels_differ(self) -> Self:
        label_sets = [budget.labels for budget in self.daily]
        for labels in label_sets:
            if label_sets.count(labels) > 1:
                msg = f"daily: two budgets have the labels {labels}: give all limits in one of them"
                raise ValueError(msg)
        return self
