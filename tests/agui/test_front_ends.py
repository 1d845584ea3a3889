"""The application of AG-UI: requests that it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses

import httpx2
import pytest
from ag_ui.core import ResumeEntry, RunAgentInput, UserMessage

from callboard.agui import _front_ends, _thread_tasks, app
from callboard.errors import SettingsError
from callboard.network import AGENTS_PROXY
from callboard.testing import MemoryServer
from support import ASK, FINISH, append

HERE = {"forwarded_props": {"callboard": {"target": "memo:one"}}}
RULES = [{"verdict": "approve", "tool": "append"}]


def run_of(text="write x", **fields):
    """Make the body of a run."""
    given = {"thread_id": "t1", "run_id": "r1", "messages": [UserMessage(id="m", content=text)], **HERE, **fields}
    return RunAgentInput(**given).model_dump(by_alias=True, mode="json")


def origin_of(office):
    """Return the origin of the program's own pages."""
    return office.url.removesuffix("/agui")


async def test_no_person_no_task(front):
    office = front(app=lambda _: FINISH)
    stranger = dataclasses.replace(office, session="none")
    for path, body in (("/", run_of()), ("/cancel", {"threadId": "t1"})):
        assert (await stranger.post(body, path)).status_code == 401
    assert office.supervisor.status().ended_tasks == 0


async def test_request_from_elsewhere_is_refused_with_a_sign_in_too(front):
    office = front(app=lambda _: FINISH, hosts=["127.0.0.1"])
    assert (await office.post(run_of())).status_code == 421
    office.supervisor.stop()
    office = front(app=lambda _: FINISH)
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": f"{origin_of(office)}.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": origin_of(office)},
        {"via": f"1.1 {AGENTS_PROXY}"},
    ):
        for path, body in (("/", run_of()), ("/cancel", {"threadId": "t1"})):
            assert (await office.post(body, path, **headers)).status_code == 403
    assert office.supervisor.status().ended_tasks == 0
    same = {"origin": origin_of(office), "sec-fetch-site": "same-origin"}
    assert (await office.post(run_of(), **same)).status_code == 200


async def test_pages_of_a_named_origin_may_call(front):
    office = front(app=lambda _: FINISH, origins=["https://Office.example"])
    page = {"origin": "https://office.example", "sec-fetch-site": "cross-site"}
    assert (await office.post(run_of(), **page)).status_code == 200
    assert (await office.post(run_of(), **page | {"origin": "https://office.example.evil"})).status_code == 403


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (run_of(), {"content-type": "text/plain"}, 415),
        (run_of("x" * 1_100_000), {}, 413),
        (b"[" * 200_000, {}, 400),
        (b"[]", {}, 400),
        (b"", {}, 400),
        (run_of("a \ud800 b"), {}, 400),
        ({"threadId": "t1"}, {}, 422),
        (run_of() | {"runId": ""}, {}, 422),
        (run_of() | {"threadId": "t" * 201}, {}, 422),
        (run_of() | {"messages": [{"role": "user"}]}, {}, 422),
        (run_of() | {"resume": [{"interruptId": "x", "status": "approved"}]}, {}, 422),
    ],
)
async def test_malformed_request_is_refused_before_a_run(front, body, headers, status):
    office = front(app=lambda _: FINISH)
    assert (await office.post(body, **headers)).status_code == status
    assert office.supervisor.status().ended_tasks == 0


@pytest.mark.parametrize(
    "change",
    [
        {"messages": []},
        {"messages": [{"id": "m", "role": "assistant", "content": "write x"}]},
        {"messages": [{"id": "m", "role": "system", "content": "write x"}]},
        {"messages": [{"id": "m", "role": "user", "content": " "}]},
        {"messages": [{"id": "m", "role": "user", "content": "x" * 20_001}]},
        {"messages": [{"id": "m", "role": "user", "content": [{"type": "image", "source": {"type": "url", "value": "https://x"}}]}]},
        {"forwardedProps": {"callboard": {"labels": {"mcp_caller": "ann"}}}},
        {"forwardedProps": {"callboard": {"policy": []}}},
        {"forwardedProps": {"callboard": {"target": 1}}},
        {"forwardedProps": {"callboard": "x"}},
    ],
)  # fmt: skip
async def test_run_without_a_fitting_request_is_an_error(front, change):
    office = front(app=lambda _: FINISH)
    response = await office.post(run_of() | change)
    assert '"code": "invalid_input"' in response.text
    assert office.supervisor.status().ended_tasks == 0


