"""The root actor: the switchboard through which every message passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pykka

from callboard.actors.agent import Backstage
from callboard.actors.processing import pipeline
from callboard.actors.root._children import Children
from callboard.actors.root._clocks import Stopwatches
from callboard.actors.root._desk import Desk
from callboard.actors.root._leases import LeaseBook
from callboard.actors.root._people import People
from callboard.actors.root._recorder import Recorder
from callboard.actors.root._requests import (
    AgentCrashed,
    CloseIntake,
    GetStatus,
    LeaseIdle,
    LeaseStuck,
    StopAgents,
    Submit,
)
from callboard.actors.root._sessions import Idle, Sessions
from callboard.actors.root._tasks import TaskBook, TaskRecord, never_ran
from callboard.actors.runtime import Leases, mark_own_thread
from callboard.messages import (
    AgentCrashedError,
    AgentKind,
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Assign,
    BlackboardPost,
    BlackboardQuery,
    Board,
    Cancel,
    Cause,
    EventName,
    Outcome,
    Pause,
    Question,
    RequestExpired,
    Resume,
    RoundEnded,
    SubtaskEnded,
    SupervisorStatus,
    SupervisorStoppedError,
    Target,
    Task,
    TaskForgotten,
    TaskRefusedError,
    TaskResult,
    subtask_ended,
)

if TYPE_CHECKING:
    import concurrent.futures
    from types import TracebackType

    from callboard.actors.processing import Services
    from callboard.actors.runtime import Jobs


class Root(pykka.ThreadingActor):
    """The switchboard: one `match` over small parts that have no thread of their own.

    Runs on its own thread and never blocks. Agents post to it, the facade asks it, nobody else does.
    """

    use_daemon_thread = True

    def __init__(self, services: Services, jobs: Jobs) -> None:
        super().__init__()
        self._limits = services.settings.limits
        self._clock = services.clock
        self._jobs = jobs
        leases = Leases()
        backstage = Backstage(
            post=self._post,
            crashed=lambda address, error: self._post(AgentCrashed(address, error)),
            jobs=jobs,
            leases=leases,
            stream=services.stream,
            limits=self._limits,
            pipelines={kind: pipeline(kind, services) for kind in AgentKind},
        )
        self._approved = services.approved
        self._budgets = services.budgets
        self._clocks = Stopwatches(services.clock, self._post)
        self._tasks = TaskBook()
        self._leases = LeaseBook(leases)
        self._children = Children(backstage)
        self._recorder = Recorder(services.settings.blackboard, services.stream, services.clock)
        self._desk = Desk(self._children, self._recorder, services.clock, self._post, self._tasks.session)
        self._people = People(self._desk, self._clocks, services.approved)
        self._idle = Idle(self._tasks, self._children, self._limits.idle_agents)
        self._sessions = Sessions(self._tasks, self._children, self._limits.sessions)
        self._accepting = True
        self._orderly = False

    def on_receive(self, message: object) -> Any:  # noqa: ANN401 - what is answered depends on what is asked
        """Handle one message. An edge: what Pykka would answer by stopping every actor must not escape."""
        mark_own_thread()
        try:
            return self._receive(message)
        except Exception:
            raise
        except BaseException as error:
            msg = f"the switchboard was told to leave: {error!r}"
            raise SupervisorStoppedError(msg) from error

    def _receive(self, message: object) -> Any:  # noqa: ANN401, C901, PLR0911, PLR0912 - one match, the switchboard
        match message:
            case Submit():
                return self._submit(message.task, message.target)
            case Cancel():
                return self._cancel(message)
            case Assign():
                return self._assign(message)
            case SubtaskEnded():
                return self._subtask_ended(message)
            case RoundEnded():
                return self._round_ended(message)
            case Question() | ApprovalRequest():
                return self._ask_person(message)
            case Answer() | ApprovalAnswer():
                return self._people.answer(message)
            case RequestExpired():
                return self._people.expire(message)
            case Pause() | Resume():
                return self._pause(message)
            case BlackboardPost():
                return self._recorder.post(message)
            case BlackboardQuery():
                return self._recorder.read(message, self._tasks.session(message.task_id))
            case LeaseStuck():
                return self._stuck(message.token)
            case LeaseIdle():
                return self._free(message.token)
            case AgentCrashed():
                return self._crashed(message)
            case GetStatus():
                return self._status()
            case CloseIntake():
                return self._close_intake()
            case StopAgents():
                return self._stop_agents()
            case _:
                msg = f"the switchboard does not know {type(message).__name__}"
                raise TypeError(msg)

    def _post(self, message: object) -> None:
        """Put a message into this actor's inbox, from any thread."""
        try:
            self.actor_ref.tell(message)
        except pykka.ActorDeadError:
            return  # stopped meanwhile: nobody is left whom it could concern

    # Tasks and rounds

    def _submit(self, task: Task, target: Target | None) -> concurrent.futures.Future[TaskResult]:
        if not self._accepting:
            msg = "the supervisor is stopping and takes no more tasks"
            raise SupervisorStoppedError(msg)
        if task.session is not None and not self._sessions.has(task.session):
            msg = f"the conversation {task.session!r} is not kept (any more); limits.sessions says how many are"
            raise TaskRefusedError(msg)
        record = self._tasks.open(task, target, self._clock.elapsed())
        self._recorder.emit(
            EventName.TASK_SUBMITTED,
            task_id=task.id,
            request=task.request,
            target=task.target or "",
            labels=dict(task.labels),
        )
        self._clocks.start(task.id, self._limits.task_seconds, task.id)
        self._next_round(record)
        return record.done

    def _next_round(self, record: TaskRecord) -> None:
        assign = record.next_assign()
        self._recorder.note(record.session, Board.REQUESTS, "user", assign.request)
        if not assign.number:
            self._recorder.emit_of(EventName.ROUND_STARTED, assign, round=record.round, request=assign.request)
        self._place(record, assign)

    def _round_ended(self, ended: RoundEnded) -> None:
        record = self._running(ended.task_id, ended.run_id, ended.token, "RoundEnded")
        if record is None:
            return
        causes = [cause.reason for cause in ended.causes]
        self._recorder.emit_of(
            EventName.ROUND_ENDED,
            record.runs[ended.run_id],
            round=record.round,
            outcome=ended.outcome.value,
            causes=causes,
        )
        self._leave(record, ended.run_id, ended.token)
        record.end_round(ended)
        if record.stopping is None and ended.outcome is Outcome.FINISHED and record.has_next_round:
            self._next_round(record)
            return
        orphaned = Cancel(task_id=ended.task_id, reason="its HostAgent ended")
        for run in tuple(record.runs.values()):
            self._stop_run(record, run, orphaned)
        self._end_if_over(record)

    def _end_if_over(self, record: TaskRecord) -> None:
        if record.runs:
            return
        task_id = record.task.id
        self._tasks.close(record)
        self._people.withdraw(task_id)
        self._clocks.drop(task_id)
        self._budgets.drop(task_id)
        self._approved.drop(task_id)
        for address in record.agents - {record.host}:
            self._children.tell_if_alive(address, TaskForgotten(task_id=task_id))
            self._idle.rest(address)
        self._sessions.keep(record)
        self._recorder.post(TaskForgotten(task_id=record.session))  # its page counts as an ended task's
        result = record.result(self._clock.elapsed())
        self._recorder.emit(
            EventName.TASK_ENDED,
            task_id=task_id,
            duration=result.seconds,
            outcome=result.outcome.value,
            causes=[cause.reason for cause in result.causes],
            artifacts=list(result.artifacts),
        )
        record.done.set_result(result)

    # Hand-offs and leases

    def _assign(self, assign: Assign) -> None:
        record = self._tasks.get(assign.task_id)
        if record is None or record.stopping is not None:
            self._recorder.stale(assign.task_id, "Assign")
            return
        record.runs[assign.run_id] = assign
        self._place(record, assign)

    def _place(self, record: TaskRecord, assign: Assign) -> None:
        granted, ahead = self._leases.request(assign)
        if granted is None:
            self._recorder.emit_of(EventName.SUBTASK_QUEUED, assign, ahead=ahead)
            self._clocks.stop(assign.task_id, f"queue {assign.run_id}")
        else:
            self._hand_over(record, granted)

    def _hand_over(self, record: TaskRecord, assign: Assign) -> None:
        record.runs[assign.run_id] = assign
        record.agents.add(assign.address)
        self._idle.work(assign.address)
        self._clocks.go_on(assign.task_id, f"queue {assign.run_id}")
        if assign.number:
            self._recorder.emit_of(EventName.SUBTASK_ASSIGNED, assign, request=assign.request)
            self._clocks.start(assign.run_id, self._limits.subtask_seconds, assign.task_id, assign.run_id)
            if record.paused:
                self._clocks.stop(assign.run_id, "pause")
        self._leases.pause(assign.token, paused=record.paused)
        if not assign.number and record.task.session and record.host not in self._children.addresses:
            causes = (
                Cause(reason="the HostAgent of the conversation crashed, and its memory is gone", where=record.host),
            )
            self._end_crashed(assign, causes)
            return
        try:
            self._children.tell(assign.address, assign)
            if record.paused:
                self._children.tell(assign.address, Pause(task_id=assign.task_id))
        except Exception as error:  # noqa: BLE001 - an edge: an actor that can't be started ends its work, not ours
            self._crashed(AgentCrashed(assign.address, error))

    def _subtask_ended(self, ended: SubtaskEnded) -> None:
        record = self._running(ended.task_id, ended.run_id, ended.token, type(ended).__name__)
        if record is None:
            return
        result = ended.result
        self._recorder.note(record.session, Board.SUBTASKS, result.address, result.model_dump(mode="json"))
        self._recorder.emit_of(
            EventName.SUBTASK_ENDED,
            record.runs[ended.run_id],
            outcome=result.outcome.value,
            causes=[cause.reason for cause in result.causes],
            duration=result.usage.seconds,
        )
        self._leave(record, ended.run_id, ended.token)
        record.end_subtask(result)
        self._children.tell_if_alive(record.host, ended)
        self._end_if_over(record)

    def _running(self, task_id: str, run_id: str, token: int, what: str) -> TaskRecord | None:
        record = self._tasks.get(task_id)
        if record is None or run_id not in record.runs or record.runs[run_id].token != token:
            self._recorder.stale(task_id, what)
            return None
        return record

    def _leave(self, record: TaskRecord, run_id: str, token: int) -> None:
        """End a run; its target is free once nothing works under the lease any more."""
        del record.runs[run_id]
        self._people.withdraw(record.task.id, run_id)
        self._clocks.drop(run_id)
        self._jobs.when_idle(token, lambda: self._post(LeaseIdle(token)), lambda: self._post(LeaseStuck(token)))

    def _stuck(self, token: int) -> None:
        address = self._leases.abandon(token)
        if address is not None:
            self._recorder.emit(EventName.TARGET_ABANDONED, agent=address)

    def _free(self, token: int) -> None:
        was_abandoned, granted = self._leases.free(token)
        if was_abandoned is not None:
            self._recorder.emit(EventName.TARGET_FREED, agent=was_abandoned)
        if granted is not None:
            record = self._tasks.get(granted.task_id)
            if record is None:
                self._free(granted.token)
            else:
                self._hand_over(record, granted)

    # Stopping

    def _cancel(self, cancel: Cancel) -> bool:
        """Stop a task. Returns whether this was what stopped it; the first stop wins, and an ended task stays."""
        record = self._tasks.get(cancel.task_id)
        if record is None or record.stopping is not None:
            return False
        if cancel.run_id != "*":
            return self._cancel_run(record, cancel)
        record.stopping = cancel
        self._recorder.emit(
            EventName.TASK_CANCELLING, task_id=cancel.task_id, outcome=cancel.outcome.value, reason=cancel.reason
        )
        self._people.withdraw(cancel.task_id)
        for run in tuple(record.runs.values()):
            self._stop_run(record, run, cancel)
        self._end_if_over(record)
        return True

    def _cancel_run(self, record: TaskRecord, cancel: Cancel) -> bool:
        run = record.runs.get(cancel.run_id)
        if run is None:
            return False
        self._recorder.emit_of(EventName.TASK_CANCELLING, run, outcome=cancel.outcome.value, reason=cancel.reason)
        self._people.withdraw(record.task.id, run.run_id)
        self._stop_run(record, run, cancel)
        return True

    def _pause(self, wish: Pause | Resume) -> bool:
        """Pause or resume a task. Returns whether this changed anything."""
        record = self._tasks.get(wish.task_id)
        paused = isinstance(wish, Pause)
        if record is None or record.stopping is not None or record.paused is paused:
            return False
        record.paused = paused
        self._recorder.emit(EventName.TASK_PAUSED if paused else EventName.TASK_RESUMED, task_id=wish.task_id)
        move = self._clocks.stop if paused else self._clocks.go_on
        move(wish.task_id, "pause")
        for run in record.runs.values():
            move(run.run_id, "pause")
            if run.token:
                self._leases.pause(run.token, paused=paused)
                self._children.tell_if_alive(run.address, wish)
        return True

    def _stop_run(self, record: TaskRecord, run: Assign, cancel: Cancel) -> None:
        if run.token:
            self._leases.void(run.token)
            self._children.tell_if_alive(run.address, cancel)
            return
        self._leases.withdraw(run.run_id, run.address)
        self._clocks.go_on(run.task_id, f"queue {run.run_id}")
        del record.runs[run.run_id]
        if run.number:
            cause = Cause(reason=cancel.reason, where="supervisor")
            record.end_subtask(never_ran(run, cancel.outcome, (cause,)))

    def _crashed(self, crash: AgentCrashed) -> None:
        """End the work of an agent that died, with the chain of causes; its next work starts a new one."""
        error = crash.error
        if isinstance(error, AgentCrashedError) and error.__cause__ is not None:
            error = error.__cause__
        causes = Cause.chain(error, where=crash.address)
        self._children.remove(crash.address)
        self._recorder.emit(
            EventName.AGENT_CRASHED, agent=crash.address, causes=[f"{c.exception}: {c.reason}" for c in causes]
        )
        for record in self._tasks.records:
            for run in tuple(record.runs.values()):
                if run.address == crash.address and run.token:
                    self._leases.void(run.token)
                    self._jobs.cancel(run.token)
                    self._end_crashed(run, causes)

    def _end_crashed(self, run: Assign, causes: tuple[Cause, ...]) -> None:
        if run.number:
            self._subtask_ended(subtask_ended(run.task_id, run.token, never_ran(run, Outcome.ERROR, causes)))
            return
        self._round_ended(
            RoundEnded(task_id=run.task_id, run_id=run.run_id, token=run.token, outcome=Outcome.ERROR, causes=causes)
        )

    def _close_intake(self) -> tuple[concurrent.futures.Future[TaskResult], ...]:
        self._accepting = False
        records = self._tasks.records
        for record in records:
            self._cancel(Cancel(task_id=record.task.id, reason="the supervisor stops"))
        return tuple(record.done for record in records)

    def _stop_agents(self) -> list[pykka.Future[Any]]:
        self._orderly = True
        return [*self._children.stop_all(), self._recorder.stop()]

    def on_stop(self) -> None:
        """Whoever still waits gets an error: also when the host program stops all actors."""
        for record in self._tasks.records:
            if not record.done.done():
                msg = f"the supervisor stopped before the task {record.task.id} ended"
                record.done.set_exception(SupervisorStoppedError(msg))
        self._children.stop_all()
        self._recorder.stop()
        if not self._orderly:  # otherwise the facade closes it, after its own last event
            self._recorder.close()

    def on_failure(
        self,
        exception_type: type[BaseException] | None,  # noqa: ARG002 - Pykka's hook
        exception_value: BaseException | None,
        traceback: TracebackType | None,  # noqa: ARG002 - Pykka's hook
    ) -> None:
        """Nothing can go on without the switchboard: whoever waits gets an error."""
        causes = [cause.reason for cause in Cause.chain(exception_value)] if exception_value is not None else []
        self._recorder.emit(EventName.AGENT_CRASHED, agent="supervisor", causes=causes)
        self.on_stop()

    # People and readers

    def _ask_person(self, ask: Question | ApprovalRequest) -> None:
        record = self._running(ask.task_id, ask.run_id, ask.token, type(ask).__name__)
        if record is not None and record.stopping is None:
            self._people.ask(ask)

    def _status(self) -> SupervisorStatus:
        return SupervisorStatus(
            accepting=self._accepting,
            tasks=tuple(record.status() for record in self._tasks.records),
            agents=self._children.addresses,
            abandoned=self._leases.abandoned,
            approvals=self._desk.approvals,
            questions=self._desk.questions,
            ended_tasks=self._tasks.ended,
        )
