"""The verdicts of other rules on the recorded actions of a task.

Nothing is executed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from callboard.actors.commands import Facts, matches
from callboard.config import DEFAULT_RULES, Verdict, YamlError, parse_yaml, text
from callboard.messages import CallboardError, Effect, EventName, Hazard, PolicyRule, keys_of, plain_problems
from callboard.models import ToolInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.history import TaskHistory
    from callboard.messages import Event

_RULES = TypeAdapter(tuple[PolicyRule, ...])
MOST_CHARACTERS = 50_000
"""The longest text of rules."""


class UnreadableRulesError(CallboardError):
    """A text is not a list of policy rules."""


@dataclass(frozen=True)
class OtherRuling:
    """An action with the recorded verdict and that of other rules."""

    agent: str
    step: int | None
    tool: str
    arguments: str
    recorded: str
    recorded_reason: str
    other: str
    """The verdict; empty if the record has too little to tell it."""
    other_reason: str

    @property
    def differs(self) -> bool:
        """True if the verdict is another one, or can't be told."""
        return self.recorded != self.other


def rules_in(rules: str) -> tuple[PolicyRule, ...]:
    """Read rules in the form of the settings' `policy`, as YAML.

    Raises:
        UnreadableRulesError: If it is something else.
    """
    if len(rules) > MOST_CHARACTERS:
        raise UnreadableRulesError(text("rules_too_long", most=MOST_CHARACTERS))
    try:
        content = parse_yaml(rules)
        if isinstance(content, dict) and content.keys() == {"policy"}:
            content = content["policy"]
        return _RULES.validate_python(content)
    except ValidationError as error:
        problems = "; ".join(plain_problems(error.errors()[:3], keys_of(PolicyRule)))
        raise UnreadableRulesError(text("rules_unreadable", problems=problems)) from error
    except YamlError as error:
        raise UnreadableRulesError(text("rules_not_yaml", problem=error)) from error


def other_rulings(history: TaskHistory, rules: Sequence[PolicyRule]) -> list[OtherRuling]:
    """Return the rulings of other rules on the recorded actions.

    The default rules come after them.
    """
    return [
        _ruling(event, (*rules, *DEFAULT_RULES)) for event in history.events if event.name is EventName.POLICY_DECIDED
    ]


def _ruling(event: Event, rules: Sequence[PolicyRule]) -> OtherRuling:
    data: dict[str, Any] = event.data
    other, reason = _verdict(event.agent, data, rules)
    return OtherRuling(
        agent=event.agent,
        step=event.step,
        tool=str(data["tool"]),
        arguments=str(data["arguments"]),
        recorded=str(data["verdict"]),
        recorded_reason=str(data["reason"]),
        other=other,
        other_reason=reason,
    )


def _verdict(agent: str, data: dict[str, Any], rules: Sequence[PolicyRule]) -> tuple[str, str]:
    """Return the verdict of the first rule that matches, and its reason.

    The record has a call's resources only if a rule asked for them then, and its arguments as the model gave them.
    """
    model_arguments, is_cut = _arguments(str(data["arguments"]))
    arguments = {**model_arguments, **data["canonical"]}
    facts = Facts(
        hazards=frozenset(map(Hazard, data["hazards"])),
        arguments=arguments,
        inexact=frozenset({*data["inexact"], *(model_arguments.keys() - data["canonical"].keys())}),
        resources=data["resources"],
        may_change=tuple(data["may_change"]),
        own_files=tuple(data.get("own_files", ())),
    )
    tool = ToolInfo(name=str(data["tool"]), description="", schema={}, effect=Effect(data["effect"]))
    for number, rule in enumerate(rules, 1):
        if not matches(rule.model_copy(update={"arguments": {}, "resource": ()}), agent, tool, facts):
            continue
        reason = rule.reason or text("rule_number", number=number)
        if rule.resource and not facts.resources:
            return "", text("resources_not_recorded", reason=reason)
        if is_cut and not rule.arguments.keys() <= arguments.keys():
            return "", text("arguments_not_recorded", reason=reason)
        if matches(rule, agent, tool, facts):
            return rule.verdict.value, reason
    return Verdict.ALLOW.value, text("no_rule_matches")


def _arguments(recorded: str) -> tuple[dict[str, Any], bool]:
    """Return the arguments that a record has, and whether they were cut."""
    try:
        arguments = json.loads(recorded)
    except ValueError:
        return {}, True
    return (arguments, False) if isinstance(arguments, dict) else ({}, True)
