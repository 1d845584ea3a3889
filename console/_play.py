"""Run a task in the terminal: show its events, put its questions, hear Ctrl-C."""

from __future__ import annotations

import queue
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from rich.live import Live

from callboard.console._board import Board
from callboard.console._people import People
from callboard.messages import Event, EventName

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from rich.console import Console

    from callboard.actors.root import TaskHandle
    from callboard.console._attendance import Attendance
    from callboard.messages import Task, TaskResult
    from callboard.supervisor import Supervisor

_TICK = 0.1


class Interrupts:
    """Ctrl-C while a task runs: the first one asks for a cancel, the second is a `KeyboardInterrupt`."""

    def __init__(self) -> None:
        self.wanted = False
        """Whether there was one that nobody has acted on."""

    def __enter__(self) -> Self:
        """Listen."""
        self._before = signal.signal(signal.SIGINT, self._first)
        return self

    def __exit__(self, *_: object) -> None:
        """Listen no more."""
        signal.signal(signal.SIGINT, self._before)

    def _first(self, _number: int, _frame: FrameType | None) -> None:
        self.wanted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Stage:
    """Where a task is shown, and who answers."""

    console: Console
    live: bool
    """Whether a picture changes in place; otherwise there is a line for each thing that happens."""
    attendance: Attendance


def play(supervisor: Supervisor, task: Task, stage: Stage) -> TaskResult:
    """Run a task, show its events to the end and then its last picture, asking whoever is there."""
    board = Board(task.id, task.request)
    with Interrupts() as interrupts:
        try:
            result = _play(supervisor, task, board, interrupts, stage)
        except KeyboardInterrupt:
            supervisor.stop(timeout=0)
            raise
    stage.console.print(board.table(time.time()))
    return result


def _play(supervisor: Supervisor, task: Task, board: Board, interrupts: Interrupts, stage: Stage) -> TaskResult:
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    supervisor.subscribe(events.put, task_id=task.id)
    handle = supervisor.submit(task)
    people = People(handle, stage.console, stage.attendance)
    with Picture(stage) as picture:
        for event in _events(events, handle):
            if interrupts.wanted:
                interrupts.wanted = False
                handle.cancel("cancelled from the keyboard")
            line = board.see(event) if event is not None else None
            if event is not None:
                people.see(event)
            if people.asking:
                picture.away()
            elif stage.live:
                picture.draw(board)
            if line is not None and not stage.live:
                stage.console.print(line, soft_wrap=True)
            people.poll()
    return handle.result()


class Picture:
    """The picture that changes in place. While somebody is asked it is away, so that the prompt stays where it is."""

    def __init__(self, stage: Stage) -> None:
        self._console = stage.console
        self._live: Live | None = None

    def __enter__(self) -> Self:
        """Nothing is drawn yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Take it away."""
        self.away()

    def draw(self, board: Board) -> None:
        """Draw it anew."""
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(board.picture(time.time()), refresh=True)

    def away(self) -> None:
        """Take it from the screen."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def _events(events: queue.SimpleQueue[Event], handle: TaskHandle) -> Iterator[Event | None]:
    """Give a task's events to its end, and None whenever nothing happened for a moment."""
    while True:
        try:
            event = events.get(timeout=_TICK)
        except queue.Empty:
            if handle.done():
                return
            yield None
            continue
        yield event
        if event.name is EventName.TASK_ENDED:
            return
