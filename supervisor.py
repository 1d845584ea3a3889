"""The supervisor: what a host program holds. The whole life of the system is here, start in order, stop in reverse."""

from __future__ import annotations

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
    McpSession,
    McpSurface,
    Policy,
    Secrets,
    ServerLife,
    TargetLookup,
    Toolbox,
    open_sessions,
)
from callboard.actors.models import Model, given_models, named_models, record, threads_here
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
    SettingsError,
    SupervisorStatus,
    SupervisorStoppedError,
    Target,
    Task,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType


STOP_SECONDS = 10.0
BLOCKED_SECONDS = 1.0
"""How long a stop waits for calls that block; nobody awaits them any more."""


class Supervisor:
    """Runs the multi-agent system inside a host program. Everything here may be called from any thread.

    Make one with `Supervisor.start`, best in a ``with`` block; leaving it suspends what a journal keeps, and cancels
    all else.
    """

    def __init__(
        self,
        settings: Settings,
        models: Mapping[str, Model | Callable[..., Any]],
        servers: Sequence[Server],
        agents: Sequence[AgentSpec],
        clock: Clock | None,
    ) -> None:
        """Build everything, and start it: `start` says of what."""
        self.settings = settings
        self._subscribers: list[Subscriber] = []
        self._left: tuple[str, ...] | None = None
        self._broken: concurrent.futures.Future[Exception] = concurrent.futures.Future()  # why the journal did
        self._stopping = threading.Lock()
        with ExitStack() as undo:
            self._log = EventLog(settings)
            undo.callback(self._log.close)
            self._agents = _agents(settings, agents)
            self._models = named_models(settings, self._agents)
            self._secrets = Secrets(settings.secrets, keys_of(settings))
            named = record({**self._models, **given_models(models, self._agents)}, settings, self._secrets.redact)
            servers = _all_servers(settings, servers, clock)
            self._metrics = Metrics() if settings.observe.metrics else None
            self._traces = Traces(settings=settings) if settings.observe.traces else None
            self._clock = clock or SystemClock("callboard-clock")
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
            left_out = self._open_sessions()
            theirs = [McpSurface(each) for each in self._sessions if each.on_target]
            self._open_servers([*servers, *theirs], undo)
            services = self._services(named)
            self._client = RootClient(Root.start(services, self._life, self._jobs, self._schedulers, opened.token))
            self._submission = self._new_submission()
            self._watchdog.start()
            undo.pop_all()
        if self._traces is not None:
            self._subscribers.append(Subscriber(self._stream.open(queue=settings.events.kept), self._traces))
        self._stream.emit(EventName.SUPERVISOR_STARTED, recovered=len(opened.recovered_tasks))
        self.warnings = (*self._tell_left_out(left_out), *self._check_tools(), *self._check_rules())
        """Optional MCP servers that could not be started, settings of tools that no MCP server has, and rules of the
        policy that can match nothing, each with its reason; also events `server.left_out`, `tool.unmatched` and
        `policy.unmatched`."""
        self._restore(opened)

    def _open_servers(self, servers: Sequence[Server], undo: ExitStack) -> None:
        """Collect the servers that have targets, and open them."""
        settings = self.settings
        self._toolbox = Toolbox(servers, self._sessions, self._lanes, kinds=self._agents)
        file = None if settings.journal.path is None else settings.path(settings.journal.path)
        seconds = settings.limits.command_seconds
        self._life = ServerLife(servers, self._lanes, self._loop, file, self._clock.elapsed)
        undo.callback(self._lanes.close, STOP_SECONDS)
        self._life.open(seconds)
        undo.callback(self._life.close, STOP_SECONDS)
        self._lookup = TargetLookup(servers, self._lanes, self._loop, seconds, self._agents)
        self._lookup.refuse_shared_ids([each.name for each in servers if isinstance(each, McpSurface)])

    def _session(self, name: str) -> McpSession:
        return McpSession(name, self.settings.mcp_servers[name], self.settings, self._stream.emit)

    def _tell_left_out(self, left_out: Mapping[str, str]) -> Iterator[str]:
        """Tell of optional MCP servers that could not be started."""
        for server, reason in left_out.items():
            self._stream.emit(EventName.SERVER_LEFT_OUT, server=server, reason=reason)
            yield self._secrets.redactor("").text(reason)

    def _check_tools(self) -> Iterator[str]:
        """Tell of settings of tools that their MCP server does not have."""
        for session in self._sessions:
            for reason in session.unknown_tools():
                self._stream.emit(EventName.TOOL_UNMATCHED, server=session.name, reason=reason)
                yield self._secrets.redactor("").text(reason)

    def _opened(self) -> Opened:
        """Open the journal, and read what the process before this one left."""
        machine = self._agents[AgentKind.HOST].machine
        return open_journal(self.settings, self._clock, self._broken.set_result, machine)

    def _check_rules(self) -> Iterator[str]:
        """Tell of rules that can match nothing."""
        for number, reason in self._toolbox.unmatched(self.settings.policy.rules, self._lookup.listed):
            self._stream.emit(EventName.POLICY_UNMATCHED, rule=number, reason=reason)
            yield f"rule {number} of the policy: {reason}"

    def _restore(self, opened: Opened) -> None:
        """Go on with what another process began; a journal that broke before anybody could hear of it refuses that."""
        self._broken.add_done_callback(lambda broken: self._client.tell(JournalBroken(broken.result())))
        try:
            self._client.ask(Restore(opened.recovered_tasks))
        except BaseException:
            self.stop()
            raise

    def _events(self, opened: Opened) -> EventStream:
        """Make the stream of events, with all that takes each of them: log, journal, counters."""
        kept, queue = self.settings.events.kept, self.settings.events.queue
        tasks = self.settings.limits.kept_tasks if opened.events is None else 0  # a file has the events of all
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
            journal=self._journal,
            broken=self._broken,
            secrets=self._secrets,
            traces=self._traces,
        )

    def _services(self, models: Mapping[str, Model]) -> Services:
        """Gather what level 2 works with."""
        settings = self.settings
        return Services(
            settings=settings,
            models=models,
            toolbox=self._toolbox,
            dispatcher=Dispatcher(self._stream, self._clock, self._secrets),
            policy=Policy(settings.policy.all_rules, explain=settings.policy.explain),
            approved=Approved(),
            secrets=self._secrets,
            budgets=Budgets(settings.budget),
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
            settings: A settings file, `Settings`, or nothing: defaults and the environment.
            models: Models by kind of agent (``host``, ``app``, ``mobile``, ``linux``, ``operator``, and those of
                `agents`); they beat the settings. A function is taken as a `FunctionModel`.
            servers: Servers of the host program's own, beside those that the settings name.
            agents: Kinds of agents of the host program's own, beside those that ship and those that the
                settings name.
            clock: A clock of the host program's own; tests pass a `VirtualClock`.

        With a journal, tasks that another process began go on before this returns.

        Raises:
            SettingsError: If something in the settings can't be used; nothing is left running.
            JournalError: If the journal is in use, damaged, newer, or can't be written; nothing is left running.
            TypeError: If an argument is of the wrong type.
        """
        if settings is None or isinstance(settings, str | Path):
            settings = Settings.load(settings, kinds=[spec.name for spec in agents if isinstance(spec, AgentSpec)])
        if not isinstance(settings, Settings):
            msg = f"settings are a file's path, Settings, or nothing, not a {type(settings).__name__}"
            raise TypeError(msg)
        return cls(settings, models or {}, servers, agents, clock)

    def __enter__(self) -> Self:
        """Enter; leaving stops."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def stop(self, timeout: float = STOP_SECONDS) -> tuple[str, ...]:
        """Stop everything, in the reverse order of the start. Idempotent.

        With a journal, tasks that are not over are suspended: no action begins any more, and the next supervisor on
        the journal goes on with them. Without one they are cancelled.

        Args:
            timeout: How long each part may take, in seconds. The journal gets at least 10 s: the next supervisor
                can't open it before it is closed.

        Returns:
            The names of what could not be ended in time: tasks, jobs, lanes with a call that does not return, threads.
        """
        refuse_own_thread("stop")
        if self._client.forked:
            return ()  # what runs belongs to the process that started it
        with self._stopping:
            if self._left is None:
                self._left = self._stop(timeout)
            return self._left

    def _stop(self, timeout: float) -> tuple[str, ...]:
        """Intake, clock, jobs, agents, servers, lanes, sessions, switchboard, models, streams, journal, log, loop."""
        self._client.closed = True
        left: list[str] = []
        answer = max(timeout, BLOCKED_SECONDS)  # it never blocks; if it does all the same, it is named below
        with contextlib.suppress(SupervisorStoppedError):
            _, late = concurrent.futures.wait(self._client.ask(CloseIntake(), answer), timeout)
            left += [f"{len(late)} tasks"] if late else []
        left += [] if self._clock.stop(timeout) else ["the clock"]
        if self._journal.survives and not self._jobs.drain(timeout):
            left.append("jobs")
        with contextlib.suppress(SupervisorStoppedError):
            left += _late("an agent", self._client.ask(StopAgents(), answer), timeout)
        blocked = min(timeout, BLOCKED_SECONDS)  # a job that asks for a lane from here on is late: all leases are void
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
        closed = self._journal.close(max(timeout, STOP_SECONDS))  # only a disk can hold it up; its lock goes with it
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

        def look() -> None:
            for token in self._jobs.overdue(limits.step_seconds + hung):
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
        """Open the sessions, and forget those of optional servers that could not be started; give why."""
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
        """Close those that the settings name; the others are the host program's."""
        left = []
        for model in {id(model): model for model in self._models.values()}.values():
            try:
                self._loop.submit(model.close()).result(timeout)
            except TimeoutError:
                left.append(f"the model {model.name}")
        return tuple(left)

    def _blocked_models(self, timeout: float) -> tuple[str, ...]:
        """Wait for the functions of models that were called, and name the threads of those that do not return."""
        threads: tuple[threading.Thread, ...] = ()
        with contextlib.suppress(TimeoutError):  # the loop is blocked: it is named itself
            threads = self._loop.submit(threads_here()).result(BLOCKED_SECONDS)
        end = time.monotonic() + timeout
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        return tuple(thread.name for thread in threads if thread.is_alive())

    def submit(self, task: Task) -> TaskHandle:
        """Take a task and start it.

        A task with an id or a key that was used before is that task, also when it is over: as far back as the journal
        goes, or without a file, among those that are not over and the latest `limits.kept_tasks` that are.

        Raises:
            TypeError: If it is no `Task`.
            ValueError: If a text in it is no Unicode; it could not be kept. If its id holds a secret.
            JournalError: If it can't be kept; it was not started.
            UnknownTargetError: If it names a target that no server offers.
            TaskRefusedError: If its id was used before, or its target can't be worked on.
            SupervisorStoppedError: If the supervisor is down.
        """
        return self._submission.submit(task)

    def submit_all(self, tasks: Iterable[Task]) -> tuple[TaskHandle, ...]:
        """Take tasks and start them, each as `submit` does, but all before the first of them is waited for.

        All are looked at first, and the targets listed once. While the switchboard takes them, others who ask it for
        something wait, about 0.1 ms a task.

        Returns:
            A handle for each, in their order.

        Raises:
            NotAllTakenError: If some were refused only when they were to be taken: another of them has their id, or
                their conversation is over, or the journal can't be written, or the supervisor went down. It has the
                errors of those, and the handles of all others.
            Exception: What `submit` raises of one of them, if that is seen before; none is taken then.
        """
        return self._submission.submit_all(tasks)

    def handle(self, task_id: str) -> TaskHandle:
        """Give the handle of a task: one that runs or waits, or one that is over, with its result and events.

        Without a file, the latest `limits.kept_tasks` of those that are over are known.

        Raises:
            UnknownTaskError: If there is none.
            JournalError: If the journal can't be written any more, and the task is not over in it.
        """
        return self._submission.handle(task_id)

    def pending(self) -> tuple[TaskHandle, ...]:
        """Give the handles of all tasks that are not over, those that were recovered from the journal included."""
        return self._submission.pending()

    def status(self) -> SupervisorStatus:
        """Tell what runs, what waits for a person, and what can't be used."""
        status: SupervisorStatus = self._client.ask(GetStatus())
        return status

    def metrics(self) -> str:
        """Write what was counted since the start, in Prometheus' text format.

        Raises:
            SettingsError: If nothing is counted: `observe.metrics` is off.
        """
        if self._metrics is None:
            msg = "observe.metrics is off: nothing is counted"
            raise SettingsError(msg)
        return self._metrics.text()

    def blackboard(self, task_id: str) -> BlackboardView:
        """Read a task's blackboard; empty for a task that is not known."""
        future: concurrent.futures.Future[BlackboardView] = self._client.ask(BlackboardQuery(task_id=task_id))
        return future.result(self._client.seconds)

    def post(self, task_id: str, note: str) -> None:
        """Tell all agents of a task's conversation something, from their next step on. Blocks until it is kept.

        It stands on the blackboard and in the agents' requests, among what others said; it is no instruction.

        Args:
            task_id: A task that runs or waits.
            note: 1 to 4,000 characters; agents are shown the first 500.

        Raises:
            ValueError: If the note is empty or longer, or no Unicode.
            TaskRefusedError: If there is no such task, or it is over.
            JournalError: If it can't be kept.
            SupervisorStoppedError: If the supervisor is down.
        """
        self._client.settle(Note(task_id=task_id, text=note))

    def targets(self) -> tuple[Target, ...]:
        """List what can be assigned now.

        Raises:
            SupervisorStoppedError: If the supervisor is down.
        """
        with self._client.while_open():
            return self._lookup.listed()

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
    """Make the servers that the settings name, before those of the host program."""
    for server in servers:
        if not isinstance(server, Server):
            msg = f"servers: expected Servers, found a {type(server).__name__}"
            raise TypeError(msg)
    if clock is not None and not isinstance(clock, Clock):
        msg = f"clock: expected a Clock, not a {type(clock).__name__}"
        raise TypeError(msg)
    return [*named_servers(settings), *servers]


def _agents(settings: Settings, agents: Sequence[AgentSpec]) -> dict[str, AgentSpec]:
    table = agent_table(AGENTS, [*named_agents(settings), *agents])
    check_kinds(settings, table)
    return table


def _late(what: str, stopped: Sequence[pykka.Future[Any]], timeout: float) -> Iterator[str]:
    end = time.monotonic() + timeout
    for future in stopped:
        try:
            future.get(timeout=max(0.0, end - time.monotonic()))
        except pykka.Timeout:
            yield what
