"""Subtasks that are assigned together: their order, their outcomes, and what each of them sees."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given, settings

from callboard import FunctionModel, Outcome, Settings, Supervisor, Task
from callboard.messages import PlanStep, SubtaskResult, numbers_before, open_failures
from callboard.testing import MemoryServer, assert_replays
from group_world import WINDOWS, GroupWorld, ending_of, mark
from subtask_graphs import Case, Member, cases, endings_of, outcome_of, own_ending, reasons_of, stop_reason, visible_to
from support import PATIENCE

CASES = 600
"""The number of random cases of the long campaign."""

SKIPPED_EARLY = (
    Member(finishes=False),
    Member(after_any=frozenset({1}), pauses=50),
    Member(after=frozenset({1, 2})),
    Member(after_any=frozenset({3})),
)
"""The third can't begin once the first has failed; the fourth must see the second, which still works."""


def ends_as_the_plain_model_says(case, tmp_path):
    """Work on a case's groups, through its kills; return their number."""
    world = GroupWorld(case)
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        journal = Path(folder) / "journal.db"
        result = world.run(journal)
        assert_replays(journal)
    endings = [ending_of(subtask) for subtask in result.subtasks]
    if not case.stops or case.width == 1:
        assert endings == endings_of(case)
    else:
        assert all(is_end_or_stopped(world, ending, endings) for ending in endings)
    assert result.outcome is outcome_of(case, endings)
    reasons = reasons_of(case, endings)
    assert [cause.reason for cause in result.causes][: len(reasons)] == reasons
    assert [ending.number for ending in endings] == [*range(1, len(endings) + 1)]
    assert world.width <= case.width
    marks = Counter(text for _, _, text in world.surface.effects)
    for ending in endings:
        sees = tuple(result.subtasks[number - 1] for number in visible_to(case, ending.number))
        assert all(request == sees for request in world.seen.get(ending.number, []))
        assert marks.pop(mark(ending.number, sees), 0) in ({0, 1} if ending.outcome is Outcome.CANCELLED else {1})
    assert not marks
    assert all(request == result.subtasks[: len(request)] for request in world.seen.get(0, []))
    return world.kills


def is_end_or_stopped(world, ending, endings):
    """Return whether a subtask ended by itself, or was stopped by one of its group that did."""
    failures = [other for other in endings if other.outcome in {Outcome.FAILED, Outcome.ERROR}]
    by_itself = own_ending(world.members[ending.number], ending.number)
    return ending == by_itself or ending.reason in map(stop_reason, failures)


@pytest.fixture(autouse=True)
def _quiet(caplog):
    for name in ("pykka", "callboard", "callboard::0"):
        caplog.set_level(logging.CRITICAL, name)


@settings(max_examples=30)
@example(Case((SKIPPED_EARLY,)))
@given(case=cases())
def test_group_ends_as_a_plain_model_says_through_kills(tmp_path, case):
    ends_as_the_plain_model_says(case, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_groups_end_as_a_plain_model_says_through_many_kills(tmp_path, request, capsys):
    counts = Counter()

    @settings(max_examples=CASES)
    @given(case=cases())
    def campaign(case):
        counts["kills"] += ends_as_the_plain_model_says(case, tmp_path)
        counts["cases"] += 1

    campaign()
    with capsys.disabled():
        request.config.get_terminal_writer().line(f"{counts['cases']} cases, {counts['kills']} kills")
    assert counts["cases"] >= CASES
    assert counts["kills"] >= CASES


def planned(after):
    """Make a task with a plan that has an order."""
    steps = [PlanStep(request=str(place), target=f"memo:w{place}", after=names) for place, names in enumerate(after, 1)]
    return Task(plan=steps)


def test_plan_with_an_order_runs_side_by_side_without_a_planning_model():
    group = (Member(waits_for=2), Member(), Member(after=frozenset({1, 2})))
    world = GroupWorld(Case((group,), planned=True))
    result = world.run()
    assert result.ok
    assert world.ended == [2, 1, 3]
    assert (result.rounds, [subtask.group for subtask in result.subtasks]) == (1, [1, 1, 1])


def test_plan_ends_with_its_first_failure_and_skips_what_comes_after():
    group = (Member(finishes=False), Member(), Member(after=frozenset({1})))
    result = GroupWorld(Case((group,), planned=True)).run()
    assert result.outcome is Outcome.FAILED
    assert [subtask.outcome for subtask in result.subtasks] == [Outcome.FAILED, Outcome.FINISHED, Outcome.CANCELLED]
    assert "it comes after subtask 1, which ended as failed" in result.subtasks[2].causes[0].reason


async def three_steps(request):
    if request.step < 3:
        return {"Status": "CONTINUE", "Function": "write", "Args": {"text": "x"}, "ControlText": "field-1"}
    return {"Status": "FINISH"}


def run_plan(model, after, tmp_path, **options):
    """Run a plan with an order, and replay it."""
    loaded = Settings.load(log={"stream": "off"}, journal={"path": tmp_path / "journal.db"}, **options)
    windows = MemoryServer(*(MemoryServer.window(name) for name in WINDOWS))
    with Supervisor.start(loaded, models={"app": FunctionModel(model)}, servers=[windows]) as supervisor:
        result = supervisor.submit(planned(after)).result(PATIENCE)
    assert_replays(tmp_path / "journal.db")
    return result


def test_subtasks_side_by_side_have_equal_shares_of_the_budget(tmp_path):
    options = {"budget": {"task": {"steps": 9}}, "system": {"ask_question": False}}
    result = run_plan(three_steps, [(), (), (), ()], tmp_path, **options)
    assert result.outcome is Outcome.OUT_OF_BUDGET
    assert [subtask.usage.steps for subtask in result.subtasks] == [2, 2, 2, 2]


def test_rest_of_a_share_is_given_back(tmp_path):
    options = {"budget": {"task": {"steps": 14}}, "limits": {"parallel_subtasks": 1}, "system": {"ask_question": False}}
    result = run_plan(three_steps, [(), (), (), ()], tmp_path, **options)
    assert [subtask.usage.steps for subtask in result.subtasks] == [3, 3, 3, 3]
    assert result.ok


def test_last_step_of_a_plan_with_an_order_gives_the_output(tmp_path):
    async def numbered(request):
        return {"Status": "FINISH", "Result": {"n": request.request}}

    schema = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}
    options = Settings.load(log={"stream": "off"}, journal={"path": tmp_path / "journal.db"})
    windows = MemoryServer(*(MemoryServer.window(name) for name in WINDOWS))
    with Supervisor.start(options, models={"app": FunctionModel(numbered)}, servers=[windows]) as supervisor:
        task = planned([(), ()]).model_copy(update={"output_schema": schema})
        assert supervisor.submit(task).result(PATIENCE).output == {"n": "2"}
    assert_replays(tmp_path / "journal.db")


