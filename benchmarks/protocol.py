"""The protocol of a contender: one JSON object per line.

So each contender can run in an interpreter of its own. Only the standard library is imported, and modules that import
nothing else: callboard is not installed in the peers' environments.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import math
import os
import resource
import sys
import time
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.counter import opened

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    Go = Callable[[int], None]
    """Function that runs a number of batches in sequence; the tasks of a batch run at once."""
    Prepare = Callable[[int], AbstractContextManager[Go]]
    """Context that sets up for batches of a size, and cleans up; neither is measured."""
    Answer = Callable[[dict[str, Any]], dict[str, Any]]

STEPS = 3
"""Steps of the application's agent: decide and act."""
LEAST = 0.3
"""Minimum of measured seconds: batches are repeated until they take this long."""
BEHIND = 0.1
"""Seconds after a run for pending writes: rows and lines that nothing depends on wait for up to 0.05."""
WARMED = 100
"""Largest number of tasks at once with a warm-up batch. It runs on the same objects before the clock starts, so that
every contender has made its connections, tables and agents."""


def serve(answer: Answer) -> None:
    """Answer each line of standard input with a line of standard output.

    An exception is answered with its ``error``. Output of libraries goes to the standard error stream.
    """
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception as error:  # an edge: the contest continues without this contender
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), file=out, flush=True)


def timed(prepare: Prepare) -> Answer:
    """Answer ``{"tasks": n}`` with the cost of one task.

    The answer has seconds, CPU seconds, and instructions if they can be counted.
    """
    warm = False

    def answer(parameters: dict[str, Any]) -> dict[str, Any]:
        nonlocal warm
        if not warm:
            with prepare(1) as go:
                go(1)
            warm = True
        size, least = int(parameters["tasks"]), float(parameters.get("least", LEAST))
        with prepare(size) as go:
            if size <= WARMED:
                go(1)
            batches, (wall, cpu, instructions) = 1, counted(lambda: go(1))
            while wall < least:
                batches = max(2 * batches, math.ceil(1.2 * batches * least / max(wall, 1e-6)))
                wall, cpu, instructions = counted(functools.partial(go, batches))
        amounts = {"seconds": wall, "cpu": cpu, **({} if instructions is None else {"instructions": instructions})}
        return {what: amount / (batches * size) for what, amount in amounts.items()}

    return answer


def spent(run: Callable[[], None]) -> tuple[float, float]:
    """Measure seconds and CPU seconds of a run, with its background threads."""
    return counted(run)[:2]


def counted(run: Callable[[], None]) -> tuple[float, float, int | None]:
    """Measure as `spent` does, with instructions; None without a counter."""
    gc.collect()
    wall, cpu, instructions = time.perf_counter(), cpu_seconds(), _instructions()
    run()
    wall = time.perf_counter() - wall
    time.sleep(BEHIND)
    return wall, cpu_seconds() - cpu, None if _counter is None else _instructions() - instructions


_counter = opened()  # before any other thread begins: it does not count threads that run already


def _instructions() -> int:
    return 0 if _counter is None else _counter.read()


def cpu_seconds() -> float:
    """Give the CPU time of this process and its ended children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def on_a_loop(job: Callable[[], AbstractAsyncContextManager[Callable[[], Awaitable[None]]]]) -> Prepare:
    """Prepare batches of a coroutine.

    ``job`` sets up once, and returns the function that runs one task.
    """

    @contextmanager
    def prepare(size: int) -> Iterator[Go]:
        with asyncio.Runner() as runner:
            stack = AsyncExitStack()
            task = runner.run(stack.enter_async_context(job()))

            async def run(batches: int) -> None:
                for _ in range(batches):
                    await asyncio.gather(*(task() for _ in range(size)))

            yield lambda batches: runner.run(run(batches))
            runner.run(stack.aclose())

    return prepare
