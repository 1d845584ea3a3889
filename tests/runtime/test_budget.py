"""The budget tree: concurrent changes by agents are as if one of them had come first."""

from __future__ import annotations

from callboard.actors.runtime import Budgets
from callboard.config import BudgetSettings
from callboard.messages import Limit, OutOfBudgetError
from interleaving import in_every_order


def budgets_of(tokens):
    return Budgets(BudgetSettings.model_validate({"task": {"tokens": tokens}}))


def test_agents_that_reserve_at_once_never_overspend():
    def scenario():
        budgets, passed = budgets_of(10), []

        def reserve(step):
            try:
                step.reserve(tokens=7)
            except OutOfBudgetError:
                return
            passed.append(step)

        one, other = budgets.step("t", "t~1"), budgets.step("t", "t~2")
        yield (lambda: reserve(one)), (lambda: reserve(other))
        assert len(passed) == 1

    in_every_order(scenario)


def test_budget_books_the_usage_of_parallel_agents():
    def scenario():
        budgets = budgets_of(100)
        one, other = budgets.step("t", "t~1"), budgets.step("t", "t~2")
        yield (lambda: one.settle(tokens=10)), (lambda: other.settle(tokens=20))
        assert budgets.task("t").used["tokens"] == 30

    in_every_order(scenario)


def test_a_call_that_two_book_after_a_crash_is_booked_once():
    def scenario():
        budgets = budgets_of(100)
        run, step = budgets.run("t", "t~1"), budgets.step("t", "t~1")
        yield (lambda: run.settle_call(3, tokens=10)), (lambda: step.settle_again(3, tokens=10))
        assert budgets.task("t").used["tokens"] == 10

    in_every_order(scenario)


def test_budget_keeps_usage_booked_while_it_is_exhausted():
    def scenario():
        task = budgets_of(10).task("t")
        task.settle(tokens=8)
        yield (lambda: task.exhaust("tokens", "nobody knows")), (lambda: task.settle(tokens=20))
        assert task.used["tokens"] in {8 + 20, 10 + 20}

    in_every_order(scenario)


def test_more_may_be_granted_while_an_agent_reserves():
    def scenario():
        task = budgets_of(10).task("t")
        limit = Limit(node=task.name, kind="tokens")
        task.grant("t~1", [limit])
        yield (lambda: task.reserve(tokens=1)), (lambda: task.grant("t~2", [limit]))
        task.reserve(tokens=29)

    in_every_order(scenario)


def test_agents_of_one_subtask_that_begin_at_once_share_its_node():
    def scenario():
        budgets, nodes = budgets_of(10), []
        yield (lambda: nodes.append(budgets.run("t", "t~1"))), (lambda: nodes.append(budgets.run("t", "t~1")))
        assert nodes[0] is nodes[1]

    in_every_order(scenario)
