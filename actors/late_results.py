"""Results of an agent's jobs: journaled in order, and late ones dropped.

A result is late if a cancel, a deadline or a crash has voided its lease since its job began, or if the agent has begun
another job since. A late result is not journaled, and an agent only reports it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from callboard.actors.processing import tell_phases
from callboard.actors.states import evolve, moves
from callboard.journal import Row
from callboard.messages import (
    Assign,
    AssignGroup,
    Captured,
    Cause,
    EventName,
    Message,
    RoundEnding,
    StepDone,
    StepFailure,
    SubtaskEnding,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from callboard.actors.commands import Secrets
    from callboard.actors.processing import AgentPipeline
    from callboard.actors.runtime import EventStream, Lease
    from callboard.actors.states import AgentState, AgentStateManager, Move, Run
    from callboard.journal import Journal


@dataclass(frozen=True, slots=True)
class StepMoves:
    """The moves after a step, worked out when its result is journaled.

    They hold only for the run that the job began with.
    """

    applied: Run
    moves: Sequence[tuple[Run, Move, Run]]
    """Each move, between the run before and the run after it."""
    final_run: Run


@dataclass(frozen=True, slots=True)
class JobReturned:
    """The result of one of this agent's jobs."""

    task_id: str
    token: int
    job: int
    result: Message
    run: Run
    """The run that the job began with."""
    phases: Sequence[dict[str, Any]] = ()
    """The phases that ran, for the event of a step's end."""
    step_moves: StepMoves | None = None
    """The moves after it, unless the run changes before the agent handles it."""
    next_result: JobReturned | None = None
    """The result of the state that it leads to, if that state only decides: both are journaled together."""


def is_stale(returned: JobReturned, run: Run) -> bool:
    """Return whether a result is not that of the run's current job.

    A cancel increments the job's number, and a restart has another fencing token.
    """
    return run.over or not run.busy or (returned.token, returned.job) != (run.assign.token, run.job)


class JobResults:
    """Journal the results of an agent's jobs, then deliver them."""

    def __init__(
        self,
        address: str,
        machine: type[AgentStateManager],
        stream: EventStream,
        journal: Journal,
        secrets: Secrets,
    ) -> None:
        self.address = address
        self._machine = machine
        self._stream = stream
        self._journal = journal
        self._secrets = secrets

    def drop(self, returned: JobReturned) -> None:
        """Report a stale result, and the phases that ran for it."""
        emit = self._stream.emit
        tell_phases(emit, returned.run, returned.phases)  # no event of a step's end has them
        result_type = type(returned.result).__name__
        emit(
            EventName.MESSAGE_STALE,
            task_id=returned.task_id,
            run_id=returned.run.assign.run_id,
            agent=self.address,
            message=result_type,
        )

    def take(  # noqa: PLR0917 - bound
        self,
        send: Callable[[JobReturned], None],
        run: Run,
        lease: Lease,
        processing: AgentPipeline,
        valid: bool,  # noqa: FBT001 - bound
        result: Message | BaseException,
    ) -> None:
        """Journal the result of a job, then `send` it to this agent.

        A result is late if its lease was valid when the job began (`valid`) and has been voided since. The agent gets
        it, to log it, but the journal does not: a cancel is on its way. An ending is never late, whatever stops its
        task. While the supervisor stops, failures are not journaled: the stop may have caused them, because it cancels
        jobs and closes the services that they use. The next process resumes the step from its rows in the journal.

        Runs on the event loop's thread. `send` is no attribute: a stopped agent is freed without the garbage collector.
        """
        assign, spent = run.assign, lease.spent
        if isinstance(result, BaseException):
            result = StepFailure(phase=None, causes=Cause.chain(result, where=self.address))
        if self._secrets.known:
            result = self._secrets.redact(assign.task_id, result)
        phases = spent.phases if spent is not None else ()
        step_moves = self._step_moves(run, result)
        next_result = self._decided_next(step_moves, lease, processing)
        returned = JobReturned(assign.task_id, assign.token, run.job, result, run, phases, step_moves, next_result)
        # Fencing: `Lease.void` takes the same lock, and a cancel is journaled after the void. So these rows come before
        # the cancel's row in the journal, or the lease is void here and they are late.
        with lease.order:
            is_late = valid and not lease.valid and not isinstance(result, RoundEnding | SubtaskEnding)
            if not is_late and not (lease.suspended and _failed(result)):
                retry = partial(self.take, send, run, lease, processing, valid)
                if next_result is None:
                    self._keep(send, run, returned, retry)
                else:
                    rows = (self._row(run, returned), self._row(run, next_result))
                    self._journal.append(
                        rows,
                        partial(send, returned),
                        lambda _: self._keep(send, run, replace(returned, next_result=None), retry),
                    )
                return
        send(replace(returned, job=0, next_result=None))  # no job has the number 0: the agent only logs it

    def _keep(
        self,
        send: Callable[[JobReturned], None],
        run: Run,
        returned: JobReturned,
        retry: Callable[[Exception], None],
    ) -> None:
        """Journal one result; `retry` takes the error if it can't be written."""

        def refused(error: Exception) -> None:
            if isinstance(error, ValueError):  # only this row can't be written, not the journal
                retry(error)

        self._journal.append((self._row(run, returned),), partial(send, returned), refused)

    def _row(self, run: Run, returned: JobReturned) -> Row:
        message = returned.result.lean() if isinstance(returned.result, Assign | AssignGroup) else returned.result
        return Row(self._stream.steady(), returned.task_id, run.assign.run_id, message, returned.job)

    def _step_moves(self, run: Run, result: Message) -> StepMoves | None:
        """Work out the moves after a step that has ended."""
        if not isinstance(result, StepDone):
            return None
        try:
            applied = run.apply(result)
            decided_moves = tuple(moves(self._machine, applied))
        except BaseException:  # the agent works it out again when it handles the result, and fails there
            return None
        return StepMoves(applied, decided_moves, decided_moves[-1][2] if decided_moves else applied)

    def _decided_next(
        self, step_moves: StepMoves | None, lease: Lease, processing: AgentPipeline
    ) -> JobReturned | None:
        """Return the result of the next state, if that only decides.

        Both results are journaled together, so that an ending or an assignment waits for no commit of its own. Their
        rows are adjacent, and the agent handles both in one turn: no message comes between them, here or in a fold.
        """
        if step_moves is None or lease.paused or lease.suspended or not lease.valid:
            return None
        run = step_moves.final_run
        state = self._machine.get_state(run.status)
        if not state.only_decides or run.waiting or run.over:
            return None
        run = evolve(run, busy=True, job=run.job + 1)
        result = decided(state, processing, run)
        if isinstance(result, BaseException):
            return None
        if self._secrets.known:
            result = self._secrets.redact(run.assign.task_id, result)
        return JobReturned(run.assign.task_id, run.assign.token, run.job, result, run)


def decided(state: AgentState, processing: AgentPipeline, run: Run) -> Message | BaseException:
    """Run work that awaits nothing; return its message or exception."""
    try:
        handling = state.handle(processing, run)
        handling.send(None)
    except StopIteration as ended:
        return cast("Message", ended.value)
    except BaseException as error:  # an edge: states may be the host program's
        return error
    handling.close()
    return RuntimeError("a state with `only_decides` must not await anything")


def _failed(result: Message) -> bool:
    """Return whether a job failed or could not observe its target."""
    return isinstance(result, StepFailure) or (isinstance(result, Captured) and result.observation is None)
