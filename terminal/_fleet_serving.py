"""The command `fleet serve`: do subtasks of other machines."""

from __future__ import annotations

import queue
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Self

from callboard.actors.client import kind_of_request
from callboard.config import Settings
from callboard.history import numbered, plain
from callboard.messages import EventName, Outcome, agent_kind
from callboard.supervisor import Supervisor
from callboard.terminal._commands import EXIT_CODES, fail, warn
from callboard.terminal._journals import journal_in, settings_at, unset
from callboard.terminal._people import Attendance, TerminalPeople
from callboard.terminal._takeover import left_in
from callboard.terminal._task_session import STOP_SECONDS, Interrupts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

    from rich.console import Console

    from callboard.actors.client import RequestKind
    from callboard.messages import ApprovalRequest, Event, Question

_TICK = 0.1
_REQUESTS = {
    EventName.APPROVAL_REQUESTED,
    EventName.APPROVAL_ANSWERED,
    EventName.QUESTION_ASKED,
    EventName.QUESTION_ANSWERED,
    EventName.TASK_CANCELLING,
    EventName.TASK_ENDED,
}
_NO_TERMINAL = "this command has no terminal, so they end at their deadlines"
_HEALTH_SECONDS = 2.0
"""The interval at which the journal is checked."""


class ServeSignals(Interrupts):
    """Signals while a machine serves.

    The first Ctrl-C or SIGTERM is a request to drain. A second one ends the program, as SIGHUP does.
    """

    def __enter__(self) -> Self:
        """Install the signal handlers."""
        super().__enter__()
        if signal.SIGTERM in self._old_handlers:
            signal.signal(signal.SIGTERM, self._terminate)
        return self

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            self._end(number, frame)
        self._first(number, frame)


class ServingPeople(TerminalPeople):
    """Asks a person at the terminal for decisions about this machine's tasks.

    Questions of agents are the submitter's.
    """

    def __init__(
        self, console: Console, supervisor: Supervisor, kinds: frozenset[RequestKind] = frozenset({"approval"})
    ) -> None:
        """Create it; `kinds` are the kinds of requests that are asked here."""
        super().__init__((), console, Attendance())
        self._supervisor = supervisor
        self._kinds = kinds
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        supervisor.subscribe(self._events.put)
        for handle in supervisor.pending():
            self.look(handle.task_id)

    def look(self, task_id: str) -> None:
        """Load the requests that are open now."""
        handle = self._handles.setdefault(task_id, self._supervisor.handle(task_id))
        requests: list[ApprovalRequest | Question] = [*handle.approvals(), *handle.questions()]
        for request in requests:
            if request.id not in self._answered and kind_of_request(request) in self._kinds:
                self._open.setdefault(request.id, request)

    def poll(self) -> None:
        """Show the next request, or submit the typed answer."""
        while not self._events.empty():
            event = self._events.get()
            if event.name in _REQUESTS:
                self.see(event)
            if event.name is EventName.TASK_ENDED:
                self._handles.pop(event.task_id, None)
        super().poll()


def fleet_settings(path: Path | None, changes: dict[str, Any] | None = None) -> Settings:
    """Read settings that name the server of a fleet."""
    file = settings_at(path)
    settings = Settings.load(file, **(changes or {}))
    if settings.fleet.url is None:
        fail(f"{unset('fleet.url', file)}; it is the address of the server that all machines connect to")
    return settings


def serve_fleet(console: Console, path: Path | None, changes: dict[str, Any]) -> None:
    """Do the subtasks of other machines, until a signal.

    The first one drains, a second one stops at once.
    """
    settings = fleet_settings(path, changes)
    journal = journal_in(settings)
    if journal is None:
        missing = unset("journal.path", settings_at(path))
        fail(f"{missing}, or say --journal; work of other machines must survive a restart")
    unfinished = len(left_in(journal))
    with ServeSignals() as signals, Supervisor.start(settings) as supervisor:
        warn(supervisor.warnings)
        supervisor.serve()
        is_attended = settings.fleet.approvals == "here" and sys.stdin.isatty()
        people = ServingPeople(console, supervisor) if is_attended else None
        try:
            for line in _served(supervisor, signals, unfinished, people):
                _write_line(console, line)
        except (KeyboardInterrupt, SystemExit):
            kept = len(supervisor.pending())
            supervisor.stop(STOP_SECONDS)
            them = "it" if kept == 1 else "them"
            console.print(f"stopped; the journal keeps {numbered(kept, 'task')}, and the next start resumes {them}")
            raise


def _write_line(console: Console, line: str) -> None:
    """Write a line once, also if a signal ends the program meanwhile.

    `Console.print` keeps what it has written until it returns, and would write it again with the next line.
    """
    console.file.write(f"{plain(line)}\n")
    console.file.flush()


def _served(
    supervisor: Supervisor, signals: ServeSignals, unfinished: int, people: ServingPeople | None
) -> Iterator[str]:
    """Serve to the end, and yield lines about it."""
    settings = supervisor.settings
    own_targets = [target for target in supervisor.targets() if not target.machine]
    offered = sum(settings.models.of(agent_kind(target.address)) is not None for target in own_targets)
    connected = {health.name: health.state for health in supervisor.health().servers}["fleet"] == "ready"
    away = "" if connected else ", which does not answer yet and is tried again"
    yield (
        f"{settings.fleet.machine} serves {numbered(offered, 'target')} through {settings.fleet.url}{away}; "
        "Ctrl-C drains"
    )
    if unfinished:
        yield f"resumes {numbered(unfinished, 'task')} of an earlier start"
    if settings.fleet.approvals == "here":
        yield "approvals are asked here" if people is not None else f"approvals are asked here: {_NO_TERMINAL}"
    _wait(supervisor, signals, people)
    count = -1
    while not supervisor.drain(_TICK):
        if people is not None:
            people.poll()
        if count != (count := _open_tasks(supervisor)) and count:  # none: work is being begun
            yield f"drains: waits for {numbered(count, 'task')} of other machines; Ctrl-C again stops at once"
    yield "drained: no task of other machines is open"


def _wait(supervisor: Supervisor, signals: ServeSignals, people: ServingPeople | None) -> None:
    """Wait for the first signal.

    Without a journal nothing more can be done: that ends the program.
    """
    checked = time.monotonic()
    while not signals.requested:
        time.sleep(_TICK)
        if people is not None:
            people.poll()
        if time.monotonic() - checked > _HEALTH_SECONDS:
            checked, health = time.monotonic(), supervisor.health()
            if health.journal == "failed":
                fail(health.journal_error, EXIT_CODES[Outcome.ERROR])


def _open_tasks(supervisor: Supervisor) -> int:
    return sum(handle.task.origin is not None for handle in supervisor.pending())
