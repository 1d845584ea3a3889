"""Budgets: one tree from task to subtask to step. What a call may use is reserved before it is made."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from callboard.messages import OutOfBudgetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from callboard.config import Budget, BudgetSettings
    from callboard.messages import Limit

ROUNDING = 1e-9
"""What sums of money may be off by, because 0.1 has no exact binary form."""


class BudgetNode:
    """One node of a task's tree. Thread-safe: all nodes of a tree share one lock.

    Agents of one task that work side by side reserve from the same task node, so that they can't overspend together.
    """

    __slots__ = ("above", "calls", "exhausted", "grants", "limits", "lock", "name", "parent", "used")

    def __init__(self, name: str, limits: Mapping[str, float], parent: BudgetNode | None = None) -> None:
        """Make a node.

        Args:
            name: Its name in errors.
            limits: How much of a kind may be used; as much as is needed of any that is not there.
            parent: The node above it.
        """
        self.name = name
        self.limits = limits
        self.lock: threading.Lock = threading.Lock() if parent is None else parent.lock
        self.parent = parent
        self.used: dict[str, float] = {}
        """What is spent or reserved, by kind."""
        self.grants: dict[str, Counter[str]] = {}
        """How often a person said "go on" at this node, by the run that asked, and by kind."""
        self.exhausted: dict[str, str] = {}
        """Why all that was left of a kind counts as used, by kind."""
        self.calls: frozenset[int] = frozenset()
        """The calls to a model that were booked by steps below this node, by their number at their address."""
        self.above: tuple[BudgetNode, ...] = () if parent is None else (parent, *parent.above)
        """All nodes above it, the nearest first."""

    def reserve(self, **amounts: float) -> None:
        """Reserve from this node and all above it, or from none.

        Raises:
            OutOfBudgetError: If one of them has not enough left; it names which, and of what.
        """
        with self.lock:
            for node in (self, *self.above):
                for kind in node.limits:
                    if kind not in amounts:
                        continue
                    limit = node.limit(kind)
                    if not node.has(kind, amounts[kind], limit):
                        raise OutOfBudgetError(node.name, kind, limit, node.exhausted.get(kind, ""))
            self._book(amounts)

    def has(self, kind: str, amount: float, limit: float) -> bool:
        """Say whether so much is left; nothing is enough for a call of unknown price, once there was something."""
        used = self.used.get(kind, 0)
        left = limit - used
        return amount <= left + ROUNDING and (left > ROUNDING or not used)

    def settle(self, **more: float) -> None:
        """Book the difference between what was reserved and what was really used; it may go over a limit."""
        with self.lock:
            self._book(more)

    def made(self, call: int) -> None:
        """Note that a call which this step made is booked: after a crash another node goes on with the step."""
        if self.parent is not None:
            with self.lock:
                self.parent.calls |= {call}

    def settle_call(self, call: int, **used: float) -> None:
        """Book a call that a step below this node had made before a crash, unless it is booked here."""
        with self.lock:
            if call not in self.calls:
                self.calls |= {call}
                self._book(used)

    def settle_again(self, call: int, **used: float) -> None:
        """Book a call that this step had made before a crash; above the step only if it is not booked there."""
        with self.lock:
            if self.parent is None or call in self.parent.calls:
                _add(self, used)
                return
            self.parent.calls |= {call}
            self._book(used)

    def exhaust(self, kind: str, why: str) -> None:
        """Count all that is left of a kind as used, here and above, because nobody knows how much really was."""
        with self.lock:
            for node in (self, *self.above):
                if kind in node.limits:
                    node.used[kind] = max(node.limit(kind), node.used.get(kind, 0))
                    node.exhausted[kind] = why

    def grant(self, run_id: str, limits: Iterable[Limit]) -> None:
        """Let this node and those above it have as much again of what a run's person said so of. Idempotent."""
        given = Counter((limit.node, limit.kind) for limit in limits)
        with self.lock:
            for node in (self, *self.above):
                mine = {kind: times for (name, kind), times in given.items() if name == node.name}
                node.grants[run_id] = Counter(mine)

    def _book(self, amounts: Mapping[str, float]) -> None:
        for node in (self, *self.above):
            used = node.used
            for kind, amount in amounts.items():
                if amount:
                    used[kind] = used.get(kind, 0) + amount

    def limit(self, kind: str) -> float:
        """Give how much of a limited kind may be used, with what a person granted."""
        limit = self.limits[kind]
        return limit + max(limit, 1) * sum(given[kind] for given in self.grants.values())


def _add(node: BudgetNode, amounts: Mapping[str, float]) -> None:
    used = node.used
    for kind, amount in amounts.items():
        if amount:
            used[kind] = used.get(kind, 0) + amount


def limited(budget: Budget) -> dict[str, float]:
    """Give what a budget limits, by kind."""
    return {kind: limit for kind, limit in budget if limit is not None}


class Budgets:
    """The budget trees of the tasks that are not over. Thread-safe without a lock: `setdefault` is one step."""

    def __init__(self, settings: BudgetSettings) -> None:
        self._task, self._subtask, self._step = map(limited, (settings.task, settings.subtask, settings.step))
        self._tasks: dict[str, BudgetNode] = {}
        self._runs: dict[str, dict[str, BudgetNode]] = {}
        """By task, and by run."""

    def task(self, task_id: str) -> BudgetNode:
        """Give a task's node, made on first use."""
        known = self._tasks.get(task_id)
        if known is None:
            known = self._tasks.setdefault(task_id, BudgetNode(f"the task {task_id}", self._task))
        return known

    def run(self, task_id: str, run_id: str) -> BudgetNode:
        """Give the node of a subtask, or of a HostAgent's rounds, made on first use."""
        runs = self._runs.setdefault(task_id, {})
        known = runs.get(run_id)
        if known is None:
            known = runs.setdefault(run_id, BudgetNode(f"the subtask {run_id}", self._subtask, self.task(task_id)))
        return known

    def step(self, task_id: str, run_id: str) -> BudgetNode:
        """Make a node for one step."""
        return BudgetNode(f"a step of {run_id}", self._step, self.run(task_id, run_id))

    def drop(self, task_id: str) -> None:
        """Forget a task."""
        self._tasks.pop(task_id, None)
        self._runs.pop(task_id, None)
