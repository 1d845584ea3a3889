"""Daily budgets: all tasks with some labels share them, from midnight to midnight in UTC."""

from __future__ import annotations

import pytest

from callboard import EventName, FunctionModel, ModelAnswer, Outcome, Settings, Task
from callboard.actors.runtime import Budgets
from callboard.config import BudgetSettings
from callboard.messages import OutOfBudgetError, SettingsError
from callboard.testing import VirtualClock, assert_replays
from support import ASSIGN, FINISH, PATIENCE, lone

NOON = 1_795_521_600.0
"""2026-11-24 12:00 UTC."""
HALF_A_DAY = 43_200.0
INVOICES = {"project": "invoices"}


def priced(cost=0.25, **fields):
    """Make a model that finishes at once, at a price."""
    return FunctionModel(lambda request: ModelAnswer(content=FINISH, cost=cost, **fields))


def daily(*budgets, **more):
    return {"budget": {"daily": list(budgets), **more}}


def done(supervisor, **fields):
    return supervisor.submit(lone(**fields)).result(PATIENCE)


def test_tasks_share_the_budget_of_a_day(start):
    supervisor = start(app=priced(), clock=VirtualClock(NOON), **daily({"steps": 2}))
    outcomes = [done(supervisor).outcome for _ in range(3)]
    assert outcomes == [Outcome.FINISHED, Outcome.FINISHED, Outcome.OUT_OF_BUDGET]


def test_the_cause_names_the_budget_and_when_it_is_renewed(start):
    supervisor = start(app=priced(), clock=VirtualClock(NOON), **daily({"labels": INVOICES, "steps": 1}))
    done(supervisor, labels=INVOICES)
    causes = " ".join(cause.reason for cause in done(supervisor, labels=INVOICES).causes)
    assert "the daily budget of project=invoices on 2026-11-24" in causes
    assert "renewed at 2026-11-25 00:00 UTC" in causes
    assert "has used its 1 step" in causes


def test_a_refused_task_calls_no_model(start):
    calls = []
    supervisor = start(app=lambda request: calls.append(1) or FINISH, clock=VirtualClock(NOON), **daily({"steps": 1}))
    assert done(supervisor).ok
    assert done(supervisor).outcome is Outcome.OUT_OF_BUDGET
    assert calls == [1]


def test_money_is_counted_over_tasks(start):
    supervisor = start(app=priced(0.25), clock=VirtualClock(NOON), **daily({"cost": 0.5}))
    assert [done(supervisor).ok for _ in range(3)] == [True, True, False]


def test_only_tasks_with_all_labels_count(start):
    given = daily({"labels": {**INVOICES, "team": "a"}, "steps": 1})
    supervisor = start(app=priced(), clock=VirtualClock(NOON), **given)
    others = [{}, INVOICES, {"team": "a"}, {**INVOICES, "team": "b"}]
    assert all(done(supervisor, labels=labels).ok for labels in others for _ in range(2))
    mine = {**INVOICES, "team": "a", "more": "x"}
    assert [done(supervisor, labels=mine).ok for _ in range(2)] == [True, False]


def test_a_task_counts_in_all_budgets_that_match(start):
    given = daily({"steps": 2}, {"labels": INVOICES, "steps": 5})
    supervisor = start(app=priced(), clock=VirtualClock(NOON), **given)
    assert [done(supervisor, labels=INVOICES).ok for _ in range(3)] == [True, True, False]


def test_a_budget_of_a_label_that_no_task_has_is_fine(start):
    supervisor = start(app=priced(), clock=VirtualClock(NOON), **daily({"labels": {"project": "none"}, "steps": 1}))
    assert [done(supervisor).ok for _ in range(3)] == [True, True, True]


def test_a_host_agent_and_its_subtasks_count(start):
    supervisor = start(host=[ASSIGN, FINISH], app=[FINISH], clock=VirtualClock(NOON), **daily({"steps": 2}))
    assert supervisor.submit(Task(request="plan")).result(PATIENCE).outcome is Outcome.OUT_OF_BUDGET


