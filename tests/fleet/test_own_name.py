"""Two machines of one name: one of them holds it."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

from callboard.errors import SettingsError
from callboard.fleet import EngineAwayError
from callboard.fleet._own_name import OwnName
from callboard.fleet._work_messages import MachineState
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, append, lone, wait_for


def state(own, **fields):
    """Give a state of a machine."""
    return MachineState(
        callboard="0.1", identity=own.identity, since=own.since, beat=1, at=time.time(), running=0, slots=8, **fields
    )


async def beat(own, **fields):
    """Write the state of a machine; return whether it holds its name."""
    await own.beat(state(own, **fields))
    return own.is_held.is_set()


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr("callboard.fleet._own_name.AWAY_SECONDS", 0.5)
    for module in ("_served_work", "_own_state"):
        monkeypatch.setattr(f"callboard.fleet.{module}.BEAT_SECONDS", 0.1)


@pytest.fixture
async def owners(world):
    """Give a function that makes a machine ``finance-3`` by the identity of its journal."""

    async def own(identity):
        return OwnName(await world.engine(), "finance-3", identity)

    return own


async def test_second_machine_of_a_name_does_not_get_it(owners):
    first, second = await owners("one"), await owners("two")
    assert await beat(first)
    assert not await beat(second)
    assert second.taken == ""  # it may be silent
    assert await beat(first)
    assert not await beat(second)
    assert second.taken.startswith("another machine of the fleet is called finance-3, since 20")
    assert "fleet.name" in second.taken
    assert await beat(first)


async def test_machine_that_was_killed_gets_its_name_at_once(owners):
    assert await beat(await owners("one"))
    assert await beat(await owners("one"))


async def test_name_of_a_machine_that_left_is_free(owners):
    first, second = await owners("one"), await owners("two")
    assert await beat(first)
    await first.beat(state(first, left=True))
    assert await beat(second)


async def until_held(own):
    """Repeat the state of a machine until it holds its name."""
    async with asyncio.timeout(PATIENCE):
        while not await beat(own):  # noqa: ASYNC110 - silence sets no event
            await asyncio.sleep(0.05)


async def test_name_of_a_silent_machine_is_taken_and_given_back(owners):
    first, second = await owners("one"), await owners("two")
    assert await beat(first)
    assert not await beat(second)
    await until_held(second)
    assert not await beat(first)  # it was suspended
    working = asyncio.ensure_future(first.while_held(asyncio.Event().wait()))
    assert await asyncio.wait_for(working, PATIENCE) is None
    assert await beat(second)
    await second.beat(state(second, left=True))
    assert await beat(first)


async def test_names_are_held_when_the_engine_was_away(world, owners):
    first, second = await owners("one"), await owners("two")
    assert await beat(first)
    assert not await beat(second)
    world.lose()
    await asyncio.sleep(0.6)
    for own in (first, second):
        with pytest.raises(EngineAwayError):
            await own.beat(state(own))
    world.find()
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(EngineAwayError):
                assert not await beat(second)
                break
            await asyncio.sleep(0.05)


def worker(request):
    return append(request.request) if request.step == 1 else FINISH


def machine(fleet, name, journal, **fields):
    """Start a machine with a journal of its own."""
    surface = MemoryServer(MemoryServer.window(name))
    settings = {"journal": {"path": fleet.folder / f"{journal}.db"}, "app": worker, "surface": surface, **fields}
    return fleet.machine(name, **settings), surface


def test_second_machine_of_a_name_serves_nothing(fleet):
    machine(fleet, "finance-3", "first")
    second, surface = machine(fleet, "finance-3", "second", serves=False)
    with pytest.raises(SettingsError, match="another machine of the fleet is called finance-3, since 20"):
        second.serve()
    here = fleet.machine("desk", serves=False)
    assert fleet.submit(here, lone("finance-3:memo:finance-3", request="sum")).result(PATIENCE).ok
    assert surface.effects == []


def test_second_machine_of_a_name_submits_nothing(fleet):
    first, _ = machine(fleet, "desk", "first")
    machine(fleet, "finance-3", "there")
    second, _ = machine(fleet, "desk", "second", serves=False)

    def refusal():
        result = fleet.submit(second, lone("finance-3:memo:finance-3")).result(PATIENCE)
        return "" if result.ok else result.causes[0].reason

    assert "another machine of the fleet is called desk" in wait_for(refusal)
    assert fleet.submit(first, lone("finance-3:memo:finance-3")).result(PATIENCE).ok


def test_machine_serves_once_the_other_of_its_name_has_left(fleet):
    first, _ = machine(fleet, "finance-3", "first")
    second, surface = machine(fleet, "finance-3", "second", serves=False)
    with pytest.raises(SettingsError):
        second.serve()
    first.stop()
    fleet.supervisors.remove(first)
    second.serve()
    here = fleet.machine("desk", serves=False)
    assert fleet.submit(here, lone("finance-3:memo:finance-3", request="sum")).result(PATIENCE).ok
    assert [text for _, _, text in surface.effects] == ["sum"]
