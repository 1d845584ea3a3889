"""Tasks per second, and what a step costs, with models and tools that take no time: what is left is our own work.

``python benchmarks/throughput.py`` prints a table, ``--json`` the same as JSON. It reports, it never judges.

The job of each task: its HostAgent decides, assigns a subtask to an AppAgent, which takes three steps (decide, act) and
finishes; then the HostAgent finishes. That is five steps, five model calls and three tool calls. Times are
given as they are, and as ratios to a Pykka `tell` and to a Pykka `ask` round trip, measured in the same run, in turns
with the tasks: ratios can be compared between machines, times hardly.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pykka

from callboard import FunctionModel, ModelRequest, Settings, Supervisor, Task
from callboard.testing import MemoryServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STEPS = 5
WORK_STEPS = 3
RAW_MESSAGES = 2000
BATCHED = 20
"""Small numbers of tasks are run again and again, until about this many tasks were measured."""
PATIENCE = 600.0


class Echo(pykka.ThreadingActor):
    """The least that an actor can do."""

    use_daemon_thread = True

    def on_receive(self, message: object) -> object:
        """Answer with the message; set it, if it is an event."""
        if isinstance(message, threading.Event):
            message.set()
        return message


@dataclass(frozen=True)
class Variant:
    """One way to run the tasks."""

    tasks: int
    """How many at once."""
    windows: str
    """``shared``: all work in one window, and take turns. ``own``: each task has a window of its own."""
    log: str
    """``off``, or ``file``: one JSON line an event, level info."""
    journal: str
    """``memory``, or a file, with the durability ``process`` or ``full``."""


@dataclass(frozen=True)
class Figures:
    """What came out for one variant: medians."""

    tasks: int
    windows: str
    log: str
    journal: str
    tasks_per_second: float
    milliseconds_per_task: float
    microseconds_per_step: float
    step_in_tells: float
    step_in_asks: float


def raw() -> tuple[float, float]:
    """Measure a Pykka tell, from the first to the last one handled, and an ask round trip: seconds each."""
    actor = Echo.start()
    try:
        actor.ask("warm up")
        handled = threading.Event()
        start = time.perf_counter()
        for _ in range(RAW_MESSAGES - 1):
            actor.tell("message")
        actor.tell(handled)
        handled.wait()
        told = (time.perf_counter() - start) / RAW_MESSAGES
        start = time.perf_counter()
        for _ in range(RAW_MESSAGES):
            actor.ask("message")
        return told, (time.perf_counter() - start) / RAW_MESSAGES
    finally:
        actor.stop()


async def plan(request: ModelRequest) -> dict[str, Any]:
    """Decide for a HostAgent: assign the one subtask, then finish."""
    if request.subtasks:
        return {"Status": "FINISH"}
    return {"Status": "ASSIGN", "Current Sub-Task": "fill the field", "ControlLabel": request.task_request}


async def work(request: ModelRequest) -> dict[str, Any]:
    """Decide for an AppAgent: write three times, and finish with the last."""
    status = "CONTINUE" if request.step < WORK_STEPS else "FINISH"
    return {"Status": status, "Function": "write", "Args": {"control_id": "field-1", "text": str(request.step)}}


def measure(variant: Variant, folder: Path, history: int) -> float:
    """Run a variant, after so many tasks that its journal holds already. Returns seconds a task."""
    log = {"format": "off", "level": "info", "file": folder / "events.log" if variant.log == "file" else None}
    kept = {} if variant.journal == "memory" else {"path": folder / "journal.db", "durability": variant.journal}
    settings = Settings.load(log=log, journal=kept)
    windows = [MemoryServer.window(str(number)) for number in range(variant.tasks if variant.windows == "own" else 1)]
    models = {"host": FunctionModel(plan), "app": FunctionModel(work)}
    batches = max(1, BATCHED // variant.tasks)
    with Supervisor.start(settings, models=models, servers=[MemoryServer(*windows)]) as supervisor:
        run(supervisor, [windows[0].id] * (1 + history))
        start = time.perf_counter()
        for _ in range(batches):
            run(supervisor, [windows[number % len(windows)].id for number in range(variant.tasks)])
        return (time.perf_counter() - start) / (batches * variant.tasks)


def run(supervisor: Supervisor, targets: Sequence[str]) -> None:
    """Submit a task for each target, all at once, and wait for all of them."""
    handles = [supervisor.submit(Task(request=target)) for target in targets]
    for handle in handles:
        result = handle.result(PATIENCE)
        if not result.ok or result.usage.steps != STEPS:
            msg = f"the benchmark is broken: {result}"
            raise RuntimeError(msg)


def report(variants: Sequence[Variant], repeats: int, history: int) -> Iterator[Figures]:
    """Measure all variants in turns with the raw messages, and give the medians."""
    tells: list[float] = []
    asks: list[float] = []
    seconds: dict[Variant, list[float]] = {variant: [] for variant in variants}
    for _ in range(repeats):
        for variant in variants:
            told, asked = raw()
            tells.append(told)
            asks.append(asked)
            with tempfile.TemporaryDirectory() as folder:
                seconds[variant].append(measure(variant, Path(folder), history))
    tell, ask = statistics.median(tells), statistics.median(asks)
    for variant, measured in seconds.items():
        task = statistics.median(measured)
        step = task / STEPS
        yield Figures(
            **asdict(variant),
            tasks_per_second=round(1 / task, 1),
            milliseconds_per_task=round(task * 1e3, 3),
            microseconds_per_step=round(step * 1e6, 1),
            step_in_tells=round(step / tell, 1),
            step_in_asks=round(step / ask, 1),
        )
    yield Figures(0, "raw", "tell", "", round(1 / tell, 1), round(tell * 1e3, 5), round(tell * 1e6, 2), 1.0, tell / ask)
    yield Figures(0, "raw", "ask", "", round(1 / ask, 1), round(ask * 1e3, 5), round(ask * 1e6, 2), ask / tell, 1.0)


def machine() -> dict[str, Any]:
    """Say what it was measured on."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "pykka": metadata.version("pykka"),
    }


def drawn(figures: Sequence[Figures]) -> Iterator[str]:
    """Draw the table."""
    heads = [("tasks", 6), ("windows", 8), ("log", 5), ("journal", 8), ("tasks/s", 10), ("ms/task", 9), ("us/step", 9)]
    yield " ".join(f"{head:>{width}}" for head, width in [*heads, ("tells", 7), ("asks", 7)])
    for row in figures:
        yield (
            f"{row.tasks or '':>6} {row.windows:>8} {row.log:>5} {row.journal:>8} {row.tasks_per_second:>10.1f} "
            f"{row.milliseconds_per_task:>9.3f} {row.microseconds_per_step:>9.1f} {row.step_in_tells:>7.1f} "
            f"{row.step_in_asks:>7.2f}"
        )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tasks", type=int, nargs="+", default=[1, 10, 100, 1000], help="how many at once")
    parser.add_argument("--repeats", type=int, default=3, help="how often each variant is measured; medians are shown")
    parser.add_argument("--history", type=int, default=0, help="tasks that each journal holds before")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    kept = [("off", "memory"), ("file", "memory"), ("file", "process"), ("file", "full")]
    variants = [
        Variant(tasks, windows, *each)
        for tasks, windows, each in itertools.product(options.tasks, ("shared", "own"), kept)
    ]
    figures = list(report(variants, options.repeats, options.history))
    if options.json:
        print(json.dumps({"machine": machine(), "figures": [asdict(row) for row in figures]}, indent=2))
    else:
        print(", ".join(f"{key} {value}" for key, value in machine().items()))
        print("\n".join(drawn(figures)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
