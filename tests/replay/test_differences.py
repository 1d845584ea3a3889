"""The first difference: the change since the record, shown with where and why."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest

from callboard import Task
from callboard.actors.states import AppAgentStateManager, By, Move, WorkingState
from callboard.messages import Coverage, InvalidAnswerError
from callboard.models import AppResponse
from callboard.testing import MemoryServer
from support import ASSIGN, FINISH, append

INVALID = {"Status": "FINISH", "Function": "append", "Args": {"control_id": "field-1"}}


@pytest.fixture
def whole(record):
    """A recorded task of a host and an application's agent with two steps."""
    record.run(Task(id="t", request="x"), host=[ASSIGN, FINISH], app=[append("1"), append("2", "FINISH")])
    assert record.again().same
    return record


def test_another_verdict_of_the_policy(whole):
    found = whole.again(policy=[{"verdict": "deny", "tool": "append", "reason": "no more"}]).difference
    assert (found.address, found.run_id, found.step) == ("app/memo/one", "t~1", 1)
    assert found.what == "the policy's verdict on append"
    assert (found.expected, found.got) == ("allow: no rule matches", "deny: no more")
    assert found.because[0] == 'decided on: CONTINUE with append(control_id="field-1", text="1")'


def test_a_rule_on_effects_reads_the_recorded_effect(whole):
    assert whole.again(policy=[{"verdict": "deny", "effects": ["read", "idempotent"]}]).same
    assert not whole.again(policy=[{"verdict": "deny", "effects": ["once"]}]).same


class Fields(MemoryServer):
    """A surface that says which field a call touches, and where a pattern for all fields stands for a part."""

    resource_kinds = ("field",)

    def resources(self, target, tool, arguments):
        return [f"field:{arguments['control_id']}"]

    def coverage(self, target, pattern, resource):
        return Coverage.PART if pattern == "field:any" else super().coverage(target, pattern, resource)


def test_rules_on_resources_and_arguments_read_what_was_seen(record):
    record.surface = Fields(MemoryServer.window())
    policy = [{"verdict": "allow", "resource": "field:any"}, {"verdict": "deny", "arguments": {"target": "memo:one"}}]
    task = Task(id="t", request="x", target="memo:one")
    record.run(task, app=[append("1"), append("2", "FINISH"), FINISH], policy=policy)
    assert record.surface.effects == []
    assert record.again().same
    assert not record.again(policy=[{"verdict": "deny", "resource": "field:field-2"}]).same


def test_a_limit_that_is_lower_now(whole):
    found = whole.again(limits={"steps": 1}).difference
    assert (found.what, found.address) == ("a transition", "app/memo/one")
    assert (found.expected, found.got) == ("CONTINUE → FINISH by model", "CONTINUE → FAIL by system")


def test_a_budget_that_is_lower_now(whole):
    found = whole.again(budget={"task": {"model_calls": 1}}).difference
    assert (found.what, found.expected, found.got) == ("the word", "step_done", "step_failed")
    assert "has used its 1 model call" in found.because[-1]


def test_another_order_of_subtasks(record):
    record.surface = MemoryServer(MemoryServer.window(), MemoryServer.window("two"))
    members = [
        {"Current Sub-Task": "a", "ControlText": "memo:one", "After": [], "AfterAny": []},
        {"Current Sub-Task": "b", "ControlText": "memo:two", "After": [1], "AfterAny": []},
    ]
    record.run(
        Task(id="t", request="x"), host=[{"Status": "ASSIGN", "Sub-Tasks": members}, FINISH], app=[FINISH, FINISH]
    )
    assert record.again().same
    with closing(sqlite3.connect(record.path)) as connection, connection:
        connection.execute("""UPDATE rows SET body = replace(body, '"after":[1],', '"after":[],')""")
    difference = record.again().difference
    assert (difference.address, difference.what) == ("host/t", "the subtasks")
    assert '"after": [1]' in difference.got


def test_a_move_that_the_table_no_longer_has(whole, monkeypatch):
    row = {target: by for target, by in AppAgentStateManager.transitions["CONTINUE"].items() if target != "FINISH"}
    monkeypatch.setitem(AppAgentStateManager.transitions, "CONTINUE", row)
    found = whole.again().difference
    assert (found.address, found.step) == ("app/memo/one", 2)
    assert re.search("'FINISH' is not legal now|is not in the transition table", str(found))


def test_a_move_by_somebody_else(whole, monkeypatch):
    row = {**AppAgentStateManager.transitions["CONTINUE"], "CONTINUE": By.SYSTEM}
    monkeypatch.setitem(AppAgentStateManager.transitions, "CONTINUE", row)
    found = whole.again().difference
    assert (found.address, found.step) == ("app/memo/one", 1)


def test_a_state_that_decides_otherwise(whole, monkeypatch):
    follow = WorkingState.follow

    def fail(state, status, comment):
        return Move("FAIL", By.MODEL) if status == "FINISH" else follow(state, status, comment)

    monkeypatch.setattr(WorkingState, "follow", fail)
    found = whole.again().difference
    assert (found.what, found.expected, found.got) == (
        "a transition",
        "CONTINUE → FINISH by model",
        "CONTINUE → FAIL by model",
    )


def test_a_parser_that_refuses_what_counted(whole, monkeypatch):
    def strict(answer, read=AppResponse.decided_status):
        if read(answer) == "FINISH":
            msg = "FINISH is out of fashion"
            raise InvalidAnswerError(msg)
        return read(answer)

    monkeypatch.setattr(AppResponse, "decided_status", strict)
    found = whole.again().difference
    assert (found.what, found.expected, found.got) == ("the word", "step_done", "step_failed")
    assert "the model's answer was sent back: FINISH is out of fashion" in found.because
    assert "the model is asked more often than recorded" in found.because


def test_a_parser_that_lets_pass_what_was_sent_back(record, monkeypatch):
    record.run(Task(id="t", request="x", target="memo:one"), app=[{"Status": "DANCE"}, FINISH])

    def lenient(answer, read=AppResponse.decided_status):
        return {"DANCE": "FINISH"}.get(read(answer), read(answer))

    monkeypatch.setattr(AppResponse, "decided_status", lenient)
    found = record.again().difference
    assert found.what == "an answer of the model counts that was sent back"


def test_a_parser_that_reads_another_action(whole, monkeypatch):
    def other(answer, read=AppResponse.decided_actions):
        return [action.model_copy(update={"arguments": {**action.arguments, "text": "?"}}) for action in read(answer)]

    monkeypatch.setattr(AppResponse, "decided_actions", other)
    found = whole.again().difference
    assert found.what == "the actions"
    assert (found.expected, found.got) == (
        'append(control_id="field-1", text="1")',
        'append(control_id="field-1", text="?")',
    )


def test_difference_has_the_transitions_before_it(whole):
    done = whole.again(limits={"steps": 1})
    told = [(made.run_id, made.source, made.target) for made in done.transitions]
    assert told == [("t~0", "CONTINUE", "ASSIGN"), ("t~1", "CONTINUE", "CONTINUE")]
    assert done.outcome is None
