"""Third-party MCP servers as a host program configures them."""

from __future__ import annotations

import asyncio
import json
import queue
import socket
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from callboard import EventName, Outcome, Settings, Supervisor, Task
from callboard.actors.commands import Asked
from callboard.actors.commands.mcp import McpSession
from callboard.config import McpServer
from callboard.messages import Effect, Hazard, SettingsError
from support import PATIENCE, lone

SECRET = "xyzzy-4711"
UNUSED = "http://127.0.0.1:9/mcp"


def call(tool, status="FINISH", **arguments):
    return {"Status": status, "Function": f"notes.{tool}", "Args": arguments}


ALLOWED = [{"verdict": "allow", "tool": "notes.*"}]


def test_an_agent_works_with_a_third_party_tool(start, server):
    supervisor = start(app=[call("add", a=2, b=3)], mcpServers={"notes": server}, policy=ALLOWED)
    result = supervisor.submit(lone()).result(PATIENCE)
    assert (result.outcome, result.output) == (Outcome.FINISHED, {"result": 5})


@pytest.mark.parametrize("name", ["add", "Notes.Add", " ADD"])
def test_the_bare_name_of_a_tool_is_taken_where_only_one_server_has_it(start, over_http, name):
    answer = {"Status": "FINISH", "Function": name, "Args": {"a": 2, "b": 3}}
    supervisor = start(app=[answer], mcpServers={"notes": over_http}, policy=ALLOWED)
    result = supervisor.submit(lone()).result(PATIENCE)
    assert (result.outcome, result.output) == (Outcome.FINISHED, {"result": 5})


def test_a_bare_name_that_two_servers_have_is_sent_back(start, over_http):
    answer = {"Status": "FINISH", "Function": "add", "Args": {"a": 2, "b": 3}}
    servers = {"notes": over_http, "more": over_http}
    supervisor = start(app=lambda _: answer, mcpServers=servers, limits={"repairs": 0})
    result = supervisor.submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert "there is no tool 'add'; there are: " in str(result.causes)


def test_a_tools_error_text_reaches_the_model(start, over_http):
    notes = []

    def answer(request):
        notes.extend(request.observation.notes)
        return call("lock", "CONTINUE") if request.call == 1 else {"Status": "FAIL"}

    supervisor = start(app=answer, mcpServers={"notes": over_http}, policy=ALLOWED)
    assert supervisor.submit(lone()).result(PATIENCE).outcome is Outcome.FAILED
    assert any("notes.lock failed: " in note and "the shelf is locked" in note for note in notes)


def test_a_tool_is_offered_only_to_the_kinds_of_agent_that_are_named(start, over_http):
    offered = {}

    def host(request):
        offered["host"] = {tool.name for tool in request.tools}
        return {"Status": "FINISH"}

    def app(request):
        offered["app"] = {tool.name for tool in request.tools}
        return {"Status": "FINISH"}

    supervisor = start(host=host, app=app, mcpServers={"notes": {**over_http, "agents": ["host"]}})
    supervisor.submit(Task(request="plan")).result(PATIENCE)
    supervisor.submit(lone()).result(PATIENCE)
    assert "notes.add" in offered["host"]
    assert not any(name.startswith("notes.") for name in offered["app"])


def test_a_denied_tool_of_a_third_party_never_runs(start, over_http, line):
    answers = [call("hang", "CONTINUE", port=line.port), {"Status": "FAIL"}]
    policy = [{"verdict": "deny", "tool": "notes.*", "reason": "not today"}]
    supervisor = start(app=answers, mcpServers={"notes": over_http}, policy=policy)
    assert supervisor.submit(lone()).result(PATIENCE).outcome is Outcome.FAILED
    assert line.silent


