"""The state of a task from its rows: usage, started work, endings, open requests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from callboard.actors.root._recovery import RecoveredTask, book_usage, recover_task, used_by
from callboard.actors.runtime import Budgets
from callboard.config import BudgetSettings
from callboard.journal import Row
from callboard.messages import (
    Action,
    Answer,
    Answered,
    ApprovalAnswer,
    ApprovalRequest,
    AskedQuestion,
    Assign,
    Cancel,
    Captured,
    Cause,
    Decision,
    Observation,
    Outcome,
    Pause,
    PlanStep,
    Question,
    Recovered,
    RequestExpired,
    Resume,
    RoundEnding,
    StepDone,
    StepFailure,
    StepRecord,
    SubtaskResult,
    Target,
    TargetKind,
    Task,
    Usage,
    subtask_ended,
)

NOW = 5000.0
"""The time of the clock that never jumps."""
HOST, APP = "host/t", "app/memo/one"
WINDOW = Target(id="memo:one", name="memo:one", kind=TargetKind.WINDOW, address=APP, server="memory")
TASK = Task(id="t", request="the whole")


def round_of(number=1, token=1, **fields):
    return Assign(task_id="t", run_id="t~0", address=HOST, request="the whole", round=number, token=token, **fields)


def part(number=1, token=0):
    return Assign(
        task_id="t", run_id=f"t~{number}", address=APP, request="a part", number=number, token=token, host=HOST
    )


def alone(token=1):
    return Assign(task_id="t", run_id="t~1", address=APP, request="x", number=1, token=token, target=WINDOW)


def ended(number=1, token=2):
    result = SubtaskResult(run_id=f"t~{number}", number=number, request="x", address=APP, outcome=Outcome.FINISHED)
    return subtask_ended("t", token, result)


def round_ended(token=1, **fields):
    return RoundEnding(task_id="t", run_id="t~0", token=token, outcome=Outcome.FINISHED, **fields)


def step(**usage):
    record = StepRecord(step=1, status="CONTINUE", observation=Observation(), decision=Decision(status="CONTINUE"))
    return StepDone(record=record, usage=Usage(steps=1, **usage))


def question(id_="ask", run="t~0", **fields):
    whose = {"task_id": "t", "run_id": run, "token": 1, "address": HOST}
    return Question(id=id_, questions=(AskedQuestion(text="which?"),), **whose, **fields)


def approval(id_="ask", run="t~0"):
    whose = {"task_id": "t", "run_id": run, "token": 1, "address": HOST}
    return ApprovalRequest(id=id_, actions=(Action(tool="w"),), reason="r", observation=Observation(), **whose)


@pytest.fixture
def recovered() -> Callable[..., RecoveredTask]:
    """Make the past of task ``t``: a row is a message, or one with its job, each a second after the last one."""

    def make(*rows, first=TASK):
        made = [Row(100.0, "t", "", first)]
        for number, row in enumerate(rows, 1):
            message, job = row if isinstance(row, tuple) else (row, 0)
            run = getattr(message, "run_id", "t~0")
            made.append(Row(100.0 + number, "t", "" if run == "*" else run, message, job))
        found = recover_task(made, NOW)
        assert found is not None
        return found

    return make


def whole(message):
    """Make the row of a message to the whole task."""
    return Row(101.0, "t", "", message)


# Whether there is one


def test_rows_that_do_not_begin_with_a_task_have_no_past():
    assert recover_task([], NOW) is None
    assert recover_task([Row(1.0, "t", "t~0", round_of())], NOW) is None


def test_a_task_of_which_nothing_was_begun_has_its_first_round_to_come(recovered):
    found = recovered()
    assert (found.record.task, found.record.round, found.record.runs, found.begun) == (TASK, 0, {}, [])


# Runs


def test_a_round_that_had_begun_is_still_a_run_and_has_no_lease_any_more(recovered):
    found = recovered(round_of(token=3))
    assert found.record.runs == {"t~0": round_of(token=0)}
    assert (found.begun, found.token, found.record.round) == (["t~0"], 3, 1)


def test_where_work_was_done_there_may_be_memory(recovered):
    assert recovered(round_of(), (part(), 1), part(token=2)).record.agents == {HOST, APP}


def test_an_assignment_that_waited_for_its_target_had_not_begun(recovered):
    found = recovered(round_of(), (part(), 1))
    assert set(found.record.runs) == {"t~0", "t~1"}
    assert (found.begun, found.record.agents) == (["t~0"], {HOST})


def test_runs_had_begun_in_the_order_in_which_they_got_their_targets(recovered):
    found = recovered(round_of(), (part(1), 1), (part(2), 2), part(2, token=2), part(1, token=3))
    assert (found.begun, found.token) == (["t~0", "t~2", "t~1"], 3)


def test_a_run_that_was_begun_again_after_a_crash_had_begun_once(recovered):
    found = recovered(round_of(), round_of(token=4))
    assert (found.begun, found.token) == (["t~0"], 4)


def test_a_lone_agents_task_knows_its_target(recovered):
    found = recovered(alone(), first=Task(id="t", request="x", target="memo:one"))
    assert (found.record.target, found.record.round) == (WINDOW, 1)


# Endings


def test_unhandled_ending_is_sent_again(recovered):
    found = recovered(round_of(), (part(), 1), part(token=2), (ended(), 4))
    assert found.endings == {"t~1": ended()}
    assert found.begun == ["t~0"]
    assert "t~1" in found.record.runs


def test_an_ending_that_was_handed_on_is_in_the_books(recovered):
    found = recovered(round_of(), (part(), 1), part(token=2), (ended(), 4), ended())
    assert (found.endings, set(found.record.runs)) == ({}, {"t~0"})
    assert [done.run_id for done in found.record.subtasks] == ["t~1"]


def test_an_ending_that_a_crash_made_is_in_the_books_too(recovered):
    found = recovered(round_of(), (part(), 1), part(token=2), ended())
    assert (found.begun, set(found.record.runs)) == (["t~0"], {"t~0"})


def test_the_next_round_begins_after_the_ending_of_the_last(recovered):
    usage = Usage(steps=2, cost=0.5)
    plan = Task(id="t", plan=(PlanStep(request="one"), PlanStep(request="two")))
    ending = round_ended(usage=usage, artifacts=("a.txt",))
    found = recovered(round_of(), (ending, 3), round_of(2, token=2), first=plan)
    record = found.record
    assert (found.endings, found.begun, record.round, record.rounds) == ({}, ["t~0"], 2, 1)
    assert [(ended.usage, ended.artifacts) for ended in record.ended_rounds] == [(usage, ("a.txt",))]


def test_unhandled_ending_of_a_round_is_sent_again(recovered):
    found = recovered(round_of(), (round_ended(), 3))
    assert (found.endings, found.begun, found.record.round) == ({"t~0": round_ended()}, [], 1)


# Stops and pauses


def test_a_cancel_stops_the_task_and_withdraws_what_was_asked(recovered):
    cancel = Cancel(task_id="t", reason="enough")
    found = recovered(round_of(), question(), cancel)
    assert (found.record.stopping, found.asks) == (cancel, {})


def test_a_cancel_of_one_run_takes_away_what_that_run_asked(recovered):
    found = recovered(round_of(), question("1", "t~1"), question("2", "t~2"), Cancel(task_id="t", run_id="t~1"))
    assert (found.record.stopping, set(found.asks)) == (None, {"2"})


def test_a_pause_lasts_until_the_resume():
    begun = [Row(100.0, "t", "", TASK), Row(100.0, "t", "t~0", round_of())]
    pause, resume = whole(Pause(task_id="t")), whole(Resume(task_id="t"))
    assert recover_task([*begun, pause], NOW).record.paused
    assert not recover_task([*begun, pause, resume], NOW).record.paused


def test_a_pause_passed_on_to_a_run_does_not_pause_the_task_again():
    rows = [Pause(task_id="t"), Resume(task_id="t")]
    told = Row(103.0, "t", "t~1", Pause(task_id="t"))
    found = recover_task([Row(100.0, "t", "", TASK), *(whole(row) for row in rows), told], NOW)
    assert not found.record.paused


# People


@pytest.mark.parametrize("ask", [question(), approval()], ids=["question", "approval"])
def test_open_request_waits_again(recovered, ask):
    assert recovered(round_of(), (ask, 2)).asks == {"ask": ask}


@pytest.mark.parametrize(
    "word",
    [
        Answer(id="ask", task_id="t", texts=("x",)),
        ApprovalAnswer(id="ask", task_id="t", approved=False),
        RequestExpired(id="ask", task_id="t"),
    ],
)
def test_answered_or_expired_request_waits_no_more(recovered, word):
    assert recovered(round_of(), (approval(), 2), word).asks == {}


def test_request_of_an_ended_run_waits_no_more(recovered):
    found = recovered(round_of(), (part(), 1), part(token=2), (question(run="t~1"), 2), ended())
    assert found.asks == {}


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        ({"approved": True, "remember": True}, 1),
        ({"approved": True}, 0),
        ({"approved": False, "remember": True}, 0),
    ],
)
def test_approval_for_the_rest_of_the_task_is_recovered(recovered, word, kept):
    found = recovered(round_of(), (approval(), 2), ApprovalAnswer(id="ask", task_id="t", **word))
    assert found.approved == [approval()] * kept


# Usage


def test_usage_of_steps_is_counted_for_their_run(recovered):
    host = (step(model_calls=1, input_tokens=10, output_tokens=5, cost=0.5), 1)
    asked = (question(usage=Usage(model_calls=2)), 2)
    found = recovered(round_of(), host, asked, Captured(observation=None))
    kinds = {"steps": 1, "rounds": 1, "model_calls": 3, "tokens": 15, "cost": 0.5}
    assert dict(used_by(found)) == {"t~0": kinds}


ANSWERED = Answered(step=1, call=3, content={}, input_tokens=10, output_tokens=5, cost=0.5)


def test_answers_of_a_step_that_was_broken_off_are_booked_once(recovered):
    found = recovered(round_of(), (ANSWERED, 1))
    budgets = Budgets(BudgetSettings())
    book_usage(found, budgets)
    assert budgets.task("t").used == {"model_calls": 1, "tokens": 15, "cost": 0.5}
    budgets.step("t", "t~0").settle_again(ANSWERED.call, **ANSWERED.used)
    assert budgets.task("t").used["model_calls"] == 1


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        (lambda: step(model_calls=1), False),
        (lambda: StepFailure(phase=None, causes=(Cause(reason="no"),)), False),
        (lambda: question(usage=Usage(model_calls=1)), False),
        (lambda: question(in_doubt="t~0.1.0"), True),
    ],
    ids=["done", "failed", "at-a-limit", "in-doubt"],
)
def test_answers_are_kept_only_when_their_step_is_in_doubt(recovered, word, kept):
    found = recovered(round_of(), (ANSWERED, 1), (word(), 1))
    assert bool(found.answers) is kept


def test_only_a_host_agent_uses_rounds(recovered):
    rows = [Row(100.0, "t", "", TASK), Row(101.0, "t", "t~1", alone()), Row(102.0, "t", "t~1", step(), 1)]
    [(run_id, kinds)] = used_by(recover_task(rows, NOW))
    assert (run_id, kinds["rounds"], kinds["steps"]) == ("t~1", 0, 1)


# Time


def spent(*rows):
    """Give the seconds of work of the task and its runs; a row is a time and a message."""
    made = [
        Row(at, "t", "" if isinstance(message, Pause | Resume | Recovered) else "t~0", message) for at, message in rows
    ]
    return recover_task([Row(0.0, "t", "", TASK), *made], NOW)


def test_the_time_of_a_task_and_its_runs_is_the_time_between_their_rows():
    found = spent((10.0, round_of()), (25.0, step()))
    assert found.worked == {"t": 25.0, "t~0": 15.0}
    assert found.record.started == NOW - 25


def test_between_two_processes_no_time_passes():
    found = spent((10.0, round_of()), (1000.0, Recovered(task_id="t")), (1005.0, step()))
    assert found.worked == {"t": 15.0, "t~0": 5.0}


def test_in_a_pause_no_time_passes():
    found = spent((10.0, round_of()), (20.0, Pause(task_id="t")), (500.0, Resume(task_id="t")), (505.0, step()))
    assert found.worked == {"t": 25.0, "t~0": 15.0}


def test_while_a_person_is_asked_no_time_passes():
    answer = Answer(id="ask", task_id="t", texts=("x",))
    found = spent((10.0, round_of()), (20.0, question()), (500.0, answer), (505.0, step()))
    assert found.worked == {"t": 25.0, "t~0": 15.0}


def test_a_wall_clock_that_is_set_back_takes_no_time_away():
    found = spent((10.0, round_of()), (5.0, step()), (8.0, step()))
    assert found.worked == {"t": 13.0, "t~0": 3.0}
