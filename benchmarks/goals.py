"""The goals, and their comparison with measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from benchmarks.contest import ratio, spread
from benchmarks.raw import HOPS

if TYPE_CHECKING:
    from benchmarks.contest import Answers, Number, Spread

IDEAL = 0.08
"""Seconds of 8 waits of 10 ms, one after the other."""


@dataclass(frozen=True)
class Goal:
    """A bound for one number, or for the ratio of two."""

    what: str
    sign: Literal["≤", "≥"]
    bound: float
    unit: str
    above: Number
    below: Number | None = None
    scale: float = 1.0

    def found(self, answers: Answers) -> Spread | None:
        """Give the measurement in the goal's unit; None if there is none."""
        if self.below is None:
            return spread(answers, self.above, self.scale)
        return ratio(answers, self.above, self.below, self.scale)

    def met(self, spread: Spread) -> bool:
        """Check whether the median is within the bound."""
        return spread.median <= self.bound if self.sign == "≤" else spread.median >= self.bound


def faster_than(peer: str, title: str, times: float, ours: str = "process") -> Goal:
    """Make a goal for the tasks per second against a peer."""
    what = f"tasks per second{' with `full`' if ours == 'full' else ''} against {title}, at 100"
    return Goal(what, "≥", times, "times", (f"{peer}@100", "seconds"), (f"{ours}@100", "seconds"))


def full_at(size: int, key: str = "cpu") -> Goal:
    """Make a goal for the cost of waiting for the disk."""
    what = f"`full` against `process`{', by wall clock' if key == 'seconds' else ''}, at {size}"
    return Goal(what, "≤", 1.5, "times", (f"full@{size}", key), (f"process@{size}", key))


def in_jobs(what: str, name: str, size: int, bound: float) -> tuple[Goal, Goal]:
    """Make goals in raw jobs: by instructions, and by CPU time.

    Instructions are stable; CPU time can be measured on any machine.
    """
    keys = (("instructions", "instructions"), ("cpu", "CPU time"))
    by_instructions, by_cpu = (
        Goal(f"{what}, at {size}: {title}", "≤", bound, "J", (f"{name}@{size}", key), (f"J@{size}", key))
        for key, title in keys
    )
    return by_instructions, by_cpu


GOALS = (
    *in_jobs("the record only", "record", 100, 6),
    *in_jobs("a task with journal and log", "process", 100, 16),
    *in_jobs("a task with journal and log", "process", 1, 20),
    *in_jobs("a task, actions with effect `once`", "once", 100, 18),
    *in_jobs("a task without journal and log", "off", 100, 12),
    Goal("Python calls of a task with journal and log", "≤", 1600, "calls", ("calls-process", "calls")),
    Goal("10,000 windows against 10", "≤", 1.2, "times", ("windows", "ratio")),
    Goal("a step with journal and log", "≤", 20, "H", ("step-process", "cpu"), ("H", "cpu"), HOPS),
    Goal("a step without journal and log", "≤", 8, "H", ("step-off", "cpu"), ("H", "cpu"), HOPS),
    full_at(100),
    full_at(1000),
    full_at(100, "seconds"),
    full_at(1000, "seconds"),
    Goal("a task at 1000 against one at 100", "≤", 1.3, "times", ("process@1000", "cpu"), ("process@100", "cpu")),
    Goal("8 waits of 10 ms, at 100", "≤", 1.5, "times ideal", ("waits@100", "seconds"), scale=100 / IDEAL),
    Goal("8 waits of 10 ms, at 1000", "≤", 30, "times ideal", ("waits@1000", "seconds"), scale=1000 / IDEAL),
    faster_than("autogen-rpc", "autogen-core, two RPCs", 1.2),
    faster_than("autogen-messages", "autogen-core, one message per step", 1),
    faster_than("langgraph-sqlite", "LangGraph with SQLite", 10),
    faster_than("langgraph-sqlite", "LangGraph with SQLite", 10, "full"),
    Goal("a task that waits for its window", "≤", 60, "kB", ("queued", "resident"), scale=1e-3),
    Goal("a task that waits for a person", "≤", 60, "kB", ("asking", "resident"), scale=1e-3),
    Goal("an idle application agent", "≤", 80, "kB", ("idle", "resident"), scale=1e-3),
    Goal("a task after a long history", "≤", 1.1, "times", ("history", "with"), ("history", "without")),
)
