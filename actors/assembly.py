"""The parts of a supervisor, started in order and stopped in reverse."""

from __future__ import annotations

import concurrent.futures
import contextlib
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pykka

import callboard.actors.app
import callboard.actors.host
import callboard.actors.linux
import callboard.actors.mobile
import callboard.actors.operator
import callboard.actors.remote  # noqa: F401 - the shipped agents register themselves with their machines
from callboard.actors.client import RootClient, Submission
from callboard.actors.commands import (
    Approved,
    Dispatcher,
    MayChange,
    OwnFiles,
    Policy,
    Secrets,
    SkillTools,
    SurfaceLifecycle,
    TargetLookup,
    Toolbox,
)
from callboard.actors.observe import Metrics, Traces
from callboard.actors.processing import (
    AGENTS,
    AgentSpec,
    CheckInputs,
    Services,
    agent_table,
    named_agents,
    pipeline,
    proposing,
)
from callboard.actors.root import (
    CloseIntake,
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
)
from callboard.config import EventLog, Settings, all_check_programs, check_kinds, keys_of, load_prompts, load_skills
from callboard.messages import AgentKind, EventName, SettingsError, SupervisorStoppedError, agent_kind
from callboard.models import (
    Model,
    NamedModels,
    TaskModels,
    by_picture,
    given_models,
    recorder,
    threads_here,
    unused_providers,
)
from callboard.surfaces import Server, make_surfaces

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from callboard.actors.commands.mcp import McpSession
    from callboard.actors.runtime import WaitingRequests
    from callboard.fleet import FleetEngine, FleetLink, LocalMachines
    from callboard.messages import Target

STOP_SECONDS = 10.0
BEHIND_SECONDS = 60.0
"""The time by which the wall clock may be behind the journal without a report: clocks are corrected by seconds."""

BLOCKED_SECONDS = 1.0
"""The time limit of a stop for calls whose results are discarded."""


