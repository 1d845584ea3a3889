"""One side of a proxied connection: h11's state machine on a stream."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import h11

from callboard.network._proxy_messages import (
    forwarded_request,
    forwarded_response,
    forwarded_switch,
    own_answer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from callboard.network._proxy_messages import RequestTarget

    Role = type[h11.CLIENT | h11.SERVER]

_CHUNK_BYTES = 1 << 16
_MOST_DISCARDED_BYTES = 1 << 20
"""The longest body of a refused request that is read to its end, so that the browser reads the answer."""
_PROXY_AUTHENTICATION_REQUIRED = 407


class ProxyConnection:
    """One side of a proxied connection.

    Args:
        role: The role of this program: `h11.SERVER` towards a browser, `h11.CLIENT` towards a server.
        reader: The bytes from the peer.
        writer: The bytes to the peer.
        header_bytes: The most bytes of a message's headers.
        on_data: Called when the peer has sent or taken something.
    """

    def __init__(
        self,
        role: Role,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        header_bytes: int,
        on_data: Callable[[], None],
    ) -> None:
        self.http = h11.Connection(role, max_incomplete_event_size=header_bytes)
        self._reader = reader
        self._writer = writer
        self._on_data = on_data

    async def receive(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        """Return the next part of a message.

        Raises:
            h11.RemoteProtocolError: If the peer does not speak HTTP/1.1.
            OSError: If the connection is lost.
        """
        while (event := self.http.next_event()) is h11.NEED_DATA:
            if self.http.they_are_waiting_for_100_continue:
                await self.send(h11.InformationalResponse(status_code=100, headers=[]))
            await self.read()
        return event

    async def read(self) -> bytes:
        """Read bytes into the state machine; empty at the end."""
        data = await self._reader.read(_CHUNK_BYTES)
        self._on_data()
        self.http.receive_data(data)
        return data

    async def send(self, *events: h11.Event) -> None:
        """Send parts of a message."""
        for event in events:
            data = self.http.send(event)
            if data:
                self._writer.write(data)
        await self._writer.drain()
        self._on_data()

    async def answer(self, status: int, reason: str, text: str, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Answer a request that is not forwarded, after its body."""
        discarded = 0
        while self.http.their_state is h11.SEND_BODY and not self.http.they_are_waiting_for_100_continue:
            event = await self.receive()
            discarded += len(event.data) if isinstance(event, h11.Data) else 0
            if discarded > _MOST_DISCARDED_BYTES:
                break
        if self.http.their_state is h11.SEND_BODY:
            headers = [*headers, ("Connection", "close")]
        await self.send(*own_answer(status, reason, text, headers=headers))

    async def pump(self, peer: ProxyConnection) -> None:
        """Pass bytes on to a peer until they end."""
        try:
            while data := await self._reader.read(_CHUNK_BYTES):
                self._on_data()
                peer._writer.write(data)
                await peer._writer.drain()
            peer._writer.write_eof()
        except OSError:
            self.abort()
            peer.abort()

    async def tunnel(self, peer: ProxyConnection) -> None:
        """Pass bytes on in both directions.

        The first are those that came with the last message.
        """
        self._writer.write(peer.http.trailing_data[0])
        peer._writer.write(self.http.trailing_data[0])
        async with asyncio.TaskGroup() as group:
            group.create_task(self.pump(peer))
            group.create_task(peer.pump(self))

    def abort(self) -> None:
        """Cut the connection at once."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Close the connection after all bytes were sent."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            self.abort()


class UpstreamError(Exception):
    """A server that can't be reached, or does not answer in HTTP."""


async def forward(
    client: ProxyConnection, server: ProxyConnection, request: h11.Request, target: RequestTarget
) -> None:
    """Forward a request, and the response to it.

    Raises:
        UpstreamError: If there is no response that could be forwarded, and none was begun.
    """
    try:
        await server.send(forwarded_request(request, target))
    except OSError as error:
        raise UpstreamError(str(error)) from error
    body = asyncio.create_task(_forward_body(client, server))
    try:
        is_switched = await _forward_response(client, server)
    finally:
        body.cancel()
        await asyncio.gather(body, return_exceptions=True)
    if is_switched:
        await client.tunnel(server)


async def _forward_body(client: ProxyConnection, server: ProxyConnection) -> None:
    """Forward the body; cut the server off if the browser gives up."""
    try:
        while isinstance(event := await client.receive(), h11.Data):
            await server.send(h11.Data(data=event.data))
        await server.send(h11.EndOfMessage())
        if not await client.read():
            server.abort()
    except (OSError, h11.ProtocolError):
        server.abort()


async def _forward_response(client: ProxyConnection, server: ProxyConnection) -> bool:
    """Forward a response; return True if it begins a WebSocket."""
    try:
        while isinstance(event := await server.receive(), h11.InformationalResponse):
            if event.status_code == 101:
                await client.send(forwarded_switch(event))
                return True
    except (OSError, h11.ProtocolError) as error:
        raise UpstreamError(str(error) or "the connection was lost") from error
    if not isinstance(event, h11.Response) or event.status_code == _PROXY_AUTHENTICATION_REQUIRED:
        msg = "it closed the connection" if not isinstance(event, h11.Response) else "it answers as a proxy"
        raise UpstreamError(msg)
    await client.send(forwarded_response(event))
    while isinstance(part := await server.receive(), h11.Data):
        await client.send(h11.Data(data=part.data))
    await client.send(h11.EndOfMessage())
    return False
