"""Rounds: several requests in one conversation, with the same HostAgent, its memory and the blackboard."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from callboard import EventName, FunctionModel, Outcome, PlanStep, Task
from callboard.actors.agent import Agent
from callboard.actors.late_results import JobReturned
from callboard.messages import Assign, TaskRefusedError
from callboard.testing import MemoryServer, VirtualClock
from support import ASSIGN, FINISH, HELD, PATIENCE


class Held:
    """A model whose calls for one request wait until they are let go."""

    def __init__(self, request="first"):
        self.request = request
        self.asked, self.let_go = threading.Event(), threading.Event()
        self.order = []

    async def __call__(self, request):
        self.order.append(request.request)
        if request.request == self.request:
            self.asked.set()
            await asyncio.to_thread(self.let_go.wait, HELD)
        return FINISH


def test_follow_up_continues_with_the_same_host_agent(start):
    supervisor = start(host=[FINISH, FINISH])
    first = supervisor.submit(Task(request="one"))
    assert first.result(PATIENCE).ok
    second = first.follow_up("two")
    assert second.result(PATIENCE).ok
    assert second.task_id != first.task_id
    assert second.session == first.session == first.task_id
    assert [agent for agent in supervisor.status().agents if agent.startswith("host/")] == [f"host/{first.task_id}"]
    started = [event for event in second.events() if event.name is EventName.AGENT_STARTED]
    assert started == []


def test_a_follow_up_has_its_own_request_and_result(start):
    supervisor = start(host=lambda request: {"Status": "FINISH", "Result": request.request})
    first = supervisor.submit(Task(request="one"))
    assert first.result(PATIENCE).output == "one"
    assert first.follow_up("two").result(PATIENCE).output == "two"


def test_host_agent_keeps_its_memory_and_plan_in_a_follow_up(start):
    seen = []

    def host(request):
        seen.append(([record.decision.thought for record in request.memory], request.plan))
        return {"Status": "FINISH", "Thought": request.request, "Plan": [f"after {request.request}"]}

    first = start(host=host).submit(Task(request="one"))
    first.result(PATIENCE)
    first.follow_up("two").result(PATIENCE)
    assert seen == [([], ()), (["one"], ("after one",))]


def test_follow_up_sees_the_results_of_earlier_subtasks(start):
    seen = []

    def host(request):
        seen[:] = [done.output for done in request.subtasks]
        mine = [done for done in request.subtasks if done.run_id.startswith(f"{request.task_id}~")]
        return FINISH if mine else ASSIGN

    supervisor = start(host=host, app=lambda request: {"Status": "FINISH", "Result": f"of {request.task_request}"})
    first = supervisor.submit(Task(request="one"))
    first.result(PATIENCE)
    first.follow_up("two").result(PATIENCE)
    assert seen == ["of one", "of two"]


def test_a_follow_up_reports_only_its_own_subtasks_and_output(start):
    def host(request):
        return FINISH if request.subtasks else ASSIGN

    supervisor = start(host=host, app=[{"Status": "FINISH", "Result": 42}])
    first = supervisor.submit(Task(request="one"))
    assert first.result(PATIENCE).output == 42
    second = first.follow_up("thanks").result(PATIENCE)
    assert (second.subtasks, second.output) == ((), None)


def test_a_failed_subtask_may_be_tried_again_in_a_follow_up(start):
    app = FunctionModel(lambda request: FINISH if request.task_request == "again" else {"Status": "FAIL"})

    def host(request):
        mine = [done for done in request.subtasks if done.run_id.startswith(f"{request.task_id}~")]
        return {"Status": "FINISH" if mine[-1].outcome is Outcome.FINISHED else "FAIL"} if mine else ASSIGN

    supervisor = start(host=host, app=app, limits={"subtask_retries": 0})
    first = supervisor.submit(Task(request="one"))
    assert first.result(PATIENCE).outcome is Outcome.FAILED
    assert first.follow_up("again").result(PATIENCE).outcome is Outcome.FINISHED


def test_follow_up_shares_the_blackboard(start):
    supervisor = start(host=[FINISH, FINISH])
    first = supervisor.submit(Task(request="one"))
    first.result(PATIENCE)
    second = first.follow_up("two")
    second.result(PATIENCE)
    board = supervisor.blackboard(second.task_id)
    assert [entry.content for entry in board.requests] == ["one", "two"]
    assert board == supervisor.blackboard(first.task_id)


def test_follow_ups_wait_for_their_turn_and_run_in_order(start, until):
    model = Held()
    first = start(host=FunctionModel(model)).submit(Task(request="first"))
    assert model.asked.wait(PATIENCE)
    second, third = first.follow_up("second"), first.follow_up("third")
    until(second, EventName.SUBTASK_QUEUED)
    model.let_go.set()
    assert third.result(PATIENCE).ok
    assert second.result(PATIENCE).ok
    assert model.order == ["first", "second", "third"]


def test_a_follow_up_of_a_follow_up_belongs_to_the_same_conversation(start):
    first = start(host=[FINISH] * 3).submit(Task(request="one"))
    first.result(PATIENCE)
    second = first.follow_up("two")
    second.result(PATIENCE)
    third = second.follow_up("three")
    assert third.result(PATIENCE).ok
    assert third.session == first.task_id


def test_a_follow_up_by_a_task_with_a_session_is_the_same(start):
    supervisor = start(host=[FINISH] * 2)
    first = supervisor.submit(Task(request="one"))
    first.result(PATIENCE)
    assert supervisor.submit(Task(request="two", session=first.session)).result(PATIENCE).ok


def test_follow_up_continues_after_a_cancel(start):
    model = Held()

    async def host(request):
        return {**ASSIGN, "Thought": "assigned"} if request.call == 1 else await model(request)

    supervisor = start(host=FunctionModel(host), app=[FINISH])
    first = supervisor.submit(Task(request="first"))
    assert model.asked.wait(PATIENCE)
    first.cancel()
    model.let_go.set()
    assert first.result(PATIENCE).outcome is Outcome.CANCELLED
    assert first.follow_up("second").result(PATIENCE).ok


def test_a_follow_up_in_the_queue_can_be_cancelled_and_never_runs(start, until):
    model = Held()
    first = start(host=FunctionModel(model)).submit(Task(request="first"))
    assert model.asked.wait(PATIENCE)
    second = first.follow_up("second")
    until(second, EventName.SUBTASK_QUEUED)
    assert second.cancel()
    assert second.result(PATIENCE).outcome is Outcome.CANCELLED
    assert second.result(0).subtasks == ()
    model.let_go.set()
    assert first.result(PATIENCE).ok
    assert model.order == ["first"]


def test_cancelling_the_first_leaves_its_follow_up_alone(start):
    model = Held()
    first = start(host=FunctionModel(model)).submit(Task(request="first"))
    assert model.asked.wait(PATIENCE)
    second = first.follow_up("second")
    first.cancel()
    model.let_go.set()
    assert first.result(PATIENCE).outcome is Outcome.CANCELLED
    assert second.result(PATIENCE).ok


def test_a_supervisor_with_a_follow_up_in_the_queue_stops(start):
    model = Held()
    supervisor = start(host=FunctionModel(model))
    first = supervisor.submit(Task(request="first"))
    assert model.asked.wait(PATIENCE)
    second = first.follow_up("second")
    model.let_go.set()
    assert supervisor.stop() == ()
    assert second.result(0).outcome is Outcome.CANCELLED


def test_a_deadline_ends_a_follow_up_in_the_queue(start):
    clock, model = VirtualClock(), Held()
    supervisor = start(host=FunctionModel(model), clock=clock, limits={"task_seconds": 60})
    first = supervisor.submit(Task(request="first"))
    assert model.asked.wait(PATIENCE)
    clock.advance(30)
    second = first.follow_up("second")
    clock.advance(30)
    assert first.result(PATIENCE).outcome is Outcome.TIMED_OUT
    model.let_go.set()
    assert second.result(PATIENCE).ok


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_so_many_conversations_are_kept_as_the_settings_say(start, kept):
    supervisor = start(host=lambda _request: FINISH, limits={"sessions": kept})
    handles = []
    for number in range(4):
        handles.append(supervisor.submit(Task(request=f"{number}")))
        handles[-1].result(PATIENCE)
    hosts = [agent for agent in supervisor.status().agents if agent.startswith("host/")]
    assert len(hosts) == kept
    assert hosts == [f"host/{handle.session}" for handle in handles[4 - kept :]]


def test_a_conversation_that_is_not_kept_is_refused_with_a_clear_error(start):
    supervisor = start(host=[FINISH], limits={"sessions": 0})
    handle = supervisor.submit(Task(request="x"))
    handle.result(PATIENCE)
    with pytest.raises(TaskRefusedError, match=r"limits\.sessions"):
        handle.follow_up("more")


def test_active_conversation_is_kept_even_past_the_limit(start):
    model = Held()
    supervisor = start(host=FunctionModel(model), limits={"sessions": 0})
    first = supervisor.submit(Task(request="first"))
    assert model.asked.wait(PATIENCE)
    second = first.follow_up("second")
    model.let_go.set()
    assert second.result(PATIENCE).ok


def test_a_lone_agents_task_has_no_conversation_while_it_runs_or_after(start):
    model = Held()
    handle = start(app=FunctionModel(model)).submit(Task(request="first", target="memo:one"))
    assert model.asked.wait(PATIENCE)
    with pytest.raises(TaskRefusedError):
        handle.follow_up("more")
    model.let_go.set()
    assert handle.result(PATIENCE).ok
    with pytest.raises(TaskRefusedError):
        handle.follow_up("more")


def thoughts(request):
    return [record.decision.thought for record in request.memory]


def test_conversation_keeps_its_memory_when_its_host_agent_crashes(start, monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL, "pykka")
    original, seen = Agent.receive, []

    def crash(self, message):
        if isinstance(message, Assign) and message.task_request == "crash":
            msg = "a bug"
            raise ValueError(msg)
        original(self, message)

    def host(request):
        seen.append(thoughts(request))
        return {"Status": "FINISH", "Thought": request.request}

    monkeypatch.setattr(Agent, "receive", crash)
    first = start(host=host, supervision={"intensity": 0}).submit(Task(request="one"))
    assert first.result(PATIENCE).ok
    assert first.follow_up("crash").result(PATIENCE).outcome is Outcome.ERROR
    assert first.follow_up("three").result(PATIENCE).ok
    assert seen == [[], ["one"]]


def test_a_follow_up_waiting_through_a_host_crash_begins_with_its_memory(start, monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL, "pykka")
    original, asked, release, seen = Agent.receive, threading.Event(), threading.Event(), []

    def crash(self, message):
        if isinstance(message, JobReturned) and self._run.assign.request == "one":
            msg = "a bug"
            raise ValueError(msg)
        original(self, message)

    async def host(request):
        seen.append(thoughts(request))
        asked.set()
        await asyncio.to_thread(release.wait, HELD)
        return {"Status": "FINISH", "Thought": request.request}

    monkeypatch.setattr(Agent, "receive", crash)
    first = start(host=FunctionModel(host), supervision={"intensity": 0}).submit(Task(request="one"))
    assert asked.wait(PATIENCE)
    second = first.follow_up("two")
    release.set()
    assert first.result(PATIENCE).ok  # its end was kept with its last step
    assert second.result(PATIENCE).ok
    assert seen == [[], ["one"]]


def test_a_follow_up_may_follow_a_plan(start):
    surface = MemoryServer(MemoryServer.window())

    def app(request):
        return {"Status": "FINISH", "Function": "append", "Args": {"control_id": "field-1", "text": request.request}}

    supervisor = start(host=[FINISH], app=app, servers=[surface])
    first = supervisor.submit(Task(request="one"))
    first.result(PATIENCE)
    plan = [PlanStep(request="a", target="memo:one"), PlanStep(request="b", target="memo:one")]
    result = first.follow_up("both", plan=plan).result(PATIENCE)
    assert result.rounds == 2
    assert [text for _, _, text in surface.effects] == ["a", "b"]


def test_usage_and_rounds_of_a_follow_up_are_its_own(start):
    first = start(host=[{"Status": "CONTINUE", "Thought": "hm"}, FINISH, FINISH]).submit(Task(request="one"))
    assert first.result(PATIENCE).usage.steps == 2
    second = first.follow_up("two").result(PATIENCE)
    assert (second.usage.steps, second.rounds) == (1, 1)


def test_a_follow_up_has_a_budget_of_its_own(start):
    first = start(host=[FINISH] * 2, budget={"task": {"model_calls": 1}}).submit(Task(request="one"))
    assert first.result(PATIENCE).ok
    assert first.follow_up("two").result(PATIENCE).ok


def test_a_question_in_a_follow_up_is_the_follow_ups(start, until):
    answers = [FINISH, {"Status": "PENDING", "Comment": "which one?"}, FINISH]
    first = start(host=answers).submit(Task(request="one"))
    first.result(PATIENCE)
    second = first.follow_up("two")
    until(second, EventName.QUESTION_ASKED)
    assert first.questions() == ()
    second.answer(second.questions()[0].id, "this one")
    assert second.result(PATIENCE).ok


def test_each_step_of_a_plan_is_a_round_of_one_host_agent(start):
    memories = []

    def host(request):
        memories.append(len(request.memory))
        return FINISH

    supervisor = start(host=host)
    handle = supervisor.submit(Task(plan=["one", "two", "three"]))
    assert handle.result(PATIENCE).rounds == 3
    assert memories == [0, 1, 2]
    assert len([agent for agent in supervisor.status().agents if agent.startswith("host/")]) == 1


def test_a_follow_up_waits_for_all_rounds_of_a_plan(start):
    go, order, begun = threading.Event(), [], threading.Event()

    def host(request):
        order.append(request.request)
        if len(order) == 1:
            begun.set()
            assert go.wait(HELD)
        return FINISH

    first = start(host=host).submit(Task(plan=["one", "two", "three"]))
    assert begun.wait(PATIENCE)
    second = first.follow_up("more")
    go.set()
    assert first.result(PATIENCE).ok
    assert second.result(PATIENCE).ok
    assert order == ["one", "two", "three", "more"]
