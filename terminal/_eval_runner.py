"""Run the cells of an eval set side by side."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from callboard.config import YamlError
from callboard.messages import CallboardError, EventName, SupervisorStoppedError, reason_of
from callboard.supervisor import Supervisor
from callboard.terminal._eval_cells import Cell, CellResult
from callboard.terminal._people import Attendance, TerminalPeople
from callboard.terminal._text import terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from callboard.actors.client import TaskHandle
    from callboard.messages import TaskResult


@dataclass(frozen=True)
class NotRun:
    """A run that could not start, or did not end."""

    cell: Cell
    reason: str


@dataclass
class EvalRunner:
    """Runs cells side by side, on threads of its own."""

    cells: Sequence[Cell]
    attendance: Attendance
    at_once: int = 1
    cost: float | None = None
    """The cost at which no further run starts."""
    programs: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Check programs by name, in addition to those that the settings name."""

    def __post_init__(self) -> None:
        """Begin with nothing spent."""
        self.spent = 0.0
        self._waiting: queue.SimpleQueue[Cell] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[CellResult | NotRun | Exception | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._running: set[Supervisor] = set()

    def results(self) -> Iterator[CellResult | NotRun]:
        """Run all cells, and yield each result as it comes.

        If the iteration ends early, as by Ctrl-C, all supervisors stop; the journals keep the unfinished tasks.
        """
        for cell in self.cells:
            self._waiting.put(cell)
        workers = [threading.Thread(target=self._work, daemon=True) for _ in range(min(self.at_once, len(self.cells)))]
        for worker in workers:
            worker.start()
        working = len(workers)
        try:
            while working:
                ended = self._ended.get()
                if isinstance(ended, Exception):
                    raise ended
                if ended is None:
                    working -= 1
                else:
                    yield ended
        finally:
            self._stopping.set()
            with self._lock:
                running = [*self._running]
            for supervisor in running:
                supervisor.stop(timeout=0)
            for worker in workers:
                worker.join()

    def _work(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    cell = self._waiting.get_nowait()
                except queue.Empty:
                    break  # all cells are taken
                if self.cost is not None and self.spent >= self.cost:
                    self._ended.put(NotRun(cell, "the limit of the cost was reached"))
                else:
                    self._ended.put(self._ran(cell))
        except Exception as error:  # a bug: the thread of the iteration raises it
            self._ended.put(error)
        finally:
            self._ended.put(None)

    def _ran(self, cell: Cell) -> CellResult | NotRun:
        try:
            settings = cell.prepare()
            with Supervisor.start(settings, checks=self.programs) as supervisor:
                with self._lock:
                    self._running.add(supervisor)
                try:
                    if self._stopping.is_set():
                        return NotRun(cell, "interrupted")
                    result = self._result(supervisor, supervisor.submit(cell.task.task))  # or one of an earlier process
                finally:
                    with self._lock:
                        self._running.discard(supervisor)
        except SupervisorStoppedError as error:
            return NotRun(cell, "interrupted" if self._stopping.is_set() else str(error))
        except (CallboardError, OSError, YamlError, ValidationError) as error:
            return NotRun(cell, reason_of(error))
        cell_result = CellResult.of(cell, result)
        cell.keep(cell_result)
        with self._lock:
            self.spent += cell_result.cost
        return cell_result

    def _result(self, supervisor: Supervisor, handle: TaskHandle) -> TaskResult:
        """Wait for a task, and answer requests in place of a person."""
        people = TerminalPeople([handle], terminal(quiet=True), self.attendance)
        people.look(handle.task_id)
        people.poll()
        for event in () if handle.done() else handle.events():
            people.see(event)
            while people.asking:
                people.poll()
            lacks = [task.lacks for task in supervisor.status().tasks] if event.name is EventName.TASK_PAUSED else []
            if any(lacks):  # it was begun by a process that had more
                msg = f"the task is paused: {lacks[0]}"
                raise CallboardError(msg)
        result: TaskResult = handle.result()
        return result