def test_a_cancel_during_a_call_ends_the_task_and_tells_the_server(start, server, line):
    def answer(request):
        return call("hang", port=line.port) if request.request == "hang" else call("add", a=1, b=1)

    supervisor = start(app=answer, mcpServers={"notes": server}, policy=ALLOWED)
    handle = supervisor.submit(lone(request="hang"))
    assert line.read() == "begun"
    assert handle.cancel("enough")
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert line.read() == "left"
    assert supervisor.submit(lone(request="add")).result(PATIENCE).output == {"result": 2}


def test_a_program_is_gone_after_stop(start, over_stdio, is_gone):
    supervisor = start(app=[call("pid")], mcpServers={"notes": over_stdio}, policy=ALLOWED)
    pid = supervisor.submit(lone()).result(PATIENCE).output["result"]
    assert not is_gone(pid)
    assert supervisor.stop() == ()
    assert is_gone(pid)


def test_a_program_is_gone_after_stop_in_the_middle_of_a_call(start, over_stdio, is_gone, line, tmp_path):
    env = {"NOTES_PID": str(tmp_path / "pid")}
    notes = {**over_stdio, "env": env}
    supervisor = start(app=[call("hang", port=line.port)], mcpServers={"notes": notes}, policy=ALLOWED)
    handle = supervisor.submit(lone())
    assert line.read() == "begun"
    assert supervisor.stop() == ()
    assert handle.result(0).outcome is Outcome.CANCELLED
    assert is_gone(int((tmp_path / "pid").read_text(encoding="utf-8")))


@pytest.mark.parametrize("broken", [{"command": "no-such-program-anywhere"}, {"url": UNUSED}], ids=["stdio", "http"])
def test_a_failed_server_start_names_it_and_stops_the_servers_before_it(over_stdio, is_gone, tmp_path, broken):
    pid = tmp_path / "pid"
    notes = {**over_stdio, "env": {"NOTES_PID": str(pid)}}
    settings = Settings.load(mcpServers={"notes": notes, "broken": broken})
    with pytest.raises(SettingsError, match=r"mcpServers\.broken"):
        Supervisor.start(settings)
    assert is_gone(int(pid.read_text(encoding="utf-8")))


def told_of(supervisor, name):
    """Wait for the first event of a name, since the start."""
    told = queue.SimpleQueue()
    supervisor.subscribe(lambda event: told.put(event) if event.name is name else None, after=0)
    return told.get(timeout=PATIENCE)


BROKEN = {"command": "no-such-program-anywhere"}


def test_all_servers_that_fail_to_start_are_named_at_once(over_stdio, is_gone, tmp_path):
    pid = tmp_path / "pid"
    notes = {**over_stdio, "env": {"NOTES_PID": str(pid)}}
    settings = Settings.load(mcpServers={"one": BROKEN, "notes": notes, "two": {"url": UNUSED}, "may": OPTIONAL})
    with pytest.raises(SettingsError, match=r"mcpServers\.one: .*; mcpServers\.two: ") as failure:
        Supervisor.start(settings)
    assert "mcpServers.may" not in str(failure.value)
    assert is_gone(int(pid.read_text(encoding="utf-8")))


OPTIONAL = {**BROKEN, "optional": True}


def test_an_optional_server_that_fails_to_start_is_left_out_with_a_warning(start, over_http):
    servers = {"gone": OPTIONAL, "notes": over_http}
    supervisor = start(app=[call("add", a=2, b=3)], mcpServers=servers, policy=ALLOWED)
    (warning,) = supervisor.warnings
    assert warning.startswith("mcpServers.gone: the program ")
    assert told_of(supervisor, EventName.SERVER_LEFT_OUT).data == {"server": "gone", "reason": warning}
    assert supervisor.submit(lone()).result(PATIENCE).output == {"result": 5}


