"""The subtasks of other machines that this one does."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final, Literal
from weakref import WeakValueDictionary

from callboard.config import HostLog
from callboard.fleet._claims import refuse_claimed, start_claimed
from callboard.fleet._engine import Bucket, DamagedFileError, EngineAwayError
from callboard.fleet._narrowed_orders import check_sender, is_foreign_id, narrowed, refused_targets
from callboard.fleet._obedience import Obedience
from callboard.fleet._own_state import OwnState
from callboard.fleet._repeated_calls import in_background, repeat
from callboard.fleet._settled_requests import SettledRequests
from callboard.fleet._submitter_signals import SubmitterSignals
from callboard.fleet._task_files import sent_by
from callboard.fleet._work_messages import (
    BEAT_SECONDS,
    ApprovalThere,
    RequestsOfTask,
    TaskSignals,
    WorkOrder,
    WorkResult,
    discard_packed,
    pack,
    submitter_of,
    task_id_in,
    told_key,
    unpack,
)
from callboard.messages import (
    ApprovalRequest,
    CallboardError,
    Cause,
    EventName,
    JournalError,
    Outcome,
    SupervisorStoppedError,
    TaskResult,
    UnknownTaskError,
    reason_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from callboard.actors.client import TaskHandle
    from callboard.config import Settings
    from callboard.fleet._engine import Delivery, FleetEngine
    from callboard.fleet._obedience import Submitting
    from callboard.fleet._own_name import OwnName
    from callboard.fleet._task_files import TaskFiles
    from callboard.fleet._work_messages import Request
    from callboard.messages import Fact, Target, Task, Value

    _Begun = TaskHandle[Any] | TaskResult | None

_log = HostLog()

_UNKNOWN: Final = "unknown"

_ASKING = {
    EventName.RUN_RECOVERED,  # the machine may have stopped between a request and its publication
    EventName.QUESTION_ASKED,
    EventName.QUESTION_ANSWERED,
    EventName.APPROVAL_REQUESTED,
    EventName.APPROVAL_ANSWERED,
}
"""The events after which other requests are open."""

_NOTHING_SAID = TaskSignals()

_GIVEN_UP = "its submitter has given it up"
"""The reason of a cancel for work whose submitter has deleted its signals."""


class ServedWork:
    """The subtasks of other machines that this one does.

    It belongs to the event loop. Each is a task of this machine's own, under the id that the other machine gave it.
    This machine's journal has it: the queue only holds it until it is over, so that it is delivered again if this
    machine did not get so far.
    """

    def __init__(
        self,
        engine: FleetEngine,
        own_name: OwnName,
        submitting: Submitting,
        targets: Callable[[], Iterable[Target]],
        *,
        files: TaskFiles,
        settings: Settings,
        call: Callable[[Callable[[], object]], None],
    ) -> None:
        """Create it.

        Args:
            engine: The connection.
            own_name: The name of this machine.
            submitting: Where tasks are submitted.
            targets: Lists the targets that other machines may give work. It may block.
            files: Moves the files of tasks.
            settings: The settings of this machine, which orders only narrow.
            call: Call a function on the event loop, from any thread.
        """
        self._call = call
        self._engine = engine
        self._own_name = own_name
        self._name = own_name.name
        self._submitting = submitting
        self._files = files
        self._settings = settings
        self._approvals_here = settings.fleet.approvals == "here"
        self._settled = SettledRequests(approvals_here=self._approvals_here)
        self._slots = asyncio.Semaphore(settings.fleet.slots)
        self._works: dict[str, asyncio.Task[None]] = {}
        """The tasks of other machines that are not over here, by id."""
        self.task_ids: set[str] = set()
        """The ids of all tasks of other machines that have begun here, and are not over."""
        self._asked: dict[str, asyncio.Event] = {}
        """Events that are set when other requests of a task may be open, by its id."""
        self._signals = SubmitterSignals(engine, own_name.name)
        self._held_works: set[asyncio.Task[Any]] = set()
        """The work that is paused, and has not begun."""
        self._begin_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """The locks that are held while a task is begun, by its target."""
        self._taking = asyncio.Lock()
        """Held while a piece of work is begun."""
        self.state = OwnState(engine, own_name, settings, targets, lambda: len(self._works))
        """Tells the other machines of this one."""

    def see(self, fact: Fact) -> None:
        """Take note of an event of this supervisor, on any thread."""
        if fact.name in _ASKING and fact.task_id in self._asked:
            self._call(lambda: self._note(fact))

    def _note(self, fact: Fact) -> None:
        event = self._asked.get(fact.task_id)
        if event is not None:  # it is not over
            event.set()
            self._settled.add(fact)

    async def run(self) -> None:
        """Do the work of other machines, until it is cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for handle in await asyncio.to_thread(self._submitting.pending):
                    if handle.task.origin is not None:
                        self._begin(handle.task, self._resume(handle.task))
                group.create_task(self.state.publish())
                group.create_task(self._signals.watch())
                group.create_task(self._receive())
        finally:
            for work in self._works.values():
                work.cancel()

    async def drain(self) -> None:
        """Begin no more work, and wait for the begun.

        Work that is paused, and has not begun, is given back.
        """
        self.state.is_draining = True
        async with self._taking:  # work that is begun just now
            pass
        for work in tuple(self._held_works):
            work.cancel()
        while self._works:
            await asyncio.wait(tuple(self._works.values()))

    async def _receive(self) -> None:
        """Take work from the queue, in its order and one by one.

        As much is done at once as there are slots.
        """
        while not self.state.is_draining:
            await self._slots.acquire()
            work: asyncio.Task[None] | None = None
            try:
                delivery = await self._received()
                if self.state.is_draining:  # since the wait for it began
                    with contextlib.suppress(EngineAwayError):  # it is delivered again in any case
                        await delivery.give_back()
                    return
                work = await self._taken(delivery)
            finally:  # also if this is ended, to begin again
                if work is None:
                    self._slots.release()
            if work is not None:
                work.add_done_callback(lambda _: self._slots.release())

    async def _taken(self, delivery: Delivery) -> asyncio.Task[None] | None:
        """Begin a piece of work.

        None if that fails, or it is over already.
        """
        try:
            async with self._taking:
                return await self._take(delivery)
        except SupervisorStoppedError:
            raise
        except Exception:  # an edge: one piece of work must not end the others
            _log.exception("work from the machine %s can't be begun; it is delivered again", delivery.sender)
            return None

    async def _received(self) -> Delivery:
        """Wait for work, while this machine holds its name."""
        while True:
            await self._own_name.is_held.wait()
            delivery = await self._own_name.while_held(self._engine.receive(self._name))
            if delivery is not None:
                return delivery

    async def _take(self, delivery: Delivery) -> asyncio.Task[None] | None:
        """Begin a piece of work; None if it is over already."""
        order = await self._ordered(delivery)
        if order is None:
            await self._done(delivery)
            return None
        task = order.task
        work = self._works.get(task.id)
        if work is not None:  # it is delivered again, or its queue's delivery comes after a restart
            in_background(self._finish_with(work, delivery, order))
            return None
        claim: int | None = None
        if order.claim is not None:
            claim = await start_claimed(self._engine, self._told_key(task), task.target or "", order.claim)
            if claim is None:
                await self._done(delivery)
                return None
        work = self._begin(task, self._do_ordered(order, claim, await self._signals.read(task)))
        in_background(self._finish_with(work, delivery, order))
        return work

    async def _do_ordered(self, order: WorkOrder, claim: int | None, signals: TaskSignals | None) -> None:
        """Begin a task that was delivered, and see it to its end.

        Tasks of one target begin in the order of the queue. The files of others do not hold them up.

        Args:
            order: The work.
            claim: The revision of this machine's claim; None if the work names this machine.
            signals: All that its submitter has said.
        """
        task = order.task
        if signals is not None:
            signals = await self._resumed(task, signals)
        new_lock = asyncio.Lock()
        async with self._begin_locks.setdefault(task.target, new_lock) if task.target else new_lock:
            begun, signals = await self._begun(order, signals)
        if isinstance(begun, TaskResult):
            await self._tell_not_begun(task, begun, claim)
        elif begun is not None:
            await self._do(task, begun, signals)

    async def _resumed(self, task: Task, signals: TaskSignals) -> TaskSignals:
        """Wait while the submitter pauses a task that has not begun.

        A machine that drains gives its work back meanwhile.
        """
        work = asyncio.current_task()
        while signals.paused and signals.cancel is None:
            if self.state.is_draining or work is None:
                raise asyncio.CancelledError
            self._held_works.add(work)
            try:
                newer_signals = await self._signals.newer(task)
            finally:
                self._held_works.discard(work)
            if newer_signals is None:
                return signals.model_copy(update={"cancel": _GIVEN_UP})
            signals = newer_signals
        return signals

    async def _ordered(self, delivery: Delivery) -> WorkOrder | None:
        """Return a delivery's work.

        None if it can't be read, or is not the sender's.
        """
        try:
            order = WorkOrder.model_validate_json(await repeat(lambda: unpack(self._engine, delivery.body)))
            check_sender(order.task, delivery.sender)
        except (ValueError, DamagedFileError) as error:
            _log.error("work from the machine %s is dropped: %s", delivery.sender, error)
            await self._tell_unreadable(delivery, error)
            return None
        return order

    async def _tell_unreadable(self, delivery: Delivery, error: Exception) -> None:
        """Tell a submitter that its order can't be read.

        Its task's id must be readable.
        """
        task_id = task_id_in(delivery.body)
        if is_foreign_id(task_id):
            cause = Cause(reason=f"the machine {self._name} can't read its order: {reason_of(error)}")
            result = TaskResult(task_id=task_id, outcome=Outcome.ERROR, causes=(cause,), rounds=0)
            key = told_key(delivery.sender, self._name, task_id)
            body = WorkResult(result=result).model_dump_json().encode()
            await repeat(lambda: self._engine.put(Bucket.RESULTS, key, body))

    async def _begun(self, order: WorkOrder, signals: TaskSignals | None) -> tuple[_Begun, TaskSignals | None]:
        """Submit a task, unless it is known or was cancelled before.

        Returns:
            Its handle; its result if it is not begun; None if it is over, and its submitter has the result. Then all
            that its submitter has said.
        """
        earlier_work = await self._earlier_work(order, signals)
        if earlier_work != _UNKNOWN:
            return earlier_work, signals
        task = order.task
        try:
            accepted_task = await self._accepted(task)
            paths = await self._files.take_in(sent_by(order.files, submitter_of(task), task.id), task.id)
        except SupervisorStoppedError:
            raise
        except (CallboardError, ValueError, OSError) as error:
            return _not_begun(task, Outcome.FAILED, *Cause.chain(error)), signals
        signals = await self._said_meanwhile(task, signals)
        if signals is not None and signals.cancel is not None:
            return _not_begun(task, Outcome.CANCELLED, Cause(reason=signals.cancel)), signals
        given_task = self._files.with_files(accepted_task, paths, self._name)
        try:
            return await asyncio.to_thread(self._submitting.submit, given_task), signals
        except (SupervisorStoppedError, JournalError):
            raise  # as a timeout: it may have been taken, and is known then when it is delivered again
        except (CallboardError, ValueError) as error:
            return _not_begun(task, Outcome.FAILED, *Cause.chain(error)), signals

    async def _said_meanwhile(self, task: Task, signals: TaskSignals | None) -> TaskSignals | None:
        """Return all that a submitter has said during waits.

        These are waits for other work and for files.
        """
        if not self._signals.has_news(task):
            return signals
        last = await self._signals.read(task)
        if last is None:
            return None if signals is None else signals.model_copy(update={"cancel": _GIVEN_UP})
        return await self._resumed(task, last)

    async def _earlier_work(self, order: WorkOrder, signals: TaskSignals | None) -> _Begun | Literal["unknown"]:
        """Return an earlier delivery's task, or a cancelled one's end."""
        task = order.task
        with contextlib.suppress(UnknownTaskError):
            handle = await asyncio.to_thread(self._submitting.handle, task.id)
            if not _is_same_work(handle.task, task):
                cause = Cause(reason=f"the task id {task.id!r} was used before, for another task of this machine")
                return _not_begun(task, Outcome.FAILED, cause)
            return None if signals is None and order.claim is None and handle.done() else handle
        reason = None if signals is None else signals.cancel
        if signals is None and order.claim is None:  # it is delivered again after its end; else its claim tells that
            reason = _GIVEN_UP
        if reason is not None:
            return _not_begun(task, Outcome.CANCELLED, Cause(reason=reason))
        return _UNKNOWN

    async def _accepted(self, task: Task) -> Task:
        """Return a task under the terms of this machine.

        Raises:
            ValueError: If this machine does not accept it.
        """
        task = narrowed(task, submitter_of(task), self._settings)
        if not self._settings.fleet.accept.offers_all:
            offered = await asyncio.to_thread(self.state.offered)
            if reason := refused_targets(task, {target.id for target in offered}):
                raise ValueError(reason)
        return task

    async def _tell_not_begun(self, task: Task, result: TaskResult, claim: int | None) -> None:
        """Tell a submitter that its work is not begun here.

        Work for any machine that is refused may be done by another one: its claim is refused then.

        Args:
            task: The task.
            result: The reasons.
            claim: The revision of this machine's claim; None if the work names this machine.
        """
        if result.outcome is Outcome.FAILED:
            reasons = "; ".join(cause.reason for cause in result.causes)
            _log.warning("work from the machine %s is refused: %s", submitter_of(task), reasons)
        if claim is None or result.outcome is not Outcome.FAILED:
            await self._publish_result(task, result)
        else:
            await refuse_claimed(self._engine, self._told_key(task), task.target or "", claim, result.causes)

    def _begin(self, task: Task, doing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self._asked[task.id] = asyncio.Event()
        work = asyncio.get_running_loop().create_task(doing)
        self._works[task.id] = work
        self.task_ids.add(task.id)  # before its first step
        work.add_done_callback(lambda _: self._end(task, work))
        return work

    def _end(self, task: Task, work: asyncio.Task[None]) -> None:
        del self._works[task.id]
        self._forget(task)
        error = None if work.cancelled() else work.exception()
        if error is not None and not isinstance(error, SupervisorStoppedError):
            _log.error("the end of %s can't be told to the machine %s: %s", task.id, submitter_of(task), error)

    def _forget(self, task: Task) -> None:
        self.task_ids.discard(task.id)
        self._asked.pop(task.id, None)
        self._settled.forget(task.id)
        self._signals.forget(task)

    async def _finish_with(self, work: asyncio.Task[None], delivery: Delivery, order: WorkOrder) -> None:
        """Keep a delivery while its work goes on, then remove it."""
        while not work.done():
            if not (await asyncio.wait({work}, timeout=BEAT_SECONDS))[0]:
                with contextlib.suppress(EngineAwayError):
                    await delivery.keep()
        if work.cancelled() and self.state.is_draining:
            with contextlib.suppress(EngineAwayError):
                await delivery.give_back()
        elif not work.cancelled() and work.exception() is None:
            await self._done(delivery, order)

    async def _done(self, delivery: Delivery, order: WorkOrder | None = None) -> None:
        """Remove a delivery from the queue, with the file of its work.

        With an order that is over, its files are deleted: its submitter may have given it up, or be killed. If that
        fails, the work is delivered again, and known then: a server that was killed may never answer for a delivery of
        before.
        """
        with contextlib.suppress(EngineAwayError):
            if order is not None:
                await self._files.discard(sent_by(order.files, delivery.sender, order.task.id).values())
            await delivery.done()
            await discard_packed(self._engine, delivery.body)

    async def _resume(self, task: Task) -> None:
        """See a task of an earlier process to its end.

        It waits until its submitter was asked.
        """
        self._asked[task.id].set()  # it may have asked something
        handle = await asyncio.to_thread(self._submitting.handle, task.id)
        signals = await self._signals.read(task)
        if signals is not None and signals.cancel is not None:
            await asyncio.to_thread(handle.cancel, signals.cancel)
        await asyncio.to_thread(self._submitting.confirm, task.id)
        await self._do(task, handle, signals)

    async def _do(self, task: Task, handle: TaskHandle[Any], signals: TaskSignals | None) -> None:
        """See a task to its end, with its submitter's words."""
        helpers = [
            asyncio.ensure_future(self._follow_signals(task, handle, signals)),
            asyncio.ensure_future(self._publish_requests(task, handle)),
        ]
        try:
            result = await handle
        finally:
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
        await self._publish_result(task, result)

    async def _publish_result(self, task: Task, result: TaskResult) -> None:
        files = await self._files.send(result.artifacts, task.id, submitter_of(task))
        await self._put(Bucket.RESULTS, task, WorkResult(result=result, files=files, settled=self._settled.of(task.id)))

    async def _put(self, bucket: Bucket, task: Task, value: Value) -> bytes:
        """Tell a submitter something, and return its encoded form."""
        body = await repeat(lambda: pack(self._engine, value, task.id, submitter_of(task)))
        await repeat(lambda: self._engine.put(bucket, self._told_key(task), body))
        return body

    async def _follow_signals(self, task: Task, handle: TaskHandle[Any], signals: TaskSignals | None) -> None:
        """Follow the words of a submitter, also the earlier ones."""
        obey = Obedience(self._submitting, handle, submitter_of(task), approvals_here=self._approvals_here)
        if signals is not None and signals != _NOTHING_SAID:
            await asyncio.to_thread(obey.follow, signals)
        while True:
            newer_signals = await self._signals.newer(task)
            if newer_signals is not None:
                await asyncio.to_thread(obey.follow, newer_signals)

    async def _publish_requests(self, task: Task, handle: TaskHandle[Any]) -> None:
        """Tell the submitter the requests to people."""
        published: RequestsOfTask | None = None
        former_body = b""
        event = self._asked[task.id]
        while True:
            await event.wait()
            event.clear()
            requests = self._told(task, await asyncio.to_thread(lambda: (*handle.questions(), *handle.approvals())))
            if requests != published:
                body, published = await self._put(Bucket.REQUESTS, task, requests), requests
                if former_body != body:
                    await repeat(lambda body=former_body: discard_packed(self._engine, body))  # type: ignore[misc]
                former_body = body

    def _told(self, task: Task, requests: tuple[Request, ...]) -> RequestsOfTask:
        """Separate the requests that are answered here from the submitter's."""
        approvals = [ask for ask in requests if isinstance(ask, ApprovalRequest)] if self._approvals_here else []
        return RequestsOfTask(
            requests=tuple(ask for ask in requests if ask not in approvals),
            approvals_there=tuple(ApprovalThere(id=ask.id, reason=ask.reason) for ask in approvals),
            settled=self._settled.of(task.id),
        )

    def _told_key(self, task: Task) -> str:
        return told_key(submitter_of(task), self._name, task.id)


def _is_same_work(earlier_task: Task, task: Task) -> bool:
    """Return whether a task does the same subtask, of the same machine.

    The results of other tasks are not told.
    """
    first, second = earlier_task.origin, task.origin
    if first is None or second is None:
        return False
    return (first.submitter, first.run_id) == (second.submitter, second.run_id)


def _not_begun(task: Task, outcome: Outcome, *causes: Cause) -> TaskResult:
    return TaskResult(task_id=task.id, outcome=outcome, causes=causes, rounds=0)
