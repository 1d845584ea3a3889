"""The restore: recovered tasks are taken over, and their runs resumed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callboard.actors.root._recovery import book_usage
from callboard.actors.states import unique
from callboard.messages import AgentKind, EventName, Pause, Recovered, Resume, agent_kind, with_results

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Collection, Sequence

    from callboard.actors.commands import OutputType
    from callboard.actors.processing import Services
    from callboard.actors.root._clocks import Stopwatches
    from callboard.actors.root._conversations import Closing
    from callboard.actors.root._dispatch import Dispatch
    from callboard.actors.root._handover import HandOver
    from callboard.actors.root._intake import Intake
    from callboard.actors.root._open_requests import PeopleClocks
    from callboard.actors.root._outbox import Outbox
    from callboard.actors.root._recorder import Recorder
    from callboard.actors.root._recovery import RecoveredTask
    from callboard.actors.root._rounds import Rounds
    from callboard.actors.root._stalls import StallWatch
    from callboard.actors.root._subtask_groups import SubtaskGroups
    from callboard.actors.root._task_control import TaskControl
    from callboard.actors.root._task_end import TaskEnd
    from callboard.actors.root._tasks import TaskBook, TaskRecord
    from callboard.config import Limits
    from callboard.messages import Assign, Task


@dataclass(frozen=True)
class Restore:
    """A request to resume the tasks of an earlier process."""

    recovered_tasks: tuple[RecoveredTask, ...]


@dataclass(frozen=True)
class GiveSecrets:
    """A request to take the secrets of an unfinished task.

    The task is resumed if it was paused only for lack of them. The answer is a future that is done once that is safe.
    """

    task: Task


@dataclass(frozen=True)
class ConfirmTask:
    """The machine that submitted a recovered task still wants it.

    The task is resumed if it was paused only until that was known.
    """

    task_id: str


@dataclass(frozen=True)
class GiveOutputType:
    """A request to take the output type of an unfinished task."""

    task_id: str
    output_type: OutputType[Any]


LOST_SECRETS = "its secrets were lost with their process"


@dataclass(frozen=True, kw_only=True, eq=False)
class Restoration:
    """Resume the tasks of an earlier process, before any other message.

    Runs on the root's thread.
    """

    tasks: TaskBook
    outbox: Outbox
    recorder: Recorder
    clocks: Stopwatches
    people: PeopleClocks
    closing: Closing
    handover: HandOver
    rounds: Rounds
    task_control: TaskControl
    task_end: TaskEnd
    stall_watch: StallWatch
    intake: Intake
    groups: SubtaskGroups
    limits: Limits
    services: Services

    def register(self, dispatch: Dispatch) -> None:
        """Add the handlers of this part's messages."""
        dispatch.on(Restore, lambda message: self._restore(message.recovered_tasks))
        dispatch.on(GiveSecrets, lambda message: self._give_secrets(message.task))
        dispatch.on(ConfirmTask, lambda message: self._confirm(message.task_id))
        dispatch.on(GiveOutputType, self._give_output_type)

    def _restore(self, recovered_tasks: tuple[RecoveredTask, ...]) -> None:
        if self.intake.broken is not None:
            raise self.intake.broken
        for recovered in recovered_tasks:
            self._take_over(recovered)
        for recovered in recovered_tasks:
            self.tasks.learn(recovered.record.session, recovered.conversation)
        self.recorder.fill(
            unique(task_id for recovered in recovered_tasks for task_id in recovered.conversation)
        )  # before the agents read the blackboard
        self._resume_runs(recovered_tasks)
        for recovered in recovered_tasks:
            for ending in recovered.endings.values():
                self.rounds.end(ending)
            if not recovered.endings:
                self.task_end.end_if_over(recovered.record)
            self.intake.watch_deadline(self.tasks.get(recovered.record.task.id))
        self.closing.restored()
        if recovered_tasks:
            self.stall_watch.arm()

    def _take_over(self, recovered: RecoveredTask) -> None:
        """Restore a task's record, clocks, budgets and approvals.

        The runs whose agents had sent their endings get the fencing tokens under which these were sent, so that the
        endings are not refused as stale.
        """
        record, task_id = recovered.record, recovered.record.task.id
        self.tasks.restore(record)
        self.outbox.keep(task_id, "", Recovered(task_id=task_id))
        self.recorder.emit(
            EventName.TASK_RECOVERED, task_id=task_id, runs=len(record.runs), labels=dict(record.task.labels)
        )
        if record.stopping is None and (record.lacks or not record.paused):
            self._pause(record, lacks(record, self.services, recovered.endings))
        record.worked = recovered.worked
        limits = self.limits.under(record.task.limits)
        self.clocks.start(task_id, limits.task_seconds, task_id, spent=recovered.worked.get(task_id, 0.0))
        if record.paused:
            self.clocks.stop(task_id, "pause")
        self.services.take(record.task)
        if recovered.files is not None:
            self.services.check_inputs.keep(task_id, recovered.files)
        book_usage(recovered, self.services.budgets)
        for approved in recovered.approved:
            self.people.remember(approved)
        for note in recovered.foreseen:
            self.services.may_change.foresee(task_id, note)
            self.services.own_files.foresee(task_id, note)
        for ending in recovered.endings.values():
            record.runs[ending.run_id] = record.runs[ending.run_id].model_copy(update={"token": ending.token})

    def _pause(self, record: TaskRecord, lacking: str) -> None:
        """Pause a task that lacks something here, or resume it.

        The pause ends when a process has everything that the task needs, or when a person resumes it.
        """
        task_id, was_paused = record.task.id, record.paused
        record.lacks, record.paused = lacking, bool(lacking)
        if lacking:
            if not was_paused:
                self.outbox.keep(task_id, "", Pause(task_id=task_id, lacks=lacking))
            self.recorder.emit(EventName.TASK_PAUSED, task_id=task_id, reason=lacking)
        elif was_paused:
            self.outbox.keep(task_id, "", Resume(task_id=task_id))
            self.recorder.emit(EventName.TASK_RESUMED, task_id=task_id)

    def _resume_runs(self, recovered_tasks: Sequence[RecoveredTask]) -> None:
        """Resume the runs of restored tasks: begun ones first, then queued ones."""
        for is_begun in (True, False):
            for recovered in recovered_tasks:
                record = recovered.record
                waiting = [
                    run
                    for run in record.runs.values()
                    if not run.token
                    and (run.run_id in recovered.begun) is is_begun
                    and run.run_id not in record.planned
                ]
                for run in waiting:
                    if agent_kind(run.address) not in self.services.agents and record.stopping is None:
                        continue  # the task is paused, and can't be resumed here
                    if record.stopping is not None and not is_begun:
                        self.task_control.stop_queued(record, run, record.stopping)
                    else:
                        self.handover.queue_run(record, _with_subtasks(run, recovered), is_journaled=True)
        for recovered in recovered_tasks:
            self._resume_groups(recovered)
        for ask in (ask for recovered in recovered_tasks for ask in recovered.asks.values()):
            self.people.restore(ask)

    def _resume_groups(self, recovered: RecoveredTask) -> None:
        record = recovered.record
        record.planned = {run_id: _with_subtasks(run, recovered) for run_id, run in record.planned.items()}
        if record.stopping is not None:
            for run in tuple(record.planned.values()):
                self.task_control.stop_queued(record, run, record.stopping)
        self.groups.settle(record)

    def _give_secrets(self, task: Task) -> concurrent.futures.Future[Any]:
        record = self.tasks.get(task.id)
        if record is not None:
            self.services.secrets.keep(task)
            self._resume_complete(record)
        return self.outbox.answer(None)

    def _confirm(self, task_id: str) -> concurrent.futures.Future[Any]:
        record = self.tasks.get(task_id)
        if record is not None:
            self.services.confirmed.add(task_id)
            self._resume_complete(record)
        return self.outbox.answer(None)

    def _resume_complete(self, record: TaskRecord) -> None:
        """Resume a task that was paused for something it has now."""
        if record.lacks:
            record.lacks = lacks(record, self.services)
            if not record.lacks:
                self.groups.settle(record)  # first: members that an earlier failure stops must not take a step
                self.task_control.pause(Resume(task_id=record.task.id))

    def _give_output_type(self, request: GiveOutputType) -> None:
        record = self.tasks.get(request.task_id)
        if record is not None:
            self.services.output_types.keep(request.task_id, record.task.output_schema, request.output_type)


