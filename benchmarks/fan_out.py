"""The fan-out of one task into eight subtasks.

Only the standard library is imported, as in `benchmarks.protocol`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.protocol import spent

if TYPE_CHECKING:
    from collections.abc import Callable

SUBTASKS = 8
WIDTHS = (8, 4, 1)
"""The most subtasks at once; 1: one after the other."""
OURS, LANGGRAPH = "callboard, journal `process`, log", "LangGraph, `AsyncSqliteSaver`"
TITLES = {
    f"{key}-{width}": f"{title}, {f'{width} at once' if width > 1 else 'one after the other'}"
    for key, title in (("board", OURS), ("langgraph-sqlite", LANGGRAPH))
    for width in WIDTHS
}
"""The rows of the table."""


def measured(run: Callable[[float], None], parameters: dict[str, Any]) -> dict[str, float]:
    """Measure a task whose decisions wait, and the CPU time without waits.

    Args:
        run: Runs a task to its end, with a wait in seconds for each subtask's decision.
        parameters: The ``wait`` in seconds, and the number of ``runs`` without it.
    """
    runs = int(parameters["runs"])
    run(0.0)  # connections, tables and agents are made before the clock starts
    seconds, _ = spent(lambda: run(float(parameters["wait"])))

    def without_waits() -> None:
        for _ in range(runs):
            run(0.0)

    _, cpu = spent(without_waits)
    return {"seconds": seconds, "cpu_ms": cpu / (runs * SUBTASKS) * 1e3}
