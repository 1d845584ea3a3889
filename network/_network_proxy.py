"""Proxy on loopback that applies the network rules to a browser.

It resolves names itself, checks each address, and connects to a checked one. Each browser context has credentials and
rules of its own. HTTP is parsed by h11; this was looked at before, for a proxy inside a program's event loop, with a
hook between the lookup of a name and the connection, and credentials for each context:

- mitmproxy (MIT) pins 26 other projects to ranges that conflict with ours, and terminates TLS, which is not needed;
- proxy.py (BSD) runs in processes or threads of its own, and has one pair of credentials;
- pproxy (MIT) runs on asyncio, but parses HTTP with patterns, and lets the event loop resolve names;
- aiohttp, httpx and websockets are clients and servers, but no proxies.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import ipaddress
import secrets
import socket
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import h11

from callboard.network._host_addresses import private_kind
from callboard.network._network_rules import NetworkRules, Refusal
from callboard.network._proxy_connection import ProxyConnection, UpstreamError, forward
from callboard.network._proxy_credentials import ProxyCredentials
from callboard.network._proxy_messages import request_target

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from callboard.network._host_addresses import Address
    from callboard.network._proxy_connection import Role
    from callboard.network._proxy_messages import RequestTarget

    Resolver = Callable[[str], Awaitable[Sequence[str]]]

_LOOPBACK = "127.0.0.1"
_CHALLENGE = (("Proxy-Authenticate", 'Basic realm="callboard"'),)


@dataclass(frozen=True, kw_only=True)
class ProxyLimits:
    """Limits of a proxy. Excess is refused or cut."""

    header_bytes: int = 1 << 16
    """The headers of a message that have come without their end; a further read of 64 KiB may complete them."""
    connections: int = 1024
    """Open connections in total; a further one is closed at once."""
    context_connections: int = 256
    """Open connections of one context; a further one is answered with 503."""
    login_seconds: float = 30.0
    """The time from a connection's start until valid credentials."""
    connect_seconds: float = 15.0
    """The time for the lookup of a name, and for each attempt to connect."""
    idle_seconds: float = 300.0
    """The time without a byte in either direction after which a connection is cut."""


@dataclass(eq=False, kw_only=True)
class ProxyAccess(ProxyCredentials):
    """The credentials of a browser context, and its rules."""

    rules: NetworkRules
    on_refusal: Callable[[Refusal], None]
    connections: set[asyncio.Task[None]] = field(default_factory=set, repr=False)


async def resolve_name(name: str) -> Sequence[str]:
    """Look a name up as this machine does."""
    entries = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in entries]


