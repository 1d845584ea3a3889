"""Run tasks in the terminal: show events, ask questions, handle Ctrl-C."""

from __future__ import annotations

import queue
import signal
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from rich.live import Live
from rich.text import Text

from callboard.actors.commands import Secrets
from callboard.history import plain
from callboard.messages import Event, EventName, JournalError, Outcome
from callboard.terminal._board import TaskDisplay, pictures
from callboard.terminal._commands import EXIT_CODES, fail
from callboard.terminal._people import TerminalPeople

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from types import FrameType

    from rich.console import Console

    from callboard.actors.client import TaskHandle
    from callboard.history import TaskHistory
    from callboard.messages import Task, TaskResult
    from callboard.supervisor import Supervisor
    from callboard.terminal._people import Attendance


_TICK = 0.1
_CANCELLED = "cancelled from the keyboard"
_WITHOUT_MACHINE = (
    "The machine {machine} stops the work when it is back. To end the task without it: Ctrl-C again, then "
    "callboard resume --abandon"
)
_HELD_LINES = 1_000
"""The most lines that wait while a prompt is open; older ones are dropped. The journal has all events."""
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
STOP_SECONDS = 1.0
"""The time limit of each part at an early end: long enough to kill the commands of shells."""
_BY_SIGNAL = 128
"""The exit code of a program that a signal has ended, without the signal's number."""


