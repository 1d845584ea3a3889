"""The subtasks that this machine has other machines do."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from callboard.actors.processing import RemoteTerms
from callboard.config import HostLog
from callboard.fleet._engine import Bucket, DamagedFileError, QueueFullError
from callboard.fleet._placements import Placements, WorkRefusedError, refusal_causes
from callboard.fleet._repeated_calls import in_background, repeat
from callboard.fleet._submitted_task import (
    AWAY,
    GIVE_UP,
    SubmittedTask,
    asked_here,
    away_id,
    away_question,
    id_there,
    needs_of,
    result_here,
    settled_here,
    task_there,
    unknown_end,
)
from callboard.fleet._sweep import SubtaskIds, Sweep
from callboard.fleet._task_files import sent_by
from callboard.fleet._work_messages import (
    BEAT_SECONDS,
    RequestsOfTask,
    TaskSignals,
    WorkOrder,
    WorkResult,
    discard_packed,
    pack,
    signals_key,
    told_key,
    unpack,
)
from callboard.messages import (
    ANY_MACHINE,
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    CallboardError,
    Cause,
    EventName,
    Outcome,
    Question,
    RemoteEnded,
    SubtaskResult,
    TaskResult,
    reason_of,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from callboard.actors.processing import AnsweredElsewhere
    from callboard.actors.states import Run
    from callboard.fleet._engine import BucketEntry, FleetEngine
    from callboard.fleet._machines import Machines
    from callboard.fleet._own_name import OwnName
    from callboard.fleet._task_files import TaskFiles
    from callboard.messages import Assign, RequestExpired

_LOOK_SECONDS = BEAT_SECONDS
"""The interval at which work that waits on one machine is offered to another: their states come no sooner."""
_TELL_SECONDS = 2.0
"""The longest that the end of work that is given up waits until the engine has its cancel."""

_log = HostLog()


class HandedOnError(CallboardError):
    """Work of another machine is not handed on to a third one.

    The submitter would get around what that machine's settings say about who may give it work.
    """

    @classmethod
    def of(cls, task_id: str) -> HandedOnError:
        """Build the error for a task."""
        return cls(
            f"the task {task_id} is another machine's work: it is done here, or assigned there to a third machine"
        )


class SubmittedWork:
    """The subtasks that other machines do for this one.

    It belongs to the event loop. Each is a task of its own on the other machine, whose journal has it. Here only its
    begin and its end are kept.
    """

    def __init__(
        self,
        engine: FleetEngine,
        own_name: OwnName,
        files: TaskFiles,
        machines: Machines,
        *,
        post: Callable[[RequestExpired | AnsweredElsewhere], None],
        emit: Callable[..., None],
        on_sent: Callable[[str], None],
        on_placed: Callable[[SubmittedTask], None],
        is_away: Callable[[str], bool],
        is_of_other: Callable[[str], bool],
        on_machine_loss: str,
    ) -> None:
        """Create it.

        Args:
            engine: The connection.
            own_name: This machine, with the identity of its journal: tasks of another journal are other tasks.
            files: Moves the files of subtasks.
            machines: The other machines.
            post: Send the root a message.
            emit: Emit an event.
            on_sent: Called with a machine once work, or a cancel, was sent to it.
            on_placed: Called with work that any machine may do, once one is chosen.
            is_away: Returns whether a machine is away.
            is_of_other: Returns whether a task here does a subtask of another machine, by its id.
            on_machine_loss: The setting of this name.
        """
        self._is_away = is_away
        self._is_of_other = is_of_other
        self._on_machine_loss = on_machine_loss
        self._files = files
        self._engine = engine
        self._own_name = own_name
        self._name = own_name.name
        self._post = post
        self._emit = emit
        self._on_sent = on_sent
        self._on_placed = on_placed
        self._tasks: dict[str, SubmittedTask] = {}
        """The subtasks, by their ids on the other machines."""
        self._placements = Placements(engine, own_name.name, machines, self._claim_changed)
        self._ids = SubtaskIds(own_name)
        self._sweep = Sweep(
            engine,
            own_name.name,
            self._ids,
            files=files,
            placements=self._placements,
            is_known=self._tasks.__contains__,
        )
        self._abandoned: set[str] = set()
        """The tasks here whose subtasks are not waited for after a cancel."""

    @property
    def tasks(self) -> tuple[SubmittedTask, ...]:
        """The subtasks that are not over."""
        return tuple(self._tasks.values())

    async def watch(self) -> None:
        """Take requests and results of other machines, until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch(Bucket.REQUESTS, self._take_requests))
            group.create_task(self._watch(Bucket.RESULTS, self._take_result))
            group.create_task(self._placements.watch())

    async def sweep(self, unfinished: Callable[[], Iterable[str]]) -> None:
        """Delete leftovers of ended subtasks, until it is cancelled."""
        await self._sweep.run(unfinished)

    def may_assign(self, task_id: str) -> bool:
        """Return whether other machines may do subtasks of a task.

        They may not do those of another machine's work.
        """
        return not self._is_of_other(task_id)

    def _claim_changed(self, key: str) -> None:
        task = self._tasks.get(key.rpartition(".")[2])
        if task is None:
            self._sweep.add(key)
        else:
            task.changed.set()

    async def _watch(self, bucket: Bucket, take: Callable[[SubmittedTask, bytes], Awaitable[None]]) -> None:
        async for entry in self._engine.watch(bucket, self._name):
            if entry is None or entry.value is None:
                continue
            task = self._tasks.get(entry.key.rpartition(".")[2])
            if task is None:
                self._sweep.add(entry.key)
            elif entry.key == self._key(task):  # of its machine alone
                await self._take(task, bucket, entry, take)

    async def _take(
        self,
        task: SubmittedTask,
        bucket: Bucket,
        entry: BucketEntry | None,
        take: Callable[[SubmittedTask, bytes], Awaitable[None]],
    ) -> None:
        if entry is None or entry.value is None:
            return
        former, task.told_entries[bucket] = task.told_entries.get(bucket), entry
        if former is not None and former.revision < entry.revision and former.value != entry.value:
            in_background(repeat(lambda: discard_packed(self._engine, former.value or b"")))
        try:
            await take(task, entry.value)
        except (ValueError, DamagedFileError) as error:
            if await self._is_outdated(bucket, entry):
                return
            _log.warning("what the machine %s says of %s can't be read: %s", task.machine, task.task_id, error)
            return
        if task.waits_for is not None and task.waits_for[0] not in {request.id for request in task.requests}:
            self._withdraw(task)
        task.changed.set()

    async def _is_outdated(self, bucket: Bucket, entry: BucketEntry) -> bool:
        """Return whether an entry was replaced.

        The file of its value may be deleted then.
        """
        last = await self._entry(bucket, entry.key)
        return last is None or last.revision != entry.revision

    def _withdraw(self, task: SubmittedTask) -> None:
        """Withdraw the request that a person is asked here."""
        if task.waits_for is not None:
            request_id, id_here = task.waits_for
            self._post(settled_here(task, task.settled.get(request_id), id_here))
            task.waits_for = None

    async def _take_requests(self, task: SubmittedTask, body: bytes) -> None:
        data = await repeat(lambda: unpack(self._engine, body))
        told = RequestsOfTask.model_validate_json(data)
        for approval in told.approvals_there:
            if approval.id not in task.approvals_there:
                where = {"task_id": task.task_here, "run_id": task.run_id, "agent": task.address}
                self._emit(EventName.APPROVAL_ELSEWHERE, **where, machine=task.machine, reason=approval.reason)
        task.requests = told.requests
        task.settled = {settled.id: settled for settled in told.settled}
        task.approvals_there = frozenset(approval.id for approval in told.approvals_there)

    async def _take_result(self, task: SubmittedTask, body: bytes) -> None:
        if task.result is not None:
            return
        try:
            ended = WorkResult.model_validate_json(await repeat(lambda: unpack(self._engine, body)))
        except (ValueError, DamagedFileError) as error:  # its work is over, and no one knows how
            cause = Cause(reason=f"its result can't be read: {reason_of(error)}")
            ended = WorkResult(result=TaskResult(task_id=task.task_id, outcome=Outcome.ERROR, causes=(cause,)))
        task.files = sent_by(ended.files, task.machine, task.task_id)
        task.paths = await self._files.keep(task.files, task.task_here, task.run_id)
        task.result, task.requests = ended.result, ()
        task.settled.update((settled.id, settled) for settled in ended.settled)

    def _task_of(self, assign: Assign) -> SubmittedTask:
        """Return a subtask's record."""
        target = assign.target
        pool, binds = ("", {}) if target is None else (target.pool, target.binds)
        machine = ANY_MACHINE if pool or target is None else target.machine
        task_id = self._ids.id_of(assign.task_id, assign.run_id)
        task = SubmittedTask(
            machine,
            task_id,
            assign.task_id,
            assign.run_id,
            assign.address,
            target_there=str(binds.get("target", "")),
            pool=pool,
            keeps_machine=target is not None and not target.copies,
            needs={} if target is None or target.machine != ANY_MACHINE else needs_of(binds),
        )
        return self._tasks.setdefault(task_id, task)

    def _key(self, task: SubmittedTask) -> str:
        """Return the key of the words of a subtask's machine."""
        return told_key(self._name, task.machine, task.task_id)

    def _signals_key(self, task: SubmittedTask) -> str:
        return signals_key(task.machine, self._name, task.task_id)

    async def carry_on(self, run: Run, terms: RemoteTerms) -> Question | ApprovalRequest | RemoteEnded:
        """Send a subtask or an answer; return the next request or end.

        Raises:
            CallboardError: If another machine has the name of this one.
            HandedOnError: If it belongs to work of another machine.
            NoMachineError: If no machine of the fleet can do it.
            QueueFullError: If the other machine has too much work.
        """
        if not self.may_assign(run.assign.task_id):
            raise HandedOnError.of(run.assign.task_id)
        task = await self._known(run.assign)
        if self._own_name.taken and not task.is_given:
            raise CallboardError(self._own_name.taken)
        if not task.is_unplaced:
            await self._tell_pause(task, is_paused=run.paused)
        if isinstance(run.last, Answer) and run.last.id == away_id(run.assign):
            task.waits_anyway = run.last.texts != (GIVE_UP,)
            if not task.waits_anyway:
                return await self._give_up(task, run.assign)
        elif isinstance(run.last, Answer | ApprovalAnswer):
            await self._tell_verdict(task, run.last, run.assign.run_id)
        return await self._next(task, run, terms)

    async def stop(self, run: Run) -> RemoteEnded:
        """Cancel a subtask on the other machine, and return its end."""
        task = self._task_of(run.assign)
        task.is_given_up |= run.assign.task_id in self._abandoned
        telling = in_background(self._tell_stop(run))
        telling.add_done_callback(lambda _: task.changed.set())
        while task.result is None and not task.is_given_up:
            if telling.done():
                telling.result()
                if task.pool and await self._placements.get(task.task_id) is None:  # it was refused since
                    await self._leave(task)
                    task.result = _cancelled(task)
                    break
            await self._change(task)
        await asyncio.wait({telling}, timeout=_TELL_SECONDS)
        return self._ended(task, run.assign, task.result or unknown_end(task))

    async def _tell_stop(self, run: Run) -> None:
        """Tell the other machine of a cancel, once the engine answers."""
        task = await self._known(run.assign)
        await self._take_back(task)
        if not task.is_given and task.result is None:  # it was never sent
            task.result = _cancelled(task)
        reason = run.causes[0].reason if run.causes else "it was stopped"
        if task.result is None:
            await self._signal(task, cancel=reason)
        if not task.is_sent and task.result is None:  # a crash may have come before it was sent; nothing begins there
            unsent = run.assign.model_copy(update={"request": reason, "task_request": "", "subtasks": ()})
            await self._send(task, unsent, RemoteTerms(budget=None, policy=()))
        self._on_sent(task.machine)

    def abandon(self, task_id: str) -> None:
        """Do not wait for the ends of a cancelled task's subtasks.

        That holds for those whose cancel comes later, as after a restart.
        """
        self._abandoned.add(task_id)
        for task in self.tasks:
            if task.task_here == task_id:
                task.is_given_up = True
                task.changed.set()

    def machine_changed(self, name: str) -> None:
        """Look again at the subtasks of a machine that went or came."""
        for task in self.tasks:
            if task.machine in {name, ANY_MACHINE}:
                task.waits_anyway = False
                if task.waits_for is not None and task.waits_for[0] == AWAY and not self._is_away(name):
                    self._withdraw(task)
                task.changed.set()

    async def _give_up(self, task: SubmittedTask, assign: Assign) -> RemoteEnded:
        """End a subtask here; its machine stops it when it is back."""
        task.is_given_up = True
        await self._take_back(task)
        if not task.is_unplaced:
            await self._signal(task, cancel=f"the machine was away, and {self._name} gave its work up")
        return self._ended(task, assign, unknown_end(task))

    def pause(self, run: Run, *, paused: bool) -> None:
        """Pause a subtask on the other machine, or resume it."""
        task = self._task_of(run.assign)
        task.is_paused = paused
        if task.is_given:
            in_background(self._tell_pause(task, is_paused=paused))

    def expect_answer(self, run: Run) -> None:
        """Report when a run's request is no longer open there."""
        task = self._task_of(run.assign)
        task.waits_for = id_there(task, run.assign.run_id, run.waiting), run.waiting
        in_background(self._known(run.assign))

    def forget(self, run: Run) -> None:
        """Delete the entries of a subtask that is over."""
        task = self._task_of(run.assign)
        del self._tasks[task.task_id]
        if run.assign.task_id not in {other.task_here for other in self.tasks}:
            self._abandoned.discard(run.assign.task_id)
        if task.result is not None or task.is_unplaced:  # else its machine still has to read the cancel
            in_background(self._delete(task))

    async def _delete(self, task: SubmittedTask) -> None:
        key = self._key(task)
        if task.pool:
            has_signals = task.signals is not None or not task.is_loaded
            await self._placements.forget(task.task_id, unsaid="" if has_signals else task.machine)
        else:
            await repeat(lambda: self._engine.delete(Bucket.SIGNALS, self._signals_key(task)))
        await self._files.discard((*task.files.values(), *task.sent_files))
        for bucket, entry in task.told_entries.items():
            await repeat(lambda body=entry.value or b"": discard_packed(self._engine, body))  # type: ignore[misc]
            await repeat(lambda bucket=bucket: self._engine.delete(bucket, key))  # type: ignore[misc]

    async def _known(self, assign: Assign) -> SubmittedTask:
        """Return a subtask with its entries in the engine."""
        task = self._task_of(assign)
        async with task.lock:
            if task.is_unplaced:
                task.move(await self._placements.get(task.task_id))
            if not task.is_loaded and not task.is_unplaced:
                for bucket, take in ((Bucket.REQUESTS, self._take_requests), (Bucket.RESULTS, self._take_result)):
                    await self._take(task, bucket, await self._entry(bucket, self._key(task)), take)
                entry = await self._entry(Bucket.SIGNALS, self._signals_key(task))
                if entry is not None and entry.value is not None:
                    task.signals = TaskSignals.model_validate_json(entry.value)
                task.is_loaded = True
        return task

    async def _entry(self, bucket: Bucket, key: str) -> BucketEntry | None:
        return await repeat(lambda: self._engine.get(bucket, key))

    async def _signal(self, task: SubmittedTask, **changes: Any) -> None:
        """Say something more to a subtask."""
        async with task.lock:
            signals = (task.signals or TaskSignals()).model_copy(update=changes)
            await self._put_signals(task, signals)

    async def _tell_pause(self, task: SubmittedTask, *, is_paused: bool) -> None:
        """Pause or resume a subtask, unless that was said to it last.

        Work for a named machine always has signals, since their absence means that its end is known here. A claim tells
        that of other work.
        """
        while True:
            signals, is_paused = task.signals, is_paused if task.is_paused is None else task.is_paused
            if task.is_given and bool(signals is not None and signals.paused) is is_paused:
                return
            await self._signal(task, **({"paused": is_paused} if is_paused or signals is not None else {}))

    async def _tell_verdict(self, task: SubmittedTask, verdict: Answer | ApprovalAnswer, run_id: str) -> None:
        request_id = id_there(task, run_id, verdict.id)
        if request_id in task.settled:  # by people there, or by what was said before
            return
        sent = verdict.model_copy(update={"id": request_id, "task_id": task.task_id})
        async with task.lock:
            signals = task.signals or TaskSignals()
            if request_id not in {known.id for known in signals.verdicts}:
                await self._put_signals(task, signals.model_copy(update={"verdicts": (*signals.verdicts, sent)}))

    async def _put_signals(self, task: SubmittedTask, signals: TaskSignals) -> None:
        body = signals.model_dump_json().encode()
        await repeat(lambda: self._engine.put(Bucket.SIGNALS, self._signals_key(task), body))
        task.signals = signals

    async def _send(self, task: SubmittedTask, assign: Assign, terms: RemoteTerms) -> None:
        elsewhere = [result for result in assign.subtasks if result.machine != task.machine]
        paths = (path for result in elsewhere for path in result.artifacts)
        files = await self._files.send(paths, task.task_id, task.machine)
        task.sent_files += tuple(files.values())  # those for the machine that had it before, too
        subtasks = tuple(self._seen_there(result, task.machine) for result in assign.subtasks)
        order = WorkOrder(task=task_there(task, assign, subtasks, terms, self._name), files=files, claim=task.claim)
        body = await repeat(lambda: pack(self._engine, order, task.task_id, task.machine))
        sent_id = task.task_id if task.claim is None else f"{task.task_id} {task.claim}"  # it may be given back to it
        try:
            await repeat(lambda: self._engine.send(task.machine, sent_id, body))
        except QueueFullError:
            await repeat(lambda: discard_packed(self._engine, body))
            raise
        task.is_sent = True
        self._on_sent(task.machine)

    def _seen_there(self, result: SubtaskResult, machine: str) -> SubtaskResult:
        """Return an earlier result as the other machine sees it.

        The files that it made itself are where they were made.
        """
        result = result.model_copy(update={"last_seen": None})
        return self._files.returned_result(result) if result.machine == machine else result

    def _ended(self, task: SubmittedTask, assign: Assign, result: TaskResult) -> RemoteEnded:
        """Return the end of a subtask with its files."""
        moved = self._files.moved_result(result_here(task, assign, result), task.paths, task.machine)
        here = {path: there for there, path in task.paths.items()}
        return RemoteEnded(result=moved.model_copy(update={"paths_there": here}))

    async def _next(
        self, task: SubmittedTask, run: Run, terms: RemoteTerms
    ) -> Question | ApprovalRequest | RemoteEnded:
        assign = run.assign
        while True:
            if task.pool and task.result is None:
                await self._choose_machine(task)
            if not task.is_unplaced and not task.is_sent and task.result is None:
                await self._tell_pause(task, is_paused=run.paused)
                if not await self._is_taken(task, assign, terms):
                    continue
            if task.result is not None:
                return self._ended(task, assign, task.result)
            answered = {verdict.id for verdict in (task.signals or TaskSignals()).verdicts}
            request = next((request for request in task.requests if request.id not in answered), None)
            if request is not None:
                request_here = asked_here(task, assign, request)
                task.waits_for = request.id, request_here.id
                return request_here
            if self._is_away(task.machine) and not task.waits_anyway:
                if self._on_machine_loss == "fail":
                    return await self._give_up(task, assign)
                if self._on_machine_loss == "ask":
                    task.waits_for = AWAY, away_id(assign)
                    return away_question(task, assign)
            await self._change(task)

    async def _choose_machine(self, task: SubmittedTask) -> None:
        """Choose a machine, or another one if the work waits in vain."""
        placement = await self._placements.get(task.task_id)
        if placement is not None:
            in_vain = self._placements.waits_in_vain(task.task_id, placement, task.pool, task.needs)
            if not in_vain or not await self._take_back(task):
                return
        elif not task.is_unplaced:
            await self._leave(task)  # its machine has refused it
        besides = "" if placement is None else placement.machine
        task.refusals = refusal_causes(self._placements.refusals(task.task_id))
        try:
            placement = await self._placements.place(
                task.task_id, task.pool, task.needs, keeps_machine=task.keeps_machine, besides=besides
            )
        except WorkRefusedError as error:
            task.result = TaskResult(task_id=task.task_id, outcome=Outcome.FAILED, causes=error.causes)
            return
        task.move(placement)
        if not task.is_unplaced:
            task.is_told_away, task.is_loaded = False, True  # no machine had it before
            self._on_placed(task)
        elif not task.is_told_away:
            task.is_told_away = True
            self._on_sent(task.machine)

    async def _is_taken(self, task: SubmittedTask, assign: Assign, terms: RemoteTerms) -> bool:
        """Send a subtask.

        False if the queue is full, and another machine may do it.
        """
        try:
            await self._send(task, assign, terms)
        except QueueFullError as error:
            if not task.pool:
                raise
            if await self._take_back(task, Cause.chain(error)):
                return False
            task.is_sent = True  # by an earlier process: its machine has begun it
        return True

    async def _take_back(self, task: SubmittedTask, causes: tuple[Cause, ...] = ()) -> bool:
        """Take work of any machine back, unless its machine has begun it."""
        if not task.pool or not await self._placements.take_back(task.task_id, causes):
            return False
        await self._leave(task)
        return True

    async def _leave(self, task: SubmittedTask) -> None:
        """Delete the signals of a machine without the work."""
        if task.signals is not None:
            key = self._signals_key(task)
            await repeat(lambda: self._engine.delete(Bucket.SIGNALS, key))
        task.move(None)

    async def _change(self, task: SubmittedTask) -> None:
        """Wait for news; for a moment only if a machine is chosen."""
        task.changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS if task.pool else None):
                await task.changed.wait()


def _cancelled(task: SubmittedTask) -> TaskResult:
    """Return the result of a task that no machine has begun."""
    return TaskResult(task_id=task.task_id, outcome=Outcome.CANCELLED)
