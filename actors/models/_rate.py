"""How fast a provider may be asked, by all agents together."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from callboard.messages import Seconds

MINUTE = 60.0


class RateLimit:
    """Lets calls of one provider through, first come, first served. Used on the event loop alone."""

    def __init__(
        self,
        *,
        per_minute: int | None = None,
        concurrent: int | None = None,
        now: Callable[[], Seconds] = time.monotonic,
        sleep: Callable[[Seconds], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Make it.

        Args:
            per_minute: Calls that may begin in any 60 seconds.
            concurrent: Calls that may be under way.
            now: A clock that never goes back.
            sleep: Waits on it.
        """
        self._per_minute = per_minute
        self._slots = asyncio.Semaphore(concurrent) if concurrent is not None else None
        self._began: deque[Seconds] = deque(maxlen=per_minute or 0)
        self._held_until = 0.0
        self._line = asyncio.Lock()
        self._now = now
        self._sleep = sleep

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and keep it for the call."""
        async with self._slots or contextlib.nullcontext():
            await self.begin()
            yield

    async def begin(self) -> None:
        """Wait until one more call may begin, and count it: a call's first try, or a repetition."""
        async with self._line:
            while (wait := self._wait()) > 0:
                await self._sleep(wait)
            self._began.append(self._now())

    def hold(self, seconds: Seconds) -> None:
        """Let nobody begin for a while: the provider said that it is asked too much."""
        self._held_until = max(self._held_until, self._now() + seconds)

    def _wait(self) -> Seconds:
        now = self._now()
        full = self._per_minute is not None and len(self._began) == self._per_minute
        next_place = self._began[0] + MINUTE - now if full else 0.0
        return max(next_place, self._held_until - now)
