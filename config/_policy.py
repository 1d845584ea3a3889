"""The policy's rules: what the operator says of actions, and what is asked before if the operator says nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field

from callboard.config._patterns import Pattern
from callboard.config._section import Section
from callboard.messages import Effect, Hazard


class Verdict(StrEnum):
    """What a policy rule says of an action."""

    ALLOW = "allow"
    """It may run."""
    APPROVE = "approve"
    """A person must approve it first."""
    DENY = "deny"
    """It never runs; the model is told why."""


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else value


class PolicyRule(Section):
    """One rule; it matches when all that it names matches.

    A pattern is a glob, or a regular expression after `re:` that must match the whole text.
    """

    verdict: Verdict
    """What it says of the actions that it matches."""
    agent: Pattern = "*"
    """The agent's address."""
    application: Pattern = "*"
    """The application's root: `word`, `excel`; empty for agents without one."""
    tool: Pattern = "*"
    """The tool's name."""
    effects: tuple[Effect, ...] = ()
    """The tool's effect; empty for any."""
    hazards: tuple[Hazard, ...] = ()
    """What makes the action one that a person may want to see; one of them is enough; empty for any action."""
    arguments: dict[str, Pattern] = Field(default_factory=dict)
    """Patterns for arguments, by name. They are matched as the tool gets them: checked, with its defaults, and in one
    form (`1000` for `1000.0` and `1e3`); what is no text as JSON. A missing argument never matches."""
    resource: Annotated[tuple[Pattern, ...], BeforeValidator(_as_tuple)] = ()
    """Patterns for what a call touches, such as `sheet:Payroll` or `file:*.xlsx`, one or a list; none for anything. An
    `allow` matches when each resource lies within one of them, an `approve` or `deny` when one of them touches any."""
    reason: str = ""
    """Told to the model on a denial, and to the person on an approval."""


DEFAULT_RULES = (
    PolicyRule(verdict=Verdict.APPROVE, hazards=tuple(Hazard), reason="the default asks before what may do harm"),
)
"""What is asked for approval if no rule of the operator's says otherwise: every hazard that there is."""


class PolicySettings(Section):
    """Rules for actions; the first that matches decides, and what none matches is allowed."""

    rules: tuple[PolicyRule, ...] = ()
    """The operator's rules, in order; they come before the default."""
    defaults: bool = True
    """Whether what deletes, overwrites, sends, installs, spends, launches, configures, leaves the workspace, or is
    unknown, needs approval if no rule says otherwise."""

    explain: bool = False
    """Whether each decision tells the arguments and resources of the call, also where no rule asks for them."""

    @property
    def all_rules(self) -> tuple[PolicyRule, ...]:
        """The rules in force, in order."""
        return (*self.rules, *DEFAULT_RULES) if self.defaults else self.rules


def as_rules(value: object) -> object:
    """Take a plain list for the rules alone."""
    return {"rules": value} if isinstance(value, list | tuple) else value
