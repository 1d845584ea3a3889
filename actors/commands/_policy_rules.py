"""The policy: the operator's rules decide about actions, independently of the model."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from callboard.actors.commands._canonical import text_of
from callboard.config import DEFAULT_RULES, PolicyRule, Verdict, fits
from callboard.messages import ActionFacts, Coverage, Hazard, maker
from callboard.surfaces import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from callboard.messages import Address, Effect, Task
    from callboard.models import ToolInfo

_kept = maker(ActionFacts)

_HARM = {
    Hazard.LAUNCHES: "launches a program",
    Hazard.CONFIGURES: "changes the configuration",
    Hazard.LOGS_IN: "logs in",
    Hazard.LEAVES: "leaves the workspace",
    Hazard.UNKNOWN: "has unknown effects",
}
"""The hazards whose names do not complete a sentence."""


@dataclass(frozen=True)
class Ruling:
    """A verdict, and the rule that gave it."""

    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Asked:
    """The facts about calls that the rules need, besides tool and hazards."""

    arguments: frozenset[str] = frozenset()
    """The names of arguments."""
    resources: tuple[str, ...] = ()
    """Patterns for resources."""
    explain: bool = False
    """Whether all facts are needed, also those that no rule looks at."""

    def __or__(self, other: Asked) -> Asked:
        """Return the facts that the rules of two policies need."""
        resources = tuple(dict.fromkeys((*self.resources, *other.resources)))
        return Asked(self.arguments | other.arguments, resources, self.explain or other.explain)


@dataclass(frozen=True)
class Facts:
    """The facts about a call that rules match."""

    hazards: frozenset[Hazard] = frozenset()
    effect: Effect | None = None
    """The effect of this call, if its surface determines it for each call; None: the tool's effect."""
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    """The arguments as the tool receives them, in canonical form."""
    inexact: frozenset[str] = frozenset()
    """Names of arguments that the tool may read in unknown ways: no `allow` rule matches them."""
    resources: Mapping[str, Mapping[str, Coverage]] = field(default_factory=dict)
    """The resources that the call touches, each with its coverage by the rules' patterns."""
    may_change: tuple[str, ...] = ()
    """The files that the call overwrites, if its task names all of them in `may_change`."""
    own_files: tuple[str, ...] = ()
    """The files that the call deletes, if its task created all of them and none has changed since."""
    recipient: str = ""
    """The recipient of what the call sends, if it needs an approval and its surface can tell."""

    def kept(self) -> ActionFacts:
        """Return the facts that an approval is bound to."""
        return _kept(hazards=tuple(sorted(self.hazards)), resources=tuple(self.resources), recipient=self.recipient)


OF_TASK = "the task's policy"
_STRICTNESS = {Verdict.ALLOW: 0, Verdict.APPROVE: 1, Verdict.DENY: 2}
KEPT = 1000
"""The most combinations of agent, tool, effect and hazards whose possible rules are cached."""
_ALLOWED = Ruling(Verdict.ALLOW, "no rule matches")


class Policy:
    """Ordered rules.

    The first match decides; a call without a match is allowed.
    """

    def __init__(self, rules: tuple[PolicyRule, ...], *, explain: bool = False, name: str = "the policy") -> None:
        """Create it; `name` names it in the reasons of its rulings."""
        self.rules = rules
        self._name = name
        names = frozenset(name for rule in rules for name in rule.arguments)
        self.asked = Asked(names, tuple(dict.fromkeys(pattern for rule in rules for pattern in rule.resource)), explain)
        """The facts about a call that `rule` needs."""
        self._possible = functools.lru_cache(maxsize=KEPT)(self._find)

    def rule(self, agent: Address, tool: ToolInfo, facts: Facts) -> Ruling:
        """Return the ruling on an agent's call of a tool."""
        for rule, ruling in self._possible(agent, tool.name, facts.effect or tool.effect, facts.hazards):
            if _is_about(rule, facts):
                return _lifted(rule, ruling, tool, facts)
        return _ALLOWED

    def _find(
        self, agent: Address, tool: str, effect: Effect, hazards: frozenset[Hazard]
    ) -> tuple[tuple[PolicyRule, Ruling], ...]:
        """Return the rules that match some calls of a tool.

        They end with the first that matches all calls.
        """
        matches = []
        for number, rule in enumerate(self.rules, 1):
            if _may_match(rule, agent, tool, effect, hazards):
                why = rule.reason or f"rule {number} of {self._name}"
                reason = f"{why} ({tool} {_harm(hazards)})" if hazards else why
                matches.append((rule, Ruling(rule.verdict, reason)))
                if not (rule.arguments or rule.resource):
                    break
        return tuple(matches)


