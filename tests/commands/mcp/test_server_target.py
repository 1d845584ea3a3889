"""Third-party MCP servers as targets: planned over, observed, and the only place where their tools can be called."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import asynccontextmanager

import pytest

from callboard import Outcome, Task
from callboard.actors.commands.mcp import McpSession, McpSurface, _server_restarts, _server_session
from callboard.actors.commands.mcp._server_connection import About
from callboard.actors.commands.mcp._server_target import LONGEST_INSTRUCTIONS
from callboard.config import McpServer, Settings
from callboard.messages import AgentKind, SettingsError, TaskRefusedError, UnknownTargetError
from callboard.testing import MemoryServer
from support import PATIENCE, call, lone

ALLOWED = [{"verdict": "allow", "tool": "notes.*"}]
ADD = call("notes.add", "FINISH", a=2, b=3)
ASSIGN = {"Status": "ASSIGN", "ControlText": "notes", "Current Sub-Task": "add two and three"}


@pytest.fixture
def shelf(over_http):
    """Give the settings of the server as they are by default: a target."""
    return {"url": over_http["url"]}


def surface_of(about, **settings):
    server = McpServer.model_validate({"command": "notes", **settings})
    session = McpSession("notes", server, Settings.load())
    session.about = about
    return McpSurface(session)


def test_a_host_agent_assigns_to_a_server_and_its_tools_are_called(start, shelf):
    offered = []

    def host(request):
        offered.append([(each.id, each.name, each.address) for each in request.observation.targets])
        return ASSIGN if request.call == 1 else {"Status": "FINISH", "Result": request.subtasks[-1].output}

    supervisor = start(host=host, app=[ADD], mcpServers={"notes": shelf}, policy=ALLOWED)
    result = supervisor.submit(Task(request="what is two and three?")).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED
    assert [(done.address, done.output) for done in result.subtasks] == [("app/mcp/notes", {"result": 5})]
    assert offered[0] == [("memo:one", "memo:one", "app/memo/one"), ("notes", "A shelf of notes", "app/mcp/notes")]


@asynccontextmanager
async def opened(server):
    session = McpSession("notes", McpServer.model_validate(server), Settings.load())
    await session.open()
    try:
        yield session
    finally:
        await session.close()


def tools_on(supervisor, seen, *targets):
    for target in targets:
        supervisor.submit(lone(target, request=target)).result(PATIENCE)
    return [any(name.startswith("notes.") for name in seen[target]) for target in targets]


@pytest.mark.parametrize(
    ("surface", "there", "elsewhere"), [(True, True, False), ("both", True, True), (False, None, True)]
)
def test_the_settings_say_where_the_tools_of_a_server_are(start, shelf, surface, there, elsewhere):
    seen = {}

    def app(request):
        seen[request.request] = [tool.name for tool in request.tools]
        return {"Status": "FAIL"}

    supervisor = start(app=app, mcpServers={"notes": {**shelf, "surface": surface}})
    assert tools_on(supervisor, seen, "memo:one") == [elsewhere]
    if there is None:
        with pytest.raises(UnknownTargetError):
            supervisor.submit(lone("notes"))
    else:
        assert tools_on(supervisor, seen, "notes", "app/mcp/notes") == [there] * 2


@pytest.mark.parametrize("name", ["notes.add", "add", " Notes.ADD"])
def test_call_from_another_target_is_refused_with_the_tool_s_target(start, shelf, name):
    answer = {"Status": "FINISH", "Function": name, "Args": {"a": 1, "b": 1}}
    supervisor = start(app=lambda _: answer, mcpServers={"notes": shelf}, limits={"repairs": 0})
    result = supervisor.submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    told = (
        "notes.add can be called on the target 'notes' alone; "
        "`mcpServers.notes.surface: both` in the settings offers it everywhere"
    )
    assert told in str(result.causes)


def test_agent_on_a_server_sees_the_server_s_own_description(start, shelf):
    seen = []

    def app(request):
        seen.append(request.observation)
        return call("notes.words") if request.call < 3 else {"Status": "FINISH"}

    supervisor = start(app=app, mcpServers={"notes": shelf}, policy=ALLOWED)
    assert supervisor.submit(lone("notes")).result(PATIENCE).ok
    assert seen[0].text == "Put notes by key."
    assert seen[0].window == {"title": "A shelf of notes", "server": "notes"}
    assert len({each.fingerprint for each in seen}) == 1


@pytest.mark.parametrize(("tool", "outcome"), [("turn", Outcome.FINISHED), ("words", Outcome.FAILED)])
def test_polling_with_changing_answers_is_not_a_loop(start, shelf, tool, outcome):
    seen = []

    def app(request):
        seen.append(request.observation.fingerprint)
        return call(f"notes.{tool}") if request.call < 7 else {"Status": "FINISH"}

    supervisor = start(app=app, mcpServers={"notes": shelf}, policy=ALLOWED)
    result = supervisor.submit(lone("notes")).result(PATIENCE)
    assert result.outcome is outcome, result.causes
    if outcome is Outcome.FINISHED:
        assert len(set(seen)) == 6  # the first answer has none before it
    else:
        assert "no progress" in result.causes[0].reason
        assert len(set(seen)) == 1


def test_other_answers_do_not_outlast_the_limits(start, shelf):
    supervisor = start(
        app=lambda _: call("notes.turn"), mcpServers={"notes": shelf}, policy=ALLOWED, limits={"steps": 9}
    )
    result = supervisor.submit(lone("notes")).result(PATIENCE)
    assert result.outcome is Outcome.OUT_OF_BUDGET, result.causes
    assert result.usage.steps == 9


async def test_only_another_answer_to_the_same_call_is_a_change(shelf):
    async with opened(shelf) as session:
        for key in ("a", "b", "a"):
            await session.call("put", {"key": key})
        assert session.changes == 0
        await session.call("turn", {})
        await session.call("turn", {})
        assert session.changes == 1


async def test_of_many_calls_the_oldest_answers_are_forgotten(shelf, monkeypatch):
    monkeypatch.setattr(_server_session, "COMPARED", 2)
    async with opened(shelf) as session:
        for key in "abc":
            await session.call("put", {"key": key})
        assert len(session._answers) == 2


def test_further_kinds_of_agents_may_work_on_a_server(start, shelf):
    supervisor = start(mobile=[ADD], mcpServers={"notes": {**shelf, "agents": ["app", "mobile"]}}, policy=ALLOWED)
    assert supervisor.submit(lone("mobile:notes")).result(PATIENCE).output == {"result": 5}


def test_a_target_id_that_another_server_has_is_refused_at_the_start(start, shelf):
    window = MemoryServer.window("one").model_copy(update={"id": "notes"})
    with pytest.raises(SettingsError, match=r"mcpServers: 'memory' and 'mcp:notes' both offer a target 'notes'; give"):
        start(servers=[MemoryServer(window)], mcpServers={"notes": shelf})


def test_a_server_that_was_left_out_is_no_target(start):
    supervisor = start(mcpServers={"gone": {"command": "no-such-program-anywhere", "optional": True}})
    assert [target.id for target in supervisor.targets()] == ["memo:one"]


def test_a_server_that_was_killed_is_a_target_as_long_as_it_can_be_started(start, over_stdio, tmp_path, monkeypatch):
    monkeypatch.setattr(_server_restarts, "LISTED_SECONDS", PATIENCE)
    pid = tmp_path / "pid"
    notes = {**over_stdio, "surface": True, "env": {"NOTES_PID": str(pid)}}
    supervisor = start(mcpServers={"notes": notes}, app=[call("notes.pid", "FINISH")], policy=ALLOWED, supervision=ONCE)
    first = supervisor.submit(lone("notes")).result(PATIENCE).output["result"]
    (connection,) = [session.restarts.connection for session in supervisor._assembly.sessions]
    os.kill(first, signal.SIGKILL)
    supervisor._assembly.loop.submit(connection._end.wait()).result(PATIENCE)
    assert supervisor.submit(lone("notes")).result(PATIENCE).output["result"] != first
    (connection,) = [session.restarts.connection for session in supervisor._assembly.sessions]
    os.kill(int(pid.read_text(encoding="utf-8")), signal.SIGKILL)
    supervisor._assembly.loop.submit(connection._end.wait()).result(PATIENCE)
    assert [target.id for target in supervisor.targets()] == ["memo:one"]
    with pytest.raises(TaskRefusedError, match=r"the targets of mcp:notes can't be listed: .* went away;"):
        supervisor.submit(lone("notes"))


ONCE = {"intensity": 1, "period": 3600}
HANGS = """
import os, pathlib, runpy, sys
if pathlib.Path(sys.argv[1]).exists():
    sys.stdin.read(1_000_000)
