"""The subtasks that this machine has other machines do."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from callboard.actors.processing import RemoteTerms
from callboard.config import HostLog
from callboard.fleet._engine import Bucket, DamagedFileError
from callboard.fleet._repeated_calls import in_background, repeat
from callboard.fleet._task_files import moved_result, returned_result
from callboard.fleet._work_messages import (
    RequestsOfTask,
    TaskSignals,
    WorkOrder,
    WorkResult,
    delete_packed,
    pack,
    unpack,
)
from callboard.messages import (
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    AskedQuestion,
    Cause,
    Outcome,
    PlanStep,
    Question,
    RemoteEnded,
    RequestExpired,
    SubtaskResult,
    Task,
    TaskOrigin,
    TaskResult,
    reason_of,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from callboard.actors.states import Run
    from callboard.fleet._engine import BucketEntry, FleetEngine, StoredFile
    from callboard.fleet._task_files import TaskFiles
    from callboard.messages import Assign, Message

WAIT, GIVE_UP = "wait", "give up"
"""The answers to the question about a machine that is away."""
_AWAY = "away"

_log = HostLog()


@dataclass(eq=False)
class SubmittedTask:
    """A subtask that another machine does. Belongs to the event loop."""

    machine: str
    task_id: str
    """Its id there: the same after a crash here, so that it is not done twice."""
    task_here: str
    """The task here that it is a subtask of."""
    run_id: str
    """The subtask here."""
    signals: TaskSignals | None = None
    """All that was said to it; None before it was sent."""
    is_sent: bool = False
    """Whether this process has sent it."""
    requests: tuple[Question | ApprovalRequest, ...] = ()
    result: TaskResult | None = None
    files: dict[str, StoredFile] = field(default_factory=dict)
    """The files of its result, by their paths there."""
    paths: dict[str, str] = field(default_factory=dict)
    """The paths of these files here, by those there."""
    is_paused: bool | None = None
    """Whether it is paused; None if that was not said since this process began."""
    is_given_up: bool = False
    """Whether its end is not waited for any more."""
    waits_anyway: bool = False
    """Whether a person said that it waits for its machine, which is away."""
    waits_for: tuple[str, str] | None = None
    """The request that a person is asked here: its id there and here."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while its signals are changed."""


