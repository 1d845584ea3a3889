"""What a contender hears and says: one JSON object a line, so that each may run in an interpreter of its own.

Nothing is imported here but the standard library, and what imports nothing else: the peers' environments have nothing
of ours.
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
    """Runs so many batches of tasks, one after the other; the tasks of a batch run at once."""
    Prepare = Callable[[int], AbstractContextManager[Go]]
    """Sets up for batches of a size, and tidies up; neither is measured."""
    Answer = Callable[[dict[str, Any]], dict[str, Any]]

STEPS = 3
"""What the application's agent takes: decide and act, each time."""
LEAST = 0.3
"""Seconds that are measured at least: batches are run again and again, until they take so long."""
BEHIND = 0.1
"""Seconds after a run in which what it left is written: rows and lines on which nothing depends wait for up to 0.05."""
WARMED = 100
"""Up to so many tasks at once a batch is run before the clock starts, on the very same objects: connections, tables
and agents that are made on first use are there, for every contender."""


def serve(answer: Answer) -> None:
    """Answer each line of the standard input with one of the standard output, until it ends.

    What raises is answered with its ``error``. Whatever a library prints goes to the standard error stream.
    """
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception as error:  # an edge: the contest goes on without this one
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), file=out, flush=True)


def timed(prepare: Prepare) -> Answer:
    """Make an answer to ``{"tasks": n}``: the seconds, and the CPU seconds, that one of n tasks at once takes.

    So are the instructions, where they can be counted.
    """
    warm = False

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        nonlocal warm
        if not warm:
            with prepare(1) as go:
                go(1)
            warm = True
        size, least = int(asked["tasks"]), float(asked.get("least", LEAST))
        with prepare(size) as go:
            if size <= WARMED:
                go(1)
            batches, (wall, cpu, instructions) = 1, counted(lambda: go(1))
            while wall < least:
                batches = max(2 * batches, math.ceil(1.2 * batches * least / max(wall, 1e-6)))
                wall, cpu, instructions = counted(functools.partial(go, batches))
        found = {"seconds": wall, "cpu": cpu, **({} if instructions is None else {"instructions": instructions})}
        return {what: amount / (batches * size) for what, amount in found.items()}

    return answer


def spent(run: Callable[[], None]) -> tuple[float, float]:
    """Measure a run: seconds, and CPU seconds, with those that threads of its own still take behind it."""
    return counted(run)[:2]


def counted(run: Callable[[], None]) -> tuple[float, float, int | None]:
    """Measure a run as `spent` does, and count its instructions; None where there is no counter."""
    gc.collect()
    wall, cpu, instructions = time.perf_counter(), cpu_seconds(), _instructions()
    run()
    wall = time.perf_counter() - wall
    time.sleep(BEHIND)
    return wall, cpu_seconds() - cpu, None if _counter is None else _instructions() - instructions


_counter = opened()  # before any other thread begins: of those that run already it would know nothing


def _instructions() -> int:
    return 0 if _counter is None else _counter.read()


def cpu_seconds() -> float:
    """Give the CPU time of this process, all threads, and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def on_a_loop(job: Callable[[], AbstractAsyncContextManager[Callable[[], Awaitable[None]]]]) -> Prepare:
    """Make what prepares batches of a coroutine: ``job`` sets up once, and gives what runs one task."""

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
