"""HTTP messages that pass the proxy: targets, headers, own answers.

Bytes are parsed by h11 only. What h11 has parsed is checked and rebuilt here, so that both servers and browsers see
one reading of a message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11

from callboard.network._host_addresses import canonical_host
from callboard.network._network_rules import HTTP_PORT, HTTPS_PORT
from callboard.network._proxy_credentials import AGENTS_PROXY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from callboard.network._host_addresses import Address

_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#\\]+)(?::(?P<port>[0-9]{1,5}))?")
_ABSOLUTE = re.compile(r"http://(?P<authority>[^/?#\\]+)(?P<path>[/?][^#]*)?(?:#.*)?", re.IGNORECASE)
_MOST_PORT = 65_535
PROXY_NAME = "callboard"
_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authentication-info proxy-authorization proxy-connection te "
    b"trailer transfer-encoding upgrade".split()
)
"""The headers that concern one connection, and the proxy's own."""


@dataclass(frozen=True, kw_only=True)
class RequestTarget:
    """The server that a request is for."""

    host: Address | str
    port: int
    path: str = ""
    """The path and query of a forwarded request; empty for a tunnel."""
    is_private: bool = False
    """Whether it is at a private address, such as one of this machine."""

    @property
    def default_ports(self) -> tuple[int, ...]:
        """The ports that a rule without a port allows.

        WebSockets without encryption are tunnelled, too.
        """
        return (HTTP_PORT,) if self.path else (HTTPS_PORT, HTTP_PORT)

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in str(self.host) else str(self.host)
        return host if self.port == HTTP_PORT else f"{host}:{self.port}"


def request_target(request: h11.Request) -> RequestTarget:
    """Read the server and path from a request to a proxy.

    Raises:
        ValueError: If it is not a request to a proxy, or not well-formed; the text gives the reason.
    """
    if {b"content-length", b"transfer-encoding"} <= {name for name, _ in request.headers}:
        msg = "the request has two lengths"
        raise ValueError(msg)
    text = request.target.decode("ascii")
    if request.method == b"CONNECT":
        host, port = _authority(text)
        if port is None:
            msg = "a tunnel needs a port"
            raise ValueError(msg)
        return RequestTarget(host=host, port=port)
    match = _ABSOLUTE.fullmatch(text)
    if match is None:
        msg = "this is a proxy: it takes addresses that begin with http://, and tunnels"
        raise ValueError(msg)
    host, port = _authority(match["authority"])
    path = match["path"] or "/"
    return RequestTarget(
        host=host, port=HTTP_PORT if port is None else port, path=path if path.startswith("/") else f"/{path}"
    )


def _authority(text: str) -> tuple[Address | str, int | None]:
    match = _AUTHORITY.fullmatch(text)
    port = int(match["port"]) if match is not None and match["port"] else None
    if match is None or (port is not None and not 0 < port <= _MOST_PORT):
        msg = "the server's name or port is malformed"
        raise ValueError(msg)
    return canonical_host(match["host"]), port


def is_upgrade(message: h11.Request) -> bool:
    """Return whether a request asks for a WebSocket.

    No other protocol is forwarded.
    """
    values = [value.strip().lower() for name, value in message.headers if name == b"upgrade"]
    return values == [b"websocket"] and message.method == b"GET"


def forwarded_request(request: h11.Request, target: RequestTarget) -> h11.Request:
    """Build the request for the server.

    It has its own path, Host and framing, and no header of the connection. A private server is told that the request is
    an agent's: a console refuses it.
    """
    headers = [(b"Host", target.authority.encode()), *_end_to_end(request, without=b"host")]
    if target.is_private:
        headers.append((b"Via", f"1.1 {AGENTS_PROXY}".encode()))
    if any(name == b"transfer-encoding" for name, _ in request.headers):
        headers.append((b"Transfer-Encoding", b"chunked"))
    if is_upgrade(request):
        headers += [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]
    else:
        headers.append((b"Connection", b"close"))
    return h11.Request(method=request.method, target=target.path.encode(), headers=headers)


def forwarded_response(response: h11.Response) -> h11.Response:
    """Build the response for the browser; h11 adds its framing."""
    return h11.Response(status_code=response.status_code, headers=_end_to_end(response), reason=response.reason)


def forwarded_switch(response: h11.InformationalResponse) -> h11.InformationalResponse:
    """Build the response that begins a WebSocket."""
    headers = [*_end_to_end(response), (b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]
    return h11.InformationalResponse(status_code=101, headers=headers, reason=response.reason)


def _end_to_end(
    message: h11.Request | h11.InformationalResponse | h11.Response, *, without: bytes = b""
) -> list[tuple[bytes, bytes]]:
    """Return the headers that are not about one connection, unchanged."""
    lists = [value for name, value in message.headers if name == b"connection"]
    tokens = {token.strip().lower() for value in lists for token in value.split(b",")}
    dropped = _HOP_BY_HOP | (tokens - {b"content-length"}) | {without}
    return [(name, value) for name, value in message.headers.raw_items() if name.lower() not in dropped]


def own_answer(status: int, reason: str, text: str, *, headers: Iterable[tuple[str, str]] = ()) -> list[h11.Event]:
    """Build an answer of the proxy itself.

    It is plain text, which a browser shows and never runs.
    """
    body = f"{text}\n".encode()
    all_headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Security-Policy", "default-src 'none'; sandbox"),
        ("Cache-Control", "no-store"),
        ("Proxy-Status", PROXY_NAME),  # RFC 9209
        *headers,
    ]
    return [
        h11.Response(status_code=status, reason=reason, headers=all_headers),
        h11.Data(data=body),
        h11.EndOfMessage(),
    ]
