"""Server lifecycle: opened concurrently when a supervisor starts, closed in reverse order."""

from __future__ import annotations

import concurrent.futures
import functools
import time
from typing import TYPE_CHECKING, Any

from callboard.config import HostLog
from callboard.messages import SettingsError, reason_of
from callboard.surfaces import Need, Server, Stage, check_needs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from callboard.actors.runtime import EventLoop, Lanes
    from callboard.messages import Seconds, Target

_log = HostLog()
_PILLOW = functools.partial(Need.package, "PIL", "pip install 'callboard[pictures]'")
"""Labels are drawn on pictures, and secrets painted over."""


class ServerLifecycle:
    """Opens and closes the servers of one supervisor.

    Blocks; for the host program's threads.
    """

    def __init__(
        self,
        servers: Sequence[Server],
        lanes: Lanes,
        loop: EventLoop,
        journal: Path | None,
        elapsed: Callable[[], Seconds] = time.monotonic,
    ) -> None:
        """Create it.

        `journal` is the journal's file, if there is one, and `elapsed` reads the supervisor's clock.
        """
        self._servers = tuple(servers)
        self._stages = {server.name: Stage(server.name, journal, elapsed) for server in servers}
        self._lanes = lanes
        self._loop = loop
        for server in servers:
            if server.affine:
                lanes.keep(server.lane(None))

    def open(self, seconds: Seconds) -> None:
        """Open all servers concurrently; `seconds` limits each of them.

        Raises:
            SettingsError: If servers can't be opened; it names all of them, and the others are closed again. Also if
                a server makes pictures and Pillow is missing; then none is opened.
        """
        check_needs((f"the server {server.name}", _PILLOW()) for server in self._servers if server.pictures)
        calls = [
            (server, self._call(server, functools.partial(server.open, self._stages[server.name])))
            for server in self._servers
            if type(server).open is not Server.open
        ]
        concurrent.futures.wait([call for _, call in calls], seconds)
        failed = {server.name: error for server, call in calls if (error := _error(call, seconds)) is not None}
        if failed:
            self.close(seconds)
            reasons = "; ".join(f"{name}: {reason_of(error)}" for name, error in failed.items())
            msg = f"{'a server' if len(failed) == 1 else 'servers'} can't be opened: {reasons}"
            raise SettingsError(msg) from next(iter(failed.values()))

    def close(self, seconds: Seconds) -> tuple[str, ...]:
        """Close all servers in reverse order.

        Returns the names of those that timed out or failed.
        """
        unclosed = []
        for server in reversed(self._servers):
            if type(server).close is not Server.close:
                call = self._call(server, server.close)
                concurrent.futures.wait([call], seconds)
                if _error(call, seconds) is not None:
                    unclosed.append(f"the server {server.name}")
            self._stages[server.name].close()
        return tuple(unclosed)

    @property
    def closing(self) -> tuple[Server, ...]:
        """The servers that close a conversation's targets after it is over."""
        return tuple(server for server in self._servers if server.closes_after is not None)

    def tell_owners(self, server: Server, tell: Callable[[str], None]) -> None:
        """Report conversations with open targets to `tell`.

        `tell` runs on the event loop's thread. Does not wait.
        """

        async def look() -> None:
            for owner in {target.owner for target in await self._listed(server)} - {""}:
                tell(owner)

        self._loop.submit(look())

    def close_for(self, server: Server, session: str) -> None:
        """Close a conversation's open targets. Does not wait; failures are logged."""

        async def close() -> None:
            for target in await self._listed(server):
                if target.owner == session:
                    await self._stopped(server, target)

        self._loop.submit(close())

    async def _listed(self, server: Server) -> Sequence[Target]:
        try:
            return await self._lanes.run(server.lane(None), server.targets)
        except Exception as error:  # third-party code boundary: the server's own code
            _log.warning("the open targets of %s could not be listed: %s", server.name, reason_of(error))
            return ()

    async def _stopped(self, server: Server, target: Target) -> None:
        try:
            await self._lanes.run(server.lane(target), functools.partial(server.stop, target))
        except Exception as error:  # as above
            _log.warning("%s could not be closed: %s", target.id, reason_of(error))
        else:
            _log.info("%s was closed: the conversation that had opened it is over", target.id)

    def _call(self, server: Server, function: Callable[[], Any]) -> concurrent.futures.Future[Any]:
        return self._loop.submit(self._lanes.run(server.lane(None), function))


def _error(call: concurrent.futures.Future[Any], seconds: Seconds) -> BaseException | None:
    if not call.done():
        call.cancel()
        return TimeoutError(f"it took longer than {seconds:g} s")
    return call.exception()