async def test_unknown_target_is_an_error_with_its_name(front):
    office = front(app=lambda _: FINISH)
    error = (await office.run("x", forwarded_props={"callboard": {"target": "memo:nine"}}))[-1]
    assert (error.code, "memo:nine" in error.message) == ("refused", True)


async def test_thread_of_another_person_is_unknown(front):
    office = front(app=lambda _: append("x"), policy=RULES)
    (interrupt,) = (await office.run("write x", **HERE))[-1].outcome.interrupts
    bob = dataclasses.replace(office, session="two")
    answer = [ResumeEntry(interrupt_id=interrupt.id, status="resolved", payload={"approved": True})]
    assert (await bob.run(None, "r2", resume=answer))[-1].code == "unknown_interrupt"
    assert (await bob.post({"threadId": "t1"}, "/cancel")).json() == {"cancelled": False}
    assert (await office.run(None, "r2", "t2", resume=answer))[-1].code == "unknown_interrupt"
    assert [request.id for request in office.supervisor.status().approvals] == [interrupt.id]


async def test_bomb_of_runs_is_refused_and_other_people_are_served(front, monkeypatch):
    monkeypatch.setattr(_front_ends, "_MOST_STREAMS_OF_PERSON", 3)
    office = front(
        app=lambda _: ASK, servers=[MemoryServer(*map(MemoryServer.window, ("one", "two")))]
    )  # one waits for an answer, the others for their target
    async with contextlib.AsyncExitStack() as stack:
        await office.run("x", "r0", "t0", **HERE)
        begun = [office.begun("x", run=f"r{number}", thread=f"t{number}", **HERE) for number in range(1, 4)]
        streams = [await stack.enter_async_context(stream) for stream in begun]
        assert all(["RUN_STARTED" in await anext(lines) for lines in streams])
        for number in range(4, 30):
            assert (await office.post(run_of(run_id=f"r{number}", thread_id=f"t{number}"))).status_code == 503
        bob = dataclasses.replace(office, session="two")
        there = {"callboard": {"target": "memo:two"}}
        assert (await bob.run("x", "r1", "t1", forwarded_props=there))[-1].outcome.type == "interrupt"
    assert len(office.supervisor.pending()) == 5


async def test_person_has_a_number_of_open_tasks(front, monkeypatch):
    monkeypatch.setattr(_thread_tasks, "_MOST_TASKS", 1)
    office = front(app=lambda _: ASK)
    assert (await office.run("x", "r1", "t1", **HERE))[-1].outcome.type == "interrupt"
    assert (await office.run("x", "r2", "t2", **HERE))[-1].code == "too_many_tasks"
    assert (await office.run("x", "r1", "t1", **HERE))[-1].outcome.type == "interrupt"


async def test_slow_body_is_not_waited_for(front, monkeypatch):
    monkeypatch.setattr(_front_ends, "_BODY_SECONDS", 0.05)
    office = front(app=lambda _: FINISH)

    async def dribble():
        yield b"{"
        await asyncio.sleep(1)
        yield b"}"

    async with httpx2.AsyncClient(timeout=60) as client:
        headers = {**office.headers, "content-type": "application/json"}
        response = await client.post(f"{office.url}/", content=dribble(), headers=headers)
    assert response.status_code == 408


def test_journal_in_a_file_is_needed(start):
    supervisor = start(app=lambda _: FINISH)
    with pytest.raises(SettingsError, match=r"set journal\.path"):
        app(supervisor, person=lambda _: "ann")
