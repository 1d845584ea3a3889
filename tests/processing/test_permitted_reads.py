"""Calls that only read have hazards too: rules and people decide about them, on every surface."""

from __future__ import annotations

import contextlib
import os
import sys

import pytest
from docx import Document

from callboard import EventName, Outcome, Task, tool
from callboard.messages import AgentKind, CallboardError, Effect, Hazard
from callboard.surfaces import reads_are_harmless
from callboard.surfaces.documents import DocumentSurface
from callboard.testing import Faults, MemoryServer, assert_replays, disk_full
from support import FINISH, PATIENCE, action, actions, append, call, lone

LEAVING = {Hazard.LEAVES}
DENY = [{"verdict": "deny", "hazards": ["leaves"]}]
ELSEWHERE = call("peek", path="../elsewhere")


class Cabinet(MemoryServer):
    """A surface whose reading tool leaves it for some arguments."""

    hazards_of_host = True

    @tool(effect=Effect.READ, agents=tuple(AgentKind))
    def peek(self, path: str) -> str:
        """Read a file."""
        self.effects.append(("peek", path, ""))
        return f"content of {path}"

    def hazards(self, target, tool, arguments, made):
        return set(LEAVING) if tool == "peek" and str(arguments["path"]).startswith("..") else set()


def cabinet():
    return Cabinet(Cabinet.window(), Cabinet.device(), Cabinet.shell())


def decided(handle):
    """Return the data of the policy's verdicts on a task's actions, once it is over."""
    return [event.data for event in handle.events() if event.name is EventName.POLICY_DECIDED]


def approved(handle):
    """Approve each request of a task, and return the actions."""
    asked = []
    for event in handle.events():
        if event.name is EventName.APPROVAL_REQUESTED:
            asked += [each["tool"] for each in event.data["request"]["actions"]]
            handle.approve(event.data["request"]["id"])
    return asked


@pytest.mark.parametrize(("kind", "target"), [("app", "memo:one"), ("mobile", "emulator"), ("linux", "local")])
def test_a_read_with_a_hazard_is_asked_about(start, until, kind, target):
    surface = cabinet()
    handle = start(servers=[surface], **{kind: [ELSEWHERE, FINISH]}).submit(lone(target))
    until(handle, EventName.APPROVAL_REQUESTED)
    (asked,) = handle.approvals()
    assert ("leaves" in asked.reason, surface.effects) == (True, [])
    handle.approve(asked.id)
    assert handle.result(PATIENCE).ok
    assert surface.effects == [("peek", "../elsewhere", "")]


def test_a_rejected_read_is_not_done(start, until):
    surface = cabinet()
    handle = start(servers=[surface], app=[ELSEWHERE, FINISH]).submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.reject(handle.approvals()[0].id)
    assert handle.result(PATIENCE).outcome is Outcome.REJECTED
    assert surface.effects == []


@pytest.mark.parametrize("policy", [DENY, [{"verdict": "deny", "hazards": ["leaves"], "effects": ["read"]}]])
def test_a_rule_denies_a_read_by_its_hazard(start, policy):
    surface = cabinet()
    answers = [call("peek", path="here"), ELSEWHERE, FINISH]
    handle = start(servers=[surface], app=answers, policy=policy).submit(lone())
    assert handle.result(PATIENCE).ok
    assert surface.effects == [("peek", "here", "")]


def test_a_host_agents_read_is_asked_about(start, until):
    surface = cabinet()
    handle = start(servers=[surface], host=[ELSEWHERE, FINISH]).submit(Task(request="x"))
    until(handle, EventName.APPROVAL_REQUESTED)
    assert surface.effects == []


def test_a_read_without_a_hazard_is_not_asked_about(start):
    handle = start(servers=[cabinet()], app=[call("peek", path="here"), FINISH]).submit(lone())
    assert approved(handle) == []
    assert handle.result(PATIENCE).ok