def _harm(hazards: Iterable[Hazard]) -> str:
    """Describe hazards, as the rest of a sentence about a tool."""
    return ", ".join(_HARM.get(hazard, hazard.value) for hazard in sorted(hazards))


def _lifted(rule: PolicyRule, ruling: Ruling, tool: ToolInfo, facts: Facts) -> Ruling:
    """Lift a default rule about a task's own and named files.

    It may delete the former and overwrite the latter. The call must have no other hazard. The operator's own rules are
    never lifted.
    """
    if not any(rule is default for default in DEFAULT_RULES):
        return ruling
    if facts.may_change and facts.hazards == {Hazard.OVERWRITES}:
        return Ruling(Verdict.ALLOW, f"the task may change {', '.join(facts.may_change)} ({tool.name} overwrites)")
    if facts.own_files and facts.hazards == {Hazard.DELETES}:
        return Ruling(Verdict.ALLOW, f"the task created {', '.join(facts.own_files)} itself ({tool.name} deletes)")
    return ruling


class TaskPolicies:
    """The policies of unfinished tasks, by task. Thread-safe.

    It needs no lock: each operation on its dictionary is atomic.
    """

    def __init__(self) -> None:
        self._policies: dict[str, Policy] = {}

    def take(self, task: Task) -> None:
        """Keep a task's rules, if it has any."""
        if task.policy:
            self.put(task.id, Policy(task.policy, name=OF_TASK))

    def put(self, task_id: str, policy: Policy) -> None:
        """Set the policy of a task."""
        self._policies[task_id] = policy

    def of(self, task_id: str) -> Policy | None:
        """Return the policy of a task; None if it has no rules."""
        return self._policies.get(task_id)

    def drop(self, task_id: str) -> None:
        """Forget a task."""
        self._policies.pop(task_id, None)


def stricter(first: Ruling, second: Ruling) -> Ruling:
    """Return the stricter of two rulings; the first if they are equal."""
    return second if _STRICTNESS[second.verdict] > _STRICTNESS[first.verdict] else first


def matches(rule: PolicyRule, agent: Address, tool: ToolInfo, facts: Facts) -> bool:
    """Return whether a rule matches a call of a tool."""
    return _may_match(rule, agent, tool.name, facts.effect or tool.effect, facts.hazards) and _is_about(rule, facts)


def _may_match(rule: PolicyRule, agent: Address, tool: str, effect: Effect, hazards: frozenset[Hazard]) -> bool:
    """Return whether a rule may match a tool's calls.

    Arguments and resources are not considered.
    """
    kind, _, path = agent.partition("/")
    application = path.partition("/")[0] if kind == "app" else ""
    return (
        fits(rule.agent, agent)
        and fits(rule.application, application)
        and fits(rule.tool, tool)
        and (not rule.effects or effect in rule.effects)
        and (not rule.hazards or not hazards.isdisjoint(rule.hazards))
    )


def _is_about(rule: PolicyRule, facts: Facts) -> bool:
    """Return whether a rule matches a call's arguments and resources."""
    if not (rule.arguments or rule.resource):
        return True
    return all(_has(rule, facts, name, pattern) for name, pattern in rule.arguments.items()) and (
        not rule.resource or _touches(rule, facts)
    )


def _has(rule: PolicyRule, facts: Facts, name: str, pattern: str) -> bool:
    if name not in facts.arguments or (rule.verdict is Verdict.ALLOW and name in facts.inexact):
        return False
    value, text = facts.arguments[name], text_of(facts.arguments[name])
    if fits(pattern, text):
        return True
    if isinstance(value, bool) or not (isinstance(value, int | float) or name in facts.inexact):
        return False
    with contextlib.suppress(InvalidOperation):
        return Decimal(pattern) == Decimal(text)  # an operator may write 1000.0, and an MCP server read 1e3 as a number
    return False


def _touches(rule: PolicyRule, facts: Facts) -> bool:
    """Return whether a rule matches a call's resources.

    All of them must match for `allow`, else any.
    """
    resource_coverages = [
        {_coverage(pattern, resource, pattern_coverages) for pattern in rule.resource}
        for resource, pattern_coverages in facts.resources.items()
    ]
    if rule.verdict is Verdict.ALLOW:
        return (
            bool(resource_coverages)
            and UNKNOWN not in facts.resources
            and all(Coverage.ALL in coverages for coverages in resource_coverages)
        )
    return any(coverages != {Coverage.NONE} for coverages in resource_coverages)


def _coverage(pattern: str, resource: str, pattern_coverages: Mapping[str, Coverage]) -> Coverage:
    if pattern in pattern_coverages:
        return pattern_coverages[pattern]
    return Coverage.ALL if fits(pattern, resource) else Coverage.NONE
