"""A person's changes between two processes are not overwritten after a crash.

The outcome is replayed from the journal each time.
"""

from __future__ import annotations

import threading

import pytest
from openpyxl import load_workbook

from callboard import EventName, Outcome, Task
from callboard.messages import JournalError
from callboard.models import AppResponse
from callboard.surfaces import EffectGuard
from callboard.testing import Faults, assert_replays, disk_full
from support import PATIENCE

CELLS = ("A1", "A2")
PERSON = {"A1": "a person wrote this", "A2": "and this", "B1": "and that"}


def app(request):
    """Write two cells, one after the other, then finish."""
    calls = [
        {"function": "write_range", "arguments": {"sheet": "Sheet", "cell": cell, "values": [[f"new {cell}"]]}}
        for cell in CELLS
    ]
    return {"Status": "FINISH"} if request.memory else {"Status": "CONTINUE", "Actions": calls}


def fail():
    msg = "it ends here"
    raise OSError(msg)


def leave(path, values):
    """Be a person who writes into the file while no agent works, or deletes it: None."""
    if values is None:
        path.unlink()
    elif values:
        workbook = load_workbook(path)
        for cell, value in values.items():
            workbook.active[cell] = value
        workbook.save(path)


def cells(path):
    return {cell.coordinate: cell.value for row in load_workbook(path).active for cell in row if cell.value}


@pytest.fixture
def broken_off(start, tmp_path, book, monkeypatch):
    """Break a task off at a place of its nth call; a person writes, and the next process goes on with the task."""
    begun = []

    def go_on(where, nth, meanwhile=PERSON, **settings):
        given = {
            "app": app,
            "servers": [],
            "documents": {"workspace": tmp_path},
            "policy": [{"verdict": "allow", "tool": "*"}],
            "journal": {"path": tmp_path / "journal.db", **settings},
        }
        kept, foresee = threading.Event(), EffectGuard.foresee
        calls = []

        def foreseen(*note):
            calls.append(note)
            assert len(calls) < nth or kept.wait(PATIENCE)  # all that came before this call is safe by then
            foresee(*note)

        def checked(answer, status=AppResponse.decided_status):
            assert kept.wait(PATIENCE)
            return status(answer)

        with Faults() as faults, monkeypatch.context() as patched:
            patched.setattr(EffectGuard, "foresee", foreseen)
            if where == "before it was decided":
                patched.setattr(AppResponse, "decided_status", checked)
                faults.after("answered", kept.set)
                faults.before("decided", disk_full)
            else:
                faults.after("decided" if nth == 1 else "command_result", kept.set)
            if where == "before it was foreseen":
                faults.before("foreseen", disk_full, nth=nth)
            elif where == "before it was done":
                faults.before("effect", fail, nth=nth)
            faults.before("command_result", disk_full, nth=nth)
            first = start(**given)
            with pytest.raises(JournalError):
                first.submit(Task(id="t", request="do it", target="book.xlsx")).result(PATIENCE)
            first.stop()
        leave(book, meanwhile)
        begun.append(start(**given))
        return begun[0].handle("t")

    yield go_on
    for supervisor in begun:
        supervisor.stop()
        assert_replays(tmp_path / "journal.db")


def test_an_answer_from_before_the_crash_does_not_overwrite_others_edits(broken_off, book, until):
    handle = broken_off("before it was decided", 1)
    assert handle.result(PATIENCE).ok
    assert until(handle, EventName.LIST_CUT).data["ran"] == 0
    assert cells(book) == PERSON


def test_an_answer_from_before_the_crash_is_not_asked_for_again(broken_off, book):
    handle = broken_off("before it was decided", 1, meanwhile={})
    result = handle.result(PATIENCE)
    assert (result.ok, result.usage.model_calls) == (True, 2)
    assert cells(book) == {cell: f"new {cell}" for cell in CELLS}


@pytest.mark.parametrize("nth", [1, 2])
def test_file_deleted_meanwhile_is_left_alone_and_the_list_is_cut(broken_off, book, until, nth):
    handle = broken_off("before it was foreseen", nth, meanwhile=None)
    assert handle.result(PATIENCE).ok
    cut = until(handle, EventName.LIST_CUT)
    assert (cut.data["ran"], "can't be seen any more" in cut.data["reason"]) == (nth - 1, True)
    assert not book.exists()


@pytest.mark.parametrize("nth", [1, 2])
def test_the_list_is_cut_before_a_call_that_had_foreseen_nothing_yet(broken_off, book, until, nth):
    handle = broken_off("before it was foreseen", nth)
    assert handle.result(PATIENCE).ok
    assert until(handle, EventName.LIST_CUT).data["ran"] == nth - 1
    assert cells(book) == PERSON


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("where", ["before it was done", "after it was done"])
@pytest.mark.parametrize(
    ("said", "outcome"),
    [("it was done", Outcome.FINISHED), ("it was not done", Outcome.FINISHED), ("stop", Outcome.FAILED)],
)
def test_person_decides_whether_a_call_that_was_about_to_write_was_done(
    broken_off, book, until, where, nth, said, outcome
):
    handle = broken_off(where, nth)
    until(handle, EventName.QUESTION_ASKED)
    [question] = handle.questions()
    assert question.in_doubt == f"t~1.1.{nth - 1}"
    handle.answer(question.id, said)
    assert handle.result(PATIENCE).outcome is outcome
    assert cells(book) == PERSON


@pytest.mark.parametrize("where", ["before it was done", "after it was done"])
def test_work_fails_when_no_person_may_be_asked(broken_off, book, where):
    assert broken_off(where, 1, in_doubt="fail").result(PATIENCE).outcome is Outcome.FAILED
    assert cells(book) == PERSON


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("where", ["before it was foreseen", "before it was done", "after it was done"])
def test_list_is_done_to_its_end_when_no_other_program_wrote(broken_off, book, where, nth):
    handle = broken_off(where, nth, meanwhile={})
    assert handle.result(PATIENCE).ok
    assert EventName.LIST_CUT not in {event.name for event in handle.events()}
    assert cells(book) == {cell: f"new {cell}" for cell in CELLS}
