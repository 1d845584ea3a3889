"""Crashes of agents: their runs are restarted, or ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.root._requests import AgentCrash, LeaseHung, RestartDue
from callboard.actors.runtime import Restarts
from callboard.messages import AgentCrashedError, Cause, EventName, JobHungError, Outcome

if TYPE_CHECKING:
    from callboard.actors.root._context import RootContext
    from callboard.actors.root._handover import HandOver
    from callboard.actors.root._lifecycle import RunEndings
    from callboard.actors.root._tasks import TaskRecord
    from callboard.config import SupervisionSettings
    from callboard.messages import Assign


class AgentRestarts:
    """Restart the runs of crashed agents, or end them.

    Runs on the root's thread.
    """

    def __init__(
        self,
        context: RootContext,
        handover: HandOver,
        settings: SupervisionSettings,
        endings: RunEndings,
    ) -> None:
        self._context = context
        self._handover = handover
        self._run_endings = endings
        self._restarts = Restarts(context.clock, settings)

    def crashed(self, crash: AgentCrash) -> None:
        """Restart a dead agent's run, or end it with its causes.

        A restart resumes the run from the journal after a backoff. An agent without work is only removed: the next
        assignment to its address starts another one.
        """
        context, address = self._context, crash.address
        if crash.urn and not context.children.is_there(address, crash.urn):
            return  # another actor has replaced it
        error = crash.error
        if isinstance(error, AgentCrashedError) and error.__cause__ is not None:
            error = error.__cause__
        context.children.remove(address)
        agent_runs = [
            (record, run) for record in context.tasks.records for run in record.runs.values() if run.address == address
        ]
        runs = [(record, run) for record, run in agent_runs if run.token and run.run_id not in record.ending]
        for _, run in runs:  # before the event: its subscribers may rely on the refusal of late side effects
            context.leases.void(run.token)
            context.jobs.cancel(run.token)
        delay = self._restarts.crashed(address, error) if runs else None
        causes = Cause.chain(error, where=address)
        context.recorder.emit(
            EventName.AGENT_CRASHED,
            agent=address,
            causes=[f"{cause.exception}: {cause.reason}" for cause in causes],
            restart=delay,
        )
        if runs and delay is None:
            causes = self._all_causes(address)
        for record, run in runs:
            if delay is None:
                self._run_endings.begin(record, run, Outcome.ERROR, causes)
            else:
                self._wait(record, run, delay)

    def hung(self, hung: LeaseHung) -> None:
        """Treat a hung job as a crash, whose late results are refused."""
        for record in self._context.tasks.records:
            for run in record.runs.values():
                if run.token == hung.token and run.run_id not in record.ending:
                    self._context.children.stop(run.address)
                    self.crashed(AgentCrash(run.address, JobHungError(run.run_id, hung.stack)))
                    return

    def due(self, due: RestartDue) -> None:
        """Requeue a crashed run in front, once its old lease is idle."""
        run = due.run
        record = self._context.tasks.get(run.task_id)
        if record is None or record.crashed.get(run.run_id) != run.token:
            return  # the run was stopped meanwhile
        del record.crashed[run.run_id]
        # Once the old lease is idle, it is freed, and the first run in the queue gets the target under a new token.
        self._context.leases.first(record.runs[run.run_id])
        self._handover.when_idle(run.token)

    def _wait(self, record: TaskRecord, run: Assign, delay: float) -> None:
        record.runs[run.run_id] = run.model_copy(update={"token": 0})
        record.crashed[run.run_id] = run.token
        post = self._context.post
        self._context.clock.after(delay, lambda: post(RestartDue(run)))

    def _all_causes(self, address: str) -> tuple[Cause, ...]:
        """Return the causes of crashes at an address, the latest first."""
        errors = reversed(self._restarts.causes(address))
        self._restarts.forget(address)
        return tuple(cause for error in errors for cause in Cause.chain(error, where=address))