class SubmittedWork:
    """The subtasks that other machines do for this one.

    It belongs to the event loop. Each is a task of its own on the other machine, whose journal has it. Here only its
    begin and its end are kept.
    """

    def __init__(
        self,
        engine: FleetEngine,
        name: str,
        journal_identity: str,
        files: TaskFiles,
        *,
        post: Callable[[Message], None],
        on_sent: Callable[[str], None],
        is_away: Callable[[str], bool],
        on_machine_loss: str,
    ) -> None:
        """Create it.

        Args:
            engine: The connection.
            name: This machine.
            journal_identity: The identity of this machine's journal: tasks of another journal are other tasks.
            files: Moves the files of subtasks.
            post: Send the root a message.
            on_sent: Called with a machine once work, or a cancel, was sent to it.
            is_away: Returns whether a machine is away.
            on_machine_loss: The setting of this name.
        """
        self._is_away = is_away
        self._on_machine_loss = on_machine_loss
        self._files = files
        self._engine = engine
        self._name = name
        self._journal_identity = journal_identity
        self._post = post
        self._on_sent = on_sent
        self._tasks: dict[str, SubmittedTask] = {}
        """The subtasks, by their keys in the engine's buckets."""

    @property
    def tasks(self) -> tuple[SubmittedTask, ...]:
        """The subtasks that are not over."""
        return tuple(self._tasks.values())

    async def watch(self) -> None:
        """Take requests and results of other machines, until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch(Bucket.REQUESTS, self._take_requests))
            group.create_task(self._watch(Bucket.RESULTS, self._take_result))

    async def _watch(self, bucket: Bucket, take: Callable[[SubmittedTask, bytes], Awaitable[None]]) -> None:
        async for entry in self._engine.watch(bucket, self._name):
            task = None if entry is None else self._tasks.get(entry.key)
            if task is not None:
                await self._take(task, entry, take)

    async def _take(
        self, task: SubmittedTask, entry: BucketEntry | None, take: Callable[[SubmittedTask, bytes], Awaitable[None]]
    ) -> None:
        if entry is None or entry.value is None:
            return
        try:
            await take(task, entry.value)
        except (ValueError, DamagedFileError) as error:
            _log.warning("what the machine %s says of %s can't be read: %s", task.machine, task.task_id, error)
            return
        if task.waits_for is not None and task.waits_for[0] not in {request.id for request in task.requests}:
            self._withdraw(task)
        task.changed.set()

    def _withdraw(self, task: SubmittedTask) -> None:
        """Withdraw the request that a person is asked here."""
        if task.waits_for is not None:
            self._post(RequestExpired(id=task.waits_for[1], task_id=task.task_here))
            task.waits_for = None

    async def _take_requests(self, task: SubmittedTask, body: bytes) -> None:
        data = await repeat(lambda: unpack(self._engine, body))
        task.requests = RequestsOfTask.model_validate_json(data).requests

    async def _take_result(self, task: SubmittedTask, body: bytes) -> None:
        if task.result is not None:
            return
        try:
            ended = WorkResult.model_validate_json(await repeat(lambda: unpack(self._engine, body)))
        except (ValueError, DamagedFileError) as error:  # its work is over, and nobody can say how
            cause = Cause(reason=f"its result can't be read: {reason_of(error)}")
            ended = WorkResult(result=TaskResult(task_id=task.task_id, outcome=Outcome.ERROR, causes=(cause,)))
        task.files = ended.files
        task.paths = await self._files.keep(ended.files, task.task_here, task.run_id)
        task.result, task.requests = ended.result, ()

    def _task_of(self, assign: Assign) -> tuple[str, SubmittedTask]:
        """Return a subtask's record, and its key in the buckets."""
        machine = "" if assign.target is None else assign.target.machine
        source = f"{self._name}/{self._journal_identity}/{assign.run_id}"
        task_id = f"r-{hashlib.sha256(source.encode()).hexdigest()[:24]}"
        key = f"{self._name}.{machine}.{task_id}"
        return key, self._tasks.setdefault(key, SubmittedTask(machine, task_id, assign.task_id, assign.run_id))

    def _signals_key(self, task: SubmittedTask) -> str:
        return f"{task.machine}.{self._name}.{task.task_id}"

    async def carry_on(self, run: Run, terms: RemoteTerms) -> Question | ApprovalRequest | RemoteEnded:
        """Send a subtask or an answer; return the next request or end.

        Raises:
            QueueFullError: If the other machine has too much work.
        """
        task = await self._known(run.assign)
        await self._tell_pause(task, is_paused=run.paused)
        if isinstance(run.last, Answer) and run.last.id == _away_id(run.assign):
            task.waits_anyway = run.last.texts != (GIVE_UP,)
            if not task.waits_anyway:
                return await self._give_up(task, run.assign)
        elif isinstance(run.last, Answer | ApprovalAnswer):
            await self._tell_verdict(task, run.last, run.assign.run_id)
        if not task.is_sent and task.result is None:
            await self._send(task, run.assign, terms)
        return await self._next(task, run.assign)

    async def stop(self, run: Run) -> RemoteEnded:
        """Cancel a subtask on the other machine, and return its end."""
        task = await self._known(run.assign)
        if task.signals is None:  # it was never sent
            task.result = TaskResult(task_id=task.task_id, outcome=Outcome.CANCELLED)
        reason = run.causes[0].reason if run.causes else "it was stopped"
        if task.result is None:
            await self._signal(task, cancel=reason)
        if not task.is_sent and task.result is None:  # a crash may have come before it was sent; nothing begins there
            unsent = run.assign.model_copy(update={"request": reason, "task_request": "", "subtasks": ()})
            await self._send(task, unsent, RemoteTerms(budget=None, policy=()))
        self._on_sent(task.machine)
        while task.result is None and not task.is_given_up:
            await self._change(task)
        return _ended(task, run.assign, task.result or _unknown(task))

    def abandon(self, task_id: str) -> None:
        """Do not wait for the ends of a cancelled task's subtasks."""
        for task in self.tasks:
            if task.task_here == task_id:
                task.is_given_up = True
                task.changed.set()

    def machine_changed(self, name: str) -> None:
        """Look again at the subtasks of a machine that went or came."""
        for task in self.tasks:
            if task.machine == name:
                task.waits_anyway = False
                if task.waits_for is not None and task.waits_for[0] == _AWAY and not self._is_away(name):
                    self._withdraw(task)
                task.changed.set()

    async def _give_up(self, task: SubmittedTask, assign: Assign) -> RemoteEnded:
        """End a subtask here; its machine stops it when it is back."""
        task.is_given_up = True
        await self._signal(task, cancel=f"the machine was away, and {self._name} gave its work up")
        return _ended(task, assign, _unknown(task))

    def pause(self, run: Run, *, paused: bool) -> None:
        """Pause a subtask on the other machine, or resume it."""
        _, task = self._task_of(run.assign)
        task.is_paused = paused
        if task.signals is not None:
            in_background(self._tell_pause(task, is_paused=paused))

    def expect_answer(self, run: Run) -> None:
        """Report when a run's request is no longer open there."""
        _, task = self._task_of(run.assign)
        task.waits_for = _id_there(task, run.assign.run_id, run.waiting), run.waiting
        in_background(self._known(run.assign))

    def forget(self, run: Run) -> None:
        """Delete what the engine keeps of a subtask that is over."""
        key, task = self._task_of(run.assign)
        del self._tasks[key]
        if task.result is not None:  # else its machine still has to read the cancel
            in_background(self._delete(key, task))

    async def _delete(self, key: str, task: SubmittedTask) -> None:
        await self._files.discard(task.files.values())
        await repeat(lambda: self._engine.delete(Bucket.SIGNALS, self._signals_key(task)))
        await repeat(lambda: delete_packed(self._engine, Bucket.REQUESTS, key))
        await repeat(lambda: delete_packed(self._engine, Bucket.RESULTS, key))

    async def _known(self, assign: Assign) -> SubmittedTask:
        """Return a subtask with what the engine keeps of it."""
        key, task = self._task_of(assign)
        async with task.lock:
            if task.signals is None:
                await self._take(task, await self._entry(Bucket.REQUESTS, key), self._take_requests)
                await self._take(task, await self._entry(Bucket.RESULTS, key), self._take_result)
                entry = await self._entry(Bucket.SIGNALS, self._signals_key(task))
                if entry is not None and entry.value is not None:
                    task.signals = TaskSignals.model_validate_json(entry.value)
        return task

    async def _entry(self, bucket: Bucket, key: str) -> BucketEntry | None:
        return await repeat(lambda: self._engine.get(bucket, key))

    async def _signal(self, task: SubmittedTask, **changes: Any) -> None:
        """Say something more to a subtask."""
        async with task.lock:
            signals = (task.signals or TaskSignals()).model_copy(update=changes)
            await self._put_signals(task, signals)

    async def _tell_pause(self, task: SubmittedTask, *, is_paused: bool) -> None:
        """Pause or resume a subtask, unless that was said to it last."""
        while True:
            signals, is_paused = task.signals, is_paused if task.is_paused is None else task.is_paused
            if signals is not None and bool(signals.paused) is is_paused:
                return
            await self._signal(task, **({"paused": is_paused} if is_paused or signals is not None else {}))

    async def _tell_verdict(self, task: SubmittedTask, verdict: Answer | ApprovalAnswer, run_id: str) -> None:
        id_there = _id_there(task, run_id, verdict.id)
        sent = verdict.model_copy(update={"id": id_there, "task_id": task.task_id})
        async with task.lock:
            signals = task.signals or TaskSignals()
            if id_there not in {known.id for known in signals.verdicts}:
                await self._put_signals(task, signals.model_copy(update={"verdicts": (*signals.verdicts, sent)}))

    async def _put_signals(self, task: SubmittedTask, signals: TaskSignals) -> None:
        body = signals.model_dump_json().encode()
        await repeat(lambda: self._engine.put(Bucket.SIGNALS, self._signals_key(task), body))
        task.signals = signals

    async def _send(self, task: SubmittedTask, assign: Assign, terms: RemoteTerms) -> None:
        elsewhere = [result for result in assign.subtasks if result.machine != task.machine]
        files = await self._files.send((path for result in elsewhere for path in result.artifacts), task.task_id)
        order = WorkOrder(task=_task_there(task, assign, terms, self._name), files=files)
        body = await repeat(lambda: pack(self._engine, order, task.task_id))
        await repeat(lambda: self._engine.send(task.machine, task.task_id, body))
        task.is_sent = True
        self._on_sent(task.machine)

    async def _next(self, task: SubmittedTask, assign: Assign) -> Question | ApprovalRequest | RemoteEnded:
        while True:
            if task.result is not None:
                return _ended(task, assign, task.result)
            answered = {verdict.id for verdict in (task.signals or TaskSignals()).verdicts}
            request = next((request for request in task.requests if request.id not in answered), None)
            if request is not None:
                request_here = _asked_here(task, assign, request)
                task.waits_for = request.id, request_here.id
                return request_here
            if self._is_away(task.machine) and not task.waits_anyway:
                if self._on_machine_loss == "fail":
                    return await self._give_up(task, assign)
                if self._on_machine_loss == "ask":
                    task.waits_for = _AWAY, _away_id(assign)
                    return _away_question(task, assign)
            await self._change(task)

    async def _change(self, task: SubmittedTask) -> None:
        task.changed.clear()
        await task.changed.wait()