def _with_subtasks(assign: Assign, recovered: RecoveredTask) -> Assign:
    """Put back the subtasks that the journal leaves out of an assignment."""
    host = recovered.host if assign.host is not None else None
    if host is not None:
        return with_results(assign, host.subtasks, host.made)
    if assign.subtasks:
        return assign
    origin = recovered.record.task.origin
    return assign.model_copy(
        update={"subtasks": recovered.record.earlier_subtasks, "made": () if origin is None else origin.made}
    )


def lacks(record: TaskRecord, services: Services, endings: Collection[str] = ()) -> str:
    """Name the things that a recovered task lacks in this process.

    A task needs its own secrets, or they could not be redacted. It needs the models of its agents and the surfaces of
    their targets, or it could only fail.

    Args:
        record: The task.
        services: The services of this process.
        endings: Runs whose agents have sent their endings; they need nothing more, unless another round follows.

    Returns:
        The reasons, separated by semicolons; empty if the task lacks nothing.
    """
    secret_names = services.secrets.names(record.task.id)
    reasons = [LOST_SECRETS] if any(name not in secret_names for name in record.task.secrets) else []
    origin = record.task.origin
    if origin is not None and record.task.id not in services.confirmed:
        reasons.append(f"the machine {origin.submitter} was not asked yet whether it still wants the work")
    reasons += services.check_inputs.lacking(record.task)
    if record.task.judge is not None:
        lacking = services.task_models.lacking_judge(record.task)
        reasons += [lacking] if lacking else []
    surfaces = {surface.name for surface in services.toolbox.surfaces}
    steps = record.task.plan[max(0, record.round - 1) :]
    follows = bool(steps) and all(step.target is not None for step in steps)  # then a HostAgent needs no model
    for run in record.runs.values():
        if run.run_id in endings and not record.has_next_round:
            continue
        kind = agent_kind(run.address)
        if kind not in services.agents:
            reasons.append(f"there is no kind of agent {kind!r}; there are: {', '.join(services.agents)}")
        elif not services.agents[kind].has_model or record.task.routine is not None:
            pass
        elif record.task.model is not None:
            lacking = services.task_models.lacking(record.task.model)
            reasons += [lacking] if lacking else []
        elif kind not in services.models and not (kind == AgentKind.HOST and follows):
            reasons.append(f"no model is set for {kind} agents")
        if run.target is not None and run.target.server not in surfaces:
            reasons.append(f"no surface is called {run.target.server!r}")
    return "; ".join(dict.fromkeys(reasons))