class Assembly:
    """The running parts of one supervisor."""

    local_machines: LocalMachines | None = None

    def __init__(  # noqa: PLR0917 - those of `Supervisor.start`
        self,
        settings: Settings,
        models: Mapping[str, Model | Callable[..., Any]],
        surfaces: Sequence[Server],
        agents: Sequence[AgentSpec],
        checks: Mapping[str, Callable[..., Any]],
        clock: Clock | None,
        engine: FleetEngine | None = None,
    ) -> None:
        """Build all parts and start them, as `Supervisor.start` describes."""
        self.settings = settings
        self.subscribers: list[Subscriber] = []
        self.broken: concurrent.futures.Future[Exception] = concurrent.futures.Future()  # why the journal broke
        with ExitStack() as undo:
            self.log = EventLog(settings)
            undo.callback(self.log.close)
            self.agents = _agents(settings, agents)
            self.check_inputs = CheckInputs(all_check_programs(settings, checks))
            self.skills = load_skills(settings)
            self.secrets = Secrets(settings.secrets, keys_of(settings))
            self.models = self._all_models(models)
            self.surfaces = surfaces = _all_surfaces(settings, surfaces)
            self.metrics = Metrics() if settings.observe.metrics else None
            self.traces = Traces(settings=settings) if settings.observe.traces else None
            self.clock = clock or SystemClock("callboard-clock")
            self.budgets = Budgets(settings.budget, self.clock.now)
            opened = self._opened()
            self.journal = opened.journal
            undo.callback(self.journal.close, STOP_SECONDS)
            self.stream = self._events(opened)
            self.loop = EventLoop("callboard-loop")
            self.schedulers = Schedulers(ThreadScheduler("callboard-root"), LoopScheduler(self.loop))
            self.lanes = Lanes()
            self.jobs = Jobs(self.loop, self.clock)
            self.watchdog = self._watch()
            self.clock.start()
            undo.callback(self.clock.stop, STOP_SECONDS)
            self.loop.start()
            undo.callback(self.loop.stop, STOP_SECONDS)
            self.schedulers.root.start()
            undo.callback(self.schedulers.root.stop, STOP_SECONDS)
            self.sessions = [self._session(name) for name in settings.mcp_servers]
            undo.callback(self._close_sessions, STOP_SECONDS)
            self.left_out = left_out = self._open_sessions()
            self.fleet = self._join_fleet(engine, undo)
            self._open_surfaces([*surfaces, *self._mcp_surfaces(), *self._remote_surfaces()], undo)
            services = self._services(self.models)
            for task in opened.today:
                services.budgets.count(task.labels, task.used, unpriced=task.unpriced)
            pipelines = {kind: pipeline(spec, services) for kind, spec in self.agents.items()}
            self.client = RootClient(
                Root.start(
                    services, pipelines, self.surface_lifecycle, self.jobs, self.schedulers, first_token=opened.token
                )
            )
            self.submission = self._new_submission(services.waiting)
            self.watchdog.start()
            undo.pop_all()
        if self.traces is not None:
            self.subscribers.append(
                Subscriber(self.stream.open(queue=settings.events.kept, of_host=False), self.traces)
            )
        self._tell_start(opened)
        self.warnings = (
            *self._tell_left_out(left_out),
            *self._check_tools(),
            *self._check_rules(),
            *self._check_providers(),
            *self._check_clock(opened),
        )
        """The warnings of `Supervisor.warnings`."""
        self._restore(opened)

    def _all_models(self, agent_models: Mapping[str, Model | Callable[..., Any]]) -> dict[str, Model]:
        """Build the models of agents, and prepare for those of tasks."""
        self.named_models = NamedModels(self.settings)
        wrap = recorder(self.settings, self.secrets.redact)
        kinds = [kind for kind, spec in self.agents.items() if spec.has_model]
        models = {**self.named_models.of_kinds(kinds), **given_models(agent_models, kinds)}
        named = {kind: wrap(model) for kind, model in models.items()}
        self.task_models = TaskModels(named, self.named_models, wrap)
        return named

    def _open_surfaces(self, surfaces: Sequence[Server], undo: ExitStack) -> None:
        """Open the surfaces that have targets."""
        settings = self.settings
        self.toolbox = Toolbox(
            surfaces,
            self.sessions,
            self.lanes,
            kinds=self.agents,
            everywhere=self._skill_tools(),
            is_complete=not settings.fleet.has_tools_elsewhere,
        )
        file = None if settings.journal.path is None else settings.path(settings.journal.path)
        seconds = settings.limits.command_seconds
        self.surface_lifecycle = SurfaceLifecycle(surfaces, self.lanes, self.loop, file, self.clock.elapsed)
        undo.callback(self.lanes.close, STOP_SECONDS)
        self.surface_lifecycle.open(seconds)
        undo.callback(self.surface_lifecycle.close, STOP_SECONDS)
        self.lookup = TargetLookup(surfaces, self.lanes, self.loop, seconds, self.agents, local=settings.local_surfaces)
        self.lookup.refuse_shared_ids([session.target_surface for session in self.sessions if session.on_target])

    def _skill_tools(self) -> list[Server]:
        """Return the surface that reads skills, if the settings name any.

        Operators, which answer with points and keys alone, do not get its tool.
        """
        kinds = [kind for kind, spec in self.agents.items() if spec.has_model and not by_picture(kind, spec.response)]
        return [SkillTools(self.skills, kinds)] if self.skills else []

    def _tell_start(self, opened: Opened) -> None:
        self.stream.emit(EventName.SUPERVISOR_STARTED, recovered=len(opened.recovered_tasks))
        for folder in self.skills:
            self.stream.emit(
                EventName.SKILL_LOADED,
                skill=folder.skill.name,
                folder=str(folder.path),
                files=len(folder.files),
                digest=folder.digest,
            )

    def _join_fleet(self, engine: FleetEngine | None, undo: ExitStack) -> FleetLink | None:
        """Connect to the fleet; None if the settings name none.

        Raises:
            SettingsError: If that can't be done.
        """
        if self.settings.fleet.local:
            if engine is not None:
                msg = "fleet.local starts a server of its own: leave the argument `engine` out, or fleet.local"
                raise SettingsError(msg)
            engine = self._start_local_machines(undo)
        if engine is None and self.settings.fleet.url is None:
            return None
        from callboard.fleet import FleetLink

        link = FleetLink(
            engine or _nats_engine(self.settings),
            self.settings,
            self.loop,
            self.journal,
            post=lambda message: self.client.tell(message),  # noqa: PLW0108 - there is no client yet
            emit=self.stream.emit,
            local=self.local_machines,
        )
        undo.callback(link.close, STOP_SECONDS)
        link.open()
        return link

    def _start_local_machines(self, undo: ExitStack) -> FleetEngine:
        """Start the machines of this computer, and return a connection to them."""
        from callboard.fleet import LocalMachines, NatsEngine

        self.local_machines = machines = LocalMachines(self.settings)
        undo.callback(machines.stop, STOP_SECONDS)
        machines.start()
        return NatsEngine(
            machines.server.url, self.settings.fleet.machine, makes_streams=True, token=machines.server.token
        )

    def _remote_surfaces(self) -> list[Server]:
        """Return the surface of the other machines' targets."""
        return [] if self.fleet is None else [self.fleet.targets]

    def serve(self) -> None:
        """Do the subtasks of other machines from now on.

        Raises:
            SettingsError: If the settings name no fleet, or start its machines.
        """
        if self.local_machines is not None:
            msg = "the machines of fleet.local give this supervisor no work: leave serve() out, or set fleet.url"
            raise SettingsError(msg)
        if self.fleet is None:
            msg = "this supervisor belongs to no fleet: set fleet.url, or fleet.local"
            raise SettingsError(msg)
        kinds = frozenset(self.models)
        self.fleet.serve(self.submission, lambda: _servable(self.lookup.listed(), kinds), self.stream.add_sink)

    def _session(self, name: str) -> McpSession:
        from callboard.actors.commands.mcp import McpSession

        return McpSession(name, self.settings.mcp_servers[name], self.settings, self.stream.emit)

    def _mcp_surfaces(self) -> list[Server]:
        """Return the MCP servers that are targets."""
        sessions = [session for session in self.sessions if session.on_target]
        if not sessions:
            return []
        from callboard.actors.commands.mcp import McpSurface

        return [McpSurface(session) for session in sessions]

    def _tell_left_out(self, left_out: Mapping[str, str]) -> Iterator[str]:
        """Emit an event for each optional MCP server that could not start."""
        for server, reason in left_out.items():
            self.stream.emit(EventName.SERVER_LEFT_OUT, server=server, reason=reason)
            yield self.secrets.redactor("").text(reason)

    def _check_tools(self) -> Iterator[str]:
        """Emit an event for settings of tools that MCP servers lack."""
        for session in self.sessions:
            for reason in session.unknown_tools():
                self.stream.emit(EventName.TOOL_UNMATCHED, server=session.name, reason=reason)
                yield self.secrets.redactor("").text(reason)

    def _opened(self) -> Opened:
        """Open the journal, and read the tasks of earlier processes."""
        machine = self.agents[AgentKind.HOST].machine
        return open_journal(self.settings, self.clock, self.broken.set_result, machine)

    def _check_rules(self) -> Iterator[str]:
        """Emit an event for each policy rule that can match nothing."""
        for number, reason in self.toolbox.unmatched(self.settings.policy.rules, self.lookup.listed):
            self.stream.emit(EventName.POLICY_UNMATCHED, rule=number, reason=reason)
            yield f"rule {number} of the policy: {reason}"

    def _check_providers(self) -> Iterator[str]:
        """Emit an event for each provider without a model."""
        for provider, reason in unused_providers(self.settings):
            self.stream.emit(EventName.PROVIDER_UNUSED, provider=provider, reason=reason)
            yield f"providers.{provider}: {reason}"

    def _check_clock(self, opened: Opened) -> Iterator[str]:
        """Emit an event if the wall clock is behind the journal."""
        if opened.behind > BEHIND_SECONDS:
            reason = (
                f"the clock is {opened.behind:.0f} s behind the journal's last entry: set it; deadlines are wrong, and "
                "no ended task is dropped for the time between"
            )
            self.stream.emit(EventName.CLOCK_BEHIND, seconds=opened.behind, reason=reason)
            yield reason

    def _restore(self, opened: Opened) -> None:
        """Resume the tasks of an earlier process.

        A journal that broke since it was opened is reported to the root first, which then refuses the request.
        """
        for name in {name for recovered_task in opened.recovered_tasks for name in recovered_task.record.task.models}:
            self.task_models.build(name, recovered=True)  # may block; a task without it is paused
        self.broken.add_done_callback(lambda broken: self.client.tell(JournalBroken(broken.result())))
        try:
            self.client.ask(Restore(opened.recovered_tasks))
        except BaseException:
            self.stop(STOP_SECONDS)
            raise
        if self.fleet is not None:
            self.fleet.sweep(lambda: [handle.task_id for handle in self.submission.pending()])
        if self.settings.fleet.serve:
            self.serve()

    def _events(self, opened: Opened) -> EventStream:
        """Create the event stream, which feeds the journal, log and metrics."""
        kept_events, queue = self.settings.events.kept, self.settings.events.queue
        tasks = self.settings.limits.kept_tasks if opened.events is None else 0  # a file keeps those of all tasks
        stream = EventStream(
            self.clock, kept_events, queue, tasks=tasks, seq=opened.seq, past=opened.events, redaction=self.secrets
        )
        if opened.queue is not None:
            stream.add_queue(*opened.queue)
        stream.add_sink(self.log.write)
        stream.add_sink(self.check_inputs.see)
        if self.metrics is not None:
            stream.add_sink(self.metrics.see)
        return stream

    def _new_submission(self, waiting: WaitingRequests) -> Submission:
        return Submission(
            client=self.client,
            stream=self.stream,
            lookup=self.lookup,
            toolbox=self.toolbox,
            models=self.task_models,
            path_of=self.settings.path,
            routine_misses=self.settings.routines.misses,
            journal=self.journal,
            broken=self.broken,
            secrets=self.secrets,
            budgets=self.budgets,
            traces=self.traces,
            check_inputs=self.check_inputs,
            waiting=waiting,
            abandon=_nothing if self.fleet is None else self.fleet.abandon,
        )

    def _services(self, models: Mapping[str, Model]) -> Services:
        """Gather the services of the agents' processing, which is level 2."""
        settings = self.settings
        return Services(
            settings=settings,
            models=models,
            task_models=self.task_models,
            toolbox=self.toolbox,
            dispatcher=Dispatcher(self.stream, self.clock, self.secrets),
            policy=Policy(settings.policy.all_rules, explain=settings.policy.explain),
            approved=Approved(),
            may_change=MayChange(),
            own_files=OwnFiles(),
            check_inputs=self.check_inputs,
            secrets=self.secrets,
            budgets=self.budgets,
            lanes=self.lanes,
            stream=self.stream,
            journal=self.journal,
            clock=self.clock,
            prompts=load_prompts(settings, {kind: spec.prompt for kind, spec in self.agents.items() if spec.has_model}),
            skills=tuple(folder.skill for folder in self.skills),
            agents=self.agents,
            remote=None if self.fleet is None else self.fleet.submitted,
        )

    def stop(self, timeout: float) -> tuple[str, ...]:
        """Stop the parts from the intake down to the event loop.

        In order: intake, clock, jobs, agents, surfaces, lanes, sessions, root, models, event stream, journal, log,
        watchdog, event loop.
        """
        self.client.closed = True
        leftovers: list[str] = []
        answer = max(timeout, BLOCKED_SECONDS)  # the root never blocks; if it does, it is named below
        with contextlib.suppress(SupervisorStoppedError):
            _, late_tasks = concurrent.futures.wait(self.client.ask(CloseIntake(), answer), timeout)
            leftovers += [f"{len(late_tasks)} tasks"] if late_tasks else []
        leftovers += [] if self.clock.stop(timeout) else ["the clock"]
        if self.journal.survives and not self.jobs.drain(timeout):
            leftovers.append("jobs")
        with contextlib.suppress(SupervisorStoppedError):
            leftovers += _late("an agent", self.client.ask(StopAgents(), answer), timeout)
        blocked = min(timeout, BLOCKED_SECONDS)  # from here on all leases are void: a job that asks for a lane is late
        if self.fleet is not None and not self.fleet.close(timeout):
            leftovers.append("the fleet")
        if self.local_machines is not None:
            leftovers += [f"the machine {name}" for name in self.local_machines.stop(timeout)]
        leftovers += self.surface_lifecycle.close(timeout)
        leftovers += [f"lane {name}" for name in self.lanes.close(blocked)]
        leftovers += self._close_sessions(timeout)
        with contextlib.suppress(pykka.ActorDeadError):
            leftovers += _late("the root", [self.client.root.stop(block=False)], timeout)
        leftovers += [] if self.schedulers.root.stop(timeout) else [self.schedulers.root.thread.name]
        leftovers += self._close_models(timeout)
        leftovers += self._blocked_models(blocked)
        self.stream.emit(EventName.SUPERVISOR_STOPPED, left=list(leftovers))
        self.stream.close()
        leftovers += [subscriber.name for subscriber in self.subscribers if not subscriber.join(timeout)]
        closed = self.journal.close(max(timeout, STOP_SECONDS))  # only a disk can delay it; it releases the lock
        leftovers += [] if closed else ["the journal"]
        leftovers += [] if self.log.close() else ["the log"]
        leftovers += [] if self.watchdog.stop(timeout) else ["the watchdog"]
        leftovers += [] if self.loop.stop(timeout) else [self.loop.thread.name]
        self.schedulers.agents.stop()
        return tuple(leftovers)

    def _watch(self) -> Watchdog:
        limits, hung = self.settings.limits, self.settings.supervision.hung_seconds

        def blocked(thread: str, stack: str, seconds: float) -> None:
            self.stream.emit(EventName.THREAD_BLOCKED, thread=thread, stack=stack, seconds=seconds)

        hung_jobs = HungJobs(self.jobs, self.clock)

        def look() -> None:
            for token in hung_jobs.find(limits.step_seconds + hung):
                self.client.tell(LeaseHung(token, self.jobs.stack(token)))

        return Watchdog(
            "callboard-watchdog",
            self.loop,
            hung,
            on_blocked=blocked,
            on_free=lambda thread: self.stream.emit(EventName.THREAD_FREED, thread=thread),
            watched=(self.schedulers.root, self.journal),
            on_tick=look,
        )

    def _open_sessions(self) -> Mapping[str, str]:
        """Open the MCP sessions, and drop optional ones that can't start.

        Returns:
            The reasons by the names of their MCP servers.
        """
        if not self.sessions:
            return {}
        from callboard.actors.commands.mcp import open_sessions

        left_out = self.loop.submit(open_sessions(self.sessions)).result()
        self.sessions = [session for session in self.sessions if session.name not in left_out]
        return left_out

    def _close_sessions(self, timeout: float) -> tuple[str, ...]:
        leftovers = []
        for session in reversed(self.sessions):
            try:
                self.loop.submit(session.close()).result(timeout)
            except TimeoutError:
                leftovers.append(f"the MCP server {session.name}")
        return tuple(leftovers)

    def _close_models(self, timeout: float) -> tuple[str, ...]:
        """Close the settings' models; the others belong to the host program."""
        leftovers = []
        for model in self.named_models.made:
            try:
                self.loop.submit(model.close()).result(timeout)
            except TimeoutError:
                leftovers.append(f"the model {model.name}")
        return tuple(leftovers)

    def _blocked_models(self, timeout: float) -> tuple[str, ...]:
        """Wait for model functions, and name the threads that still run one."""
        threads: tuple[threading.Thread, ...] = ()
        with contextlib.suppress(TimeoutError):  # the event loop is blocked, and named below
            threads = self.loop.submit(threads_here()).result(BLOCKED_SECONDS)
        end = time.monotonic() + timeout
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        return tuple(thread.name for thread in threads if thread.is_alive())