def test_operator_settings_of_a_tool_override_its_annotations(start, over_http):
    seen = {}

    def answer(request):
        seen.update({tool.name: tool.effect for tool in request.tools})
        return call("put", key="k")

    tools = {"put": {"effect": "read"}, "add": {"effect": "idempotent", "hazards": []}, "words": {"offered": False}}
    supervisor = start(app=answer, mcpServers={"notes": {**over_http, "trusted": True, "tools": tools}})
    assert supervisor.warnings == ()
    assert supervisor.submit(lone()).result(PATIENCE).outcome is Outcome.FINISHED  # reading needs no approval
    assert (seen["notes.put"], seen["notes.add"]) == (Effect.READ, Effect.IDEMPOTENT)
    assert "notes.words" not in seen


@pytest.mark.parametrize("hazards", [[], ["sends"]])
def test_hazards_that_the_operator_names_hold_instead(over_http, hazards):
    async def looked_at():
        tools = {"lock": {"effect": "once", "hazards": hazards}}
        server = McpServer.model_validate({**over_http, "tools": tools})
        session = McpSession("notes", server, Settings.load())
        await session.open()
        try:
            (tool,) = [tool for tool in session.tools() if tool.info.name == "notes.lock"]
            return await tool.facts({}, (), Asked())
        finally:
            await session.close()

    facts = asyncio.run(looked_at())
    assert facts.hazards == {Hazard(each) for each in hazards}


def test_a_setting_of_a_tool_that_is_not_there_names_the_nearest(start, over_http):
    supervisor = start(mcpServers={"notes": {**over_http, "tools": {"wrds": {"offered": False}}}})
    warning = "mcpServers.notes.tools: the server has no tool 'wrds'; did you mean 'words'?"
    assert supervisor.warnings == (warning,)
    assert told_of(supervisor, EventName.TOOL_UNMATCHED).data == {"server": "notes", "reason": warning}


def test_a_tool_has_a_time_limit_of_its_own(start, over_http, line):
    causes = []

    def answer(request):
        causes.extend(result.error for record in request.memory for result in record.results)
        return call("hang", "CONTINUE", port=line.port) if request.call == 1 else {"Status": "FAIL"}

    notes = {**over_http, "tools": {"hang": {"seconds": 0.1}}}
    supervisor = start(app=answer, mcpServers={"notes": notes}, policy=ALLOWED)
    supervisor.submit(lone()).result(PATIENCE)
    assert "took longer than 0.1 s" in causes[0]


MEETING = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as line:
    assert line.recv(2) == b"go"
exec(open(sys.argv[2], encoding="utf-8").read())
"""


def test_servers_start_side_by_side(start, notes):
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        listening.settimeout(PATIENCE)

        def meet():
            callers = [listening.accept()[0] for _ in range(3)]  # none is let go before all are there
            for caller in callers:
                with caller:
                    caller.sendall(b"go")

        met = pool.submit(meet)
        arguments = ["-c", MEETING, str(listening.getsockname()[1]), str(notes)]
        server = {"command": sys.executable, "args": arguments, "start_seconds": PATIENCE}
        start(mcpServers={"one": server, "two": server, "three": server})
        met.result(PATIENCE)


def test_a_secret_does_not_reach_the_log(start, over_stdio, tmp_path):
    log = tmp_path / "callboard.log"
    supervisor = start(
        app=[call("leak", "CONTINUE", name="NOTES_KEY"), {"Status": "FAIL"}],
        mcpServers={"notes": {**over_stdio, "env": {"NOTES_KEY": SECRET}}},
        policy=ALLOWED,
        log={"file": str(log), "level": "debug"},
    )
    ended = queue.SimpleQueue()
    supervisor.subscribe(lambda event: ended.put(event) if event.name is EventName.COMMAND_ENDED else None)
    supervisor.submit(lone()).result(PATIENCE)
    assert SECRET not in ended.get(timeout=PATIENCE).data["error"]
    supervisor.stop()
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    (line,) = [line for line in lines if line["event"] == "command.ended"]
    assert "the key ********** is wrong" in line["error"]
    assert SECRET not in log.read_text(encoding="utf-8")
