"""The policy's rules: the operator's, and the default ones."""

from __future__ import annotations

from callboard.config._section import Section
from callboard.messages import Hazard, PolicyRule, Verdict

DEFAULT_RULES = (PolicyRule(verdict=Verdict.APPROVE, hazards=tuple(Hazard), reason="it may do harm"),)
"""The default rules: every hazard needs approval unless a rule of the operator decides otherwise."""


class PolicySettings(Section):
    """Rules for actions.

    The first match decides, and an action without a match is allowed.
    """

    rules: tuple[PolicyRule, ...] = ()
    """The operator's rules, in order; they precede the default ones."""
    defaults: bool = True
    """Whether an action that deletes, overwrites, sends, installs, spends, launches, configures, downloads, logs in,
    leaves the workspace, or is unknown, needs approval unless a rule decides otherwise. Overwriting files that a task
    names in `may_change` needs none, and neither does deleting a file that the task created itself."""

    explain: bool = False
    """Whether each decision includes the call's arguments and resources, even if no rule needs them."""

    @property
    def all_rules(self) -> tuple[PolicyRule, ...]:
        """The rules in force, in order."""
        return (*self.rules, *DEFAULT_RULES) if self.defaults else self.rules


def as_rules(value: object) -> object:
    """Convert a plain list of rules to a section."""
    return {"rules": value} if isinstance(value, list | tuple) else value
