"""Third-party MCP servers, over stdio and over streamable HTTP."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest

from callboard.actors.commands import ToolFailure
from callboard.actors.commands._bound_tools import schema_problem
from callboard.actors.commands.mcp import McpSession
from callboard.actors.runtime import Lease
from callboard.config import McpServer, Settings
from callboard.messages import CommandType, Effect, LeaseVoidError, ResultStatus, SettingsError
from callboard.surfaces import EffectGuard
from support import PATIENCE

SECRET = "xyzzy-4711"


@asynccontextmanager
async def opened(server: dict, **settings) -> AsyncIterator[McpSession]:
    session = McpSession("notes", McpServer.model_validate(server), Settings.load(**settings))
    await session.open()
    try:
        yield session
    finally:
        await session.close()


def tools_of(session):
    return {tool.info.name: tool for tool in session.tools()}


async def test_a_servers_tools_are_offered_as_actions_under_its_name(server):
    async with opened(server) as session:
        tool = tools_of(session)["notes.add"]
        assert tool.type is CommandType.ACTION
        assert tool.info.description == "Add two numbers."
        assert list(tool.info.schema["properties"]) == ["a", "b"]
        assert tool.takes("a")
        assert all(name.startswith("notes.") for name in tools_of(session))


async def test_a_tool_is_called_and_its_answer_is_json(server, dispatch, command):
    async with opened(server) as session:
        results = await dispatch(
            session, command("notes.add", a=2, b=3), command("notes.put", key="k"), command("notes.words")
        )
    assert [result.status for result in results] == [ResultStatus.SUCCESS] * 3
    assert [result.value for result in results] == [{"result": 5}, {"key": "k", "success": True}, "just words"]


@pytest.mark.parametrize(
    ("tool", "error"), [("lock", "the shelf is locked"), ("refuse", "no paper"), ("refuse_in_text", "no ink")]
)
async def test_a_tools_error_arrives_in_its_own_words(over_stdio, dispatch, command, tool, error):
    async with opened(over_stdio) as session:
        (result,) = await dispatch(session, command(f"notes.{tool}"))
    assert result.status is ResultStatus.FAILURE
    assert error in result.error


async def test_an_error_arrives_over_http_too(over_http):
    async with opened(over_http) as session:
        with pytest.raises(ToolFailure, match="the shelf is locked"):
            await session.call("lock", {})


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"a": 1, "b": 2}, None),
        ({"a": 1}, "notes.add: 'b' is a required property"),
        ({"a": 1, "b": "two"}, "notes.add: b: 'two' is not of type 'integer'"),
    ],
)
async def test_arguments_are_checked_before_they_are_sent(over_http, arguments, problem):
    async with opened(over_http) as session:
        assert tools_of(session)["notes.add"].check(arguments) == problem


async def test_annotations_are_believed_only_of_a_trusted_server(over_http):
    async with opened({**over_http, "trusted": True}) as session:
        effects = {name: tool.info.effect for name, tool in tools_of(session).items()}
    assert (effects["notes.add"], effects["notes.put"], effects["notes.lock"]) == (
        Effect.READ,
        Effect.IDEMPOTENT,
        Effect.ONCE,
    )
    async with opened(over_http) as session:
        assert {tool.info.effect for tool in session.tools()} == {Effect.ONCE}


async def test_a_void_lease_stops_a_call_before_it_is_sent(over_http):
    lease = Lease("app/memo/one", 1)
    lease.void()
    async with opened(over_http) as session:
        with pytest.raises(LeaseVoidError):
            await tools_of(session)["notes.words"].call({}, EffectGuard(lease))


async def test_the_environment_reaches_a_program_and_is_added_to_the_usual_one(over_stdio):
    async with opened({**over_stdio, "env": {"NOTES_KEY": SECRET}}) as session:
        assert await session.call("environment", {"name": "NOTES_KEY"}) == {"result": SECRET}
        assert await session.call("environment", {"name": "PATH"}) != {"result": ""}


async def test_headers_reach_a_server_over_http(over_http):
    async with opened({**over_http, "headers": {"X-Notes-Key": SECRET}}) as session:
        assert await session.call("header", {"name": "x-notes-key"}) == {"result": SECRET}


async def test_a_program_starts_in_its_folder_counted_from_the_settings(over_stdio, tmp_path):
    (tmp_path / "place").mkdir()
    async with opened({**over_stdio, "cwd": "place"}, base=tmp_path) as session:
        assert await session.call("folder", {}) == {"result": str((tmp_path / "place").resolve())}


def test_secrets_are_not_shown():
    settings = Settings.load(
        mcpServers={
            "one": {"command": "x", "env": {"KEY": SECRET}},
            "two": {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": SECRET}},
        }
    )
    assert SECRET not in repr(settings)
    assert SECRET not in str(settings)
    assert SECRET not in json.dumps(settings.model_dump(mode="json"))


async def test_a_program_is_gone_after_close(over_stdio, is_gone):
    async with opened(over_stdio) as session:
        answer = await session.call("pid", {})
    assert is_gone(answer["result"])


async def test_a_session_can_be_closed_twice_and_without_having_been_opened(over_http):
    async with opened(over_http) as session:
        await session.close()
    never = McpSession("notes", McpServer.model_validate(over_http), Settings.load())
    await never.close()
    assert never.tools() == ()


async def test_a_call_on_a_closed_session_is_an_error_that_names_the_server(over_http):
    async with opened(over_http) as session:
        pass
    with pytest.raises(ConnectionError, match="notes"):
        await session.call("words", {})


async def test_timed_out_call_fails_and_is_cancelled_on_the_server(over_stdio, dispatch, command, line):
    async with opened(over_stdio) as session:
        (result,) = await dispatch(session, command("notes.hang", 0.2, port=line.port))
        assert result.status is ResultStatus.FAILURE
        assert "took longer than 0.2 s" in result.error
        assert await asyncio.to_thread(line.read) == "begun"
        assert await asyncio.to_thread(line.read) == "left"
        assert await session.call("add", {"a": 1, "b": 1}) == {"result": 2}


async def test_a_cancel_in_a_call_reaches_the_server_and_the_session_survives(server, line):
    async with opened(server) as session:
        calling = asyncio.create_task(session.call("hang", {"port": line.port}))
        assert await asyncio.to_thread(line.read) == "begun"
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert await asyncio.to_thread(line.read) == "left"
        assert await session.call("add", {"a": 1, "b": 1}) == {"result": 2}


async def test_many_calls_of_one_session_run_side_by_side(over_http, line):
    async with opened(over_http) as session:
        hanging = asyncio.create_task(session.call("hang", {"port": line.port}))
        assert await asyncio.to_thread(line.read) == "begun"
        answers = await asyncio.gather(*(session.call("add", {"a": number, "b": 1}) for number in range(10)))
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
    assert answers == [{"result": number + 1} for number in range(10)]


UNUSED = "http://127.0.0.1:9/mcp"


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"command": "no-such-program-anywhere"}, id="no-program"),
        pytest.param({"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]}, id="ends-at-once"),
        pytest.param({"url": UNUSED}, id="no-listener"),
    ],
)
async def test_a_server_that_fails_to_start_is_a_settings_error_with_the_cause(broken):
    session = McpSession("notes", McpServer.model_validate(broken), Settings.load())
    told = r"mcpServers\.notes: (no connection( to \S+)?: \S|the program )"
    with pytest.raises(SettingsError, match=told) as failure:
        await session.open()
    assert "TaskGroup" not in str(failure.value)


SILENT = {"command": sys.executable, "args": ["-c", "import sys; sys.stdin.read()"], "start_seconds": 0.2}


async def test_server_that_answers_too_late_is_a_clear_settings_error():
    session = McpSession("notes", McpServer.model_validate(SILENT), Settings.load())
    with pytest.raises(SettingsError, match=r"mcpServers\.notes: no connection: .*0\.2 s"):
        await session.open()


async def test_a_server_that_does_not_answer_in_time_leaves_no_noise_in_the_log(caplog):
    session = McpSession("notes", McpServer.model_validate(SILENT), Settings.load())
    with pytest.raises(SettingsError):
        await session.open()
    del session
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


async def test_a_start_that_is_cancelled_ends_the_program(line):
    said = "line = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); line.sendall(b'begun\\n')"
    program = ["-c", f"import socket, sys; {said}; sys.stdin.read()", str(line.port)]
    session = McpSession("notes", McpServer(command=sys.executable, args=program), Settings.load())
    opening = asyncio.create_task(session.open())
    assert await asyncio.to_thread(line.read) == "begun"
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert await asyncio.to_thread(line.read) == ""  # its end of the line is closed


async def test_a_server_whose_tools_come_in_pages_is_listed_to_the_end():
    async with opened({"command": sys.executable, "args": ["-I", "-S", "-c", PAGES]}) as session:
        assert list(tools_of(session)) == ["notes.first", "notes.second"]


PAGES = """
import json, sys

