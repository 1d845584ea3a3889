"""Follower mode: a task with a plan, each step a round."""

from __future__ import annotations

from callboard import EventName, Outcome, PlanStep, Task
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE


def test_a_plan_step_is_a_round_and_with_a_target_needs_no_host_model(start):
    surface = MemoryServer(MemoryServer.window("one"), MemoryServer.window("two"))

    def app(request):
        args = {"control_id": "field-1", "text": request.request}
        return {"Status": "FINISH", "Function": "append", "Args": args}

    supervisor = start(app=app, servers=[surface])
    plan = [PlanStep(request="first", target="memo:one"), PlanStep(request="second", target="memo:two")]
    handle = supervisor.submit(Task(request="both", plan=plan))
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.FINISHED
    assert result.rounds == 2
    assert surface.effects == [("memo:one", "field-1", "first"), ("memo:two", "field-1", "second")]
    rounds = [event.data["request"] for event in handle.events() if event.name is EventName.ROUND_STARTED]
    assert rounds == ["first", "second"]


def test_a_step_without_a_target_asks_the_host_agents_model(start):
    host = [{"Status": "ASSIGN", "ControlText": "memo:one"}]
    supervisor = start(host=host, app=[FINISH])
    result = supervisor.submit(Task(plan=["write something"])).result(PATIENCE)
    assert result.ok
    assert result.subtasks[0].request == "write something"


def test_any_other_outcome_of_a_step_ends_the_task_with_it(start):
    supervisor = start(app=[{"Status": "FAIL", "Comment": "no such thing"}])
    plan = [PlanStep(request="first", target="memo:one"), PlanStep(request="second", target="memo:one")]
    result = supervisor.submit(Task(plan=plan)).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert result.rounds == 1
    assert any("no such thing" in cause.reason for cause in result.causes)


def test_a_step_whose_target_is_missing_when_its_round_begins_is_an_error(start):
    result = start().submit(Task(plan=[PlanStep(request="x", target="nowhere")])).result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert any("memo:one" in cause.reason for cause in result.causes)


def test_a_later_step_sees_what_earlier_ones_left(start):
    def app(request):
        if request.request == "second":
            return {"Status": "FINISH", "Result": [done.output for done in request.subtasks]}
        return {"Status": "FINISH", "Result": 42}

    supervisor = start(app=app)
    plan = [PlanStep(request="first", target="memo:one"), PlanStep(request="second", target="memo:one")]
    assert supervisor.submit(Task(plan=plan)).result(PATIENCE).output == [42]
