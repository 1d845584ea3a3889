"""Restarts of crashed children, with the intensity and period of OTP's supervisor."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.messages import CrashedAgent

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.runtime._clock import Clock
    from callboard.config import SupervisionSettings
    from callboard.messages import Seconds


CAUSES = 10
"""The number of a child's last errors that are kept; more would explain nothing."""


JITTER = 0.2
"""The maximum random extension of a delay, as a fraction of it. Children that crashed together restart apart."""


@dataclass
class _Child:
    """One child's crashes.

    Its clock stands still while it waits for a restart: the delay must not count as time without a crash.
    """

    causes: deque[BaseException] = field(default_factory=lambda: deque(maxlen=CAUSES))
    crashes: deque[Seconds] = field(default_factory=deque)
    """The times of its crashes within the last period, on its own clock."""
    lived: Seconds = 0.0
    """The time on its own clock."""
    delay: Seconds | None = None
    """The last delay before a restart, without jitter."""
    back: Seconds = 0.0
    """The time of its next or last restart, on the shared clock."""

    def crashed(self, now: Seconds, settings: SupervisionSettings, error: BaseException) -> bool:
        """Record a crash. Returns whether the child may still be restarted."""
        if self.crashes:
            self.lived += max(0.0, now - self.back)
        self.back = now
        self.causes.append(error)
        self.crashes.append(self.lived)
        while self.crashes[0] < self.lived - settings.period or len(self.crashes) > settings.intensity + 1:
            self.crashes.popleft()
        return len(self.crashes) <= settings.intensity

    def next_delay(self, settings: SupervisionSettings) -> Seconds:
        """Double the delay, up to the longest one, and return it."""
        self.delay = settings.backoff if self.delay is None else min(self.delay * 2, settings.max_backoff)
        return self.delay


class Restarts:
    """The crash counts and the backoff of each child.

    It starts no children; its owner does, on one thread. A child that runs for a whole period without a crash is
    forgotten, and its next crash counts as its first. The memory used is thus bounded by the crashes of one period.
    """

    def __init__(
        self, clock: Clock, settings: SupervisionSettings, chance: Callable[[], float] = random.random
    ) -> None:
        """Begin without crashes; `chance` returns 0 to 1 for the jitter."""
        self._clock = clock
        self._settings = settings
        self._random = chance
        self._children: dict[str, _Child] = {}

    def crashed(self, child: str, error: BaseException) -> Seconds | None:
        """Record a crash.

        Returns:
            The delay before the restart. None if the child must not be restarted, because there were more than
            `intensity` crashes within `period`, without the time that the child waited for restarts.
        """
        now = self._forget_sound()
        record = self._children.setdefault(child, _Child())
        if not record.crashed(now, self._settings, error):
            return None
        delay = record.next_delay(self._settings) * (1 + JITTER * self._random())
        record.back = now + delay
        return delay

    def _forget_sound(self) -> Seconds:
        """Forget the children that have run long enough, and return the time."""
        now = self._clock.elapsed()
        for sound in [name for name, record in self._children.items() if now - record.back > self._settings.period]:
            del self._children[sound]
        return now

    def crashed_agents(self) -> tuple[CrashedAgent, ...]:
        """Return the children that crashed within the last period."""
        self._forget_sound()
        return tuple(
            CrashedAgent(agent=name, crashes=len(record.crashes), error=type(record.causes[-1]).__name__)
            for name, record in self._children.items()
        )

    def causes(self, child: str) -> tuple[BaseException, ...]:
        """Return the errors of a child's last crashes, oldest first.

        The result is empty if the child is forgotten.
        """
        record = self._children.get(child)
        return tuple(record.causes) if record is not None else ()

    def forget(self, child: str) -> None:
        """Forget a removed child; without effect if it never crashed."""
        self._children.pop(child, None)
