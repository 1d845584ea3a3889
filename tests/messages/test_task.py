"""Tasks that a host program may submit."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from callboard.messages import Outcome, PlanStep, SubtaskResult, Task, TaskResult, new_task_id

BLANK = st.text(alphabet=" \t\n\r\u00a0\u2003", max_size=5)


@given(request=BLANK)
def test_a_task_needs_words(request):
    with pytest.raises(ValidationError, match="describe the work"):
        Task(request=request)


@given(request=BLANK)
def test_a_step_of_a_plan_needs_words(request):
    with pytest.raises(ValidationError, match="describe the work"):
        Task(plan=["open the report", request])


def test_a_task_with_a_plan_needs_no_words_of_its_own():
    assert Task(plan=["open the report"]).request == ""


def test_the_strings_of_a_plan_are_its_requests():
    plan = Task(plan=["open the report", PlanStep(request="print it", target="report.docx")]).plan
    assert plan == (PlanStep(request="open the report"), PlanStep(request="print it", target="report.docx"))


def test_a_plan_comes_from_json_with_strings_and_objects():
    told = '{"plan": ["open the report", {"request": "print it", "target": "report.docx"}]}'
    assert Task.model_validate_json(told).plan == (
        PlanStep(request="open the report"),
        PlanStep(request="print it", target="report.docx"),
    )


@pytest.mark.parametrize("plan", ["open the report", 7, [7], [None], {"request": "open"}], ids=repr)
def test_plan_must_be_a_list_of_steps(plan):
    with pytest.raises(ValidationError, match="plan"):
        Task(plan=plan)


def test_a_task_has_a_plan_or_a_target_but_not_both():
    with pytest.raises(ValidationError, match="give each step of the plan its target"):
        Task(plan=["open the report"], target="report.docx")


@pytest.mark.parametrize("work", [{"request": "and print it"}, {"plan": ["print it"]}], ids=repr)
def test_task_may_continue_a_conversation(work):
    assert Task(session="task-1", **work).session == "task-1"


def test_a_task_of_its_own_has_no_session():
    assert Task(request="count the rows").session is None


def test_a_follow_up_has_no_target_of_its_own():
    with pytest.raises(ValidationError, match="a follow-up continues with a HostAgent"):
        Task(request="print it", session="task-1", target="report.docx")


def test_a_task_has_an_id_of_its_own_when_none_is_given():
    assert Task(request="count the rows").id != Task(request="count the rows").id


def test_a_made_id_is_a_legal_one():
    assert Task(id=new_task_id(), request="count the rows")


@pytest.mark.parametrize("legal", ["a", "7", "night-run_2024.05.31", "x" * 100])
def test_letters_digits_and_three_signs_make_an_id(legal):
    assert Task(id=legal, request="count the rows").id == legal


@pytest.mark.parametrize("illegal", ["", " ", "a b", "-a", "a/b", "../a", "a\n", "ä", "a*", "x" * 101])
def test_any_other_sign_is_refused_in_an_id(illegal):
    with pytest.raises(ValidationError, match="id"):
        Task(id=illegal, request="count the rows")


def test_labels_are_carried_along():
    assert Task(request="count the rows", labels={"ticket": "42"}).labels == {"ticket": "42"}


@pytest.mark.parametrize("outcome", Outcome)
def test_only_a_finished_task_is_ok(outcome):
    assert TaskResult(task_id="t", outcome=outcome).ok is (outcome is Outcome.FINISHED)


def test_the_first_subtask_is_number_one():
    result = {"run_id": "t~0", "request": "count", "address": "app/memo/one", "outcome": Outcome.FINISHED}
    assert SubtaskResult(number=1, **result)
    with pytest.raises(ValidationError, match="number"):
        SubtaskResult(number=0, **result)


@pytest.mark.parametrize("text", ["2026-11-24T17:30:00Z", "2026-11-24T18:30:00+01:00", "20261124T173000Z"])
def test_a_deadline_is_a_moment_with_a_time_zone(text):
    deadline = datetime(2026, 11, 24, 17, 30, tzinfo=UTC)
    task = Task(request="x", deadline=text)
    assert task == Task(request="x", id=task.id, deadline=deadline)
    assert Task.model_validate_json(task.model_dump_json()) == task


@pytest.mark.parametrize("value", ["2026-11-24T17:30:00", "tomorrow", "2026-11-24", 1_795_539_000, 1e9], ids=repr)
def test_deadline_must_be_a_single_moment(value):
    with pytest.raises(ValidationError, match="deadline"):
        Task(request="x", deadline=value)
