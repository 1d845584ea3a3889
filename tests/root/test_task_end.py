"""Outcomes of tasks, and the sums in their results."""

from __future__ import annotations

import pytest

from callboard.actors.root._task_end import never_ran, task_result
from callboard.actors.root._tasks import TaskRecord
from callboard.messages import (
    Cancel,
    Cause,
    Outcome,
    RoundEnding,
    SubtaskResult,
    Task,
    Usage,
)
from callboard.testing import MemoryServer

WINDOW = MemoryServer.window()
HOSTED = Task(id="task-1", request="the whole")
ALONE = Task(id="task-1", request="the whole", target="memo:one")


def record(task=HOSTED, target=None):
    return TaskRecord(task, target, started=100.0)


def round_ended(outcome=Outcome.FINISHED, **fields):
    return RoundEnding(task_id="task-1", run_id="task-1~0", token=1, outcome=outcome, **fields)


def subtask(number=1, outcome=Outcome.FINISHED, **fields):
    return SubtaskResult(
        run_id=f"task-1~{number}", number=number, request="part", address=WINDOW.address, outcome=outcome, **fields
    )


def test_a_result_is_that_of_the_last_round():
    ended = record()
    ended.next_assign()
    ended.end_round(round_ended(output={"rows": 3}, comment="done", usage=Usage(steps=1)))
    result = task_result(ended, 103.5)
    assert (result.outcome, result.output, result.comment, result.rounds) == (
        Outcome.FINISHED,
        {"rows": 3},
        "done",
        1,
    )
    assert result.seconds == 3.5
    assert result.ok


def test_a_lone_subtasks_result_is_the_tasks():
    ended = record(ALONE, WINDOW)
    ended.next_assign()
    causes = (Cause(reason="the drawer is stuck"),)
    ended.end_subtask(subtask(outcome=Outcome.FAILED, causes=causes))
    assert (task_result(ended, 100.0).outcome, task_result(ended, 100.0).causes) == (Outcome.FAILED, causes)


def test_under_a_hostagent_a_subtasks_end_is_not_the_tasks():
    ended = record()
    ended.next_assign()
    ended.end_subtask(subtask())
    assert ended.ended is None
    assert task_result(ended, 100.0).outcome is Outcome.ERROR


@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.OUT_OF_BUDGET])
def test_task_outcome_is_that_of_its_stop_however_its_agents_ended(outcome):
    stopped = record()
    stopped.next_assign()
    stopped.stopping = Cancel(task_id="task-1", outcome=outcome, reason="enough")
    stopped.end_round(round_ended(Outcome.FINISHED, output="late"))
    result = task_result(stopped, 100.0)
    assert result.outcome is outcome
    assert [cause.reason for cause in result.causes] == ["enough"]


def test_usage_is_that_of_all_rounds_and_subtasks():
    used = record(Task(id="task-1", plan=["first", "second"]))
    used.next_assign()
    used.end_subtask(subtask(1, usage=Usage(steps=1, commands=2)))
    used.end_round(round_ended(usage=Usage(steps=3)))
    used.end_subtask(subtask(2, usage=Usage(steps=5, input_tokens=7)))
    used.end_round(round_ended(usage=Usage(steps=9)))
    assert task_result(used, 100.0).usage == Usage(steps=18, commands=2, input_tokens=7)


def test_failed_actions_are_those_of_all_rounds_and_subtasks():
    used = record()
    used.next_assign()
    used.end_subtask(subtask(1, failed_actions=1))
    used.end_subtask(subtask(2, failed_actions=2))
    used.end_round(round_ended(failed_actions=4))
    assert task_result(used, 100.0).failed_actions == 7


def test_each_artifact_is_named_once_in_the_order_in_which_it_was_made():
    made = record()
    made.next_assign()
    made.end_subtask(subtask(1, artifacts=("/w/a", "/w/b")))
    made.end_subtask(subtask(2, artifacts=("/w/b", "/w/c")))
    made.end_round(round_ended(artifacts=("/w/a", "/w/d")))
    assert task_result(made, 100.0).artifacts == ("/w/a", "/w/b", "/w/c", "/w/d")


def test_made_are_the_artifacts_that_any_agent_of_the_task_created():
    made = record()
    made.end_subtask(subtask(1, artifacts=("/w/old", "/w/new"), made=("/w/new",)))
    made.end_round(round_ended(artifacts=("/w/own", "/w/kept"), made=("/w/new", "/w/own", "/w/lost")))
    assert task_result(made, 100.0).made == ("/w/new", "/w/own")


def test_a_clock_that_goes_back_makes_no_negative_time():
    ended = record()
    ended.end_round(round_ended())
    assert task_result(ended, 99.0).seconds == 0.0


def test_work_that_never_ran_has_an_ending_of_its_own():
    assign = record(ALONE, WINDOW).next_assign()
    causes = (Cause(reason="enough"),)
    result = never_ran(assign, Outcome.CANCELLED, causes)
    assert (result.run_id, result.number, result.address) == (assign.run_id, 1, WINDOW.address)
    assert (result.outcome, result.causes, result.usage) == (Outcome.CANCELLED, causes, Usage())