else:
    runpy.run_path(sys.argv[2], run_name="__main__")
"""


def test_work_elsewhere_does_not_wait_for_a_server_that_hangs(start, notes, tmp_path, monkeypatch):
    monkeypatch.setattr(_server_restarts, "LISTED_SECONDS", 0.0)
    again, pid = tmp_path / "again", tmp_path / "pid"
    shelf = {"command": sys.executable, "args": ["-c", HANGS, str(again), str(notes)], "env": {"NOTES_PID": str(pid)}}
    told = []

    def host(request):
        told.append(request.observation.notes)
        return {"Status": "FINISH"}

    supervisor = start(host=host, mcpServers={"notes": {**shelf, "start_seconds": 3600}})
    (session,) = supervisor._assembly.sessions
    again.touch()
    os.kill(int(pid.read_text(encoding="utf-8")), signal.SIGKILL)
    supervisor._assembly.loop.submit(session.restarts.connection._end.wait()).result(PATIENCE)
    for _ in range(2):
        assert supervisor.submit(Task(request="write a letter")).result(PATIENCE).ok
    assert [target.id for target in supervisor.targets()] == ["memo:one"]
    assert not session.restarts._starting.done()
    assert all("notes went away, and is still being restarted" in str(each) for each in told)


def test_server_description_is_bounded():
    seen = surface_of(About("A\nlong " * 100, "1", "x" * (LONGEST_INSTRUCTIONS + 1)))
    target = seen._target
    assert len(target.name) == 100
    assert "\n" not in target.name
    assert seen.observe(target).text == "x" * LONGEST_INSTRUCTIONS + "…"
    assert surface_of(About("", "", "\ud800"))._target.name == "notes"


def test_fingerprint_covers_the_server_description_and_its_tools():
    said = About("Notes", "1.0", "Put notes.")
    target = surface_of(said)._target
    same, other = surface_of(said), [said._replace(version="1.1"), said._replace(instructions="Take notes.")]
    assert same.fingerprint(target) == same.observe(target).fingerprint == surface_of(said).fingerprint(target)
    assert all(surface_of(each).fingerprint(target) != same.fingerprint(target) for each in other)


@pytest.mark.parametrize(
    ("given", "everywhere", "on_target"),
    [
        ({}, (), ("app",)),
        ({"surface": False}, ("app", "mobile", "linux"), ()),
        ({"surface": "both"}, ("app", "mobile", "linux"), ("app",)),
        ({"surface": "both", "agents": ["host", "linux"]}, ("host", "linux"), ("linux",)),
        ({"surface": False, "agents": ["host"]}, ("host",), ()),
        ({"surface": False, "agents": []}, (), ()),
    ],
)
def test_settings_decide_which_agents_get_the_tools(given, everywhere, on_target):
    server = McpServer.model_validate({"command": "notes", **given})
    assert (server.everywhere, server.on_target) == (everywhere, on_target)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"agents": [AgentKind.HOST]}, "a HostAgent works on no target"),
        ({"agents": ["app", "host"]}, "with `surface: both` or `false` it has"),
        ({"agents": []}, "names no kind of agent that could work on its target"),
        ({"surface": "both", "agents": ["host"]}, "`surface: false` makes it none"),
        ({"surface": "sometimes"}, "surface"),
    ],
)
def test_settings_of_a_target_without_agents_are_refused(given, told):
    with pytest.raises(SettingsError, match=told):
        Settings.load(mcpServers={"notes": {"command": "notes", **given}})
