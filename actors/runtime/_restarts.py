"""Restarts: whether a child that crashed is started anew, and when, in the words of OTP's supervisor."""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.runtime._clock import Clock
    from callboard.messages import Seconds


CAUSES = 10
"""The last crashes of one child whose errors are kept; more would explain nothing."""


class Restart(StrEnum):
    """When a child is started anew. A crash treats the first two alike; they differ in what an ordinary end means."""

    PERMANENT = "permanent"
    """Always: it has to be there, so that even its ordinary end is none."""
    TRANSIENT = "transient"
    """Only after a crash: it may end when it has done its work."""
    TEMPORARY = "temporary"
    """Never: one crash is the end of it."""


@dataclass(frozen=True)
class ChildSpec:
    """How a kind of child is supervised."""

    name: str
    """What kind of child it is, for people."""
    restart: Restart
    intensity: int
    """Restarts that are allowed within `period`; one crash more, and the child is given up."""
    period: Seconds
    """The time that `intensity` is about, and after which a child without a crash counts as sound again."""
    backoff: Seconds
    """The delay before the first restart; each further one is twice as long."""
    max_backoff: Seconds
    """What a delay grows to at most, before `jitter`."""
    jitter: float = 0.2
    """How much longer a delay may randomly be, as a fraction of it: children that crashed together come back apart."""

    def __post_init__(self) -> None:
        """Refuse what can't be followed.

        Raises:
            ValueError: If a number is negative, not finite or out of its range; the text says which.
        """
        wrong = {
            "needs a name": not self.name,
            "restart is permanent, transient or temporary": self.restart not in tuple(Restart),
            "intensity is a whole number, 0 or more": not isinstance(self.intensity, int) or self.intensity < 0,
            "period is a finite span of time, more than 0": not 0 < self.period < math.inf,
            "backoff is a finite span of time, 0 or more": not 0 <= self.backoff < math.inf,
            "max_backoff is finite and not less than backoff": not self.backoff <= self.max_backoff < math.inf,
            "jitter is a fraction, 0 to 1": not 0 <= self.jitter <= 1,
        }
        reasons = [reason for reason, is_so in wrong.items() if is_so]
        if reasons:
            msg = f"the child spec {self.name!r}: {'; '.join(reasons)}"
            raise ValueError(msg)


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
    period: Seconds = 0.0

    def crashed(self, now: Seconds, spec: ChildSpec, error: BaseException) -> bool:
        """Take a crash down. Returns whether the child may still be restarted."""
        if self.crashes:
            self.lived += max(0.0, now - self.back)
        self.back, self.period = now, spec.period
        self.causes.append(error)
        self.crashes.append(self.lived)
        while self.crashes[0] < self.lived - spec.period or len(self.crashes) > spec.intensity + 1:
            self.crashes.popleft()
        return spec.restart != Restart.TEMPORARY and len(self.crashes) <= spec.intensity

    def next_delay(self, spec: ChildSpec) -> Seconds:
        """Double the delay; never beyond the longest one."""
        self.delay = spec.backoff if self.delay is None else min(self.delay * 2, spec.max_backoff)
        return self.delay


class Restarts:
    """Keeps count of crashes, each child's for itself. Starts nothing; its owner does, on one thread.

    A child that has lived for a period without a crash is forgotten: its next crash is a first one. So what is kept is
    bounded by the crashes of one period.
    """

    def __init__(self, clock: Clock, chance: Callable[[], float] = random.random) -> None:
        """Begin with no crash; `chance` gives a number from 0 to 1 for the jitter."""
        self._clock = clock
        self._chance = chance
        self._children: dict[str, _Child] = {}

    def crashed(self, child: str, spec: ChildSpec, error: BaseException) -> Seconds | None:
        """Take a crash down.

        Returns:
            The delay before the restart. None if the child must not be restarted: it is temporary, or this was more
            than `intensity` crashes within `period`, not counting the time that it waited for its restarts.
        """
        now = self._clock.elapsed()
        self._forget_sound(now)
        record = self._children.setdefault(child, _Child())
        if not record.crashed(now, spec, error):
            return None
        delay = record.next_delay(spec) * (1 + spec.jitter * self._chance())
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
        for child in [child for child, record in self._children.items() if now - record.back > record.period]:
            del self._children[child]
