"""The machine of an agent whose subtask another machine of the fleet does."""

from __future__ import annotations

import pytest

from callboard.actors.states import By, Move, Run, archive, evolve, moves
from callboard.actors.states import RemoteAgentStateManager as Machine
from callboard.config import Limits
from callboard.messages import (
    AskedQuestion,
    Assign,
    Cancel,
    Cause,
    Check,
    CheckResult,
    Outcome,
    Question,
    RemoteEnded,
    StepFailure,
    SubtaskFailed,
    SubtaskFinished,
    SubtaskResult,
    Usage,
)

ASSIGN = Assign(task_id="t", run_id="t~2", token=7, address="remote/finance-3/app/memo/one", request="write", number=2)
RESULT = SubtaskResult(
    run_id="t~2",
    number=2,
    request="write",
    address=ASSIGN.address,
    machine="finance-3",
    outcome=Outcome.FINISHED,
    output=4,
    changed=("report.xlsx",),
    actions=3,
    usage=Usage(steps=2),
)
LOST = RESULT.model_copy(update={"outcome": Outcome.FAILED, "causes": (Cause(reason="no sheet"),)})
CANCEL = Cancel(task_id="t", run_id="t~2", reason="enough")


@pytest.fixture
def run():
    return Run.begin(ASSIGN, Limits(), Machine.initial)


def after(run, *messages):
    """Apply messages, each with the moves that it causes."""
    for message in messages:
        applied = run.apply(message)
        run = [applied, *(moved for _, _, moved in moves(Machine, applied))][-1]
    return run


@pytest.mark.parametrize(("result", "ending"), [(RESULT, SubtaskFinished), (LOST, SubtaskFailed)])
def test_end_on_the_other_machine_is_the_end_of_the_subtask(run, result, ending):
    ended = after(run, RemoteEnded(result=result))
    assert (ended.status, ended.outcome, ended.causes) == ("FINISH", result.outcome, result.causes)
    message = archive(ended)
    assert isinstance(message, ending)
    assert message.result == result
    assert message.token == 7


def test_question_of_the_other_machine_changes_no_state(run):
    asked = after(
        run,
        Question(
            id="t~2~ask-1.1",
            task_id="t",
            run_id="t~2",
            token=7,
            address=ASSIGN.address,
            questions=(AskedQuestion(text="which?"),),
        ),
    )
    assert (asked.status, asked.waiting) == ("CONTINUE", "t~2~ask-1.1")


def test_cancelled_subtask_waits_for_its_end_and_reports_what_was_done(run):
    cancelled = after(run, CANCEL)
    assert (cancelled.status, cancelled.outcome) == ("FAIL", Outcome.CANCELLED)
    ended = after(cancelled, RemoteEnded(result=RESULT))
    assert ended.status == "FINISH"
    result = archive(ended).result
    assert (result.outcome, result.causes[0].reason) == (Outcome.CANCELLED, "enough")
    assert (result.actions, result.changed, result.output) == (3, ("report.xlsx",), 4)


def test_work_that_can_not_be_sent_fails(run):
    failed = StepFailure(phase=None, causes=(Cause(reason="its queue is full"),), outcome=Outcome.FAILED)
    assert Machine.decide(run.apply(failed)) == Move("FAIL", By.SYSTEM, Outcome.FAILED)
    ended = after(run, failed, failed)
    assert (ended.status, ended.outcome) == ("FINISH", Outcome.FAILED)
    assert archive(ended).result.causes[0].reason == "its queue is full"


def test_end_without_the_checks_of_the_task_is_no_success(run):
    checked = evolve(run, assign=ASSIGN.model_copy(update={"checks": (Check(text="a.docx", exists=True),)}))
    unread = after(checked, RemoteEnded(result=RESULT))
    assert (unread.outcome, unread.causes[0].reason) == (Outcome.FAILED, "it ended without its checks")
    read = CheckResult(name="a", reading="text a.docx", source="task", held=True)
    assert after(checked, RemoteEnded(result=RESULT.model_copy(update={"checks": (read,)}))).outcome is Outcome.FINISHED
