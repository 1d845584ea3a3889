"""A subtask that another machine does, in the terms of both."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from callboard.actors.processing import AnsweredElsewhere
from callboard.messages import (
    ANY_MACHINE,
    ApprovalAnswer,
    ApprovalRequest,
    AskedQuestion,
    Cause,
    Outcome,
    PlanStep,
    Question,
    RequestExpired,
    SubtaskResult,
    Task,
    TaskOrigin,
    TaskResult,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from callboard.actors.processing import RemoteTerms
    from callboard.fleet._engine import Bucket, BucketEntry, StoredFile
    from callboard.fleet._placements import Placement
    from callboard.fleet._work_messages import Settled, TaskSignals
    from callboard.messages import Assign, Target

WAIT, GIVE_UP = "wait", "give up"
"""The answers to the question about a machine that is away."""
AWAY = "away"
"""The id there of the question about a machine that is away, which is asked here."""


@dataclass(eq=False)
class SubmittedTask:
    """A subtask that another machine does. Belongs to the event loop."""

    machine: str
    """The machine; `any` until one is chosen."""
    task_id: str
    """Its id there: the same after a crash here, so that it is not done twice."""
    task_here: str
    """The task here that it is a subtask of."""
    run_id: str
    """The subtask here."""
    address: str
    """The agent here that stands for the other machine's."""
    target_there: str
    """The id of its target there; empty for the whole machine."""
    pool: str = ""
    """The pool that any machine's target is of; empty if the work names its machine."""
    keeps_machine: bool = False
    """Whether the machine that did the pool's last work gets it."""
    needs: dict[str, str] = field(default_factory=dict)
    """The labels that its machine must have."""
    claim: int | None = None
    """The revision of its machine's claim, if any machine may do it."""
    signals: TaskSignals | None = None
    """All that was said to it. None before it was sent; for work of any machine, until something is said to it."""
    is_loaded: bool = False
    """Whether its entries in the engine are known: those of an earlier process, too."""
    is_sent: bool = False
    """Whether this process has sent it."""
    told_entries: dict[Bucket, BucketEntry] = field(default_factory=dict)
    """The last that its machine told, as it stands in the engine's buckets."""
    requests: tuple[Question | ApprovalRequest, ...] = ()
    approvals_there: frozenset[str] = frozenset()
    """The approvals that are asked there alone."""
    settled: dict[str, Settled] = field(default_factory=dict)
    """The requests that were settled there, by their ids there."""
    result: TaskResult | None = None
    files: dict[str, StoredFile] = field(default_factory=dict)
    """The files of its result, by their paths there."""
    sent_files: tuple[StoredFile, ...] = ()
    """The files that were stored for it by this process."""
    paths: dict[str, str] = field(default_factory=dict)
    """The paths of these files here, by those there."""
    is_paused: bool | None = None
    """Whether it is paused; None if that was not said since this process began."""
    is_given_up: bool = False
    """Whether its end is not waited for any more."""
    waits_anyway: bool = False
    """Whether a person said that it waits for its machine, which is away."""
    is_told_away: bool = False
    """Whether it was told that no machine is there that could do it."""
    refusals: tuple[Cause, ...] = ()
    """The reasons of the machines that have refused it."""
    waits_for: tuple[str, str] | None = None
    """The request that a person is asked here: its id there and here."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while its signals are changed."""

    @property
    def is_unplaced(self) -> bool:
        """True while no machine is chosen."""
        return self.machine == ANY_MACHINE

    @property
    def requirement(self) -> str:
        """The property of its machines, as in "no machine that ..."."""
        return f"has {self.pool} and has not refused the work" if self.refusals else f"has {self.pool}"

    @property
    def is_given(self) -> bool:
        """True once a machine may have it.

        Its signals or its claim are written before it is sent.
        """
        return self.signals is not None or self.claim is not None

    def move(self, placement: Placement | None) -> None:
        """Have it done by a machine, which knows nothing of it yet."""
        self.machine = ANY_MACHINE if placement is None else placement.machine
        self.target_there = "" if placement is None else placement.claim.target
        self.claim = None if placement is None else placement.revision
        self.signals, self.is_sent, self.is_loaded = None, False, False


def needs_of(binds: Mapping[str, JsonValue]) -> dict[str, str]:
    needs = binds.get("needs")
    return {name: str(value) for name, value in needs.items()} if isinstance(needs, dict) else {}


def away_id(assign: Assign) -> str:
    return f"{assign.run_id}~away"


def away_question(task: SubmittedTask, assign: Assign) -> Question:
    text = (
        f"No machine that {task.requirement} is there. Wait for one, or give the work up?"
        if task.is_unplaced
        else f"The machine {task.machine} is away. Wait for it, or give up its work, which may be done in part there?"
    )
    return Question(
        id=away_id(assign),
        task_id=assign.task_id,
        run_id=assign.run_id,
        token=assign.token,
        address=assign.address,
        questions=(AskedQuestion(text=text, choices=(WAIT, GIVE_UP)),),
        machine_away=task.machine,
    )