class Interrupts:
    """Signals while a task runs.

    The first Ctrl-C cancels, the second is a `KeyboardInterrupt`. SIGTERM and SIGHUP end the program with the usual
    exit code, so that the supervisor is stopped and kills all commands. A SIGHUP that is ignored, as under nohup, stays
    so.
    """

    def __init__(self) -> None:
        self.requested = False
        """Whether a Ctrl-C has not been handled yet."""

    def __enter__(self) -> Self:
        """Install the signal handler."""
        self._old_handlers = {signal.SIGINT: signal.signal(signal.SIGINT, self._first)}
        for number in _ENDING:
            if signal.getsignal(number) is signal.SIG_DFL:
                self._old_handlers[number] = signal.signal(number, self._end)
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the signal handlers."""
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)

    def _first(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    @staticmethod
    def _end(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)  # a second one ends the program at once
        raise SystemExit(_BY_SIGNAL + number)


@dataclass(frozen=True)
class TaskSession:
    """The display of a task, and the source of answers."""

    console: Console
    live: bool
    """Whether a picture changes in place; otherwise each event has a line."""
    attendance: Attendance
    abandon: bool = False
    """Whether a cancel does not wait for other machines of the fleet."""


def play(supervisor: Supervisor, task: Task, stage: TaskSession, head: Callable[[], None] = lambda: None) -> TaskResult:
    """Run a task, and show its events and then its last picture.

    Open requests are put to the person at the terminal, if there is one. `head` prints the head of the run, once the
    task is not refused.
    """

    def submitted() -> tuple[TaskHandle]:
        handle: TaskHandle = supervisor.submit(task)
        head()
        return (handle,)

    redacted_task = Secrets(supervisor.settings.secrets).as_kept(task)
    return _shown(supervisor, [TaskDisplay(task.id, redacted_task.request)], submitted, stage, last_seq=None)[0]


def resume_tasks(
    supervisor: Supervisor, histories: Sequence[TaskHistory], stage: TaskSession, *, cancel: bool = False
) -> list[TaskResult]:
    """Show resumed tasks to their ends, each from its recorded progress.

    With `cancel`, they are cancelled at once.
    """
    boards = [TaskDisplay(history.task.id, history.task.request) for history in histories]
    last_seq = 0
    for board, history in zip(boards, histories, strict=True):
        for event in history.events:
            board.see(event)
            last_seq = max(last_seq, event.seq)
        board.lines = []  # they are of an earlier process

    def recovered() -> list[TaskHandle]:
        handles: list[TaskHandle] = [supervisor.handle(history.task.id) for history in histories]
        for handle in handles if cancel else ():
            handle.cancel(_CANCELLED, abandon=stage.abandon)
        return handles

    return _shown(supervisor, boards, recovered, stage, last_seq=last_seq)


def _shown(
    supervisor: Supervisor,
    boards: Sequence[TaskDisplay],
    handles: Callable[[], Sequence[TaskHandle]],
    stage: TaskSession,
    *,
    last_seq: int | None,
) -> list[TaskResult]:
    """Subscribe to the events of tasks, and show them.

    The tasks' handles are got after that; all is shown to the end.
    """
    with Interrupts() as interrupts:
        try:
            events: queue.SimpleQueue[Event] = queue.SimpleQueue()
            for board in boards:
                supervisor.subscribe(events.put, after=last_seq, task_id=board.task_id)
            open_handles = handles()
            _watch(events, open_handles, {board.task_id: board for board in boards}, interrupts, stage)
            results = [_result(handle) for handle in open_handles]
        except (KeyboardInterrupt, SystemExit):
            supervisor.stop(STOP_SECONDS)
            raise
    now = time.time()
    for board in boards:
        stage.console.print(board.drawn(now, stage.console.width))
    return results


def _result(handle: TaskHandle) -> TaskResult:
    try:
        return handle.result()
    except JournalError as error:
        fail(str(error), EXIT_CODES[Outcome.ERROR])  # it was writable at the start: not the user's mistake


def _watch(
    events: queue.SimpleQueue[Event],
    handles: Sequence[TaskHandle],
    boards: Mapping[str, TaskDisplay],
    interrupts: Interrupts,
    stage: TaskSession,
) -> None:
    people = TerminalPeople(handles, stage.console, stage.attendance, boards)
    lines: deque[Text] = deque(maxlen=_HELD_LINES)
    is_cancelled = False
    for handle in handles:
        people.look(handle.task_id)
    with Picture(stage) as picture:
        for event in _events(events, handles):
            if interrupts.requested:
                interrupts.requested = False
                is_cancelled = True
                for handle in handles:
                    handle.cancel(_CANCELLED, abandon=stage.abandon)
            line = boards[event.task_id].see(event) if event is not None else None
            if event is not None:
                people.see(event)
            if people.asking:
                picture.away()
            elif stage.live and events.empty():  # a picture costs more than an event
                picture.draw(boards.values())
            if line is not None and not stage.live:
                lines.append(line)
            lines.extend(_advice(event, is_cancelled=is_cancelled))
            if not people.prompting:
                _print_all(lines, stage.console)
            people.poll()
    _print_all(lines, stage.console)


def _advice(event: Event | None, *, is_cancelled: bool) -> Iterator[Text]:
    """Tell how a cancelled task ends without a machine that is away."""
    if is_cancelled and event is not None and event.name is EventName.MACHINE_AWAY:
        yield Text(_WITHOUT_MACHINE.format(machine=plain(str(event.data["machine"]))))


def _print_all(lines: deque[Text], console: Console) -> None:
    while lines:
        console.print(lines.popleft(), soft_wrap=True)


class Picture:
    """The picture that changes in place.

    It is hidden while a question is open, so that the prompt stays where it is.
    """

    def __init__(self, stage: TaskSession) -> None:
        self._console = stage.console
        self._live: Live | None = None

    def __enter__(self) -> Self:
        """Draw nothing yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove it."""
        self.away()

    def draw(self, boards: Collection[TaskDisplay]) -> None:
        """Redraw it."""
        now = time.time()
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(pictures(boards, now, self._console), refresh=True)

    def away(self) -> None:
        """Remove it from the screen."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def _events(events: queue.SimpleQueue[Event], handles: Sequence[TaskHandle]) -> Iterator[Event | None]:
    """Yield the events of tasks up to their ends.

    Yields None after each idle moment.
    """
    open_ = {handle.task_id: handle for handle in handles}
    while open_:
        try:
            event = events.get(timeout=_TICK)
        except queue.Empty:
            open_ = {task_id: handle for task_id, handle in open_.items() if not handle.done()}
            yield None
            continue
        yield event
        if event.name is EventName.TASK_ENDED:
            open_.pop(event.task_id, None)
