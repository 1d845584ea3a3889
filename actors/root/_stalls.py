"""The watch for stalled runs, which no message will continue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.actors.root._agent_restarts import AgentCrash
from callboard.actors.root._run_endings import AgentlessRun
from callboard.messages import Cause, EventName, Outcome, RunStalledError

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.root._agent_restarts import AgentRestarts
    from callboard.actors.root._dispatch import Dispatch
    from callboard.actors.root._handover import HandOver
    from callboard.actors.root._open_requests import OpenRequests
    from callboard.actors.root._outbox import Outbox
    from callboard.actors.root._recorder import Recorder
    from callboard.actors.root._rounds import Rounds
    from callboard.actors.root._target_queues import LeaseBook
    from callboard.actors.root._task_end import TaskEnd
    from callboard.actors.root._tasks import TaskBook, TaskRecord
    from callboard.actors.runtime import Clock, Jobs, LoopScheduler
    from callboard.messages import Assign, Seconds

LOOKS = 3
"""The number of checks in a row in which a run shows no progress before it counts as stalled."""

_Key = tuple[str, str, int]
"""A task, one of its runs, and the run's fencing token. The run is empty for a task without any, and both are for a
target that is leased to no run."""


@dataclass(frozen=True)
class StallCheck:
    """A check for stalled runs is due, or has passed all mailboxes."""

    behind: bool


@dataclass(kw_only=True, eq=False)
class StallWatch:
    """Find runs that nothing will continue, and restart or end them.

    A run that is not over is paused, has a job, waits for a person, for a restart or for its subtasks, or has a place
    in the queue of its target. Otherwise its next message was lost. Messages that are only on their way are told from
    lost ones without any timing: a check counts only after a mark has passed through the journal and through the
    mailboxes of the agents, behind all that was sent before.

    Runs on the root's thread.
    """

    post: Callable[[object], None]
    """Send the root a message, from any thread."""
    seconds: Seconds
    """The time within which a stalled run is found."""
    tasks: TaskBook
    leases: LeaseBook
    jobs: Jobs
    clock: Clock
    scheduler: LoopScheduler
    """The scheduler of the agents."""
    outbox: Outbox
    recorder: Recorder
    open_requests: OpenRequests
    handover: HandOver
    rounds: Rounds
    agent_restarts: AgentRestarts
    task_end: TaskEnd
    _armed: bool = field(default=False, init=False)
    _earlier_stalls: dict[_Key, int] = field(default_factory=dict, init=False)
    """The stalled runs at the begin of the current check, with their numbers of jobs."""
    _looks: dict[_Key, int] = field(default_factory=dict, init=False)

    def register(self, dispatch: Dispatch) -> None:
        """Add the handlers of this part's messages."""
        dispatch.on(StallCheck, lambda message: self.check(behind=message.behind))

    def arm(self) -> None:
        """Schedule the next check, unless one is scheduled."""
        if not self._armed:
            self._armed = True
            self.clock.after(self.seconds / (LOOKS + 1), lambda: self.post(StallCheck(behind=False)))

    def check(self, *, behind: bool) -> None:
        """Begin a check, or end it behind all earlier messages."""
        if not behind:
            self._earlier_stalls = self._find_stalled()
            self.outbox.tell(lambda: self.scheduler.behind(lambda: self.post(StallCheck(behind=True))))
            return
        stalls = self._find_stalled()
        self._looks = {
            key: self._looks.get(key, 0) + 1 for key, jobs in stalls.items() if self._earlier_stalls.get(key) == jobs
        }
        for key in [key for key, looks in self._looks.items() if looks >= LOOKS]:
            del self._looks[key]
            self._mend(*key)
        self._armed = False
        if self.tasks.unsettled:
            self.arm()

    def _find_stalled(self) -> dict[_Key, int]:
        """Return the runs that wait for nothing, with their numbers of jobs."""
        self.jobs.reap()
        working = {job.token for job in self.jobs.running}
        asking = {ask.run_id for ask in self.open_requests.questions} | {
            ask.run_id for ask in self.open_requests.approvals
        }
        stalls, held = dict[_Key, int](), set[int]()
        for record in self.tasks.unsettled:
            held |= {run.token for run in record.runs.values()} | set(record.crashed.values())
            if record.paused or record.suspended:
                continue
            if not record.runs:
                stalls[record.task.id, "", 0] = 0
            for run in record.runs.values():
                if run.token not in working and run.run_id not in asking and not self._waits(record, run):
                    stalls[record.task.id, run.run_id, run.token] = self.leases.jobs(run.token)
        return stalls | {("", "", token): 0 for token in self.leases.tokens - held - working}

    def _waits(self, record: TaskRecord, run: Assign) -> bool:
        """Return whether a run waits for its target, restart or subtasks."""
        if run.run_id in record.ending:
            return False
        if run.run_id in record.planned:
            return any(other.number and other.run_id not in record.planned for other in record.runs.values())
        if run.token:
            return not run.number and len(record.runs) > 1
        return run.run_id in record.crashed or self.leases.queues(run)

    def _mend(self, task_id: str, run_id: str, token: int) -> None:
        """Report a stalled run, then restart it or end it."""
        error = RunStalledError(run_id or task_id)
        record = next((record for record in self.tasks.unsettled if record.task.id == task_id), None)
        run = record.runs.get(run_id) if record is not None else None
        address = run.address if run is not None else ""
        self.recorder.emit(
            EventName.RUN_STALLED, task_id=task_id, run_id=run_id, agent=address, reason=str(error), token=token
        )
        if record is None:
            self.handover.free(token)
        elif run is None:
            self._settle(record, error)
        elif run_id in record.ending:
            causes = Cause.chain(error, where=address)
            self.rounds.end_agentless(AgentlessRun(run, Outcome.ERROR, causes, error))
        elif run_id in record.planned:
            self.rounds.groups.settle(record)
        elif token:
            self.agent_restarts.crashed(AgentCrash(address, error))
        else:
            self.handover.queue_run(record, run, is_journaled=True)

    def _settle(self, record: TaskRecord, error: RunStalledError) -> None:
        """End a task without runs, or one whose result was not delivered."""
        if self.tasks.get(record.task.id) is not None:
            self.task_end.end_if_over(record)
        else:
            record.tell(error)
