"""The state and the targets that this machine publishes."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import time
from typing import TYPE_CHECKING

from callboard.config import matches
from callboard.fleet._engine import Bucket, EngineAwayError
from callboard.fleet._machines import TARGETS
from callboard.fleet._work_messages import BEAT_SECONDS, MachineState, MachineTargets, pack
from callboard.messages import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from callboard.config import Settings
    from callboard.fleet._engine import FleetEngine
    from callboard.fleet._own_name import OwnName
    from callboard.messages import Target


class OwnState:
    """Publishes what other machines know of this one.

    It belongs to the event loop.
    """

    def __init__(
        self,
        engine: FleetEngine,
        own_name: OwnName,
        settings: Settings,
        targets: Callable[[], Iterable[Target]],
        running: Callable[[], int],
    ) -> None:
        """Create it.

        Args:
            engine: The connection.
            own_name: The name of this machine.
            settings: The settings of this machine.
            targets: Lists the targets that other machines may give work. It may block.
            running: Returns the number of tasks of other machines that are not over here.
        """
        self._engine = engine
        self._own_name = own_name
        self._settings = settings
        self._targets = targets
        self._running = running
        self._beat = int(time.time())
        self._published_targets: tuple[Target, ...] | None = None
        self.is_draining = False
        """Whether this machine begins no more work of others."""

    async def claim(self) -> None:
        """Take the name of this machine.

        Without the engine, it is taken later.

        Raises:
            SettingsError: If another machine has it.
        """
        with contextlib.suppress(EngineAwayError):
            while not self._own_name.is_held.is_set():
                await self._publish_state()
                if self._own_name.taken:
                    raise SettingsError(self._own_name.taken)
                await asyncio.sleep(0 if self._own_name.is_held.is_set() else BEAT_SECONDS / 4)

    async def publish(self) -> None:
        """Repeat this machine's state, and tell its targets when they change."""
        while True:
            with contextlib.suppress(EngineAwayError):
                await self._publish_state()
                if self._own_name.is_held.is_set():
                    await self._publish_targets()
                else:
                    self._published_targets = None
            await asyncio.sleep(BEAT_SECONDS)

    async def leave(self) -> None:
        """Tell the other machines that this one was stopped."""
        if self._own_name.is_held.is_set():
            with contextlib.suppress(EngineAwayError):
                await self._publish_state(left=True)

    def offered(self) -> tuple[Target, ...]:
        """Return the targets that other machines may give work. May block."""
        patterns = self._settings.fleet.accept.targets
        return tuple(target for target in self._targets() if matches(target.id, patterns))

    async def _publish_state(self, *, left: bool = False) -> None:
        self._beat += 1
        state = MachineState(
            callboard=importlib.metadata.version("callboard"),
            identity=self._own_name.identity,
            since=self._own_name.since,
            beat=self._beat,
            at=time.time(),
            running=self._running(),
            slots=self._settings.fleet.slots,
            draining=self.is_draining,
            left=left,
        )
        await self._own_name.beat(state)

    async def _publish_targets(self) -> None:
        targets = await asyncio.to_thread(self.offered)
        if targets != self._published_targets:
            name, fleet = self._own_name.name, self._settings.fleet
            published = MachineTargets(
                machine=name, targets=targets, labels=fleet.labels, takes_any=fleet.accept.offers_all
            )
            await self._engine.put(Bucket.MACHINES, f"{name}.{TARGETS}", await pack(self._engine, published, name))
            self._published_targets = targets
