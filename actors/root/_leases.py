"""Leases: which run may use which group of targets now, and which runs wait for it."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callboard.actors.runtime import Leases
    from callboard.messages import Assign


@dataclass
class _Slot:
    token: int = 0
    """The lease in force, 0 when the group is free."""
    address: str = ""
    """The agent that holds it."""
    abandoned: bool = False
    queue: collections.deque[Assign] = field(default_factory=collections.deque)


class LeaseBook:
    """One queue for each group of targets, first in first out. Part of the switchboard; runs on its thread.

    A group is what must not be used by two agents at once, such as all windows of one desktop, which share its keyboard
    and focus. A target that names no group is one of its own.
    """

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._slots: dict[str, _Slot] = {}
        self._keys: dict[int, str] = {}

    def request(self, assign: Assign, *, first: bool = False) -> tuple[Assign | None, int]:
        """Ask for a target; `first` goes before all others that wait.

        Returns:
            The assignment with its token if the target was free, and how many are ahead of it otherwise.
        """
        key = _key(assign)
        slot = self._slots.setdefault(key, _Slot())
        if first:
            slot.queue.appendleft(assign)
        else:
            slot.queue.append(assign)
        ahead = 1 if first else len(slot.queue)  # with whoever has the target now
        return self._next(key), ahead

    def _next(self, key: str) -> Assign | None:
        slot = self._slots[key]
        if slot.token or not slot.queue:
            return None
        assign = slot.queue.popleft()
        lease = self._leases.grant(assign.address, key)
        slot.token, slot.address = lease.token, assign.address
        self._keys[lease.token] = key
        return assign.model_copy(update={"token": lease.token})

    def first(self, assign: Assign) -> None:
        """Put an assignment in front of its target's queue: it goes on with what it had begun."""
        self._slots.setdefault(_key(assign), _Slot()).queue.appendleft(assign)

    def pause(self, token: int, *, paused: bool) -> None:
        """Let whoever acts under a lease stop before the next action, or go on."""
        self._leases.get(token).paused = paused

    def suspend(self, token: int) -> None:
        """Let whoever acts under a lease stop before the next action, and leave the rest to the next process."""
        lease = self._leases.get(token)
        lease.paused = lease.suspended = True

    def acting(self, token: int) -> bool:
        """Say whether a tool call runs under a lease."""
        spent = self._leases.get(token).spent
        return spent is not None and spent.running is not None

    def void(self, token: int) -> None:
        """Take away the right to act; the target stays taken until `free`."""
        self._leases.get(token).void()

    def abandon(self, token: int) -> str | None:
        """Note that a call under a lease can't be stopped. Returns its agent's address if it is still in force."""
        key = self._keys.get(token)
        if key is None:
            return None
        slot = self._slots[key]
        slot.abandoned = True
        return slot.address

    def free(self, token: int) -> tuple[str | None, Assign | None]:
        """Give a target back.

        Returns:
            The address of the agent that had it if it was abandoned, and the next assignment, with its token.
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
        """Take an assignment out of its queue."""
        slot = self._slots.setdefault(_key(assign), _Slot())
        slot.queue = collections.deque(waiting for waiting in slot.queue if waiting.run_id != assign.run_id)

    @property
    def abandoned(self) -> tuple[str, ...]:
        """The agents whose targets stay leased until a call returns."""
        return tuple(slot.address for slot in self._slots.values() if slot.abandoned)


def _key(assign: Assign) -> str:
    """Name what an assignment leases: its target's group, or the address of an agent without a target."""
    return assign.address if assign.target is None else assign.target.lease_key
