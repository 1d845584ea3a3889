"""The root actor: every message between agents passes through it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.actors.agent import AgentContext
from callboard.actors.processing import CallAsks, CallAsksNoMore, pipeline
from callboard.actors.root._agent_restarts import AgentRestarts
from callboard.actors.root._agents import Children, Closing, Idle, Sessions
from callboard.actors.root._clocks import Deadlines, Stopwatches
from callboard.actors.root._context import RootContext
from callboard.actors.root._handover import HandOver
from callboard.actors.root._lifecycle import RunEndings, TaskControl
from callboard.actors.root._open_requests import OpenRequests, PeopleClocks
from callboard.actors.root._outbox import Outbox
from callboard.actors.root._recorder import Recorder
from callboard.actors.root._recovery import lacks, restore, resume_runs
from callboard.actors.root._requests import (
    AgentCrash,
    AgentlessRun,
    BlackboardCrashed,
    CloseIntake,
    CloseOpened,
    ConversationRests,
    DeadlineDue,
    Deliver,
    GetProgress,
    GetStatus,
    GetTasks,
    GiveOutputType,
    GiveSecrets,
    JournalBroken,
    LeaseHung,
    LeaseIdle,
    LeaseStuck,
    NotKept,
    RestartDue,
    Restore,
    RunHistory,
    StallCheck,
    StopAgents,
    Submit,
)
from callboard.actors.root._stalls import StallWatch
from callboard.actors.root._target_queues import LeaseBook
from callboard.actors.root._task_outcome import task_result
from callboard.actors.root._tasks import TaskBook, TaskRecord
from callboard.actors.runtime import Leases, ScheduledActor
from callboard.actors.states import unique
from callboard.messages import (
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Assign,
    BlackboardQuery,
    Cancel,
    Cause,
    EventName,
    FilesAtStart,
    Note,
    Outcome,
    Pause,
    Question,
    RequestExpired,
    Resume,
    RoundEnding,
    SubtaskEnding,
    SupervisorStatus,
    SupervisorStoppedError,
    Task,
    TaskProgress,
    TaskRefusedError,
    TaskResult,
)

if TYPE_CHECKING:
    import concurrent.futures
    from types import TracebackType

    import pykka

    from callboard.actors.commands import ServerLifecycle
    from callboard.actors.processing import Services
    from callboard.actors.root._recovery import RecoveredTask
    from callboard.actors.runtime import Jobs, Schedulers


class Root(ScheduledActor):
    """Route every message: one `match` over small parts without threads.

    Runs on a thread of its own and never blocks. Agents post messages to it. The supervisor and the task handles ask
    it and wait for its answers.
    """

    def __init__(
        self,
        services: Services,
        server_lifecycle: ServerLifecycle,
        jobs: Jobs,
        schedulers: Schedulers,
        first_token: int = 0,
    ) -> None:
        """Create the root and its parts.

        Fencing tokens continue after `first_token`, the highest one in the journal.
        """
        super().__init__(schedulers.root)
        limits, clock, journal = services.settings.limits, services.clock, services.journal
        leases = Leases(first_token)
        agents = AgentContext(
            post=self._post,
            crashed=lambda address, error, urn: self._post(AgentCrash(address, error, urn)),
            scheduler=schedulers.agents,
            jobs=jobs,
            leases=leases,
            stream=services.stream,
            journal=journal,
            secrets=services.secrets,
            limits=limits,
            pipelines={kind: pipeline(kind, services) for kind in services.agents},
            agents=services.agents,
        )
        self._services = services
        services.people.post = self._post
        tasks, outbox, clocks = (
            TaskBook(),
            Outbox(journal, clock, services.secrets),
            Stopwatches(clock, self._post),
        )
        children = Children(agents, self._post)
        recorder = Recorder(services, self._post, schedulers.agents)
        open_requests = OpenRequests(children, recorder, outbox, clock, self._post)
        self._context = context = RootContext(
            post=self._post,
            limits=limits,
            clock=clock,
            journal=journal,
            jobs=jobs,
            outbox=outbox,
            tasks=tasks,
            leases=LeaseBook(leases),
            children=children,
            recorder=recorder,
            clocks=clocks,
            deadlines=Deadlines(clock, self._post),
            people=PeopleClocks(open_requests, clocks, services.approved),
            idle=Idle(tasks, children, limits.idle_agents),
            sessions=Sessions(tasks, children, limits.sessions, lambda ids: outbox.tell(lambda: journal.forget(ids))),
            plans=agents.plans,
            agents=services.agents,
        )
        self._open_requests = open_requests
        self._handover = HandOver(context)
        self._closing = Closing(server_lifecycle, tasks, clock, self._post)
        self._run_endings = RunEndings(context, self._receive)
        self._task_control = TaskControl(context, self._run_endings, self._end_if_over)
        self._agent_restarts = AgentRestarts(context, self._handover, services.settings.supervision, self._run_endings)
        self._stall_watch = StallWatch(
            context,
            open_requests,
            self._handover,
            self._run_endings,
            self._agent_restarts,
            schedulers.agents,
            services.settings.supervision.stall_seconds,
            self._end_if_over,
        )
        self._accepting = True
        self._broken: Exception | None = None
        self._stopped_by_supervisor = False

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
            self._context.outbox.flush()

    def _receive(self, message: object) -> Any:  # noqa: C901, PLR0912 - one match, a case a message
        match message:
            case Submit():
                return self._submit(message)
            case GiveOutputType():
                return self._give_output_type(message)
            case GiveSecrets():
                return self._give_secrets(message.task)
            case NotKept():
                return self._not_kept(message)
            case Restore():
                return self._restore(message.recovered_tasks)
            case Assign():
                return self._assign(message)
            case SubtaskEnding():
                return self._subtask_ended(message)
            case RoundEnding():
                return self._round_ended(message)
            case Cancel():
                return self._answer(self._task_control.cancel(message))
            case Pause() | Resume():
                return self._answer(self._task_control.pause(message))
            case Question() | ApprovalRequest():
                return self._ask_person(message)
            case CallAsks():
                return self._ask_for_call(message)
            case CallAsksNoMore(question=over):
                return self._context.people.withdraw_calls(over.task_id, over.id)
            case Answer() | ApprovalAnswer():
                self._context.people.answer(message)
                return self._answer(None)
            case RequestExpired():
                return self._context.people.expire(message)
            case Note():
                return self._keep_note(message)
            case BlackboardQuery():
                return self._context.recorder.read(message)
            case Deliver():
                return self._context.children.deliver(message)
            case RunHistory():
                return self._handover.start_with(self._context.tasks.get(message.assign.task_id), message)
            case AgentlessRun():
                return self._run_endings.end(message)
            case ConversationRests():
                return self._closing.rest(message.session)
            case CloseOpened():
                return self._closing.due(message)
            case LeaseStuck():
                return self._handover.stuck(message.token)
            case LeaseIdle():
                return self._handover.free(message.token)
            case AgentCrash():
                return self._agent_restarts.crashed(message)
            case LeaseHung():
                return self._agent_restarts.hung(message)
            case DeadlineDue():
                return self._watch_deadline(self._context.tasks.get(message.task_id))
            case StallCheck():
                return self._stall_watch.check(behind=message.behind)
            case RestartDue():
                return self._agent_restarts.due(message)
            case BlackboardCrashed():
                ended = self._services.settings.blackboard.tasks
                return self._context.recorder.rebuild(self._context.tasks.conversations(ended))
            case JournalBroken():
                return self._give_up(message.error)
            case GetStatus():
                return self._status()
            case GetProgress():
                return self._progress(self._context.tasks.get(message.task_id))
            case GetTasks():
                return {record.task.id: (record.task, record.done) for record in self._context.tasks.records}
            case CloseIntake():
                return self._close_intake()
            case StopAgents():
                return self._stop_agents()
            case _:
                msg = f"the root does not handle {type(message).__name__}"
                raise TypeError(msg)

    def _post(self, message: object) -> None:
        """Send this actor a message, from any thread; dropped after its end."""
        self.send(message)

    def _answer(self, value: object) -> concurrent.futures.Future[Any]:
        return self._context.outbox.answer(value)

    # Tasks and rounds

    def _submit(
        self, submit: Submit
    ) -> tuple[Task, concurrent.futures.Future[TaskResult], concurrent.futures.Future[None]]:
        """Take a task, unless its id or idempotency key is known.

        Returns:
            The task (the earlier one, if there is one), the future of its result, and a future that is done once the
            task is safe in the journal.
        """
        task, tasks, earlier = submit.task, self._context.tasks, submit.earlier
        same = tasks.find(task)
        if same is not None and (same.task == task or same.task.id != task.id):
            return same.task, same.done, same.safe or self._context.outbox.answer(None)
        if self._broken is not None:
            raise self._broken
        if not self._accepting:
            msg = "the supervisor is stopping and takes no more tasks"
            raise SupervisorStoppedError(msg)
        if self._context.deadlines.passed(task.deadline):
            msg = f"the deadline {task.deadline} has passed: give a later one, or none"
            raise TaskRefusedError(msg)
        from_journal = task.session is not None and not self._context.sessions.has(task.session)
        if from_journal and not earlier:
            msg = (
                f"the conversation {task.session!r} can't be continued: it does not exist, or it is no longer kept; "
                "limits.sessions sets how many are, and a journal keeps the others"
            )
            raise TaskRefusedError(msg)
        record = tasks.open(task, submit.target, self._context.clock.elapsed())
        self._services.secrets.keep(task)
        self._services.take(task)
        self._services.output_types.keep(task.id, task.output_schema, submit.output_type)
        if from_journal:
            tasks.learn(record.session, earlier)
            self._context.recorder.fill(earlier)
        self._context.outbox.keep(task.id, "", task, failed=lambda error: self._refuse(record, error))
        if submit.files is not None:
            self._services.checker.keep(task.id, submit.files, submit.contents)
            self._context.outbox.keep(task.id, "", FilesAtStart(task_id=task.id, files=dict(submit.files)))
        self._context.recorder.emit(
            EventName.TASK_SUBMITTED,
            task_id=task.id,
            request=task.request,
            target=task.target or "",
            labels=dict(task.labels),
        )
        for number, reason in submit.unmatched:
            self._context.recorder.emit(EventName.POLICY_UNMATCHED, task_id=task.id, rule=number, reason=reason)
        self._context.clocks.start(task.id, self._context.limits.under(task.limits).task_seconds, task.id)
        self._next_round(record)
        self._watch_deadline(record)
        self._stall_watch.arm()
        record.safe = self._context.outbox.answer(None)
        return record.task, record.done, record.safe

    def _watch_deadline(self, record: TaskRecord | None) -> None:
        deadline_cancel = self._context.deadlines.watch(record.task) if record is not None else None
        if deadline_cancel is not None:
            self._task_control.cancel(deadline_cancel)

    def _give_secrets(self, task: Task) -> concurrent.futures.Future[Any]:
        record = self._context.tasks.get(task.id)
        if record is not None:
            self._services.secrets.keep(task)
            if record.lacks:
                record.lacks = lacks(record, self._services)
                if not record.lacks:
                    self._task_control.pause(Resume(task_id=task.id))
        return self._answer(None)

    def _give_output_type(self, request: GiveOutputType) -> None:
        record = self._context.tasks.get(request.task_id)
        if record is not None:
            self._services.output_types.keep(request.task_id, record.task.output_schema, request.output_type)

    def _keep_note(self, note: Note) -> concurrent.futures.Future[Any]:
        if self._context.tasks.get(note.task_id) is None:
            msg = f"there is no task {note.task_id!r} that runs or waits: only such a task takes notes"
            raise TaskRefusedError(msg)
        self._context.outbox.keep(note.task_id, "", note)
        return self._answer(None)

    def _refuse(self, record: TaskRecord, error: Exception) -> None:
        """Note that a task could not be journaled, from the journal's thread."""
        record.refused = True
        self._post(NotKept(record.task.id, error))

    def _not_kept(self, refused: NotKept) -> None:
        """Roll back a task that can't be journaled; no agent knows it."""
        record = self._context.tasks.get(refused.task_id)
        if record is None:
            return
        for run in tuple(record.runs.values()):
            if run.token:
                self._handover.leave(record, run.run_id, run.token)
            else:
                self._context.leases.withdraw(run)
        self._context.clocks.drop(refused.task_id)
        self._context.deadlines.drop(refused.task_id)
        self._context.tasks.close(record)
        self._context.recorder.emit(
            EventName.TASK_ENDED, task_id=refused.task_id, outcome="refused", causes=[str(refused.error)]
        )
        self._services.drop(refused.task_id)  # after the event, in which its secrets are redacted
        record.tell(refused.error)

    def _next_round(self, record: TaskRecord, *, first: bool = False) -> None:
        assign = record.next_assign()
        if not assign.number:
            self._context.recorder.emit_of(EventName.ROUND_STARTED, assign, round=record.round, request=assign.request)
        self._handover.queue_run(record, assign, first=first)

    def _round_ended(self, ended: RoundEnding) -> None:
        record = self._running(ended.task_id, ended.run_id, ended.token, "RoundEnding")
        if record is None:
            return
        causes = [cause.reason for cause in ended.causes]
        self._context.recorder.emit_of(
            EventName.ROUND_ENDED,
            record.runs[ended.run_id],
            round=record.round,
            outcome=ended.outcome.value,
            causes=causes,
        )
        self._handover.leave(record, ended.run_id, ended.token)
        record.end_round(ended)
        if record.stopping is None and ended.outcome is Outcome.FINISHED and record.has_next_round:
            self._next_round(record, first=True)
            return
        for run in tuple(record.runs.values()):
            orphaned = Cancel(task_id=ended.task_id, run_id=run.run_id, reason="its HostAgent ended")
            self._task_control.cancel_run(record, orphaned)
        self._end_if_over(record)

    def _end_if_over(self, record: TaskRecord) -> None:
        if record.runs:
            return
        try:
            self._close(record)
        except BaseException as error:  # a closed task is out of reach of `on_stop`
            record.tell(error if isinstance(error, Exception) else SupervisorStoppedError(f"interrupted: {error!r}"))
            raise

    def _close(self, record: TaskRecord) -> None:
        context, task_id = self._context, record.task.id
        context.tasks.close(record)
        context.people.withdraw(task_id)
        context.clocks.drop(task_id)
        context.deadlines.drop(task_id)
        self._services.drop(task_id)
        for address in record.agents - {record.host}:
            context.idle.rest(address)
        result = task_result(record, context.clock.elapsed())
        context.outbox.keep(task_id, "", result, lambda: self._tell_ended(record, result), failed=record.tell)
        context.sessions.keep(record)
        self._closing.rest(record.session)

    def _tell_ended(self, record: TaskRecord, result: TaskResult) -> None:
        """Publish a task's result, once it is safe. Runs on any thread."""
        try:
            self._context.recorder.emit(
                EventName.TASK_ENDED,
                task_id=record.task.id,
                duration=result.seconds,
                outcome=result.outcome.value,
                causes=[cause.reason for cause in result.causes],
                artifacts=list(result.artifacts),
            )
        finally:
            record.tell(result)

    # Hand-offs

    def _assign(self, assign: Assign) -> None:
        record = self._context.tasks.get(assign.task_id)
        if record is None or record.stopping is not None:
            self._context.recorder.stale(assign.task_id, "Assign")
            return
        if record.knows(assign.run_id):
            return  # its HostAgent crashed, and repeats its last message after the restart
        record.runs[assign.run_id] = assign
        self._handover.queue_run(record, assign, is_journaled=True)

    def _subtask_ended(self, ended: SubtaskEnding) -> None:
        record = self._running(ended.task_id, ended.run_id, ended.token, type(ended).__name__)
        if record is None:
            return
        context, result = self._context, ended.result
        context.recorder.emit_of(
            EventName.SUBTASK_ENDED,
            record.runs[ended.run_id],
            outcome=result.outcome.value,
            causes=[cause.reason for cause in result.causes],
            duration=result.usage.seconds,
        )
        self._handover.leave(record, ended.run_id, ended.token)
        record.end_subtask(result)
        if record.target is None:
            context.outbox.keep(ended.task_id, record.run_id, ended, context.children.sender(record.host, ended))
        self._end_if_over(record)

    def _running(self, task_id: str, run_id: str, token: int, message: str) -> TaskRecord | None:
        record = self._context.tasks.get(task_id)
        # Fencing: the run is over, or its agent crashed, and another one has the run under a new token.
        if record is None or run_id not in record.runs or record.runs[run_id].token != token:
            self._context.recorder.stale(task_id, message)
            return None
        return record

    # Start and stop

    def _restore(self, recovered_tasks: tuple[RecoveredTask, ...]) -> None:
        """Resume the tasks of an earlier process, before any other message."""
        if self._broken is not None:
            raise self._broken
        for recovered in recovered_tasks:
            restore(recovered, self._context, self._services)
        for recovered in recovered_tasks:
            self._context.tasks.learn(recovered.record.session, recovered.conversation)
        self._context.recorder.fill(
            unique(task_id for recovered in recovered_tasks for task_id in recovered.conversation)
        )  # before the agents read the blackboard
        resume_runs(recovered_tasks, self._context, self._handover, self._task_control)
        for recovered in recovered_tasks:
            for ending in recovered.endings.values():
                self._receive(ending)
            if not recovered.endings:
                self._end_if_over(recovered.record)
            self._watch_deadline(self._context.tasks.get(recovered.record.task.id))
        self._closing.restored()
        if recovered_tasks:
            self._stall_watch.arm()

    def _give_up(self, error: Exception) -> None:
        """Stop everything: no side effect may begin that can't be journaled."""
        self._accepting, self._broken = False, error
        self._context.recorder.emit(EventName.JOURNAL_FAILED, error=str(error))
        for record in self._context.tasks.records:
            self._context.tasks.close(record)
            self._task_control.give_up(record, error)

    def _close_intake(self) -> tuple[concurrent.futures.Future[TaskResult], ...]:
        self._accepting = False
        records = self._context.tasks.records
        for record in records:
            if self._context.journal.survives:
                self._task_control.suspend(record)
            else:
                self._task_control.cancel(Cancel(task_id=record.task.id, reason="the supervisor stops"))
        return tuple(record.done for record in records)

    def _stop_agents(self) -> list[pykka.Future[Any]]:
        self._stopped_by_supervisor = True
        for record in self._context.tasks.records:
            self._task_control.void(record)
        return [*self._context.children.stop_all(), self._context.recorder.stop()]

    def on_stop(self) -> None:
        """Stop all tasks, and fail the futures of their results.

        Pykka calls it after every stop, also when the host program stops all actors.
        """
        for record in self._context.tasks.records:
            msg = f"the supervisor stopped before the task {record.task.id} ended"
            self._task_control.give_up(record, SupervisorStoppedError(msg))
        self._context.children.stop_all()
        self._context.recorder.stop()
        if not self._stopped_by_supervisor:  # otherwise the supervisor closes the stream, after its own last event
            self._context.recorder.close()

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Record the crash, and fail the futures of all results."""
        try:
            causes = [cause.reason for cause in Cause.chain(exception_value)] if exception_value is not None else []
            self._context.recorder.emit(EventName.AGENT_CRASHED, agent="supervisor", causes=causes)
        finally:
            self.on_stop()

    # People and readers

    def _ask_person(self, ask: Question | ApprovalRequest) -> None:
        record = self._running(ask.task_id, ask.run_id, ask.token, type(ask).__name__)
        if record is not None and record.stopping is None and not self._open_requests.has(ask.id):
            self._context.people.ask(ask)

    def _ask_for_call(self, asks: CallAsks) -> None:
        question = asks.question
        record = self._running(question.task_id, question.run_id, question.token, "CallAsks")
        if record is None or record.stopping is not None or record.suspended:
            asks.reply(None)
        else:
            self._context.people.ask(question, asks.reply)

    def _progress(self, record: TaskRecord | None) -> TaskProgress | None:
        if record is None:
            return None
        steps = self._services.budgets.task(record.task.id).used.get("steps", 0)
        return record.progress(int(steps), sum(len(self._context.plans.get(run, ())) for run in record.runs))

    def _status(self) -> SupervisorStatus:
        return SupervisorStatus(
            accepting=self._accepting,
            tasks=tuple(record.status() for record in self._context.tasks.records),
            agents=self._context.children.addresses,
            abandoned=self._context.leases.abandoned,
            approvals=self._open_requests.approvals,
            questions=self._open_requests.questions,
            ended_tasks=self._context.tasks.ended,
        )
