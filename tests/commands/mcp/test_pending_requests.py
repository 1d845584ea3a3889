"""Answers of MCP servers that can't be read: their calls end at once, and are in doubt."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from callboard import Outcome, Task
from callboard.actors.commands.mcp import McpSession
from callboard.actors.commands.mcp._pending_requests import (
    LONGEST_QUOTE,
    REMEMBERED,
    PendingRequests,
    StrayTextError,
    UnreadableAnswerError,
    messages_of,
)
from callboard.config import McpServer, Settings
from callboard.messages import ResultStatus
from support import PATIENCE

PROGRAM = """
import json, sys

def put(text):
    sys.stdout.buffer.write(text.encode("latin-1") + b"\\n")
    sys.stdout.buffer.flush()

def answer(number, result):
    put(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}))

calls = []
for line in sys.stdin:
    match json.loads(line):
        case {"method": "initialize", "id": number, "params": {"protocolVersion": version}}:
            info = {"name": "raw", "version": "1"}
            answer(number, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        case {"method": "tools/list", "id": number}:
            schema = {"type": "object", "properties": {"text": {"type": "string"}}}
            output = {"type": "object", "properties": {"v": {"pattern": "\\\\\\\\p{L}"}}}
            tools = [{"name": name, "inputSchema": schema} for name in ("say", "both")]
            read = {"readOnlyHint": True}
            answer(number, {"tools": [*tools, {"name": "read", "inputSchema": schema, "annotations": read},
                {"name": "typed", "inputSchema": schema, "outputSchema": output}]})
        case {"method": "tools/call", "params": {"name": "both", "arguments": {"text": text}}}:
            calls.append(text)
            if len(calls) == 2:
                put(text)
        case {"method": "tools/call", "id": number, "params": {"arguments": {"text": text}}}:
            put(text.replace("#", str(number)))
        case {"id": number}:
            put(json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no"}}))
"""
OK = '"result":{"content":[{"type":"text","text":"ok"}]}'
HEAD = '{"jsonrpc":"2.0","id":#,'


@pytest.fixture
def raw():
    """Give the settings of a server that answers a call with the line in its argument."""
    return {"command": sys.executable, "args": ["-I", "-S", "-c", PROGRAM], "trusted": True}


@asynccontextmanager
async def opened(server):
    session = McpSession("raw", McpServer.model_validate(server), Settings.load())
    await session.open()
    try:
        yield session
    finally:
        await session.close()


UNREADABLE = {
    "NaN": HEAD + '"result":{"content":[],"structuredContent":{"v":[NaN]}}}',
    "infinity": HEAD + '"result":{"content":[],"structuredContent":{"v":-Infinity}}}',
    "too large a number": HEAD + '"result":{"content":[],"structuredContent":{"v":1e999}}}',
    "deep": HEAD + f'"result":{{"content":[],"structuredContent":{{"v":{"[" * 300}{"]" * 300}}}}}}}',
    "very deep": HEAD + f'"result":{{"content":[],"structuredContent":{{"v":{"[" * 99_000}{"]" * 99_000}}}}}}}',
    "Latin-1": HEAD + '"result":{"content":[{"type":"text","text":"café"}]}}',
    "Latin-1, id last": '{"result":{"content":[{"type":"text","text":"café"}]},"jsonrpc":"2.0","id":#}',
    "cut": HEAD + '"result":{"content":[{"type":"te',
    "several lines": '{\n"jsonrpc": "2.0",\n"id": #,\n' + OK + "}",
    "error as text": HEAD + '"error":"boom"}',
    "no version": '{"id":#,' + OK + "}",
    "unknown id": '{"jsonrpc":"2.0","id":4711,' + OK + "}",
    "id as text": '{"jsonrpc":"2.0","id":"x",' + OK + "}",
    "id with a fraction": '{"jsonrpc":"2.0","id":#.0,' + OK + "}",
    "no id": '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
    "id of an earlier request": '{"jsonrpc":"2.0","id":1,' + OK + "}",
    "text before, Latin-1": 'done: {"jsonrpc":"2.0","id":#,"result":{"content":[{"type":"text","text":"é"}]}}',
}


async def test_an_unreadable_answer_ends_its_call_at_once_and_in_doubt(raw, dispatch, command):
    """All calls have the patience of the whole test suite; none waits for it."""
    async with opened(raw) as session:
        for name, line in UNREADABLE.items():
            (result,) = await dispatch(session, command("raw.say", text=line))
            assert (result.status, result.in_doubt, result.value) == (ResultStatus.FAILURE, True, None), name
            assert result.error.startswith("its answer to `tools/call` "), name
            assert result.error.endswith(": whether it was done is in doubt"), name
            assert "took longer" not in result.error, name
            assert len(result.error) < LONGEST_QUOTE + 200, name
        (result,) = await dispatch(session, command("raw.read", text=UNREADABLE["Latin-1"]))
        assert (result.status, result.in_doubt) == (ResultStatus.FAILURE, False)
        assert "caf\N{REPLACEMENT CHARACTER}" in result.error
        assert session.restarts.connection.connected
        (result,) = await dispatch(session, command("raw.say", text=HEAD + OK + "}"))
        assert result.value == "ok"


READABLE = {
    "text before": ("Fetching... " + HEAD + OK + "}", "ok"),
    "text after": (HEAD + OK + "}done", "ok"),
    "twice on one line": (2 * (HEAD + OK + "}"), "ok"),
    "twice": (HEAD + OK + "}\n" + HEAD + OK + "}", "ok"),
    "batch": ("[" + HEAD + OK + "}]", "ok"),
    "half a surrogate pair": (HEAD + r'"result":{"content":[{"type":"text","text":"half \ud83d"}]}}', r"half \ud83d"),
    "byte order mark": ("\xef\xbb\xbf" + HEAD + OK + "}", "ok"),
    "quoted request": ('got {"jsonrpc":"2.0","id":#,"method":"tools/call"}\n' + HEAD + OK + "}", "ok"),
    "log line with an id": ('{"level":30,"id":#,"error":"none"}\n' + HEAD + OK + "}", "ok"),
    "deep text": (HEAD + f'"result":{{"content":[{{"type":"text","text":"{"[" * 99_000}"}}]}}}}', None),
}


async def test_an_answer_with_a_flaw_that_leaves_it_readable_is_read(raw, dispatch, command):
    async with opened(raw) as session:
        for name, (line, value) in READABLE.items():
            (result,) = await dispatch(session, command("raw.say", text=line))
            assert (result.error, value in (result.value, None)) == ("", True), name
        line = HEAD + '"result":{"content":[],"structuredContent":{"v":"x"}}}'
        (result,) = await dispatch(session, command("raw.typed", text=line))
        assert result.value == {"v": "x"}  # an output schema that Python can't use


async def test_an_answer_to_one_of_several_calls_ends_the_connection(raw, dispatch, command):
    async with opened(raw) as session:
        both = command("raw.both", text=UNREADABLE["unknown id"])
        for (result,) in await asyncio.gather(dispatch(session, both), dispatch(session, both)):
            assert result.in_doubt
            assert "sent an answer that has the id of no request: '" in result.error
        (again,) = await dispatch(session, command("raw.say", text=HEAD + OK + "}"))
        assert again.value == "ok"  # it was started again


def test_agent_sees_an_unreadable_answer_and_continues(start, raw):
    lines = [UNREADABLE["Latin-1"], UNREADABLE["NaN"], HEAD + OK + "}"]
    notes = []

    def app(request):
        notes.append(request.observation.notes)
        status = "CONTINUE" if request.call < len(lines) else "FINISH"
        return {"Status": status, "Function": "raw.say", "Args": {"text": lines[request.call - 1]}}

    server = {**raw, "surface": False}
    supervisor = start(app=app, mcpServers={"raw": server}, policy=[{"verdict": "allow", "tool": "raw.*"}])
    result = supervisor.submit(Task(request="work", target="memo:one")).result(PATIENCE)
    assert (result.outcome, result.output) == (Outcome.FINISHED, "ok")
    for heard, quote in ((notes[1], "caf\N{REPLACEMENT CHARACTER}"), (notes[2], '{"v": [NaN]}')):
        assert any(quote in note and "whether it was done is in doubt" in note for note in heard)
    assert supervisor.stop() == ()


@given(
    st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.text())),
    st.integers(0, 10**6),
    st.sampled_from([("jsonrpc", "id", "result"), ("result", "jsonrpc", "id"), ("id", "result", "jsonrpc")]),
    st.data(),
)
def test_no_part_of_an_answer_is_taken_for_other_text(result, number, order, data):
    """An answer that is cut, damaged or beside other text gives the answer or an error, never nothing."""
    parts = {"jsonrpc": "2.0", "id": number, "result": result}
    line = json.dumps({name: parts[name] for name in order}, separators=(",", ":")).encode()
    begin = line.index(b'"result":') if order[0] == "id" else 1
    cut = line[: data.draw(st.integers(begin + 10, len(line)))]
    before = data.draw(st.text(st.characters(codec="utf-8", exclude_characters='\n{"'))).encode()
    for damaged in (cut, before + line, line + before, line.replace(b"{", b"{\xff", 1)):
        for message in messages_of(damaged):
            assert not isinstance(message, StrayTextError)
            if isinstance(message, UnreadableAnswerError):
                assert message.id in (number, None)
            else:
                assert message.message == JSONRPCResponse(jsonrpc="2.0", id=number, result=result)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\n")))
def test_text_without_a_message_is_stray(text):
    (message,) = messages_of(text.encode())
    assert isinstance(message, StrayTextError) or '"jsonrpc"' in text or "result" in text or "error" in text


def test_the_ids_of_earlier_calls_are_bounded():
    requests = PendingRequests()
    for number in range(REMEMBERED + 10):
        requests.sent(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/call")))
        requests.received(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=number, result={})))
    assert len(requests._calls) == REMEMBERED
