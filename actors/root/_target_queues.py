"""Leases on groups of targets, and the queues for them."""

from __future__ import annotations

import collections
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.messages import TargetLease

if TYPE_CHECKING:
    from callboard.actors.runtime import Leases
    from callboard.messages import Assign


BEGUN = math.inf
"""The rank of work that was begun: it comes before all other work."""


@dataclass(frozen=True)
class _Waiting:
    assign: Assign
    rank: float


@dataclass
class _Slot:
    token: int = 0
    """The fencing token of the lease in force, 0 when the group is free."""
    address: str = ""
    """The address of the agent that holds the lease."""
    abandoned: bool = False
    queue: collections.deque[_Waiting] = field(default_factory=collections.deque)


class LeaseBook:
    """A queue for each group of targets: by rank, then in order.

    Two agents must not use targets of one group at once: all windows of a desktop, for example, share its keyboard and
    focus. A target that names no group is a group of its own. Runs on the root's thread.
    """

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._slots: dict[str, _Slot] = {}
        self._keys: dict[int, str] = {}

    def request(self, assign: Assign, *, first: bool = False, rank: float = 0) -> tuple[Assign | None, int]:
        """Request a target.

        Args:
            assign: The work.
            first: Whether it goes to the front of the queue.
            rank: Its rank in the queue, otherwise: the higher ones come first.

        Returns:
            The assignment with its fencing token if the target was free, else None; and the number of runs ahead of it.
        """
        key = lease_key(assign)
        if first:
            self.first(assign)
            return self._next(key), 1
        queue = self._slots.setdefault(key, _Slot()).queue
        position = len(queue)
        while position and queue[position - 1].rank < rank:
            position -= 1
        queue.insert(position, _Waiting(assign, rank))
        return self._next(key), position + 1  # the run that holds the target included

    def _next(self, key: str) -> Assign | None:
        slot = self._slots[key]
        if slot.token or not slot.queue:
            return None
        assign = slot.queue.popleft().assign
        # The fencing token is higher than all before: messages and side effects under an older one are refused.
        lease = self._leases.grant(assign.address, key)
        slot.token, slot.address = lease.token, assign.address
        self._keys[lease.token] = key
        return assign.model_copy(update={"token": lease.token})

    def first(self, assign: Assign) -> None:
        """Queue an assignment in front of all others, to resume its run."""
        self._slots.setdefault(lease_key(assign), _Slot()).queue.appendleft(_Waiting(assign, BEGUN))

    def pause(self, token: int, *, paused: bool) -> None:
        """Make a lease's run stop before its next action, or resume."""
        self._leases.get(token).paused = paused

    def suspend(self, token: int) -> None:
        """Make the run of a lease stop; the next process resumes it."""
        lease = self._leases.get(token)
        lease.paused = lease.suspended = True

    def jobs(self, token: int) -> int:
        """Return the number of jobs that were begun under a lease."""
        return self._leases.get(token).jobs

    def queues(self, assign: Assign) -> bool:
        """Return whether an assignment waits in its target's queue."""
        slot = self._slots.get(lease_key(assign))
        return slot is not None and any(waiting.assign.run_id == assign.run_id for waiting in slot.queue)

    @property
    def tokens(self) -> set[int]:
        """The fencing tokens of the leases in force."""
        return set(self._keys)

    def acting(self, token: int) -> bool:
        """Return whether a tool call runs under a lease."""
        spent = self._leases.get(token).spent
        return spent is not None and spent.running is not None

    def void(self, token: int) -> None:
        """Void a lease: it allows no more side effects.

        The target stays taken until `free`.
        """
        self._leases.get(token).void()

    def abandon(self, token: int) -> str | None:
        """Note that a lease's call can't be stopped.

        Returns:
            The address of the lease's agent; None if the lease is not in force.
        """
        key = self._keys.get(token)
        if key is None:
            return None
        slot = self._slots[key]
        slot.abandoned = True
        return slot.address

    def free(self, token: int) -> tuple[str | None, Assign | None]:
        """Return a target, and lease it to the next queued run.

        Returns:
            The address of the agent that had abandoned the target, if any; and the next assignment, with its fencing
            token.
        """
        self._leases.drop(token)
        key = self._keys.pop(token, None)
        if key is None:
            return None, None
        slot = self._slots[key]
        abandoned = slot.address if slot.abandoned else None
        slot.abandoned, slot.token, slot.address = False, 0, ""
        granted = self._next(key)
        if granted is None and not slot.queue:
            del self._slots[key]
        return abandoned, granted

    def withdraw(self, assign: Assign) -> None:
        """Remove an assignment from its queue."""
        slot = self._slots.get(lease_key(assign), _Slot())
        slot.queue = collections.deque(waiting for waiting in slot.queue if waiting.assign.run_id != assign.run_id)

    @property
    def leases(self) -> tuple[TargetLease, ...]:
        """The targets in use, with their queues."""
        return tuple(
            TargetLease(group=key, agent=slot.address, waiting=tuple(waiting.assign.address for waiting in slot.queue))
            for key, slot in self._slots.items()
        )

    @property
    def abandoned(self) -> tuple[str, ...]:
        """The addresses of agents whose targets stay leased to a call."""
        return tuple(slot.address for slot in self._slots.values() if slot.abandoned)


def lease_key(assign: Assign) -> str:
    """Name the leased group: the target's, or an agent's without a target."""
    return assign.address if assign.target is None else assign.target.lease_key
