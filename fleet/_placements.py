"""Machines for work that any machine of a fleet may do."""

from __future__ import annotations

import asyncio
import collections
import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.config import HostLog
from callboard.fleet._claims import change_claim
from callboard.fleet._engine import Bucket
from callboard.fleet._repeated_calls import repeat
from callboard.fleet._work_messages import BEAT_SECONDS, Claim, ClaimState, signals_key, told_key
from callboard.messages import CallboardError, Cause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from callboard.fleet._engine import BucketEntry, FleetEngine
    from callboard.fleet._machines import Machine, Machines
    from callboard.fleet._pools import Candidate

REFUSER_SECONDS = 60.0
"""The time for which a machine that has refused work counts as busy: it may refuse the next, too."""

_log = HostLog()


class NoMachineError(CallboardError):
    """No machine of the fleet can do some work."""

    @classmethod
    def of(cls, pool: str, needs: Mapping[str, str]) -> NoMachineError:
        """Build the error for a pool and labels."""
        labels = "".join(f", {name}={value}" for name, value in needs.items())
        return cls(f"no machine of the fleet has {pool}{labels}: see `callboard fleet`")


class WorkRefusedError(CallboardError):
    """All machines that could do some work refuse it."""

    def __init__(self, pool: str, causes_by_machine: Mapping[str, tuple[Cause, ...]]) -> None:
        """Create it for a pool, with the reasons of each machine."""
        machines = ", ".join(causes_by_machine)
        super().__init__(f"no machine of the fleet takes the work for {pool}: refused by {machines}")
        self.causes = (Cause(reason=str(self)), *refusal_causes(causes_by_machine))


def refusal_causes(causes_by_machine: Mapping[str, tuple[Cause, ...]]) -> tuple[Cause, ...]:
    """Return the reasons of machines, each with its name."""
    return tuple(
        Cause(reason=f"{machine}: {cause.reason}", where=machine, exception=cause.exception)
        for machine, causes in causes_by_machine.items()
        for cause in causes
    )


@dataclass
class Placement:
    """A machine that work is given to."""

    machine: str
    claim: Claim
    revision: int
    since: float = field(default_factory=time.monotonic)

    @property
    def is_started(self) -> bool:
        """True once the machine has begun: no other one does it then."""
        return self.claim.state is ClaimState.STARTED


