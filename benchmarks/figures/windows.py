"""The cost of a task on ten thousand windows, beside ten.

``python -m benchmarks.figures.windows`` answers to ``{"windows": [few, many], "tasks": n}``.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.board import POOL, VARIANTS, Memo, Stub, finish, tasks
from benchmarks.protocol import serve, spent
from callboard import Supervisor

ROUNDS = 3


def measure(parameters: dict[str, Any]) -> dict[str, float]:
    """Run the same tasks on both surfaces."""
    few, many = (_cpu(windows, int(parameters["tasks"])) for windows in parameters["windows"])
    return {"few": few, "many": many, "ratio": many / few}


def _cpu(windows: int, size: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        settings = VARIANTS["process"].settings(Path(folder))
        with Supervisor.start(settings, models=Stub().models(), servers=[Memo(windows)]) as supervisor:

            def run() -> None:
                finish(supervisor.submit_all(tasks(size, min(windows, POOL))))

            run()
            return statistics.median(spent(run)[1] for _ in range(ROUNDS)) / size


if __name__ == "__main__":
    serve(measure)
