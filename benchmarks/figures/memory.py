"""What it takes in memory to wait, and to be idle. Each figure needs a process of its own.

Answers to ``{"what": …, "count": n}`` with bytes for each: ``resident`` of the process, by the system's account, or,
asked with ``"traced": true``, ``traced`` by `tracemalloc`, which sees what Python allocates and no stacks of threads.

- ``queued``: a task whose HostAgent has assigned its subtask, which waits for its window.
- ``asking``: a task whose AppAgent, on a window of its own, waits for a person's answer.
- ``idle``: an application's agent that is kept with nothing to do.
"""

from __future__ import annotations

import gc
import threading
import tracemalloc
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from benchmarks.board import PATIENCE, Memo, Stub, finish
from benchmarks.protocol import serve
from callboard import EventName, FunctionModel, ModelRequest, Settings, Supervisor, Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard import Event

STATM = Path("/proc/self/statm")
PAGE = 4096
KEPT = 100
"""Events that stay in memory: a ring of a fixed size, which a task's own come into, but do not make larger."""


async def ask(_request: ModelRequest) -> dict[str, Any]:
    """Decide for an AppAgent: ask a person."""
    return {"Status": "PENDING", "Questions": ["which one?"]}


async def done(_request: ModelRequest) -> dict[str, Any]:
    """Decide for an AppAgent: there is nothing to do."""
    return {"Status": "FINISH"}


class Ruler:
    """Measures what was added since the last time, in one of two ways."""

    def __init__(self, *, traced: bool) -> None:
        self.name = "traced" if traced else "resident"
        if traced:
            tracemalloc.start()
        self._traced = traced
        self._last = 0
        self.grown()

    def grown(self) -> int:
        """Give the bytes more than at the last time."""
        gc.collect()
        now = tracemalloc.get_traced_memory()[0] if self._traced else int(STATM.read_text("ascii").split()[1]) * PAGE
        grown, self._last = now - self._last, now
        return grown


def measure(asked: dict[str, Any]) -> dict[str, float]:
    """Measure one figure."""
    what, count = str(asked["what"]), int(asked["count"])
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        settings = Settings.load(
            log={"file": Path(folder) / "events.log"},
            journal={"path": Path(folder) / "journal.db", "durability": "process"},
            limits={"idle_agents": count},
            events={"kept": KEPT},
        )
        windows = 1 if what == "queued" else count
        models = {"host": FunctionModel(Stub().plan), "app": FunctionModel(done if what == "idle" else ask)}
        supervisor = stack.enter_context(Supervisor.start(settings, models=models, servers=[Memo(windows)]))
        of = {"queued": of_waiting, "asking": of_waiting, "idle": of_idle}[what]
        ruler = Ruler(traced=bool(asked.get("traced")))
        return {ruler.name: of(supervisor, windows, count, ruler) / count}


def of_waiting(supervisor: Supervisor, windows: int, count: int, ruler: Ruler) -> float:
    """Measure tasks that wait: in one window's queue, or each for an answer."""
    waits = EventName.SUBTASK_QUEUED if windows == 1 else EventName.QUESTION_ASKED
    first, rest = (1, count) if windows == 1 else (0, count)
    if first:
        with_events(supervisor, EventName.QUESTION_ASKED, 1, lambda: submit(supervisor, 1, windows))
    ruler.grown()
    with_events(supervisor, waits, rest, lambda: submit(supervisor, rest, windows))
    return ruler.grown()


def of_idle(supervisor: Supervisor, windows: int, count: int, ruler: Ruler) -> float:
    """Measure agents that are kept: what the first tasks leave on new windows, but not the second on the same."""
    grown = []
    for _ in range(3):
        ruler.grown()
        tasks = [Task(request="nothing", target=f"memo:{number % windows}") for number in range(count)]
        finish([supervisor.submit(task) for task in tasks], 1)
        grown.append(ruler.grown())
    return grown[0] - grown[2]


def submit(supervisor: Supervisor, count: int, windows: int) -> None:
    """Submit tasks, each for a window, in turn."""
    for number in range(count):
        supervisor.submit(Task(request=f"memo:{number % windows}"))


def with_events(supervisor: Supervisor, name: EventName, count: int, do: Callable[[], None]) -> None:
    """Do something, and wait until so many events of a name were told."""
    reached = threading.Event()
    seen = 0

    def see(event: Event) -> None:
        nonlocal seen
        seen += event.name is name
        if seen == count:
            reached.set()

    end = supervisor.subscribe(see)
    do()
    if not reached.wait(PATIENCE):
        msg = f"the benchmark is broken: {seen} of {count} {name}"
        raise RuntimeError(msg)
    end()


if __name__ == "__main__":
    serve(measure)
