"""Runs of AG-UI: the events that a front end gets."""

from __future__ import annotations

import copy
import threading

import pytest

from callboard.agui import _run_stream
from callboard.messages import Outcome
from callboard.testing import MemoryServer
from support import ASK, ASSIGN, FINISH, PATIENCE, append, wait_for

HERE = {"forwarded_props": {"callboard": {"target": "memo:one"}}}
THERE = {"forwarded_props": {"callboard": {"target": "memo:two"}}}


def state_of(events):
    """Apply the snapshots and deltas of the state."""
    state = {}
    for event in events:
        if event.type.value == "STATE_SNAPSHOT":
            state = copy.deepcopy(event.snapshot)
        elif event.type.value == "STATE_DELTA":
            for change in event.delta:
                *parents, key = change.path.strip("/").split("/")
                part = state
                for parent in parents:
                    part = part[parent]
                assert (change.op == "replace") == (key in part)
                part[key] = change.value
    return state["callboard"]


def texts(events):
    """List the texts of messages."""
    return [event.delta for event in events if event.type.value == "TEXT_MESSAGE_CONTENT"]


async def test_run_tells_steps_calls_texts_state_and_the_result(front):
    office = front(host=[ASSIGN, {**FINISH, "Result": 4}], app=[append("x", "FINISH") | {"Comment": "written"}])
    events = await office.run("write x")
    started, finished = events[0], events[-1]
    assert (started.thread_id, started.run_id, started.protocol_version) == ("t1", "r1", "1.0")
    assert finished.outcome.type == "success"
    assert (finished.result["outcome"], finished.result["others_texts"]["output"]) == ("finished", 4)
    (call,) = [event for event in events if event.type.value == "TOOL_CALL_START"]
    (result,) = [event for event in events if event.type.value == "TOOL_CALL_RESULT"]
    assert (call.tool_call_name, result.tool_call_id, result.content) == ("append", call.tool_call_id, "success")
    assert {event.step_name for event in events if event.type.value == "STEP_STARTED"} == {
        event.step_name for event in events if event.type.value == "STEP_FINISHED"
    }
    assert "written" in texts(events)
    assert texts(events)[-1] == "finished, and not verified: it has no checks.\n\n4"
    state = state_of(events)
    assert (state["request"], state["status"]) == ("write x", "finished")
    assert [part["status"] for part in state["subtasks"].values()] == ["finished"]


async def test_run_names_a_target_and_may_be_dry(front):
    office = front(app=lambda _: append("x", "FINISH"))
    options = {"forwarded_props": {"callboard": {"target": "memo:one", "dry_run": True}}}
    events = await office.run("write x", **options)
    assert (events[-1].outcome.type, events[-1].result["dry_run"]) == ("success", True)


@pytest.mark.parametrize(
    ("answer", "outcome"), [({"Status": "FAIL", "Comment": "no such cell"}, Outcome.FAILED), ("?", Outcome.ERROR)]
)
async def test_task_that_did_not_finish_is_an_error(front, answer, outcome):
    office = front(app=lambda _: answer)
    error = (await office.run("write x", **HERE))[-1]
    assert (error.type.value, error.code) == ("RUN_ERROR", outcome.value)
    assert error.message


async def test_same_run_is_the_same_task_also_at_once_and_after_a_restart(front, begin):
    office = front(app=[append("x", "FINISH")])
    first = await office.run("write x", **HERE)
    task_id = state_of(first)["taskId"]
    assert state_of(await office.run("write x", **HERE))["taskId"] == task_id
    office.supervisor.stop()
    later = front(begin(app=[append("x", "FINISH")]))
    again = await later.run("write x", **HERE)
    assert (state_of(again)["taskId"], again[-1].result["actions"]) == (task_id, 1)
    assert len(later.supervisor.targets()) == 1
    assert state_of(await later.run(None))["taskId"] == task_id
    changed = (await later.run("write y", **HERE))[-1]
    assert (changed.type.value, changed.code) == ("RUN_ERROR", "run_id_used")


async def test_lost_connection_leaves_the_task_at_work(front):
    office = front(app=lambda request: ASK if request.call == 1 else append("x", "FINISH"))
    async with office.begun("write x", **HERE) as lines:
        async for line in lines:
            if "STATE_SNAPSHOT" in line:
                break
    (handle,) = office.supervisor.pending()
    (question,) = wait_for(handle.questions)
    handle.answer(question.id, "this one")
    assert handle.result(PATIENCE).ok
    assert (await office.run("write x", **HERE))[-1].outcome.type == "success"


async def test_further_run_of_a_thread_waits_for_its_open_task(front):
    office = front(app=lambda _: ASK, servers=[MemoryServer(*map(MemoryServer.window, ("one", "two")))])
    waiting = await office.run("write x", **HERE)
    assert waiting[-1].outcome.type == "interrupt"
    assert (await office.run("write y", "r2", **HERE))[-1].code == "interrupts_pending"
    assert (await office.run("write y", "r2", "t2", **THERE))[-1].outcome.type == "interrupt"
    assert (await office.post({"threadId": "t1"}, "/cancel")).json() == {"cancelled": True}
    assert (await office.post({"threadId": "t1"}, "/cancel")).json() == {"cancelled": False}
    cancelled = await office.run("write x", **HERE)
    assert (cancelled[-1].type.value, cancelled[-1].outcome.type) == ("RUN_FINISHED", "cancelled")
    assert (await office.run("write y", "r3", **HERE))[-1].outcome.type == "interrupt"


async def test_next_run_of_a_thread_continues_its_conversation(front):
    office = front(host=lambda request: {**FINISH, "Result": len(request.memory)})
    first = await office.run("one")
    second = await office.run("two", "r2")
    sessions = {office.supervisor.handle(state_of(events)["taskId"]).session for events in (first, second)}
    assert (len(sessions), second[-1].result["others_texts"]["output"]) == (1, 1)


async def test_texts_are_redacted_and_cut(front):
    office = front(
        app=lambda _: {**FINISH, "Comment": "the code is hunter2hunter2", "Result": "y" * 90_000},
        secrets={"code": "hunter2hunter2"},
    )
    response = await office.post(
        {"threadId": "t1", "runId": "r1", "messages": [{"id": "m", "role": "user", "content": "say hunter2hunter2"}],
         "forwardedProps": HERE["forwarded_props"]}
    )  # fmt: skip
    assert "hunter2hunter2" not in response.text
    assert "${secret:code}" in response.text
    assert len(response.text) < 60_000


async def test_sign_out_ends_a_stream_and_not_the_task(front, monkeypatch):
    monkeypatch.setattr(_run_stream, "IDLE_SECONDS", 0.02)
    monkeypatch.setattr(_run_stream, "_QUIET_LOOKS", 1)
    names_in_turn = iter(["ann", "ann"])
    released = threading.Event()

    def app(_request):
        released.wait(PATIENCE)
        return FINISH

    office = front(app=app, person=lambda _: next(names_in_turn, None))
    events = await office.run("write x", **HERE)
    assert (events[-1].type.value, events[-1].code) == ("RUN_ERROR", "signed_out")
    (handle,) = office.supervisor.pending()
    released.set()
    assert handle.result(PATIENCE).ok
