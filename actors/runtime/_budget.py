"""Budgets: a tree of task, subtask and step, under nodes for days.

A call's maximum usage is reserved before the call is made, and settled afterwards.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

from callboard.messages import Budget, DailyUsage, OutOfBudgetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from callboard.config import BudgetSettings, DailyBudget
    from callboard.messages import Assign, Limit, Task, Timestamp

ROUNDING = 1e-9
"""The tolerance for sums of money, because 0.1 has no exact binary form."""
UNPRICED = "a call of unknown price counts as all that was left: see budget.unknown_price"
DAY = 86_400
"""The seconds of a day in UTC, which has no change to summer time."""


class BudgetNode:
    """One node of a task's budget tree. Thread-safe.

    All nodes of a tree share one lock. Agents that work on one task in parallel reserve from the same task node, so
    that together they can't exceed its limits. Trees below nodes of the day share one lock, too.
    """

    __slots__ = ("above", "calls", "exhausted", "grants", "limits", "lock", "name", "parent", "used")

    def __init__(
        self,
        name: str,
        limits: Mapping[str, float],
        parent: BudgetNode | None = None,
        *,
        days: tuple[BudgetNode, ...] = (),
        lock: threading.Lock | None = None,
    ) -> None:
        """Create a node.

        Args:
            name: Its name in errors.
            limits: The limit of each kind; a kind without one is unlimited.
            parent: The node above it.
            days: Nodes of the day, above all others.
            lock: The lock of a node without a parent; by default its own.
        """
        self.name = name
        self.limits = limits
        self.lock: threading.Lock = (lock or threading.Lock()) if parent is None else parent.lock
        self.parent = parent
        self.used: dict[str, float] = {}
        """The amounts spent or reserved, by kind."""
        self.grants: dict[str, Counter[str]] = {}
        """The number of extensions that a person granted at this node, by the run that asked, and by kind."""
        self.exhausted: dict[str, str] = {}
        """The reason why the rest of a kind counts as used, by kind."""
        self.calls: frozenset[int] = frozenset()
        """The model calls that steps below this node booked, by their number at their address."""
        self.above: tuple[BudgetNode, ...] = days if parent is None else (parent, *parent.above, *days)
        """All nodes above this one, the nearest first."""

    def reserve(self, **amounts: float) -> None:
        """Reserve amounts in this node and all above it, or in none.

        Raises:
            OutOfBudgetError: If one of them has not enough left; the error names the node and the kind.
        """
        with self.lock:
            for node in (self, *self.above):
                for kind in node.limits:
                    if kind not in amounts:
                        continue
                    limit = node.limit(kind)
                    if not node.has(kind, amounts[kind], limit):
                        raise OutOfBudgetError(node.name, kind, limit, node.exhausted.get(kind, ""))
            _book(amounts, (self, *self.above))

    def has(self, kind: str, amount: float, limit: float) -> bool:
        """Report whether an amount is left.

        A call of unknown price reserves 0. It is refused once the limit is used up, but allowed while nothing of the
        kind was used, even under a limit of 0.
        """
        used = self.used.get(kind, 0)
        remaining_amount = limit - used
        return amount <= remaining_amount + ROUNDING and (remaining_amount > ROUNDING or not used)

    def settle(self, **more: float) -> None:
        """Book the difference between the actual usage and the reservation.

        It may exceed a limit.
        """
        with self.lock:
            _book(more, (self, *self.above))

    def made(self, call: int) -> None:
        """Record above this step that one of its calls is booked.

        If the step's agent crashes, another node resumes the step, and must not book the call there again.
        """
        if self.parent is not None:
            with self.lock:
                self.parent.calls |= {call}

    def settle_call(self, call: int, **used: float) -> None:
        """Book a call that a step below made before a crash, once."""
        with self.lock:
            if call not in self.calls:
                self.calls |= {call}
                _book(used, (self, *self.above))

    def settle_again(self, call: int, **used: float) -> None:
        """Book a call that this step made before a crash.

        The nodes above the step book it only if they have not done so before the crash.
        """
        with self.lock:
            if self.parent is None or call in self.parent.calls:
                _book(used, (self,))
                return
            self.parent.calls |= {call}
            _book(used, (self, *self.above))

    def exhaust(self, kind: str, why: str) -> None:
        """Count the rest of a kind as used, here and above.

        For calls with an unknown actual usage.
        """
        with self.lock:
            for node in (self, *self.above):
                if kind in node.limits:
                    node.used[kind] = max(node.limit(kind), node.used.get(kind, 0))
                    node.exhausted[kind] = why

    def grant(self, run_id: str, limits: Iterable[Limit]) -> None:
        """Extend the limits that a person extended for a run. Idempotent.

        Each extension adds the original limit once more, at least 1, at this node or at one above it.
        """
        extensions = Counter((limit.node, limit.kind) for limit in limits)
        with self.lock:
            for node in (self, *self.above):
                mine = {kind: times for (name, kind), times in extensions.items() if name == node.name}
                node.grants[run_id] = Counter(mine)

    def usage(self, labels: Mapping[str, str]) -> DailyUsage:
        """Return the limits of a day's node, with their usage."""
        with self.lock:
            limits = {kind: self.limit(kind) for kind in self.limits}
            used = {kind: self.used.get(kind, 0) for kind in limits}
        return DailyUsage(labels=dict(labels), limits=limits, used=used)

    def limit(self, kind: str) -> float:
        """Return the limit of a limited kind, extensions included."""
        limit = self.limits[kind]
        return limit + max(limit, 1) * sum(extensions[kind] for extensions in self.grants.values())