def test_the_next_day_has_the_whole_budget_again(start):
    clock = VirtualClock(NOON)
    supervisor = start(app=priced(), clock=clock, **daily({"steps": 1}))
    assert [done(supervisor).ok, done(supervisor).ok] == [True, False]
    clock.advance(HALF_A_DAY)
    assert [done(supervisor).ok, done(supervisor).ok] == [True, False]


def test_a_day_change_during_a_task_renews_the_budget_for_its_next_step(start):
    clock = VirtualClock(NOON)

    def work(request):
        clock.advance(HALF_A_DAY / 3)
        return FINISH if request.step == 6 else {"Status": "CONTINUE", "Comment": f"step {request.step}"}

    supervisor = start(
        app=work, clock=clock, limits={"step_seconds": 1e6, "model_seconds": 1e6, "repeats": 50}, **daily({"steps": 3})
    )
    result = done(supervisor)
    assert result.ok, result.causes
    assert result.usage.steps == 6


def node(budgets, task_id, labels):
    budgets.take(Task(id=task_id, request="x", labels=labels))
    return budgets.step(task_id, f"{task_id}~1")


def budgets_of(*given, now):
    return Budgets(BudgetSettings.model_validate({"daily": given}), now)


def test_a_step_over_midnight_counts_on_the_day_on_which_it_began():
    now = [NOON]
    budgets = budgets_of({"cost": 1.0}, now=lambda: now[0])
    late = node(budgets, "t", {})
    late.reserve(cost=0.9)
    now[0] += HALF_A_DAY
    late.settle(cost=-0.5)
    node(budgets, "u", {}).reserve(cost=1.0)
    with pytest.raises(OutOfBudgetError, match="2026-11-25"):
        node(budgets, "v", {}).reserve(cost=0.5)


def test_a_clock_that_is_set_back_finds_the_day_as_it_was():
    now = [NOON]
    budgets = budgets_of({"steps": 1}, now=lambda: now[0])
    node(budgets, "t", {}).reserve(steps=1)
    now[0] += HALF_A_DAY
    node(budgets, "u", {}).reserve(steps=1)
    now[0] = NOON
    with pytest.raises(OutOfBudgetError, match="2026-11-24"):
        node(budgets, "v", {}).reserve(steps=1)


def test_a_refused_reservation_is_booked_nowhere():
    budgets = budgets_of({"cost": 1.0}, {"labels": INVOICES, "cost": 0.5}, now=lambda: NOON)
    with pytest.raises(OutOfBudgetError, match="project=invoices"):
        node(budgets, "t", INVOICES).reserve(cost=0.6)
    node(budgets, "u", {}).reserve(cost=1.0)


def test_usage_survives_a_restart(begin):
    given = {"app": priced(0.25), **daily({"labels": INVOICES, "cost": 0.6})}
    supervisor = begin(clock=VirtualClock(NOON), **given)
    assert done(supervisor, labels=INVOICES).ok
    assert done(supervisor).ok
    supervisor.stop()
    supervisor = begin(clock=VirtualClock(NOON + 60), **given)
    assert [done(supervisor, labels=INVOICES).ok for _ in range(3)] == [True, True, False]


def test_usage_survives_the_retention_of_the_journal(begin):
    given = {"app": priced(), "journal": {"max_bytes": 1}, **daily({"steps": 2})}
    outcomes = []
    for seconds in (0, 60, 120, HALF_A_DAY):
        supervisor = begin(clock=VirtualClock(NOON + seconds), **given)
        outcomes.append(done(supervisor).outcome)
        supervisor.stop()
    assert outcomes == [Outcome.FINISHED, Outcome.FINISHED, Outcome.OUT_OF_BUDGET, Outcome.FINISHED]


