"""The console's pages of a large journal, and its index's price.

The answer to ``{"row": name, "tasks": n}`` has milliseconds: of a page as HTML, read from the file each time, or of
writing a task and its result. ``python -m benchmarks --only console`` prints a table. It needs ``callboard[console]``.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from benchmarks.board import POOL, finish, tasks
from benchmarks.figures.history import supervisor
from benchmarks.protocol import serve
from callboard.journal import JournalFile, Row
from callboard.messages import Outcome, Task, TaskResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from callboard.console._pages import Pages

TITLES = {
    "newest": "the newest 50 tasks",
    "oldest": "the oldest 50 tasks",
    "rare": "a word of one request in a thousand",
    "common": "a word of all requests",
    "label": "an outcome and a label",
    "task": "a task with three steps",
    "indexed": "a task is written, with the index",
    "plain": "a task is written, without the index",
}
QUERIES = {
    "newest": {},
    "oldest": {"before": "51"},
    "rare": {"q": "audit007"},
    "common": {"q": "ledger"},
    "label": {"outcome": "failed", "label": "team=east"},
}
AT_ONCE = 500
WRITTEN = 5_000
"""The most tasks that are written for the price of the index."""
REPEATS = 7
TEAMS = ("east", "west", "north", "south")
JOB = "job"


def rows(count: int) -> Iterator[list[Row]]:
    """Make tasks and their results, in batches."""
    for begin in range(0, count, AT_ONCE):
        batch = []
        for number in range(begin, min(count, begin + AT_ONCE)):
            name, at = f"t-{number}", float(number)
            request = f"Post invoice {number} of audit{number % 1_000:03} to the ledger of the month"
            labels = {"team": TEAMS[number % len(TEAMS)]}
            outcome = Outcome.FAILED if number % 50 == 0 else Outcome.FINISHED
            result = TaskResult(task_id=name, outcome=outcome, comment=f"Invoice {number} is posted.")
            messages = (Task(id=name, request=request, labels=labels), result)
            batch += [Row(at=at, task_id=name, run_id="", message=message) for message in messages]
        yield batch


def written(journal: Path, count: int) -> float:
    """Write tasks into a new journal.

    Returns the seconds of each, without making the rows.
    """
    seconds = 0.0
    with closing(JournalFile.open(journal)) as file:
        for batch in rows(count):
            begin = time.perf_counter()
            file.write(batch)
            file.commit()
            seconds += time.perf_counter() - begin
    return seconds / count


class Console:
    """A journal that is written once, and its pages."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pages: tuple[int, Pages] | None = None

    def measure(self, parameters: dict[str, Any]) -> dict[str, float]:
        """Measure a row."""
        row, count = parameters["row"], int(parameters["tasks"])
        if row in {"indexed", "plain"}:
            return {"ms": 1e3 * self._price(min(count, WRITTEN), is_indexed=row == "indexed")}
        pages = self._pages_of(count)
        if row == "task":
            return {"ms": 1e3 * _median(lambda: pages.task(None, JOB, {}))}  # type: ignore[arg-type] - no session is shown
        return {"ms": 1e3 * _median(lambda: pages.tasks(QUERIES[row]))}

    def _price(self, count: int, *, is_indexed: bool) -> float:
        """Write tasks with the index, or as SQLite without FTS5 does."""
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            journal = Path(name, "journal.db")
            if is_indexed:
                return written(journal, count)
            with mock.patch("callboard.journal._search.available", return_value=False):
                return written(journal, count)

    def _pages_of(self, count: int) -> Pages:
        from callboard.console._pages import Pages

        if self._pages is None or self._pages[0] != count:
            folder = Path(tempfile.mkdtemp(dir=self._folder))
            written(folder / "journal.db", count)
            with supervisor(folder) as running:
                (task,) = tasks(1, POOL)
                finish([running.submit(task.model_copy(update={"id": JOB}))])
            self._pages = count, Pages(folder / "journal.db", None)
        return self._pages[1]


def _median(run: Callable[[], str]) -> float:
    """Return the median of seconds, after a run that compiles the template."""
    run()
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        serve(Console(Path(scratch)).measure)
