"""Clocks for deadlines and time limits; a virtual clock for tests."""

from __future__ import annotations

import asyncio
import functools
import heapq
import itertools
import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol, Self

from callboard.actors.runtime._threads import mark_own_thread
from callboard.actors.runtime._time_limits import LoopTimeout, TimeLimits
from callboard.config import HostLog

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from callboard.messages import Seconds, Timestamp


_log = HostLog()


class Alarm:
    """A scheduled callback."""

    def __init__(self, due: float, callback: Callable[[], None]) -> None:
        self.due = due
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        """Cancel the callback; without effect after it was called."""
        self.cancelled = True


class TimeLimit(Protocol):
    """A time limit, as `Clock.timeout` returns it; use it in ``async with``.

    A body that takes longer is cancelled, and a `TimeoutError` is raised.
    """

    def expired(self) -> bool:
        """Report whether this limit cancelled the body."""
        ...

    def hold(self) -> None:
        """Stop the clock while a person is asked.

        It has no effect before the body begins and after it ends.
        """

    def release(self) -> None:
        """Restart the clock with the time that was left."""

    async def __aenter__(self) -> object:
        """Start the clock."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the limit."""
        ...


class Clock(ABC):
    """A source of time with scheduled callbacks.

    Callbacks run on the clock's thread and must be short; usually they send a message to an actor.
    """

    def __init__(self) -> None:
        self._alarms: list[tuple[float, int, Alarm]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._origin: float | None = None

    @abstractmethod
    def now(self) -> Timestamp:
        """Return the wall time."""

    @abstractmethod
    def elapsed(self) -> Seconds:
        """Return the seconds of a monotonic clock; only differences are meaningful."""

    def steady(self) -> Timestamp:
        """Return a wall time that never jumps.

        It is the wall time of the first call plus the seconds elapsed since then.
        """
        if self._origin is None:
            with self._changed:  # the first callers may come on several threads
                self._origin = self._origin or self.now() - self.elapsed()
        return self._origin + self.elapsed()

    def after(self, seconds: Seconds, callback: Callable[[], None]) -> Alarm:
        """Schedule a callback for `seconds` from now."""
        alarm = Alarm(self.elapsed() + seconds, callback)
        with self._changed:
            heapq.heappush(self._alarms, (alarm.due, next(self._order), alarm))
            if self._alarms[0][2] is alarm:  # a later alarm does not change the next wake-up
                self._changed.notify()
        return alarm

    @abstractmethod
    def timeout(self, seconds: Seconds) -> TimeLimit:
        """Return a limit on this clock for coroutines, like `asyncio.timeout`."""

    def _due(self, elapsed: Seconds) -> Alarm | None:
        while self._alarms and self._alarms[0][2].cancelled:
            heapq.heappop(self._alarms)
        if self._alarms and self._alarms[0][0] <= elapsed:
            return heapq.heappop(self._alarms)[2]
        return None

    @abstractmethod
    def start(self) -> None:
        """Start to call back."""

    @abstractmethod
    def stop(self, timeout: Seconds) -> bool:
        """Stop the callbacks. Returns whether the clock ended in time."""


class SystemClock(Clock):
    """The machine's clock, on one daemon thread."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._limits: TimeLimits | None = None
        """The limits of the event loop that asked last; a supervisor has one loop."""
        self._stopping = False
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    now = staticmethod(time.time)
    elapsed = staticmethod(time.monotonic)

    def timeout(self, seconds: Seconds) -> TimeLimit:
        """Return a limit on the loop's clock, which wakes no other thread."""
        loop = asyncio.get_running_loop()
        if self._limits is None or self._limits.loop is not loop:
            self._limits = TimeLimits(loop)
        return LoopTimeout(self._limits, seconds)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout: Seconds) -> bool:
        """Stop the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _main(self) -> None:
        mark_own_thread()
        while True:
            with self._changed:
                alarm = self._due(self.elapsed())
                if self._stopping:
                    return
                if alarm is None:
                    delay = self._alarms[0][0] - self.elapsed() if self._alarms else None
                    self._changed.wait(delay if delay is None else min(delay, threading.TIMEOUT_MAX))
                    continue
            try:
                alarm.callback()
            except BaseException:  # an edge: one failing callback must not prevent the others
                _log.exception("an alarm failed")


class VirtualClock(Clock):
    """A clock that stands still until a test moves it.

    Example:
        >>> clock = VirtualClock()
        >>> begun = clock.now()
        >>> clock.advance(60)
        >>> clock.now() - begun
        60.0
    """

    def __init__(self, now: Timestamp = 0.0) -> None:
        super().__init__()
        self._now = now

    def now(self) -> Timestamp:
        """Return the virtual time."""
        return self._now

    def elapsed(self) -> Seconds:
        """Return the virtual time."""
        return self._now

    def timeout(self, seconds: Seconds) -> TimeLimit:
        """Return a limit on virtual time."""
        return _VirtualTimeout(self, seconds)

    def start(self) -> None:
        """Do nothing: only `advance` moves this clock."""

    def stop(self, timeout: Seconds) -> bool:
        """Do nothing and return True."""
        return True

    def advance(self, seconds: Seconds) -> None:
        """Advance the time and call the due callbacks on the caller's thread.

        They are called in the order in which they are due.
        """
        end = self._now + seconds
        while True:
            with self._changed:
                alarm = self._due(end)
                if alarm is None:
                    self._now = end
                    return
                self._now = max(self._now, alarm.due)
            alarm.callback()


class _VirtualTimeout:
    """A limit that an alarm of the virtual clock makes due."""

    def __init__(self, clock: Clock, seconds: Seconds) -> None:
        self._clock = clock
        self._seconds = seconds
        self._limit = asyncio.timeout(None)
        self._alarm: Alarm | None = None

    def expired(self) -> bool:
        return self._limit.expired()

    def hold(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._seconds = max(0.0, self._alarm.due - self._clock.elapsed())

    def release(self) -> None:
        if self._alarm is not None and self._alarm.cancelled:
            self._alarm = self._clock.after(self._seconds, functools.partial(self._ring, asyncio.get_running_loop()))

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        await self._limit.__aenter__()
        self._alarm = self._clock.after(self._seconds, functools.partial(self._ring, loop))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        await self._limit.__aexit__(kind, error, traceback)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon_threadsafe(self._fall_due, loop)

    def _fall_due(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._alarm is not None:
            self._limit.reschedule(loop.time())