def _all_surfaces(settings: Settings, surfaces: Sequence[Server]) -> list[Server]:
    """Create the settings' surfaces, and put them before the host program's."""
    return [*make_surfaces(settings), *surfaces]


def _agents(settings: Settings, agents: Sequence[AgentSpec]) -> dict[str, AgentSpec]:
    table = agent_table(AGENTS, [*named_agents(settings), *agents])
    check_kinds(settings, table)
    return dict(proposing(table, is_enabled=settings.system.propose_checks))


def _nothing(_task_id: str) -> None:
    """Do nothing: without a fleet, no task waits for other machines."""


def _nats_engine(settings: Settings) -> FleetEngine:
    """Make the connection that the settings describe.

    Raises:
        SettingsError: If the library is missing, or a file can't be read.
    """
    from callboard.fleet import check_library

    check_library()
    from callboard.fleet import make_engine

    return make_engine(settings)


def _servable(targets: Sequence[Target], kinds: Collection[str]) -> tuple[Target, ...]:
    """Return the targets that other machines may give work.

    They belong to no task, are this machine's own, and an agent here has a model for them.
    """
    return tuple(
        target for target in targets if not target.owner and not target.machine and agent_kind(target.address) in kinds
    )


def _late(name: str, stopped: Sequence[pykka.Future[Any]], timeout: float) -> Iterator[str]:
    end = time.monotonic() + timeout
    for future in stopped:
        try:
            future.get(timeout=max(0.0, end - time.monotonic()))
        except pykka.Timeout:
            yield name
