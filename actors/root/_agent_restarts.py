"""Crashes of agents: their runs are restarted, or ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.messages import AgentCrashedError, Cause, EventName, JobHungError, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.root._agents import Children
    from callboard.actors.root._dispatch import Dispatch
    from callboard.actors.root._handover import HandOver
    from callboard.actors.root._recorder import Recorder
    from callboard.actors.root._run_endings import RunEndings
    from callboard.actors.root._target_queues import LeaseBook
    from callboard.actors.root._tasks import TaskBook, TaskRecord
    from callboard.actors.runtime import Clock, Jobs, Restarts
    from callboard.messages import Assign


@dataclass(frozen=True)
class AgentCrash:
    """An agent's actor died."""

    address: str
    error: BaseException
    urn: str = ""
    """The URN of the actor; empty for the current one at the address."""


@dataclass(frozen=True)
class LeaseHung:
    """A job under a lease is long past its deadline."""

    token: int
    stack: str


@dataclass(frozen=True)
class RestartDue:
    """The backoff of a crashed agent's run is over."""

    run: Assign
    """The run, with the fencing token under which it crashed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AgentRestarts:
    """Restart the runs of crashed agents, or end them.

    Runs on the root's thread.
    """

    post: Callable[[object], None]
    """Send the root a message, from any thread."""
    tasks: TaskBook
    leases: LeaseBook
    jobs: Jobs
    clock: Clock
    children: Children
    recorder: Recorder
    restarts: Restarts
    handover: HandOver
    run_endings: RunEndings

    def register(self, dispatch: Dispatch) -> None:
        """Add the handlers of this part's messages."""
        dispatch.on(AgentCrash, self.crashed)
        dispatch.on(LeaseHung, self.hung)
        dispatch.on(RestartDue, self.due)

    def crashed(self, crash: AgentCrash) -> None:
        """Restart a dead agent's run, or end it with its causes.

        A restart resumes the run from the journal after a backoff. An agent without work is only removed: the next
        assignment to its address starts another one.
        """
        address = crash.address
        if crash.urn and not self.children.is_there(address, crash.urn):
            return  # another actor has replaced it
        error = crash.error
        if isinstance(error, AgentCrashedError) and error.__cause__ is not None:
            error = error.__cause__
        self.children.remove(address)
        agent_runs = [
            (record, run) for record in self.tasks.records for run in record.runs.values() if run.address == address
        ]
        runs = [(record, run) for record, run in agent_runs if run.token and run.run_id not in record.ending]
        for _, run in runs:  # before the event: its subscribers may rely on the refusal of late side effects
            self.leases.void(run.token)
            self.jobs.cancel(run.token)
        delay = self.restarts.crashed(address, error) if runs else None
        causes = Cause.chain(error, where=address)
        origin = {"task_id": runs[0][1].task_id, "run_id": runs[0][1].run_id} if len(runs) == 1 else {}
        self.recorder.emit(
            EventName.AGENT_CRASHED,
            **origin,
            agent=address,
            causes=[f"{cause.exception}: {cause.reason}" for cause in causes],
            restart=delay,
        )
        if runs and delay is None:
            causes = self._all_causes(address)
        for record, run in runs:
            if delay is None:
                self.run_endings.begin(record, run, Outcome.ERROR, causes)
            else:
                self._wait(record, run, delay)

    def hung(self, hung: LeaseHung) -> None:
        """Treat a hung job as a crash, whose late results are refused."""
        for record in self.tasks.records:
            for run in record.runs.values():
                if run.token == hung.token and run.run_id not in record.ending:
                    self.children.stop(run.address)
                    self.crashed(AgentCrash(run.address, JobHungError(run.run_id, hung.stack)))
                    return

    def due(self, due: RestartDue) -> None:
        """Requeue a crashed run in front, once its old lease is idle."""
        run = due.run
        record = self.tasks.get(run.task_id)
        if record is None or record.crashed.get(run.run_id) != run.token:
            return  # the run was stopped meanwhile
        del record.crashed[run.run_id]
        # Once the old lease is idle, it is freed, and the first run in the queue gets the target under a new token.
        self.leases.first(record.runs[run.run_id])
        self.handover.when_idle(run.token)

    def _wait(self, record: TaskRecord, run: Assign, delay: float) -> None:
        record.runs[run.run_id] = run.model_copy(update={"token": 0})
        record.crashed[run.run_id] = run.token
        self.clock.after(delay, lambda: self.post(RestartDue(run)))

    def _all_causes(self, address: str) -> tuple[Cause, ...]:
        """Return the causes of crashes at an address, the latest first."""
        errors = reversed(self.restarts.causes(address))
        self.restarts.forget(address)
        return tuple(cause for error in errors for cause in Cause.chain(error, where=address))
