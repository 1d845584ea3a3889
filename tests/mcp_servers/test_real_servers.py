"""MCP servers as their makers publish them: each is listed, planned over, called, refused, and killed."""

from __future__ import annotations

import itertools
import json
import os
import queue
import signal
import time
from pathlib import Path

import pytest
from pinned import SERVERS

from callboard import EventName, Outcome, Settings, Supervisor, Task
from callboard.messages import SettingsError
from support import PATIENCE

NAMES = [server.name for server in SERVERS]
TITLES = {
    "everything": "Everything Reference Server",
    "filesystem": "secure-filesystem-server",
    "memory": "memory-server",
    "git": "mcp-git",
    "time": "mcp-time",
}
ADA = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}


@pytest.fixture
def given(workspace, calls):
    """Give each server's calls, and those that are denied."""
    file, new = str(workspace / "hello.txt"), str(workspace / "new.txt")
    called = {
        "everything": ("echo", {"message": "hi"}),
        "filesystem": ("read_text_file", {"path": file}),
        "memory": ("create_entities", {"entities": [ADA]}),
        "git": ("git_status", {"repo_path": str(workspace)}),
        "time": ("get_current_time", {"timezone": "UTC"}),
    }
    denied = {
        "everything": ("get-env", {}),
        "filesystem": ("write_file", {"path": new, "content": "x"}),
        "memory": ("delete_entities", {"entityNames": ["Ada"]}),
        "git": ("git_commit", {"repo_path": str(workspace), "message": "x"}),
        "time": ("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "UTC"}),
    }
    for some in (called, denied):
        calls.update({f"{name}.{tool}": arguments for name, (tool, arguments) in some.items()})
    return {name: (f"{name}.{called[name][0]}", f"{name}.{denied[name][0]}") for name in NAMES}


SAID = {
    "everything": "Echo: hi",
    "filesystem": "hello",
    "memory": "wrote the first program",
    "git": "hello.txt",
    "time": "UTC",
}


def processes_of(name):
    """Find the processes of a server among the children of this one: each supervisor of the tests has its own."""
    (path,) = [str(server.path) for server in SERVERS if server.name == name]
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = folder.joinpath("stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
            if int(parent) == os.getpid() and path in folder.joinpath("cmdline").read_text(encoding="utf-8"):
                found.add(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def kill(name):
    """Kill a server; gives the ids of its processes."""
    found = processes_of(name)
    assert found
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + PATIENCE
    while processes_of(name) & found:  # the machine may be busy
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def test_each_server_is_a_target(supervisor):
    listed = {target.id: (target.name, target.address) for target in supervisor.targets()}
    assert listed == {name: (TITLES[name], f"app/mcp/{name}") for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_server_is_planned_over_and_called(supervisor, given, name):
    result = supervisor.submit(Task(request=given[name][0])).result(PATIENCE)
    assert (result.outcome, [done.address for done in result.subtasks]) == (Outcome.FINISHED, [f"app/mcp/{name}"])
    assert SAID[name] in json.dumps(result.output)


@pytest.mark.parametrize("name", NAMES)
def test_a_call_that_the_policy_denies_is_not_made(supervisor, given, workspace, name):
    handle = supervisor.submit(Task(request=given[name][1], target=name))
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    decided = [event.data for event in handle.events() if event.name is EventName.POLICY_DECIDED]
    assert [(each["tool"], each["verdict"]) for each in decided] == [(given[name][1], "deny")]
    ended = [event.data["status"] for event in handle.events() if event.name is EventName.COMMAND_ENDED]
    assert "success" not in ended
    assert not (workspace / "new.txt").exists()
    assert not list((workspace / ".git" / "objects").glob("??"))


@pytest.mark.parametrize("name", NAMES)
def test_a_server_that_was_killed_is_started_by_its_next_use(supervisor, given, name):
    killed = kill(name)
    result = supervisor.submit(Task(request=given[name][0])).result(PATIENCE)
    if result.outcome is not Outcome.FINISHED:  # the call was sent before its end was noticed
        assert "went away during the call: whether it was done is in doubt" in str(result.causes)
        result = supervisor.submit(Task(request=given[name][0])).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED
    assert processes_of(name) - killed


@pytest.mark.parametrize("name", NAMES)
def test_a_server_that_is_killed_in_a_call_leaves_a_doubt(killing, given, name):
    tool = given[name][0]
    handle = killing.submit(Task(request=tool, target=name))
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    (ended,) = [event.data for event in handle.events() if event.name is EventName.COMMAND_ENDED]
    assert ended["error"] == f"the MCP server {name} went away during the call: whether it was done is in doubt"
    again = killing.submit(Task(request=tool, target=name)).result(PATIENCE)
    assert again.outcome is Outcome.FINISHED, again.causes


def test_a_call_in_which_its_server_is_killed_is_in_doubt(supervisor, calls, until):
    calls["everything.trigger-long-running-operation"] = {"duration": 600, "steps": 6000}
    handle = supervisor.submit(Task(request="everything.trigger-long-running-operation", target="everything"))
    told = until(handle, EventName.TOOL_PROGRESS)
    assert told.data["tool"] == "everything.trigger-long-running-operation"
    kill("everything")
    result = handle.result(PATIENCE)
    ended = until(handle, EventName.COMMAND_ENDED)
    assert result.outcome is Outcome.FAILED
    assert ended.data["error"] == "the MCP server everything went away during the call: whether it was done is in doubt"


def test_a_form_of_a_server_is_filled_in_by_a_person(supervisor, calls, until):
    calls["everything.trigger-elicitation-request"] = {}
    handle = supervisor.submit(Task(request="everything.trigger-elicitation-request", target="everything"))
    asked = until(handle, EventName.QUESTION_ASKED).data["request"]
    handle.answer(asked["id"], "decline")
    assert "declined" in handle.result(PATIENCE).output


def test_a_picture_that_a_server_answers_is_kept(supervisor, calls):
    calls["everything.get-tiny-image"] = {}
    result = supervisor.submit(Task(request="everything.get-tiny-image", target="everything")).result(PATIENCE)
    assert "[picture 1, image/png, " in result.output


def test_server_standard_error_becomes_events(supervisor):
    said = queue.SimpleQueue()
    end = supervisor.subscribe(said.put, after=0)
    events = iter(lambda: said.get(timeout=PATIENCE), None)
    told = list(itertools.islice((each.data for each in events if each.name is EventName.SERVER_SAID), 3))
    end()
    assert {each["server"] for each in told} <= {"everything", "filesystem", "memory"}
    assert all(each["text"] for each in told)


def test_server_made_for_another_sdk_names_its_error(outdated):
    with pytest.raises(SettingsError, match=r"mcpServers\.old: no connection: it ended with exit code 1 .*McpError"):
        Supervisor.start(Settings.load(mcpServers={"old": {"command": outdated}}))


def test_a_server_that_is_not_installed_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    told = {each.name: each.missing for each in SERVERS}
    assert told["everything"] == "node is missing: apt-get install nodejs npm"
    assert told["git"] == "git is not installed: python tests/mcp_servers/pinned.py"
