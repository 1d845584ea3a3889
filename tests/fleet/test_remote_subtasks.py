"""Subtasks that another machine does: their results, requests, cancels, pauses and restarts."""

from __future__ import annotations

import pytest

from callboard import EventName, Outcome, Task
from callboard.journal import JournalReader
from callboard.testing import MemoryServer, assert_replays
from support import ASK, FINISH, PATIENCE, append, lone, wait_for

REMOTE_WINDOW = "finance-3:memo:finance-3"


def worker(request):
    """Append its request to the window once, and answer with it."""
    if request.step == 1:
        return append(request.request)
    return {**FINISH, "Result": f"{request.request} is done"}


def test_task_on_another_machine_is_done_there(fleet):
    surface = MemoryServer(MemoryServer.window("finance-3"))
    there = fleet.machine("finance-3", surface=surface, app=worker)
    here = fleet.machine("desk", app=worker, serves=False)
    result = fleet.submit(here, lone(REMOTE_WINDOW, request="sum")).result(PATIENCE)
    assert (result.outcome, result.output) == (Outcome.FINISHED, "sum is done")
    (subtask,) = result.subtasks
    assert (subtask.machine, subtask.target, subtask.actions) == ("finance-3", "memo:finance-3", 1)
    assert [text for _, _, text in surface.effects] == ["sum"]
    with JournalReader.open(fleet.journal("finance-3")) as reader:
        (line,) = reader.tasks()
        (task, *_) = [row.message for row in reader.rows(line.id) if isinstance(row.message, Task)]
    assert (task.origin.submitter, task.origin.task_request, task.labels) == ("desk", "sum", {"submitter": "desk"})
    there.stop()
    here.stop()
    assert_replays(fleet.journal("finance-3"), line.id)
    assert_replays(fleet.journal("desk"), result.task_id)


def test_host_agent_assigns_to_other_machines_which_see_earlier_results(fleet):
    def host(request):
        if len(request.subtasks) == 2:
            return {**FINISH, "Result": request.subtasks[-1].output}
        names = [target.id for target in request.observation.targets]
        assert REMOTE_WINDOW in names
        text = ("memo:desk", "first") if not request.subtasks else (REMOTE_WINDOW, "second")
        return {"Status": "ASSIGN", "ControlText": text[0], "Current Sub-Task": text[1]}

    def there(request):
        assert [done.output for done in request.subtasks] == ["first is done"]
        return {**FINISH, "Result": f"{request.request} after {request.subtasks[0].output}"}

    fleet.machine("finance-3", app=there)
    here = fleet.machine("desk", host=host, app=worker, serves=False)
    result = here.submit(Task(request="both")).result(PATIENCE)
    assert result.ok, result.causes
    assert result.output == "second after first is done"
    assert [(done.run_id[-2:], done.machine) for done in result.subtasks] == [("~1", ""), ("~2", "finance-3")]


def test_question_there_is_asked_here_and_recorded_on_both_sides(fleet, until):
    def there(request):
        if request.step == 1:
            return ASK
        (note,) = request.observation.notes
        return {**FINISH, "Result": note}

    served = fleet.machine("finance-3", app=there)
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    until(handle, EventName.QUESTION_ASKED)
    (question,) = handle.questions()
    assert (question.address, question.task_id) == ("remote/finance-3/app/memo/finance-3", handle.task_id)
    handle.answer(question.id, "the blue one", by="Ms Kim")
    result = handle.result(PATIENCE)
    assert (result.ok, result.output) == (True, "asked 'which one?', a person answered 'the blue one'")
    assert served.status().questions == ()
    answers = {}
    for name in ("desk", "finance-3"):
        with JournalReader.open(fleet.journal(name)) as reader:
            rows = [row.message for line in reader.tasks() for row in reader.rows(line.id)]
        answers[name] = [(row.by, row.texts) for row in rows if row.kind == "answer"]
    assert answers == {name: [("Ms Kim", ("the blue one",))] for name in ("desk", "finance-3")}


@pytest.mark.parametrize("is_approved", [True, False])
def test_approval_of_the_other_machine_is_asked_here(fleet, until, is_approved):
    surface = MemoryServer(MemoryServer.window("finance-3"))
    fleet.machine("finance-3", surface=surface, app=worker, policy=[{"verdict": "approve", "tool": "append"}])
    here = fleet.machine("desk", serves=False, policy=[{"verdict": "allow"}])
    handle = fleet.submit(here, lone(REMOTE_WINDOW, request="sum"))
    until(handle, EventName.APPROVAL_REQUESTED)
    (request,) = handle.approvals()
    assert request.target.machine == "finance-3"
    assert [action.arguments["text"] for action in request.actions] == ["sum"]
    if is_approved:
        handle.approve(request.id, by="Ms Kim")
    else:
        handle.reject(request.id, "not today", by="Ms Kim")
    result = handle.result(PATIENCE)
    assert result.outcome is (Outcome.FINISHED if is_approved else Outcome.REJECTED)
    assert [text for _, _, text in surface.effects] == (["sum"] if is_approved else [])
    assert is_approved or "rejected by Ms Kim: not today" in result.causes[0].reason


def test_request_that_is_answered_there_is_withdrawn_here(fleet, until):
    there = fleet.machine("finance-3", app=lambda request: ASK if request.step == 1 else FINISH)
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    until(handle, EventName.QUESTION_ASKED)
    (question,) = there.status().questions
    there.handle(question.task_id).answer(question.id, "the red one", by="Mr Bell")
    assert handle.result(PATIENCE).ok
    assert handle.questions() == ()


def test_cancel_stops_the_work_there_and_reports_what_was_done(fleet, until):
    surface = MemoryServer(MemoryServer.window("finance-3"))
    there = fleet.machine("finance-3", surface=surface, app=lambda request: append("one") if request.step == 1 else ASK)
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    until(handle, EventName.QUESTION_ASKED)
    assert handle.cancel("enough")
    result = handle.result(PATIENCE)
    assert (result.outcome, result.actions, result.causes[0].reason) == (Outcome.CANCELLED, 1, "enough")
    assert wait_for(lambda: there.pending() == ())


def test_cancel_while_the_machine_is_away_begins_nothing_there(fleet):
    surface = MemoryServer(MemoryServer.window("finance-3"))
    first = fleet.machine("finance-3", surface=surface, app=worker)
    here = fleet.machine("desk", serves=False)
    assert fleet.submit(here, lone(REMOTE_WINDOW, request="known")).result(PATIENCE).ok
    first.stop()
    handle = here.submit(lone(REMOTE_WINDOW, request="late"))
    assert handle.cancel("too late")
    fleet.machine("finance-3", surface=surface, app=worker)
    result = handle.result(PATIENCE)
    assert (result.outcome, result.actions) == (Outcome.CANCELLED, 0)
    assert [text for _, _, text in surface.effects] == ["known"]