def test_rounds_count_the_same_after_a_restart(begin):
    given = {"app": priced(), "host": priced(), **daily({"rounds": 2})}
    supervisor = begin(clock=VirtualClock(NOON), **given)
    assert done(supervisor).ok  # a task with a target has no HostAgent, and so no rounds
    assert supervisor.submit(Task(request="plan")).result(PATIENCE).ok
    supervisor.stop()
    supervisor = begin(clock=VirtualClock(NOON + 60), **given)
    outcomes = [supervisor.submit(Task(request="plan")).result(PATIENCE).outcome for _ in range(2)]
    assert outcomes == [Outcome.FINISHED, Outcome.OUT_OF_BUDGET]


def test_usage_of_yesterday_does_not_count_after_a_restart(begin):
    given = {"app": priced(), **daily({"steps": 1})}
    supervisor = begin(clock=VirtualClock(NOON), **given)
    assert done(supervisor).ok
    supervisor.stop()
    assert done(begin(clock=VirtualClock(NOON + HALF_A_DAY), **given)).ok


def test_an_unfinished_task_counts_after_a_restart(begin, until):
    given = {"app": lambda request: {"Status": "PENDING", "Questions": "which?"} if not request.memory else FINISH}
    supervisor = begin(clock=VirtualClock(NOON), **given, **daily({"steps": 2}))
    handle = supervisor.submit(lone())
    until(handle, EventName.QUESTION_ASKED)
    supervisor.stop()
    supervisor = begin(clock=VirtualClock(NOON + 60), **given, **daily({"steps": 2}))
    (handle,) = supervisor.pending()
    handle.answer(handle.questions()[0].id, "this one")
    assert handle.result(PATIENCE).ok
    assert done(supervisor).outcome is Outcome.OUT_OF_BUDGET


def test_an_unpriced_call_uses_up_the_day_also_after_a_restart(begin):
    given = {"app": priced(None), **daily({"cost": 5.0})}
    supervisor = begin(clock=VirtualClock(NOON), **given)
    assert done(supervisor).ok
    causes = " ".join(cause.reason for cause in done(supervisor).causes)
    assert "unknown price" in causes
    supervisor.stop()
    assert done(begin(clock=VirtualClock(NOON + 60), **given)).outcome is Outcome.OUT_OF_BUDGET


def test_a_person_may_extend_the_budget_of_a_day(start, until):
    supervisor = start(app=priced(), clock=VirtualClock(NOON), **daily({"steps": 1}, at_limit="ask"))
    assert done(supervisor).ok
    handle = supervisor.submit(lone())
    until(handle, EventName.QUESTION_ASKED)
    (question,) = handle.questions()
    assert "the daily budget of all tasks on 2026-11-24" in question.questions[0].text
    handle.answer(question.id, question.questions[0].choices[0])
    assert handle.result(PATIENCE).ok


@pytest.mark.parametrize("limit", [{"steps": 1}, {"cost": 0.3}])
def test_a_refused_task_replays_without_the_others(begin, tmp_path, limit):
    supervisor = begin(app=priced(), clock=VirtualClock(NOON), **daily(limit))
    outcomes = [done(supervisor, id=f"t{number}").outcome for number in range(3)]
    assert outcomes[-1] is Outcome.OUT_OF_BUDGET
    supervisor.stop()
    assert_replays(tmp_path / "journal.db", "t2")


@pytest.mark.parametrize(
    ("budget", "why"),
    [
        ({"cost": 0}, "must be more than 0"),
        ({"steps": -1}, "must be more than 0"),
        ({"labels": INVOICES}, "sets no limit"),
        ({"label": "x", "cost": 1}, "label"),
    ],
)
def test_a_wrong_daily_budget_is_refused(budget, why):
    with pytest.raises(SettingsError, match=why):
        Settings.load(**daily(budget))


def test_two_budgets_of_the_same_labels_are_refused():
    with pytest.raises(SettingsError, match="two budgets have the labels"):
        Settings.load(**daily({"cost": 1}, {"steps": 1}))
