"""Budgets and policies of tasks, besides those of the settings."""

from __future__ import annotations

import json

import pytest

from callboard import EventName, Outcome, Task
from callboard.messages import Budget, PolicyRule, Verdict
from callboard.testing import MemoryServer, assert_replays
from support import ASSIGN, FINISH, PATIENCE, append, lone, write

DENY = PolicyRule(verdict=Verdict.DENY, tool="write", reason="this task only appends")
APPROVE = PolicyRule(verdict=Verdict.APPROVE, tool="append")
ALLOW = PolicyRule(verdict=Verdict.ALLOW)


class Noted:
    """A model that tries to write, and keeps the notes it gets."""

    def __init__(self):
        self.notes = []

    def __call__(self, request):
        self.notes.extend(request.observation.notes)
        return write("x") if request.call == 1 else append("y", "FINISH")


def test_a_rule_of_a_task_denies_an_action_of_that_task_alone(start):
    surface, model = MemoryServer(MemoryServer.window()), Noted()
    supervisor = start(app=model, servers=[surface])
    assert supervisor.submit(lone(policy=[DENY])).result(PATIENCE).ok
    assert surface.effects == [("memo:one", "field-1", "y")]
    assert any("this task only appends" in note for note in model.notes)
    assert supervisor.submit(lone()).result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["y", "x", "y"]


def test_a_rule_of_a_task_asks_for_an_approval(start, until):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=[append("y", "FINISH"), FINISH], servers=[surface])
    handle = supervisor.submit(lone(policy=[{"verdict": "approve", "tool": "append"}]))
    request = until(handle, EventName.APPROVAL_REQUESTED).data["request"]
    assert request["reason"] == "rule 1 of the task's policy"
    assert surface.effects == []
    handle.approve(request["id"])
    assert handle.result(PATIENCE).ok
    assert len(surface.effects) == 1


@pytest.mark.parametrize("theirs", [(ALLOW,), ()], ids=["allows", "none"])
def test_a_task_cannot_allow_what_the_settings_deny(start, theirs):
    surface, model = MemoryServer(MemoryServer.window()), Noted()
    settings = [{"verdict": "deny", "tool": "write", "reason": "the operator forbids it"}]
    handle = start(app=model, servers=[surface], policy=settings).submit(lone(policy=theirs))
    assert handle.result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["y"]
    assert any("the operator forbids it" in note for note in model.notes)


def test_a_rule_of_a_task_may_name_arguments(start):
    surface, model = MemoryServer(MemoryServer.window()), Noted()
    rule = {"verdict": "deny", "tool": "write", "arguments": {"text": "re:x+"}}
    assert start(app=model, servers=[surface]).submit(lone(policy=[rule])).result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["y"]


def test_rules_and_budget_hold_after_a_restart_and_in_a_replay(begin, until, tmp_path):
    surface = MemoryServer(MemoryServer.window())
    ask = {"Status": "PENDING", "Comment": "which one?"}
    before = begin(app=[ask], servers=[surface])
    handle = before.submit(lone(policy=[DENY], budget=Budget(steps=2)))
    until(handle, EventName.QUESTION_ASKED)
    before.stop()
    after = begin(app=[ask, write("x"), append("y")], servers=[surface]).handle(handle.task_id)
    assert after.task.policy == (DENY,)
    after.answer(after.questions()[0].id, "this one")
    assert after.result(PATIENCE).outcome is Outcome.OUT_OF_BUDGET
    assert surface.effects == []
    assert_replays(tmp_path / "journal.db", handle.task_id)


def test_a_rule_with_a_secret_is_refused(start):
    supervisor = start(secrets={"password": "correct horse"})
    rule = {"verdict": "deny", "arguments": {"text": "*correct horse*"}}
    with pytest.raises(ValueError, match="a rule of its policy quotes a secret"):
        supervisor.submit(lone(policy=[rule]))
    assert supervisor.pending() == ()


@pytest.mark.parametrize(
    "rule", [{"verdict": "forbid"}, {"verdict": "deny", "tool": "re:("}, {"verdict": "deny", "tol": "x"}, {}], ids=repr
)
def test_a_wrong_rule_is_refused(rule):
    with pytest.raises(ValueError, match="policy"):
        Task(request="x", policy=[rule])


@pytest.mark.parametrize(("settings", "own", "steps"), [(None, 2, 2), (1, 2, 1), (2, 1, 1), (2, None, 2)], ids=repr)
def test_the_smaller_of_two_budgets_holds(start, settings, own, steps):
    supervisor = start(app=lambda _: append("x"), budget={"task": {"steps": settings}})
    result = supervisor.submit(lone(budget={"steps": own})).result(PATIENCE)
    assert (result.outcome, result.usage.steps) == (Outcome.OUT_OF_BUDGET, steps)


def test_a_budget_of_a_task_covers_its_host_agent_and_subtasks(start):
    supervisor = start(host=lambda _: ASSIGN, app=lambda _: append("x", "FINISH"))
    result = supervisor.submit(Task(request="x", budget={"model_calls": 3})).result(PATIENCE)
    assert (result.outcome, result.usage.model_calls) == (Outcome.OUT_OF_BUDGET, 3)
    assert supervisor.submit(lone()).result(PATIENCE).ok


def test_a_follow_up_has_terms_of_its_own(start):
    supervisor = start(host=lambda _: FINISH)
    first = supervisor.submit(Task(request="first", budget={"steps": 1}, policy=[DENY]))
    assert first.result(PATIENCE).ok
    second = first.follow_up("second")
    assert (second.task.budget, second.task.policy) == (None, ())
    assert second.result(PATIENCE).ok


def test_a_mistyped_rule_of_a_task_is_a_warning(start, tmp_path):
    log = tmp_path / "events.log"
    supervisor = start(app=[append("y", "FINISH")], log={"file": str(log)})
    rules = [DENY, {"verdict": "deny", "tool": "wrte"}, {"verdict": "deny", "arguments": {"txt": "x"}}]
    handle = supervisor.submit(lone(policy=rules))
    assert handle.result(PATIENCE).ok
    told = [event.data for event in handle.events() if event.name is EventName.POLICY_UNMATCHED]
    assert [each["rule"] for each in told] == [2, 3]
    assert told[0]["reason"] == "no tool is called 'wrte'; did you mean 'write'?"
    assert "takes an argument 'txt'" in told[1]["reason"]
    supervisor.stop()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    warned = [(line["level"], line["task"]) for line in lines if line["event"] == "policy.unmatched"]
    assert warned == [("warning", handle.task_id)] * 2
