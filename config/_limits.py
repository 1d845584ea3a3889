"""How much, how often, how long: limits and budgets."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from callboard.config._section import Section, Span
from callboard.messages import AtDeadline, Seconds


class Limits(Section):
    """How much, how often, how long."""

    steps: int = Field(default=50, ge=1)
    """Steps of one subtask, or of one round of a HostAgent; past that it ends as `out_of_budget`."""
    repairs: int = Field(default=2, ge=0)
    """How often an invalid answer goes back to its model before the step fails."""
    subtask_retries: int = Field(default=2, ge=0)
    """How often a HostAgent may assign a failed subtask again: the same request to the same target."""
    action_failures: int = Field(default=3, ge=1)
    """Failed actions in a row that end a subtask."""
    reannotations: int = Field(default=3, ge=1)
    """Steps in a row that an AppAgent may spend in SCREENSHOT."""
    phase_retries: int = Field(default=1, ge=0)
    """How often DATA_COLLECTION is tried again after an error; the other phases are never repeated."""
    command_seconds: Span = 60.0
    """The longest that one tool call may take."""
    model_seconds: Span = 120.0
    """The longest that one model call may take."""
    history_tokens: int = Field(default=6000, ge=200)
    """About how much of a prompt, in tokens, tells what was done before: earlier steps, and what subtasks left. Past
    that the oldest steps get one line each, and then none; long values are cut, and the model is told so."""
    observation_tokens: int = Field(default=6000, ge=200)
    """About how much of a prompt, in tokens, tells what an agent sees; past that it is cut, and the model told so."""
    question_seconds: Span = 3600.0
    """How long an agent waits for the answer to a question."""
    approval_seconds: Span = 3600.0
    """How long an agent waits for an approval."""
    at_approval_deadline: AtDeadline = AtDeadline.DENY
    """What happens to an approval that nobody decides on in time."""
    task_seconds: Span | None = None
    """The longest that one task may work; none by default. Clocks stand still while a person is asked."""
    subtask_seconds: Span | None = None
    """The longest that one subtask may work; none by default."""
    step_seconds: Span = 600.0
    """The longest that one step may take, its model calls and tool calls included."""
    repeats: int = Field(default=3, ge=1)
    """How often the same actions on the same surface may come: then the model is told, and once more fails."""
    settle_seconds: Seconds = Field(default=2.0, ge=0, le=3600)
    """The longest that an observation waits, after actions, for the surface to be quiet: its server says so, or two
    fingerprints in a row are equal."""
    idle_agents: int = Field(default=50, ge=0)
    """Agents of windows, devices and shells that are kept while they have nothing to do."""
    sessions: int = Field(default=20, ge=0)
    """Ended tasks whose HostAgents are kept for follow-ups; with a journal, others are made of its rows."""
    kept_tasks: int = Field(default=1_000, ge=0)
    """Without a journal: ended tasks that are known by their id and key, the latest ones, with result and events. A
    small one takes some 75 kB of memory."""


class Budget(Section):
    """What may be used; None: as much as is needed."""

    steps: int | None = Field(default=None, ge=0)
    """Steps of agents."""
    rounds: int | None = Field(default=None, ge=0)
    """Rounds of a HostAgent."""
    model_calls: int | None = Field(default=None, ge=0)
    """Calls to a model."""
    tokens: int | None = Field(default=None, ge=0)
    """Tokens, in and out."""
    cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Money, in the currency of the models' prices."""


class BudgetSettings(Section):
    """Budgets: one tree from task to subtask to step; a call is made only if all three have enough left."""

    task: Budget = Budget()
    """Of one task."""
    subtask: Budget = Budget()
    """Of one subtask, or of a HostAgent's own steps."""
    step: Budget = Budget()
    """Of one step."""
    at_limit: Literal["stop", "ask"] = "stop"
    """At a limit: end as `out_of_budget`, or ask a person whether to go on with as much again."""
    unknown_price: Literal["all", "nothing"] = "all"
    """What a model call of unknown price uses of a limit on `cost`: all that is left, or nothing."""
