"""The policy: the first rule that matches decides."""

from __future__ import annotations

import pytest

from callboard.actors.commands import Policy
from callboard.actors.models import ToolInfo
from callboard.config import PolicyRule, Verdict
from callboard.messages import Effect


def tool(name="write", effect=Effect.ONCE):
    return ToolInfo(name=name, description="", schema={}, effect=effect)


def verdict(*rules, agent="app/word/one", name="write", effect=Effect.ONCE):
    made = tuple(PolicyRule.model_validate(rule) for rule in rules)
    return Policy(made).rule(agent, tool(name, effect)).verdict


def test_what_no_rule_matches_is_allowed():
    assert Policy(()).rule("app/word/one", tool()).verdict is Verdict.ALLOW
    assert verdict({"verdict": "deny", "tool": "delete_*"}) is Verdict.ALLOW


def test_the_first_rule_that_matches_decides():
    rules = {"verdict": "approve", "tool": "w*"}, {"verdict": "deny", "tool": "write"}
    assert verdict(*rules) is Verdict.APPROVE
    assert verdict(*reversed(rules)) is Verdict.DENY


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        ({}, True),
        ({"agent": "app/*"}, True),
        ({"agent": "app/word/*"}, True),
        ({"agent": "host/*"}, False),
        ({"tool": "WRITE"}, False),
        ({"tool": "wri*"}, True),
        ({"tool": "[wx]rite"}, True),
        ({"effects": ["once"]}, True),
        ({"effects": ["read", "idempotent"]}, False),
        ({"agent": "app/*", "tool": "write", "effects": ["once"]}, True),
        ({"agent": "app/*", "tool": "read", "effects": ["once"]}, False),
        ({"agent": "app/*", "tool": "write", "effects": ["read"]}, False),
    ],
)
def test_a_rule_matches_when_all_that_it_names_matches(rule, matches):
    assert verdict({"verdict": "deny", **rule}) is (Verdict.DENY if matches else Verdict.ALLOW)


def test_a_ruling_gives_the_rules_reason_or_its_number():
    rules = (PolicyRule(verdict=Verdict.ALLOW, tool="read"), PolicyRule(verdict=Verdict.DENY))
    assert Policy(rules).rule("app/word/one", tool()).reason == "rule 2 of the policy"
    told = (PolicyRule(verdict=Verdict.DENY, reason="ask the archive"),)
    assert Policy(told).rule("app/word/one", tool()).reason == "ask the archive"


def test_a_servers_tools_are_matched_by_its_name():
    rule = {"verdict": "deny", "tool": "notes.*"}
    assert verdict(rule, name="notes.add") is Verdict.DENY
    assert verdict(rule, name="add") is Verdict.ALLOW
