"""The targets of a fleet's machines, as one of them knows them."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

from callboard import Settings
from callboard.fleet import BucketEntry, LocalMachines, MemoryEngine, MemoryHub
from callboard.fleet._machines import Machines
from callboard.fleet._placements import Placements
from callboard.fleet._work_messages import MachineState, MachineTargets
from callboard.testing import MemoryServer
from support import PATIENCE

pytestmark = pytest.mark.asyncio


class ToldEngine(MemoryEngine):
    """An engine whose watch yields what a test says."""

    def __init__(self):
        super().__init__(MemoryHub(), "desk")
        self.told = asyncio.Queue()

    async def watch(self, _bucket, _prefix=""):
        """Yield it."""
        while True:
            yield await self.told.get()
            self.told.task_done()

    async def tell(self, *entries):
        """Say something, and wait until it was taken."""
        for entry in entries:
            self.told.put_nowait(entry)
        await asyncio.wait_for(self.told.join(), PATIENCE)


def windows(machine, *names, **labels):
    """Return the entry of a machine's targets."""
    targets = MemoryServer(*map(MemoryServer.window, names)).targets()
    value = MachineTargets(machine=machine, targets=targets, labels=labels)
    return BucketEntry(f"{machine}.targets", value.model_dump_json().encode(), 1)


async def test_work_for_any_machine_waits_until_the_machines_are_known():
    """After a start without the server, a task may be resumed before the list of machines comes."""
    engine = ToldEngine()
    await engine.open()
    machines = Machines(engine, "desk", lambda _: None)
    watch = asyncio.create_task(machines.watch())
    placements = Placements(engine, "desk", machines, lambda _: None)
    placing = asyncio.create_task(placements.place("r-1", "build", {}, keeps_machine=False))
    now = time.time()
    state = MachineState(callboard="1", identity="a", since=now, beat=1, at=now, running=0, slots=1)
    shell = MachineTargets(machine="alpha", targets=(MemoryServer.shell("build"),))
    values = {"targets": shell, "state": state}
    await engine.tell(
        *(BucketEntry(f"alpha.{key}", value.model_dump_json().encode(), 1) for key, value in values.items())
    )
    assert not placing.done()
    await engine.tell(None)
    assert (await asyncio.wait_for(placing, PATIENCE)).machine == "alpha"
    watch.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watch


async def test_targets_are_gathered_at_the_end_of_the_list_and_when_one_changes():
    engine = ToldEngine()
    machines = Machines(engine, "desk", lambda _: None)
    watch = asyncio.create_task(machines.watch())
    await engine.tell(windows("finance-3", "one"), windows("finance-4", "two"), windows("desk", "own"))
    assert machines.targets == ()
    await engine.tell(None, windows("finance-3", "one"))
    known = machines.targets
    assert [target.id for target in known] == ["finance-3:memo:one", "finance-4:memo:two"]
    await engine.tell(windows("finance-3", "one"), windows("finance-4", "two"))
    assert machines.targets is known
    await engine.tell(windows("finance-4", "three"), windows("finance-4", "three"))
    assert [target.id for target in machines.targets] == ["finance-3:memo:one", "finance-4:memo:three"]
    watch.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watch


async def test_targets_and_states_of_an_earlier_start_do_not_count():
    engine, local, changes = ToldEngine(), LocalMachines(Settings.load(fleet={"local": 1})), []
    machines = Machines(engine, "desk", changes.append, local=local)
    watch = asyncio.create_task(machines.watch())
    waiting = asyncio.create_task(machines.wait_for_targets(local.names))
    state = MachineState(callboard="1", identity="a", since=0.0, beat=1, at=0.0, running=0, slots=1, left=True)
    left = BucketEntry("local-1.state", state.model_dump_json().encode(), 1)
    await engine.tell(windows("local-1", "old", start="before"), windows("local-2", "old", start="before"), left, None)
    assert (waiting.done(), changes) == (False, [])
    assert (machines.targets, machines.candidates("memo:old", {})) == ((), [])
    await engine.tell(windows("local-1", "new", **local.labels))
    await asyncio.wait_for(waiting, PATIENCE)
    assert [target.id for target in machines.targets] == ["memo:new"]
    assert [candidate.machine.name for candidate in machines.candidates("memo:new", {})] == ["local-1"]
    watch.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watch
