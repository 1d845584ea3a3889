"""The watchdog: reports blocked threads with their stacks."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Protocol

from callboard.actors.runtime._threads import mark_own_thread
from callboard.config import HostLog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from callboard.actors.runtime._clock import Clock
    from callboard.actors.runtime._event_loop import EventLoop
    from callboard.actors.runtime._jobs import Jobs
    from callboard.messages import Seconds


_log = HostLog()

STACK_FRAMES = 40
"""The number of innermost frames in a reported stack."""
STACK_CHARACTERS = 8000
"""The maximum length of a reported stack; the part nearest to the innermost frame is kept."""


def stack_of(thread: threading.Thread) -> str:
    """Return a thread's stack, formatted like a traceback, innermost frame last.

    It is empty if the thread does not run. It contains file names, line numbers and source lines, but no values.
    """
    frame = sys._current_frames().get(thread.ident or 0) if thread.is_alive() else None  # noqa: SLF001 - documented, and the only way
    if frame is None:
        return ""
    return "".join(traceback.format_stack(frame, STACK_FRAMES))[-STACK_CHARACTERS:]


class Watched(Protocol):
    """An object whose thread may be checked for blockages."""

    @property
    def thread(self) -> threading.Thread | None:
        """The working thread; None if there is none, which is never busy."""
        ...

    @property
    def busy(self) -> Seconds:
        """The time spent on the current piece of work; 0 while idle."""
        ...


class Watchdog:
    """A daemon thread that requests heartbeats from the event loop.

    It also checks how long other threads have been busy.

    All callbacks run on the watchdog's thread and must be short. Stop the watchdog before the loop: a loop that has
    ended sends no heartbeat either, and would be reported as blocked, with an empty stack.
    """

    def __init__(
        self,
        name: str,
        loop: EventLoop,
        hung_seconds: Seconds,
        *,
        on_blocked: Callable[[str, str, Seconds], None],
        on_free: Callable[[str], None],
        watched: Sequence[Watched] = (),
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        """Create a watchdog.

        Args:
            name: The name of its thread.
            loop: The event loop to watch.
            hung_seconds: The time that the loop may take for a heartbeat, and the others for one piece of work, in real
                time. After a heartbeat the next check follows after half of it.
            on_blocked: Called once for each blockage with the name of the thread, its stack, and the seconds since the
                heartbeat was requested, or for which the thread has been busy.
            on_free: Called with the name of the thread when the blockage ends.
            watched: The other objects to check.
            on_tick: Called at each check, also while the loop is blocked; for checks of other work.
        """
        self._loop = loop
        self._hung_seconds = hung_seconds
        self._on_blocked = on_blocked
        self._on_free = on_free
        self._on_tick = on_tick
        self._watched = watched
        self._blocked: set[int] = set()  # the indices in `watched` that were reported
        self._names: set[str] = set()
        self._changed = threading.Condition()
        self._stopping = False
        self._answered = False
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def blocked(self) -> tuple[str, ...]:
        """The names of the threads that are blocked now."""
        return tuple(sorted(self._names.copy()))

    def stop(self, timeout: Seconds) -> bool:
        """Stop the thread, also while the loop is blocked.

        Returns whether the thread ended in time.
        """
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _main(self) -> None:
        mark_own_thread()
        while not self._stopping:
            call_time = time.monotonic()
            self._answered = False
            self._loop.call(self._sign)
            self._look()
            if not self._sign_or_stop(self._hung_seconds):
                thread = self._loop.thread
                self._block(thread, time.monotonic() - call_time)
                while not self._sign_or_stop(self._hung_seconds):
                    self._look()
                if not self._stopping:
                    self._free(thread)
            self._pause(self._hung_seconds / 2)

    def _look(self) -> None:
        self._tell(self._on_tick)
        for number, watched_thread in enumerate(self._watched):
            busy, thread = watched_thread.busy, watched_thread.thread
            if thread is None:
                continue
            if busy > self._hung_seconds and number not in self._blocked:
                self._blocked.add(number)
                self._block(thread, busy)
            elif busy <= self._hung_seconds and number in self._blocked:
                self._blocked.discard(number)
                self._free(thread)

    def _block(self, thread: threading.Thread, seconds: Seconds) -> None:
        self._names.add(thread.name)
        self._tell(self._on_blocked, thread.name, stack_of(thread), seconds)

    def _free(self, thread: threading.Thread) -> None:
        self._names.discard(thread.name)
        self._tell(self._on_free, thread.name)

    def _sign(self) -> None:
        """Record the heartbeat, on the loop's thread."""
        with self._changed:
            self._answered = True
            self._changed.notify_all()

    def _sign_or_stop(self, timeout: Seconds | None) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._answered or self._stopping, timeout)

    def _pause(self, seconds: Seconds) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, seconds)

    def _tell(self, function: Callable[..., None], *facts: object) -> None:
        try:
            function(*facts)
        except BaseException:  # an edge: a failing report must not end the watchdog
            _log.exception("a report of the watchdog failed")


class HungJobs:
    """A search for jobs that ignore their deadline and their cancel.

    A step has a time limit of its own, which ends it on the event loop. A job that is still there some time later
    blocks a thread, or swallows its cancellation: nothing in it can report that. So the watchdog looks for it, on a
    thread that no job can block.
    """

    def __init__(self, jobs: Jobs, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock

    def find(self, seconds: Seconds) -> list[int]:
        """Return the tokens of leases with a job older than `seconds`.

        A task's own limit on its steps may make that longer, or shorter. Each job is found once. The time of a job that
        waits for a person starts again after the answer. Only one thread may call this.
        """
        running, now = self._jobs.running, self._clock.elapsed()
        for job in running:
            if job.lease.asking:
                job.started = now
        late_jobs = [job for job in running if not job.hung and now - job.started > seconds + job.lease.extra_seconds]
        for job in late_jobs:
            job.hung = True
        return [job.token for job in late_jobs]
