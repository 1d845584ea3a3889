"""The root actor: every message between agents passes through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callboard.actors.agent import AgentContext
from callboard.actors.root._agent_restarts import AgentCrash, AgentRestarts
from callboard.actors.root._agents import Children
from callboard.actors.root._clocks import Deadlines, RunWaits, Stopwatches
from callboard.actors.root._conversations import Closing, Idle, Sessions
from callboard.actors.root._dispatch import Dispatch
from callboard.actors.root._handover import HandOver
from callboard.actors.root._intake import Intake
from callboard.actors.root._open_requests import OpenRequests, PeopleClocks
from callboard.actors.root._outbox import Outbox
from callboard.actors.root._recorder import Recorder
from callboard.actors.root._restore import Restoration
from callboard.actors.root._rounds import Rounds
from callboard.actors.root._run_endings import RunEndings
from callboard.actors.root._stalls import StallWatch
from callboard.actors.root._subtask_groups import SubtaskGroups
from callboard.actors.root._target_queues import LeaseBook
from callboard.actors.root._task_control import TaskControl
from callboard.actors.root._task_end import TaskEnd
from callboard.actors.root._tasks import TaskBook
from callboard.actors.runtime import Leases, Restarts, ScheduledActor
from callboard.messages import Cancel, Cause, EventName, SupervisorStatus, SupervisorStoppedError, TaskProgress

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Mapping
    from types import TracebackType

    import pykka

    from callboard.actors.commands import SurfaceLifecycle
    from callboard.actors.processing import AgentPipeline, Services
    from callboard.actors.runtime import Jobs, Schedulers
    from callboard.messages import Task, TaskResult


@dataclass(frozen=True)
class GetTasks:
    """A query for all unfinished tasks and the futures of their results."""


@dataclass(frozen=True)
class GetStatus:
    """A query for the `SupervisorStatus`."""


@dataclass(frozen=True)
class GetProgress:
    """A query for the `TaskProgress` of an unfinished task; None for others."""

    task_id: str


@dataclass(frozen=True)
class CloseIntake:
    """A request to take no more tasks, and to stop all.

    They are suspended if the journal survives the process, else cancelled. The answer is the futures of their results.
    """


@dataclass(frozen=True)
class StopAgents:
    """A request to stop all agents and the blackboard.

    It is answered with a future for the end of each.
    """


@dataclass(frozen=True)
class JournalBroken:
    """The journal can no longer be written."""

    error: Exception


class Root(ScheduledActor):
    """Route every message to the part that handles it.

    Runs on a thread of its own and never blocks. Agents post messages to it. The supervisor and the task handles ask
    it and wait for its answers. The parts have no threads; each knows only those that it was given.
    """

    def __init__(
        self,
        services: Services,
        pipelines: Mapping[str, AgentPipeline],
        surface_lifecycle: SurfaceLifecycle,
        jobs: Jobs,
        schedulers: Schedulers,
        *,
        first_token: int = 0,
    ) -> None:
        """Create the root and its parts.

        Each kind of agent needs its pipeline. Fencing tokens continue after `first_token`, the highest one in the
        journal.
        """
        super().__init__(schedulers.root)
        settings, clock, journal = services.settings, services.clock, services.journal
        limits, agents, post = settings.limits, services.agents, self._post
        services.people.post = post
        all_leases = Leases(first_token)
        context = AgentContext(
            post=post,
            crashed=lambda address, error, urn: post(AgentCrash(address, error, urn)),
            scheduler=schedulers.agents,
            jobs=jobs,
            leases=all_leases,
            stream=services.stream,
            journal=journal,
            secrets=services.secrets,
            limits=limits,
            pipelines=pipelines,
            agents=agents,
            remote=services.remote,
        )
        self._services = services
        self._journal = journal
        self._plans = context.plans
        self._tasks = tasks = TaskBook()
        self._leases = leases = LeaseBook(all_leases)
        self._children = children = Children(context, post)
        self._outbox = outbox = Outbox(journal, clock, children, services.secrets)
        self._recorder = recorder = Recorder(services, tasks, post, schedulers.agents)
        self._open_requests = open_requests = OpenRequests(recorder, outbox, clock, post, services.waiting)
        clocks, deadlines = Stopwatches(clock, post), Deadlines(clock, post)
        run_waits = RunWaits(clocks, tasks)
        sessions = Sessions(tasks, children, limits.sessions, lambda ids: outbox.tell(lambda: journal.forget(ids)))
        closing = Closing(surface_lifecycle, tasks, clock, post)
        people = PeopleClocks(
            tasks=tasks,
            open_requests=open_requests,
            clocks=clocks,
            run_waits=run_waits,
            outbox=outbox,
            recorder=recorder,
            approved=services.approved,
        )
        task_end = TaskEnd(
            tasks=tasks,
            clock=clock,
            outbox=outbox,
            recorder=recorder,
            clocks=clocks,
            run_waits=run_waits,
            deadlines=deadlines,
            people=people,
            idle=Idle(tasks, children, limits.idle_agents),
            sessions=sessions,
            closing=closing,
            services=services,
        )
        handover = HandOver(
            post=post,
            crashed=context.crashed,
            tasks=tasks,
            leases=leases,
            jobs=jobs,
            children=children,
            journal=journal,
            outbox=outbox,
            recorder=recorder,
            clocks=clocks,
            run_waits=run_waits,
            people=people,
            budgets=services.budgets,
            limits=limits,
            plans=context.plans,
        )
        run_endings = RunEndings(
            post=post,
            tasks=tasks,
            journal=journal,
            outbox=outbox,
            recorder=recorder,
            clocks=clocks,
            people=people,
            limits=limits,
            agents=agents,
        )
        self._task_control = task_control = TaskControl(
            post=post,
            tasks=tasks,
            leases=leases,
            jobs=jobs,
            outbox=outbox,
            recorder=recorder,
            clocks=clocks,
            run_waits=run_waits,
            people=people,
            run_endings=run_endings,
            task_end=task_end,
            agents=agents,
        )
        groups = SubtaskGroups(tasks=tasks, recorder=recorder, handover=handover, task_control=task_control)
        rounds = Rounds(
            tasks=tasks,
            handover=handover,
            outbox=outbox,
            recorder=recorder,
            run_endings=run_endings,
            task_control=task_control,
            task_end=task_end,
            groups=groups,
        )
        self._restarts = Restarts(clock, settings.supervision)
        agent_restarts = AgentRestarts(
            post=post,
            tasks=tasks,
            leases=leases,
            jobs=jobs,
            clock=clock,
            children=children,
            recorder=recorder,
            restarts=self._restarts,
            handover=handover,
            run_endings=run_endings,
        )
        stall_watch = StallWatch(
            post=post,
            seconds=settings.supervision.stall_seconds,
            tasks=tasks,
            leases=leases,
            jobs=jobs,
            clock=clock,
            scheduler=schedulers.agents,
            outbox=outbox,
            recorder=recorder,
            open_requests=open_requests,
            handover=handover,
            rounds=rounds,
            agent_restarts=agent_restarts,
            task_end=task_end,
        )
        self._intake = intake = Intake(
            post=post,
            tasks=tasks,
            clock=clock,
            leases=leases,
            outbox=outbox,
            recorder=recorder,
            clocks=clocks,
            deadlines=deadlines,
            sessions=sessions,
            handover=handover,
            rounds=rounds,
            task_control=task_control,
            task_end=task_end,
            stall_watch=stall_watch,
            limits=limits,
            services=services,
        )
        restoration = Restoration(
            tasks=tasks,
            outbox=outbox,
            recorder=recorder,
            clocks=clocks,
            people=people,
            closing=closing,
            handover=handover,
            rounds=rounds,
            task_control=task_control,
            task_end=task_end,
            stall_watch=stall_watch,
            intake=intake,
            groups=groups,
            limits=limits,
            services=services,
        )
        self._dispatch = Dispatch(
            self,
            intake,
            restoration,
            rounds,
            groups,
            task_control,
            people,
            handover,
            agent_restarts,
            stall_watch,
            children,
            closing,
            recorder,
        )
        self._stopped_by_supervisor = False

    def register(self, dispatch: Dispatch) -> None:
        """Add the handlers of queries and of the supervisor's stop."""
        dispatch.on(GetStatus, lambda _: self._status())
        dispatch.on(GetProgress, lambda query: self._progress(query.task_id))
        dispatch.on(GetTasks, lambda _: self._unfinished_tasks())
        dispatch.on(CloseIntake, lambda _: self._close_intake())
        dispatch.on(StopAgents, lambda _: self._stop_agents())
        dispatch.on(JournalBroken, lambda message: self._give_up(message.error))

    def on_receive(self, message: object) -> Any:
        """Handle one message; the journal writes its results as one transaction.

        Only an `Exception` may escape: Pykka answers any other `BaseException` by stopping every actor of the process.
        """
        try:
            return self._receive(message)
        except Exception:
            raise
        except BaseException as error:
            msg = f"the root was interrupted: {error!r}"
            raise SupervisorStoppedError(msg) from error
        finally:
            self._outbox.flush()

    def _receive(self, message: object) -> Any:
        return self._dispatch.handle(message)

    def _post(self, message: object) -> None:
        """Send this actor a message, from any thread; dropped after its end."""
        self.send(message)

    # Queries

    def _status(self) -> SupervisorStatus:
        self._services.waiting.is_looked_at = True
        return SupervisorStatus(
            accepting=self._intake.accepting,
            tasks=tuple(record.status() for record in self._tasks.records),
            agents=self._children.addresses,
            abandoned=self._leases.abandoned,
            approvals=self._open_requests.approvals,
            questions=self._open_requests.questions,
            leases=self._leases.leases,
            crashed_agents=self._restarts.crashed_agents(),
            ended_tasks=self._tasks.ended,
        )

    def _progress(self, task_id: str) -> TaskProgress | None:
        record = self._tasks.get(task_id)
        if record is None:
            return None
        steps = self._services.budgets.task(task_id).used.get("steps", 0)
        return record.progress(int(steps), sum(len(self._plans.get(run, ())) for run in record.runs))

    def _unfinished_tasks(self) -> dict[str, tuple[Task, concurrent.futures.Future[TaskResult]]]:
        return {record.task.id: (record.task, record.done) for record in self._tasks.records}

    # The stop

    def _give_up(self, error: Exception) -> None:
        """Stop everything: no side effect may begin that can't be journaled."""
        self._intake.close(error)
        self._recorder.emit(EventName.JOURNAL_FAILED, error=str(error))
        for record in self._tasks.records:
            self._tasks.close(record)
            self._task_control.give_up(record, error)

    def _close_intake(self) -> tuple[concurrent.futures.Future[TaskResult], ...]:
        self._intake.close()
        records = self._tasks.records
        for record in records:
            if self._journal.survives:
                self._task_control.suspend(record)
            else:
                self._task_control.cancel(Cancel(task_id=record.task.id, reason="the supervisor stops"))
        return tuple(record.done for record in records)

    def _stop_agents(self) -> list[pykka.Future[Any]]:
        self._stopped_by_supervisor = True
        for record in self._tasks.records:
            self._task_control.void(record)
        return [*self._children.stop_all(), self._recorder.stop()]

    def on_stop(self) -> None:
        """Stop all tasks, and fail the futures of their results.

        Pykka calls it after every stop, also when the host program stops all actors.
        """
        for record in self._tasks.records:
            msg = f"the supervisor stopped before the task {record.task.id} ended"
            self._task_control.give_up(record, SupervisorStoppedError(msg))
        self._children.stop_all()
        self._recorder.stop()
        if not self._stopped_by_supervisor:  # otherwise the supervisor closes the stream, after its own last event
            self._recorder.close()

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Record the crash, and fail the futures of all results."""
        try:
            causes = [cause.reason for cause in Cause.chain(exception_value)] if exception_value is not None else []
            self._recorder.emit(EventName.AGENT_CRASHED, agent="supervisor", causes=causes)
        finally:
            self.on_stop()
