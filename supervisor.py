"""The supervisor, through which host programs use the system."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from callboard.actors.assembly import STOP_SECONDS, Assembly
from callboard.actors.client import check_start_arguments
from callboard.actors.root import GetStatus
from callboard.actors.runtime import Subscriber, refuse_own_thread
from callboard.config import Settings
from callboard.messages import (
    BlackboardQuery,
    BlackboardView,
    Event,
    Note,
    OutputT,
    ServerHealth,
    SettingsError,
    SupervisorHealth,
    SupervisorStatus,
    SupervisorStoppedError,
    Target,
    Task,
)

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from callboard.actors.client import TaskHandle
    from callboard.actors.processing import AgentSpec
    from callboard.actors.runtime import Clock
    from callboard.fleet import FleetEngine
    from callboard.models import Model
    from callboard.surfaces import Server

HEALTH_SECONDS = 5.0
"""The time limit of the root's answer to a query of the health."""


class Supervisor:
    """Run the multi-agent system inside a host program.

    Create one with `Supervisor.start`, preferably in a ``with`` or ``async with`` block. Leaving the block suspends
    tasks that a journal keeps, and cancels all others. All methods may be called from any thread.
    """

    def __init__(self, assembly: Assembly | None = None, **arguments: object) -> None:
        """Take parts that are running; `start` builds them.

        Raises:
            TypeError: If there are none.
        """
        if not isinstance(assembly, Assembly) or arguments:
            msg = f"start it: with {type(self).__name__}.start('callboard.yaml') as supervisor: ..."
            raise TypeError(msg)
        self.settings = assembly.settings
        """The settings that it was started with."""
        self.skills = tuple(folder.skill for folder in assembly.skills)
        """The skills of its agents, as they were read at the start."""
        self._leftovers: tuple[str, ...] | None = None
        self._stopping = threading.Lock()
        self._assembly = assembly
        self.warnings = assembly.warnings
        """Warnings of the start, each with its reason.

        They are about optional MCP servers that could not be started, settings of tools that no MCP server has, policy
        rules that can match nothing, and providers that no model of the settings is of. Each is also an event:
        `server.left_out`, `tool.unmatched`, `policy.unmatched` or `provider.unused`."""

    @classmethod
    def start(
        cls,
        settings: Settings | str | Path | None = None,
        *,
        models: Mapping[str, Model | Callable[..., Any]] | None = None,
        servers: Sequence[Server] = (),
        agents: Sequence[AgentSpec] = (),
        checks: Mapping[str, Callable[..., Any]] | None = None,
        clock: Clock | None = None,
        engine: FleetEngine | None = None,
    ) -> Self:
        """Start a supervisor.

        Args:
            settings: The path of a settings file, or `Settings`; by default, the defaults and the environment.
            models: Models by kind of agent (``host``, ``app``, ``mobile``, ``linux``, ``operator``, and those of
                `agents`); they override the settings. A function becomes a `FunctionModel`.
            servers: The host program's surfaces, in addition to those that the settings name.
            agents: The host program's kinds of agents, in addition to the shipped ones and those that the settings
                name.
            checks: Functions for the checks of tasks (`Check.program`), by name. One is called with the check's `args`
                as keyword arguments, on a thread of its own unless it is a coroutine function. The check holds if it
                returns True; any other value is what was found. It must only read.
            clock: The host program's clock; tests pass a `VirtualClock`.
            engine: The connection to a fleet, in place of that in the settings; tests pass a `MemoryEngine`.

        With a journal, the tasks of an earlier process are resumed before this returns.

        Raises:
            SettingsError: If a setting can't be used; nothing is left running.
            JournalError: If the journal is in use, damaged, newer, or can't be written; nothing is left running.
            TypeError: If an argument is of the wrong type.

        Example:
            >>> def model(request):
            ...     return {"Status": "FINISH", "Result": 2 + 2}
            >>> memo = MemoryServer(MemoryServer.window())
            >>> with Supervisor.start(servers=[memo], models={"app": model}) as supervisor:
            ...     supervisor.submit(Task(request="Add", target="memo:one")).result().output
            4
        """
        models, checks = {} if models is None else models, {} if checks is None else checks
        check_start_arguments(models, servers, agents, checks, clock)
        if settings is None or isinstance(settings, str | Path):
            settings = Settings.load(settings, kinds=[spec.name for spec in agents])
        if not isinstance(settings, Settings):
            is_class, which = settings is Settings, f"of the type {type(settings).__name__}"
            which = "the class Settings" if is_class else which
            has_sections = is_class or isinstance(settings, dict)
            hint = "Settings.load(**sections)" if has_sections else "Supervisor.start('callboard.yaml')"
            msg = f"settings must be a file's path, Settings or None, not {which}: {hint}"
            raise TypeError(msg)
        return cls(Assembly(settings, models, servers, agents, checks, clock, engine))

    def __repr__(self) -> str:
        """Show the state, surfaces and journal, without waiting for a thread."""
        state = "stopped" if self._leftovers is not None else "stopping" if self._assembly.client.closed else "running"
        names = ", ".join([*(surface.name for surface in self._assembly.surfaces), *self.settings.mcp_servers])
        journal = self.settings.journal.path or "in memory"
        return f"<{type(self).__name__} {state}, servers: {names or 'none'}, journal: {journal}>"

    def __enter__(self) -> Self:
        """Return the supervisor; leaving the block stops it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the supervisor."""
        self.stop()

    async def __aenter__(self) -> Self:
        """Return the supervisor; leaving the block stops it."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the supervisor on another thread."""
        await self.stop_async()

    def stop(self, timeout: float = STOP_SECONDS) -> tuple[str, ...]:
        """Stop everything, in the reverse order of the start. Idempotent.

        With a journal, unfinished tasks are suspended: no further action begins, and the next supervisor on the journal
        resumes them. Without a journal they are cancelled.

        Args:
            timeout: The time limit of each part, in seconds. The journal gets at least 10 s: the next supervisor can't
                open it before it is closed.

        Returns:
            The names of the parts that did not end in time: tasks, jobs, lanes with a call that does not return,
            threads.

        Example:
            >>> supervisor.stop()
            ()
        """
        refuse_own_thread("stop")
        if self._assembly.client.forked:
            return ()  # the threads belong to the process that started them
        with self._stopping:
            if self._leftovers is None:
                self._leftovers = self._assembly.stop(timeout)
            return self._leftovers

    async def stop_async(self, timeout: float = STOP_SECONDS) -> tuple[str, ...]:  # noqa: ASYNC109 - of each part
        """Stop everything, as `stop` does, without blocking the event loop.

        Cancelling the wait does not cancel the stop.
        """
        refuse_own_thread("stop_async")
        return await asyncio.to_thread(self.stop, timeout)

    def serve(self) -> None:
        """Do subtasks of other machines of the fleet from now on. Idempotent.

        It ends when the supervisor stops. Each is a task of this supervisor, under its settings and its policy.

        Raises:
            SettingsError: If the settings name no fleet, or start its machines (`fleet.local`).
        """
        self._assembly.serve()

    def drain(self, timeout: float | None = None) -> bool:
        """Begin no more subtasks of other machines, and wait for the begun.

        Args:
            timeout: The longest wait, in seconds; None: for ever.

        Returns:
            Whether all of them have ended.
        """
        refuse_own_thread("drain")
        return self._assembly.fleet is None or self._assembly.fleet.drain(timeout)

    def submit(self, task: Task, *, output_type: type[OutputT] | None = None) -> TaskHandle[OutputT]:
        """Submit a task and start it.

        If an earlier task has the same id or idempotency key, its handle is returned, and no new task is started. The
        earlier tasks are those in the journal file, or without a file, the unfinished ones and the latest
        `limits.kept_tasks` ended ones.

        Args:
            task: The task.
            output_type: The type of its output: a pydantic model, or another type that pydantic can validate. An
                answer that ends the task with another output is sent back to its model. The result of the handle has
                an instance. By default, the output is any JSON value.

        Raises:
            TypeError: If it is not a `Task`, or its output type has no JSON Schema.
            ValueError: If a text in it is not valid Unicode and could not be journaled, or its id contains a secret.
            JournalError: If it can't be journaled; it was not started.
            UnknownTargetError: If it names a target that no surface offers.
            TaskRefusedError: If its id or key was used for a different task, its conversation is no longer kept, its
                target can't be worked on, its model can't be built, or a file in `may_change` does not exist or could
                not be brought back.
            SupervisorStoppedError: If the supervisor is stopping or stopped.

        Example:
            >>> handle = supervisor.submit(Task(request="Add 2 and 2", target="memo:one"))
            >>> handle.result().output
            4
        """
        return self._assembly.submission.submit(task, output_type)

    async def submit_async(self, task: Task, *, output_type: type[OutputT] | None = None) -> TaskHandle[OutputT]:
        """Submit a task, as `submit` does, without blocking the event loop.

        Cancelling the wait does not cancel the submission. A task with an ``id`` or a ``key`` can be submitted again to
        get its handle.
        """
        return await asyncio.to_thread(self._assembly.submission.submit, task, output_type)

    def submit_all(
        self, tasks: Iterable[Task], *, output_type: type[OutputT] | None = None
    ) -> tuple[TaskHandle[OutputT], ...]:
        """Submit several tasks and start them.

        It does the same as `submit` for each task, but checks all tasks first, lists the targets only once, and sends
        all tasks to the root before it waits for the first. Other calls to the root wait meanwhile, about 0.1 ms for
        each task.

        Returns:
            The handles of the tasks, in their order.

        Raises:
            NotAllTakenError: If some tasks were refused after the checks: another of the tasks has the same id, their
                conversation is no longer kept, the journal can't be written, or the supervisor stopped. It has their
                errors, and the handles of all other tasks.
            Exception: The first error of the checks, as `submit` raises it; no task was started then.

        Example:
            >>> handles = supervisor.submit_all(Task(request="Add 2 and 2", target="memo:one") for _ in range(3))
            >>> [handle.result().output for handle in handles]
            [4, 4, 4]
        """
        return self._assembly.submission.submit_all(tasks, output_type)

    def handle(self, task_id: str, *, output_type: type[OutputT] | None = None) -> TaskHandle[OutputT]:
        """Return the handle of a task, with its result and events.

        Tasks that are over are known as far back as the journal file goes; without a file, the latest
        `limits.kept_tasks` are.

        Args:
            task_id: The task.
            output_type: The type with which it was submitted. It is not in the journal: without it, the output is JSON.

        Raises:
            UnknownTaskError: If there is no such task.
            JournalError: If the journal can no longer be written, and has no end of the task.
            TypeError: If the output type has no JSON Schema.

        Example:
            >>> submitted = supervisor.submit(Task(id="sum-1", request="Add 2 and 2", target="memo:one"))
            >>> supervisor.handle("sum-1").result().output
            4
        """
        return self._assembly.submission.handle(task_id, output_type)

    def undo(self, task_id: str, *files: str) -> dict[Path, bool]:
        """Bring back files as they were before a task's first change.

        They are the files that it changed and names in `may_change`.

        All files are checked first: if one of them can't be brought back, none is. Idempotent.

        Args:
            task_id: A task that is over, and that the journal has.
            files: Files to bring back, by their names in `may_change` or their paths; by default all.

        Returns:
            Each file, with whether it was brought back; False if it already was as before the task.

        Raises:
            UndoRefusedError: If the task is not over, no version is kept, or a file was changed since by another
                program or task, is open in one, or can't be written. The message says where its version before is.
            UnknownTaskError: If there is no such task.
            JournalError: If the journal can't be read.
            OSError: If a file can't be written; those before it are brought back.
        """
        return self._assembly.submission.undo(task_id, files)

    def pending(self) -> tuple[TaskHandle, ...]:
        """Return the handles of all unfinished tasks, recovered ones included.

        Example:
            >>> supervisor.pending()
            ()
        """
        return self._assembly.submission.pending()

    def status(self) -> SupervisorStatus:
        """Return the running tasks and agents, open requests and abandoned targets.

        Example:
            >>> supervisor.status().tasks
            ()
        """
        status: SupervisorStatus = self._assembly.client.ask(GetStatus())
        return status

    def health(self, timeout: float = HEALTH_SECONDS) -> SupervisorHealth:
        """Return whether tasks are accepted, and the parts that are in trouble.

        It is answered also while a thread is blocked, and after the stop.

        Args:
            timeout: The time limit of the root's answer, in seconds. Without one in time, the root counts as blocked.

        Raises:
            WouldDeadlockError: If the caller runs on one of the supervisor's own threads.

        Example:
            >>> supervisor.health().ok
            True
        """
        refuse_own_thread("health")
        blocked, status = self._assembly.watchdog.blocked, SupervisorStatus(accepting=False)
        with contextlib.suppress(SupervisorStoppedError):
            self._assembly.client.check_open()
            try:
                status = self._assembly.client.ask(GetStatus(), timeout)
            except SupervisorStoppedError:
                blocked = tuple(sorted({*blocked, self._assembly.schedulers.root.thread.name}))
        runs = [run for task in status.tasks for run in task.runs]
        return SupervisorHealth(
            accepting=status.accepting,
            journal="failed" if self._assembly.broken.done() else "ok" if self._assembly.journal.survives else "memory",
            journal_error=str(self._assembly.broken.result()) if self._assembly.broken.done() else "",
            blocked_threads=blocked,
            abandoned=status.abandoned,
            servers=tuple(self._server_health()),
            tasks=len(status.tasks),
            running=sum(run.leased for run in runs),
            queued=sum(not run.leased for run in runs),
            requests=len(status.approvals) + len(status.questions),
            leases=status.leases,
            crashed_agents=status.crashed_agents,
            budgets=self._assembly.budgets.today(),
        )

    def _server_health(self) -> Iterator[ServerHealth]:
        for surface in self._assembly.surfaces:
            yield ServerHealth(name=surface.name, state="ready")
        for session in self._assembly.sessions:
            yield ServerHealth(name=session.name, state="ready" if session.ready else "disconnected")
        for name, reason in self._assembly.left_out.items():
            yield ServerHealth(name=name, state="left_out", reason=self._assembly.secrets.redactor("").text(reason))
        if self._assembly.fleet is not None:
            yield ServerHealth(name="fleet", state="ready" if self._assembly.fleet.is_connected else "disconnected")

    def metrics(self) -> str:
        """Return the metrics since the start, in Prometheus' text format.

        Raises:
            SettingsError: If `observe.metrics` is off, so that nothing is counted.
        """
        if self._assembly.metrics is None:
            msg = "observe.metrics is off: nothing is counted"
            raise SettingsError(msg)
        return self._assembly.metrics.text()

    def blackboard(self, task_id: str) -> BlackboardView:
        """Read the blackboard of a task; empty for an unknown task."""
        future: concurrent.futures.Future[BlackboardView] = self._assembly.client.ask(BlackboardQuery(task_id=task_id))
        return future.result(self._assembly.client.seconds)

    def post(self, task_id: str, note: str) -> None:
        """Post a note to all agents of a task's conversation.

        The agents are shown it from their next step on. It is on the blackboard and in the agents' prompts, among the
        entries of others; it is not an instruction. The call blocks until the note is safe in the journal.

        Args:
            task_id: An unfinished task.
            note: A text of 1 to 4,000 characters; agents are shown the first 500.

        Raises:
            ValueError: If the note is empty or too long, or not valid Unicode.
            TaskRefusedError: If there is no such task, or it is over.
            JournalError: If the note can't be journaled.
            SupervisorStoppedError: If the supervisor is stopping or stopped.
        """
        self._assembly.client.settle(Note(task_id=task_id, text=note))

    def targets(self) -> tuple[Target, ...]:
        """List the targets that can be assigned now.

        Raises:
            SupervisorStoppedError: If the supervisor is stopping or stopped.

        Example:
            >>> [target.id for target in supervisor.targets()]
            ['memo:one']
        """
        with self._assembly.client.while_open():
            return self._assembly.lookup.listed()

    def subscribe(
        self, callback: Callable[[Event], None], *, after: int | None = None, task_id: str | None = None
    ) -> Callable[[], None]:
        """Call a function with every event, on a thread of its own.

        The subscriber's queue is bounded (``events.queue``): a slow one gets an ``events.missed``, with a count, in
        place of the events that it lost. An exception of the callback is logged, and the next event follows.

        Args:
            callback: The function, which gets the events one by one, in order.
            after: The sequence number after which to start, as far back as events are kept; by default, only new events
                follow.
            task_id: The task whose events to deliver; by default, all events.

        Returns:
            A function that ends the subscription.

        Example:
            >>> finished = threading.Event()
            >>> end = supervisor.subscribe(lambda event: finished.set())
            >>> handle = supervisor.submit(Task(request="Add 2 and 2", target="memo:one"))
            >>> finished.wait(30)
            True
            >>> end()
        """
        if not callable(callback):
            msg = f"subscribe takes a function that gets each event, not {type(callback).__name__}"
            raise TypeError(msg)
        if self._leftovers is not None:
            msg = "the supervisor is stopped"
            raise SupervisorStoppedError(msg)
        subscriber = Subscriber(self._assembly.stream.open(task_id, after), callback)
        self._assembly.subscribers.append(subscriber)

        def end() -> None:
            self._assembly.stream.drop(subscriber.feed)
            with contextlib.suppress(ValueError):  # ended twice
                self._assembly.subscribers.remove(subscriber)

        return end
