"""Attacks over HTTP: strangers, pages, other names of the address, bombs of requests."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from callboard.errors import SettingsError
from callboard.mcp_server import HttpTaskServer, http_app
from callboard.network import AGENTS_PROXY, LoopbackServer, listening
from support import ASK, append

RUN = {"request": "write it", "target": "memo:one"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


def post(served, headers, body=None):
    """Send a request, and give its status, text and headers; a name may be sent twice."""
    usual = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    body = json.dumps(INITIALIZE).encode() if body is None else body
    pairs = [*usual.items(), *(headers if isinstance(headers, list) else headers.items())]
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", served.server.port, timeout=30)) as connection:
        connection.putrequest("POST", "/mcp", skip_host="host" in dict(pairs))
        for name, value in pairs:
            connection.putheader(name, value)
        connection.putheader("content-length", str(len(body)))
        connection.endheaders(body)
        with contextlib.closing(connection.getresponse()) as response:
            return response.status, response.read().decode(), response.headers


@pytest.fixture
def ann(served):
    """Serve two callers."""
    return served({"ann": {"requests": 3}, "bob": {}}, app=lambda _: append("x", "FINISH"))


def bearer(served, name="ann"):
    return {"authorization": f"Bearer {served.tokens[name]}"}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_caller_runs_a_task_over_http(ann, mode):
    async with ann.client("ann", mode=mode) as client:
        result = await client.call_tool("run_task", RUN)
    assert result.structured_content["outcome"] == "finished"
    assert result.structured_content["task_id"].startswith("mcp-ann-")


def test_a_request_with_the_token_is_answered(ann):
    assert post(ann, bearer(ann))[0] == 200


def test_a_request_without_the_token_of_a_caller_is_refused(ann):
    words = ["", "Bearer", "Bearer ", "Bearer x", f"Bearer callboard_{'a' * 43}", "Basic YW5uOg==", "Bearer \xff"]
    for headers in ({}, *({"authorization": word} for word in words)):
        status, text, answered = post(ann, headers)
        assert (status, "bearer token" in text, answered["www-authenticate"][:6]) == (401, True, "Bearer"), headers


def test_two_tokens_in_one_request_are_refused(ann):
    assert post(ann, [pair for name in ("ann", "bob") for pair in bearer(ann, name).items()])[0] == 401


ELSEWHERE = [
    ({"host": "evil.example"}, 421),
    ({"host": "127.0.0.1:1"}, 421),
    ({"origin": "http://evil.example"}, 403),
    ({"origin": "null"}, 403),
    ({"origin": "http://127.0.0.1"}, 403),
    ({"sec-fetch-site": "same-origin"}, 403),
    ({"via": f"1.1 {AGENTS_PROXY}"}, 403),
]


def test_a_request_from_elsewhere_is_refused_with_a_token_too(ann):
    for headers, status in ELSEWHERE:
        assert post(ann, {**bearer(ann), **headers})[0] == status, headers


def test_name_of_the_host_has_no_case(ann):
    port = ann.server.port
    assert post(ann, {**bearer(ann), "host": f"LocalHost:{port}"})[0] == 200
    mounted = http_app(ann.supervisor, hosts=["Office.Example"], people="x")
    listener = listening(0)
    server = LoopbackServer(mounted, listener, thread="mcp-test", has_lifespan=True)
    server.start()
    try:
        own_port = listener.getsockname()[1]
        renamed = replace(ann, server=SimpleNamespace(port=own_port))
        assert post(renamed, {**bearer(ann), "host": "office.example"})[0] == 200
        assert post(renamed, {**bearer(ann), "host": f"127.0.0.1:{own_port}"})[0] == 421
    finally:
        server.stop()


def test_a_huge_body_is_refused(ann):
    assert post(ann, bearer(ann), b"x" * (1024 * 1024 + 1))[0] == 413


def test_a_session_of_another_caller_is_unknown(ann):
    session = post(ann, bearer(ann))[2]["mcp-session-id"]
    status, text, _ = post(ann, {**bearer(ann, "bob"), "mcp-session-id": session})
    assert (status, "Session not found" in text) == (404, True)


async def test_a_task_of_another_caller_is_unknown_over_http(ann):
    async with ann.client("ann") as client:
        task_id = (await client.call_tool("run_task", RUN)).structured_content["task_id"]
    async with ann.client("bob") as client:
        result = await client.call_tool("task_status", {"task_id": task_id})
        assert (result.is_error, "there is no task" in result.content[0].text) == (True, True)
        assert (await client.call_tool("list_tasks", {})).structured_content["tasks"] == []


async def test_a_bomb_of_requests_is_refused_and_others_are_served(served):
    opened = served({"ann": {"requests": 3, "tasks": 2}, "bob": {}}, app=lambda _: ASK)
    async with opened.client("ann", mode="2026-07-28") as ann, opened.client("bob", mode="2026-07-28") as bob:
        report = (await ann.call_tool("run_task", {**RUN, "wait_seconds": 0})).structured_content
        bomb = [asyncio.create_task(ann.call_tool("list_targets", {})) for _ in range(100)]
        assert (await bob.call_tool("list_targets", {})).structured_content["targets"]
        ends = await asyncio.gather(*bomb, return_exceptions=True)
        refused = [end for end in ends if isinstance(end, BaseException)]
        assert 0 < len(refused) < 100
        assert (await ann.call_tool("task_status", {"task_id": report["task_id"]})).structured_content


async def test_a_bomb_of_requests_over_stdio_is_refused(desk):
    opened = desk({"ann": {"requests": 3}}, app=lambda _: ASK)
    async with opened.client("ann") as client:
        bomb = [asyncio.create_task(client.call_tool("list_targets", {})) for _ in range(50)]
        ends = await asyncio.gather(*bomb, return_exceptions=True)
    assert "3 requests of ann are open" in str(next(end for end in ends if isinstance(end, BaseException)))
    assert sum(isinstance(end, BaseException) for end in ends) == 47


def test_without_a_token_no_server_starts(begin):
    with pytest.raises(SettingsError, match="no caller has a token"):
        HttpTaskServer(begin(mcp_server={"callers": {"ann": {}}}), port=0, people="")


def test_without_a_journal_no_server_starts(start):
    supervisor = start(mcp_server={"callers": {"ann": {"token": "sha256:" + "0" * 64}}})
    with pytest.raises(SettingsError, match=r"set journal\.path"):
        HttpTaskServer(supervisor, port=0, people="")


def test_a_taken_port_is_named(ann):
    with pytest.raises(SettingsError, match=f"can't use port {ann.server.port}"):
        HttpTaskServer(ann.supervisor, port=ann.server.port, people="")
