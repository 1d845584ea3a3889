"""Figures of an eval set, and their comparison with earlier ones."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from callboard.messages import DocumentedFields, Outcome, Value, plain_problems
from callboard.terminal._commands import fail
from callboard.terminal._eval_cells import CellResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_Z = 1.959964
"""The quantile of the normal distribution for intervals of 95 %."""
NOT_REACHED = "the task did not reach its checks"
_APART = (Outcome.ERROR, Outcome.TIMED_OUT, Outcome.OUT_OF_BUDGET)


class ModelFigures(DocumentedFields, Value):
    """The figures of one model, over all tasks and seeds."""

    model: str
    """Its name in the set."""
    runs: int
    """The runs that ended, errors included."""
    passed: int
    """Those that passed."""
    rate: float
    """The share of passed runs, 0 to 1."""
    low: float
    """The lower end of Wilson's interval of the rate, at 95 %."""
    high: float
    """Its upper end."""
    pass_k: dict[int, float]
    """For each k: the probability that k of k runs of a task pass, as the mean over the tasks."""
    steps: float
    """The median of a run."""
    tokens: float
    """The median of a run."""
    cost: float
    """The median of a run, as far as prices are known."""
    seconds: float
    """The median of a run."""
    total_cost: float
    """The cost of all runs, as far as prices are known."""
    unpriced_calls: int
    """Model calls whose price is not known."""
    outcomes: dict[str, int]
    """The number of runs by outcome."""
    failures: dict[str, int]
    """The number of runs in which a check did not hold, by its name, the most frequent first."""

    @classmethod
    def of(cls, model: str, results: Sequence[CellResult]) -> ModelFigures:
        """Compute the figures of a model; it has at least one run."""
        passed = sum(result.passed for result in results)
        low, high = wilson(passed, len(results))
        failures = Counter(name for result in results for name in reasons(result))
        return cls(
            model=model,
            runs=len(results),
            passed=passed,
            rate=passed / len(results),
            low=low,
            high=high,
            pass_k=pass_k(results),
            steps=statistics.median(result.steps for result in results),
            tokens=statistics.median(result.tokens for result in results),
            cost=statistics.median(result.cost for result in results),
            seconds=statistics.median(result.seconds for result in results),
            total_cost=math.fsum(result.cost for result in results),
            unpriced_calls=sum(result.unpriced_calls for result in results),
            outcomes=dict(Counter(result.outcome.value for result in results).most_common()),
            failures=dict(failures.most_common()),
        )

    @property
    def apart(self) -> int:
        """The number of runs that ended by an error or a limit."""
        return sum(self.outcomes.get(outcome.value, 0) for outcome in _APART)


def cost_text(figures: ModelFigures) -> str:
    """Format the cost of a run, with a plus for unknown costs."""
    cost = f"${figures.cost:.4f}" if 0 < figures.cost < 1 else f"${figures.cost:.2f}"
    return f"{cost}{'+' if figures.unpriced_calls else ''}"


def reasons(result: CellResult) -> list[str]:
    """Name the checks that a run failed by."""
    return [] if result.passed else [*result.failures] or [NOT_REACHED]


def wilson(passed: int, runs: int) -> tuple[float, float]:
    """Return Wilson's interval of a rate, at 95 %."""
    rate, spread = passed / runs, _Z * _Z / runs
    middle = rate + spread / 2
    half = _Z * math.sqrt(rate * (1 - rate) / runs + spread / (4 * runs))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


def pass_k(results: Iterable[CellResult]) -> dict[int, float]:
    """Estimate the probability that k of k runs of a task pass.

    For each k, it is the unbiased C(passed, k) / C(runs, k), as the mean over the tasks, up to the fewest runs that a
    task has.
    """
    counts: dict[str, list[int]] = {}
    for result in results:
        count = counts.setdefault(result.task, [0, 0])
        count[0] += result.passed
        count[1] += 1
    most = min(runs for _, runs in counts.values())
    return {
        k: statistics.fmean(math.comb(passed, k) / math.comb(runs, k) for passed, runs in counts.values())
        for k in range(1, most + 1)
    }


class EvalReport(DocumentedFields, Value):
    """The results of an eval set."""

    name: str
    """The name of the set."""
    models: tuple[ModelFigures, ...]
    """The figures of each model that has results."""
    results: tuple[CellResult, ...]
    """The results of the runs, by task, model and seed."""
    not_run: dict[str, str] = Field(default_factory=dict)
    """The runs without a result, each with the reason."""

    @classmethod
    def of(cls, name: str, results: Sequence[CellResult], not_run: dict[str, str]) -> EvalReport:
        """Compute the figures of all models."""
        figures = [
            ModelFigures.of(model, [result for result in results if result.model == model])
            for model in dict.fromkeys(result.model for result in results)
        ]
        return cls(name=name, models=tuple(figures), results=tuple(results), not_run=not_run)

    @classmethod
    def load(cls, file: Path) -> EvalReport:
        """Read the report of an earlier run."""
        try:
            return cls.model_validate_json(file.read_bytes())
        except ValidationError as error:
            fail(f"{file}: is no report of callboard eval: {plain_problems(error.errors())[0]}")

    def runs(self, task: str, model: str) -> list[CellResult]:
        """Return the results of a task with a model."""
        return [result for result in self.results if (result.task, result.model) == (task, model)]

    @property
    def tasks(self) -> list[str]:
        """The names of the tasks that have results."""
        return [*dict.fromkeys(result.task for result in self.results)]


class RateChange(Value):
    """The rates of a model in two reports, over their common tasks."""

    model: str
    tasks: int
    before: float
    now: float

    @property
    def change(self) -> float:
        """The difference of the rates; negative if it is worse."""
        return self.now - self.before


def differences(now: EvalReport, old_report: EvalReport) -> list[RateChange]:
    """Compare two reports, model by model.

    A model that only one of them has is left out, and so are the tasks that only one of them has. Each task counts the
    same, since a run may lack some seeds.
    """
    changes = []
    for figures in now.models:
        shared = [task for task in now.tasks if now.runs(task, figures.model) and old_report.runs(task, figures.model)]
        if shared:
            rates = [
                statistics.fmean(
                    statistics.fmean(result.passed for result in report.runs(task, figures.model)) for task in shared
                )
                for report in (old_report, now)
            ]
            changes.append(RateChange(model=figures.model, tasks=len(shared), before=rates[0], now=rates[1]))
    return changes
