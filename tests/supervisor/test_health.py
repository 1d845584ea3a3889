"""The health of a supervisor, and the progress of its tasks."""

from __future__ import annotations

import threading
import time

import pytest

from callboard import EventName, FunctionModel, PlanStep, Task
from callboard.actors.agent import Agent
from callboard.actors.root import CloseIntake, Root
from callboard.messages import SupervisorStoppedError, TaskProgress, WouldDeadlockError
from support import ASK, ASSIGN, FINISH, HELD, PATIENCE, append, lone


def test_a_healthy_supervisor_names_its_journal_and_servers(start, begin):
    healthy = start().health()
    assert (healthy.ok, healthy.accepting, healthy.journal) == (True, True, "memory")
    assert [(server.name, server.state) for server in healthy.servers] == [("memory", "ready")]
    assert begin().health().journal == "ok"


def test_work_and_waits_are_counted(start, until):
    supervisor = start(app=[ASK])
    first = supervisor.submit(lone())
    until(first, EventName.QUESTION_ASKED)
    until(supervisor.submit(lone()), EventName.SUBTASK_QUEUED)
    health = supervisor.health()
    assert (health.tasks, health.running, health.queued, health.requests) == (2, 1, 1, 1)


def test_targets_in_use_and_those_who_wait_are_listed(start, until):
    supervisor = start(app=[ASK])
    until(supervisor.submit(lone()), EventName.QUESTION_ASKED)
    until(supervisor.submit(lone()), EventName.SUBTASK_QUEUED)
    (lease,) = supervisor.health().leases
    assert (lease.group, lease.agent, lease.waiting) == ("app/memo/one", "app/memo/one", ("app/memo/one",))


def test_agents_that_crashed_are_counted_with_their_error(start, monkeypatch):
    receive = Agent.receive

    def crash_once(agent, message):
        if type(message).__name__ != "JobReturned":
            return receive(agent, message)
        monkeypatch.setattr(Agent, "receive", receive)
        raise ZeroDivisionError

    monkeypatch.setattr(Agent, "receive", crash_once)
    supervisor = start(app=lambda _request: FINISH)
    assert supervisor.submit(lone()).result(PATIENCE).ok
    (agent,) = supervisor.health().crashed_agents
    assert (agent.crashes, agent.error) == (1, "ZeroDivisionError")


def test_daily_budgets_are_shown_with_their_usage(start):
    daily = [{"steps": 7}, {"labels": {"project": "invoices"}, "tokens": 500, "cost": 2.5}]
    supervisor = start(app=[FINISH], budget={"daily": daily})
    assert supervisor.submit(lone()).result(PATIENCE).ok
    everyone, invoices = supervisor.health().budgets
    assert (everyone.labels, everyone.limits, everyone.used) == ({}, {"steps": 7}, {"steps": 1})
    assert (invoices.limits, invoices.used) == ({"tokens": 500, "cost": 2.5}, {"tokens": 0, "cost": 0})


def test_a_stopped_supervisor_accepts_nothing(start):
    supervisor = start()
    supervisor.stop()
    health = supervisor.health()
    assert (health.ok, health.accepting, health.blocked_threads) == (False, False, ())


def test_blocked_loop_is_named_until_it_is_free(start):
    release = threading.Event()

    async def blocks(_request):
        release.wait(HELD)
        return append("x", "FINISH")

    supervisor = start(app=FunctionModel(blocks), supervision={"hung_seconds": 0.2})
    handle = supervisor.submit(lone())
    _wait_for(lambda: supervisor.health().blocked_threads == ("callboard-loop",))
    assert not supervisor.health().ok
    release.set()
    assert handle.result(PATIENCE).ok
    _wait_for(lambda: supervisor.health().ok)


def test_a_root_that_does_not_answer_is_named(start, monkeypatch):
    supervisor = start()
    began, release = threading.Event(), threading.Event()

    def block(_root):
        began.set()
        release.wait(HELD)

    monkeypatch.setattr(Root, "_close_intake", block)
    stopping = threading.Thread(target=supervisor._assembly.client.ask, args=[CloseIntake()])
    stopping.start()
    assert began.wait(PATIENCE)
    health = supervisor.health(timeout=0.1)
    release.set()
    stopping.join(PATIENCE)
    assert (health.ok, health.blocked_threads) == (False, ("callboard-root",))


def test_a_model_must_not_ask_for_the_health(start):
    refused = []

    async def model(_request):
        try:
            supervisor.health()
        except WouldDeadlockError as error:
            refused.append(error)
        return append("x", "FINISH")

    supervisor = start(app=FunctionModel(model))
    assert supervisor.submit(lone()).result(PATIENCE).ok
    assert len(refused) == 1


def test_an_mcp_server_that_is_left_out_has_its_reason(start):
    server = {"command": "no-such-program", "optional": True}
    (_, left_out) = start(mcpServers={"mail": server}).health().servers
    assert (left_out.name, left_out.state) == ("mail", "left_out")
    assert "no-such-program" in left_out.reason


def test_progress_counts_rounds_subtasks_and_steps(start, until):
    supervisor = start(host=[ASSIGN, FINISH], app=[{**append("x"), "Plan": ["write", "check"]}, ASK])
    handle = supervisor.submit(Task(request="x"))
    until(handle, EventName.QUESTION_ASKED)
    progress = handle.progress()
    expected = {"rounds": 1, "running_subtasks": 1, "steps": 3, "planned_steps": 2}
    assert progress == TaskProgress(task_id=handle.task_id, **expected)
    handle.cancel()
    assert handle.result(PATIENCE)
    over = handle.progress()
    assert (over.over, over.rounds, over.ended_subtasks, over.running_subtasks) == (True, 1, 1, 0)
    assert over.steps == handle.result().usage.steps


def test_progress_of_a_plan_has_the_number_of_its_rounds(start, until):
    plan = [PlanStep(request="one", target="memo:one"), PlanStep(request="two", target="memo:one")]
    supervisor = start(app=lambda request: ASK if request.request == "two" else append("x", "FINISH"))
    handle = supervisor.submit(Task(plan=plan))
    until(handle, EventName.QUESTION_ASKED)
    progress = handle.progress()
    assert (progress.rounds, progress.planned_rounds, progress.ended_subtasks) == (2, 2, 1)


def test_progress_continues_after_a_restart(begin, until):
    before = begin(app=[{**append("x"), "Plan": ["write", "check"]}, ASK])
    handle = before.submit(lone())
    until(handle, EventName.QUESTION_ASKED)
    known = handle.progress()
    before.stop()
    with pytest.raises(SupervisorStoppedError):
        handle.progress()
    after = begin(app=[ASK]).handle(handle.task_id)
    until(after, EventName.RUN_RECOVERED)
    assert after.progress() == known
    assert (known.rounds, known.steps, known.planned_steps) == (1, 2, 2)


def test_a_queued_task_shows_that_it_waits(start, until):
    supervisor = start(app=[ASK])
    until(supervisor.submit(lone()), EventName.QUESTION_ASKED)
    queued = supervisor.submit(lone())
    assert queued.progress().waiting_subtasks == 1


def _wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