def test_a_dry_run_does_not_read_what_a_person_would_be_asked_about(start):
    surface = cabinet()
    answer = actions(action("peek", path="here"), action("peek", path="../elsewhere"), status="FINISH")
    result = start(servers=[surface], app=lambda _: answer).submit(lone(dry_run=True)).result(PATIENCE)
    assert ([each.tool for each in result.would_do], surface.effects) == (["peek"], [("peek", "here", "")])


@pytest.mark.parametrize(
    "place", [("approval_answer", 1), ("command_result", 1), ("command_result", 2), ("step_done", 2)]
)
def test_an_approved_read_is_not_asked_about_again_after_a_crash(begin, until, tmp_path, place):
    surface = cabinet()
    answers = [actions(action("peek", path="../elsewhere"), append("x")), FINISH]
    given = {"servers": [surface], "app": answers}
    kind, nth = place
    with Faults() as faults:
        broken = begin(**given)
        handle = broken.submit(lone(id="t"))
        until(handle, EventName.APPROVAL_REQUESTED)
        faults.after(kind, disk_full, nth=nth)
        with contextlib.suppress(CallboardError, OSError):  # the crash
            handle.approve(handle.approvals()[0].id)
            handle.result(PATIENCE)
        broken.stop()
        assert faults.passed["after", kind] == nth
        assert begin(**given).handle("t").result(PATIENCE).ok
        assert faults.passed["after", "approval_request"] == 1
    assert [effect for effect in surface.effects if effect[0] != "peek"] == [("memo:one", "field-1", "x")]
    assert_replays(tmp_path / "journal.db", "t")


# Surfaces that need not be asked


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "workspace").mkdir()
    Document().save(str(tmp_path / "workspace" / "a.docx"))
    return tmp_path / "workspace"


class Strict(DocumentSurface):
    """Documents of a program whose reads are hazards."""

    def hazards(self, target, tool, arguments, made):
        return super().hazards(target, tool, arguments, made) | LEAVING


def test_reads_of_documents_cost_no_further_query(workspace):
    surface = DocumentSurface(workspace)
    assert (reads_are_harmless(surface), reads_are_harmless(Strict(workspace))) == (True, False)
    target = next(each for each in surface.targets() if each.id == "a.docx")
    for entry in surface.tools():
        if entry.effect is Effect.READ:
            assert surface.hazards(target, entry.name, {}, ()) == surface.hazards(None, entry.name, {}, ()) == set()


def test_a_surface_that_overrides_hazards_is_asked_about_reads(start, until, workspace):
    answers = [call("read_text"), FINISH]
    handle = start(servers=[Strict(workspace)], app=answers, policy=DENY).submit(lone("a.docx"))
    handle.result(PATIENCE)
    assert [(data["verdict"], data["hazards"]) for data in decided(handle)] == [("deny", ["leaves"])]


THEIRS = '''
"""An MCP server of a third party."""

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("theirs", log_level="ERROR")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(path: str) -> str:
    """Look."""
    return "seen"


server.run("stdio")
'''


def test_the_hazards_that_settings_give_a_reading_tool_hold(start, tmp_path):
    (tmp_path / "theirs.py").write_text(THEIRS, encoding="utf-8")
    server = {
        "command": sys.executable,
        "args": [str(tmp_path / "theirs.py")],
        "trusted": True,
        "tools": {"look": {"hazards": ["leaves"]}},
    }
    answers = [call("theirs.look", path="/etc/shadow"), FINISH]
    supervisor = start(app=answers, servers=[], mcp_servers={"theirs": server}, policy=DENY)
    handle = supervisor.submit(lone("theirs"))
    handle.result(PATIENCE)
    assert [(data["verdict"], data["effect"]) for data in decided(handle)] == [("deny", "read")]


# Shells

