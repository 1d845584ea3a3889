"""The hand-offs: no ending of a subtask may say better, or worse, than its result."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from callboard.messages import (
    Assign,
    Cancel,
    Outcome,
    SubtaskErrored,
    SubtaskFailed,
    SubtaskFinished,
    SubtaskResult,
    subtask_ended,
)

ENDINGS = {
    Outcome.FINISHED: SubtaskFinished,
    Outcome.FAILED: SubtaskFailed,
    Outcome.ERROR: SubtaskErrored,
    Outcome.CANCELLED: SubtaskFailed,
    Outcome.TIMED_OUT: SubtaskFailed,
    Outcome.OUT_OF_BUDGET: SubtaskFailed,
    Outcome.REJECTED: SubtaskFailed,
}
KINDS = (SubtaskFinished, SubtaskFailed, SubtaskErrored)
STOPS = {Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.OUT_OF_BUDGET}


def result_with(outcome: Outcome) -> SubtaskResult:
    return SubtaskResult(run_id="t~1", number=1, request="count the rows", address="app/memo/one", outcome=outcome)


@pytest.mark.parametrize("outcome", Outcome)
def test_each_outcome_gets_the_ending_that_tells_it(outcome):
    ended = subtask_ended("t", 7, result_with(outcome))
    assert type(ended) is ENDINGS[outcome]
    assert (ended.task_id, ended.run_id, ended.token, ended.result.outcome) == ("t", "t~1", 7, outcome)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outcome", Outcome)
def test_an_ending_carries_no_outcome_but_its_own(kind, outcome):
    fields = {"task_id": "t", "run_id": "t~1", "token": 7, "result": result_with(outcome)}
    if ENDINGS[outcome] is kind:
        assert kind(**fields).result.outcome is outcome
    else:
        with pytest.raises(ValidationError, match=f"can't carry the outcome '{outcome.value}'"):
            kind(**fields)


@pytest.mark.parametrize("outcome", Outcome)
def test_only_a_cancel_a_deadline_or_a_budget_stops_a_task(outcome):
    if outcome in STOPS:
        assert Cancel(task_id="t", outcome=outcome).outcome is outcome
    else:
        with pytest.raises(ValidationError, match="outcome"):
            Cancel(task_id="t", outcome=outcome)


@pytest.mark.parametrize("address", ["host/t", "app/word/report.docx", "app/word/*", "mobile/e-5554", "operator/a"])
def test_work_goes_to_the_address_of_any_kind(address):
    assert Assign(task_id="t", run_id="t~1", address=address, request="count").address == address


@pytest.mark.parametrize("address", ["", "host", "host/", "7/t", "App/word/a", " app/word/a", "app\\word"])
def test_work_goes_to_no_other_address(address):
    with pytest.raises(ValidationError, match="address"):
        Assign(task_id="t", run_id="t~1", address=address, request="count")
