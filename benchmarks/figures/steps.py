"""The cost of one more step of an agent: decide and act.

It is the difference between a longer and a shorter task, per step.

``python -m benchmarks.figures.steps process`` answers to ``{"tasks": n}``.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.board import POOL, VARIANTS, Memo, finish
from benchmarks.protocol import serve, spent
from callboard import FunctionModel, ModelRequest, Supervisor, Task

if TYPE_CHECKING:
    from collections.abc import Callable

SHORT, LONG = 5, 40
PAIRS = 3
"""Pairs of a short and a long run; the median counts."""


async def work(request: ModelRequest) -> dict[str, Any]:
    """Write as often as the task requests."""
    status = "CONTINUE" if request.step < int(request.task_request) else "FINISH"
    return {"Status": status, "Function": "write", "Args": {"text": str(request.step)}}


def measure(parameters: dict[str, Any], variant: str) -> dict[str, float]:
    """Run short tasks and long ones."""
    size = int(parameters["tasks"])
    with tempfile.TemporaryDirectory() as folder:
        settings = VARIANTS[variant].settings(Path(folder))
        models = {"app": FunctionModel(work)}
        with Supervisor.start(settings, models=models, servers=[Memo(min(size, POOL))]) as supervisor:

            def run(steps: int) -> Callable[[], None]:
                targets = [f"memo:{number % POOL}" for number in range(size)]
                return lambda: finish(supervisor.submit_all(Task(request=str(steps), target=t) for t in targets), steps)

            run(SHORT)()
            pairs = [(spent(run(SHORT)), spent(run(LONG))) for _ in range(PAIRS)]
    more = size * (LONG - SHORT)
    seconds, cpu = (statistics.median(long[kind] - short[kind] for short, long in pairs) / more for kind in (0, 1))
    return {"seconds": seconds, "cpu": cpu}


if __name__ == "__main__":
    serve(lambda parameters: measure(parameters, sys.argv[1]))
