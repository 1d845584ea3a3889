"""The tasks of the root: their requests, progress and results."""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.messages import (
    Assign,
    Cancel,
    RoundEnding,
    RunStatus,
    SubtaskResult,
    Target,
    Task,
    TaskProgress,
    TaskRefusedError,
    TaskResult,
    TaskStatus,
    has_order,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet


@dataclass(frozen=True)
class SettleGroups:
    """A request to hand over the ready members of a task's groups."""

    task_id: str


@dataclass
class TaskRecord:
    """An unfinished task. Belongs to the root's thread."""

    task: Task
    target: Target | None
    started: float
    """The time from which its duration counts, on the monotonic clock."""
    done: concurrent.futures.Future[TaskResult] = field(default_factory=concurrent.futures.Future)
    safe: concurrent.futures.Future[None] | None = None
    """Done once the task is safe in the journal; None for a recovered task, which is."""
    refused: bool = False
    """Whether the journal refused the task: it is a duplicate, or can't be written. The journal's thread sets it, since
    the root may hand a queued run over before it hears of that, and no agent may get the run."""
    round: int = 0
    """The number of the current round, from 1."""
    rounds: int = 0
    """The number of rounds that took a step; a round refused by its budget took none."""
    run_id: str = ""
    """The id of its HostAgent's run, or of its only subtask; empty before the first round."""
    runs: dict[str, Assign] = field(default_factory=dict)
    """The unfinished runs by id; a run that waits for its target or agent has the token 0."""
    subtasks: list[SubtaskResult] = field(default_factory=list)
    stopping: Cancel | None = None
    """The first cancel of the task, which determines the outcome."""
    ended: RoundEnding | SubtaskResult | None = None
    """The ending of the last round, or of the only subtask of a task with a target."""
    ended_rounds: list[RoundEnding] = field(default_factory=list)
    paused: bool = False
    lacks: str = ""
    """The things that the task lacks in this process, if it is paused for that and not by a person."""
    suspended: bool = False
    """Whether the task is left to the next process: no further action begins."""
    agents: set[str] = field(default_factory=set)
    """The addresses of agents that have worked on the task, and so may remember it."""
    begun: set[str] = field(default_factory=set)
    """The runs that agents have begun."""
    ending: set[str] = field(default_factory=set)
    """The runs without an agent, whose endings are being built from the journal."""
    crashed: dict[str, int] = field(default_factory=dict)
    """The runs that wait for their crashed agents' restart, with the fencing tokens of their old leases."""
    planned: dict[str, Assign] = field(default_factory=dict)
    """The members of groups that were not handed over yet, by run. They are in `runs`, too."""
    stopped_runs: set[str] = field(default_factory=set)
    """The members of groups that another member stopped."""
    worked: dict[str, float] = field(default_factory=dict)
    """Seconds of work of runs in earlier processes."""
    unsettled: dict[str, TaskRecord] = field(default_factory=dict, repr=False)
    """The book's tasks whose callers wait for a result; this one leaves them with its own."""
    session: str = field(init=False)
    """The id of its conversation: the task's own id, unless it is a follow-up."""
    host: str = field(init=False)
    """The address of its HostAgent."""

    def __post_init__(self) -> None:
        self.session = self.task.session or self.task.id
        self.host = f"host/{self.session}"

    def tell(self, end: TaskResult | Exception) -> None:
        """Settle the result's future, from any thread; the first call wins."""
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # the task ended while it was being suspended
            if isinstance(end, TaskResult):
                self.done.set_result(end)
            else:
                self.done.set_exception(end)
        self.unsettled.pop(self.task.id, None)

    def knows(self, run_id: str) -> bool:
        """Return whether a run is unfinished or over."""
        return run_id in self.runs or any(done.run_id == run_id for done in self.subtasks)

    def remembers(self, assign: Assign) -> bool:
        """Return whether the journal may have memory that an assignment needs."""
        return assign.address in self.agents or self.task.session is not None

    @property
    def active_runs(self) -> tuple[str, ...]:
        """The runs that work, or wait for a person or a target.

        A HostAgent is none of them while its subtasks are unfinished, and neither are subtasks that wait for others.
        """
        subtasks = tuple(run_id for run_id, run in self.runs.items() if run.number and run_id not in self.planned)
        return subtasks or tuple(run_id for run_id in self.runs if run_id not in self.planned)

    @property
    def working_subtasks(self) -> int:
        """The number of subtasks that work, or have begun to."""
        handed_over = (run for run in self.runs.values() if run.number and run.run_id not in self.planned)
        return sum(bool(run.token) or run.run_id in self.begun for run in handed_over)

    @property
    def has_next_round(self) -> bool:
        """True if the plan has another round."""
        return self.round < (_rounds_of(self.task) or 0)

    @property
    def earlier_subtasks(self) -> tuple[SubtaskResult, ...]:
        """The results that its next run sees, an origin's earlier ones included."""
        return (*(() if self.task.origin is None else self.task.origin.subtasks), *self.subtasks)

    def next_assign(self) -> Assign:
        """Create the assignment of the next round, or of the only subtask.

        All other assignments come from HostAgents.
        """
        self.round += 1
        task = self.task
        ordered = has_order(task.plan)
        step = task.plan[self.round - 1] if task.plan and not ordered else None
        alone, origin = self.target is not None, task.origin
        number = 0 if not alone else 1 if origin is None else origin.number
        self.run_id = self.run_id or f"{task.id}~{number}"
        target = None if self.target is None else self.target.of_run(self.run_id)
        assign = Assign(
            task_id=task.id,
            run_id=self.run_id,
            address=target.address if target is not None else self.host,
            request=step.request if step is not None else task.request,
            task_request=task.request or (step.request if step is not None else "")
            if origin is None
            else origin.task_request,
            round=self.round,
            number=number,
            target=target,
            plan_step=step,
            plan=task.plan if ordered else (),
            session=self.session,
            subtasks=self.earlier_subtasks,
            made=() if origin is None else origin.made,
            dry_run=task.dry_run,
            limits=task.limits,
            output_schema=None if self.has_next_round else task.output_schema,
            checks=(*(step.checks if step is not None else ()), *(() if self.has_next_round else task.checks)),
            judge=None if self.has_next_round else task.judge,
            judge_request="" if self.has_next_round or task.judge is None else _whole_request(task),
            last_round=not self.has_next_round,
        )
        self.runs[assign.run_id] = assign
        return assign

    def end_round(self, ended: RoundEnding) -> None:
        """Add the results of a round."""
        self.ended = ended
        self.rounds += ended.usage.steps > 0
        self.ended_rounds.append(ended)

    def end_subtask(self, result: SubtaskResult) -> None:
        """Add a subtask's result; without a HostAgent it ends the task."""
        self.subtasks.append(result)
        if self.target is not None:
            self.rounds += result.usage.steps > 0
            self.ended = result

    def progress(self, steps: int, planned: int) -> TaskProgress:
        """Return the progress, with the steps that were begun and planned."""
        subtasks = [run for run in self.runs.values() if run.number]
        running = sum(run.token != 0 for run in subtasks)
        return TaskProgress(
            task_id=self.task.id,
            rounds=self.round,
            planned_rounds=_rounds_of(self.task),
            ended_subtasks=len(self.subtasks),
            running_subtasks=running,
            waiting_subtasks=len(subtasks) - running,
            steps=steps,
            planned_steps=planned,
        )

    def status(self) -> TaskStatus:
        """Return the progress, for the supervisor's status."""
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


def _whole_request(task: Task) -> str:
    """Return a task's request with the steps of its plan."""
    return "\n".join(filter(None, (task.request, *(f"- {step.request}" for step in task.plan))))


def _rounds_of(task: Task) -> int | None:
    """Return the number of rounds that a plan takes; None without one."""
    return 1 if has_order(task.plan) else len(task.plan) or None


def ended_progress(task: Task, result: TaskResult) -> TaskProgress:
    """Return the progress of a task that is over."""
    return TaskProgress(
        task_id=task.id,
        over=True,
        rounds=result.rounds,
        planned_rounds=_rounds_of(task),
        ended_subtasks=len(result.subtasks),
        steps=result.usage.steps,
    )


REMEMBERED = 10_000
"""The number of ended tasks whose ids are remembered, to refuse a second use."""


class TaskBook:
    """The unfinished tasks, and the ids of the latest ended ones.

    Runs on the root's thread.
    """

    def __init__(self) -> None:
        self._open_tasks: dict[str, TaskRecord] = {}
        self._ended_tasks: dict[str, str] = {}
        """The latest ended tasks and their conversations, in the order of their ends."""
        self._open_task_counts: Counter[str] = Counter()  # the number of unfinished tasks by conversation
        self._ended_count = 0
        self._unsettled: dict[str, TaskRecord] = {}

    def open(self, task: Task, target: Target | None, now: float) -> TaskRecord:
        """Take a task.

        Raises:
            TaskRefusedError: If an unfinished task, or one of the latest ended ones, has the same id.
        """
        if task.id in self._open_tasks or task.id in self._ended_tasks:
            msg = f"the task id {task.id!r} was used before: give each task its own, or none"
            raise TaskRefusedError(msg)
        record = TaskRecord(task, target, now)
        self.restore(record)
        return record

    def restore(self, record: TaskRecord) -> None:
        """Take a task of an earlier process."""
        self._open_tasks[record.task.id] = self._unsettled[record.task.id] = record
        record.unsettled = self._unsettled
        self._open_task_counts[record.session] += 1

    def find(self, task: Task) -> TaskRecord | None:
        """Find an unfinished task by its id, or its idempotency key."""
        same = self._open_tasks.get(task.id)
        if same is None and task.key is not None:
            same = next((record for record in self._open_tasks.values() if record.task.key == task.key), None)
        return same

    def get(self, task_id: str) -> TaskRecord | None:
        """Return an unfinished task."""
        return self._open_tasks.get(task_id)

    def running(self, task_id: str, run_id: str, token: int) -> TaskRecord | None:
        """Return the task of an agent's message, unless that is stale.

        Fencing: otherwise the run is over, or its agent crashed, and another one has the run under a new token.
        """
        record = self._open_tasks.get(task_id)
        if record is None or run_id not in record.runs or record.runs[run_id].token != token:
            return None
        return record

    def close(self, record: TaskRecord) -> None:
        """Remove a task that is over."""
        del self._open_tasks[record.task.id]
        self._open_task_counts[record.session] -= 1
        if not self._open_task_counts[record.session]:
            del self._open_task_counts[record.session]
        self._ended_count += 1
        self._remember(record.task.id, record.session)

    def learn(self, session: str, task_ids: Iterable[str]) -> None:
        """Note the ended tasks of a conversation, which the journal has."""
        for task_id in task_ids:
            if task_id not in self._open_tasks and task_id not in self._ended_tasks:
                self._remember(task_id, session)

    def _remember(self, task_id: str, session: str) -> None:
        self._ended_tasks[task_id] = session
        if len(self._ended_tasks) > REMEMBERED:
            del self._ended_tasks[next(iter(self._ended_tasks))]

    def conversations(self, ended: int) -> tuple[str, ...]:
        """List the tasks of all running and of the latest ended conversations.

        Args:
            ended: The highest number of ended conversations.

        Returns:
            The ids of the tasks, grouped by conversation, the running ones first.
        """
        tasks: dict[str, list[str]] = {}
        task_sessions = (
            *self._ended_tasks.items(),
            *((record.task.id, record.session) for record in self._open_tasks.values()),
        )
        for task_id, session in task_sessions:
            tasks.setdefault(session, []).append(task_id)
        running = dict.fromkeys(record.session for record in self._open_tasks.values())
        latest = [session for session in dict.fromkeys(reversed(self._ended_tasks.values())) if session not in running]
        return tuple(task_id for session in (*running, *reversed(latest[:ended])) for task_id in tasks[session])

    @property
    def talking(self) -> AbstractSet[str]:
        """The conversations that have an unfinished task."""
        return self._open_task_counts.keys()

    def talks(self, session: str) -> bool:
        """Return whether a conversation has an unfinished task."""
        return session in self._open_task_counts

    def session(self, task_id: str) -> str:
        """Return a task's conversation; the task itself if it is unknown."""
        record = self._open_tasks.get(task_id)
        return record.session if record is not None else self._ended_tasks.get(task_id, task_id)

    @property
    def unsettled(self) -> tuple[TaskRecord, ...]:
        """The tasks whose callers wait for a result, unfinished or over."""
        return tuple(self._unsettled.copy().values())  # another thread may settle one meanwhile

    @property
    def records(self) -> tuple[TaskRecord, ...]:
        """The unfinished tasks, the oldest first."""
        return tuple(self._open_tasks.values())

    @property
    def ended(self) -> int:
        """The number of ended tasks since the start."""
        return self._ended_count
