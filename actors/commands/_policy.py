"""The policy: what the operator's rules say of an action, whatever a model thinks."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.config import PolicyRule, Verdict

if TYPE_CHECKING:
    from callboard.actors.models import ToolInfo
    from callboard.messages import Address


@dataclass(frozen=True)
class Ruling:
    """A verdict, and the rule that gave it."""

    verdict: Verdict
    reason: str


class Policy:
    """Rules in order; the first that matches decides, and what none matches is allowed."""

    def __init__(self, rules: tuple[PolicyRule, ...]) -> None:
        self._rules = rules

    def rule(self, agent: Address, tool: ToolInfo) -> Ruling:
        """Give the ruling on a call of a tool by an agent."""
        for number, rule in enumerate(self._rules, 1):
            if (
                fnmatch.fnmatchcase(agent, rule.agent)
                and fnmatch.fnmatchcase(tool.name, rule.tool)
                and (not rule.effects or tool.effect in rule.effects)
            ):
                return Ruling(rule.verdict, rule.reason or f"rule {number} of the policy")
        return Ruling(Verdict.ALLOW, "no rule matches")
