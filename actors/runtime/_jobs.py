"""Jobs: slow work on the loop, under a lease, with one result."""

from __future__ import annotations

import asyncio
import functools
import threading
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from callboard.actors.runtime._lanes import calls_of_job
from callboard.actors.runtime._watchdog import stack_of
from callboard.messages import Message

if TYPE_CHECKING:
    import concurrent.futures
    from types import FrameType

    from callboard.actors.runtime._clock import Clock
    from callboard.actors.runtime._event_loop import EventLoop
    from callboard.actors.runtime._lanes import Lane
    from callboard.actors.runtime._lease import Lease


@dataclass(eq=False, slots=True)
class Job:
    """A running job."""

    lease: Lease
    token: int
    """The lease's token."""
    task: asyncio.Task[None] | None = None
    cancelled: bool = False
    has_begun: bool = False
    """Whether the coroutine has started. A task that is cancelled before that never runs its coroutine, so `_stop` must
    end the job."""
    returned: bool = False
    """Whether the coroutine has ended; blocking calls that it started may still run."""
    started: float = 0.0
    """The time from which its duration counts, on the clock's `elapsed`."""
    hung: bool = False
    """Whether `HungJobs` has found it."""
    calls: dict[concurrent.futures.Future[Any], Lane] = field(default_factory=dict)


Work = Callable[[], Awaitable[Message]]
Done = Callable[[Message | BaseException], None]
Failed = Callable[[BaseException], None]

_NO_JOBS: set[Job] = set()

GRACE_SECONDS = 0.5
"""The time that a coroutine may take to end after its cancellation; after that it counts as stuck."""


@dataclass
class _JobWatch:
    on_idle: Callable[[], None]
    on_stuck: Callable[[], None]
    stuck: bool = False
    """Whether `on_stuck` was called."""


