"""Refusal of HTTP requests that are not a caller's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response

from callboard.mcp_server._callers import Caller, Callers, TooManyRequestsError
from callboard.network import AGENTS_PROXY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

MCP_PATH = "/mcp"
_BEARER = "bearer "


@dataclass(frozen=True)
class CallerGuard:
    """An ASGI application around those of the callers.

    - The name of the host must be one of ours, so that no site can give its own name to this address.
    - No page of a browser calls: a request with an origin is refused, also one of this machine.
    - Nothing is for a proxy: pages of agents' browsers reach this machine through one only.
    - Each request needs the token of a caller, and reaches the application of that caller alone.
    - Each caller has a number of open requests; a further one is refused, and not queued.
    """

    apps: Mapping[str, ASGIApp]
    """The application of each caller, by its name."""
    callers: Callers
    hosts: frozenset[str]
    """The names and ports by which it may be called."""
    lifespan: ASGIApp
    """The application that is told of the start and the end."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.lifespan(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        caller = self._caller(headers)
        if isinstance(caller, Response):
            await caller(scope, receive, send)
            return
        try:
            with self.callers.request_of(caller):
                await self.apps[caller.name](scope, receive, send)
        except TooManyRequestsError as error:
            await _refusal(429, str(error))(scope, receive, send)

    def _caller(self, headers: Headers) -> Caller | Response:
        """Return the caller of a request, or the response that refuses it."""
        if headers.get("host", "").lower() not in self.hosts:
            return _refusal(421, "this address is not the server's")
        if headers.get("origin") is not None or headers.get("sec-fetch-site") is not None:
            return _refusal(403, "pages of browsers may not call")
        if AGENTS_PROXY in headers.get("via", ""):
            return _refusal(403, "agents may not call")
        words = headers.getlist("authorization")
        is_bearer = len(words) == 1 and words[0][: len(_BEARER)].lower() == _BEARER
        caller = self.callers.with_token(words[0][len(_BEARER) :].strip()) if is_bearer else None
        if caller is None:
            response = _refusal(401, "a bearer token of a caller is needed (mcp_server.callers)")
            response.headers["www-authenticate"] = 'Bearer error="invalid_token"'
            return response
        return caller


def _refusal(status: int, reason: str) -> Response:
    return JSONResponse({"error": reason}, status_code=status)
