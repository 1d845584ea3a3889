"""The rate limit of a provider's calls, and the pauses before retries."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from callboard.config import Provider
    from callboard.messages import Seconds


MINUTE = 60.0
FIRST_PAUSE = 0.5
"""Seconds before the first retry if the provider gives none; doubled for each further retry."""


# pydantic-ai's ConcurrencyLimiter and wait_retry_after do not fit. The first limits concurrent calls, as a semaphore
# does, but not calls per minute. The second waits within one call's transport, where neither budgets nor events see the
# retry, and where other agents keep calling the overloaded provider.
class RateLimit:
    """A FIFO rate limiter for one provider's calls.

    Used only on the event loop.
    """

    def __init__(
        self,
        *,
        per_minute: int | None = None,
        concurrent: int | None = None,
        now: Callable[[], Seconds] = time.monotonic,
        sleep: Callable[[Seconds], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Initialise the limiter.

        Args:
            per_minute: Maximum number of calls that begin in any 60 seconds.
            concurrent: Maximum number of concurrent calls.
            now: A monotonic clock.
            sleep: Sleeps by that clock.
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
        """Wait for a turn and hold it during the call."""
        async with self._slots or contextlib.nullcontext():
            await self.begin()
            yield

    async def begin(self) -> None:
        """Wait until another attempt of a call may begin, and count it."""
        async with self._line:
            while (wait := self._wait()) > 0:
                await self._sleep(wait)
            self._began.append(self._now())

    def hold(self, seconds: Seconds) -> None:
        """Delay all calls, because the provider reported too many requests."""
        self._held_until = max(self._held_until, self._now() + seconds)

    def _wait(self) -> Seconds:
        now = self._now()
        full = self._per_minute is not None and len(self._began) == self._per_minute
        next_place = self._began[0] + MINUTE - now if full else 0.0
        return max(next_place, self._held_until - now)


def retry_pause(error: Exception, tries: int, settings: Provider, rate: RateLimit) -> Seconds | None:
    """Return the backoff before a retry, in seconds; None for no retry.

    Args:
        error: The error of the call: calls are retried after a 429, a 5xx or a lost connection.
        tries: The number of earlier retries.
        settings: The limits of retries.
        rate: The provider's rate limit; after a 429 it holds all calls.
    """
    from pydantic_ai.exceptions import (
        ModelAPIError,
        ModelConnectionError,
        ModelRateLimitError,
        ModelServerError,
        ModelUnavailableError,
    )

    passing = (ModelRateLimitError, ModelUnavailableError, ModelServerError, ModelConnectionError)
    if not isinstance(error, ModelAPIError) or not isinstance(error, passing):
        return None
    longest, server_pause = settings.retry_seconds, error.retry_after
    backoff = FIRST_PAUSE * 2**tries * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
    pause = min(backoff if server_pause is None else server_pause, longest)
    if isinstance(error, ModelRateLimitError):
        rate.hold(pause)  # for all agents, even if this call is not retried
    too_long = server_pause is not None and server_pause > longest
    return None if too_long or tries >= settings.retries else pause
