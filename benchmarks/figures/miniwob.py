"""The pages of MiniWoB++, solved by oracles through the surface's tools.

The answer to ``{"page": name, "seeds": n}`` has the number of solved runs, the least reward, and the steps, calls and
seconds of each run. ``python -m benchmarks --only miniwob`` prints a table. It needs ``callboard[browser]``,
``chromium`` and the pages (``pip install --no-deps miniwob``), and takes twenty minutes.
"""

from __future__ import annotations

from typing import Any

from benchmarks.miniwob.run import SOLVERS, attempts
from benchmarks.protocol import serve


def measure(parameters: dict[str, Any]) -> dict[str, Any]:
    """Solve a page with some seeds."""
    name, seeds = str(parameters["page"]), int(parameters["seeds"])
    if name not in SOLVERS:
        return {"solved": 0, "seeds": seeds}
    runs = list(attempts([name], range(1, seeds + 1)))
    return {
        "solved": sum(run.is_solved for run in runs),
        "seeds": seeds,
        "by": runs[0].by,
        "reward": min(-1.0 if run.reward is None else run.reward for run in runs),
        "steps": [run.steps for run in runs],
        "calls": [run.calls for run in runs],
        "times": [run.seconds for run in runs],
        "reasons": [run.reason for run in runs if run.reason],
    }


if __name__ == "__main__":
    serve(measure)