def _book(amounts: Mapping[str, float], nodes: Iterable[BudgetNode]) -> None:
    for kind, amount in amounts.items():
        if amount:
            for node in nodes:
                node.used[kind] = node.used.get(kind, 0) + amount


class Budgets:
    """The budget trees of active tasks, under nodes for days. Thread-safe.

    It needs no lock of its own: `dict.setdefault` is atomic.
    """

    def __init__(self, settings: BudgetSettings, now: Callable[[], Timestamp] = time.time) -> None:
        """Create it; `now` returns the wall time, which determines the day."""
        self._task, self._subtask, self._step = settings.task.limits, settings.subtask.limits, settings.step.limits
        self._daily, self._now = settings.daily, now
        self._charges_all = settings.unknown_price == "all"
        self._shared = threading.Lock() if settings.daily else None
        self._labels: dict[str, Mapping[str, str]] = {}
        """The labels of active tasks."""
        self._days: dict[tuple[int, int], BudgetNode] = {}
        """The nodes of the last days, by the number of the daily budget and of the day."""
        self._tasks: dict[str, BudgetNode] = {}
        self._runs: dict[str, dict[str, BudgetNode]] = {}
        """The nodes of the runs, by task and by run."""
        self._shares: dict[str, dict[str, Mapping[str, float]]] = {}
        """The reserved shares of subtasks that work side by side, by task and by run."""

    def take(self, task: Task) -> None:
        """Apply a task's labels and own budget, before its node is used."""
        if self._daily:
            self._labels[task.id] = task.labels
        if task.budget is not None:
            limits = {kind: min(limit, self._task.get(kind, limit)) for kind, limit in task.budget.limits.items()}
            self._tasks[task.id] = self._top(task.id, {**self._task, **limits})

    def count(self, labels: Mapping[str, str], used: Mapping[str, float], *, unpriced: bool) -> None:
        """Charge a task's usage of today to the nodes of the day.

        The usage is that of an earlier process.

        Args:
            labels: The task's labels.
            used: The amounts, by kind.
            unpriced: Whether it includes a call of unknown price.
        """
        for node in self._today(labels):
            node.settle(**used)
            if unpriced and self._charges_all:
                node.exhaust("cost", UNPRICED)

    def _today(self, labels: Mapping[str, str]) -> tuple[BudgetNode, ...]:
        """Return today's nodes of the daily budgets for some labels."""
        day = int(self._now() // DAY)
        numbered = enumerate(self._daily)
        return tuple(self._day(number, day) for number, budget in numbered if budget.labels.items() <= labels.items())

    def today(self) -> tuple[DailyUsage, ...]:
        """Return the usage of each daily budget today."""
        day = int(self._now() // DAY)
        return tuple(self._day(number, day).usage(budget.labels) for number, budget in enumerate(self._daily))

    def _day(self, number: int, day: int) -> BudgetNode:
        day_node = self._days.get((number, day))
        if day_node is None:
            oldest_day = day - 1  # the clock may be set back over midnight
            for old in [key for key in tuple(self._days) if key[1] < oldest_day]:
                self._days.pop(old, None)
            budget = self._daily[number]
            node = BudgetNode(_name_of(budget, day), budget.limits, lock=self._shared)
            day_node = self._days.setdefault((number, day), node)
        return day_node

    def _top(self, task_id: str, limits: Mapping[str, float]) -> BudgetNode:
        return BudgetNode(f"the task {task_id}", limits, lock=self._shared)

    def task(self, task_id: str) -> BudgetNode:
        """Return a task's node, created on first use."""
        task_node = self._tasks.get(task_id)
        if task_node is None:
            task_node = self._tasks.setdefault(task_id, self._top(task_id, self._task))
        return task_node

    def run(self, task_id: str, run_id: str) -> BudgetNode:
        """Return the node of a run, created on first use.

        A run is a subtask, or the rounds of a HostAgent.
        """
        runs = self._runs.setdefault(task_id, {})
        run_node = runs.get(run_id)
        if run_node is None:
            share = self._shares.get(task_id, {}).get(run_id, {})
            limits = {kind: min(limit, self._subtask.get(kind, limit)) for kind, limit in share.items()}
            node = BudgetNode(f"the subtask {run_id}", {**self._subtask, **limits}, self.task(task_id))
            run_node = runs.setdefault(run_id, node)
        return run_node

    def share_of(self, task_id: str, parts: int) -> Budget | None:
        """Return an equal part of a task's rest, without reserved shares.

        None for a task without limits. Whole kinds are rounded down, but to 1 at least while as much is left. Rounds
        are a HostAgent's alone.
        """
        node = self.task(task_id)
        with node.lock:
            left_amounts = {
                kind: max(0.0, node.limit(kind) - node.used.get(kind, 0) - self._reserved(task_id, kind))
                for kind in node.limits
                if kind != "rounds"
            }
        parted = {
            kind: amount / parts if kind == "cost" else int(max(amount / parts, min(amount, 1)))
            for kind, amount in left_amounts.items()
        }
        return Budget(**parted) if parted else None

    def _reserved(self, task_id: str, kind: str) -> float:
        """Return the part of the shares that is not used yet."""
        runs = self._runs.get(task_id, {})
        used = {run_id: node.used.get(kind, 0.0) for run_id, node in tuple(runs.items())}
        shares = tuple(self._shares.get(task_id, {}).items())
        return sum(max(0.0, share.get(kind, 0.0) - used.get(run_id, 0.0)) for run_id, share in shares)

    def share(self, assign: Assign) -> None:
        """Reserve the share that an assignment has, before it begins."""
        if assign.member is not None and assign.member.share is not None:
            self._shares.setdefault(assign.task_id, {})[assign.run_id] = assign.member.share.limits

    def give_back(self, task_id: str, run_id: str) -> None:
        """Give back the rest of a share after its run."""
        self._shares.get(task_id, {}).pop(run_id, None)

    def step(self, task_id: str, run_id: str) -> BudgetNode:
        """Create a node for one step, which counts today."""
        days = self._today(self._labels.get(task_id, {})) if self._daily else ()
        return BudgetNode(f"a step of {run_id}", self._step, self.run(task_id, run_id), days=days)

    def steps(self, task_id: str) -> int:
        """Return the number of steps that an active task has begun."""
        node = self._tasks.get(task_id)
        return 0 if node is None else int(node.used.get("steps", 0))

    def drop(self, task_id: str) -> None:
        """Forget a task."""
        self._labels.pop(task_id, None)
        self._tasks.pop(task_id, None)
        self._runs.pop(task_id, None)
        self._shares.pop(task_id, None)


def day_began(at: Timestamp) -> Timestamp:
    """Return the beginning of the day in UTC."""
    return at // DAY * DAY


def _name_of(budget: DailyBudget, day: int) -> str:
    """Name a budget and its day, and tell when it is renewed."""
    whose = ", ".join(f"{key}={value}" for key, value in sorted(budget.labels.items())) or "all tasks"
    today, next_day = (dt.datetime.fromtimestamp(day_number * DAY, dt.UTC) for day_number in (day, day + 1))
    return f"the daily budget of {whose} on {today:%Y-%m-%d} (renewed at {next_day:%Y-%m-%d %H:%M} UTC)"
