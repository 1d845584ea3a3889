"""Traces: one a task, from the events, in OpenTelemetry's words."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.trace import SpanKind, StatusCode

from callboard import Event, EventName, ModelAnswer, Settings, Task, ToolError, tool
from callboard.actors import observe
from callboard.actors.observe import Traces
from callboard.actors.observe._gen_ai_names import CURRENT, PREVIOUS
from callboard.config import GenAiConventions, install_command
from callboard.messages import Effect, ModelError, SettingsError
from callboard.testing import MemoryServer
from support import ASSIGN, PATIENCE

WRITE = {"function": "write", "arguments": {"control_id": "field-1", "text": "x"}}
DONE = [{"Status": "CONTINUE", "Actions": [WRITE]}, {"Status": "FINISH"}]
TRACES = {"traces": True}


@pytest.fixture
def traced(start, spans):
    """Run a task with its traces on: ``traced(Task(...), app=[...])``; the supervisor is stopped after it."""

    def run(task, **given):
        supervisor = start(observe=TRACES, **given)
        result = supervisor.submit(task).result(PATIENCE)
        supervisor.stop()
        return result

    return run


class Jamming(MemoryServer):
    """A surface with a tool that fails."""

    @tool(effect=Effect.READ)
    def jam(self, target: str) -> str:
        """Fail."""
        msg = f"{target} is jammed"
        raise ToolError(msg)


ALONE = Task(request="write x", target="memo:one")


# The shape


def test_a_task_is_one_trace(traced, spans):
    traced(Task(request="write x"), host=[ASSIGN, {"Status": "FINISH"}], app=DONE)
    assert len({span.context.trace_id for span in spans.all}) == 1


def test_two_tasks_are_two_traces(start, spans):
    with start(observe=TRACES, app=DONE) as supervisor:
        for _ in range(2):
            supervisor.submit(Task(request="write x", target="memo:one")).result(PATIENCE)
    assert len({span.context.trace_id for span in spans.all}) == 2


def test_calls_lie_in_their_phase_step_subtask_round_and_task(traced, spans):
    traced(Task(request="write x"), host=[ASSIGN, {"Status": "FINISH"}], app=DONE)
    way = ["invoke_workflow task", "invoke_agent host", "invoke_agent app", "step"]
    assert spans.path(spans.one("execute_tool")) == [*way, "action_execution", "execute_tool write"]
    (first, *_) = [span for span in spans.named("chat") if "invoke_agent app" in spans.path(span)]
    assert spans.path(first) == [*way, "llm_interaction", "chat FunctionModel"]


def test_a_lone_agents_task_has_no_round(traced, spans):
    traced(ALONE, app=DONE)
    assert spans.path(spans.one("execute_tool"))[:2] == ["invoke_workflow task", "invoke_agent app"]


def test_each_step_has_its_four_phases(traced, spans):
    traced(ALONE, app=DONE)
    for step in spans.named("step"):
        phases = [span.name for span in spans.all if spans.parent(span) is step]
        assert phases == ["data_collection", "llm_interaction", "action_execution", "memory_update"]


def test_span_lies_within_its_parent(traced, spans):
    traced(Task(request="write x"), host=[ASSIGN, {"Status": "FINISH"}], app=DONE)
    for span in spans.all:
        around = spans.parent(span)
        if around is not None:
            assert around.start_time <= span.start_time <= span.end_time <= around.end_time


def test_span_lasts_as_long_as_its_event(start, spans):
    with start(observe=TRACES, app=DONE) as supervisor:
        handle = supervisor.submit(ALONE)
        told = [event for event in handle.events() if event.name is EventName.COMMAND_ENDED]
    lasted = spans.one("execute_tool")
    assert (lasted.end_time - lasted.start_time) / 1e9 == pytest.approx(told[0].duration, abs=1e-4)


# Contents of spans


def test_a_model_call_tells_model_tokens_and_cost(traced, spans):
    answer = ModelAnswer(content={"Status": "FINISH"}, input_tokens=70, output_tokens=8, cost=0.25, model="small-2024")
    traced(ALONE, app=lambda _: answer)
    call = spans.one("chat")
    assert call.kind is SpanKind.CLIENT
    assert dict(call.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "callboard",
        "gen_ai.request.model": "FunctionModel",
        "gen_ai.response.model": "small-2024",
        "gen_ai.output.type": "json",
        "gen_ai.usage.input_tokens": 70,
        "gen_ai.usage.output_tokens": 8,
        "callboard.cost": 0.25,
    }


def test_model_span_has_the_named_models_provider(spans):
    asked = {"model": "openai:gpt-5", "answered_by": "", "input_tokens": 1, "output_tokens": 1, "cost": None}
    see_all(Traces(spans.provider), [*BEGINNING, event(EventName.MODEL_ANSWERED, duration=0.5, **asked), *END])
    call = spans.one("chat gpt-5")
    assert call.attributes["gen_ai.provider.name"] == "openai"
    assert call.attributes["gen_ai.request.model"] == call.attributes["gen_ai.response.model"] == "gpt-5"
    assert "callboard.cost" not in call.attributes


PROVIDERS = {
    "mine": {"kind": "google"},
    "ours": {"kind": "anthropic"},
    "near": {"url": "http://127.0.0.1:1"},
    "here": {"kind": "openai-compatible", "url": "http://127.0.0.1:1"},
}


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("ollama:qwen3:8b", "ollama", "qwen3:8b"),
        ("google:gemini-3", "gcp.gemini", "gemini-3"),
        ("bedrock:amazon.nova:0", "aws.bedrock", "amazon.nova:0"),
        ("openai-chat:gpt-5", "openai", "gpt-5"),
        ("mine:gemini-3", "gcp.gemini", "gemini-3"),
        ("ours:claude", "anthropic", "claude"),
        ("here:small", "here", "small"),
        ("near:org/small:q4", "near", "org/small:q4"),
        ("scripted:/home/me/day/script.yaml", "scripted", "script.yaml"),
        ("recorded:/home/me/run.jsonl?by=order", "recorded", "run.jsonl"),
        ("FunctionModel", "callboard", "FunctionModel"),
    ],
)
def test_model_span_has_the_names_of_the_conventions(spans, name, provider, model):
    asked = {"model": name, "answered_by": "", "input_tokens": 1, "output_tokens": 1, "cost": None}
    traces = Traces(spans.provider, Settings.load(providers=PROVIDERS))
    see_all(traces, [*BEGINNING, event(EventName.MODEL_ANSWERED, duration=0.5, **asked), *END])
    call = spans.one(f"chat {model}")
    assert call.attributes["gen_ai.provider.name"] == provider
    assert call.attributes["gen_ai.request.model"] == call.attributes["gen_ai.response.model"] == model


def test_a_tool_call_tells_tool_call_and_status(traced, spans):
    result = traced(ALONE, app=DONE)
    call = spans.one("execute_tool write")
    assert dict(call.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "write",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": f"{result.task_id}~1.1.0",
        "callboard.tool.status": "success",
    }


def test_an_agents_span_tells_its_address_and_run(traced, spans):
    result = traced(ALONE, app=DONE)
    agent = spans.one("invoke_agent")
    assert agent.attributes["gen_ai.agent.name"] == "app"
    assert agent.attributes["callboard.agent"] == "app/memo/one"
    assert "gen_ai.agent.id" not in agent.attributes
    assert agent.attributes["callboard.run.id"] == f"{result.task_id}~1"


def test_task_span_is_named_as_an_agent_is(traced, spans):
    traced(ALONE, app=DONE)
    task = spans.one("invoke_workflow task").attributes
    assert (task["gen_ai.operation.name"], task["gen_ai.agent.name"]) == ("invoke_workflow", "task")
    assert "gen_ai.workflow.name" not in task


def test_earlier_conventions_name_the_task_and_the_address(start, spans):
    with start(observe={**TRACES, "gen_ai_conventions": "1.41.0"}, app=DONE) as supervisor:
        supervisor.submit(ALONE).result(PATIENCE)
    task, agent = spans.one("invoke_workflow").attributes, spans.one("invoke_agent").attributes
    assert (task["gen_ai.workflow.name"], "gen_ai.agent.name" in task) == ("task", False)
    assert (agent["gen_ai.agent.id"], "callboard.agent" in agent) == ("app/memo/one", False)


def test_all_names_of_the_conventions_are_in_one_module():
    sources = {path.name: path.read_text("utf-8") for path in Path(observe.__file__).parent.glob("*.py")}
    assert [name for name, source in sources.items() if '"gen_ai.' in source] == ["_gen_ai_names.py"]
    assert get_args(GenAiConventions) == (CURRENT, PREVIOUS)


def test_a_tasks_span_tells_its_id_its_labels_and_its_outcome(traced, spans):
    result = traced(Task(request="write x", target="memo:one", labels={"order": "17"}), app=DONE)
    told = spans.one("invoke_workflow").attributes
    assert told["callboard.task.id"] == result.task_id
    assert told["callboard.label.order"] == "17"
    assert told["callboard.outcome"] == "finished"


def test_task_span_names_its_conversation_by_the_first_task(start, spans):
    with start(observe=TRACES, host=[{"Status": "FINISH"}]) as supervisor:
        first = supervisor.submit(Task(request="begin"))
        first.result(PATIENCE)
        supervisor.submit(Task(request="go on", session=first.task_id)).result(PATIENCE)
    told = [span.attributes["gen_ai.conversation.id"] for span in spans.named("invoke_workflow")]
    assert told == [first.task_id, first.task_id]


def test_moves_and_verdicts_are_events_of_their_spans(traced, spans):
    traced(ALONE, app=DONE)
    moves = [each.attributes for each in spans.one("invoke_agent").events if each.name == "state.changed"]
    assert {"callboard.source": "CONTINUE", "callboard.target": "FINISH", "callboard.by": "model"} in map(dict, moves)
    (verdict,) = [each.attributes for each in spans.named("step")[0].events if each.name == "policy.decided"]
    assert dict(verdict) == {"callboard.tool": "write", "callboard.verdict": "allow"}


def test_no_text_of_a_task_is_in_a_span(traced, spans):
    text = {"function": "write", "arguments": {"control_id": "field-1", "text": "a letter to Ada"}}
    said = {"Thought": "about Ada", "Comment": "told Ada", "Result": "Ada"}
    answers = [{"Status": "CONTINUE", "Actions": [text], **said}, {"Status": "FINISH", **said}]
    traced(Task(request="write to Ada", target="memo:one"), app=answers)
    assert [span.to_json() for span in spans.all if "Ada" in span.to_json()] == []


# Failures


def test_failed_task_has_an_error_span_with_its_type(traced, spans):
    traced(ALONE, app=[{"Status": "FAIL", "Comment": "no way"}])
    for span in (spans.one("invoke_workflow"), spans.one("invoke_agent")):
        assert span.status.status_code is StatusCode.ERROR
        assert span.attributes["error.type"] == "failed"


def test_cancelled_task_has_no_error_span(start, until, spans):
    waiting = {"Status": "PENDING", "Questions": [{"text": "go on?"}]}
    with start(observe=TRACES, app=[waiting]) as supervisor:
        handle = supervisor.submit(ALONE)
        until(handle, EventName.QUESTION_ASKED)
        handle.cancel()
        handle.result(PATIENCE)
    task = spans.one("invoke_workflow")
    assert task.attributes["callboard.outcome"] == "cancelled"
    assert task.status.status_code is StatusCode.UNSET


def test_a_tool_that_fails_is_an_error_in_its_span_alone(traced, spans):
    jams = {"function": "jam", "arguments": {}}
    surface = Jamming(MemoryServer.window())
    traced(ALONE, servers=[surface], app=[{"Status": "CONTINUE", "Actions": [jams]}, {"Status": "FINISH"}])
    call = spans.one("execute_tool")
    assert (call.status.status_code, call.attributes["error.type"]) == (StatusCode.ERROR, "tool_failure")
    assert spans.one("invoke_workflow").status.status_code is StatusCode.UNSET


def test_an_answer_that_is_sent_back_is_a_call_of_its_own(traced, spans):
    traced(ALONE, app=[{"Status": "NONSENSE"}, {"Status": "FINISH"}])
    first, second = spans.named("chat")
    assert (first.status.status_code, first.attributes["error.type"]) == (StatusCode.ERROR, "invalid_answer")
    assert second.status.status_code is StatusCode.UNSET


def test_a_model_that_gives_no_answer_is_an_error_in_call_phase_and_step(traced, spans):
    def down(_):
        msg = "the provider is down"
        raise ModelError(msg)

    traced(ALONE, app=down)
    call, phase, step = spans.one("chat"), spans.one("llm_interaction"), spans.one("step")
    assert {span.status.status_code for span in (call, phase, step)} == {StatusCode.ERROR}
    assert call.attributes["error.type"] == "no_answer"
    assert "the provider is down" in call.status.description


def test_a_call_that_is_broken_off_ends_as_an_error(start, spans):
    asked = threading.Event()

    async def never(_):
        asked.set()
        await asyncio.Event().wait()

    with start(observe=TRACES, app=never) as supervisor:
        handle = supervisor.submit(ALONE)
        assert asked.wait(PATIENCE)
        handle.cancel()
        handle.result(PATIENCE)
    assert spans.one("chat").attributes["error.type"] == "no_answer"


def test_secret_is_removed_from_failures_in_spans(traced, spans):
    def down(_):
        msg = "refused: key hunter2-hunter2"
        raise ModelError(msg)

    traced(ALONE, app=down, secrets={"key": "hunter2-hunter2"})
    assert "hunter2" not in "".join(span.to_json() for span in spans.all)


# The host program


def test_a_task_is_linked_to_the_span_in_which_it_was_submitted(start, spans):
    with (
        start(observe=TRACES, app=DONE) as supervisor,
        spans.provider.get_tracer("mine").start_as_current_span("order"),
    ):
        supervisor.submit(ALONE).result(PATIENCE)
    task = spans.one("invoke_workflow")
    assert [link.context.span_id for link in task.links] == [spans.one("order").context.span_id]
    assert task.parent is None


def test_untraced_task_has_no_link(traced, spans):
    traced(ALONE, app=DONE)
    assert spans.one("invoke_workflow").links == ()


def test_a_provider_of_ones_own_is_a_subscribers_matter(start, spans, monkeypatch):
    monkeypatch.undo()
    with start(app=DONE) as supervisor:
        supervisor.subscribe(Traces(spans.provider))
        supervisor.submit(ALONE).result(PATIENCE)
    assert len(spans.named("invoke_workflow")) == 1


def test_without_the_setting_there_are_no_spans(start, spans):
    with start(app=DONE) as supervisor:
        supervisor.submit(ALONE).result(PATIENCE)
    assert spans.all == []


def test_without_the_extra_the_setting_is_refused_with_the_way_to_get_it(start, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(SettingsError, match=re.escape(install_command("otel"))):
        start(observe=TRACES)


def test_an_exporter_that_fails_stops_nothing(start, spans, caplog):
    def fail(_):
        msg = "no network"
        raise OSError(msg)

    spans.exporter.export = fail
    with start(observe=TRACES, app=DONE) as supervisor:
        assert supervisor.submit(ALONE).result(PATIENCE).ok
    assert "no network" in caplog.text


# Ends and beginnings


def test_a_suspended_task_ends_its_trace_and_begins_another_on_resume(start, until, spans, tmp_path):
    journal = {"path": tmp_path / "journal.db"}
    waiting = {"Status": "PENDING", "Questions": [{"text": "go on?"}]}
    with start(observe=TRACES, journal=journal, app=[waiting]) as supervisor:
        handle = supervisor.submit(ALONE)
        until(handle, EventName.QUESTION_ASKED)
    (before,) = spans.named("invoke_workflow")
    assert "callboard.outcome" not in before.attributes
    with start(observe=TRACES, journal=journal, app=[waiting, {"Status": "FINISH"}]) as supervisor:
        handle = supervisor.handle(ALONE.id)
        handle.answer(handle.questions()[0].id, "yes")
        handle.result(PATIENCE)
    (_, after) = spans.named("invoke_workflow")
    assert after.attributes["callboard.task.recovered"]
    assert after.attributes["callboard.task.id"] == before.attributes["callboard.task.id"]
    assert after.attributes["callboard.outcome"] == "finished"


AT = 1000.0


def event(
    name, seq=1, at=AT, task_id="t", run_id="t~1", agent="app/memo/one", step=None, phase="", duration=None, **data
):
    return Event(
        seq=seq,
        at=at,
        name=name,
        task_id=task_id,
        run_id=run_id,
        agent=agent,
        step=step,
        phase=phase,
        duration=duration,
        data=data,
    )


BEGINNING = [
    event(EventName.TASK_SUBMITTED, run_id="", agent="", labels={}),
    event(EventName.SUBTASK_ASSIGNED),
    event(EventName.STEP_STARTED, step=1),
]
PHASE = event(EventName.PHASE_ENDED, at=AT + 1, phase="action_execution", duration=0.5)
CALL = event(
    EventName.COMMAND_ENDED,
    at=AT + 1,
    duration=0.1,
    call="t~1.1.0",
    tool="write",
    type="action",
    status="success",
    error="",
)
END = [
    event(EventName.SUBTASK_ENDED, at=AT + 2, outcome="finished", causes=[]),
    event(EventName.TASK_ENDED, at=AT + 2, outcome="finished", causes=[]),
]


def see_all(traces, events):
    for each in events:
        traces.see(each)


def test_a_call_whose_phase_a_crash_took_lies_in_its_step(spans):
    crash = event(EventName.AGENT_CRASHED, task_id="", run_id="", at=AT + 1.5, causes=["KeyError: 'x'"], restart=0.1)
    see_all(Traces(spans.provider), [*BEGINNING, CALL, crash, *END])
    assert spans.path(spans.one("execute_tool"))[-2:] == ["step", "execute_tool write"]
    step = spans.one("step")
    assert (step.status.status_code, step.status.description) == (StatusCode.ERROR, "KeyError: 'x'")
    assert [each.name for each in spans.one("invoke_agent").events] == ["agent.crashed"]


@pytest.mark.parametrize("separator", ["~", "/"], ids=["now", "earlier journals"])
def test_the_span_of_a_subtask_lies_in_that_of_its_host(spans, separator):
    host = event(EventName.SUBTASK_ASSIGNED, run_id=f"t{separator}0", agent="host/t")
    subtask = event(EventName.SUBTASK_ASSIGNED, run_id=f"t{separator}1")
    see_all(Traces(spans.provider), [BEGINNING[0], host, subtask, END[-1]])
    agents = {each.attributes["gen_ai.agent.name"]: each for each in spans.named("invoke_agent")}
    assert agents["app"].parent.span_id == agents["host"].context.span_id


def test_a_clock_that_is_set_back_makes_no_span_that_ends_before_it_begins(spans):
    early = PHASE.model_copy(update={"at": AT - 100})
    see_all(Traces(spans.provider), [*BEGINNING, CALL.model_copy(update={"at": AT - 101}), early, *END])
    assert all(span.start_time <= span.end_time for span in spans.all)


def test_missed_events_are_in_every_trace(spans):
    missed = event(EventName.EVENTS_MISSED, task_id="", run_id="", agent="", count=7)
    see_all(Traces(spans.provider), [*BEGINNING, missed, *END])
    told = [each for each in spans.one("invoke_workflow").events if each.name == "events.missed"]
    assert [each.attributes["callboard.count"] for each in told] == [7]


EVERY = [
    *BEGINNING,
    CALL,
    PHASE,
    event(EventName.STATE_CHANGED, source="A", target="B", by="model"),
    event(EventName.STEP_ENDED, step=1, status="FINISH"),
    event(EventName.STEP_FAILED, step=1, causes=["no"]),
    event(EventName.RUN_RECOVERED, steps=1, broken_off=True),
    event(EventName.TASK_RECOVERED, run_id="", agent="", runs=1),
    event(EventName.AGENT_CRASHED, task_id="", run_id="", causes=[], restart=None),
    event(EventName.MODEL_FAILED, duration=0.5, model="m", error="no"),
    *END,
]


@settings(max_examples=200)
@given(chosen=st.lists(st.sampled_from(EVERY), max_size=25))
def test_every_span_ends_whatever_events_are_missing_or_late(spans, chosen):
    spans.exporter.clear()
    traces = Traces(spans.provider)
    see_all(traces, [*chosen, event(EventName.SUPERVISOR_STOPPED, task_id="", run_id="", agent="", at=AT + 3, left=[])])
    known = {span.context.span_id for span in spans.all}
    assert all(span.parent is None or span.parent.span_id in known for span in spans.all)


def test_many_tasks_at_a_time_are_not_mixed_up(start, spans):
    windows = [MemoryServer.window(f"w{number}") for number in range(5)]
    with start(observe=TRACES, servers=[MemoryServer(*windows)], app=DONE) as supervisor:
        handles = [supervisor.submit(Task(request="write x", target=window.id)) for window in windows]
        for handle in handles:
            handle.result(PATIENCE)
    for call in spans.named("execute_tool"):
        task = next(span for span in spans.named("invoke_workflow") if span.context.trace_id == call.context.trace_id)
        assert call.attributes["gen_ai.tool.call.id"].startswith(f"{task.attributes['callboard.task.id']}~")


def test_the_settings_are_off_by_default():
    observe = Settings.load().observe
    assert (observe.traces, observe.metrics) == (False, False)
