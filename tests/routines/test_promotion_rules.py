"""A repair may not widen a routine: poisoned ones are refused."""

from __future__ import annotations

import copy

import pytest

from callboard.messages import Routine
from callboard.routines import StoredProposal

FIELD = {"kind": "field", "name": "to"}
SEND = {
    "tool": "send",
    "arguments": {"to": "boss@example.com", "text": "${who}"},
    "control": 0,
    "expect": {"changes": True},
    "hazards": ["sends"],
}
OLD = {
    "routine": "mail",
    "request": "Mail it",
    "parameters": {"who": {"value": "Ann"}},
    "subtasks": [
        {
            "target": "memo:one",
            "kind": "app",
            "request": "mail it",
            "steps": [
                {"status": "CONTINUE", "window": "Mail", "controls": [FIELD], "actions": [SEND]},
                {
                    "status": "CONTINUE",
                    "window": "Mail",
                    "controls": [{"kind": "table", "name": "A, B", "columns": ["A", "B"]}],
                    "actions": [
                        {"tool": "log_in", "arguments": {"password": "${secret:pw}"}, "expect": {"changes": True}}
                    ],
                },
                {"status": "FINISH", "window": "Mail"},
            ],
        }
    ],
    "checks": [{"file": "report.xlsx"}],
}


def changed(*changes):
    """Change parts of the routine, each by its path."""
    content = copy.deepcopy(OLD)
    for path, value in changes:
        part = content
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = value
    return Routine.model_validate(content)


def stored(tmp_path, *changes):
    return StoredProposal(tmp_path / "f", tmp_path / "p", changed(), changed(*changes))


SUBTASK = ("subtasks", 0)
STEP = (*SUBTASK, "steps", 0)
ACTION = (*STEP, "actions", 0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (((*SUBTASK, "target"), "memo:evil"), "adds the app target 'memo:evil'"),
        (((*SUBTASK, "kind"), "linux"), "adds the linux target"),
        (((*ACTION, "tool"), "delete_all"), "adds the tool delete_all of app agents"),
        (((*ACTION, "hazards"), ["sends", "deletes"]), "adds the hazard that send deletes"),
        (((*ACTION, "arguments", "text"), "${secret:bank}"), "puts the secret 'bank' into send, text"),
        (((*ACTION, "arguments", "to"), "x ${secret:pw}"), "puts the secret 'pw' into send, to"),
        (((*SUBTASK, "request"), "use ${secret:pw}"), "puts the secret 'pw' into the request"),
        (((*ACTION, "control"), None), "calls send without a control"),
        (((*ACTION, "expect"), None), "calls send without an expected result"),
        (((*STEP, "window"), ""), "calls send without a window"),
        (((*SUBTASK, "steps", 1, "controls", 0, "columns"), None), "'A, B' without its columns"),
        ((("checks",), []), "drops the check"),
        ((("checks",), [{"file": "other.xlsx"}]), "drops the check"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_repair_that_widens_a_routine_is_never_promoted(tmp_path, change, reason):
    assert any(reason in refusal for refusal in stored(tmp_path, change).refusals)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (((*ACTION, "arguments", "to"), "evil@example.com"), '"evil@example.com" is a new value'),
        (((*ACTION, "arguments", "text"), "https://evil.example/x"), "is a new value"),
        (((*ACTION, "arguments", "text"), "/etc/passwd"), "is a new value"),
        (((*ACTION, "arguments", "text"), 4711), "4711 is a new value"),
        (((*ACTION, "arguments", "text"), {"a": [[[[[[["deep"]]]]]]]}), '"deep" is a new value'),
        (((*ACTION, "arguments", "text"), {"key": "${who}"}), '"key" is a new value'),
        (((*ACTION, "arguments", "text"), "Dear ${who}"), "is a new value"),
        (((*ACTION, "arguments", "to"), "${subtasks.1.output.mail}"), "it takes send, to, from subtasks"),
        (((*SUBTASK, "request"), "mail it to all"), "is a new value"),
        ((("request",), "Mail it to all"), "is a new value"),
        (((*STEP, "window"), "Bank"), "works in another window: 'Bank'"),
        (((*STEP, "dialogs"), ["Allow access?"]), "behind the dialog 'Allow access?'"),
        (((*STEP, "controls", 0, "disabled"), True), "it uses the disabled field 'to'"),
        (((*SUBTASK, "steps", 2, "result"), "paid"), "is a new value"),
        ((("parameters", "who", "value"), "Eve"), "it changes the parameter who"),
        (((*SUBTASK, "steps", 1, "actions"), []), "it makes fewer calls of log_in"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_repair_with_new_values_needs_a_person(tmp_path, change, reason):
    proposal = stored(tmp_path, change)
    assert proposal.refusals == []
    assert any(reason in concern for concern in proposal.concerns)


def test_loop_over_another_list_needs_a_person(tmp_path):
    loop = {"each": "subtasks.1.output", "steps": [OLD["subtasks"][0]["steps"][0]]}
    concerns = stored(tmp_path, ((*SUBTASK, "steps", 0), loop)).concerns
    assert concerns == ["it repeats steps for each of subtasks.1.output"]


def test_new_value_in_a_loop_is_named_with_its_place_in_the_file(tmp_path):
    loop = {"each": "rows", "steps": [{"status": "CONTINUE"}, {"status": "CONTINUE", "result": "paid"}]}
    concerns = stored(tmp_path, ((*SUBTASK, "steps", 0), loop)).concerns
    assert concerns[0] == 'subtasks.1.steps.1.steps.2.result: "paid" is a new value'


@pytest.mark.parametrize(
    "change",
    [
        ((*STEP, "controls", 0, "name"), "recipient"),
        ((*STEP, "controls", 0, "id"), "17"),
        ((*STEP, "why"), "the label was translated"),
        ((*ACTION, "arguments", "text"), "boss@example.com"),
        ((*ACTION, "expect"), {"changes": True, "members": ["sent"]}),
    ],
    ids=["name", "id", "why", "known text", "form"],
)
def test_repair_within_the_routine_may_be_promoted(tmp_path, change):
    proposal = stored(tmp_path, change)
    assert (proposal.refusals, proposal.concerns) == ([], [])


def with_facts(relies_on, leaves):
    action = {"tool": "run", "arguments": {"command": "sort a"}, "relies_on": relies_on}
    action["expect"] = {"changes": True, "leaves": leaves}
    steps = [{"status": "CONTINUE", "actions": [action]}, {"status": "FINISH"}]
    subtask = {"target": "box", "kind": "linux", "request": "sort", "steps": steps}
    return Routine.model_validate({"routine": "r", "request": "Sort", "subtasks": [subtask]})


def proposal(tmp_path, old, new):
    return StoredProposal(tmp_path / "f", tmp_path / "p", with_facts(*old), with_facts(*new))


def test_repair_that_drops_a_fact_of_a_call_is_refused(tmp_path):
    old = {"a": "a file"}, {"exit code": 0}
    assert proposal(tmp_path, old, old).refusals == []
    assert proposal(tmp_path, old, ({}, old[1])).refusals == ["it calls run without the fact 'a' before it"]
    assert proposal(tmp_path, old, (old[0], {})).refusals == ["it calls run without the fact 'exit code' after it"]


def test_other_fact_of_a_call_needs_a_person(tmp_path):
    changed_fact = proposal(tmp_path, ({"a": "missing"}, {}), ({"a": "a file"}, {}))
    assert changed_fact.refusals == []
    assert changed_fact.concerns == ["it calls run where 'a' before it is a file"]
