"""The application that front ends call, and its refusals."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ag_ui.core import RunAgentInput
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from callboard.agui._run_stream import run_stream
from callboard.agui._thread_tasks import LONGEST_ID, PersonThread, ThreadTasks
from callboard.messages import CallboardError
from callboard.network import AGENTS_PROXY, is_same_origin, json_body, person_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator

    from starlette.requests import Request

    from callboard.network import Person
    from callboard.supervisor import Supervisor

_MOST_BODY_BYTES = 1024 * 1024
"""The largest body of a request: it has the messages of the whole conversation."""
_BODY_SECONDS = 20.0
_MOST_STREAMS = 64
_MOST_STREAMS_OF_PERSON = 16
_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-accel-buffering": "no",  # nginx would hold events back
}


class _CancelInput(BaseModel):
    """The body of a cancel."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")

    thread_id: str = Field(min_length=1, max_length=LONGEST_ID)


def app(supervisor: Supervisor, person: Person, *, origins: Iterable[str] = (), hosts: Iterable[str] = ()) -> Starlette:
    """Serve tasks by AG-UI, in a program with its own sign-in.

    A run of the protocol is a task, or the continuation of one after a person's answers. The program ends the
    application with the supervisor.

    Args:
        supervisor: The supervisor; it needs a journal in a file.
        person: Returns the name of the person who is signed in, from a request; None for no person. That person's
            answers to approvals and questions are recorded with the name. It may be a coroutine function.
        origins: Origins of pages of other addresses that may call, such as `https://office.example`.
        hosts: The names and ports by which it may be called; empty if the program that mounts it checks them.

    Raises:
        SettingsError: If the supervisor has no journal in a file.

    Example:
        >>> application = callboard.agui.app(supervisor, person=lambda request: request.headers.get("x-user"))
        >>> [route.path for route in application.routes]
        ['/', '/cancel']
    """
    front = _FrontEnds(
        ThreadTasks(supervisor),
        person,
        frozenset(origin.lower() for origin in origins),
        frozenset(host.lower() for host in hosts),
    )
    routes = [Route("/", front.run, methods=["POST"]), Route("/cancel", front.cancel, methods=["POST"])]
    application = Starlette(routes=routes, exception_handlers={CallboardError: _failed})
    application.router.redirect_slashes = False
    return application


async def _failed(_request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 409, headers=_HEADERS)


class _FrontEnds:
    """Answers the requests of front ends."""

    def __init__(self, tasks: ThreadTasks, person: Person, origins: frozenset[str], hosts: frozenset[str]) -> None:
        self._tasks = tasks
        self._person = person
        self._origins = origins
        self._hosts = hosts
        self._streams: dict[str, int] = {}
        """The number of open streams, by person."""

    async def run(self, request: Request) -> Response:
        """Start or continue a task, and stream its events."""
        name = await self._admitted(request)
        fields = await json_body(request, _MOST_BODY_BYTES, _BODY_SECONDS)
        try:
            run = RunAgentInput.model_validate(fields)
        except (ValidationError, RecursionError) as error:
            raise HTTPException(422, "the body is no RunAgentInput of AG-UI") from error
        if not (0 < len(run.thread_id) <= LONGEST_ID and 0 < len(run.run_id) <= LONGEST_ID):
            raise HTTPException(422, f"threadId and runId have 1 to {LONGEST_ID} characters")
        with self._opened(name):
            pass  # refused before the stream begins

        async def is_signed_in() -> bool:
            return await person_of(self._person, request) == name

        events = run_stream(self._tasks, PersonThread(name, run.thread_id), run, is_signed_in)
        return StreamingResponse(self._counted(name, events), media_type="text/event-stream", headers=_HEADERS)

    async def cancel(self, request: Request) -> Response:
        """Cancel the unfinished task of a thread."""
        name = await self._admitted(request)
        try:
            thread_id = _CancelInput.model_validate(await json_body(request, _MOST_BODY_BYTES, _BODY_SECONDS)).thread_id
        except ValidationError as error:
            raise HTTPException(422, "the body needs a threadId, and nothing else") from error
        is_cancelled = await run_in_threadpool(self._tasks.cancel, PersonThread(name, thread_id))
        return JSONResponse({"cancelled": is_cancelled}, headers=_HEADERS)

    async def _admitted(self, request: Request) -> str:
        """Return the person of a request.

        Raises:
            HTTPException: If it is for another name, from a page of another origin, of an agent, or of no person.
        """
        headers = request.headers
        if self._hosts and headers.get("host", "").lower() not in self._hosts:
            raise HTTPException(421, "this address is not the server's")
        if AGENTS_PROXY in headers.get("via", ""):
            raise HTTPException(403, "agents may not call")
        is_page = "origin" in headers or "sec-fetch-site" in headers
        if is_page and not is_same_origin(headers, self._origins):
            raise HTTPException(403, "pages of other origins may not call")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "the body must be application/json")  # a page asks before it sends that elsewhere
        name = await person_of(self._person, request)
        if not name:
            raise HTTPException(401, "no person is signed in")
        return name

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[None]:
        """Count a stream as open during a block.

        Raises:
            HTTPException: If there are as many as there may be.
        """
        if self._streams.get(name, 0) >= _MOST_STREAMS_OF_PERSON or sum(self._streams.values()) >= _MOST_STREAMS:
            raise HTTPException(503, "too many runs are followed: close a page that follows one")
        self._streams[name] = self._streams.get(name, 0) + 1
        try:
            yield
        finally:
            self._streams[name] -= 1
            if not self._streams[name]:
                del self._streams[name]

    async def _counted(self, name: str, events: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
        with self._opened(name):
            async with contextlib.aclosing(events):
                async for event in events:
                    yield event