class NetworkProxy:
    """Proxy on loopback. It runs on the event loop that opens it.

    Args:
        resolver: Looks a name up; returns its addresses.
        limits: Its limits.
    """

    def __init__(self, *, resolver: Resolver = resolve_name, limits: ProxyLimits | None = None) -> None:
        self._resolver = resolver
        self._limits = limits or ProxyLimits()
        self._accesses: dict[str, ProxyAccess] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self._is_closed = True
        self._port = 0

    @property
    def server(self) -> str:
        """Its address; `open` must have been called."""
        return f"http://{_LOOPBACK}:{self._port}"

    async def open(self) -> None:
        """Listen on a free port of loopback.

        Raises:
            OSError: If there is none.
        """
        self._is_closed = False
        self._listener = await asyncio.start_server(self._accept, _LOOPBACK, 0)
        self._port = self._listener.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening, and cut all connections."""
        self._is_closed = True  # a connection may have been accepted just now
        if self._listener is not None:
            self._listener.close()
        self._accesses.clear()
        await _cut(self._connections)
        if self._listener is not None:
            await self._listener.wait_closed()

    def admit(self, rules: NetworkRules, on_refusal: Callable[[Refusal], None]) -> ProxyAccess:
        """Make credentials for a browser context.

        Args:
            rules: The hosts that it may reach.
            on_refusal: Called on the event loop with each refused request.
        """
        access = ProxyAccess(
            server=self.server,
            username=secrets.token_hex(8),
            password=secrets.token_urlsafe(32),
            rules=rules,
            on_refusal=on_refusal,
        )
        self._accesses[access.username] = access
        return access

    async def withdraw(self, access: ProxyAccess) -> None:
        """Void the credentials of a context, and cut its connections."""
        self._accesses.pop(access.username, None)
        await _cut(access.connections)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection.

        It is closed even if its task is cancelled before it begins.
        """
        if self._is_closed or len(self._connections) >= self._limits.connections:
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(_ClientSession(self, reader, writer).serve())
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        task.add_done_callback(lambda _: writer.transport.abort())

    def authenticate(self, request: h11.Request) -> ProxyAccess | None:
        """Return the context whose credentials a request has."""
        values = [value for name, value in request.headers if name == b"proxy-authorization"]
        scheme, _, encoded = values[0].partition(b" ") if len(values) == 1 else (b"", b"", b"")
        try:
            username, _, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        access = self._accesses.get(username)
        expected = access.password if access is not None else ""
        is_equal = hmac.compare_digest(password.encode(), expected.encode())
        return access if is_equal and scheme.lower() == b"basic" else None

    async def addresses(self, target: RequestTarget, rules: NetworkRules) -> list[Address] | Refusal:
        """Return the checked addresses of a server, or its refusal.

        Raises:
            UpstreamError: If its name can't be resolved.
        """
        host, port, ports = target.host, target.port, target.default_ports
        refusal = rules.refuse_host(host, port, default_ports=ports)
        if refusal is not None:
            return refusal
        addresses = await self._resolved(host) if isinstance(host, str) else [host]
        for address in addresses:
            refusal = rules.refuse_address(host, address, port, default_ports=ports)
            if refusal is None and port == self._port and address.is_loopback:
                refusal = Refusal(host=str(host), port=port, address=str(address), rule="it is the proxy itself")
            if refusal is not None:
                return refusal
        return addresses

    async def _resolved(self, name: str) -> list[Address]:
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                texts = await self._resolver(name)
            addresses = [ipaddress.ip_address(text) for text in dict.fromkeys(texts)]
        except (OSError, ValueError) as error:
            msg = f"its name can't be resolved ({error or 'no answer in time'})"
            raise UpstreamError(msg) from error
        if not addresses:
            msg = "its name has no address"
            raise UpstreamError(msg)
        return addresses

    async def connect(
        self, addresses: Sequence[Address], port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the first of some checked addresses that answers.

        Raises:
            UpstreamError: If none does.
        """
        failures = []
        for address in addresses:
            try:
                async with asyncio.timeout(self._limits.connect_seconds):
                    return await asyncio.open_connection(str(address), port)
            except OSError as error:
                failures.append(f"{address}: {error.strerror or 'no answer in time'}")
        msg = f"it can't be reached ({'; '.join(failures)})"
        raise UpstreamError(msg)

    @property
    def limits(self) -> ProxyLimits:
        """Its limits."""
        return self._limits


class _ClientSession:
    """A connection of a browser."""

    def __init__(self, proxy: NetworkProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._client = self._side(h11.SERVER, reader, writer)
        self._access: ProxyAccess | None = None
        self._clock: asyncio.Timeout | None = None

    def _side(self, role: Role, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ProxyConnection:
        header_bytes = self._proxy.limits.header_bytes
        return ProxyConnection(role, reader, writer, header_bytes=header_bytes, on_data=self._extend)

    def _extend(self) -> None:
        """Restart the idle time, once the browser has logged in."""
        if self._access is not None and self._clock is not None and not self._clock.expired():
            self._clock.reschedule(asyncio.get_running_loop().time() + self._proxy.limits.idle_seconds)

    async def serve(self) -> None:
        """Answer requests until one side closes the connection."""
        try:
            async with asyncio.timeout(self._proxy.limits.login_seconds) as self._clock:
                while await self._exchange():
                    self._client.http.start_next_cycle()
                await self._client.close()
        except (OSError, h11.ProtocolError):
            self._client.abort()
        finally:
            if self._access is not None:
                self._access.connections.discard(_this_task())

    async def _exchange(self) -> bool:
        """Answer a request; return whether another one may follow."""
        try:
            request = await self._client.receive()
        except h11.RemoteProtocolError as error:
            if self._client.http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                await self._client.answer(error.error_status_hint, "Bad Request", str(error))
            return False
        if not isinstance(request, h11.Request):
            return False
        access = self._proxy.authenticate(request)
        if access is None or self._access not in {None, access}:
            await self._client.answer(407, "Proxy Authentication Required", "The proxy needs credentials.", _CHALLENGE)
        elif self._log_in(access):
            await self._pass(request, access)
        else:
            await self._client.answer(503, "Too Many Connections", "The pages have too many open connections.")
        http = self._client.http
        return http.our_state is http.their_state is h11.DONE

    def _log_in(self, access: ProxyAccess) -> bool:
        if self._access is None:
            if len(access.connections) >= self._proxy.limits.context_connections:
                return False
            self._access = access
            access.connections.add(_this_task())
        return True

    async def _pass(self, request: h11.Request, access: ProxyAccess) -> None:
        """Pass a request on if the rules allow it."""
        try:
            target = request_target(request)
            addresses = await self._proxy.addresses(target, access.rules)
            if isinstance(addresses, Refusal):
                access.on_refusal(addresses)
                await self._client.answer(403, "Forbidden", f"Refused by the network rules.\n\n{addresses}")
                return
            target = replace(target, is_private=any(map(private_kind, addresses)))
            reader, writer = await self._proxy.connect(addresses, target.port)
            server = self._side(h11.CLIENT, reader, writer)
            try:
                await self._exchange_with(server, request, target)
            finally:
                server.abort()
        except UpstreamError as error:
            await self._client.answer(502, "Bad Gateway", f"The server does not answer: {error}")
        except ValueError as error:
            await self._client.answer(400, "Bad Request", str(error))

    async def _exchange_with(self, server: ProxyConnection, request: h11.Request, target: RequestTarget) -> None:
        if request.method != b"CONNECT":
            await forward(self._client, server, request, target)
            return
        await self._client.receive()  # the end of the request
        await self._client.send(h11.Response(status_code=200, reason="Connection Established", headers=[]))
        await self._client.tunnel(server)


def _this_task() -> asyncio.Task[None]:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - only coroutines of a task call this
    return task


async def _cut(connections: set[asyncio.Task[None]]) -> None:
    """Cancel the tasks of connections, and wait until they have ended."""
    tasks = tuple(connections)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
