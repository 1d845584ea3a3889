"""Crashes: an agent that died, or whose job hangs, goes on from the journal, as often as supervision allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.root._requests import AgentCrashed, LeaseHung, RestartDue
from callboard.actors.runtime import ChildSpec, Restart, Restarts
from callboard.messages import AgentCrashedError, Cause, EventName, JobHungError, Outcome

if TYPE_CHECKING:
    from callboard.actors.root._endings import Endings
    from callboard.actors.root._handover import HandOver
    from callboard.actors.root._parts import Parts
    from callboard.actors.root._tasks import TaskRecord
    from callboard.config import SupervisionSettings
    from callboard.messages import Assign


class Crashes:
    """Part of the switchboard; runs on its thread."""

    def __init__(
        self,
        parts: Parts,
        hands: HandOver,
        settings: SupervisionSettings,
        endings: Endings,
    ) -> None:
        self._parts = parts
        self._hands = hands
        self._endings = endings
        self._spec = ChildSpec(name="agent", restart=Restart.TRANSIENT, **settings.model_dump(exclude={"hung_seconds"}))
        self._restarts = Restarts(parts.clock)

    def crashed(self, crash: AgentCrashed) -> None:
        """Let the work of an agent that died go on from the journal, or end it with the chain of causes.

        An agent that had no work is only forgotten; the next work at its address starts another one.
        """
        parts, address = self._parts, crash.address
        if crash.urn and not parts.children.is_there(address, crash.urn):
            return  # another one lives there by now
        error = crash.error
        if isinstance(error, AgentCrashedError) and error.__cause__ is not None:
            error = error.__cause__
        parts.children.remove(address)
        found = [
            (record, run) for record in parts.tasks.records for run in record.runs.values() if run.address == address
        ]
        runs = [(record, run) for record, run in found if run.token and run.run_id not in record.ending]
        for _, run in runs:  # before the crash is told: who hears of it may count on its deeds being refused
            parts.leases.void(run.token)
            parts.jobs.cancel(run.token)
        delay = self._restarts.crashed(address, self._spec, error) if runs else None
        causes = Cause.chain(error, where=address)
        parts.recorder.emit(
            EventName.AGENT_CRASHED,
            agent=address,
            causes=[f"{cause.exception}: {cause.reason}" for cause in causes],
            restart=delay,
        )
        if runs and delay is None:
            causes = self._all_causes(address)
        for record, run in runs:
            if delay is None:
                self._endings.begin(record, run, Outcome.ERROR, causes)
            else:
                self._wait(record, run, delay)

    def hung(self, hung: LeaseHung) -> None:
        """Take a hung job for a crash of its agent: its word and its deeds are refused from now on."""
        for record in self._parts.tasks.records:
            for run in record.runs.values():
                if run.token == hung.token and run.run_id not in record.ending:
                    self._parts.children.stop(run.address)
                    self.crashed(AgentCrashed(run.address, JobHungError(run.run_id, hung.stack)))
                    return

    def due(self, due: RestartDue) -> None:
        """Let a crashed run go on once nothing works under its old lease any more; it is the first in the queue."""
        run = due.run
        record = self._parts.tasks.get(run.task_id)
        if record is None or record.crashed.get(run.run_id) != run.token:
            return  # it was stopped meanwhile
        del record.crashed[run.run_id]
        self._parts.leases.first(record.runs[run.run_id])
        self._hands.when_idle(run.token)

    def _wait(self, record: TaskRecord, run: Assign, delay: float) -> None:
        record.runs[run.run_id] = run.model_copy(update={"token": 0})
        record.crashed[run.run_id] = run.token
        post = self._parts.post
        self._parts.clock.after(delay, lambda: post(RestartDue(run)))

    def _all_causes(self, address: str) -> tuple[Cause, ...]:
        """Chain the crashes, the last one first."""
        errors = reversed(self._restarts.causes(address))
        self._restarts.forget(address)
        return tuple(cause for error in errors for cause in Cause.chain(error, where=address))