OUTSIDE = {
    "a file above": "../secret.txt",
    "an absolute path": "{above}/secret.txt",
    "a link to a file": "link.txt",
    "a link to a folder": "folder/secret.txt",
    "a chain of links": "chain",
    "out and by a link": "deep/../../secret.txt",
    "the home": "~/secret.txt",
    "the environment": "/proc/self/environ",
    "the environment by number": "/proc/{pid}/environ",
    "the environment of a thread": "/proc/self/task/{pid}/environ",
    "the root of a process": "/proc/self/root{above}/secret.txt",
    "a link to the environment": "environment",
    "a file of the system": "/etc/shadow",
    "nothing": "../nothing",
}
INSIDE = ["a.txt", "deep/b.txt", "./deep/../a.txt", "inner", "{above}/work/a.txt"]


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Give the settings of a shell, with links out of its workspace."""
    work = tmp_path.resolve() / "work"
    (work / "deep").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("TOPSECRET", encoding="utf-8")
    for name in ("a.txt", "deep/b.txt"):
        (work / name).write_text("fine", encoding="utf-8")
    links = {
        "link.txt": tmp_path / "secret.txt",
        "folder": tmp_path,
        "chain": work / "link.txt",
        "environment": "/proc/self/environ",
        "inner": work / "a.txt",
    }
    for name, target in links.items():
        (work / name).symlink_to(target)
    monkeypatch.setenv("HOME", str(tmp_path))
    return {"box": {"cwd": work}}  # isolated where possible: the tools for files never are


def filled(path, tmp_path):
    return path.format(above=tmp_path.resolve(), pid=os.getpid())


def test_reads_outside_the_workspace_have_the_hazards_of_cat(start, shell, tmp_path):
    supervisor = start(linux=lambda _: answer, servers=[], shells=shell)
    asked = {}
    for name, path in OUTSIDE.items():
        place = filled(path, tmp_path)
        reads = [
            action("read_file", path=place),
            action("list_dir", path=place),
            action("search", text="T", path=place),
        ]
        reads += [action("find", pattern="*", path=place), action("run", command=f"cat {place}")]
        answer = actions(*reads, status="FINISH")
        handle = supervisor.submit(lone("linux/box", dry_run=True))  # whatever needs an approval is passed over
        assert [each.tool for each in handle.result(PATIENCE).would_do] == [each["Function"] for each in reads]
        asked[name] = {(data["verdict"], *data["hazards"]) for data in decided(handle)}
    assert asked == {name: {("approve", "leaves")} for name in OUTSIDE}


def test_a_denied_read_outside_the_workspace_shows_nothing(start, shell):
    seen = []

    def linux(request):
        seen.append(repr(request))
        return FINISH if request.memory else call("read_file", path="link.txt")

    handle = start(linux=linux, servers=[], shells=shell, policy=DENY).submit(lone("linux/box"))
    assert "TOPSECRET" not in repr(handle.result(PATIENCE)) + "".join(seen)
    assert [data["verdict"] for data in decided(handle)] == ["deny"]


def test_reads_inside_the_workspace_are_not_asked_about(start, shell, tmp_path):
    paths = [filled(path, tmp_path) for path in INSIDE]
    answers = [each for path in paths for each in (call("read_file", path=path), call("run", command=f"cat {path}"))]
    answers += [call("list_dir"), call("find", pattern="*"), call("search", text="fine", path="deep"), FINISH]
    handle = start(linux=answers, servers=[], shells=shell, limits={"steps": 20}).submit(lone("linux/box"))
    assert approved(handle) == []
    assert handle.result(PATIENCE).ok


def test_a_workspace_does_not_contain_the_virtual_file_systems(start, shell):
    answers = [call("read_file", path=f"/proc/{os.getpid()}/environ"), FINISH]
    given = {"box": {"cwd": "/", "isolated": False}}
    handle = start(linux=answers, servers=[], shells=given, policy=DENY).submit(lone("linux/box"))
    handle.result(PATIENCE)
    assert [data["verdict"] for data in decided(handle)] == ["deny"]