def test_plan_may_have_more_steps_than_an_answer(tmp_path):
    async def finish(_request):
        return {"Status": "FINISH"}

    result = run_plan(finish, [(), (), ()], tmp_path, limits={"subtasks_per_assign": 2})
    assert len(result.subtasks) == 3
    assert result.ok


def test_member_that_waits_for_another_is_not_stalled():
    release = threading.Event()

    async def waits(request):
        while request.request == "1" and not release.is_set():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0.01)
        return {"Status": "FINISH"}

    windows = MemoryServer(*(MemoryServer.window(name) for name in WINDOWS))
    options = Settings.load(log={"stream": "off"}, supervision={"stall_seconds": 0.2})
    with Supervisor.start(options, models={"app": FunctionModel(waits)}, servers=[windows]) as supervisor:
        handle = supervisor.submit(planned([(), (1,)]))
        time.sleep(1.0)
        release.set()
        result = handle.result(PATIENCE)
    assert [subtask.number for subtask in result.subtasks] == [1, 2]
    assert result.ok


def test_failures_count_until_another_subtask_is_assigned():
    def ended(number, outcome, group=0):
        return SubtaskResult(
            run_id=f"t~{number}", number=number, group=group, request="x", address="app/a", outcome=outcome
        )

    failed = ended(1, Outcome.FAILED, 1)
    assert open_failures((failed, ended(2, Outcome.FINISHED, 1))) == (failed,)
    assert open_failures((failed, ended(2, Outcome.FINISHED, 1), ended(3, Outcome.FINISHED))) == ()
    assert open_failures((ended(1, Outcome.FAILED),)) == (ended(1, Outcome.FAILED),)


def test_cancel_of_a_task_ends_members_that_have_not_begun():
    begun = threading.Event()

    async def waits(_request):
        begun.set()
        await asyncio.Event().wait()

    windows = MemoryServer(*(MemoryServer.window(name) for name in WINDOWS))
    options = Settings.load(log={"stream": "off"})
    with Supervisor.start(options, models={"app": FunctionModel(waits)}, servers=[windows]) as supervisor:
        handle = supervisor.submit(planned([(), (1,), (2,)]))
        assert begun.wait(PATIENCE)
        handle.cancel()
        result = handle.result(PATIENCE)
    assert result.outcome is Outcome.CANCELLED
    assert [subtask.outcome for subtask in result.subtasks] == [Outcome.CANCELLED] * 3


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([{"request": "a", "after": []}], "needs a target"),
        ([{"request": "a", "target": "x", "after": [1]}], "1 is no earlier step"),
        ([{"request": "a", "target": "x", "after": ["b"]}], "'b' is no earlier step"),
        (
            [{"request": "a", "target": "x", "name": "n", "after": []}, {"request": "b", "target": "y", "name": "n"}],
            "'n' names step 1, too",
        ),
    ],
)
def test_plan_with_an_impossible_order_is_refused(steps, problem):
    with pytest.raises(ValueError, match=problem):
        Task(plan=[PlanStep(**step) for step in steps])


def test_steps_may_be_named():
    plan = [
        PlanStep(request="read", target="memo:w1", name="read"),
        PlanStep(request="write", target="memo:w2", after="read"),
    ]
    assert numbers_before(Task(plan=plan).plan) == ((), (1,))


def test_group_replays_whatever_the_order_of_its_ends(tmp_path):
    group = (
        Member(waits_for=2),
        Member(),
        Member(after=frozenset({1, 2}), finishes=False),
        Member(after_any=frozenset({3})),
    )
    world = GroupWorld(Case((group,)))
    world.run(tmp_path / "journal.db")
    assert world.ended == [2, 1, 3, 4]
    assert_replays(tmp_path / "journal.db")
