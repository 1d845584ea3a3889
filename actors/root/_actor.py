"""The root actor: the switchboard through which every message passes."""

from __future__ import annotations

import concurrent.futures
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pykka

from callboard.actors.agent import Backstage
from callboard.actors.blackboard import Blackboard, Read
from callboard.actors.processing import pipeline
from callboard.actors.root._children import Children
from callboard.actors.root._desk import Ask, Desk
from callboard.actors.root._leases import LeaseBook
from callboard.actors.root._tasks import TaskBook, TaskRecord, never_ran
from callboard.actors.runtime import Leases, mark_own_thread
from callboard.messages import (
    AgentCrashedError,
    AgentKind,
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Assign,
    BlackboardEntry,
    BlackboardPost,
    BlackboardQuery,
    BlackboardView,
    Board,
    Cancel,
    Cause,
    EventName,
    Outcome,
    Question,
    RequestExpired,
    RoundEnded,
    SubtaskEnded,
    SupervisorStatus,
    SupervisorStoppedError,
    Target,
    Task,
    TaskForgotten,
    TaskResult,
    subtask_ended,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from callboard.actors.processing import Services
    from callboard.actors.runtime import Jobs


@dataclass(frozen=True)
class Submit:
    """Ask: take a task. Answered with the future of its result."""

    task: Task
    target: Target | None


@dataclass(frozen=True)
class GetStatus:
    """Ask: what runs? Answered with a `SupervisorStatus`."""


@dataclass(frozen=True)
class CloseIntake:
    """Ask: take no more tasks, and cancel those that run. Answered with the futures of their results."""


@dataclass(frozen=True)
class StopAgents:
    """Ask: stop all agents and the blackboard. Answered with what to wait for."""


@dataclass(frozen=True)
class AgentCrashed:
    """An agent's actor died."""

    address: str
    error: BaseException


@dataclass(frozen=True)
class LeaseIdle:
    """Nothing works under a lease any more."""

    token: int


@dataclass(frozen=True)
class LeaseStuck:
    """Only a blocking call is left under a lease; it can't be stopped."""

    token: int


class Root(pykka.ThreadingActor):
    """The switchboard: one `match` over small parts that have no thread of their own.

    Runs on its own thread and never blocks. Agents post to it, the facade asks it, nobody else does.
    """

    use_daemon_thread = True

    def __init__(self, services: Services, jobs: Jobs) -> None:
        super().__init__()
        self._settings = services.settings
        self._clock = services.clock
        self._stream = services.stream
        self._jobs = jobs
        leases = Leases()
        backstage = Backstage(
            post=self._post,
            crashed=lambda address, error: self._post(_crash(address, error)),
            jobs=jobs,
            leases=leases,
            stream=services.stream,
            limits=services.settings.limits,
            pipelines={kind: pipeline(kind, services) for kind in AgentKind},
        )
        self._tasks = TaskBook()
        self._leases = LeaseBook(leases)
        self._children = Children(backstage)
        self._desk = Desk()
        self._blackboard = Blackboard.start(services.settings.blackboard)
        self._accepting = True

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
                return self._answered(message)
            case RequestExpired():
                return self._expired(message)
            case BlackboardPost():
                return self._blackboard.tell(message)
            case BlackboardQuery():
                return self._read_blackboard(message)
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
                return [*self._children.stop_all(), self._blackboard.stop(block=False)]
            case _:
                msg = f"the switchboard does not know {type(message).__name__}"
                raise TypeError(msg)

    # Tasks

    def _submit(self, task: Task, target: Target | None) -> concurrent.futures.Future[TaskResult]:
        if not self._accepting:
            msg = "the supervisor is stopping and takes no more tasks"
            raise SupervisorStoppedError(msg)
        record = self._tasks.open(task, target, self._clock.elapsed())
        self._stream.emit(EventName.TASK_SUBMITTED, task_id=task.id, request=task.request, target=task.target or "")
        seconds = self._settings.limits.task_seconds
        if seconds is not None:
            late = Cancel(task_id=task.id, outcome=Outcome.TIMED_OUT, reason=f"took longer than {seconds:g} s")
            record.alarm = self._clock.after(seconds, lambda: self._post(late))
        self._next_round(record)
        return record.done

    def _next_round(self, record: TaskRecord) -> None:
        assign = record.next_assign()
        self._note(record.task.id, Board.REQUESTS, "user", assign.request)
        if record.target is None:
            self._stream.emit(
                EventName.ROUND_STARTED,
                task_id=record.task.id,
                agent=record.host,
                round=record.round,
                request=assign.request,
            )
        self._place(record, assign)

    def _round_ended(self, ended: RoundEnded) -> None:
        record = self._running(ended.task_id, ended.run_id, ended.token, "RoundEnded")
        if record is None:
            return
        self._leave(record, ended.run_id, ended.token)
        record.ended = ended
        record.round_usage += ended.usage
        record.artifacts += ended.artifacts
        self._stream.emit(
            EventName.ROUND_ENDED,
            task_id=ended.task_id,
            agent=record.host,
            round=record.round,
            outcome=ended.outcome.value,
            causes=[cause.reason for cause in ended.causes],
        )
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
        self._tasks.close(record)
        self._desk.withdraw(record.task.id)
        if record.alarm is not None:
            record.alarm.cancel()
        forgotten = TaskForgotten(task_id=record.task.id)
        self._children.stop(record.host)
        for address in record.agents - {record.host}:
            self._children.tell_if_alive(address, forgotten)
        self._blackboard.tell(forgotten)
        result = record.result(self._clock.elapsed())
        self._stream.emit(
            EventName.TASK_ENDED,
            task_id=record.task.id,
            duration=result.seconds,
            outcome=result.outcome.value,
            causes=[cause.reason for cause in result.causes],
            artifacts=list(result.artifacts),
        )
        record.done.set_result(result)

    # Hand-offs

    def _assign(self, assign: Assign) -> None:
        record = self._tasks.get(assign.task_id)
        if record is None or record.stopping is not None:
            self._stale(assign.task_id, "Assign")
            return
        record.runs[assign.run_id] = assign
        self._place(record, assign)

    def _place(self, record: TaskRecord, assign: Assign) -> None:
        granted, ahead = self._leases.request(assign)
        if granted is None:
            self._tell_of(EventName.SUBTASK_QUEUED, assign, ahead=ahead)
        else:
            self._hand_over(record, granted)

    def _hand_over(self, record: TaskRecord, assign: Assign) -> None:
        record.runs[assign.run_id] = assign
        record.agents.add(assign.address)
        if assign.number:
            self._tell_of(EventName.SUBTASK_ASSIGNED, assign, request=assign.request)
        self._children.tell(assign.address, assign)

    def _subtask_ended(self, ended: SubtaskEnded) -> None:
        record = self._running(ended.task_id, ended.run_id, ended.token, type(ended).__name__)
        if record is None:
            return
        assign = record.runs[ended.run_id]
        self._leave(record, ended.run_id, ended.token)
        result = ended.result
        record.subtasks.append(result)
        self._note(ended.task_id, Board.SUBTASKS, result.address, result.model_dump(mode="json"))
        self._tell_of(
            EventName.SUBTASK_ENDED,
            assign,
            outcome=result.outcome.value,
            causes=[cause.reason for cause in result.causes],
            duration=result.usage.seconds,
        )
        if record.target is not None:
            record.ended = result
        elif record.runs:
            self._children.tell_if_alive(record.host, ended)
        self._end_if_over(record)

    def _running(self, task_id: str, run_id: str, token: int, what: str) -> TaskRecord | None:
        record = self._tasks.get(task_id)
        if record is None or run_id not in record.runs or record.runs[run_id].token != token:
            self._stale(task_id, what)
            return None
        return record

    def _leave(self, record: TaskRecord, run_id: str, token: int) -> None:
        """End a run; its target is free once nothing works under the lease any more."""
        del record.runs[run_id]
        self._jobs.when_idle(token, lambda: self._post(LeaseIdle(token)), lambda: self._post(LeaseStuck(token)))

    def _stuck(self, token: int) -> None:
        address = self._leases.abandon(token)
        if address is not None:
            self._stream.emit(EventName.TARGET_ABANDONED, agent=address)

    def _free(self, token: int) -> None:
        was_abandoned, granted = self._leases.free(token)
        if was_abandoned is not None:
            self._stream.emit(EventName.TARGET_FREED, agent=was_abandoned)
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
        record.stopping = cancel
        self._stream.emit(
            EventName.TASK_CANCELLING, task_id=cancel.task_id, outcome=cancel.outcome.value, reason=cancel.reason
        )
        self._desk.withdraw(cancel.task_id)
        for run in tuple(record.runs.values()):
            self._stop_run(record, run, cancel)
        self._end_if_over(record)
        return True

    def _stop_run(self, record: TaskRecord, run: Assign, cancel: Cancel) -> None:
        if run.token:
            self._leases.void(run.token)
            self._children.tell_if_alive(run.address, cancel)
            return
        self._leases.withdraw(run.task_id)
        del record.runs[run.run_id]
        record.subtasks.append(never_ran(run, cancel.outcome, (Cause(reason=cancel.reason, where="supervisor"),)))
        if record.target is not None:
            record.ended = record.subtasks[-1]

    def _crashed(self, crash: AgentCrashed) -> None:
        """End the work of an agent that died, with the chain of causes; its next work starts a new one."""
        causes = Cause.chain(crash.error, where=crash.address)
        self._children.remove(crash.address)
        self._stream.emit(EventName.AGENT_CRASHED, agent=crash.address, causes=[cause.reason for cause in causes])
        for record in self._tasks.records:
            for run in tuple(record.runs.values()):
                if run.address == crash.address and run.token:
                    self._leases.void(run.token)
                    self._jobs.cancel(run.token)
                    self._end_crashed(run, causes)

    def _end_crashed(self, run: Assign, causes: tuple[Cause, ...]) -> None:
        if run.number:
            self._subtask_ended(subtask_ended(run.task_id, run.token, never_ran(run, Outcome.ERROR, causes)))
        else:
            self._round_ended(
                RoundEnded(
                    task_id=run.task_id, run_id=run.run_id, token=run.token, outcome=Outcome.ERROR, causes=causes
                )
            )

    def _close_intake(self) -> tuple[concurrent.futures.Future[TaskResult], ...]:
        self._accepting = False
        records = self._tasks.records
        for record in records:
            self._cancel(Cancel(task_id=record.task.id, reason="the supervisor stops"))
        return tuple(record.done for record in records)

    def on_stop(self) -> None:
        """Whoever still waits gets an error: also when the host program stops all actors."""
        for record in self._tasks.records:
            msg = f"the supervisor stopped before the task {record.task.id} ended"
            if not record.done.done():
                record.done.set_exception(SupervisorStoppedError(msg))
        for address in self._children.addresses:
            self._children.stop(address)
        self._blackboard.stop(block=False)
        self._stream.close()

    # People

    def _ask_person(self, ask: Ask) -> None:
        record = self._running(ask.task_id, ask.run_id, ask.token, type(ask).__name__)
        if record is None or record.stopping is not None:
            return
        alarm = None
        if ask.deadline is not None:
            expired = RequestExpired(id=ask.id, task_id=ask.task_id)
            alarm = self._clock.after(ask.deadline - self._clock.now(), lambda: self._post(expired))
        self._desk.open(ask, alarm)
        name = EventName.QUESTION_ASKED if isinstance(ask, Question) else EventName.APPROVAL_REQUESTED
        content = ask.model_dump(mode="json", exclude={"observation", "token"}, exclude_defaults=True)
        self._note(ask.task_id, Board.QUESTIONS, ask.address, content)
        data = {key: value for key, value in content.items() if key not in {"task_id", "run_id", "address"}}
        self._stream.emit(name, task_id=ask.task_id, run_id=ask.run_id, agent=ask.address, request=data)

    def _answered(self, answer: Answer | ApprovalAnswer) -> None:
        ask = self._desk.answer(answer)
        self._settle(ask, answer.model_dump(mode="json", exclude_defaults=True))
        self._children.tell_if_alive(ask.address, answer)

    def _expired(self, expired: RequestExpired) -> None:
        ask = self._desk.expire(expired.id)
        if ask is not None:
            self._settle(ask, {"id": ask.id, "expired": True})
            self._children.tell_if_alive(ask.address, expired)

    def _settle(self, ask: Ask, content: dict[str, JsonValue]) -> None:
        name = EventName.QUESTION_ANSWERED if isinstance(ask, Question) else EventName.APPROVAL_ANSWERED
        self._note(ask.task_id, Board.QUESTIONS, str(content.get("by") or "supervisor"), content)
        self._stream.emit(name, task_id=ask.task_id, run_id=ask.run_id, agent=ask.address, answer=content)

    # Reading

    def _read_blackboard(self, query: BlackboardQuery) -> concurrent.futures.Future[BlackboardView]:
        future: concurrent.futures.Future[BlackboardView] = concurrent.futures.Future()
        self._blackboard.tell(Read(query, future.set_result))
        return future

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

    # Helpers

    def _post(self, message: object) -> None:
        try:
            self.actor_ref.tell(message)
        except pykka.ActorDeadError:
            return  # stopped meanwhile: nobody is left whom it could concern

    def _note(self, task_id: str, board: Board, author: str, content: JsonValue) -> None:
        entry = BlackboardEntry(at=self._clock.now(), author=author, content=content)
        self._blackboard.tell(BlackboardPost(task_id=task_id, board=board, entry=entry))

    def _tell_of(self, name: EventName, assign: Assign, **data: object) -> None:
        self._stream.emit(name, task_id=assign.task_id, run_id=assign.run_id, agent=assign.address, **data)

    def _stale(self, task_id: str, what: str) -> None:
        self._stream.emit(EventName.MESSAGE_STALE, task_id=task_id, agent="supervisor", message=what)


def _crash(address: str, error: BaseException) -> AgentCrashed:
    """Make the word of an agent's death; its wrapper is left out of the causes."""
    cause = error.__cause__ if isinstance(error, AgentCrashedError) and error.__cause__ is not None else error
    return AgentCrashed(address, cause)
