"""Approvals that only people of the machine that does the work decide on."""

from __future__ import annotations

import asyncio
import logging

import pytest

from callboard import EventName, Outcome
from callboard.fleet import Bucket, MemoryEngine
from callboard.fleet._work_messages import TaskSignals
from callboard.messages import Answer, ApprovalAnswer, NotWaitingError
from callboard.testing import MemoryServer
from support import ASK, FINISH, PATIENCE, append, lone, wait_for

REMOTE_WINDOW = "finance-3:memo:finance-3"
REFUSED = "is refused: only people here decide"


def worker(request):
    return append(request.request) if request.step == 1 else FINISH


class Deciding:
    """A machine that decides on its approvals itself, and a task that waits for one."""

    def __init__(self, fleet, until):
        self.fleet = fleet
        self.surface = MemoryServer(MemoryServer.window("finance-3"))
        self.there = self.start()
        self.here = fleet.machine("desk", serves=False)
        self.handle = fleet.submit(self.here, lone(REMOTE_WINDOW, request="sum"))
        until(self.handle, EventName.APPROVAL_ELSEWHERE)
        (self.request,) = self.there.status().approvals

    def start(self):
        return self.fleet.machine(
            "finance-3",
            surface=self.surface,
            app=worker,
            policy=[{"verdict": "approve", "tool": "append"}],
            fleet={"approvals": "here"},
        )

    @property
    def effects(self):
        return [text for _, _, text in self.surface.effects]

    def send(self, *verdicts):
        """Send verdicts as a submitter would that was changed."""
        key = f"finance-3.desk.{self.request.task_id}"

        async def run():
            engine = MemoryEngine(self.fleet.hub, "desk")
            await engine.open()
            await engine.put(Bucket.SIGNALS, key, TaskSignals(verdicts=verdicts).model_dump_json().encode())
            await engine.close()

        asyncio.run(run())

    def approval(self, **fields):
        return ApprovalAnswer(id=self.request.id, task_id=self.request.task_id, approved=True, **fields)


@pytest.fixture
def deciding(fleet, until):
    """Give a task of the machine ``desk`` that waits for an approval there."""
    return Deciding(fleet, until)


def test_submitter_is_told_of_an_approval_and_can_not_answer(deciding):
    (event,) = [event for event in events_of(deciding.handle) if event.name is EventName.APPROVAL_ELSEWHERE]
    assert (event.machine, event.reason) == ("finance-3", deciding.request.reason)
    assert (event.run_id, event.task_id) == (f"{deciding.handle.task_id}~1", deciding.handle.task_id)
    assert (deciding.handle.approvals(), deciding.handle.questions()) == ((), ())
    with pytest.raises(NotWaitingError):
        deciding.handle.approve(deciding.request.id)
    deciding.there.handle(deciding.request.task_id).approve(deciding.request.id, by="Mr Bell")
    assert deciding.handle.result(PATIENCE).ok
    assert deciding.effects == ["sum"]


def events_of(handle):
    """Collect the events so far."""
    found = []
    for event in handle.events():
        found.append(event)
        if event.name is EventName.APPROVAL_ELSEWHERE:
            return found
    return found


def test_rejection_there_ends_the_subtask_here(deciding):
    deciding.there.handle(deciding.request.task_id).reject(deciding.request.id, "not today", by="Mr Bell")
    result = deciding.handle.result(PATIENCE)
    assert result.outcome is Outcome.REJECTED
    assert "rejected by Mr Bell: not today" in result.causes[0].reason
    assert deciding.effects == []


@pytest.mark.parametrize("is_remembered", [False, True])
def test_verdict_of_a_submitter_is_refused_and_logged(deciding, caplog, is_remembered):
    deciding.send(deciding.approval(by="Mr Bell", remember=is_remembered))
    wait_for(lambda: REFUSED in caplog.text)
    assert "the machine desk" in caplog.text
    assert deciding.there.status().approvals == (deciding.request,)
    deciding.there.handle(deciding.request.task_id).reject(deciding.request.id)
    assert deciding.handle.result(PATIENCE).outcome is Outcome.REJECTED
    assert deciding.effects == []


def test_answer_in_place_of_a_verdict_is_refused(deciding, caplog):
    deciding.send(Answer(id=deciding.request.id, task_id=deciding.request.task_id, texts=("yes",)))
    wait_for(lambda: "is an approval: approve or reject it" in caplog.text)
    assert deciding.there.status().approvals == (deciding.request,)
    assert deciding.effects == []


def test_answer_of_nobody_decides_on_no_approval(deciding, caplog):
    nobody = Answer(id=deciding.request.id, task_id=deciding.request.task_id, nobody=True)
    deciding.send(nobody, deciding.approval().model_copy(update={"id": "other"}))
    wait_for(lambda: REFUSED in caplog.text)  # the answer was taken before it
    assert deciding.there.status().approvals == (deciding.request,)
    assert deciding.effects == []


def test_verdict_of_a_submitter_is_refused_after_a_restart_there(deciding, caplog):
    deciding.there.stop()
    deciding.send(deciding.approval())
    again = deciding.start()
    wait_for(lambda: REFUSED in caplog.text)
    (request,) = again.status().approvals
    assert deciding.effects == []
    again.handle(request.task_id).approve(request.id, by="Mr Bell")
    assert deciding.handle.result(PATIENCE).ok
    assert deciding.effects == ["sum"]


def test_submitter_that_restarts_is_told_again(deciding):
    deciding.here.stop()
    again, names = deciding.fleet.machine("desk", serves=False), []
    handle = again.handle(deciding.handle.task_id)
    again.subscribe(lambda event: names.append(event.name), after=0)
    wait_for(lambda: EventName.APPROVAL_ELSEWHERE in names)
    assert handle.approvals() == ()
    deciding.there.handle(deciding.request.task_id).approve(deciding.request.id)
    assert handle.result(PATIENCE).ok


def test_questions_stay_with_the_submitter(fleet, until):
    there = fleet.machine(
        "finance-3", app=lambda request: ASK if request.step == 1 else FINISH, fleet={"approvals": "here"}
    )
    here = fleet.machine("desk", serves=False)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    until(handle, EventName.QUESTION_ASKED)
    (question,) = handle.questions()
    handle.answer(question.id, "the blue one")
    assert handle.result(PATIENCE).ok
    assert there.pending() == ()


@pytest.fixture(autouse=True)
def _logged(caplog):
    caplog.set_level(logging.DEBUG)
