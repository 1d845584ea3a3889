"""Results contain the work and cost of a step before a crash, even if it is never resumed.

The outcome is replayed from the journal each time.
"""

from __future__ import annotations

import threading

import pytest
from openpyxl import load_workbook

from callboard import EventName, Model, Outcome, Task
from callboard.messages import JournalError
from callboard.models import ModelAnswer
from callboard.surfaces.documents import DocumentSurface
from callboard.testing import Faults, MemoryServer, assert_replays, disk_full
from support import PATIENCE

CELLS = ("A1", "A2")


class Paid(Model):
    """A model that writes two cells, one after the other, and then finishes; each call has its price."""

    name = "paid"

    async def answer(self, request):
        calls = [
            {"function": "write_range", "arguments": {"sheet": "Sheet", "cell": cell, "values": [[f"new {cell}"]]}}
            for cell in CELLS
        ]
        content = {"Status": "FINISH"} if request.memory else {"Status": "CONTINUE", "Actions": calls}
        return ModelAnswer(content=content, input_tokens=100, output_tokens=10, cost=0.25)


@pytest.fixture
def begin(begin, tmp_path):
    """Start supervisors on the folder of the book, one after the other; the journal replays at the end."""
    allowed = [{"verdict": "allow", "tool": "*"}]
    section = {"documents": {"workspace": tmp_path}, "policy": allowed}
    yield lambda **given: begin(**{"app": Paid(), "servers": [], **section, **given})
    assert_replays(tmp_path / "journal.db")


@pytest.fixture
def broken_off(begin, book):
    """A task that a crash broke off once its first cell was written: `before` which row of the second one."""

    def make(before="foreseen", nth=2):
        with Faults() as faults:
            faults.before(before, disk_full, nth=nth)
            supervisor = begin()
            handle = supervisor.submit(Task(id="t", request="do it", target=book.name))
            with pytest.raises(JournalError):
                handle.result(PATIENCE)
            supervisor.stop()
        assert load_workbook(book).active["A1"].value == "new A1"

    return make


def first_step_is_in(result, book):
    """Check a result for the work and usage of the step that was broken off."""
    assert result.artifacts == result.subtasks[0].artifacts == (str(book),)
    used = result.usage
    assert (used.steps, used.model_calls, used.input_tokens, used.cost) == (1, 1, 100, 0.25)


def test_where_a_document_can_not_be_read_for_the_moment(broken_off, begin, book):
    broken_off()
    book.write_bytes(b"half saved by another program")
    result = begin().handle("t").result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert any("can't be read: it is a plain text" in cause.reason for cause in result.causes)
    first_step_is_in(result, book)


def test_where_somebody_cancels_while_the_document_is_looked_at(broken_off, begin, book, monkeypatch):
    broken_off()
    looking, cancelled = threading.Event(), threading.Event()
    real = DocumentSurface.observe

    def observe(self, target):
        looking.set()
        cancelled.wait(PATIENCE)
        return real(self, target)

    monkeypatch.setattr(DocumentSurface, "observe", observe)
    handle = begin().handle("t")
    assert looking.wait(PATIENCE)
    handle.cancel()
    cancelled.set()
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.CANCELLED
    first_step_is_in(result, book)


@pytest.mark.parametrize("processes", [1, 2])
def test_where_somebody_cancels_what_is_paused(broken_off, begin, book, monkeypatch, processes):
    broken_off()
    looking, paused = threading.Event(), threading.Event()
    real = DocumentSurface.observe

    def observe(self, target):
        looking.set()
        paused.wait(PATIENCE)
        return real(self, target)

    monkeypatch.setattr(DocumentSurface, "observe", observe)
    supervisor = begin()
    assert looking.wait(PATIENCE)
    supervisor.handle("t").pause()
    if processes > 1:
        supervisor.stop(0.1)  # it can't wait for the look
        supervisor = begin()
        assert supervisor.status().tasks[0].paused
    supervisor.handle("t").cancel()
    paused.set()
    result = supervisor.handle("t").result(PATIENCE)
    assert result.outcome is Outcome.CANCELLED
    first_step_is_in(result, book)


def write_into(book):
    """Be a person who writes into the file while no agent works: then it is unknown whether the call was done."""
    workbook = load_workbook(book)
    workbook.active["B1"] = "a person wrote this"
    workbook.save(book)


def test_unclear_action_fails_its_work_when_the_settings_let_it_fail(broken_off, begin, book):
    broken_off("command_result", 1)
    write_into(book)
    result = begin(journal={"in_doubt": "fail"}).handle("t").result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    first_step_is_in(result, book)


def test_unclear_action_fails_its_work_when_a_person_answers_stop(broken_off, begin, book, until):
    broken_off("command_result", 1)
    write_into(book)
    handle = begin().handle("t")
    until(handle, EventName.QUESTION_ASKED)
    handle.answer(handle.questions()[0].id, "stop")
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    first_step_is_in(result, book)


def test_where_it_is_gone_on_with_it_is_counted_once(broken_off, begin, book):
    broken_off()
    result = begin(budget={"task": {"model_calls": 2, "cost": 0.5}}).handle("t").result(PATIENCE)
    assert (result.outcome, result.artifacts) == (Outcome.FINISHED, (str(book),))
    assert (result.usage.steps, result.usage.model_calls, result.usage.commands) == (2, 2, 2)
    assert (result.usage.input_tokens, result.usage.cost) == (200, 0.5)


class Host(Model):
    """A HostAgent's model that has the window worked on, and then finishes."""

    async def answer(self, request):
        content = {"Status": "ASSIGN", "ControlText": "memo:one", "Current Sub-Task": "work"}
        content = {"Status": "FINISH"} if request.subtasks else content
        return ModelAnswer(content=content, cost=0.25)


class Append(Model):
    async def answer(self, request):
        content = {"Status": "CONTINUE", "Function": "append", "Args": {"control_id": "field-1", "text": "x"}}
        return ModelAnswer(content=content, cost=0.5)


def test_the_cost_of_a_subtask_that_was_not_resumed_counts_for_its_task(start, tmp_path):
    surface = MemoryServer(MemoryServer.window())
    given = {
        "host": Host(),
        "app": Append(),
        "servers": [surface],
        "journal": {"path": tmp_path / "journal.db"},
        "budget": {"task": {"cost": 0.9}},
    }
    with Faults() as faults:
        faults.before("command_result", disk_full)
        supervisor = start(**given)
        with pytest.raises(JournalError):
            supervisor.submit(Task(id="t", request="do it")).result(PATIENCE)
        supervisor.stop()
    surface.observe = None  # a look fails
    result = start(**given).handle("t").result(PATIENCE)
    assert [(done.outcome, done.usage.cost) for done in result.subtasks] == [(Outcome.ERROR, 0.5)]
    assert (result.usage.cost, result.usage.model_calls) == (0.75, 2)
    assert_replays(tmp_path / "journal.db")
