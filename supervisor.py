"""The supervisor: starts the system in order, and stops it in reverse."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pykka

import callboard.actors.app
import callboard.actors.host
import callboard.actors.linux
import callboard.actors.mobile
import callboard.actors.operator  # noqa: F401 - the shipped agents register themselves with their machines
from callboard.actors.client import RootClient, Submission, TaskHandle
from callboard.actors.commands import (
    Approved,
    Dispatcher,
    MayChange,
    McpSession,
    McpSurface,
    Policy,
    Secrets,
    ServerLifecycle,
    TargetLookup,
    Toolbox,
    open_sessions,
)
from callboard.actors.models import Model, NamedModels, TaskModels, given_models, recorder, threads_here
from callboard.actors.observe import Metrics, Traces
from callboard.actors.processing import AGENTS, AgentSpec, Services, agent_table, named_agents
from callboard.actors.root import (
    CloseIntake,
    GetStatus,
    JournalBroken,
    LeaseHung,
    Opened,
    Restore,
    Root,
    StopAgents,
    open_journal,
)
from callboard.actors.runtime import (
    Budgets,
    Clock,
    EventLoop,
    EventStream,
    HungJobs,
    Jobs,
    Lanes,
    LoopScheduler,
    Schedulers,
    Subscriber,
    SystemClock,
    ThreadScheduler,
    Watchdog,
    refuse_own_thread,
)
from callboard.actors.servers import Server, named_servers
from callboard.config import EventLog, Settings, check_kinds, keys_of, load_prompts
from callboard.messages import (
    AgentKind,
    BlackboardQuery,
    BlackboardView,
    Event,
    EventName,
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
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType


STOP_SECONDS = 10.0
HEALTH_SECONDS = 5.0
"""The time limit of the root's answer to a query of the health."""
BLOCKED_SECONDS = 1.0
"""The time limit of a stop for blocking calls, whose results are no longer awaited."""


