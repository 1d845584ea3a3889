"""Start, cancel and stop, on an idle and on a busy machine.

The answer to ``{"tasks": n}`` is in seconds: ``start`` and ``stop_idle``; then under load ``start_busy``; ``cancel``,
from the call to the result, and ``cancel_longest``; ``stop``.
"""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.board import PATIENCE, Memo
from benchmarks.protocol import serve
from callboard import FunctionModel, ModelRequest, Outcome, Settings, Supervisor, Task

CANCELS = 5
MANY = 1_000_000


class Busy:
    """A model that asks for one more step every 10 ms.

    For the tasks that wait for their cancel, it never answers.
    """

    def __init__(self) -> None:
        self.waiting = threading.Semaphore(0)

    async def work(self, request: ModelRequest) -> dict[str, Any]:
        """Decide for an AppAgent."""
        if request.task_request == "wait":
            self.waiting.release()
            await asyncio.Event().wait()
        await asyncio.sleep(0.01)
        return {"Status": "CONTINUE", "Function": "write", "Args": {"text": str(request.step)}}


def measure(parameters: dict[str, Any]) -> dict[str, float]:
    """Measure all of it."""
    count = int(parameters["tasks"])
    figures: dict[str, float] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        model = Busy()
        idle, figures["start"] = start(folder / "idle", count, model)
        figures["stop_idle"] = seconds_to_stop(idle)
        busy, _ = start(folder / "busy", count, model)
        stack.enter_context(busy)
        for number in range(count):
            busy.submit(Task(request="load", target=f"memo:{number}"))
        busy_supervisor, figures["start_busy"] = start(folder / "other", count, model)
        busy_supervisor.stop(PATIENCE)
        cancels = [seconds_to_cancel(busy, model, count) for _ in range(CANCELS)]
        figures["cancel"], figures["cancel_longest"] = statistics.median(cancels), max(cancels)
        figures["stop"] = seconds_to_stop(busy)
    return figures


def start(folder: Path, count: int, model: Busy) -> tuple[Supervisor, float]:
    """Start a supervisor with one more window than tasks."""
    folder.mkdir()
    log = {"file": folder / "events.log"}
    journal = {"path": folder / "journal.db", "durability": "process"}
    settings = Settings.load(log=log, journal=journal, limits={"steps": MANY, "repeats": MANY, "idle_agents": count})
    begin = time.perf_counter()
    supervisor = Supervisor.start(settings, models={"app": FunctionModel(model.work)}, servers=[Memo(count + 1)])
    return supervisor, time.perf_counter() - begin


def seconds_to_cancel(supervisor: Supervisor, model: Busy, count: int) -> float:
    """Cancel a task whose model thinks."""
    handle = supervisor.submit(Task(request="wait", target=f"memo:{count}"))
    if not model.waiting.acquire(timeout=PATIENCE):
        msg = "the benchmark is broken: the task never began"
        raise RuntimeError(msg)
    begin = time.perf_counter()
    handle.cancel("enough")
    result = handle.result(PATIENCE)
    if result.outcome is not Outcome.CANCELLED:
        msg = f"the benchmark is broken: {result}"
        raise RuntimeError(msg)
    return time.perf_counter() - begin


def seconds_to_stop(supervisor: Supervisor) -> float:
    """Stop, and check that nothing is left."""
    begin = time.perf_counter()
    unfinished = supervisor.stop(PATIENCE)
    if unfinished:
        msg = f"the benchmark is broken: left are {', '.join(unfinished)}"
        raise RuntimeError(msg)
    return time.perf_counter() - begin


if __name__ == "__main__":
    serve(measure)
