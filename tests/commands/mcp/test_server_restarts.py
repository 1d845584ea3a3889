"""Third-party MCP servers that go away: their pending calls are in doubt, and their next use starts them again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace

import httpx2
import pytest

from callboard import Outcome, Task
from callboard.actors.commands.mcp import McpSession, _server_connection, _server_restarts, _transport
from callboard.config import McpServer, Settings
from callboard.messages import ResultStatus
from forks import Program
from support import PATIENCE


@asynccontextmanager
async def opened(server: dict, **settings) -> AsyncIterator[McpSession]:
    session = McpSession("notes", McpServer.model_validate(server), Settings.load(**settings))
    await session.open()
    try:
        yield session
    finally:
        await session.close()


async def process_of(session):
    return (await session.call("pid", {}))["result"]


async def end(session):
    """Kill the server between two calls, and wait until that is noticed."""
    os.kill(await process_of(session), signal.SIGKILL)
    await session.restarts.connection._end.wait()


async def test_a_call_in_which_the_server_dies_is_in_doubt(over_stdio, dispatch, command):
    async with opened(over_stdio) as session:
        (result,) = await dispatch(session, command("notes.leave"))
    assert (result.status, result.in_doubt) == (ResultStatus.FAILURE, True)
    assert result.error == "the MCP server notes went away during the call: whether it was done is in doubt"


async def test_reading_call_is_not_in_doubt_after_a_server_crash(over_stdio, dispatch, command):
    async with opened({**over_stdio, "trusted": True}) as session:
        (result,) = await dispatch(session, command("notes.faint"))
    assert (result.status, result.in_doubt) == (ResultStatus.FAILURE, False)
    assert result.error == "the MCP server notes went away during the call; it only reads"


async def test_next_call_restarts_the_server(over_stdio, dispatch, command):
    async with opened(over_stdio) as session:
        first = await process_of(session)
        await dispatch(session, command("notes.leave"))
        second = await process_of(session)
        (result,) = await dispatch(session, command("notes.words"))
    assert first != second
    assert (result.status, result.value) == (ResultStatus.SUCCESS, "just words")


async def test_a_server_that_died_between_two_calls_fails_none(over_stdio):
    async with opened(over_stdio) as session:
        first = await process_of(session)
        await end(session)
        assert await process_of(session) != first


async def test_calls_that_come_together_start_it_once(over_stdio):
    async with opened(over_stdio) as session:
        await end(session)
        assert len(set(await asyncio.gather(*(process_of(session) for _ in range(10))))) == 1


async def test_all_running_calls_fail_when_the_server_goes_away(over_stdio, line):
    async with opened(over_stdio) as session:
        hanging = [asyncio.create_task(session.call("hang", {"port": line.port}))]
        assert await asyncio.to_thread(line.read) == "begun"
        leaving = asyncio.create_task(session.call("leave", {}))
        told = await asyncio.gather(*hanging, leaving, return_exceptions=True)
    assert [str(each) for each in told] == ["the MCP server notes went away during the call"] * 2


async def test_restarts_are_limited_by_intensity_and_period(over_stdio, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(_server_restarts, "time", SimpleNamespace(monotonic=lambda: now[0]))
    async with opened(over_stdio, supervision={"intensity": 2, "period": 60}) as session:
        for _ in range(2):
            await end(session)
            await process_of(session)
        await end(session)
        for _ in range(2):
            with pytest.raises(
                ConnectionError, match="it was restarted 2 times within 60 s, and is not restarted again"
            ):
                await session.call("words", {})
        now[0] += 60
        assert await session.call("words", {}) == "just words"


async def test_server_is_never_restarted_with_an_intensity_of_zero(over_stdio):
    async with opened(over_stdio, supervision={"intensity": 0}) as session:
        await end(session)
        with pytest.raises(
            ConnectionError, match="went away; it was restarted never, and is not restarted again for now"
        ):
            await session.call("words", {})


async def test_failed_restart_gives_the_reason_and_the_next_call_retries(notes, tmp_path):
    program = tmp_path / "notes.py"
    program.write_text(notes.read_text(encoding="utf-8"), encoding="utf-8")
    async with opened({"command": sys.executable, "args": [str(program)], "start_seconds": 20}) as session:
        await end(session)
        program.rename(tmp_path / "gone.py")
        with pytest.raises(ConnectionError, match="the MCP server notes went away, and reconnecting failed: "):
            await session.call("words", {})
        (tmp_path / "gone.py").rename(program)
        assert await session.call("words", {}) == "just words"


async def test_restarted_server_leaves_no_processes_behind(over_stdio, is_gone):
    async with opened(over_stdio) as session:
        first = await process_of(session)
        await end(session)
        second = await process_of(session)
    assert is_gone(first)
    assert is_gone(second)


async def test_closed_session_restarts_no_server(over_stdio):
    async with opened(over_stdio) as session:
        await end(session)
    with pytest.raises(ConnectionError, match="the MCP server notes is not connected"):
        await session.call("words", {})


async def test_cancel_during_a_restart_leaves_no_process(notes, tmp_path, is_gone, monkeypatch):
    monkeypatch.setattr(_transport, "LEAVES_SECONDS", 0.2)
    pid, gate = tmp_path / "pid", tmp_path / "gate"
    os.mkfifo(gate)
    program = tmp_path / "notes.py"
    lines = ["import os", f"open({str(pid)!r}, 'w').write(str(os.getpid()))", f"open({str(gate)!r}).read()"]
    program.write_text(notes.read_text(encoding="utf-8"), encoding="utf-8")
    async with opened({"command": sys.executable, "args": [str(program)]}) as session:
        await end(session)
        program.write_text("\n".join(lines), encoding="utf-8")
        calling = asyncio.create_task(session.call("words", {}))
        opened_gate = await asyncio.to_thread(gate.open, "w")  # returns once the program waits at it
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        opened_gate.close()
        assert is_gone(int(pid.read_text(encoding="utf-8")))


@contextmanager
def over_http(program: Path, port: int = 0):
    """Run the server; gives its port."""
    environment = {**os.environ, "NOTES_PORT": str(port)}
    with Program([sys.executable, str(program)], stdout=subprocess.PIPE, text=True, env=environment) as process:
        yield int(process.stdout.readline())
        process.kill()


async def test_session_reconnects_to_a_server_restarted_by_someone_else(notes_over_http):
    with over_http(notes_over_http) as port:
        session = McpSession("notes", McpServer(url=f"http://127.0.0.1:{port}/mcp"), Settings.load())
        await session.open()
        first = await process_of(session)
    try:
        with pytest.raises(ConnectionError, match="the MCP server notes can't be reached, nothing was sent: "):
            await session.call("words", {})
        with over_http(notes_over_http, port):
            assert await process_of(session) != first
    finally:
        await session.close()


async def test_a_server_that_is_not_there_leaves_no_doubt(notes_over_http, dispatch, command):
    with over_http(notes_over_http) as port:
        session = McpSession("notes", McpServer(url=f"http://127.0.0.1:{port}/mcp"), Settings.load())
        await session.open()
    (result,) = await dispatch(session, command("notes.words"))
    await session.close()
    assert (result.status, result.in_doubt) == (ResultStatus.FAILURE, False)


@pytest.mark.parametrize("server", ["stdio", "http"], indirect=True)
async def test_a_message_that_is_too_long_ends_the_connection(server, dispatch, command, monkeypatch):
    monkeypatch.setattr(_transport, "LEAVES_SECONDS", 0.2)
    async with opened({**server, "max_bytes": 100_000}) as session:
        (long, short) = await dispatch(session, command("notes.flood", size=99_000), command("notes.words"))
        (flood,) = await dispatch(session, command("notes.flood", size=3_000_000))
        (again,) = await dispatch(session, command("notes.words"))
    assert [each.status for each in (long, short, flood, again)] == [
        ResultStatus.SUCCESS,
        ResultStatus.SUCCESS,
        ResultStatus.FAILURE,
        ResultStatus.SUCCESS,
    ]
    assert flood.in_doubt
    over_stdio = "command" in server
    assert ("sent a message that is longer than `max_bytes`, which ended the connection" in flood.error) is over_stdio


async def test_next_call_restarts_a_hanging_server(over_stdio, dispatch, command, monkeypatch, is_gone):
    monkeypatch.setattr(_server_connection, "CHECK_SECONDS", 0.2)
    monkeypatch.setattr(_transport, "LEAVES_SECONDS", 0.2)
    async with opened(over_stdio) as session:
        first = await process_of(session)
        (frozen,) = await dispatch(session, command("notes.freeze", 0.2))
        (again,) = await dispatch(session, command("notes.words"))
        assert await process_of(session) != first
    assert (frozen.in_doubt, again.value) == (True, "just words")
    async with asyncio.timeout(PATIENCE):
        while not is_gone(first):  # noqa: ASYNC110 - no event tells of its end
            await asyncio.sleep(0.01)


async def test_a_server_that_answers_a_ping_is_left_alone(over_stdio, dispatch, command, line):
    async with opened(over_stdio) as session:
        first = await process_of(session)
        hanging = asyncio.create_task(session.call("hang", {"port": line.port}))
        assert await asyncio.to_thread(line.read) == "begun"
        hanging.cancel()
        assert await process_of(session) == first


def test_agent_sees_a_call_in_doubt_and_continues_with_the_server(start, over_stdio):
    heard = []

    def app(request):
        heard.append(request.observation.notes)
        tool = ["notes.leave", "notes.words"][request.call - 1]
        return {"Status": ["CONTINUE", "FINISH"][request.call - 1], "Function": tool, "Args": {}}

    supervisor = start(app=app, mcpServers={"notes": over_stdio}, policy=[{"verdict": "allow", "tool": "notes.*"}])
    result = supervisor.submit(Task(request="work", target="memo:one")).result(PATIENCE)
    assert (result.outcome, result.output) == (Outcome.FINISHED, "just words")
    assert any("whether it was done is in doubt" in note for note in heard[1])
    assert supervisor.stop() == ()


async def test_a_compressed_answer_is_refused_and_none_is_asked_for():
    asked = []

    def answer(request):
        asked.append(request.headers["accept-encoding"])
        return httpx2.Response(200, headers={"content-encoding": "gzip"}, content=b"")

    transport = _transport.BoundedTransport(1000)
    transport._inner = httpx2.MockTransport(answer)
    async with httpx2.AsyncClient(transport=transport) as client:
        with pytest.raises(_transport.RefusedMessageError, match="compressed"):
            await client.get("http://127.0.0.1/mcp")
    assert asked == ["identity"]
