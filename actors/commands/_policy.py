"""The policy: what the operator's rules say of an action, whatever a model thinks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.config import PolicyRule, Verdict, fits

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pydantic import JsonValue

    from callboard.actors.models import ToolInfo
    from callboard.messages import Address, Hazard


@dataclass(frozen=True)
class Ruling:
    """A verdict, and the rule that gave it."""

    verdict: Verdict
    reason: str


class Policy:
    """Rules in order; the first that matches decides, and what none matches is allowed."""

    def __init__(self, rules: tuple[PolicyRule, ...]) -> None:
        self.rules = rules

    def rule(
        self,
        agent: Address,
        tool: ToolInfo,
        arguments: Mapping[str, JsonValue] | None = None,
        hazards: Collection[Hazard] = (),
    ) -> Ruling:
        """Give the ruling on a call of a tool by an agent."""
        for number, rule in enumerate(self.rules, 1):
            if matches(rule, agent, tool, arguments or {}, hazards):
                why = rule.reason or f"rule {number} of the policy"
                known = sorted(hazard.value for hazard in hazards)
                return Ruling(rule.verdict, f"{why} ({tool.name} {', '.join(known)})" if known else why)
        return Ruling(Verdict.ALLOW, "no rule matches")


def matches(
    rule: PolicyRule,
    agent: Address,
    tool: ToolInfo,
    arguments: Mapping[str, JsonValue],
    hazards: Collection[Hazard],
) -> bool:
    """Say whether a rule matches a call of a tool."""
    kind, _, rest = agent.partition("/")
    application = rest.partition("/")[0] if kind == "app" else ""
    return (
        fits(rule.agent, agent)
        and fits(rule.application, application)
        and fits(rule.tool, tool.name)
        and (not rule.effects or tool.effect in rule.effects)
        and (not rule.hazards or not set(rule.hazards).isdisjoint(hazards))
        and all(name in arguments and fits(pattern, _text(arguments[name])) for name, pattern in rule.arguments.items())
    )


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