class Supervisor:
    """Run the multi-agent system inside a host program.

    Create one with `Supervisor.start`, preferably in a ``with`` or ``async with`` block. Leaving the block suspends
    tasks that a journal keeps, and cancels all others. All methods may be called from any thread.
    """

    def __init__(
        self,
        settings: Settings,
        models: Mapping[str, Model | Callable[..., Any]],
        servers: Sequence[Server],
        agents: Sequence[AgentSpec],
        clock: Clock | None,
    ) -> None:
        """Build all parts and start them; `start` has the arguments."""
        self.settings = settings
        self._subscribers: list[Subscriber] = []
        self._left: tuple[str, ...] | None = None
        self._broken: concurrent.futures.Future[Exception] = concurrent.futures.Future()  # why the journal broke
        self._stopping = threading.Lock()
        with ExitStack() as undo:
            self._log = EventLog(settings)
            undo.callback(self._log.close)
            self._agents = _agents(settings, agents)
            self._named_models = NamedModels(settings)
            self._secrets = Secrets(settings.secrets, keys_of(settings))
            named = self._all_models(models)
            self._servers = servers = _all_servers(settings, servers, clock)
            self._metrics = Metrics() if settings.observe.metrics else None
            self._traces = Traces(settings=settings) if settings.observe.traces else None
            self._clock = clock or SystemClock("callboard-clock")
            self._budgets = Budgets(settings.budget, self._clock.now)
            opened = self._opened()
            self._journal = opened.journal
            undo.callback(self._journal.close, STOP_SECONDS)
            self._stream = self._events(opened)
            self._loop = EventLoop("callboard-loop")
            self._schedulers = Schedulers(ThreadScheduler("callboard-root"), LoopScheduler(self._loop))
            self._lanes = Lanes()
            self._jobs = Jobs(self._loop, self._clock)
            self._watchdog = self._watch()
            self._clock.start()
            undo.callback(self._clock.stop, STOP_SECONDS)
            self._loop.start()
            undo.callback(self._loop.stop, STOP_SECONDS)
            self._schedulers.root.start()
            undo.callback(self._schedulers.root.stop, STOP_SECONDS)
            self._sessions = [self._session(name) for name in settings.mcp_servers]
            undo.callback(self._close_sessions, STOP_SECONDS)
            self._left_out = left_out = self._open_sessions()
            theirs = [McpSurface(each) for each in self._sessions if each.on_target]
            self._open_servers([*servers, *theirs], undo)
            services = self._services(named)
            for task in opened.today:
                services.budgets.count(task.labels, task.used, unpriced=task.unpriced)
            self._client = RootClient(Root.start(services, self._life, self._jobs, self._schedulers, opened.token))
            self._submission = self._new_submission()
            self._watchdog.start()
            undo.pop_all()
        if self._traces is not None:
            self._subscribers.append(Subscriber(self._stream.open(queue=settings.events.kept), self._traces))
        self._stream.emit(EventName.SUPERVISOR_STARTED, recovered=len(opened.recovered_tasks))
        self.warnings = (*self._tell_left_out(left_out), *self._check_tools(), *self._check_rules())
        """Warnings of the start, each with its reason: optional MCP servers that could not be started, settings of
        tools that no MCP server has, and policy rules that can match nothing. Each is also an event:
        `server.left_out`, `tool.unmatched` or `policy.unmatched`."""
        self._restore(opened)

    def _all_models(self, given: Mapping[str, Model | Callable[..., Any]]) -> dict[str, Model]:
        """Build the models of agents, and prepare for those of tasks."""
        wrap = recorder(self.settings, self._secrets.redact)
        models = {**self._named_models.of_kinds(self._agents), **given_models(given, self._agents)}
        named = {kind: wrap(model) for kind, model in models.items()}
        self._task_models = TaskModels(named, self._named_models, wrap)
        return named

    def _open_servers(self, servers: Sequence[Server], undo: ExitStack) -> None:
        """Open the servers that have targets."""
        settings = self.settings
        self._toolbox = Toolbox(servers, self._sessions, self._lanes, kinds=self._agents)
        file = None if settings.journal.path is None else settings.path(settings.journal.path)
        seconds = settings.limits.command_seconds
        self._life = ServerLifecycle(servers, self._lanes, self._loop, file, self._clock.elapsed)
        undo.callback(self._lanes.close, STOP_SECONDS)
        self._life.open(seconds)
        undo.callback(self._life.close, STOP_SECONDS)
        self._lookup = TargetLookup(servers, self._lanes, self._loop, seconds, self._agents)
        self._lookup.refuse_shared_ids([each.name for each in servers if isinstance(each, McpSurface)])

    def _session(self, name: str) -> McpSession:
        return McpSession(name, self.settings.mcp_servers[name], self.settings, self._stream.emit)

    def _tell_left_out(self, left_out: Mapping[str, str]) -> Iterator[str]:
        """Emit an event for each optional MCP server that could not start."""
        for server, reason in left_out.items():
            self._stream.emit(EventName.SERVER_LEFT_OUT, server=server, reason=reason)
            yield self._secrets.redactor("").text(reason)

    def _check_tools(self) -> Iterator[str]:
        """Emit an event for settings of tools that MCP servers lack."""
        for session in self._sessions:
            for reason in session.unknown_tools():
                self._stream.emit(EventName.TOOL_UNMATCHED, server=session.name, reason=reason)
                yield self._secrets.redactor("").text(reason)

    def _opened(self) -> Opened:
        """Open the journal, and read the tasks of earlier processes."""
        machine = self._agents[AgentKind.HOST].machine
        return open_journal(self.settings, self._clock, self._broken.set_result, machine)

    def _check_rules(self) -> Iterator[str]:
        """Emit an event for each policy rule that can match nothing."""
        for number, reason in self._toolbox.unmatched(self.settings.policy.rules, self._lookup.listed):
            self._stream.emit(EventName.POLICY_UNMATCHED, rule=number, reason=reason)
            yield f"rule {number} of the policy: {reason}"

    def _restore(self, opened: Opened) -> None:
        """Resume the tasks of an earlier process.

        A journal that broke since it was opened is reported to the root first, which then refuses the request.
        """
        named = (each.record.task.model for each in opened.recovered_tasks)
        for name in {model for model in named if model is not None}:
            self._task_models.build(name, recovered=True)  # may block; a task without it is paused
        self._broken.add_done_callback(lambda broken: self._client.tell(JournalBroken(broken.result())))
        try:
            self._client.ask(Restore(opened.recovered_tasks))
        except BaseException:
            self.stop()
            raise

    def _events(self, opened: Opened) -> EventStream:
        """Create the event stream, which feeds the journal, log and metrics."""
        kept, queue = self.settings.events.kept, self.settings.events.queue
        tasks = self.settings.limits.kept_tasks if opened.events is None else 0  # a file keeps those of all tasks
        stream = EventStream(
            self._clock, kept, queue, tasks=tasks, seq=opened.seq, past=opened.events, redaction=self._secrets
        )
        if opened.queue is not None:
            stream.add_queue(*opened.queue)
        stream.add_sink(self._log.write)
        if self._metrics is not None:
            stream.add_sink(self._metrics.see)
        return stream

    def _new_submission(self) -> Submission:
        return Submission(
            client=self._client,
            stream=self._stream,
            lookup=self._lookup,
            toolbox=self._toolbox,
            models=self._task_models,
            journal=self._journal,
            broken=self._broken,
            secrets=self._secrets,
            budgets=self._budgets,
            traces=self._traces,
        )

    def _services(self, models: Mapping[str, Model]) -> Services:
        """Gather the services of the agents' processing, which is level 2."""
        settings = self.settings
        return Services(
            settings=settings,
            models=models,
            task_models=self._task_models,
            toolbox=self._toolbox,
            dispatcher=Dispatcher(self._stream, self._clock, self._secrets),
            policy=Policy(settings.policy.all_rules, explain=settings.policy.explain),
            approved=Approved(),
            may_change=MayChange(),
            secrets=self._secrets,
            budgets=self._budgets,
            lanes=self._lanes,
            stream=self._stream,
            journal=self._journal,
            clock=self._clock,
            prompts=load_prompts(settings, {kind: spec.prompt for kind, spec in self._agents.items()}),
            agents=self._agents,
        )

    @classmethod
    def start(
        cls,
        settings: Settings | str | Path | None = None,
        *,
        models: Mapping[str, Model | Callable[..., Any]] | None = None,
        servers: Sequence[Server] = (),
        agents: Sequence[AgentSpec] = (),
        clock: Clock | None = None,
    ) -> Self:
        """Start a supervisor.

        Args:
            settings: The path of a settings file, or `Settings`; by default, the defaults and the environment.
            models: Models by kind of agent (``host``, ``app``, ``mobile``, ``linux``, ``operator``, and those of
                `agents`); they override the settings. A function becomes a `FunctionModel`.
            servers: The host program's servers, in addition to those that the settings name.
            agents: The host program's kinds of agents, in addition to the shipped ones and those that the settings
                name.
            clock: The host program's clock; tests pass a `VirtualClock`.

        With a journal, the tasks of an earlier process are resumed before this returns.

        Raises:
            SettingsError: If a setting can't be used; nothing is left running.
            JournalError: If the journal is in use, damaged, newer, or can't be written; nothing is left running.
            TypeError: If an argument is of the wrong type.
        """
        if settings is None or isinstance(settings, str | Path):
            settings = Settings.load(settings, kinds=[spec.name for spec in agents if isinstance(spec, AgentSpec)])
        if not isinstance(settings, Settings):
            msg = f"settings must be a file's path, Settings or None, not a {type(settings).__name__}"
            raise TypeError(msg)
        return cls(settings, models or {}, servers, agents, clock)

    def __repr__(self) -> str:
        """Show the state, servers and journal, without waiting for a thread."""
        if not hasattr(self, "_client"):
            return f"<{type(self).__name__} not started>"
        state = "stopped" if self._left is not None else "stopping" if self._client.closed else "running"
        names = ", ".join([*(each.name for each in self._servers), *self.settings.mcp_servers])
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
        """
        refuse_own_thread("stop")
        if self._client.forked:
            return ()  # the threads belong to the process that started them
        with self._stopping:
            if self._left is None:
                self._left = self._stop(timeout)
            return self._left

    async def stop_async(self, timeout: float = STOP_SECONDS) -> tuple[str, ...]:  # noqa: ASYNC109 - of each part
        """Stop everything, as `stop` does, without blocking the event loop.

        Cancelling the wait does not cancel the stop.
        """
        refuse_own_thread("stop_async")
        return await asyncio.to_thread(self.stop, timeout)

    def _stop(self, timeout: float) -> tuple[str, ...]:
        """Stop the parts from the intake down to the event loop.

        In order: intake, clock, jobs, agents, servers, lanes, sessions, root, models, event stream, journal, log,
        watchdog, event loop.
        """
        self._client.closed = True
        left: list[str] = []
        answer = max(timeout, BLOCKED_SECONDS)  # the root never blocks; if it does, it is named below
        with contextlib.suppress(SupervisorStoppedError):
            _, late = concurrent.futures.wait(self._client.ask(CloseIntake(), answer), timeout)
            left += [f"{len(late)} tasks"] if late else []
        left += [] if self._clock.stop(timeout) else ["the clock"]
        if self._journal.survives and not self._jobs.drain(timeout):
            left.append("jobs")
        with contextlib.suppress(SupervisorStoppedError):
            left += _late("an agent", self._client.ask(StopAgents(), answer), timeout)
        blocked = min(timeout, BLOCKED_SECONDS)  # from here on all leases are void: a job that asks for a lane is late
        left += self._life.close(timeout)
        left += [f"lane {name}" for name in self._lanes.close(blocked)]
        left += self._close_sessions(timeout)
        with contextlib.suppress(pykka.ActorDeadError):
            left += _late("the switchboard", [self._client.root.stop(block=False)], timeout)
        left += [] if self._schedulers.root.stop(timeout) else [self._schedulers.root.thread.name]
        left += self._close_models(timeout)
        left += self._blocked_models(blocked)
        self._stream.emit(EventName.SUPERVISOR_STOPPED, left=list(left))
        self._stream.close()
        left += [subscriber.name for subscriber in self._subscribers if not subscriber.join(timeout)]
        closed = self._journal.close(max(timeout, STOP_SECONDS))  # only a disk can delay it; it releases the lock
        left += [] if closed else ["the journal"]
        left += [] if self._log.close() else ["the log"]
        left += [] if self._watchdog.stop(timeout) else ["the watchdog"]
        left += [] if self._loop.stop(timeout) else [self._loop.thread.name]
        self._schedulers.agents.stop()
        return tuple(left)

    def _watch(self) -> Watchdog:
        limits, hung = self.settings.limits, self.settings.supervision.hung_seconds

        def blocked(thread: str, stack: str, seconds: float) -> None:
            self._stream.emit(EventName.THREAD_BLOCKED, thread=thread, stack=stack, seconds=seconds)

        hung_jobs = HungJobs(self._jobs, self._clock)

        def look() -> None:
            for token in hung_jobs.find(limits.step_seconds + hung):
                self._client.tell(LeaseHung(token, self._jobs.stack(token)))

        return Watchdog(
            "callboard-watchdog",
            self._loop,
            hung,
            on_blocked=blocked,
            on_free=lambda thread: self._stream.emit(EventName.THREAD_FREED, thread=thread),
            watched=(self._schedulers.root, self._journal),
            on_tick=look,
        )

    def _open_sessions(self) -> Mapping[str, str]:
        """Open the MCP sessions, and drop optional ones that can't start.

        Returns:
            The reasons by the names of their servers.
        """
        left_out = self._loop.submit(open_sessions(self._sessions)).result()
        self._sessions = [session for session in self._sessions if session.name not in left_out]
        return left_out

    def _close_sessions(self, timeout: float) -> tuple[str, ...]:
        left = []
        for session in reversed(self._sessions):
            try:
                self._loop.submit(session.close()).result(timeout)
            except TimeoutError:
                left.append(f"the MCP server {session.name}")
        return tuple(left)

    def _close_models(self, timeout: float) -> tuple[str, ...]:
        """Close the settings' models; the others belong to the host program."""
        left = []
        for model in self._named_models.made:
            try:
                self._loop.submit(model.close()).result(timeout)
            except TimeoutError:
                left.append(f"the model {model.name}")
        return tuple(left)

    def _blocked_models(self, timeout: float) -> tuple[str, ...]:
        """Wait for model functions, and name the threads that still run one."""
        threads: tuple[threading.Thread, ...] = ()
        with contextlib.suppress(TimeoutError):  # the event loop is blocked, and named below
            threads = self._loop.submit(threads_here()).result(BLOCKED_SECONDS)
        end = time.monotonic() + timeout
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        return tuple(thread.name for thread in threads if thread.is_alive())

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
            UnknownTargetError: If it names a target that no server offers.
            TaskRefusedError: If its id or key was used for a different task, its conversation is no longer kept, its
                target can't be worked on, its model can't be built, or a file in `may_change` does not exist or could
                not be brought back.
            SupervisorStoppedError: If the supervisor is stopping or stopped.
        """
        return self._submission.submit(task, output_type)

    async def submit_async(self, task: Task, *, output_type: type[OutputT] | None = None) -> TaskHandle[OutputT]:
        """Submit a task, as `submit` does, without blocking the event loop.

        Cancelling the wait does not cancel the submission. A task with an ``id`` or a ``key`` can be submitted again to
        get its handle.
        """
        return await asyncio.to_thread(self._submission.submit, task, output_type)

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
        """
        return self._submission.submit_all(tasks, output_type)

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
        """
        return self._submission.handle(task_id, output_type)

    def undo(self, task_id: str, *files: str) -> dict[Path, bool]:
        """Bring back files as they were before a task's first change.

        They are the files that it changed and names in `may_change`.

        All files are checked first: if one of them can't be brought back, none is. Idempotent.

        Args:
            task_id: A task that is over, and that the journal has.
            files: Files to bring back, by their names in `may_change` or their paths; by default all.

        Returns:
            Each file, with whether it was brought back, or was so already.

        Raises:
            UndoRefusedError: If the task is not over, no version is kept, or a file was changed since by another
                program or task, is open in one, or can't be written. The message says where its version before is.
            UnknownTaskError: If there is no such task.
            JournalError: If the journal can't be read.
            OSError: If a file can't be written; those before it are brought back.
        """
        return self._submission.undo(task_id, files)

    def pending(self) -> tuple[TaskHandle, ...]:
        """Return the handles of all unfinished tasks, recovered ones included."""
        return self._submission.pending()

    def status(self) -> SupervisorStatus:
        """Return the running tasks and agents, open requests and abandoned targets."""
        status: SupervisorStatus = self._client.ask(GetStatus())
        return status

    def health(self, timeout: float = HEALTH_SECONDS) -> SupervisorHealth:
        """Return whether tasks are accepted, and the parts that are in trouble.

        It is answered also while a thread is blocked, and after the stop.

        Args:
            timeout: The time limit of the root's answer, in seconds. Without one in time, the root counts as blocked.

        Raises:
            WouldDeadlockError: If the caller runs on one of the supervisor's own threads.
        """
        refuse_own_thread("health")
        blocked, status = self._watchdog.blocked, SupervisorStatus(accepting=False)
        with contextlib.suppress(SupervisorStoppedError):
            self._client.check_open()
            try:
                status = self._client.ask(GetStatus(), timeout)
            except SupervisorStoppedError:
                blocked = tuple(sorted({*blocked, self._schedulers.root.thread.name}))
        runs = [run for task in status.tasks for run in task.runs]
        return SupervisorHealth(
            accepting=status.accepting,
            journal="failed" if self._broken.done() else "ok" if self._journal.survives else "memory",
            journal_error=str(self._broken.result()) if self._broken.done() else "",
            blocked_threads=blocked,
            abandoned=status.abandoned,
            servers=tuple(self._server_health()),
            tasks=len(status.tasks),
            running=sum(run.leased for run in runs),
            queued=sum(not run.leased for run in runs),
            requests=len(status.approvals) + len(status.questions),
        )

    def _server_health(self) -> Iterator[ServerHealth]:
        for server in self._servers:
            yield ServerHealth(name=server.name, state="ready")
        for session in self._sessions:
            yield ServerHealth(name=session.name, state="ready" if session.ready else "disconnected")
        for name, reason in self._left_out.items():
            yield ServerHealth(name=name, state="left_out", reason=self._secrets.redactor("").text(reason))

    def metrics(self) -> str:
        """Return the metrics since the start, in Prometheus' text format.

        Raises:
            SettingsError: If `observe.metrics` is off, so that nothing is counted.
        """
        if self._metrics is None:
            msg = "observe.metrics is off: nothing is counted"
            raise SettingsError(msg)
        return self._metrics.text()

    def blackboard(self, task_id: str) -> BlackboardView:
        """Read the blackboard of a task; empty for an unknown task."""
        future: concurrent.futures.Future[BlackboardView] = self._client.ask(BlackboardQuery(task_id=task_id))
        return future.result(self._client.seconds)

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
        self._client.settle(Note(task_id=task_id, text=note))

    def targets(self) -> tuple[Target, ...]:
        """List the targets that can be assigned now.

        Raises:
            SupervisorStoppedError: If the supervisor is stopping or stopped.
        """
        with self._client.while_open():
            return self._lookup.listed()

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
        """
        if self._left is not None:
            msg = "the supervisor is stopped"
            raise SupervisorStoppedError(msg)
        subscriber = Subscriber(self._stream.open(task_id, after), callback)
        self._subscribers.append(subscriber)

        def end() -> None:
            self._stream.drop(subscriber.feed)
            with contextlib.suppress(ValueError):  # ended twice
                self._subscribers.remove(subscriber)

        return end


def _all_servers(settings: Settings, servers: Sequence[Server], clock: Clock | None) -> list[Server]:
    """Create the settings' servers, and put them before the host program's."""
    for server in servers:
        if not isinstance(server, Server):
            msg = f"servers: expected Servers, not a {type(server).__name__}"
            raise TypeError(msg)
    if clock is not None and not isinstance(clock, Clock):
        msg = f"clock: expected a Clock, not a {type(clock).__name__}"
        raise TypeError(msg)
    return [*named_servers(settings), *servers]


def _agents(settings: Settings, agents: Sequence[AgentSpec]) -> dict[str, AgentSpec]:
    table = agent_table(AGENTS, [*named_agents(settings), *agents])
    check_kinds(settings, table)
    return table


def _late(name: str, stopped: Sequence[pykka.Future[Any]], timeout: float) -> Iterator[str]:
    end = time.monotonic() + timeout
    for future in stopped:
        try:
            future.get(timeout=max(0.0, end - time.monotonic()))
        except pykka.Timeout:
            yield name
