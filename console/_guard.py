"""Refusal of requests that do not come from a page of the console."""

from __future__ import annotations

from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from callboard.console._sign_in import SignIns

TOKEN_HEADER = "x-callboard-token"  # noqa: S105 - the name of a header
SIGN_IN_PATH = "/session"
_OPEN_PATHS = {"/healthz", "/metrics", SIGN_IN_PATH}
"""Paths that decide for themselves who may read them."""
_READING = {"GET", "HEAD"}

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True)
class Guard:
    """An ASGI application around the console's.

    - The name of the host must be one of ours, so that no site can give its own name to this address.
    - What changes something must come from a page of the same origin.
    - Except for the frame of the page, which has no data, all needs a session: its cookie and its token.
    """

    app: ASGIApp
    sessions: SignIns
    cookie_name: str
    hosts: frozenset[str]
    """The names and ports by which it may be called; empty if the program that mounts it checks them."""
    person: Callable[[Request], str | None] | None
    """Returns who is signed in to the program that mounts it; None if the console has a sign-in of its own."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        app = self.app if refusal is None else refusal

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own_headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    own_headers[name] = value
                own_headers.setdefault("cache-control", "no-store")
            await send(message)

        await app(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        """Return the response that refuses a request; None if it is allowed."""
        host = headers.get("host", "")
        if self.hosts and host.lower() not in self.hosts:
            return PlainTextResponse("this address is not the console's: use the link that was printed", 421)
        path = scope["path"].removeprefix(scope.get("root_path", "")) or "/"
        if scope["method"] not in _READING and not _is_same_origin(headers, host):
            return PlainTextResponse("only a page of the console may do this", 403)
        if path in _OPEN_PATHS or path.startswith("/static/"):
            return None
        person = "" if self.person is None else self.person(Request(scope))
        if person is None:
            return PlainTextResponse("sign in first", 401)
        token = headers.get(TOKEN_HEADER)
        if token is None and scope["method"] in _READING:
            scope["callboard_frame"] = True  # the frame of the page, which loads the rest with its token
            return None
        session = self.sessions.find(_cookie(headers, self.cookie_name), token or "")
        if session is None or person not in {"", session.person}:
            return PlainTextResponse("sign in first", 401)
        scope["callboard_session"] = session
        return None


def _cookie(headers: Headers, name: str) -> str:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[name].value if name in cookies else ""


def _is_same_origin(headers: Headers, host: str) -> bool:
    """Return whether a request comes from a page of this address."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site != "same-origin":
        return False
    return origin is not None and urlsplit(origin).netloc.lower() == host.lower()
