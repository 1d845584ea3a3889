"""Leases: who may use which target now, and who waits for it."""

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
    """The lease in force, 0 when the target is free."""
    abandoned: bool = False
    queue: collections.deque[Assign] = field(default_factory=collections.deque)


class LeaseBook:
    """One queue for each target, first in first out. Part of the switchboard; runs on its thread."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._slots: dict[str, _Slot] = {}
        self._addresses: dict[int, str] = {}

    def request(self, assign: Assign, *, first: bool = False) -> tuple[Assign | None, int]:
        """Ask for a target; `first` goes before all others that wait.

        Returns:
            The assignment with its token if the target was free, and how many are ahead of it otherwise.
        """
        slot = self._slots.setdefault(assign.address, _Slot())
        if first:
            slot.queue.appendleft(assign)
        else:
            slot.queue.append(assign)
        ahead = 1 if first else len(slot.queue)  # with whoever has the target now
        return self._next(assign.address), ahead

    def _next(self, address: str) -> Assign | None:
        slot = self._slots[address]
        if slot.token or not slot.queue:
            return None
        lease = self._leases.grant(address)
        slot.token = lease.token
        self._addresses[lease.token] = address
        return slot.queue.popleft().model_copy(update={"token": lease.token})

    def first(self, assign: Assign) -> None:
        """Put an assignment in front of its target's queue: it goes on with what it had begun."""
        self._slots.setdefault(assign.address, _Slot()).queue.appendleft(assign)

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
        """Note that a call under a lease can't be stopped. Returns the target's address if it is still taken."""
        address = self._addresses.get(token)
        if address is not None:
            self._slots[address].abandoned = True
        return address

    def free(self, token: int) -> tuple[str | None, Assign | None]:
        """Give a target back.

        Returns:
            Its address if it was abandoned, and the next assignment for it, with its token.
        """
        self._leases.drop(token)
        address = self._addresses.pop(token, None)
        if address is None:
            return None, None
        slot = self._slots[address]
        was_abandoned, slot.abandoned, slot.token = slot.abandoned, False, 0
        granted = self._next(address)
        if granted is None and not slot.queue:
            del self._slots[address]
        return (address if was_abandoned else None), granted

    def withdraw(self, run_id: str, address: str) -> None:
        """Take an assignment out of its queue."""
        slot = self._slots.setdefault(address, _Slot())
        slot.queue = collections.deque(assign for assign in slot.queue if assign.run_id != run_id)

    @property
    def abandoned(self) -> tuple[str, ...]:
        """Targets that nobody gets until a call returns."""
        return tuple(address for address, slot in self._slots.items() if slot.abandoned)
