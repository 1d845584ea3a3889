"""Surface lifecycle: opened concurrently when a supervisor starts, closed in reverse order."""

from __future__ import annotations

import concurrent.futures
import functools
import time
from typing import TYPE_CHECKING, Any

from callboard.config import HostLog, install_command
from callboard.messages import SettingsError, reason_of
from callboard.surfaces import Need, Server, Stage, check_needs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from callboard.actors.runtime import EventLoop, Lanes
    from callboard.messages import Seconds, Target

_log = HostLog()


def _pillow() -> Need:
    """Require Pillow: labels are drawn on pictures, and secrets painted over."""
    return Need.package("PIL", install_command("pictures"))


class SurfaceLifecycle:
    """Opens and closes the surfaces of one supervisor.

    Blocks; for the host program's threads.
    """

    def __init__(
        self,
        surfaces: Sequence[Server],
        lanes: Lanes,
        loop: EventLoop,
        journal: Path | None,
        elapsed: Callable[[], Seconds] = time.monotonic,
    ) -> None:
        """Create it.

        `journal` is the journal's file, if there is one, and `elapsed` reads the supervisor's clock.
        """
        self._surfaces = tuple(surfaces)
        self._stages = {surface.name: Stage(surface.name, journal, elapsed) for surface in surfaces}
        self._lanes = lanes
        self._loop = loop
        for surface in surfaces:
            if surface.affine:
                lanes.keep(surface.lane(None))

    def open(self, seconds: Seconds) -> None:
        """Open all surfaces concurrently; `seconds` limits each of them.

        Raises:
            SettingsError: If surfaces can't be opened; it names all of them, and the others are closed again. Also if
                a surface makes pictures and Pillow is missing; then none is opened.
        """
        check_needs((f"the surface {surface.name}", _pillow()) for surface in self._surfaces if surface.pictures)
        calls = [
            (surface, self._call(surface, functools.partial(surface.open, self._stages[surface.name])))
            for surface in self._surfaces
            if type(surface).open is not Server.open
        ]
        concurrent.futures.wait([call for _, call in calls], seconds)
        failed = {surface.name: error for surface, call in calls if (error := _error(call, seconds)) is not None}
        if failed:
            self.close(seconds)
            reasons = "; ".join(f"{name}: {reason_of(error)}" for name, error in failed.items())
            msg = f"{'a surface' if len(failed) == 1 else 'surfaces'} can't be opened: {reasons}"
            raise SettingsError(msg) from next(iter(failed.values()))

    def close(self, seconds: Seconds) -> tuple[str, ...]:
        """Close all surfaces in reverse order.

        Returns the names of those that timed out or failed.
        """
        unclosed = []
        for surface in reversed(self._surfaces):
            if type(surface).close is not Server.close:
                call = self._call(surface, surface.close)
                concurrent.futures.wait([call], seconds)
                if _error(call, seconds) is not None:
                    unclosed.append(f"the surface {surface.name}")
            self._stages[surface.name].close()
        return tuple(unclosed)

    @property
    def closing(self) -> tuple[Server, ...]:
        """The surfaces that close a conversation's targets after it is over."""
        return tuple(surface for surface in self._surfaces if surface.closes_after is not None)

    def tell_owners(self, surface: Server, tell: Callable[[str], None]) -> None:
        """Report conversations with open targets to `tell`.

        `tell` runs on the event loop's thread. Does not wait.
        """

        async def look() -> None:
            for owner in {target.owner for target in await self._listed(surface)} - {""}:
                tell(owner)

        self._loop.submit(look())

    def close_for(self, surface: Server, session: str) -> None:
        """Close a conversation's open targets. Does not wait; failures are logged."""

        async def close() -> None:
            for target in await self._listed(surface):
                if target.owner == session:
                    await self._stopped(surface, target)

        self._loop.submit(close())

    async def _listed(self, surface: Server) -> Sequence[Target]:
        try:
            return await self._lanes.run(surface.lane(None), surface.targets)
        except Exception as error:  # third-party code boundary: the surface's own code
            _log.warning("the open targets of %s could not be listed: %s", surface.name, reason_of(error))
            return ()

    async def _stopped(self, surface: Server, target: Target) -> None:
        try:
            await self._lanes.run(surface.lane(target), functools.partial(surface.stop, target))
        except Exception as error:  # as above
            _log.warning("%s could not be closed: %s", target.id, reason_of(error))
        else:
            _log.info("%s was closed: the conversation that had opened it is over", target.id)

    def _call(self, surface: Server, function: Callable[[], Any]) -> concurrent.futures.Future[Any]:
        return self._loop.submit(self._lanes.run(surface.lane(None), function))


def _error(call: concurrent.futures.Future[Any], seconds: Seconds) -> BaseException | None:
    if not call.done():
        call.cancel()
        return TimeoutError(f"it took longer than {seconds:g} s")
    return call.exception()
