"""The policy's rules: the operator's, and the default ones."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field

from callboard.config._patterns import Pattern
from callboard.config._section import Section
from callboard.messages import Effect, Hazard


class Verdict(StrEnum):
    """A policy rule's decision about an action."""

    ALLOW = "allow"
    """It may run."""
    APPROVE = "approve"
    """A person must approve it first."""
    DENY = "deny"
    """It never runs; the model gets the reason."""


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else value


class PolicyRule(Section):
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
    resource: Annotated[tuple[Pattern, ...], BeforeValidator(_as_tuple)] = ()
    """Patterns for the resources that a call touches, such as `sheet:Payroll` or `file:*.xlsx`, one or a list; empty
    for any. An `allow` matches if each resource lies within a pattern, an `approve` or `deny` if any overlaps one."""
    reason: str = ""
    """The reason shown to the model on a denial, and to the person on an approval."""


DEFAULT_RULES = (
    PolicyRule(verdict=Verdict.APPROVE, hazards=tuple(Hazard), reason="the default asks before what may do harm"),
)
"""The default rules: every hazard needs approval unless a rule of the operator decides otherwise."""


class PolicySettings(Section):
    """Rules for actions.

    The first match decides, and an action without a match is allowed.
    """

    rules: tuple[PolicyRule, ...] = ()
    """The operator's rules, in order; they precede the default ones."""
    defaults: bool = True
    """Whether an action that deletes, overwrites, sends, installs, spends, launches, configures, leaves the workspace,
    or is unknown, needs approval unless a rule decides otherwise. Overwriting files that a task names in `may_change`
    needs none."""

    explain: bool = False
    """Whether each decision includes the call's arguments and resources, even if no rule needs them."""

    @property
    def all_rules(self) -> tuple[PolicyRule, ...]:
        """The rules in force, in order."""
        return (*self.rules, *DEFAULT_RULES) if self.defaults else self.rules


def as_rules(value: object) -> object:
    """Convert a plain list of rules to a section."""
    return {"rules": value} if isinstance(value, list | tuple) else value
