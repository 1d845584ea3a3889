"""Files that move between machines with a subtask."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from pathlib import Path

import pytest

from callboard import Task
from callboard.fleet import MemoryEngine, StoredFile
from callboard.surface import Effect, committing, tool
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, append, call, wait_for


class Desk(MemoryServer):
    """A window whose tools make and read files."""

    def __init__(self, name, folder):
        super().__init__(self.window(name))
        self.folder = folder
        folder.mkdir()

    @tool(effect=Effect.IDEMPOTENT)
    def make(self, target: str, name: str, text: str) -> str:
        """Make a file, and return its path."""
        path = self.folder / name
        with committing(path):
            path.write_text(text, encoding="utf-8")
        return str(path)

    @tool(effect=Effect.READ)
    def read(self, target: str, path: str) -> str:
        """Read a file."""
        return f"{path}: {Path(path).read_text(encoding='utf-8')}"


def worker(request):
    """Make a file, or read that of the subtask before."""
    if request.step == 2:
        return {**FINISH, "Result": request.memory[-1].results[0].value}
    if request.request == "make":
        return call("make", name="report.txt", text="42 pieces")
    return call("read", path=request.subtasks[-1].artifacts[0])


def host_of(*assigned):
    """Assign one subtask after the other: pairs of a target and a request."""

    def host(request):
        if len(request.subtasks) == len(assigned):
            return {**FINISH, "Result": request.subtasks[-1].output}
        target, work = assigned[len(request.subtasks)]
        return {"Status": "ASSIGN", "ControlText": target, "Current Sub-Task": work}

    return host


def run(fleet, here, task):
    """Submit a task once the targets of all other machines are known."""
    others = {supervisor.settings.fleet.machine for supervisor in fleet.supervisors} - {"desk"}
    wait_for(lambda: {target.machine for target in here.targets()} >= others)
    return here.submit(task).result(PATIENCE)


@pytest.fixture
def machines(fleet, tmp_path):
    """Start a machine: ``machines("finance-3")``."""

    def start(name, **given):
        return fleet.machine(name, surface=Desk(name, tmp_path / name), app=worker, **given)

    return start


def test_file_of_another_machine_is_here_as_an_artifact(fleet, machines, tmp_path):
    machines("finance-3")
    here = machines("desk", host=host_of(("finance-3:memo:finance-3", "make")), serves=False)
    result = run(fleet, here, Task(request="x"))
    assert result.ok, result.causes
    (path,) = result.artifacts
    assert (Path(path).read_text(encoding="utf-8"), Path(path).name) == ("42 pieces", "report.txt")
    assert result.output == path
    there = str(tmp_path / "finance-3" / "report.txt")
    assert result.subtasks[0].paths_there == {path: there}
    assert result.changed == (f"finance-3:{there}",)
    wait_for(lambda: not fleet.hub.files)


def test_later_subtask_on_a_third_machine_gets_the_file(fleet, machines, tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    machines("finance-3")
    machines("office-1", documents={"workspace": workspace})
    assigned = ("finance-3:memo:finance-3", "make"), ("office-1:memo:office-1", "read")
    here = machines("desk", host=host_of(*assigned), serves=False)
    result = run(fleet, here, Task(request="x"))
    assert result.ok, result.causes
    assert result.output == f"{workspace / 'inbox' / 'report.txt'}: 42 pieces"
    assert run(fleet, here, Task(request="x")).ok
    assert [path.name for path in (workspace / "inbox").iterdir()] == ["report.txt"]  # the same contents, once


def test_file_here_goes_to_another_machine(fleet, machines, tmp_path):
    machines("finance-3")
    here = machines("desk", host=host_of(("memo:desk", "make"), ("finance-3:memo:finance-3", "read")), serves=False)
    result = run(fleet, here, Task(request="x"))
    assert result.ok, result.causes
    path, _, text = result.output.partition(": ")
    assert text == "42 pieces"
    assert Path(path) != tmp_path / "desk" / "report.txt"
    wait_for(lambda: not fleet.hub.files)


def test_file_that_a_machine_made_is_not_sent_back_to_it(fleet, machines, tmp_path):
    machines("finance-3")
    target = "finance-3:memo:finance-3"
    here = machines("desk", host=host_of((target, "make"), (target, "read")), serves=False)
    result = run(fleet, here, Task(request="x"))
    assert result.output == f"{tmp_path / 'finance-3' / 'report.txt'}: 42 pieces"


class SlowFiles(MemoryEngine):
    """An engine that loads files once it may."""

    def __init__(self, hub, name):
        super().__init__(hub, name)
        self.asked, self.may = threading.Event(), threading.Event()

    async def load(self, file, path):
        """Load a file."""
        self.asked.set()
        assert await asyncio.to_thread(self.may.wait, PATIENCE)
        await super().load(file, path)


def test_a_large_file_holds_up_no_work_on_other_targets(fleet, machines):
    windows = MemoryServer.window("chart"), MemoryServer.window("notes")
    surface, engine = MemoryServer(*windows), SlowFiles(fleet.hub, "office-1")

    def append_once(request):
        return FINISH if request.step == 2 else append(request.request)

    fleet.machine("office-1", surface=surface, app=append_once, engine=engine)
    assigned = ("memo:desk", "make"), ("office-1:memo:chart", "with a file")
    here = machines("desk", host=host_of(*assigned), serves=False)
    wait_for(lambda: {target.machine for target in here.targets()} >= {"office-1"})
    slow = here.submit(Task(request="x"))
    assert engine.asked.wait(PATIENCE)
    same = here.submit(Task(request="the same target", target="office-1:memo:chart"))
    assert here.submit(Task(request="another target", target="office-1:memo:notes")).result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["another target"]
    engine.may.set()
    assert slow.result(PATIENCE).ok
    assert same.result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["another target", "with a file", "the same target"]


def test_file_in_the_inbox_is_never_replaced(fleet, machines, tmp_path):
    inbox = tmp_path / "workspace" / "inbox"
    inbox.mkdir(parents=True)
    (inbox / "report.txt").write_text("mine")
    machines("office-1", documents={"workspace": inbox.parent})
    here = machines("desk", host=host_of(("memo:desk", "make"), ("office-1:memo:office-1", "read")), serves=False)
    assert run(fleet, here, Task(request="x")).output == f"{inbox / 'report (2).txt'}: 42 pieces"
    assert (inbox / "report.txt").read_text() == "mine"


def test_inbox_that_is_a_link_gets_nothing(fleet, machines, tmp_path):
    (tmp_path / "workspace").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "workspace" / "inbox").symlink_to(tmp_path / "elsewhere")
    machines("office-1", documents={"workspace": tmp_path / "workspace"})
    here = machines("desk", host=host_of(("memo:desk", "make"), ("office-1:memo:office-1", "read")), serves=False)
    result = run(fleet, here, Task(request="x"))
    assert "is a link" in str(result.subtasks[1].causes)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_file_that_is_too_large_stays_where_it_is(fleet, machines, tmp_path):
    machines("finance-3", fleet={"max_file_bytes": 3})
    here = machines("desk", host=host_of(("finance-3:memo:finance-3", "make")), serves=False)
    result = run(fleet, here, Task(request="x"))
    assert result.ok
    assert result.artifacts == (f"finance-3:{tmp_path / 'finance-3' / 'report.txt'}",)


@pytest.mark.parametrize("name", ["../../evil.txt", "/etc/evil.txt", "..", "a\nb.txt", ".hidden"])
def test_names_of_files_lead_nowhere_else(fleet, machines, tmp_path, monkeypatch, name):
    inbox = tmp_path / "workspace" / "inbox"
    inbox.parent.mkdir()
    machines("office-1", documents={"workspace": inbox.parent})

    def lie(path, owner, writer, reader):
        data = path.read_bytes()
        return StoredFile(
            name=name, sha256=hashlib.sha256(data).hexdigest(), size=len(data), owner=owner, writer=writer
        )

    here = machines("desk", host=host_of(("memo:desk", "make"), ("office-1:memo:office-1", "read")), serves=False)
    monkeypatch.setattr("callboard.fleet._memory_engine.describe_file", lie)
    result = run(fleet, here, Task(request="x"))
    assert result.ok, result.causes
    (path,) = inbox.iterdir()
    assert path.read_text() == "42 pieces"


def test_file_that_is_larger_than_this_machine_takes_stays_there(fleet, machines, tmp_path):
    machines("finance-3")
    assigned = host_of(("finance-3:memo:finance-3", "make"))
    here = machines("desk", host=assigned, serves=False, fleet={"max_file_bytes": 3})
    result = run(fleet, here, Task(request="x"))
    assert result.ok
    assert result.artifacts == (f"finance-3:{tmp_path / 'finance-3' / 'report.txt'}",)
    assert not (tmp_path / "desk.db.artifacts").exists()
