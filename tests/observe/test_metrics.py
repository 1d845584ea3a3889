"""The metrics: counts of events, in Prometheus' text format."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from callboard import Event, EventName, ModelAnswer, Outcome, Task
from callboard.actors.agent import Agent
from callboard.actors.observe import Metrics
from callboard.actors.observe._metrics import COUNTERS, GAUGES, HISTOGRAMS
from callboard.config import install_command
from callboard.messages import ModelError, SettingsError, Usage
from callboard.testing import MemoryServer
from support import PATIENCE

WRITE = {"function": "write", "arguments": {"control_id": "field-1", "text": "x"}}
DONE = [{"Status": "CONTINUE", "Actions": [WRITE]}, {"Status": "FINISH"}]
WAITING = {"Status": "PENDING", "Questions": [{"text": "go on?"}]}
COUNTED = {"metrics": True}


@pytest.fixture
def counted(start, read):
    """Run one task that works on the window, and give the counts."""

    def run(task=None, **given):
        supervisor = start(observe=COUNTED, **given)
        supervisor.submit(task or Task(request="write x", target="memo:one")).result(PATIENCE)
        return read(supervisor.metrics())

    return run


def test_a_task_is_counted_by_its_outcome(counted):
    counts = counted(app=DONE)
    assert counts["callboard_tasks_submitted_total",] == 1
    assert counts["callboard_tasks_total", "finished"] == 1
    assert counts["callboard_task_seconds_count",] == 1
    assert counts["callboard_tasks_running",] == 0


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_is_there_before_it_happens(start, read, outcome):
    assert read(start(observe=COUNTED).metrics())["callboard_tasks_total", outcome.value] == 0


def test_subtasks_steps_and_phases_are_counted_by_kind_of_agent(counted):
    counts = counted(app=DONE)
    assert counts["callboard_subtasks_total", "app", "finished"] == 1
    assert counts["callboard_steps_total", "app"] == 2
    assert counts["callboard_step_seconds_count", "app"] == 2
    assert counts["callboard_phase_seconds_count", "app", "llm_interaction"] == 2


def test_model_calls_tokens_and_cost_are_counted_by_model(counted):
    answer = ModelAnswer(content={"Status": "FINISH"}, input_tokens=70, output_tokens=8, cost=0.25)
    counts = counted(app=lambda _: answer)
    assert counts["callboard_model_calls_total", "app", "FunctionModel", "answered"] == 1
    assert counts["callboard_model_tokens_total", "app", "input", "FunctionModel"] == 70
    assert counts["callboard_model_tokens_total", "app", "output", "FunctionModel"] == 8
    assert counts["callboard_model_cost_total", "app", "FunctionModel"] == 0.25
    assert ("callboard_model_calls_unpriced_total", "app", "FunctionModel") not in counts


def test_tokens_and_cost_of_a_call_without_an_answer_are_counted(counted):
    def app(_):
        msg = "no"
        raise ModelError(msg, Usage(input_tokens=70, output_tokens=8, cost=0.25))

    counts = counted(app=app)
    assert counts["callboard_model_calls_total", "app", "FunctionModel", "failed"] == 1
    assert counts["callboard_model_tokens_total", "app", "input", "FunctionModel"] == 70
    assert counts["callboard_model_cost_total", "app", "FunctionModel"] == 0.25


def test_an_unknown_price_is_counted_and_is_not_nothing(counted):
    counts = counted(app=[{"Status": "FINISH"}])
    assert counts["callboard_model_calls_unpriced_total", "app", "FunctionModel"] == 1
    assert ("callboard_model_cost_total", "app", "FunctionModel") not in counts


def test_answers_that_were_sent_back_are_counted_apart(counted):
    counts = counted(app=[{"Status": "NONSENSE"}, {"Status": "FINISH"}])
    assert counts["callboard_model_calls_total", "app", "FunctionModel", "sent_back"] == 1
    assert counts["callboard_model_calls_total", "app", "FunctionModel", "answered"] == 1


def test_calls_without_an_answer_are_counted_apart(counted):
    def down(_):
        msg = "the provider is down"
        raise ModelError(msg)

    counts = counted(app=down)
    assert counts["callboard_model_calls_total", "app", "FunctionModel", "failed"] == 1
    assert counts["callboard_steps_failed_total", "app"] == 1
    assert counts["callboard_tasks_total", "error"] == 1


def test_tool_calls_are_counted_by_tool_and_status(counted):
    counts = counted(app=DONE)
    assert counts["callboard_tool_calls_total", "success", "write"] == 1
    assert counts["callboard_tool_call_seconds_count", "write"] == 1
    assert counts["callboard_policy_verdicts_total", "allow"] == 1


@pytest.mark.parametrize(("approved", "word"), [(True, "approved"), (False, "rejected")])
def test_approvals_are_counted_by_their_answers_and_while_they_are_open(start, until, read, approved, word):
    rules = [{"tool": "write", "verdict": "approve"}]
    supervisor = start(observe=COUNTED, app=DONE, policy=rules)
    handle = supervisor.submit(Task(request="write x", target="memo:one"))
    until(handle, EventName.APPROVAL_REQUESTED)
    assert read(supervisor.metrics())["callboard_approvals_open",] == 1
    (request,) = handle.approvals()
    if approved:
        handle.approve(request.id)
    else:
        handle.reject(request.id)
    handle.result(PATIENCE)
    counts = read(supervisor.metrics())
    assert counts["callboard_approvals_total", word] == 1
    assert counts["callboard_approvals_open",] == 0


def test_an_approval_that_is_withdrawn_is_counted_so(start, until, read):
    supervisor = start(observe=COUNTED, app=DONE, policy=[{"tool": "write", "verdict": "approve"}])
    handle = supervisor.submit(Task(request="write x", target="memo:one"))
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.cancel()
    handle.result(PATIENCE)
    assert read(supervisor.metrics())["callboard_approvals_total", "withdrawn"] == 1


def test_gauges_count_running_waiting_and_asking_work_now(start, until, read):
    supervisor = start(observe=COUNTED, app=[WAITING, {"Status": "FINISH"}])
    first, second = (supervisor.submit(Task(request="write x", target="memo:one")) for _ in range(2))
    until(first, EventName.QUESTION_ASKED)
    until(second, EventName.SUBTASK_QUEUED)
    counts = read(supervisor.metrics())
    assert [counts[f"callboard_{name}",] for name in ("tasks_running", "subtasks_queued", "questions_open")] == [
        2,
        1,
        1,
    ]
    for handle in (second, first):
        handle.cancel()
        handle.result(PATIENCE)
    counts = read(supervisor.metrics())
    assert [counts[f"callboard_{name}",] for name in GAUGES] == [0] * len(GAUGES)


def test_a_crash_is_counted(start, read, monkeypatch):
    supervisor = start(observe=COUNTED, app=[{"Status": "FINISH"}])

    def crash_once(_agent, _message):
        monkeypatch.undo()
        raise ZeroDivisionError

    monkeypatch.setattr(Agent, "receive", crash_once)
    supervisor.submit(Task(request="write x", target="memo:one")).result(PATIENCE)
    assert read(supervisor.metrics())["callboard_agent_crashes_total", "app"] == 1


def test_an_answer_of_before_a_crash_is_not_counted_again(read):
    metrics = Metrics()
    taken = {"model": "m", "answered_by": "", "input_tokens": 1, "output_tokens": 1, "cost": 1.0}
    for duration in (0.5, None):
        answered = EventName.MODEL_ANSWERED
        metrics.see(Event(seq=1, at=0.0, name=answered, agent="app/memo/one", duration=duration, data=taken))
    counts = read(metrics.text())
    assert counts["callboard_model_calls_total", "app", "m", "answered"] == 1
    assert counts["callboard_model_cost_total", "app", "m"] == 1


def test_no_event_is_lost_when_many_tasks_run(start, read):
    windows = [MemoryServer.window(f"w{number}") for number in range(10)]
    supervisor = start(observe=COUNTED, servers=[MemoryServer(*windows)], app=DONE, events={"queue": 1})
    handles = [supervisor.submit(Task(request="write x", target=window.id)) for window in windows]
    for handle in handles:
        handle.result(PATIENCE)
    counts = read(supervisor.metrics())
    assert counts["callboard_steps_total", "app"] == 20
    assert counts["callboard_tool_calls_total", "success", "write"] == 10


def test_two_supervisors_count_for_themselves(start, read):
    one, other = start(observe=COUNTED, app=DONE), start(observe=COUNTED, app=DONE)
    one.submit(Task(request="write x", target="memo:one")).result(PATIENCE)
    assert read(one.metrics())["callboard_tasks_total", "finished"] == 1
    assert read(other.metrics())["callboard_tasks_total", "finished"] == 0


def test_the_text_is_read_from_any_thread(start):
    supervisor = start(observe=COUNTED, app=DONE)
    with ThreadPoolExecutor(4) as pool:
        texts = pool.map(lambda _: supervisor.metrics(), range(20))
        supervisor.submit(Task(request="write x", target="memo:one")).result(PATIENCE)
        assert all("callboard_tasks_running" in text for text in texts)


def test_the_text_stays_when_the_supervisor_is_stopped(start, read):
    supervisor = start(observe=COUNTED, app=DONE)
    supervisor.submit(Task(request="write x", target="memo:one")).result(PATIENCE)
    supervisor.stop()
    assert read(supervisor.metrics())["callboard_tasks_total", "finished"] == 1


def test_everything_that_is_counted_is_in_the_text(start):
    text = start(observe=COUNTED).metrics()
    names = [*(f"{name}_total" for name in COUNTERS), *HISTOGRAMS, *GAUGES]
    assert [name for name in names if f"# HELP callboard_{name} " not in text] == []


def test_without_the_setting_nothing_is_counted(start):
    with pytest.raises(SettingsError, match=r"observe\.metrics is off"):
        start().metrics()


def test_without_the_extra_the_setting_is_refused_with_the_way_to_get_it(start, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(SettingsError, match=re.escape(install_command("prometheus"))):
        start(observe=COUNTED)
