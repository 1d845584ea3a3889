"""The clock that tells deadlines; a virtual one for tests."""

from __future__ import annotations

import asyncio
import functools
import heapq
import itertools
import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol, Self

from callboard.actors.runtime._limits import LoopTimeout, TimeLimits
from callboard.actors.runtime._threads import mark_own_thread
from callboard.config import HostLog

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from callboard.messages import Seconds, Timestamp


_log = HostLog()


class Alarm:
    """A call that is due later."""

    def __init__(self, due: float, callback: Callable[[], None]) -> None:
        self.due = due
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        """Never call; without effect once it was called."""
        self.cancelled = True


class TimeLimit(Protocol):
    """What `Clock.timeout` gives: ``async with`` it. What takes longer is cancelled, and a `TimeoutError` follows."""

    def expired(self) -> bool:
        """Say whether it was this limit that cancelled."""
        ...

    def hold(self) -> None:
        """Stand still, while a person is asked; without effect before the beginning and after the end."""

    def release(self) -> None:
        """Go on with the time that was left."""

    async def __aenter__(self) -> object:
        """Begin."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End."""
        ...


class Clock(ABC):
    """Tells deadlines. Callbacks run on the clock's thread and must be short: they tell an actor."""

    def __init__(self) -> None:
        self._alarms: list[tuple[float, int, Alarm]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._origin: float | None = None

    @abstractmethod
    def now(self) -> Timestamp:
        """Give the wall time."""

    @abstractmethod
    def elapsed(self) -> Seconds:
        """Give seconds on a clock that never jumps; only differences mean anything."""

    def steady(self) -> Timestamp:
        """Give the wall time as it was when this was first asked, and what has elapsed since: it never jumps either."""
        if self._origin is None:
            self._origin = self.now() - self.elapsed()
        return self._origin + self.elapsed()

    def after(self, seconds: Seconds, callback: Callable[[], None]) -> Alarm:
        """Call back once, `seconds` from now."""
        alarm = Alarm(self.elapsed() + seconds, callback)
        with self._changed:
            heapq.heappush(self._alarms, (alarm.due, next(self._order), alarm))
            if self._alarms[0][2] is alarm:  # any other comes after what is waited for already
                self._changed.notify()
        return alarm

    @abstractmethod
    def timeout(self, seconds: Seconds) -> TimeLimit:
        """Limit what runs in ``async with``, as `asyncio.timeout` does, on this clock; for coroutines on a loop."""

    def _due(self, elapsed: Seconds) -> Alarm | None:
        while self._alarms and self._alarms[0][2].cancelled:
            heapq.heappop(self._alarms)
        if self._alarms and self._alarms[0][0] <= elapsed:
            return heapq.heappop(self._alarms)[2]
        return None

    @abstractmethod
    def start(self) -> None:
        """Begin to tell."""

    @abstractmethod
    def stop(self, timeout: Seconds) -> bool:
        """Stop telling. Returns whether it ended in time."""


class SystemClock(Clock):
    """The machine's clock, on one daemon thread."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._limits: TimeLimits | None = None
        """Those of the loop that asked last; a supervisor has one."""
        self._stopping = False
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    now = staticmethod(time.time)
    elapsed = staticmethod(time.monotonic)

    def timeout(self, seconds: Seconds) -> TimeLimit:
        """Limit on the loop's own clock: no other thread has to wake up for it."""
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
                    ahead = self._alarms[0][0] - self.elapsed() if self._alarms else None
                    self._changed.wait(ahead if ahead is None else min(ahead, threading.TIMEOUT_MAX))
                    continue
            try:
                alarm.callback()
            except BaseException:  # an edge: one alarm that fails must not cost all others
                _log.exception("an alarm failed")


class VirtualClock(Clock):
    """A clock that stands still until a test moves it."""

    def __init__(self, now: Timestamp = 0.0) -> None:
        super().__init__()
        self._now = now

    def now(self) -> Timestamp:
        """Give the virtual time."""
        return self._now

    def elapsed(self) -> Seconds:
        """Give the virtual time."""
        return self._now

    def timeout(self, seconds: Seconds) -> TimeLimit:
        """Limit on virtual time."""
        return _VirtualTimeout(self, seconds)

    def start(self) -> None:
        """Nothing to start: it moves when it is told to."""

    def stop(self, timeout: Seconds) -> bool:
        """Nothing to stop."""
        return True

    def advance(self, seconds: Seconds) -> None:
        """Move on, calling back what falls due, in order, on the caller's thread."""
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
    """A limit without a deadline of its own; the clock's alarm makes it due."""

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