class Placements:
    """Choose machines for work that any machine may do.

    It belongs to the event loop. The submitter chooses the machine with the least work, and writes a claim for it.
    Until the machine has begun the work, it may be taken back, and given to another machine: compare-and-set on the
    claim decides which comes first.
    """

    def __init__(self, engine: FleetEngine, name: str, machines: Machines, on_change: Callable[[str], None]) -> None:
        """Create it; `on_change` gets the keys of changed claims."""
        self._engine = engine
        self._name = name
        self._machines = machines
        self._on_change = on_change
        self._claims: dict[str, dict[str, Placement]] = collections.defaultdict(dict)
        """The claims to each task, by the machine; one at most is open."""
        self._refused_at: dict[str, float] = {}
        """The time of each machine's last refusal."""
        self._last: dict[str, str] = {}
        """The last machine of each pool: earlier work may have left something open there, such as a shell's folder."""
        self._placing = asyncio.Lock()
        self._known = asyncio.Event()

    async def watch(self) -> None:
        """Follow the claims to work of this machine, until it is cancelled."""
        async for entry in self._engine.watch(Bucket.CLAIMS, self._name):
            if entry is None:
                self._known.set()
                continue
            _, machine, task_id = entry.key.split(".", 2)
            try:
                self._take(machine, task_id, entry)
            except ValueError as error:
                _log.warning("the claim of the machine %s to %s can't be read: %s", machine, task_id, error)

    def _take(self, machine: str, task_id: str, entry: BucketEntry) -> None:
        if entry.value is None:
            return
        placement = self._claims[task_id].get(machine)
        if placement is not None and not placement.claim.state.is_open:
            return  # a machine that writes into a claim that it has lost
        if placement is None or placement.revision < entry.revision:
            self._put(machine, task_id, Claim.model_validate_json(entry.value), entry.revision)
            self._on_change(entry.key)

    def _put(self, machine: str, task_id: str, claim: Claim, revision: int) -> Placement:
        placement = Placement(machine, claim, revision)
        if claim.state is ClaimState.REFUSED:
            self._refused_at[machine] = time.monotonic()
        self._claims[task_id][machine] = placement
        return placement

    async def get(self, task_id: str) -> Placement | None:
        """Return the machine that has a task, also from before a crash."""
        await self._known.wait()
        claims = self._claims.get(task_id, {}).values()
        return next((placement for placement in claims if placement.claim.state.is_open), None)

    def refusals(self, task_id: str) -> dict[str, tuple[Cause, ...]]:
        """Return the reasons of the machines that have refused a task."""
        claims = self._claims.get(task_id, {}).items()
        return {name: placed.claim.causes for name, placed in claims if placed.claim.state is ClaimState.REFUSED}

    async def place(
        self, task_id: str, pool: str, needs: Mapping[str, str], *, keeps_machine: bool, besides: str = ""
    ) -> Placement | None:
        """Give a task to a machine that has not refused it.

        None while no such machine is there.

        Args:
            task_id: Its id on the other machines.
            pool: The pool.
            needs: The labels that the machine must have.
            keeps_machine: Whether the pool's last machine gets it, if it is there.
            besides: The machine that it was taken back from, which gets it only if no other one is there.

        Raises:
            NoMachineError: If no machine is known that could do it, be it there or away.
            WorkRefusedError: If all of them have refused it.
        """
        await self._machines.known.wait()  # after a start, claims may be known sooner
        candidates = self._candidates(task_id, pool, needs)
        if not candidates:
            refusals = self.refusals(task_id)
            raise WorkRefusedError(pool, refusals) if refusals else NoMachineError.of(pool, needs)
        async with self._placing:  # the next choice counts this one
            others = [candidate for candidate in candidates if candidate.machine.name != besides]
            best = self._chosen(pool, others, keeps_machine=keeps_machine) or self._best(candidates)
            return None if best is None else await self._claimed(task_id, pool, best, keeps_machine=keeps_machine)

    def _candidates(self, task_id: str, pool: str, needs: Mapping[str, str]) -> list[Candidate]:
        """List a pool's targets on machines that have not refused."""
        refusals = self.refusals(task_id)
        return [target for target in self._machines.candidates(pool, needs) if target.machine.name not in refusals]

    def _chosen(self, pool: str, candidates: list[Candidate], *, keeps_machine: bool) -> Candidate | None:
        last = [candidate for candidate in candidates if candidate.machine.name == self._last.get(pool)]
        return (self._best(last) if keeps_machine else None) or self._best(candidates)

    async def _claimed(self, task_id: str, pool: str, best: Candidate, *, keeps_machine: bool) -> Placement | None:
        name = best.machine.name
        if keeps_machine:
            self._last[pool] = name
        claim = Claim(state=ClaimState.PLACED, target=best.target_id)
        earlier = self._claims[task_id].get(name)
        key = told_key(self._name, name, task_id)
        revision = await change_claim(self._engine, key, claim, 0 if earlier is None else earlier.revision)
        if revision is None:  # the machine wrote into a claim that it has lost: others are tried
            cause = Cause(reason="it has changed a claim that was taken back")
            self._put(name, task_id, Claim(state=ClaimState.REFUSED, causes=(cause,)), 0)
            return None
        return self._put(name, task_id, claim, revision)

    def _best(self, candidates: list[Candidate]) -> Candidate | None:
        """Choose the machine with the least work for its slots."""
        placements = self._placed()
        machines = collections.Counter(placement.machine for placement in placements)
        targets = collections.Counter((placement.machine, placement.claim.target) for placement in placements)

        def work(candidate: Candidate) -> tuple[float, int]:
            name = candidate.machine.name
            return self._load(candidate.machine, machines[name]), targets[name, candidate.target_id]

        return min((candidate for candidate in candidates if candidate.machine.takes_work), key=work, default=None)

    def _placed(self) -> list[Placement]:
        """Return the machines' claims that hold."""
        all_claims = (placement for claims in self._claims.values() for placement in claims.values())
        return [placement for placement in all_claims if placement.claim.state.is_open]

    def _load(self, machine: Machine, placed: int) -> float:
        """Return a machine's work for each slot; some was placed here."""
        load = 0.0 if machine.state is None else max(machine.state.running, placed) / machine.state.slots
        is_refuser = time.monotonic() - self._refused_at.get(machine.name, -math.inf) < REFUSER_SECONDS
        return max(load, 1.0) if is_refuser else load

    async def take_back(self, task_id: str, causes: tuple[Cause, ...] = ()) -> bool:
        """Take a task back, unless its machine has begun it.

        With `causes`, the machine counts as one that has refused it.
        """
        placement = await self.get(task_id)
        if placement is None or placement.is_started:
            return placement is None
        state = ClaimState.REFUSED if causes else ClaimState.WITHDRAWN
        claim = placement.claim.model_copy(update={"state": state, "causes": causes})
        key = told_key(self._name, placement.machine, task_id)
        revision = await change_claim(self._engine, key, claim, placement.revision)
        if revision is not None:
            self._put(placement.machine, task_id, claim, revision)
        return revision is not None

    def waits_in_vain(self, task_id: str, placement: Placement, pool: str, needs: Mapping[str, str]) -> bool:
        """Return whether another machine could begin a task that waits."""
        if placement.is_started:
            return False
        machine = self._machines.get(placement.machine)
        is_working = machine is not None and machine.takes_work
        if is_working and time.monotonic() - placement.since <= 2 * BEAT_SECONDS:
            return False  # before the search, since each task that waits looks again and again
        best = self._best(self._candidates(task_id, pool, needs))
        if best is None or best.machine is machine:
            return False
        if not is_working:
            return True
        name = best.machine.name
        return self._load(best.machine, sum(placed.machine == name for placed in self._placed())) < 1

    def drop(self, task_id: str, machine: str) -> None:
        """Forget a machine's claim that was deleted."""
        claims = self._claims.get(task_id, {})
        claims.pop(machine, None)
        if not claims:
            self._claims.pop(task_id, None)

    async def forget(self, task_id: str, *, unsaid: str = "") -> None:
        """Delete the claims to an ended task, and its signals.

        Args:
            task_id: Its id on the other machines.
            unsaid: The machine that nothing was said to: it has no signals.
        """
        for machine in self._claims.pop(task_id, {}):
            if machine != unsaid:
                signals = signals_key(machine, self._name, task_id)
                await repeat(lambda key=signals: self._engine.delete(Bucket.SIGNALS, key))  # type: ignore[misc]
            claim = told_key(self._name, machine, task_id)
            await repeat(lambda key=claim: self._engine.delete(Bucket.CLAIMS, key))  # type: ignore[misc]