INFO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "pages", "version": "1"}}
FIRST = {"tools": [{"name": "first", "inputSchema": {"type": "object"}}], "nextCursor": "more"}
SECOND = {"tools": [{"name": "second", "inputSchema": {"type": "object"}}]}
for line in sys.stdin:
    match json.loads(line):
        case {"method": "initialize", "id": number}:
            answer = {"result": INFO}
        case {"method": "tools/list", "id": number, "params": {"cursor": "more"}}:
            answer = {"result": SECOND}
        case {"method": "tools/list", "id": number}:
            answer = {"result": FIRST}
        case {"id": number}:
            answer = {"error": {"code": -32601, "message": "no"}}
        case _:
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": number, **answer}), flush=True)
"""


def test_an_invalid_schema_is_a_problem_of_the_call_and_not_an_exception():
    assert schema_problem({"type": "objekt"}, {}) is not None


def test_a_schema_never_makes_us_fetch_anything():
    with ThreadPoolExecutor(1) as pool, socket.create_server(("127.0.0.1", 0)) as listening:
        schema = {"$ref": f"http://127.0.0.1:{listening.getsockname()[1]}/schema.json"}
        assert pool.submit(schema_problem, schema, {}).result(PATIENCE) is not None
        listening.settimeout(0)
        with pytest.raises(BlockingIOError):
            listening.accept()
