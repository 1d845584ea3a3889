"""Engines of both kinds, and a server of NATS."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from callboard import Settings, Supervisor, Task, TaskHandle
from callboard.fleet import MemoryEngine, MemoryHub, NatsEngine, set_up
from callboard.messages import AgentKind, UnknownTargetError
from callboard.testing import MemoryServer
from nats_server import NatsServer, check_for_server
from support import PATIENCE, wait_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from callboard.fleet import FleetEngine

ACK_SECONDS = 0.5


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[NatsServer]:
    """Give a running server.

    Without one the test is skipped; with ``REQUIRE_NATS`` it fails.
    """
    check_for_server()
    server = NatsServer(tmp_path / "jetstream")
    server.start()
    yield server
    server.stop()


@dataclass
class World:
    """A hub or a server, and the engines connected to it."""

    make: Callable[[str], FleetEngine]
    lose: Callable[[], None]
    """Have it not answer any more."""
    find: Callable[[], None]
    """Have it answer again."""
    engines: list[FleetEngine] = field(default_factory=list)

    async def engine(self, name: str = "finance-3") -> FleetEngine:
        """Connect one more machine."""
        engine = self.make(name)
        await engine.open()
        self.engines.append(engine)
        return engine


@pytest_asyncio.fixture(params=["memory", "nats"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Give an engine in memory, then one on a server."""
    if request.param == "memory":
        hub = MemoryHub(ack_seconds=ACK_SECONDS)

        def cut(*, off: bool) -> None:
            for engine in world.engines:
                engine.cut(off=off)

        world = World(lambda name: MemoryEngine(hub, name), lambda: cut(off=True), lambda: cut(off=False))
    else:
        server: NatsServer = request.getfixturevalue("nats_server")
        await set_up(server.url)
        world = World(lambda name: NatsEngine(server.url, name, ack_seconds=ACK_SECONDS), server.stop, server.start)
    yield world
    for engine in world.engines:
        await asyncio.wait_for(engine.close(), PATIENCE)


@dataclass
class Fleet:
    """Machines of one hub in memory, each with a journal."""

    folder: Path
    hub: MemoryHub = field(default_factory=lambda: MemoryHub(ack_seconds=ACK_SECONDS))
    supervisors: list[Supervisor] = field(default_factory=list)

    def machine(
        self,
        name: str,
        *,
        surface: MemoryServer | None = None,
        serves: bool = True,
        engine: MemoryEngine | None = None,
        **given: Any,
    ) -> Supervisor:
        """Start a supervisor with one window, ``memo:<name>``."""
        models = {kind.value: given.pop(kind.value) for kind in AgentKind if kind.value in given}
        checks = given.pop("checks", {})
        fleet = {"name": name, **given.pop("fleet", {})}
        journal = given.pop("journal", {"path": self.folder / f"{name}.db"})
        settings = Settings.load(journal=journal, fleet=fleet, **given)
        supervisor = Supervisor.start(
            settings,
            models=models,
            servers=[surface or MemoryServer(MemoryServer.window(name))],
            checks=checks,
            engine=engine or MemoryEngine(self.hub, name),
        )
        self.supervisors.append(supervisor)
        if serves:
            supervisor.serve()
        return supervisor

    def submit(self, supervisor: Supervisor, task: Task) -> TaskHandle:
        """Submit a task once its target is known."""

        def attempt() -> TaskHandle | None:
            try:
                return supervisor.submit(task)
            except UnknownTargetError:
                return None

        return wait_for(attempt)

    def journal(self, name: str) -> Path:
        """Give the path of a machine's journal."""
        return self.folder / f"{name}.db"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Give a fleet without machines, which are stopped after the test."""
    made = Fleet(tmp_path)
    yield made
    for supervisor in reversed(made.supervisors):
        supervisor.stop()
