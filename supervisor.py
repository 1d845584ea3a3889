"""The supervisor: what a host program holds. The whole life of the system is here, start in order, stop in reverse."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

import pykka
import structlog

import callboard.actors.app
import callboard.actors.host
import callboard.actors.linux
import callboard.actors.mobile  # noqa: F401 - the four kinds of agent register themselves with their machines
from callboard.actors.commands import Dispatcher, McpSession, Policy, Toolbox, find_target
from callboard.actors.models import named_models
from callboard.actors.processing import Services
from callboard.actors.root import CloseIntake, GetStatus, Root, StopAgents, Submit
from callboard.actors.runtime import Clock, EventLoop, EventStream, Feed, Jobs, Lanes, SystemClock, refuse_own_thread
from callboard.actors.servers import DocumentServer
from callboard.config import EventLog, Settings, load_prompts
from callboard.messages import (
    AgentKind,
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    BlackboardQuery,
    BlackboardView,
    Cancel,
    Event,
    EventName,
    Question,
    SupervisorStatus,
    SupervisorStoppedError,
    Target,
    TargetKind,
    Task,
    TaskRefusedError,
    TaskResult,
    UnknownTargetError,
)

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from callboard.actors.models import Model
    from callboard.actors.servers import Server

ASK_SECONDS = 30.0
"""How long a call of the facade waits for the switchboard, which never blocks; past that something is broken."""
STOP_SECONDS = 10.0

_log = structlog.get_logger("callboard")


class Supervisor:
    """Runs the multi-agent system inside a host program. Everything here may be called from any thread.

    Make one with `Supervisor.start`, best in a ``with`` block; leaving it cancels what still runs.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        models: Mapping[str, Model] | None = None,
        servers: Sequence[Server] = (),
        clock: Clock | None = None,
    ) -> None:
        """Build everything and start it. `start` is the usual way.

        Raises:
            SettingsError: If something in the settings can't be used; nothing is left running.
        """
        self.settings = settings
        self._threads: list[threading.Thread] = []
        self._left: tuple[str, ...] | None = None
        self._stopping = threading.Lock()
        with ExitStack() as undo:
            log = EventLog(settings)
            undo.callback(log.close)
            named = {**named_models(settings), **{AgentKind(kind): model for kind, model in (models or {}).items()}}
            self._log = log
            self._clock = clock or SystemClock("callboard-clock")
            self._stream = EventStream(self._clock, settings.events.kept, settings.events.queue)
            self._stream.add_sink(log.write)
            self._loop = EventLoop("callboard-loop")
            self._lanes = Lanes()
            self._jobs = Jobs(self._loop)
            self._clock.start()
            undo.callback(self._clock.stop, STOP_SECONDS)
            self._loop.start()
            undo.callback(self._loop.stop, STOP_SECONDS)
            self._sessions = [McpSession(name, server, settings) for name, server in settings.mcp_servers.items()]
            undo.callback(self._close_sessions, STOP_SECONDS)
            for session in self._sessions:
                self._loop.submit(session.open()).result()
            self._toolbox = Toolbox([*_shipped(settings), *servers], self._sessions, self._lanes)
            services = Services(
                settings=settings,
                models=named,
                toolbox=self._toolbox,
                dispatcher=Dispatcher(self._stream),
                policy=Policy(settings.policy),
                lanes=self._lanes,
                stream=self._stream,
                clock=self._clock,
                prompts=load_prompts(settings),
            )
            self._root: pykka.ActorRef[Root] = Root.start(services, self._jobs)
            undo.pop_all()
        self._stream.emit(EventName.SUPERVISOR_STARTED)

    @classmethod
    def start(
        cls,
        settings: Settings | str | Path | None = None,
        *,
        models: Mapping[str, Model] | None = None,
        servers: Sequence[Server] = (),
        clock: Clock | None = None,
    ) -> Self:
        """Start a supervisor.

        Args:
            settings: A settings file, `Settings`, or nothing: defaults and the environment.
            models: Models by kind of agent (``host``, ``app``, ``mobile``, ``linux``); they beat the settings.
            servers: Servers of the host program's own, beside those that the settings name.
            clock: A clock of the host program's own; tests pass a `VirtualClock`.

        Raises:
            SettingsError: If something in the settings can't be used; nothing is left running.
        """
        if not isinstance(settings, Settings):
            settings = Settings.load(settings)
        return cls(settings, models=models, servers=servers, clock=clock)

    def __enter__(self) -> Self:
        """Enter; leaving stops."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def stop(self, timeout: float = STOP_SECONDS) -> tuple[str, ...]:
        """Cancel what runs and stop everything, in the reverse order of the start. Idempotent.

        Returns:
            The names of what could not be ended in time: tasks, lanes with a call that does not return, threads.
        """
        refuse_own_thread("stop")
        with self._stopping:
            if self._left is None:
                self._left = tuple(self._stop(timeout))
            return self._left

    def _stop(self, timeout: float) -> Iterator[str]:
        """Intake, agents, sessions, root, loop, lanes, clock, subscribers, log."""
        with contextlib.suppress(SupervisorStoppedError):
            for future in self._ask(CloseIntake()):
                yield from _left_behind("a task", future, timeout)
            for stopped in self._ask(StopAgents()):
                yield from _left_behind("an agent", stopped, timeout)
        yield from self._close_sessions(timeout)
        with contextlib.suppress(pykka.ActorDeadError):
            yield from _left_behind("the switchboard", self._root.stop(block=False), timeout)
        if not self._loop.stop(timeout):
            yield self._loop.thread.name
        yield from (f"lane {name}" for name in self._lanes.close(min(timeout, 1.0)))
        if not self._clock.stop(timeout):
            yield "the clock"
        self._stream.emit(EventName.SUPERVISOR_STOPPED)
        self._stream.close()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(timeout)
                if thread.is_alive():
                    yield thread.name
        self._log.close()

    def _close_sessions(self, timeout: float) -> tuple[str, ...]:
        left = []
        for session in reversed(self._sessions):
            try:
                self._loop.submit(session.close()).result(timeout)
            except TimeoutError:
                left.append(f"the MCP server {session.name}")
        return tuple(left)

    def submit(self, task: Task) -> TaskHandle:
        """Take a task and start it.

        Raises:
            TypeError: If it is no `Task`.
            UnknownTargetError: If it names a target that no server offers.
            TaskRefusedError: If its id was used before, or its target can't be worked on.
            SupervisorStoppedError: If the supervisor is down.
        """
        refuse_own_thread("submit")
        if not isinstance(task, Task):
            msg = f"submit takes a Task, not {type(task).__name__}: Task(request=...)"
            raise TypeError(msg)
        target = self._target(task)
        before = self._stream.seq
        done: concurrent.futures.Future[TaskResult] = self._ask(Submit(task, target))
        return TaskHandle(self, task.id, done, before)

    def _target(self, task: Task) -> Target | None:
        wanted = [name for name in (task.target, *(step.target for step in task.plan)) if name is not None]
        if not wanted:
            return None
        targets = self._toolbox.targets()
        found = {name: find_target(targets, name) for name in wanted}
        for name, target in found.items():
            if target is None:
                raise UnknownTargetError(name, tuple(target.id for target in targets))
        lone = found[task.target] if task.target is not None else None
        if lone is not None and lone.kind is TargetKind.APPLICATION:
            msg = f"{lone.id!r} is an application: give one of its windows, or no target"
            raise TaskRefusedError(msg)
        return lone

    def status(self) -> SupervisorStatus:
        """Tell what runs, what waits for a person, and what can't be used."""
        refuse_own_thread("status")
        status: SupervisorStatus = self._ask(GetStatus())
        return status

    def blackboard(self, task_id: str) -> BlackboardView:
        """Read a task's blackboard; empty for a task that is not known."""
        refuse_own_thread("blackboard")
        future: concurrent.futures.Future[BlackboardView] = self._ask(BlackboardQuery(task_id=task_id))
        return future.result(ASK_SECONDS)

    def targets(self) -> tuple[Target, ...]:
        """List what can be assigned now."""
        refuse_own_thread("targets")
        return self._toolbox.targets()

    def subscribe(
        self, callback: Callable[[Event], None], *, after: int | None = None, task_id: str | None = None
    ) -> Callable[[], None]:
        """Have a function called with every event, on a thread of its own.

        Its queue is bounded (``events.queue``): a slow subscriber gets an ``events.missed`` with a count in place of
        what it lost. An exception of the callback is logged, and the next event follows.

        Args:
            callback: Gets the events one by one, in order.
            after: Go on after this sequence number, as far back as events are kept; by default from now on.
            task_id: Only this task's events.

        Returns:
            A function that ends the subscription.
        """
        feed = self._stream.open(task_id, after)

        def main() -> None:
            for event in feed:
                try:
                    callback(event)
                except Exception:  # noqa: BLE001 - an edge: the host program's code
                    _log.exception("subscriber.failed", event_name=event.name.value, seq=event.seq)

        thread = threading.Thread(target=main, name=f"callboard-subscriber-{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()
        return lambda: self._stream.drop(feed)

    def feed(self, task_id: str | None = None, after: int | None = None) -> Feed:
        """Open a bounded queue of events, for programs that read them on a thread of their own."""
        return self._stream.open(task_id, after)

    def drop(self, feed: Feed) -> None:
        """Close a queue of events that is no longer read."""
        self._stream.drop(feed)

    def _ask(self, message: object) -> Any:  # noqa: ANN401 - what is answered depends on what is asked
        try:
            return self._root.ask(message, timeout=ASK_SECONDS)
        except pykka.ActorDeadError as error:
            msg = "the supervisor is stopped"
            raise SupervisorStoppedError(msg) from error

    def _send(self, message: Cancel | Answer | ApprovalAnswer) -> Any:  # noqa: ANN401 - as `_ask`
        refuse_own_thread(type(message).__name__)
        return self._ask(message)


class TaskHandle:
    """One task that was submitted. Everything here may be called from any thread."""

    def __init__(
        self, supervisor: Supervisor, task_id: str, done: concurrent.futures.Future[TaskResult], before: int
    ) -> None:
        self.task_id = task_id
        self._supervisor = supervisor
        self._done = done
        self._before = before

    def done(self) -> bool:
        """Say whether the task is over."""
        return self._done.done()

    def result(self, timeout: float | None = None) -> TaskResult:
        """Wait for the end. A task that did not finish is no exception: the result says how it ended.

        Raises:
            TimeoutError: If it is not over in time; it goes on.
            SupervisorStoppedError: If the supervisor went down before.
        """
        if not self._done.done():
            refuse_own_thread("result")
        return self._done.result(timeout)

    def __await__(self) -> Generator[Any, None, TaskResult]:
        """Wait for the end in a coroutine; cancelling the waiting does not cancel the task."""
        return asyncio.shield(asyncio.wrap_future(self._done)).__await__()

    def events(self) -> Iterator[Event]:
        """Iterate over the task's events, from its submission to its end."""
        feed = self._supervisor.feed(self.task_id, self._before)
        try:
            for event in feed:
                yield event
                if event.name is EventName.TASK_ENDED:
                    return
        finally:
            self._supervisor.drop(feed)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Iterate over the task's events in a coroutine."""
        feed = self._supervisor.feed(self.task_id, self._before)
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the caller's loop may be closed before its iterator is
                loop.call_soon_threadsafe(changed.set)

        feed.on_change(wake)
        try:
            while True:
                changed.clear()
                while (event := feed.take()) is not None:
                    yield event
                    if event.name is EventName.TASK_ENDED:
                        return
                if feed.closed:
                    return
                await changed.wait()
        finally:
            self._supervisor.drop(feed)

    def cancel(self, reason: str = "cancelled by the host program") -> bool:
        """Stop the task, in whatever state it is. Idempotent.

        Returns:
            Whether this call stopped it; False if it was over, or is being stopped already.
        """
        stopped: bool = self._supervisor._send(Cancel(task_id=self.task_id, reason=reason))  # noqa: SLF001 - the same module
        return stopped

    def approvals(self) -> tuple[ApprovalRequest, ...]:
        """List the task's approvals that wait for a person."""
        return tuple(ask for ask in self._supervisor.status().approvals if ask.task_id == self.task_id)

    def questions(self) -> tuple[Question, ...]:
        """List the task's questions that wait for a person."""
        return tuple(ask for ask in self._supervisor.status().questions if ask.task_id == self.task_id)

    def approve(self, request_id: str, *, by: str = "") -> None:
        """Approve: the agent looks again and runs exactly the held actions.

        Raises:
            NotWaitingError: If it is not open (any more).
            AnswerRefusedError: If it is a question.
        """
        self._supervisor._send(ApprovalAnswer(id=request_id, task_id=self.task_id, approved=True, by=by))  # noqa: SLF001

    def reject(self, request_id: str, reason: str = "", *, by: str = "") -> None:
        """Reject: the held actions never run.

        Raises:
            NotWaitingError: If it is not open (any more).
            AnswerRefusedError: If it is a question.
        """
        answer = ApprovalAnswer(id=request_id, task_id=self.task_id, approved=False, reason=reason, by=by)
        self._supervisor._send(answer)  # noqa: SLF001

    def answer(self, request_id: str, *texts: str, by: str = "") -> None:
        """Answer a question, one text for each of its parts.

        Raises:
            NotWaitingError: If it is not open (any more).
            AnswerRefusedError: If the number of texts is wrong, or one is none of the choices; it stays open.
        """
        self._supervisor._send(Answer(id=request_id, task_id=self.task_id, texts=texts, by=by))  # noqa: SLF001


def _shipped(settings: Settings) -> list[Server]:
    documents = settings.documents
    if not documents.enabled:
        return []
    return [DocumentServer(settings.path(documents.workspace), max_bytes=documents.max_bytes)]


def _left_behind(
    what: str, future: concurrent.futures.Future[Any] | pykka.Future[Any], timeout: float
) -> Iterator[str]:
    try:
        if isinstance(future, pykka.Future):
            future.get(timeout=timeout)
        else:
            future.result(timeout)
    except (TimeoutError, pykka.Timeout):
        yield what
    except (SupervisorStoppedError, pykka.ActorDeadError):
        return
