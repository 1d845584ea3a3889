"""Routines that miss in run after run are refused."""

from __future__ import annotations

import pytest

from callboard import Outcome, Task
from callboard.journal import JournalReader, RoutineRun
from callboard.messages import Routine, TaskRefusedError
from callboard.routines import stop_reason
from support import PATIENCE

STEP = {"status": "CONTINUE", "controls": [{"kind": "field", "name": "gone"}]}


def routine(why="", **facts):
    steps = [{**STEP, "why": why}, {"status": "FINISH"}]
    subtask = {"target": "memo:one", "kind": "app", "request": "fill it", "steps": steps}
    return Routine.model_validate({"routine": "fill", "request": "Fill it", "subtasks": [subtask], **facts})


def run(number, *, missed=1, outcome=Outcome.FINISHED, digest=None, dry_run=False):
    digest = routine().digest if digest is None else digest
    return RoutineRun(f"t{number}", number, 0.0, outcome, digest, missed=missed, dry_run=dry_run)


@pytest.mark.parametrize(
    ("runs", "stopped"),
    [
        ([run(2), run(1)], False),
        ([run(3), run(2), run(1)], True),
        ([run(3), run(2, missed=0), run(1), run(0)], False),
        ([run(3), run(2, missed=0, outcome=Outcome.CANCELLED), run(1), run(0)], True),
        ([run(3), run(2, digest="other"), run(1)], False),
        ([run(3), run(2, missed=0, dry_run=True), run(1, dry_run=True), run(0)], False),
        ([run(3, outcome=Outcome.FAILED), run(2, outcome=Outcome.FAILED), run(1)], True),
    ],
)
def test_routine_stops_after_more_misses_in_a_row_than_allowed(runs, stopped):
    assert bool(stop_reason(routine(), runs, 2)) is stopped


def test_zero_misses_stop_no_routine():
    assert stop_reason(routine(), [run(number) for number in range(9)], 0) == ""


@pytest.mark.parametrize("in_file", [True, False])
def test_submission_refuses_a_routine_that_missed_too_often(start, begin, tmp_path, in_file):
    settings = {"system": {"ask_question": False}, "routines": {"misses": 1}}
    supervisor = begin(**settings) if in_file else start(**settings)
    first = supervisor.submit(Task(id="t0", routine=routine()))
    for handle in (first, supervisor.submit(Task(id="t1", routine=routine()))):
        assert handle.result(PATIENCE).usage.missed == 1
    with pytest.raises(TaskRefusedError, match=r"missed a step in each of its last 2 runs.*the task t1.*promote FILE"):
        supervisor.submit(Task(routine=routine()))
    assert supervisor.submit(Task(id="t0", routine=routine())).task_id == "t0"
    edited = supervisor.submit(Task(routine=routine("it was edited")))
    assert edited.result(PATIENCE).usage.missed == 1


def test_digest_is_that_of_the_content_alone():
    assert routine().digest == routine(proposal_for="x").digest
    assert routine().digest != routine("why").digest


def test_runs_of_a_routine_are_listed_newest_first(begin, tmp_path):
    supervisor = begin(app=[{"Status": "FINISH"}])
    for number in range(3):
        supervisor.submit(Task(id=f"t{number}", routine=routine())).result(PATIENCE)
    supervisor.submit(Task(id="other", request="x", target="memo:one")).result(PATIENCE)
    with JournalReader.open(tmp_path / "journal.db") as reader:
        runs = reader.routine_runs("fill", limit=2)
        assert [run.task for run in runs] == ["t2", "t1"]
        older = reader.routine_runs("fill", before=runs[-1].number)
        assert [run.task for run in older] == ["t0"]
        assert reader.routine_runs("none") == ()
    assert (runs[0].missed, runs[0].model_calls, runs[0].replayed) == (1, 1, 0)
    assert (runs[0].digest, runs[0].verified, runs[0].outcome) == (routine().digest, None, Outcome.FINISHED)
    assert runs[0].seconds > 0
