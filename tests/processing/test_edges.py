"""Lists, pauses, cancels and approvals where they meet."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import docx
import openpyxl
import pytest

from callboard import EventName, FunctionModel, Outcome, Task, tool
from callboard.actors.states import HostAgentStateManager
from callboard.messages import Effect
from callboard.testing import MemoryServer
from support import FINISH, HELD, PATIENCE, action, actions, lone


class Slow(MemoryServer):
    """A surface with a tool that waits in the middle, and a look that can be held up."""

    def __init__(self):
        super().__init__(self.window())
        self.begun, self.let_go = threading.Event(), threading.Event()
        self.looked, self.look_on = threading.Event(), threading.Event()
        self.hold_looks = False

    def resolve(self, seen, control):
        if self.hold_looks:
            self.looked.set()
            self.look_on.wait(PATIENCE)
        return super().resolve(seen, control)

    @tool(effect=Effect.ONCE)
    def hang(self, target: str, control_id: str) -> str:
        """Wait."""
        self.begun.set()
        self.let_go.wait(HELD)
        return "done"


@pytest.fixture
def slow():
    surface = Slow()
    yield surface
    surface.let_go.set()
    surface.look_on.set()


def test_a_cancel_keeps_what_the_step_that_it_broke_off_had_done(start, slow):
    supervisor = start(app=[actions(action("write", "field-1", text="a"), action("hang", "field-1"))], servers=[slow])
    handle = supervisor.submit(lone())
    assert slow.begun.wait(PATIENCE)
    handle.cancel()
    (subtask,) = handle.result(PATIENCE).subtasks
    assert subtask.outcome is Outcome.CANCELLED
    assert (subtask.usage.steps, subtask.usage.model_calls, subtask.usage.commands) == (1, 1, 2)


def test_a_cancel_keeps_the_files_that_were_written(start, tmp_path):
    model = threading.Event()

    async def host(request):
        if request.step == 1:
            return {"Status": "CONTINUE", "Function": "create_document", "Args": {"path": "new.xlsx"}}
        model.set()
        await _for_ever()
        return FINISH

    supervisor = start(host=FunctionModel(host), servers=[], documents={"workspace": tmp_path})
    handle = supervisor.submit(Task(request="x"))
    assert model.wait(PATIENCE)
    handle.cancel()
    assert [Path(path).name for path in handle.result(PATIENCE).artifacts] == ["new.xlsx"]


async def _for_ever():
    await asyncio.Event().wait()


def test_a_pause_during_a_look_at_the_surface_stops_the_action(start, slow):
    slow.hold_looks = True
    one = {"Status": "CONTINUE", "ControlLabel": "field-1", "Function": "write", "Args": {"text": "a"}}
    supervisor = start(app=[one, FINISH], servers=[slow])
    handle = supervisor.submit(lone())
    assert slow.looked.wait(PATIENCE)
    assert handle.pause()
    slow.look_on.set()
    assert supervisor.status().tasks[0].paused
    assert slow.effects == []
    assert handle.resume()
    assert handle.result(PATIENCE).ok
    assert len(slow.effects) == 1


def test_a_list_that_stops_on_a_failure_saved_the_calls_of_what_ran(start, slow):
    three = [action("write", "field-1", text=text) for text in "abc"]
    bad = {"function": "write", "arguments": {"control_id": "field-1", "text": "d"}}
    rules = [{"verdict": "deny", "tool": "append"}]
    deny = {**bad, "function": "append"}
    supervisor = start(app=[actions(*three, deny), FINISH], servers=[slow], policy=rules)
    assert supervisor.submit(lone()).result(PATIENCE).usage.calls_saved == 2


def test_in_a_list_to_be_approved_the_denied_action_has_the_reason(start, slow):
    rules = [{"verdict": "deny", "tool": "append", "reason": "no appends"}]
    told = []

    def app(request):
        told.extend(request.observation.notes)
        if request.memory:
            return FINISH
        return actions(action("write", "field-1", text="a"), action("append", "field-1", text="b"), status="CONFIRM")

    handle = start(app=app, servers=[slow], policy=rules).submit(lone())
    assert handle.result(PATIENCE).ok
    assert "append failed: denied: no appends" in told
    assert any(note.startswith("write was not run") for note in told)
    assert slow.effects == []


def test_a_tool_is_never_called_under_a_lease_that_is_void(start):
    class Plain(MemoryServer):
        def __init__(self):
            super().__init__(self.window())
            self.sent = []

        @tool(effect=Effect.ONCE)
        async def send(self, target: str) -> str:
            """Send, without asking the lease itself."""
            self.sent.append(target)
            return "sent"

    asked = threading.Event()

    async def app(_request):
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return {"Status": "FINISH", "Function": "send"}

    surface = Plain()
    supervisor = start(app=FunctionModel(app), servers=[surface])
    handle = supervisor.submit(lone())
    assert asked.wait(PATIENCE)
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    supervisor.stop()
    assert surface.sent == []


def test_an_approval_does_not_overwrite_what_somebody_wrote_meanwhile(start, until, tmp_path):
    document = docx.Document()
    document.add_paragraph("old")
    document.save(str(tmp_path / "note.docx"))
    told = []

    def app(request):
        told.extend(request.observation.notes)
        if request.memory:
            return FINISH
        return {
            "Status": "CONTINUE",
            "Function": "edit_paragraph",
            "Args": {"control_id": "paragraph-1", "text": "new"},
        }

    supervisor = start(app=app, servers=[], documents={"workspace": tmp_path})
    handle = supervisor.submit(Task(request="x", target="note.docx"))
    until(handle, EventName.APPROVAL_REQUESTED)
    theirs = docx.Document(str(tmp_path / "note.docx"))
    theirs.add_paragraph("written by a person")
    theirs.save(str(tmp_path / "note.docx"))
    handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).ok
    assert [p.text for p in docx.Document(str(tmp_path / "note.docx")).paragraphs] == ["old", "written by a person"]
    assert any("somebody else has changed it" in note for note in told)


def test_after_a_held_start_the_subtask_runs_in_the_new_window(start, until, tmp_path):
    fill = {"Status": "ASSIGN", "ControlText": "excel", "Current Sub-Task": "fill it"}
    rules = [{"verdict": "approve", "tool": "start_application"}]

    def app(_request):
        return {"Status": "FINISH", "Function": "write_range", "Args": {"cell": "A1", "values": [[1]]}}

    supervisor = start(host=[fill, fill, FINISH], app=app, servers=[], documents={"workspace": tmp_path}, policy=rules)
    handle = supervisor.submit(Task(request="x"))
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.approve(handle.approvals()[0].id, remember=True)
    result = handle.result(PATIENCE)
    assert result.ok
    assert [done.address for done in result.subtasks] == [f"app/excel/Workbook{number}.xlsx" for number in (1, 2)]
    assert openpyxl.load_workbook(tmp_path / "Workbook2.xlsx").active["A1"].value == 1


def test_an_approval_costs_no_step(start, until):
    supervisor = start(
        app=[{"Status": "CONTINUE", **_write()}, FINISH],
        policy=[{"verdict": "approve", "tool": "write"}],
        limits={"steps": 2},
    )
    handle = supervisor.submit(lone())
    until(handle, EventName.APPROVAL_REQUESTED)
    handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).outcome is Outcome.FINISHED


def _write():
    return {"ControlLabel": "field-1", "Function": "write", "Args": {"text": "a"}}


def test_a_state_that_awaits_though_it_only_decides_is_an_error(start, monkeypatch):
    async def waiting(_state, _agent, _context):
        await asyncio.sleep(0)

    monkeypatch.setattr(type(HostAgentStateManager.get_state("ASSIGN")), "handle", waiting)
    assign = {"Status": "ASSIGN", "ControlText": "memo:one", "Current Sub-Task": "do it"}
    result = start(host=[assign]).submit(Task(request="do it")).result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert "must not await anything" in str(result.causes)
