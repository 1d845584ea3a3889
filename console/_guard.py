"""Refusal of requests that are not from the console's pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from callboard.config import speaking, text
from callboard.network import AGENTS_PROXY, is_same_origin, person_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from callboard.config import Language
    from callboard.console._sign_in import SignIns
    from callboard.network import Person

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
    - Nothing is for a proxy: pages of agents' browsers reach this machine through one only.
    - What changes something must come from a page of the same origin.
    - Except for the frame of the page, which has no data, all needs a session: its cookie and its token.
    """

    app: ASGIApp
    sessions: SignIns
    cookie_name: str
    hosts: frozenset[str]
    """The names and ports by which it may be called; empty if the program that mounts it checks them."""
    person: Person | None
    """Returns who is signed in to the program that mounts it; None if the console has a sign-in of its own."""
    language: Language
    """The language of all answers."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own_headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    own_headers[name] = value
                own_headers.setdefault("cache-control", "no-store")
            await send(message)

        with speaking(self.language):
            refusal = await self._refusal(scope, Headers(scope=scope))
            await (self.app if refusal is None else refusal)(scope, receive, send_with_headers)

    async def _refusal(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        """Return the response that refuses a request; None if it is allowed."""
        host = headers.get("host", "")
        if self.hosts and host.lower() not in self.hosts:
            return PlainTextResponse(text("wrong_address"), 421)
        if AGENTS_PROXY in headers.get("via", ""):
            return PlainTextResponse(text("agents_refused"), 403)
        if scope["method"] not in _READING and not is_same_origin(headers):
            return PlainTextResponse(text("other_origin"), 403)
        path = _path_inside(scope)
        if path in _OPEN_PATHS or path.startswith("/static/"):
            return None
        return await self._lacking_sign_in(scope, headers)

    async def _lacking_sign_in(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        """Return the refusal of a request without a session.

        The session of another one is noted in its scope.
        """
        person = None if self.person is None else await person_of(self.person, Request(scope))
        if self.person is not None and not person:
            return PlainTextResponse(text("sign_in_needed"), 401)
        token = headers.get(TOKEN_HEADER)
        if token is None and scope["method"] in _READING:
            scope["callboard_frame"] = True  # the frame of the page, which loads the rest with its token
            return None
        sign_ins = (self.sessions.find(cookie, token or "") for cookie in cookies_of(headers, self.cookie_name))
        session = next(filter(None, sign_ins), None)
        if session is None or person not in {None, session.person}:
            return PlainTextResponse(text("sign_in_needed"), 401)
        scope["callboard_session"] = session
        return None


def mounted_at(scope: Scope) -> str:
    """Return the quoted path at which a program mounts the console.

    Empty at its root.
    """
    path = quote(scope.get("root_path", "").strip("/"))
    return f"/{path}" if path else ""


def _path_inside(scope: Scope) -> str:
    """Return the path of a request for the console's routes."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path.removeprefix(root) or "/" if path == root or path.startswith(f"{root}/") else path


def cookies_of(headers: Headers, name: str) -> Iterator[str]:
    """Yield all values of a cookie.

    Other programs of this machine may have set one of its name.
    """
    for part in ";".join(headers.getlist("cookie")).split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            yield value
