"""Memory of waiting tasks and idle agents; one process per figure.

The answer to ``{"what": …, "count": n}`` has bytes for each: ``resident`` memory of the process, as the system counts
it. With ``"traced": true`` it is ``traced``, counted by `tracemalloc`: allocations by Python, without the stacks of
threads.

- ``queued``: a task whose HostAgent has assigned its subtask, which waits for its window.
- ``asking``: a task whose AppAgent, on a window of its own, waits for a person's answer.
- ``idle``: an application's agent that is kept without work.

One task comes before them, so that modules that are imported at their first use do not count.
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
"""Events kept in memory, in a ring of fixed size."""


async def ask(_request: ModelRequest) -> dict[str, Any]:
    """Decide for an AppAgent: ask a person."""
    return {"Status": "PENDING", "Questions": ["which one?"]}


async def done(_request: ModelRequest) -> dict[str, Any]:
    """Decide for an AppAgent: finish at once."""
    return {"Status": "FINISH"}


class Ruler:
    """A meter of the memory added since the last reading."""

    def __init__(self, *, traced: bool) -> None:
        self.name = "traced" if traced else "resident"
        if traced:
            tracemalloc.start()
        self._traced = traced
        self._last = 0
        self.grown()

    def grown(self) -> int:
        """Give the bytes added since the last reading."""
        gc.collect()
        now = tracemalloc.get_traced_memory()[0] if self._traced else int(STATM.read_text("ascii").split()[1]) * PAGE
        grown, self._last = now - self._last, now
        return grown


def measure(parameters: dict[str, Any]) -> dict[str, float]:
    """Measure one figure."""
    what, count = str(parameters["what"]), int(parameters["count"])
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        settings = Settings.load(
            log={"file": Path(folder) / "events.log"},
            journal={"path": Path(folder) / "journal.db", "durability": "process"},
            limits={"idle_agents": count + 1},
            events={"kept": KEPT},
        )
        windows = 1 if what == "queued" else count + 1
        models = {"host": FunctionModel(Stub().plan), "app": FunctionModel(done if what == "idle" else ask)}
        supervisor = stack.enter_context(Supervisor.start(settings, models=models, servers=[Memo(windows)]))
        of = {"queued": of_waiting, "asking": of_waiting, "idle": of_idle}[what]
        ruler = Ruler(traced=bool(parameters.get("traced")))
        return {ruler.name: of(supervisor, windows, count, ruler) / count}


def of_waiting(supervisor: Supervisor, windows: int, count: int, ruler: Ruler) -> float:
    """Measure waiting tasks: in one window's queue, or each for an answer."""
    waits = EventName.SUBTASK_QUEUED if windows == 1 else EventName.QUESTION_ASKED
    last = f"memo:{windows - 1}"
    with_events(supervisor, EventName.QUESTION_ASKED, 1, lambda: supervisor.submit(Task(request=last)))
    ruler.grown()
    with_events(supervisor, waits, count, lambda: submit(supervisor, count, windows))
    return ruler.grown()


def of_idle(supervisor: Supervisor, windows: int, count: int, ruler: Ruler) -> float:
    """Measure idle agents.

    The first tasks on new windows leave agents in memory; the second tasks on the same windows leave none.
    """
    finish([supervisor.submit(Task(request="nothing", target=f"memo:{windows - 1}"))], 1)
    grown = []
    for _ in range(3):
        ruler.grown()
        tasks = [Task(request="nothing", target=f"memo:{number}") for number in range(count)]
        finish([supervisor.submit(task) for task in tasks], 1)
        grown.append(ruler.grown())
    return grown[0] - grown[2]


def submit(supervisor: Supervisor, count: int, windows: int) -> None:
    """Submit tasks for the windows, in turn."""
    for number in range(count):
        supervisor.submit(Task(request=f"memo:{number % windows}"))


def with_events(supervisor: Supervisor, name: EventName, count: int, do: Callable[[], None]) -> None:
    """Run a function, and wait for events of one name."""
    reached = threading.Event()
    event_count = 0

    def see(event: Event) -> None:
        nonlocal event_count
        event_count += event.name is name
        if event_count == count:
            reached.set()

    end = supervisor.subscribe(see)
    do()
    if not reached.wait(PATIENCE):
        msg = f"the benchmark is broken: {event_count} of {count} {name}"
        raise RuntimeError(msg)
    end()


if __name__ == "__main__":
    serve(measure)