def unknown_end(task: SubmittedTask) -> TaskResult:
    """Return the result of a task whose end is not waited for."""
    if task.is_unplaced:
        cause = Cause(reason=f"no machine that {task.requirement} was there, so nothing was done")
        return TaskResult(task_id=task.task_id, outcome=Outcome.FAILED, causes=(cause, *task.refusals))
    reason = f"the machine {task.machine} was not waited for: what it has done is not known"
    return TaskResult(
        task_id=task.task_id, outcome=Outcome.FAILED, causes=(Cause(reason=reason),), comment=reason, failed_actions=1
    )


def id_there(task: SubmittedTask, run_id: str, id_here: str) -> str:
    return f"{task.task_id}~{id_here.removeprefix(f'{run_id}~')}"


def settled_here(task: SubmittedTask, settled: Settled | None, id_here: str) -> RequestExpired | AnsweredElsewhere:
    """Return the end here of a request that was settled there."""
    here = {"id": id_here, "task_id": task.task_here}
    match settled:
        case None:
            return RequestExpired(id=id_here, task_id=task.task_here)
        case RequestExpired():
            return settled.model_copy(update=here)
        case _:
            by = f"{task.machine}/{settled.by}" if settled.by else task.machine
            kept = {"remember": False} if isinstance(settled, ApprovalAnswer) else {}  # that machine remembers its own
            return AnsweredElsewhere(settled.model_copy(update={**here, **kept, "by": by}))


def asked_here(task: SubmittedTask, assign: Assign, request: Question | ApprovalRequest) -> Question | ApprovalRequest:
    """Return a request of the other machine as one of here.

    Its deadline is watched there: the clocks of two machines may differ.
    """
    here = {
        "id": f"{assign.run_id}~{request.id.removeprefix(f'{task.task_id}~')}",
        "task_id": assign.task_id,
        "run_id": assign.run_id,
        "token": assign.token,
        "address": assign.address,
        "deadline": None,
    }
    if isinstance(request, ApprovalRequest):
        here["target"] = _target_of(task, assign)
    return request.model_copy(update=here)


def _target_of(task: SubmittedTask, assign: Assign) -> Target | None:
    """Return a subtask's target with the machine that was chosen."""
    return None if assign.target is None else assign.target.model_copy(update={"machine": task.machine})


def task_there(
    task: SubmittedTask, assign: Assign, subtasks: tuple[SubtaskResult, ...], terms: RemoteTerms, name: str
) -> Task:
    """Return the task that does a subtask on the other machine.

    Args:
        task: The subtask.
        assign: Its assignment here.
        subtasks: The earlier results, as the other machine sees them.
        terms: The terms of the task here.
        name: This machine.
    """
    target = task.target_there or None
    work: dict[str, Any] = (
        {"plan": (PlanStep(request=assign.request, target=target, checks=assign.checks),)}
        if assign.target is not None and assign.target.server == "fleet" and assign.target.binds.get("starts")
        else {"request": assign.request, "target": target, "checks": assign.checks}
    )
    return Task(
        id=task.task_id,
        origin=TaskOrigin(
            submitter=name,
            run_id=assign.run_id,
            number=assign.number,
            task_request=assign.task_request,
            subtasks=subtasks,
            made=assign.made,
        ),
        dry_run=assign.dry_run,
        limits=assign.limits,
        output_schema=assign.output_schema,
        judge=assign.judge,
        budget=terms.budget,
        policy=terms.policy,
        model=terms.model,
        may_change=terms.may_change,
        **work,
    )


def result_here(task: SubmittedTask, assign: Assign, result: TaskResult) -> SubtaskResult:
    """Return the result of a subtask from that of its task there."""
    machine = "" if task.is_unplaced else task.machine
    causes = tuple(
        cause.model_copy(update={"where": "/".join(filter(None, (machine, cause.where)))}) for cause in result.causes
    )
    if result.outcome is not Outcome.FINISHED and not causes:
        causes = (Cause(reason=f"the machine {machine} gives no reason", where=machine),)
    return SubtaskResult(
        run_id=assign.run_id,
        number=assign.number,
        group=assign.group,
        request=assign.request,
        address=assign.address,
        target="" if assign.target is None else assign.target.name,
        machine=machine,
        outcome=result.outcome,
        causes=causes,
        output=result.output,
        comment=result.comment,
        artifacts=result.artifacts,
        made=result.made,
        changed=result.changed,
        actions=result.actions,
        failed_actions=result.failed_actions,
        would_do=result.would_do,
        checks=result.checks,
        judged=result.judged,
        last_seen=result.subtasks[-1].last_seen if result.subtasks else None,
        usage=result.usage,
    )
