"""A list of a fleet's machines, and of its server."""

from __future__ import annotations

import asyncio
import contextlib
import time
import urllib.request
from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import BaseModel

from callboard.fleet._engine import EngineAwayError
from callboard.fleet._machines import Machines
from callboard.fleet._nats_connection import make_engine
from callboard.messages import Value

if TYPE_CHECKING:
    from callboard.config import Settings
    from callboard.fleet._engine import FleetEngine
    from callboard.fleet._machines import Machine

_LOOK_SECONDS = 0.1
_LONGEST_SECONDS = 30.0
_MONITOR_SECONDS = 3.0
_MOST_BYTES = 1_000_000
"""The largest answer of a monitoring address that is read."""


class Presence(StrEnum):
    """The presence of a machine."""

    THERE = "there"
    AWAY = "away"
    """It gives no sign any more."""
    DRAINING = "draining"
    """It begins no more work of other machines."""
    STOPPED = "stopped"
    """It was stopped, and said so."""


class ListedMachine(Value):
    """A machine at one moment."""

    name: str
    state: Presence
    version: str
    """The version of Callboard there."""
    targets: int
    running: int
    """The tasks of other machines that are begun there."""
    queued: int
    """The tasks of other machines that wait for it."""
    seconds: float
    """The time since its last sign; by its own clock once it is away."""


class Durability(StrEnum):
    """The moment at which the server's disk has what it has confirmed."""

    ALWAYS = "always"
    """Before it is confirmed."""
    LATER = "later"
    """Up to `sync_interval` after it was confirmed; an earlier failure of power loses it."""
    UNKNOWN = "unknown"


class ListedServer(Value):
    """The server of a fleet."""

    url: str
    version: str
    durability: Durability
    reason: str
    """The source of the durability, or the reason why it is unknown."""


class FleetListing(Value):
    """The server of a fleet and its machines, by name."""

    server: ListedServer
    machines: tuple[ListedMachine, ...]


async def list_machines(settings: Settings) -> FleetListing:
    """Connect to a fleet, and describe it; nothing is changed.

    A machine that was there a moment ago is waited for, until it gives a sign or is away.

    Raises:
        EngineAwayError: If the server does not answer.
        SettingsError: If it refuses the connection, or was not set up.
    """
    engine = make_engine(settings)
    await engine.open()
    try:
        machines = await _known_machines(engine)
        listed = [await _listed(engine, machine) for machine in machines]
        durability, reason = await asyncio.to_thread(durability_of, settings.fleet.monitor, engine.server_id)
        url = settings.fleet.url or ""
        server = ListedServer(url=url, version=engine.server_version, durability=durability, reason=reason)
        return FleetListing(server=server, machines=tuple(listed))
    finally:
        await engine.close()


async def _known_machines(engine: FleetEngine) -> Machines:
    """Watch the machines until the presence of each is known."""
    machines = Machines(engine, "", lambda _: None)
    watching = asyncio.create_task(machines.watch())
    try:
        async with asyncio.timeout(_LONGEST_SECONDS):
            await machines.known.wait()
            first_signs = {machine.name: machine.seen for machine in machines}
            while any(  # noqa: ASYNC110 - that a machine gives no sign sets no event
                not machine.is_away and machine.seen == first_signs.get(machine.name) for machine in machines
            ):
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError as error:
        msg = f"the server of the fleet did not tell its machines within {_LONGEST_SECONDS:g} s"
        raise EngineAwayError(msg) from error
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
    return machines


async def _listed(engine: FleetEngine, machine: Machine) -> ListedMachine:
    state = machine.state
    running = 0 if state is None else state.running
    if state is None or (machine.is_away and not state.left):
        presence = Presence.AWAY
    elif state.left:
        presence = Presence.STOPPED
    else:
        presence = Presence.DRAINING if state.draining else Presence.THERE
    lag = time.monotonic() - machine.seen
    return ListedMachine(
        name=machine.name,
        state=presence,
        version="" if state is None else state.callboard,
        targets=len(machine.targets),
        running=running,
        queued=max(0, await engine.waiting(machine.name) - running),
        seconds=max(lag, time.time() - state.at) if state is not None and machine.is_away else lag,
    )


def durability_of(monitor: str | None, server_id: str) -> tuple[Durability, str]:
    """Read from a server's monitoring address whether it writes before it confirms.

    Blocks.

    Args:
        monitor: The address; None if the settings have none.
        server_id: The identity of the server that is meant.
    """
    if monitor is None:
        return Durability.UNKNOWN, "fleet.monitor is not set"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{monitor.rstrip('/')}/jsz?config=true", timeout=_MONITOR_SECONDS) as answer:
            server = _Monitored.model_validate_json(answer.read(_MOST_BYTES))
    except (OSError, ValueError) as error:
        return Durability.UNKNOWN, f"{monitor} gives no answer that can be read ({type(error).__name__})"
    if server.server_id != server_id:
        return Durability.UNKNOWN, f"{monitor} is the address of another server"
    if server.config.sync_always:
        return Durability.ALWAYS, "sync_interval: always"
    if server.config.sync_interval:
        return Durability.LATER, f"sync_interval: {server.config.sync_interval / 1e9:g} s"
    return Durability.LATER, "this version of the server has no sync_interval, and writes every 2 minutes"


class _SyncConfig(BaseModel):
    sync_always: bool = False
    sync_interval: int = 0


class _Monitored(BaseModel):
    server_id: str
    config: _SyncConfig
