"""Tasks: what was asked for, how far it is, and how it ended."""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.actors.states import unique
from callboard.messages import (
    Assign,
    Cancel,
    Cause,
    Outcome,
    RoundEnded,
    RunStatus,
    SubtaskResult,
    Target,
    Task,
    TaskRefusedError,
    TaskResult,
    TaskStatus,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet


@dataclass
class TaskRecord:
    """One task that is not over. Belongs to the switchboard's thread."""

    task: Task
    target: Target | None
    started: float
    """On the clock that never jumps."""
    done: concurrent.futures.Future[TaskResult] = field(default_factory=concurrent.futures.Future)
    safe: concurrent.futures.Future[None] | None = None
    """Whether it is kept; None for another process's, which is."""
    round: int = 0
    """The round that runs, from 1."""
    rounds: int = 0
    """Rounds that took a step; one that its budget refused is none."""
    runs: dict[str, Assign] = field(default_factory=dict)
    """What agents work on or wait for, by run id; token 0 while it waits for its target."""
    subtasks: list[SubtaskResult] = field(default_factory=list)
    stopping: Cancel | None = None
    """The stop that was asked for first; its outcome stays."""
    ended: RoundEnded | SubtaskResult | None = None
    """What ended the last round, or the lone subtask."""
    ended_rounds: list[RoundEnded] = field(default_factory=list)
    paused: bool = False
    lacks: str = ""
    """What it is paused for, if nobody asked for that: what it can't go on without in this process."""
    suspended: bool = False
    """Whether it is left to the next process: no action begins any more."""
    agents: set[str] = field(default_factory=set)
    """Where it has had work done, and so may have memory."""
    begun: set[str] = field(default_factory=set)
    """Runs that agents have worked on."""
    ending: set[str] = field(default_factory=set)
    """Runs that nobody goes on with, and whose end is being made from the journal."""
    crashed: dict[str, int] = field(default_factory=dict)
    """Runs whose agent crashed, and that wait to go on; with the leases under which they were."""
    worked: dict[str, float] = field(default_factory=dict)
    """Seconds that runs had worked in another process."""
    session: str = field(init=False)
    """The conversation that it belongs to: its own, unless it is a follow-up."""
    host: str = field(init=False)
    """Where its HostAgent lives."""

    def __post_init__(self) -> None:
        self.session = self.task.session or self.task.id
        self.host = f"host/{self.session}"

    def tell(self, end: TaskResult | Exception) -> None:
        """Tell whoever waits how it ended, or why nobody will; from any thread. The first word holds."""
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # it ended while it was being suspended
            if isinstance(end, TaskResult):
                self.done.set_result(end)
            else:
                self.done.set_exception(end)

    def knows(self, run_id: str) -> bool:
        """Say whether a run is under way, or over."""
        return run_id in self.runs or any(done.run_id == run_id for done in self.subtasks)

    def remembers(self, assign: Assign) -> bool:
        """Say whether the journal may have something of the memory that an assignment goes on with."""
        return assign.address in self.agents or self.task.session is not None

    @property
    def has_next_round(self) -> bool:
        """Whether the plan has another step."""
        return self.round < len(self.task.plan)

    def next_assign(self) -> Assign:
        """Make the next assignment that does not come from a HostAgent: a round, or the lone subtask."""
        self.round += 1
        task = self.task
        step = task.plan[self.round - 1] if task.plan else None
        alone = self.target is not None
        assign = Assign(
            task_id=task.id,
            run_id=f"{task.id}/{1 if alone else 0}",
            address=self.target.address if self.target is not None else self.host,
            request=step.request if step is not None else task.request,
            task_request=task.request or (step.request if step is not None else ""),
            round=self.round,
            number=1 if alone else 0,
            target=self.target,
            plan_step=step,
            session=self.session,
            subtasks=tuple(self.subtasks),
        )
        self.runs[assign.run_id] = assign
        return assign

    def end_round(self, ended: RoundEnded) -> None:
        """Keep what a round left."""
        self.ended = ended
        self.rounds += ended.usage.steps > 0
        self.ended_rounds.append(ended)

    def end_subtask(self, result: SubtaskResult) -> None:
        """Keep what a subtask left; without a HostAgent it is the whole task's end."""
        self.subtasks.append(result)
        if self.target is not None:
            self.rounds += result.usage.steps > 0
            self.ended = result

    def result(self, now: float) -> TaskResult:
        """Say how it ended."""
        ended = self.ended
        context: tuple[SubtaskResult | RoundEnded, ...] = (*self.subtasks, *self.ended_rounds)
        outcome = ended.outcome if ended is not None else Outcome.ERROR
        causes = ended.causes if ended is not None else ()
        if self.stopping is not None:
            outcome = self.stopping.outcome
            causes = (Cause(reason=self.stopping.reason, where="supervisor"),)
        return TaskResult(
            task_id=self.task.id,
            outcome=outcome,
            causes=causes,
            output=ended.output if ended is not None else None,
            comment=ended.comment if ended is not None else "",
            artifacts=unique(path for done in context for path in done.artifacts),
            changed=unique(each for done in context for each in done.changed),
            actions=sum(done.actions for done in context),
            subtasks=tuple(self.subtasks),
            rounds=self.rounds,
            usage=sum((done.usage for done in context), Usage()),
            seconds=max(0.0, now - self.started),
        )

    def status(self) -> TaskStatus:
        """Say how far it is."""
        runs = tuple(
            RunStatus(run_id=run.run_id, address=run.address, request=run.request, leased=run.token != 0)
            for run in self.runs.values()
        )
        return TaskStatus(
            task_id=self.task.id,
            request=self.task.request,
            round=self.round,
            runs=runs,
            ended_subtasks=len(self.subtasks),
            cancelling=self.stopping is not None,
            paused=self.paused,
            lacks=self.lacks,
        )


REMEMBERED = 10_000
"""How many ended tasks' ids are remembered, to refuse a second use."""


class TaskBook:
    """All tasks that are not over. Part of the switchboard; runs on its thread."""

    def __init__(self) -> None:
        self._open: dict[str, TaskRecord] = {}
        self._ended: dict[str, str] = {}  # the latest and their conversations, in the order of their ends
        self._talks: Counter[str] = Counter()  # of conversations, how many of their tasks are not over
        self._count = 0

    def open(self, task: Task, target: Target | None, now: float) -> TaskRecord:
        """Take a task.

        Raises:
            TaskRefusedError: If its id is in use, or one of the latest tasks had it.
        """
        if task.id in self._open or task.id in self._ended:
            msg = f"the task id {task.id!r} was used before: give each task its own, or none"
            raise TaskRefusedError(msg)
        record = TaskRecord(task, target, now)
        self.restore(record)
        return record

    def restore(self, record: TaskRecord) -> None:
        """Take a task that another process began."""
        self._open[record.task.id] = record
        self._talks[record.session] += 1

    def find(self, task: Task) -> TaskRecord | None:
        """Give the task that is not over and has this one's id, or else its idempotency key."""
        same = self._open.get(task.id)
        if same is None and task.key is not None:
            same = next((record for record in self._open.values() if record.task.key == task.key), None)
        return same

    def get(self, task_id: str) -> TaskRecord | None:
        """Give a task that is not over."""
        return self._open.get(task_id)

    def close(self, record: TaskRecord) -> None:
        """Take a task off the books."""
        del self._open[record.task.id]
        self._talks[record.session] -= 1
        if not self._talks[record.session]:
            del self._talks[record.session]
        self._count += 1
        self._remember(record.task.id, record.session)

    def learn(self, session: str, task_ids: Iterable[str]) -> None:
        """Note which tasks of a conversation the journal has; those that are not over are on the books."""
        for task_id in task_ids:
            if task_id not in self._open and task_id not in self._ended:
                self._remember(task_id, session)

    def _remember(self, task_id: str, session: str) -> None:
        self._ended[task_id] = session
        if len(self._ended) > REMEMBERED:
            del self._ended[next(iter(self._ended))]

    def conversations(self, ended: int) -> tuple[str, ...]:
        """Name the tasks of all conversations that run, one after the other, and then of as many that ended last."""
        tasks: dict[str, list[str]] = {}
        known = (*self._ended.items(), *((record.task.id, record.session) for record in self._open.values()))
        for task_id, session in known:
            tasks.setdefault(session, []).append(task_id)
        running = dict.fromkeys(record.session for record in self._open.values())
        latest = [session for session in dict.fromkeys(reversed(self._ended.values())) if session not in running]
        return tuple(task_id for session in (*running, *reversed(latest[:ended])) for task_id in tasks[session])

    @property
    def talking(self) -> AbstractSet[str]:
        """The conversations that have a task which is not over."""
        return self._talks.keys()

    def talks(self, session: str) -> bool:
        """Say whether a task of a conversation is not over."""
        return session in self._talks

    def session(self, task_id: str) -> str:
        """Give the conversation that a task belongs or belonged to; itself for one that is not known."""
        record = self._open.get(task_id)
        return record.session if record is not None else self._ended.get(task_id, task_id)

    @property
    def records(self) -> tuple[TaskRecord, ...]:
        """All tasks that are not over, the oldest first."""
        return tuple(self._open.values())

    @property
    def ended(self) -> int:
        """How many are over."""
        return self._count


def never_ran(assign: Assign, outcome: Outcome, causes: tuple[Cause, ...]) -> SubtaskResult:
    """Make the result of a subtask that no agent began, or of which nothing is known."""
    return SubtaskResult(
        run_id=assign.run_id,
        number=assign.number,
        request=assign.request,
        address=assign.address,
        outcome=outcome,
        causes=causes,
    )
