"""Rules and budgets, which the settings and single tasks may set."""

from __future__ import annotations

import threading
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, ConfigDict, Field

from callboard.messages._base import Seconds, as_texts
from callboard.messages._command import Effect, Hazard
from callboard.messages._deferred_model import DeferredModel
from callboard.messages._documented_fields import DocumentedFields
from callboard.messages._patterns import Pattern


class TermSection(DocumentedFields, DeferredModel):
    """A frozen section of settings or tasks; unknown keys are errors."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


Span = Annotated[Seconds, Field(gt=0, le=threading.TIMEOUT_MAX, allow_inf_nan=False)]
"""A positive time that a clock can wait, in seconds."""


class Verdict(StrEnum):
    """A policy rule's decision about an action."""

    ALLOW = "allow"
    """It may run."""
    APPROVE = "approve"
    """A person must approve it first."""
    DENY = "deny"
    """It never runs; the model gets the reason."""


class PolicyRule(TermSection):
    """One rule; it matches if all of its conditions match.

    A pattern is a glob, or `re:` and a regular expression that must match the whole text.
    """

    verdict: Verdict
    """The decision about the actions that it matches."""
    agent: Pattern = "*"
    """The agent's address."""
    application: Pattern = "*"
    """The application's root: `word`, `excel`; empty for agents without one."""
    tool: Pattern = "*"
    """The tool's name."""
    effects: tuple[Effect, ...] = ()
    """The tool's effect; empty for any."""
    hazards: tuple[Hazard, ...] = ()
    """Reasons why a person may want to approve the action; one of them is enough; empty for any action."""
    arguments: dict[str, Pattern] = Field(default_factory=dict)
    """Patterns for arguments, by name. Arguments are matched as the tool receives them: validated, with its defaults,
    and in canonical form (`1000` for `1000.0` and `1e3`); values other than texts as JSON. A missing argument never
    matches."""
    resource: Annotated[
        tuple[Pattern, ...], BeforeValidator(as_texts, json_schema_input_type=str | tuple[Pattern, ...])
    ] = ()
    """Patterns for the resources that a call touches, such as `sheet:Payroll` or `file:*.xlsx`, one or a list; empty
    for any. An `allow` matches if each resource lies within a pattern, an `approve` or `deny` if any overlaps one."""
    reason: str = ""
    """The reason shown to the model on a denial, and to the person on an approval."""


class Budget(TermSection):
    """A budget; None means unlimited."""

    steps: int | None = Field(default=None, ge=0)
    """Steps of agents."""
    rounds: int | None = Field(default=None, ge=0)
    """Rounds of a HostAgent."""
    model_calls: int | None = Field(default=None, ge=0)
    """Calls to a model."""
    tokens: int | None = Field(default=None, ge=0)
    """Tokens, input and output."""
    cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Money, in the currency of the models' prices."""

    @property
    def limits(self) -> dict[str, float]:
        """The limits that it sets, by kind."""
        return {kind: limit for kind, limit in self if limit is not None}


class TaskLimits(TermSection):
    """The limits of one task; None means that of the settings."""

    steps: int | None = Field(default=None, ge=1)
    """The most steps of a subtask, or of one round of a HostAgent; a routine's do not count."""
    repairs: int | None = Field(default=None, ge=0)
    """The most times that an invalid answer is sent back to its model."""
    subtask_retries: int | None = Field(default=None, ge=0)
    """The most times that a HostAgent may reassign a failed subtask."""
    check_retries: int | None = Field(default=None, ge=0)
    """The most times that an agent goes on after a FINISH whose checks do not hold."""
    action_failures: int | None = Field(default=None, ge=1)
    """Failed actions in a row that end a subtask."""
    reannotations: int | None = Field(default=None, ge=1)
    """Steps in a row that an AppAgent may spend in SCREENSHOT."""
    phase_retries: int | None = Field(default=None, ge=0)
    """The most retries of DATA_COLLECTION after an error."""
    repeats: int | None = Field(default=None, ge=1)
    """The most repetitions of the same actions on an unchanged surface."""
    history_tokens: int | None = Field(default=None, ge=200)
    """The approximate size of a prompt's history, in tokens."""
    observation_tokens: int | None = Field(default=None, ge=200)
    """The approximate size of a prompt's observation, in tokens."""
    skill_tokens: int | None = Field(default=None, ge=200)
    """The approximate size of a prompt's texts of skills, in tokens."""
    command_seconds: Span | None = None
    """The longest that one action's tool call may take; a look at a surface has the settings' limit."""
    question_seconds: Span | None = None
    """The longest that an agent waits for the answer to a question."""
    approval_seconds: Span | None = None
    """The longest that an agent waits for an approval."""
    task_seconds: Span | None = None
    """The longest that the task may run; clocks stop while a person is asked."""
    subtask_seconds: Span | None = None
    """The longest that one subtask may run."""
    step_seconds: Span | None = None
    """The longest that one step may take."""
    settle_seconds: Seconds | None = Field(default=None, ge=0, le=3600)
    """The longest that an observation waits after actions for the surface to settle."""
    parallel_subtasks: int | None = Field(default=None, ge=1)
    """The most subtasks that work at once."""
    subtasks_per_assign: int | None = Field(default=None, ge=2)
    """The most subtasks that a HostAgent may assign in one answer."""
