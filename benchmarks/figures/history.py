"""The effect of a long history, and its growth per task.

The answer to ``{"history": n, "tasks": m}`` has CPU seconds per task ``without`` and ``with`` n earlier tasks in the
journal, those of the m ``first_…`` tasks after a start, and ``start_without`` and ``start_with`` in seconds. For each
task it has the ``growth`` of the journal and of the ``log``, in bytes, the log's ``lines``, and its ``events``.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.board import POOL, VARIANTS, Memo, Stub, finish, tasks
from benchmarks.protocol import serve, spent
from callboard import FunctionModel, ModelRequest, Supervisor, Task

if TYPE_CHECKING:
    from callboard import TaskHandle

AT_ONCE = 500
EVENTFUL = 10
"""Number of tasks whose events are counted."""


async def work(request: ModelRequest) -> dict[str, Any]:
    """Decide for an AppAgent: work in the job only."""
    return {"Status": "FINISH"} if request.task_request == "nothing" else await Stub().work(request)


def supervisor(folder: Path) -> Supervisor:
    """Start on the journal of a folder."""
    models = {"host": FunctionModel(Stub().plan), "app": FunctionModel(work)}
    return Supervisor.start(VARIANTS["process"].settings(folder), models=models, servers=[Memo(POOL)])


def write_history(folder: Path, count: int) -> None:
    """Run short tasks until a journal has a number of them."""
    with supervisor(folder) as running:
        for begin in range(0, count, AT_ONCE):
            numbers = range(begin, min(count, begin + AT_ONCE))
            short = [Task(request="nothing", target=f"memo:{number % POOL}") for number in numbers]
            finish(running.submit_all(short), 1)


def size_of(folder: Path) -> int:
    """Give the bytes of a closed journal, pictures included."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and file.suffix != ".log")


class History:
    """A journal with its tasks that is written once and copied."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = -1
        self._order = ("with", "without")

    def measure(self, parameters: dict[str, Any]) -> dict[str, float]:
        """Run the job on a copied history, and on an empty journal."""
        if self._count != parameters["history"]:
            shutil.rmtree(self._folder / "kept", ignore_errors=True)
            (self._folder / "kept").mkdir()
            write_history(self._folder / "kept", parameters["history"])
            self._count = parameters["history"]
        figures: dict[str, float] = {}
        self._order = self._order[::-1]
        for name in self._order:
            with TemporaryDirectory(dir=self._folder) as path:
                folder = Path(path)
                if name == "with":
                    shutil.copytree(self._folder / "kept", folder, dirs_exist_ok=True)
                added, times = job(folder, int(parameters["tasks"]))
                figures |= {name: times.cpu, f"first_{name}": times.first, f"start_{name}": times.start}
                if name == "without":
                    figures |= added
        return figures


class Times(NamedTuple):
    """Seconds of the start."""

    start: float
    first: float
    """CPU seconds for each of the first tasks, while SQLite fills its cache."""
    cpu: float
    """CPU seconds for each of as many later tasks."""


def job(folder: Path, count: int) -> tuple[dict[str, float], Times]:
    """Run the job's tasks on a folder's journal, and measure them."""
    with supervisor(folder) as running:
        finish(running.submit_all(tasks(POOL, POOL)))
    log = folder / "events.log"
    size_before, lines, written = size_of(folder), log.read_bytes().count(b"\n"), log.stat().st_size
    begin = time.perf_counter()
    with supervisor(folder) as running:
        started = time.perf_counter() - begin
        handles: list[TaskHandle] = []

        def run() -> None:
            handles[:] = running.submit_all(tasks(count, POOL))
            finish(handles)

        first, cpu = spent(run)[1], spent(run)[1]
        events = sum(1 for handle in handles[-EVENTFUL:] for _ in handle.events()) / len(handles[-EVENTFUL:])
    added = {
        "growth": (size_of(folder) - size_before) / (2 * count),
        "log": (log.stat().st_size - written) / (2 * count),
        "lines": (log.read_bytes().count(b"\n") - lines) / (2 * count),
        "events": events,
    }
    return added, Times(started, first / count, cpu / count)


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        serve(History(Path(scratch)).measure)
