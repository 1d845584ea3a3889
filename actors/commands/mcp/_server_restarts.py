"""Restarts of an MCP server whose connection was lost."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

from callboard.messages import reason_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.commands.mcp._server_connection import McpConnection
    from callboard.config import SupervisionSettings


LISTED_SECONDS = 10.0
"""Seconds that a list of targets waits for a lost server that is being restarted."""


class McpRestarts:
    """The current connection of a session, which replaces a lost one.

    When the server's program ended or the connection was closed, the next use restarts or reconnects it, at most
    `supervision.intensity` times within `supervision.period`. Runs on the event loop.
    """

    def __init__(self, name: str, connect: Callable[[], McpConnection], supervision: SupervisionSettings) -> None:
        """Initialise it; `connect` makes a connection that is not open yet."""
        self.connection: McpConnection | None = None
        self._name = name
        self._connect = connect
        self._supervision = supervision
        self._closed = False
        self._turn = asyncio.Lock()
        self._checking: asyncio.Future[None] | None = None
        """Checks the connection after a call that was cancelled."""
        self._starting: asyncio.Future[McpConnection] | None = None
        """Restarts the server for callers that list its target."""
        self._starting_since = 0.0
        self._restarts: deque[float] = deque()
        """Times of the restarts within the period."""

    async def open(self) -> McpConnection:
        """Connect for the first time, which does not count as a restart.

        Raises:
            ConnectionError: If the server can't be started or reached in time.
        """
        self.connection = self._connect()
        await self.connection.open()
        return self.connection

    async def close(self) -> None:
        """Disconnect for good; no use restarts the server any more."""
        self._closed = True
        if self._checking is not None:
            self._checking.cancel()
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
        if self.connection is not None:
            await self.connection.close()

    def check_later(self, connection: McpConnection) -> None:
        """Check a connection before the next use: its server may hang."""
        self._checking = asyncio.ensure_future(connection.check())

    async def check(self) -> None:
        """Check the connection for a list of targets.

        A lost server is restarted, even if the caller stops waiting. A caller that lists targets may not need this
        server, so it must not wait for it as long as a call may.

        Raises:
            ConnectionError: If the server is not connected, or still restarting.
        """
        now = asyncio.get_running_loop().time()
        if self._starting is None or self._starting.done():
            self._starting, self._starting_since = asyncio.ensure_future(self.connected()), now
            self._starting.add_done_callback(lambda done: done.cancelled() or done.exception())  # marks it as retrieved
        remaining_seconds = max(0.0, self._starting_since + LISTED_SECONDS - now)
        done, _ = await asyncio.wait([self._starting], timeout=remaining_seconds)
        if not done:
            msg = f"the MCP server {self._name} went away, and is still being restarted"
            raise ConnectionError(msg)
        self._starting.result()

    async def connected(self) -> McpConnection:
        """Return the connection; a lost one is replaced by a new one.

        Raises:
            ConnectionError: If the session is closed, or a new connection fails or would exceed the restart limit.
        """
        async with self._turn:
            if self._checking is not None:
                await asyncio.wait([self._checking])
                self._checking = None
            if self._closed or self.connection is None:
                msg = f"the MCP server {self._name} is not connected"
                raise ConnectionError(msg)
            if not self.connection.connected:
                self._count()
                await self.connection.close()
                self.connection = self._connect()
                try:
                    await self.connection.open()
                except Exception as error:
                    msg = f"the MCP server {self._name} went away, and reconnecting failed: {reason_of(error)}"
                    raise ConnectionError(msg) from error
            return self.connection

    def _count(self) -> None:
        """Record a restart.

        Raises:
            ConnectionError: If there were too many within the period.
        """
        supervision, now = self._supervision, time.monotonic()
        while self._restarts and self._restarts[0] <= now - supervision.period:
            self._restarts.popleft()
        if len(self._restarts) >= supervision.intensity:
            tried = f"{len(self._restarts)} times within {supervision.period:g} s" if self._restarts else "never"
            msg = f"the MCP server {self._name} went away; it was restarted {tried}, and is not restarted again for now"
            raise ConnectionError(msg)
        self._restarts.append(now)
