"""Time limits of an event loop with one shared timer.

The timer waits for the limit that is due first. The clock is `time.monotonic`.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    from callboard.messages import Seconds


class TimeLimits:
    """The time limits of one event loop.

    Most limits end long before they are due, so none has a timer of its own.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.running: set[LoopTimeout] = set()
        """The active limits; each cancels its task when it is due, unless it ends before."""
        self.due = math.inf
        """The time of the next check for due limits. A limit that ends early is only discarded, and the timer is not
        moved: the check then finds nothing."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, limit: LoopTimeout, seconds: Seconds) -> None:
        """Start a limit that is due after `seconds`."""
        due = limit.due = time.monotonic() + seconds
        self.running.add(limit)
        if due < self.due:
            self._wait(due)

    def _wait(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.due = due
        self._timer = self.loop.call_at(due, self._ring)

    def _ring(self) -> None:
        now = max(self.due, time.monotonic())
        self.due, self._timer = math.inf, None
        for limit in [limit for limit in self.running if limit.due <= now]:
            limit.expire()
        next_due = min((limit.due for limit in self.running), default=math.inf)
        if next_due < math.inf:
            self._wait(next_due)


class LoopTimeout:
    """A `TimeLimit` like `asyncio.timeout`, without a timer of its own."""

    __slots__ = ("_cancels", "_expired", "_held", "_limits", "_remaining_seconds", "_task", "due")

    def __init__(self, limits: TimeLimits, seconds: Seconds) -> None:
        self._limits = limits
        self._remaining_seconds = seconds
        self._held = False
        self._task: asyncio.Task[object] | None = None
        """The task that it may cancel; None before the body begins and after it ends."""
        self._cancels = 0
        self._expired = False
        self.due = math.inf
        """The time at which it cancels, in seconds of the loop's clock."""

    def expired(self) -> bool:
        """Report whether this limit cancelled the task."""
        return self._expired

    def hold(self) -> None:
        """Stop the clock."""
        if self._task is not None and not self._held and not self._expired:
            self._held, self._remaining_seconds = True, self.due - time.monotonic()
            self._limits.running.discard(self)

    def release(self) -> None:
        """Restart the clock with the time that was left."""
        if self._task is not None and self._held:
            self._held = False
            self._limits.begin(self, self._remaining_seconds)

    def expire(self) -> None:
        """Cancel the task."""
        self._limits.running.discard(self)
        if self._task is not None:
            self._expired = True
            self._task.cancel()

    async def __aenter__(self) -> Self:
        task = self._task = asyncio.current_task()
        if task is None:
            msg = "a time limit needs a task that it can cancel"
            raise RuntimeError(msg)
        self._cancels = task.cancelling()
        self._limits.begin(self, self._remaining_seconds)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        self._limits.running.discard(self)
        if self._expired and task is not None and task.uncancel() <= self._cancels and kind is asyncio.CancelledError:
            raise TimeoutError from error  # else another caller cancelled the task too
