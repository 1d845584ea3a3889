"""The policy: the first rule that matches decides."""

from __future__ import annotations

import pytest

from callboard.actors.commands import Facts, Policy, matches
from callboard.actors.commands._unmatched import KnownTool, unmatched
from callboard.config import PolicyRule, Verdict
from callboard.messages import Coverage, Effect, Hazard
from callboard.models import ToolInfo


def tool(name="write", effect=Effect.ONCE):
    return ToolInfo(name=name, description="", schema={}, effect=effect)


def verdict(*rules, agent="app/word/one", name="write", effect=Effect.ONCE):
    made = tuple(PolicyRule.model_validate(rule) for rule in rules)
    return Policy(made).rule(agent, tool(name, effect), Facts()).verdict


def test_call_is_allowed_when_no_rule_matches():
    assert Policy(()).rule("app/word/one", tool(), Facts()).verdict is Verdict.ALLOW
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
    assert Policy(rules).rule("app/word/one", tool(), Facts()).reason == "rule 2 of the policy"
    told = (PolicyRule(verdict=Verdict.DENY, reason="ask the archive"),)
    assert Policy(told).rule("app/word/one", tool(), Facts()).reason == "ask the archive"


def test_a_servers_tools_are_matched_by_its_name():
    rule = {"verdict": "deny", "tool": "notes.*"}
    assert verdict(rule, name="notes.add") is Verdict.DENY
    assert verdict(rule, name="add") is Verdict.ALLOW


ALL, PART, NONE = Coverage.ALL, Coverage.PART, Coverage.NONE


@pytest.mark.parametrize(
    ("resources", "allowed", "denied"),
    [
        ({"a": {"p": ALL}}, True, True),
        ({"a": {"p": PART}}, False, True),
        ({"a": {"p": NONE}}, False, False),
        ({"a": {"p": ALL}, "b": {"p": NONE}}, False, True),
        ({"a": {"p": ALL, "q": NONE}, "b": {"p": NONE, "q": ALL}}, True, True),
        ({"a": {"p": ALL}, "unknown": {"p": NONE}}, False, True),
        ({"unknown": {"p": ALL}}, False, True),  # a deny may match unknown resources, an allow may not
        ({"p": {}}, True, True),  # of a journal that did not ask for this pattern: by its text
        ({}, False, False),
    ],
)
def test_allow_needs_all_resources_and_deny_any(resources, allowed, denied):
    facts = Facts(resources=resources)
    for verdict, matching in (("allow", allowed), ("deny", denied), ("approve", denied)):
        rule = PolicyRule.model_validate({"verdict": verdict, "resource": ["p", "q"]})
        assert matches(rule, "app/word/one", tool(), facts) is matching


@pytest.mark.parametrize(("verdict", "matching"), [("allow", False), ("approve", True), ("deny", True)])
def test_an_argument_that_a_server_may_read_as_it_likes_never_allows(verdict, matching):
    facts = Facts(arguments={"amount": "1000"}, inexact=frozenset({"amount"}))
    rule = PolicyRule.model_validate({"verdict": verdict, "arguments": {"amount": "1000"}})
    assert matches(rule, "app/word/one", tool(), facts) is matching


@pytest.mark.parametrize("pattern", ["1000", "1000.0", "1e3", "re:10*"])
def test_a_number_is_matched_however_the_rule_writes_it(pattern):
    rule = PolicyRule(verdict=Verdict.DENY, arguments={"amount": pattern})
    assert matches(rule, "app/word/one", tool(), Facts(arguments={"amount": 1000}))
    assert not matches(rule, "app/word/one", tool(), Facts(arguments={"amount": 2000}))


WRITE = KnownTool("write", frozenset({"word"}), frozenset({"text", "control_id"}))
THEIRS = KnownTool("mail.send", frozenset(), None)


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({}, ""),
        ({"tool": "w*"}, ""),
        ({"tool": "re:mail\\..*"}, ""),
        ({"tool": "wirte"}, "no tool is called 'wirte'; did you mean 'write'?"),
        ({"tool": "re:paint.*"}, "no tool is called 're:paint.*'"),
        ({"application": "word"}, ""),
        ({"application": "memo"}, ""),
        ({"application": "wrod"}, "there is no application 'wrod'; did you mean 'word'?"),
        ({"arguments": {"text": "x"}}, ""),
        ({"arguments": {"anything": "x"}}, ""),  # the other server's tool may take it
        (
            {"tool": "write", "arguments": {"txt": "x"}},
            "no tool that it is about takes an argument 'txt'; did you mean 'text'?",
        ),
        ({"resource": "sheet:Payroll"}, ""),
        ({"resource": "*.xlsx"}, ""),
        ({"resource": "re:anything"}, ""),
        ({"resource": "unknown"}, ""),
        ({"resource": "shet:Payroll"}, "no surface names resources like 'shet:Payroll'; did you mean 'sheet'?"),
        ({"resource": "Payroll"}, "no surface names resources like 'Payroll'"),
    ],
)
def test_rule_that_never_matches_is_reported_with_the_nearest_name(rule, reason):
    rules = [PolicyRule.model_validate({"verdict": "deny", **rule})]
    found = list(unmatched(rules, [WRITE, THEIRS], {"sheet", "file"}, lambda: ["memo"]))
    assert found == ([(1, reason)] if reason else [])


def test_target_applications_are_queried_only_when_needed():
    def never():
        raise AssertionError

    rules = [PolicyRule(verdict=Verdict.DENY, application="w*")]
    assert list(unmatched(rules, [WRITE], (), never)) == []


def test_a_call_is_ruled_by_its_own_arguments_effect_and_hazards():
    rules = (
        PolicyRule(verdict=Verdict.DENY, tool="write", arguments={"path": "/etc/*"}),
        PolicyRule(verdict=Verdict.APPROVE, hazards=frozenset({Hazard.DELETES})),
        PolicyRule(verdict=Verdict.DENY, tool="write", effects=frozenset({Effect.READ})),
        PolicyRule(verdict=Verdict.APPROVE, tool="write", arguments={"path": "/home/*"}),
    )
    policy = Policy(rules)
    calls = {
        "/etc/a": Facts(arguments={"path": "/etc/a"}),
        "/home/a": Facts(arguments={"path": "/home/a"}),
        "/tmp/a": Facts(arguments={"path": "/tmp/a"}),  # noqa: S108 - an argument
        "deletes": Facts(frozenset({Hazard.DELETES}), arguments={"path": "/home/a"}),
        "reads": Facts(effect=Effect.READ, arguments={"path": "/home/a"}),
    }
    for _ in range(2):
        assert {name: policy.rule("app/word/one", tool(), facts).reason for name, facts in calls.items()} == {
            "/etc/a": "rule 1 of the policy",
            "/home/a": "rule 4 of the policy",
            "/tmp/a": "no rule matches",  # noqa: S108 - an argument
            "deletes": "rule 2 of the policy (write deletes)",
            "reads": "rule 3 of the policy",
        }