def _away_id(assign: Assign) -> str:
    return f"{assign.run_id}~away"


def _away_question(task: SubmittedTask, assign: Assign) -> Question:
    text = f"The machine {task.machine} is away. Wait for it, or give up its work, which may be done in part there?"
    return Question(
        id=_away_id(assign),
        task_id=assign.task_id,
        run_id=assign.run_id,
        token=assign.token,
        address=assign.address,
        questions=(AskedQuestion(text=text, choices=(WAIT, GIVE_UP)),),
    )


def _unknown(task: SubmittedTask) -> TaskResult:
    """Return the result of a task whose end is not waited for."""
    reason = f"the machine {task.machine} was not waited for: what it has done is not known"
    return TaskResult(
        task_id=task.task_id, outcome=Outcome.FAILED, causes=(Cause(reason=reason),), comment=reason, failed_actions=1
    )


def _id_there(task: SubmittedTask, run_id: str, id_here: str) -> str:
    return f"{task.task_id}~{id_here.removeprefix(f'{run_id}~')}"


def _asked_here(task: SubmittedTask, assign: Assign, request: Question | ApprovalRequest) -> Question | ApprovalRequest:
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
        here["target"] = assign.target
    return request.model_copy(update=here)


def _task_there(task: SubmittedTask, assign: Assign, terms: RemoteTerms, name: str) -> Task:
    """Return the task that does a subtask on the other machine."""
    binds = {} if assign.target is None else assign.target.binds
    target, starts = str(binds.get("target", "")), bool(binds.get("starts"))
    work: dict[str, Any] = (
        {"plan": (PlanStep(request=assign.request, target=target, checks=assign.checks),)}
        if starts
        else {"request": assign.request, "target": target, "checks": assign.checks}
    )
    return Task(
        id=task.task_id,
        origin=TaskOrigin(
            submitter=name,
            run_id=assign.run_id,
            number=assign.number,
            task_request=assign.task_request,
            subtasks=tuple(_seen_there(result, task.machine) for result in assign.subtasks),
            made=assign.made,
        ),
        dry_run=assign.dry_run,
        limits=assign.limits,
        output_schema=assign.output_schema,
        judge=assign.judge,
        budget=terms.budget,
        policy=terms.policy,
        **work,
    )


def _seen_there(result: SubtaskResult, machine: str) -> SubtaskResult:
    """Return an earlier result as the other machine sees it.

    The files that it made itself are where they were made.
    """
    result = result.model_copy(update={"last_seen": None})
    return returned_result(result) if result.machine == machine else result


def _ended(task: SubmittedTask, assign: Assign, result: TaskResult) -> RemoteEnded:
    """Return the end of a subtask with its files."""
    moved = moved_result(_result(assign, result), task.paths, task.machine)
    here = {path: there for there, path in task.paths.items()}
    return RemoteEnded(result=moved.model_copy(update={"paths_there": here}))


def _result(assign: Assign, result: TaskResult) -> SubtaskResult:
    """Return the result of a subtask from that of its task there."""
    machine = "" if assign.target is None else assign.target.machine
    causes = tuple(
        cause.model_copy(update={"where": f"{machine}/{cause.where}" if cause.where else machine})
        for cause in result.causes
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
