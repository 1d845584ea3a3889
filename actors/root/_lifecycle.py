"""Control of tasks, and endings of runs without agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.agent import last_ending, tell_failure
from callboard.actors.root._handover import received_at
from callboard.actors.root._requests import AgentlessRun
from callboard.actors.root._task_outcome import never_ran
from callboard.actors.states import archive, evolve, fold
from callboard.config import HostLog
from callboard.messages import (
    AgentStatus,
    Cause,
    EventName,
    Outcome,
    Pause,
    RoundEnding,
    SubtaskEnding,
    SupervisorStoppedError,
    agent_kind,
    subtask_ended,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from callboard.actors.root._context import RootContext
    from callboard.actors.root._tasks import TaskRecord
    from callboard.actors.states import AgentStateManager, Run
    from callboard.config import Limits
    from callboard.journal import Row
    from callboard.messages import Assign, Cancel, Resume


_log = HostLog()

RunEnd = SubtaskEnding | RoundEnding


class RunEndings:
    """Endings of runs that have no agent, built from the journal.

    Runs on the root's thread.
    """

    def __init__(self, context: RootContext, send: Callable[[RunEnd], None]) -> None:
        """Create it; `send` takes an ending as if from the agent."""
        self._context = context
        self._send = send

    def begin(self, record: TaskRecord, run: Assign, outcome: Outcome, causes: tuple[Cause, ...]) -> None:
        """Read the journal, then end a run that was begun.

        Until then the run keeps its target. If the process dies before, the next one resumes the run, or ends it in the
        same way.
        """
        context = self._context
        record.runs[run.run_id] = run
        record.ending.add(run.run_id)
        context.people.withdraw(run.task_id, run.run_id)
        context.clocks.drop(run.run_id)

        def read() -> None:
            context.journal.read(
                run.task_id,
                lambda rows: context.post(AgentlessRun(run, outcome, causes, rows)),
                conversation=not run.number,
            )

        context.outbox.tell(read)

    def end(self, request: AgentlessRun) -> None:
        """Send a run's ending, unless its dead agent's own came first."""
        run = request.run
        record = self._context.tasks.get(run.task_id)
        if record is None or run.run_id not in record.ending:
            return
        record.ending.discard(run.run_id)
        if run.run_id in record.runs:
            self._send(self._ending(request))

    def _ending(self, request: AgentlessRun) -> RunEnd:
        run, rows = request.run, request.rows
        if isinstance(rows, Exception):
            _log.error("the journal rows of %s could not be read: %s", run.run_id, rows)
            return unknown_end(run, request.outcome, request.causes)
        try:
            spec = self._context.agents.get(agent_kind(run.address))
            if spec is None:  # a kind that only an earlier process had: no machine here can fold its rows
                return unknown_end(run, request.outcome, request.causes)
            return ending_of(
                run,
                rows,
                self._context.limits,
                spec.machine,
                request.outcome,
                request.causes,
                self._tell_failure,
            )
        except BaseException:  # an edge: its history may be the reason why the run's agent crashed
            _log.exception("the journal rows of %s could not be folded", run.run_id)
            return unknown_end(run, request.outcome, request.causes)

    def _tell_failure(self, run: Run) -> None:
        state = (AgentStatus.ERROR if run.outcome is Outcome.ERROR else AgentStatus.FAIL).value
        tell_failure(self._context.recorder.emit, self._context.journal, run, state)


def ending_of(  # noqa: PLR0917 - the facts about the run, and its ending
    run: Assign,
    rows: Sequence[Row],
    limits: Limits,
    machine: type[AgentStateManager],
    outcome: Outcome,
    causes: tuple[Cause, ...],
    failed: Callable[[Run], None],
) -> RunEnd:
    """Build a run's ending from the rows of its task or conversation.

    An ending that the agent had sent stands. So does an outcome that the run had before, except a success that the
    agent could not report before it crashed. `failed` is called with a run that is ended here without success.
    """
    received = received_at(run.address, rows)
    folded_run = fold(received, limits, machine)
    if folded_run is None or (folded_run.assign.run_id, folded_run.assign.round) != (run.run_id, run.round):
        return unknown_end(run, outcome, causes)
    folded_run = evolve(folded_run, assign=run, subtasks=run.subtasks if run.number else folded_run.subtasks)
    if folded_run.over:
        sent = last_ending(received)
        if isinstance(sent, RunEnd) and sent.run_id == run.run_id:
            return sent.model_copy(update={"token": run.token})
    ended = _ended(folded_run, outcome, causes)
    if ended.outcome is not Outcome.FINISHED:
        failed(ended)
    ending = archive(ended)
    return ending if isinstance(ending, RunEnd) else unknown_end(run, outcome, causes)


def _ended(run: Run, outcome: Outcome, causes: tuple[Cause, ...]) -> Run:
    """End a run; the usage and results of an interrupted step count."""
    unfinished = run.unfinished
    if unfinished is not None:
        run = evolve(run.with_lost(unfinished.usage, unfinished.done), unfinished=None)
    unreported = run.outcome is Outcome.FINISHED and outcome is Outcome.ERROR
    return evolve(run, outcome=outcome, causes=causes) if run.outcome is None or unreported else run


def unknown_end(run: Assign, outcome: Outcome, causes: tuple[Cause, ...]) -> RunEnd:
    """Build the ending of a run without any known results."""
    if run.number:
        return subtask_ended(run.task_id, run.token, never_ran(run, outcome, causes))
    return RoundEnding(task_id=run.task_id, run_id=run.run_id, token=run.token, outcome=outcome, causes=causes)


class TaskControl:
    """Cancel, pause, resume and suspend tasks. Runs on the root's thread."""

    def __init__(self, context: RootContext, endings: RunEndings, end_if_over: Callable[[TaskRecord], None]) -> None:
        self._context = context
        self._run_endings = endings
        self._end_if_over = end_if_over

    def cancel(self, cancel: Cancel) -> bool:
        """Stop a task, or one of its runs.

        Returns:
            Whether this cancel stopped it. The first one wins; a task that is over stays as it is.
        """
        context, record = self._context, self._context.tasks.get(cancel.task_id)
        if record is None or record.stopping is not None:
            return False
        if cancel.run_id != "*":
            stopped = self.cancel_run(record, cancel)
            self._end_if_over(record)
            return stopped
        record.stopping, record.paused, record.lacks = cancel, False, ""
        context.recorder.emit(
            EventName.TASK_CANCELLING, task_id=cancel.task_id, outcome=cancel.outcome.value, reason=cancel.reason
        )
        context.people.withdraw(cancel.task_id)
        context.outbox.keep(cancel.task_id, "", cancel)
        for run in tuple(record.runs.values()):
            self._stop_run(record, run, cancel)
        self._end_if_over(record)
        return True

    def cancel_run(self, record: TaskRecord, cancel: Cancel) -> bool:
        """Stop one run of a task, and return whether it exists."""
        run = record.runs.get(cancel.run_id)
        if run is None:
            return False
        context = self._context
        context.recorder.emit_of(EventName.TASK_CANCELLING, run, outcome=cancel.outcome.value, reason=cancel.reason)
        context.people.withdraw(record.task.id, run.run_id)
        context.outbox.keep(record.task.id, run.run_id, cancel)
        self._stop_run(record, run, cancel)
        if run.run_id not in record.runs and run.number and record.target is None:  # no agent will send its ending
            ended = subtask_ended(run.task_id, run.token, record.subtasks[-1])
            context.outbox.keep(run.task_id, record.run_id, ended, context.children.sender(record.host, ended))
        return True

    def _stop_run(self, record: TaskRecord, run: Assign, cancel: Cancel) -> None:
        """Stop a run; the cancel's row covers the agent's message."""
        context = self._context
        if run.token:
            context.leases.void(run.token)
            context.outbox.tell(context.children.sender(run.address, cancel))
        else:
            self.stop_queued(record, run, cancel)

    def stop_queued(self, record: TaskRecord, run: Assign, cancel: Cancel) -> None:
        """Stop a run that waits for its target or agent."""
        context, cause = self._context, Cause(reason=cancel.reason, where="supervisor")
        context.leases.withdraw(run)
        context.clocks.go_on(run.task_id, f"queue {run.run_id}")
        if run.run_id in record.begun:
            under = run.model_copy(update={"token": record.crashed.pop(run.run_id, 0)})
            self._run_endings.begin(record, under, cancel.outcome, (cause,))
            return
        del record.runs[run.run_id]
        if run.number:
            record.end_subtask(never_ran(run, cancel.outcome, (cause,)))

    def pause(self, wish: Pause | Resume) -> bool:
        """Pause or resume a task, and return whether that changed anything."""
        context, record = self._context, self._context.tasks.get(wish.task_id)
        paused = isinstance(wish, Pause)
        if record is None or record.stopping is not None:
            return False
        if record.paused is paused and not (paused and record.lacks):  # a person's pause replaces one for a lack
            return False
        if not paused and any(agent_kind(run.address) not in context.agents for run in record.runs.values()):
            return False  # no kind of agent here can resume that run
        record.paused, record.lacks = paused, ""
        context.recorder.emit(EventName.TASK_PAUSED if paused else EventName.TASK_RESUMED, task_id=wish.task_id)
        context.outbox.keep(wish.task_id, "", wish)
        move = context.clocks.stop if paused else context.clocks.go_on
        move(wish.task_id, "pause")
        for run in record.runs.values():
            move(run.run_id, "pause")
            if run.token:
                context.leases.pause(run.token, paused=paused or record.suspended)
                context.outbox.tell(context.children.sender(run.address, wish))
        return True

    def suspend(self, record: TaskRecord) -> None:
        """Leave a task to the next supervisor on the journal.

        No further action begins. A running tool call may end; other jobs are cancelled.
        """
        record.suspended = True
        self._context.people.withdraw_calls(record.task.id)
        for run in record.runs.values():
            if run.token:
                self._context.leases.suspend(run.token)
                if not self._context.leases.acting(run.token):
                    self._context.jobs.cancel(run.token)
        msg = f"the supervisor stopped; the task {record.task.id} is kept in the journal, and the next one resumes it"
        record.tell(SupervisorStoppedError(msg))

    def void(self, record: TaskRecord) -> None:
        """Void a task's leases, so that no more side effects commit."""
        for run in record.runs.values():
            if run.token:
                self._context.leases.void(run.token)

    def give_up(self, record: TaskRecord, error: Exception) -> None:
        """Stop a task at once, without messages to its agents.

        It is used when nothing can be journaled, and so published, any longer.
        """
        self.void(record)
        for run in record.runs.values():
            if run.token:
                self._context.leases.suspend(run.token)
                self._context.jobs.cancel(run.token)
        record.tell(error)
