"""Restarts: whether a child that crashed is started anew, and when, in the words of OTP's supervisor."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.runtime._clock import Clock
    from callboard.config import SupervisionSettings
    from callboard.messages import Seconds


CAUSES = 10
"""The last crashes of one child whose errors are kept; more would explain nothing."""


JITTER = 0.2
"""How much longer a delay may randomly be, as a fraction of it: children that crashed together come back apart."""


@dataclass
class _Child:
    """One child's crashes. Its time stands still while it waits for a restart: a delay must not look like health."""

    causes: deque[BaseException] = field(default_factory=lambda: deque(maxlen=CAUSES))
    crashes: deque[Seconds] = field(default_factory=deque)
    """When it crashed, on its own time, no longer ago than the period."""
    lived: Seconds = 0.0
    """Its own time."""
    delay: Seconds | None = None
    """The last delay before a restart, without jitter."""
    back: Seconds = 0.0
    """When it is (or was) to be there again, on the clock."""

    def crashed(self, now: Seconds, settings: SupervisionSettings, error: BaseException) -> bool:
        """Take a crash down. Returns whether the child may still be restarted."""
        if self.crashes:
            self.lived += max(0.0, now - self.back)
        self.back = now
        self.causes.append(error)
        self.crashes.append(self.lived)
        while self.crashes[0] < self.lived - settings.period or len(self.crashes) > settings.intensity + 1:
            self.crashes.popleft()
        return len(self.crashes) <= settings.intensity

    def next_delay(self, settings: SupervisionSettings) -> Seconds:
        """Double the delay; never beyond the longest one."""
        self.delay = settings.backoff if self.delay is None else min(self.delay * 2, settings.max_backoff)
        return self.delay


class Restarts:
    """Keeps count of crashes, each child's for itself. Starts nothing; its owner does, on one thread.

    A child that has lived for a period without a crash is forgotten: its next crash is a first one. So what is kept is
    bounded by the crashes of one period.
    """

    def __init__(
        self, clock: Clock, settings: SupervisionSettings, chance: Callable[[], float] = random.random
    ) -> None:
        """Begin with no crash; `chance` gives a number from 0 to 1 for the jitter."""
        self._clock = clock
        self._settings = settings
        self._chance = chance
        self._children: dict[str, _Child] = {}

    def crashed(self, child: str, error: BaseException) -> Seconds | None:
        """Take a crash down.

        Returns:
            The delay before the restart. None if the child must not be restarted: this was more than `intensity`
            crashes within `period`, not counting the time that it waited for its restarts.
        """
        now = self._clock.elapsed()
        self._forget_sound(now)
        record = self._children.setdefault(child, _Child())
        if not record.crashed(now, self._settings, error):
            return None
        delay = record.next_delay(self._settings) * (1 + JITTER * self._chance())
        record.back = now + delay
        return delay

    def causes(self, child: str) -> tuple[BaseException, ...]:
        """Give the errors of a child's last crashes, the first one first; none of a child that is sound."""
        record = self._children.get(child)
        return tuple(record.causes) if record is not None else ()

    def forget(self, child: str) -> None:
        """Forget a child that is gone; without effect if it never crashed."""
        self._children.pop(child, None)

    def _forget_sound(self, now: Seconds) -> None:
        for child in [child for child, record in self._children.items() if now - record.back > self._settings.period]:
            del self._children[child]
