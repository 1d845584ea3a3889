"""The other machines of a fleet, their presence and their targets."""

from __future__ import annotations

import asyncio
import collections
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.config import HostLog
from callboard.fleet._engine import Bucket, DamagedFileError, EngineAwayError
from callboard.fleet._pools import Candidate, local_target, pool_target, pools_of, remote_target
from callboard.fleet._work_messages import BEAT_SECONDS, MachineState, MachineTargets, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from callboard.fleet._engine import BucketEntry, FleetEngine
    from callboard.fleet._local_machines import LocalMachines
    from callboard.messages import Target

AWAY_SECONDS = 4 * BEAT_SECONDS
"""The time without a beat after which a machine counts as away."""

TARGETS = "targets"
STATE = "state"

_log = HostLog()


@dataclass
class Machine:
    """Another machine, as far as this one knows."""

    name: str
    state: MachineState | None = None
    targets: tuple[Target, ...] = ()
    """Its targets, as agents here see them."""
    pools: dict[str, list[str]] = field(default_factory=dict)
    """The pools that it belongs to, with the ids of its targets in each."""
    labels: dict[str, str] = field(default_factory=dict)
    targets_digest: int = 0
    """A digest of what it said of them: after a time without the server, the same is said again."""
    seen: float = 0.0
    """The time of its last beat, on this machine's monotonic clock."""
    is_away: bool = False

    @property
    def takes_work(self) -> bool:
        """True while it is there and begins work of other machines."""
        return not self.is_away and self.state is not None and not self.state.draining


class Machines:
    """The other machines of a fleet. Belongs to the event loop.

    A machine is away once its beats stop. Its own clock does not count: those of two machines may differ.
    """

    def __init__(
        self,
        engine: FleetEngine,
        name: str,
        on_change: Callable[[Machine], None],
        on_targets: Callable[[str], None] = lambda _: None,
        on_own_state: Callable[[BucketEntry], None] = lambda _: None,
        *,
        local: LocalMachines | None = None,
    ) -> None:
        """Create it.

        Args:
            engine: The connection.
            name: This machine.
            on_change: Called when a machine is away or back.
            on_targets: Called with a machine that has told its targets.
            on_own_state: Called with a state under the name of this machine.
            local: Those that this process has started, which all have the same targets, if they are its fleet.
        """
        self._local = local
        self._on_targets = on_targets
        self._engine = engine
        self._name = name
        self._on_change = on_change
        self._on_own_state = on_own_state
        self._machines: dict[str, Machine] = {}
        self._pools: dict[str, Target] = {}
        """The targets that stand for pools, by the pool. One that was known stays, for work that names it."""
        self._told = asyncio.Event()
        """Set when a machine tells its targets."""
        self.known = asyncio.Event()
        """Set once those that are there now are known."""
        self.targets: tuple[Target, ...] = ()
        """Their targets. The tuple is replaced when one changes, so it may be read on any thread."""

    def __iter__(self) -> Iterator[Machine]:
        """Iterate over the machines, by name."""
        return iter(sorted(self._machines.values(), key=lambda machine: machine.name))

    def get(self, name: str) -> Machine | None:
        """Return a machine."""
        return self._machines.get(name)

    def candidates(self, pool: str, needs: Mapping[str, str]) -> list[Candidate]:
        """List the targets of a pool on machines with some labels.

        Also those of machines that are away.
        """
        if self._local is not None:
            return [Candidate(machine, pool) for machine in self if machine.targets_digest]
        return [
            Candidate(machine, target_id)
            for machine in self
            if needs.items() <= machine.labels.items()
            for target_id in machine.pools.get(pool, ())
        ]

    async def wait_for_targets(self, names: Collection[str]) -> None:
        """Wait until machines have told their targets."""
        while any(name not in self._machines or not self._machines[name].targets_digest for name in names):
            self._told.clear()
            await self._told.wait()

    async def watch(self) -> None:
        """Keep the machines up to date, until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_entries())
            group.create_task(self._watch_beats())

    async def _watch_entries(self) -> None:
        async for entry in self._engine.watch(Bucket.MACHINES):
            if entry is None:
                self.known.set()
                self._gather()
                continue
            name, _, part = entry.key.partition(".")
            if name == self._name:
                if part == STATE:
                    self._on_own_state(entry)
                continue
            try:
                if part == STATE:
                    self._take_state(name, entry)
                elif part == TARGETS:
                    await self._take_targets(name, entry)
            except (ValueError, DamagedFileError, EngineAwayError) as error:
                _log.warning("what the machine %s says of its %s can't be read: %s", name, part, error)

    def _take_state(self, name: str, entry: BucketEntry) -> None:
        if entry.value is None:
            self._machines.pop(name, None)
            self._gather()
            return
        state = MachineState.model_validate_json(entry.value)
        machine = self._machines.setdefault(name, Machine(name))
        is_first, machine.state, machine.seen = machine.state is None, state, time.monotonic()
        is_old = is_first and state.at < time.time() - 10 * AWAY_SECONDS
        self._set_away(machine, is_away=state.left or is_old)

    def _set_away(self, machine: Machine, *, is_away: bool) -> None:
        if machine.is_away is not is_away:
            machine.is_away = is_away
            if self._local is None or machine.targets_digest:  # else it is about to start
                self._on_change(machine)

    async def _take_targets(self, name: str, entry: BucketEntry) -> None:
        machine = self._machines.setdefault(name, Machine(name))
        if machine.targets_digest == (digest := hash(entry.value)):
            return
        if entry.value is None:
            machine.targets, machine.pools, machine.labels = (), {}, {}
        else:
            sent = MachineTargets.model_validate_json(await unpack(self._engine, entry.value))
            if self._local is not None and sent.labels != self._local.labels:
                return  # the server's store has them from an earlier start
            machine.targets = tuple(remote_target(name, target) for target in sent.targets)
            self._take_pools(machine, sent)
        machine.targets_digest = digest
        self._told.set()
        self._gather()
        self._on_targets(name)

    def _take_pools(self, machine: Machine, sent: MachineTargets) -> None:
        if self._local is not None:
            shared = self._local.shared_surfaces
            machine.targets = tuple(local_target(target) for target in sent.targets if target.server not in shared)
            return
        pools: dict[str, list[str]] = collections.defaultdict(list)
        targets = {target.id: target for target in sent.targets}
        for pool, target_id in pools_of(sent.targets, sent.labels if sent.takes_any else {}):
            pools[pool].append(target_id)
            self._pools.setdefault(pool, pool_target(pool, targets.get(target_id)))
        machine.pools, machine.labels = dict(pools), sent.labels

    def _gather(self) -> None:
        if not self.known.is_set():
            return  # else a start would take the time of the square of the machines
        if self._local is not None:
            self.targets = tuple({target.id: target for machine in self for target in machine.targets}.values())
            return
        pools = (self._pools[pool] for pool in sorted(self._pools))
        self.targets = (*(target for machine in self for target in machine.targets), *pools)

    async def _watch_beats(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS / 2)
            if not self._engine.is_connected:
                for machine in self:
                    machine.seen = time.monotonic()  # no beats arrive
            for machine in self:
                if machine.seen < time.monotonic() - AWAY_SECONDS:
                    self._set_away(machine, is_away=True)
