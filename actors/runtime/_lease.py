"""Leases: the right to act on a target, with a fencing token.

A cancel voids the lease at once. A tool checks it at the moment its side effect commits.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any, Protocol

from callboard.surfaces import COMMIT_SECONDS

if TYPE_CHECKING:
    from callboard.messages import Command, CommandResult, Observation, Usage
    from callboard.surfaces import EffectGuard


class Spent(Protocol):
    """The usage and the results of a running step."""

    phases: list[dict[str, Any]]
    """The phases that have ended."""
    running: Command | None
    """The running tool call."""
    seen: Observation | None
    """The observation at the start of the step."""

    @property
    def usage(self) -> Usage:
        """The usage so far."""
        ...

    def done(self, guard: EffectGuard | None) -> tuple[CommandResult, ...]:
        """Return the results so far; `guard` is the interrupted tool call."""
        ...


class Lease:
    """One agent's right to act on one target. Thread-safe.

    The root voids it; a tool with side effects checks it within `committing`. Both take the same lock, so no commit
    begins after `void` has returned.
    """

    __slots__ = (
        "_leases",
        "asking",
        "extra_seconds",
        "guard",
        "jobs",
        "key",
        "lock",
        "order",
        "paused",
        "spent",
        "suspended",
        "target",
        "token",
        "valid",
    )

    def __init__(self, target: str, token: int, leases: Leases | None = None, key: str = "") -> None:
        self.target = target
        self.token = token
        """The fencing token, higher than those of all earlier leases. An agent ignores messages with a token other than
        its current lease's."""
        self.key = key
        """The group of targets that the lease reserves for its agent."""
        self._leases = leases
        self.lock = threading.RLock()  # reentrant, because commits of one call may be nested
        self.order = threading.RLock()
        """Held while a message that counts only under a valid lease is journaled. Such a message is either journaled
        before the message that voids the lease, or it is late. Unlike `lock`, it is never held for long."""
        self.paused = False
        """Whether the task is paused; checked before each action."""
        self.suspended = False
        """Whether the supervisor is stopping. No step begins, and none fails, because the stop may be the cause."""
        self.extra_seconds = 0.0
        """The seconds by which the time limit of its step exceeds the settings'."""
        self.asking = False
        """Whether a running call waits for a person; its job then never counts as hung."""
        self.valid = True
        """Whether the lease is in force; only `void` changes it."""
        self.spent: Spent | None = None
        """The usage and the results of the step that runs under it; a cancel must not lose them."""
        self.guard: EffectGuard | None = None
        """The guard of the tool call that runs under it."""
        self.jobs = 0
        """The number of jobs begun under it, which shows progress."""

    def holder_of(self, key: str) -> str:
        """Return the address of another agent with a lease on a group.

        It is empty if there is none.
        """
        held = () if self._leases is None else self._leases.in_force
        return next((lease.target for lease in held if lease.key == key and lease is not self), "")

    def void(self) -> None:
        """Void the lease for good. Idempotent; call it on any thread.

        It waits for a commit that is under way, but at most `COMMIT_SECONDS`. A slower commit still completes, as if it
        had ended before.
        """
        # Without the lock this is still safe: the slow commit holds it, so the next one begins, and checks, after this.
        held = self.lock.acquire(timeout=COMMIT_SECONDS)
        with self.order:
            self.valid = False
        if held:
            self.lock.release()


class Leases:
    """The granted leases, by fencing token. Thread-safe."""

    def __init__(self, highest_token: int = 0) -> None:
        """Create them; `highest_token` is the highest token in the journal.

        New tokens are higher, so that messages under a lease of an earlier process are recognised as stale.
        """
        self._tokens = itertools.count(highest_token + 1)
        self._leases: dict[int, Lease] = {}

    @property
    def in_force(self) -> tuple[Lease, ...]:
        """The leases that are not dropped.

        They include void ones, since a call under a void lease may still run.
        """
        return tuple(self._leases.values())

    def grant(self, target: str, key: str = "") -> Lease:
        """Grant a lease; the caller has checked that its group is free."""
        lease = Lease(target, next(self._tokens), self, key)
        self._leases[lease.token] = lease
        return lease

    def get(self, token: int) -> Lease:
        """Return a token's lease; a void one if it was dropped."""
        lease = self._leases.get(token)
        if lease is None:
            lease = Lease("", token)
            lease.void()
        return lease

    def drop(self, token: int) -> None:
        """Void a lease and forget it."""
        lease = self._leases.pop(token, None)
        if lease is not None:
            lease.void()
            lease.spent = lease.guard = None  # break the reference cycles