class Jobs:
    """The running jobs, by lease. Thread-safe.

    A job has ended when its coroutine has ended *and* every blocking call that it started has returned.
    """

    def __init__(self, loop: EventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._draining = 0
        self._running: dict[int, set[Job]] = {}
        self._watches: dict[int, _JobWatch] = {}

    def start(self, lease: Lease, work: Work, done: Done, failed: Failed) -> None:
        """Run a coroutine function as a job.

        `done` is called on the loop's thread with the message that it returned, or the exception that it raised.
        It is not called if the job ends by its cancellation. If the coroutine returns in spite of its cancellation,
        `done` is called, and the agent recognises by the job's number that the result is stale.

        `failed` is called with the exception that `done` raised. So each job that is not cancelled leads to a message,
        whatever the code of third parties raises in it.
        """
        job = Job(lease, lease.token, started=self._clock.elapsed())
        with self._lock:
            self._running.setdefault(job.token, set()).add(job)
            lease.jobs += 1
        try:
            if self._loop.is_here:
                self._begin(job, work, done, failed)
            else:
                self._loop.call(lambda: self._begin(job, work, done, failed))
        except BaseException:  # an edge: the caller reports it; a job that never ends would keep its target
            self._coroutine_ended(job)
            raise

    def _begin(self, job: Job, work: Work, done: Done, failed: Failed) -> None:
        if job.cancelled:
            self._coroutine_ended(job)
            return
        job.task = asyncio.get_running_loop().create_task(self._run(job, work, done, failed))

    def _stop(self, job: Job) -> None:
        """Cancel the coroutine of a job; on the loop's thread."""
        if job.task is None:  # `_begin` will see that the job was cancelled
            return
        job.task.cancel()
        if not job.has_begun:
            job.has_begun = True
            self._coroutine_ended(job)

    async def _run(self, job: Job, work: Work, done: Done, failed: Failed) -> None:
        job.has_begun = True
        calls_of_job.set(job.calls)
        result: Message | BaseException | None
        try:
            result = await work() or RuntimeError("the work of a state returned no message")
        except asyncio.CancelledError:
            result = None if job.cancelled else RuntimeError("the job was cancelled from outside")
        except BaseException as error:  # an edge: a SystemExit in a coroutine would end the loop for all jobs
            result = error
        try:
            if result is not None:
                done(result)
        except BaseException as error:  # an edge: states decide here, and the run would wait for this result for ever
            failed(error)
        finally:
            self._coroutine_ended(job)

    def _coroutine_ended(self, job: Job) -> None:
        pending = [call for call in job.calls if not call.done()] if job.calls else []
        if not pending:
            self._ended(job)
            return
        job.returned = True  # set before `_tell_stuck` looks for a watch: a later `when_idle` sees it
        pending_count = len(pending)

        def returned(_call: object) -> None:
            nonlocal pending_count
            with self._lock:
                pending_count -= 1
                last = pending_count == 0
            if last:
                self._ended(job)

        self._tell_stuck(job.token)
        for call in pending:
            call.add_done_callback(returned)

    def reap(self) -> None:
        """End the jobs whose coroutine is over and did not report it."""
        for job in self.running:
            if job.task is not None and job.task.done() and not job.returned:
                self._ended(job)

    def _ended(self, job: Job) -> None:
        with self._lock:
            running = self._running.get(job.token, set())
            running.discard(job)
            if running or self._running.pop(job.token, None) is None:
                return
            if self._draining and not self._running:
                self._idle.notify_all()
            watch = self._watches.pop(job.token, None)
        if watch is not None:
            watch.on_idle()

    def cancel(self, token: int) -> None:
        """Cancel the jobs under a lease.

        It returns at once; `when_idle` reports when they have ended.
        """
        for job in self._under(token):
            job.cancelled = True
            self._loop.call(functools.partial(self._stop, job))

    def when_idle(self, token: int, on_idle: Callable[[], None], on_stuck: Callable[[], None]) -> None:
        """Call `on_idle` once no job runs under a lease.

        If none runs now, it is called at once. If a job can't be stopped, because of a blocking call or of a coroutine
        that ignores its cancellation, `on_stuck` is called once before it. Both may be called on any thread.
        """
        with self._lock:
            jobs = self._under(token)
            stuck = any(job.returned for job in jobs)
            if jobs:
                self._watches[token] = _JobWatch(on_idle, on_stuck, stuck)
        if not jobs:
            on_idle()
        elif stuck:
            on_stuck()
        else:
            self._loop.call(lambda: asyncio.get_running_loop().call_later(GRACE_SECONDS, self._tell_stuck, token))

    def _tell_stuck(self, token: int) -> None:
        with self._lock:
            watch = self._watches.get(token)
            if watch is None or watch.stuck:
                return
            watch.stuck = True
        watch.on_stuck()

    def stack(self, token: int) -> str:
        """Return the stack of the work under a lease.

        It is the stack of a blocking call's thread or, if there is none, of the coroutines. It may be empty.
        """
        jobs = self._under(token)
        for job in jobs:
            for call, lane in tuple(job.calls.items()):
                if not call.done():
                    return stack_of(lane.thread)
        return "".join(_stack_of_task(job.task) for job in jobs if job.task is not None)

    @property
    def running(self) -> tuple[Job, ...]:
        """The jobs that have not ended."""
        with self._lock:
            return tuple(job for jobs in self._running.values() for job in jobs)

    def _under(self, token: int) -> set[Job]:
        """Copy the jobs of a lease.

        It needs no lock, since `dict.get` and `set.copy` are atomic.
        """
        return self._running.get(token, _NO_JOBS).copy()

    def drain(self, timeout: float) -> bool:
        """Wait until no job runs. Returns False on a timeout."""
        with self._idle:
            self._draining += 1
            try:
                return self._idle.wait_for(lambda: not self._running, timeout)
            finally:
                self._draining -= 1


def _stack_of_task(task: asyncio.Task[None]) -> str:
    """Return a coroutine's stack, down to the innermost awaited one."""
    frames: list[tuple[FrameType, int]] = []
    awaited: Any = task.get_coro()
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        frames.append((frame, frame.f_lineno))
        awaited = awaited.cr_await
    return "".join(traceback.StackSummary.extract(iter(frames)).format())
