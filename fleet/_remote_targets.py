"""The surface that offers the targets of other machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import Look, Observation, Target
from callboard.surfaces import Server

if TYPE_CHECKING:
    from callboard.fleet._machines import Machines


class RemoteTargets(Server):
    """The targets of the fleet's other machines, each for a RemoteAgent.

    It has no tools, and sees nothing of a target: the agent there does.
    """

    name = "fleet"
    settles = False

    def __init__(self, machines: Machines) -> None:
        self._machines = machines

    def targets(self) -> tuple[Target, ...]:
        """List the targets of machines that are or were there."""
        return self._machines.targets

    def observe(self, target: Target, look: Look) -> Observation:
        """Return the state of the target's machine."""
        if target.pool:
            return Observation(text="any machine that has it does the work", fingerprint=target.id)
        machine = self._machines.get(target.machine)
        is_there = machine is not None and not machine.is_away
        state = f"the machine {target.machine} is {'there' if is_there else 'away'}"
        return Observation(text=state, fingerprint=state)
