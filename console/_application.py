"""The application of the console: its addresses, and what they do."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from callboard.config import HostLog, current_language, text
from callboard.console._event_feed import event_feed
from callboard.console._guard import SIGN_IN_PATH, Guard, cookies_of, mounted_at
from callboard.console._pages import STATIC, Pages, number_in
from callboard.console._sign_in import SESSION_SECONDS, SignIns, key_beside
from callboard.console._task_view import UNREADABLE
from callboard.messages import CallboardError, NotWaitingError, SettingsError, UnknownTaskError
from callboard.network import json_body, person_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable
    from pathlib import Path

    from starlette.requests import Request

    from callboard.config import Language
    from callboard.console._sign_in import SignIn
    from callboard.network import Person
    from callboard.supervisor import Supervisor

_log = HostLog()
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_BODY = 100_000
"""The largest body of a request, in bytes: an answer to a question."""
_BODY_SECONDS = 20.0
_MOST_FEEDS = 64
"""The most pages that follow the events at once; a further one is refused, and tries again."""


def app(
    supervisor: Supervisor, person: Person, *, metrics_token: str | None = None, language: Language | None = None
) -> Starlette:
    """Make the console of a supervisor, to mount in another program.

    That program has a sign-in of its own.

    The program ends it with the supervisor. It shows the supervisor's journal, and answers what waits for people.

    Args:
        supervisor: The supervisor; it needs a journal.
        person: Returns the name of the person who is signed in, from a request; None for no person. It is recorded with
            each answer. It is called for each request, on the program's event loop, and may be a coroutine function.
        metrics_token: The bearer token with which ``/metrics`` may be read; None for ``observe.metrics_token`` of the
            settings. Without both there are no metrics. They need ``observe.metrics``.
        language: The language of the pages; None for English.

    Raises:
        SettingsError: If the supervisor has no journal, or the token of the metrics is empty.

    Example:
        >>> application = callboard.console.app(supervisor, person=lambda request: request.headers.get("x-user"))
        >>> application.routes[0].path
        ''
    """
    settings = supervisor.settings
    if metrics_token == "":  # such as a variable that is not set; it would let everyone in
        msg = "metrics_token is empty: leave it out for that of the settings, or for no metrics"
        raise SettingsError(msg)
    if settings.journal.path is None:
        msg = "the console shows a journal, and journal.path is not set"
        raise SettingsError(msg)
    journal = settings.path(settings.journal.path)
    key = key_beside(journal)
    return application(
        journal,
        supervisor,
        SignIns(key),
        person=person,
        cookie_name=f"callboard-{hashlib.sha256(key).hexdigest()[:12]}",
        metrics_token=metrics_token,
        language=language,
    )


def application(
    journal: Path,
    supervisor: Supervisor | None,
    sessions: SignIns,
    *,
    person: Person | None = None,
    hosts: frozenset[str] = frozenset(),
    cookie_name: str,
    user: str = "",
    metrics_token: str | None = None,
    language: Language | None = None,
) -> Starlette:
    """Make the application.

    Args:
        journal: The journal that it shows.
        supervisor: The supervisor that works on it here; None for a journal that is only shown.
        sessions: The sign-ins.
        person: Returns who is signed in to the program that mounts it; None for a sign-in by link.
        hosts: The names and ports by which it may be called; empty if the program that mounts it checks them.
        cookie_name: The cookie's name; cookies are the same for all ports of a host, so each console has its own.
        user: The person who signs in by link.
        metrics_token: The bearer token of the metrics; None for that of the supervisor's settings.
        language: The language of the pages; None for English.
    """
    if metrics_token is None and supervisor is not None:
        own_token = supervisor.settings.observe.metrics_token
        metrics_token = None if own_token is None else own_token.get_secret_value()
    console = _Console(
        Pages(journal, supervisor),
        sessions,
        person=person,
        cookie_name=cookie_name,
        user=user,
        metrics_token=metrics_token,
    )
    guard = Middleware(
        Guard,
        sessions=sessions,
        cookie_name=cookie_name,
        hosts=hosts,
        person=person,
        language=language or current_language(),
    )
    console_app = Starlette(routes=console.routes(), middleware=[guard], exception_handlers={CallboardError: _failed})
    console_app.router.redirect_slashes = False
    return console_app


async def _failed(_request: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), 409)


class _Console:
    """Answers the requests of pages."""

    def __init__(
        self,
        pages: Pages,
        sessions: SignIns,
        *,
        person: Person | None,
        cookie_name: str,
        user: str,
        metrics_token: str | None,
    ) -> None:
        self._pages = pages
        self._sessions = sessions
        self._person = person
        self._cookie_name = cookie_name
        self._user = user
        self._metrics_token = metrics_token
        self._feeds = 0
        self._long_work = anyio.CapacityLimiter(1)
        """Pages of one file are drawn, or a task replayed, at a time; the next one waits without a thread."""

    def routes(self) -> list[Route | Mount]:
        """Return the addresses."""
        return [
            Mount("/static", StaticFiles(directory=STATIC)),
            Route(SIGN_IN_PATH, self._sign_in, methods=["POST"]),
            Route("/healthz", self._is_alive),
            Route("/metrics", self._metrics),
            Route("/", self._part(lambda request, _: self._pages.tasks(request.query_params))),
            Route("/waiting", self._part(lambda _, session: self._pages.waiting(session))),
            Route("/health", self._part(lambda *_: self._pages.health())),
            Route("/tasks/{task_id}", self._part(self._task)),
            Route("/tasks/{task_id}/runs/{run_id:path}", self._part(self._run)),
            Route("/tasks/{task_id}/replay", self._part(self._replay, limiter=self._long_work)),
            Route("/tasks/{task_id}/files/{number}/pages", self._part(self._file_pages, limiter=self._long_work)),
            Route("/tasks/{task_id}/policy", self._rulings, methods=["POST"]),
            Route("/tasks/{task_id}/{verb:str}", self._change, methods=["POST"]),
            Route("/tasks/{task_id}/requests/{request_id}", self._answer, methods=["POST"]),
            Route("/pictures/{digest}", self._picture),
            Route("/events", self._events, methods=["GET"]),
        ]

    def _part(
        self, render: Callable[[Request, SignIn], str], *, limiter: anyio.CapacityLimiter | None = None
    ) -> Callable[[Request], Any]:
        """Make the handler of a page.

        A browser gets its frame, and the frame its contents.
        """

        async def respond(request: Request) -> Response:
            if request.scope.get("callboard_frame"):
                frame = functools.partial(
                    self._pages.frame, mounted_at(request.scope), has_sign_in=self._person is not None
                )
                return HTMLResponse(await anyio.to_thread.run_sync(frame))
            return await _rendered(functools.partial(render, request, _session(request)), limiter)

        return respond

    def _task(self, request: Request, session: SignIn) -> str:
        return self._pages.task(session, request.path_params["task_id"], request.query_params)

    def _run(self, request: Request, _session: SignIn) -> str:
        return self._pages.run(request.path_params["task_id"], request.path_params["run_id"])

    def _replay(self, request: Request, _session: SignIn) -> str:
        return self._pages.replay(request.path_params["task_id"])

    def _file_pages(self, request: Request, _session: SignIn) -> str:
        return self._pages.file_pages(request.path_params["task_id"], number_in(request.path_params["number"]))

    async def _sign_in(self, request: Request) -> Response:
        """Start a session.

        It takes a link, or the sign-in of the program that mounts the console.
        """
        person: str | None = self._user
        if self._person is not None:
            person = await person_of(self._person, request)
        elif not self._sessions.use_link(str((await json_body(request, _MOST_BODY, _BODY_SECONDS)).get("link", ""))):
            person = None
        if not person:
            return PlainTextResponse(text("sign_in_used"), 401)
        cookie, token = self._sessions.start(person, cookies_of(request.headers, self._cookie_name))
        response = JSONResponse({"token": token})
        response.set_cookie(
            self._cookie_name,
            cookie,
            max_age=int(SESSION_SECONDS),
            path=mounted_at(request.scope) or "/",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    async def _is_alive(self, _request: Request) -> Response:
        return Response(status_code=204)

    async def _metrics(self, request: Request) -> Response:
        """Return the metrics to a program that has their token."""
        supervisor = self._pages.supervisor
        if supervisor is None:
            raise HTTPException(404, text("metrics_elsewhere"))
        if self._metrics_token is None:
            raise HTTPException(404)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.encode(), self._metrics_token.encode()):
            raise HTTPException(401, headers={"www-authenticate": "Bearer"})
        return PlainTextResponse(await anyio.to_thread.run_sync(supervisor.metrics))

    async def _picture(self, request: Request) -> Response:
        digest = request.path_params["digest"]
        _session(request)
        if not _DIGEST.fullmatch(digest):
            raise HTTPException(404)
        picture = await anyio.to_thread.run_sync(self._pages.picture, digest)
        return Response(picture, media_type="image/png")

    async def _events(self, request: Request) -> Response:
        _session(request)
        if self._feeds >= _MOST_FEEDS:
            raise HTTPException(503, text("many_pages"))
        feed = event_feed(self._pages.journal, number_in(request.headers.get("last-event-id", "")))
        return StreamingResponse(self._counted(feed), media_type="text/event-stream")

    async def _counted(self, feed: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
        self._feeds += 1
        try:
            async with contextlib.aclosing(feed):
                async for block in feed:
                    yield block
        finally:
            self._feeds -= 1

    async def _rulings(self, request: Request) -> Response:
        """Return the verdicts of other rules on the actions of a task."""
        _session(request)
        rules = str((await json_body(request, _MOST_BODY, _BODY_SECONDS)).get("rules", ""))
        return await _rendered(functools.partial(self._pages.rulings, request.path_params["task_id"], rules))

    async def _change(self, request: Request) -> Response:
        """Cancel, pause or resume a task."""
        session, supervisor = _session(request), self._working_supervisor()
        verbs: dict[str, Callable[[Any], bool]] = {
            "cancel": lambda handle: handle.cancel(text("cancelled_by", person=session.person)),
            "pause": lambda handle: handle.pause(),
            "resume": lambda handle: handle.resume(),
        }
        change = verbs.get(request.path_params["verb"])
        if change is None:
            raise HTTPException(404)

        def apply() -> bool:
            return change(supervisor.handle(request.path_params["task_id"]))

        return JSONResponse({"changed": await anyio.to_thread.run_sync(apply)})

    async def _answer(self, request: Request) -> Response:
        """Answer a request in the name of the person signed in."""
        session, supervisor = _session(request), self._working_supervisor()
        fields = await json_body(request, _MOST_BODY, _BODY_SECONDS)
        request_id = request.path_params["request_id"]

        def apply() -> None:
            handle = supervisor.handle(request.path_params["task_id"])
            match fields:
                case {"verdict": "approve"}:
                    handle.approve(request_id, by=session.person, remember=fields.get("remember") is True)
                case {"verdict": "reject"}:
                    handle.reject(request_id, str(fields.get("reason", "")), by=session.person)
                case {"texts": list(texts)}:
                    handle.answer(request_id, *map(str, texts), by=session.person)
                case _:
                    raise HTTPException(400)

        try:
            await anyio.to_thread.run_sync(apply)
        except (NotWaitingError, UnknownTaskError):
            return PlainTextResponse(text("no_longer_open"), 409)
        return JSONResponse({"answered": True})

    def _working_supervisor(self) -> Supervisor:
        if self._pages.supervisor is None:
            raise HTTPException(409, text("read_only"))
        return self._pages.supervisor


async def _rendered(render: Callable[[], str], limiter: anyio.CapacityLimiter | None = None) -> Response:
    """Render a part of a page on a thread."""
    try:
        return HTMLResponse(await anyio.to_thread.run_sync(render, limiter=limiter))
    except CallboardError:
        raise
    except UNREADABLE as error:
        _log.warning("the journal has facts that can't be shown", exc_info=error)
        return PlainTextResponse(text("unreadable"), 409)


def _session(request: Request) -> SignIn:
    """Return the session of a request.

    Raises:
        HTTPException: If it has none: it is for the frame of a page, and this address has none.
    """
    session: SignIn | None = request.scope.get("callboard_session")
    if session is None:
        raise HTTPException(401, text("sign_in_first"))
    return session
