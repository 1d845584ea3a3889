"""The goals, and their comparison with measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from benchmarks.contest import ratio, spread

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    instead: tuple[Number, Number] | None = None
    """Two numbers for the ratio where the others were not measured."""

    def found(self, answers: Answers) -> Spread | None:
        """Give the measurement in the goal's unit; None if there is none."""
        if self.below is None:
            return spread(answers, self.above, self.scale)
        values = ratio(answers, self.above, self.below, self.scale)
        return ratio(answers, *self.instead, self.scale) if values is None and self.instead else values

    @property
    def limit(self) -> str:
        """The bound with its sign and unit."""
        return f"{self.sign} {self.bound:g} {self.unit}"

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

    Instructions are stable; valgrind counts them where no hardware counter can be read. CPU time can be measured on any
    machine.
    """
    counted = (("valgrind/" + name, "instructions"), ("valgrind/J", "instructions"))
    keys = (("instructions", "instructions", counted), ("cpu", "CPU time", None))
    by_instructions, by_cpu = (
        Goal(
            f"{what}, at {size}: {title}", "≤", bound, "J", (f"{name}@{size}", key), (f"J@{size}", key), instead=instead
        )
        for key, title, instead in keys
    )
    return by_instructions, by_cpu


GOALS = (
    *in_jobs("a task with journal and log", "process", 100, 26),
    *in_jobs("a task without journal and log", "off", 100, 18),
    Goal("latency of a single task, by wall clock", "≤", 37, "J", ("process@1", "seconds"), ("J@1", "seconds")),
    Goal("Python calls of a task with journal and log", "≤", 1600, "calls", ("calls-process", "calls")),
    Goal("10,000 windows against 10", "≤", 1.2, "times", ("windows", "ratio")),
    full_at(100),
    full_at(1000),
    full_at(100, "seconds"),
    full_at(1000, "seconds"),
    Goal("a task at 1000 against one at 100", "≤", 1.3, "times", ("process@1000", "cpu"), ("process@100", "cpu")),
    Goal("8 waits of 10 ms, at 100", "≤", 1.5, "times 80 ms", ("waits@100", "seconds"), scale=100 / IDEAL),
    Goal("8 waits of 10 ms, at 1000", "≤", 30, "times 80 ms", ("waits@1000", "seconds"), scale=1000 / IDEAL),
    faster_than("autogen-rpc", "autogen-core, two RPCs", 1.2),
    faster_than("autogen-messages", "autogen-core, one message per step", 1),
    faster_than("langgraph-sqlite", "LangGraph with SQLite", 10),
    faster_than("langgraph-sqlite", "LangGraph with SQLite", 10, "full"),
    Goal("a task that waits for its window", "≤", 60, "kB", ("queued", "resident"), scale=1e-3),
    Goal("a task that waits for a person", "≤", 60, "kB", ("asking", "resident"), scale=1e-3),
    Goal("an idle application agent", "≤", 80, "kB", ("idle", "resident"), scale=1e-3),
    Goal("a task after a long history", "≤", 1.1, "times", ("history", "with"), ("history", "without")),
)
"""The goals of tasks."""


def start_goals() -> Iterator[Goal]:
    """Make the goals of imports, commands, first task and first action."""
    for row, libraries, times, modules, megabytes in (
        ("callboard", "libraries", 2, 500, 55),
        ("task", "needed", 3, 850, 70),
    ):
        cell = f"start/{row}"
        unit = "times the libraries' CPU"
        yield Goal(f"{row}: CPU", "≤", times, unit, (cell, "seconds"), (f"start/{libraries}", "seconds"))
        yield Goal(f"{row}: memory", "≤", megabytes, "MB", (cell, "megabytes"))
        yield Goal(f"{row}: modules", "≤", modules, "modules", (cell, "modules"))
    limits = {"--version": 0.15, "--help": 0.4, "docs": 0.4, "completion": 0.4, "tasks": 0.4, "action": 1.5}
    for row, seconds in limits.items():
        yield Goal(f"{row}: seconds", "≤", seconds, "s", (f"start/{row}", "seconds"))


def document_goals() -> Iterator[Goal]:
    """Make the goals of calls on large documents."""
    for row, seconds, megabytes in (
        ("look at 1,000,000 cells", 1.2, 250),
        ("read_range, 12 of 200,000 rows", 1, 150),
        ("four calls on 200,000 rows", None, 400),
        ("sort_range, 1,000,000 cells", 1, None),
        ("write_range, 1 of 1,000,000 cells", 3, None),
    ):
        cell = f"documents/{row}"
        if seconds is not None:
            yield Goal(f"{row}: seconds", "≤", seconds, "s", (cell, "seconds"))
        if megabytes is not None:
            yield Goal(f"{row}: memory", "≤", megabytes, "MB", (cell, "megabytes"))


FAN_OUT_GOALS = tuple(
    Goal(f"eight subtasks of 1 s, {width} at once", "≤", bound, "s", (f"fan_out/board-{width}", "seconds"))
    for width, bound in ((8, 1.3), (4, 2.4))
)
ROW_GOALS = (*start_goals(), *document_goals(), *FAN_OUT_GOALS)
"""The goals that stand beside the figures of their row."""
