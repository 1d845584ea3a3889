"""Supervisors behind AG-UI, and a front end that checks each event."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from ag_ui.core import Event as ProtocolEvent
from ag_ui.core import RunAgentInput, UserMessage
from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.routing import Mount

from callboard import Supervisor
from callboard.agui import app
from callboard.network import LOOPBACK, LoopbackServer, listening

EVENTS: TypeAdapter[Any] = TypeAdapter(ProtocolEvent)
PEOPLE = {"one": "ann", "two": "bob"}
"""The people, by the values of a header that stands for a sign-in."""


def person(request: Any) -> str | None:
    """Return who is signed in."""
    return PEOPLE.get(request.headers.get("x-session", ""))


def run_input(text: str | None, run: str = "r1", thread: str = "t1", **fields: Any) -> dict[str, Any]:
    """Make the body of a run, by the protocol's type."""
    messages = [] if text is None else [UserMessage(id="m1", content=text)]
    made = RunAgentInput(thread_id=thread, run_id=run, messages=messages, protocol_version="1.0", **fields)
    return made.model_dump(by_alias=True, mode="json")


def events_in(text: str) -> list[Any]:
    """Parse server-sent events, and check their order and their brackets."""
    blocks = [block for block in text.split("\n\n") if block.startswith("data: ")]
    raw = [json.loads(block.removeprefix("data: ")) for block in blocks]
    events = [EVENTS.validate_python(fields) for fields in raw]
    assert [event.model_dump(by_alias=True, mode="json") for event in events] == raw
    assert all(not event.model_extra for event in events)
    names = [event.type.value for event in events]
    assert (names[0], names.count("RUN_STARTED")) == ("RUN_STARTED", 1)
    assert names[-1] in {"RUN_FINISHED", "RUN_ERROR"}
    assert sum(name in {"RUN_FINISHED", "RUN_ERROR"} for name in names) == 1
    assert names.count("STEP_STARTED") == names.count("STEP_FINISHED") or names[-1] == "RUN_ERROR"
    return events


@dataclass
class FrontEnd:
    """A front end on a connection of its own."""

    supervisor: Supervisor
    url: str
    session: str = "one"

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the person's sign-in."""
        return {"x-session": self.session}

    async def post(self, body: Any, path: str = "/", **headers: str) -> httpx2.Response:
        """Send a body, and read the whole response."""
        async with httpx2.AsyncClient(timeout=60) as client:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            given = {"content-type": "application/json", **self.headers, **headers}
            return await client.post(f"{self.url}{path}", content=content, headers=given)

    async def run(self, text: str | None, run: str = "r1", thread: str = "t1", **fields: Any) -> list[Any]:
        """Do a run, and return its events."""
        response = await self.post(run_input(text, run, thread, **fields))
        assert response.status_code == 200, response.text
        return events_in(response.text)

    @contextlib.asynccontextmanager
    async def begun(self, text: str, **fields: Any) -> AsyncIterator[Any]:
        """Begin a run, and give its lines until the block ends."""
        async with (
            httpx2.AsyncClient(timeout=60) as client,
            client.stream("POST", f"{self.url}/", json=run_input(text, **fields), headers=self.headers) as response,
        ):
            yield response.aiter_lines()


@pytest.fixture
def front(begin: Callable[..., Supervisor]) -> Iterator[Callable[..., FrontEnd]]:
    """Serve a supervisor by AG-UI: ``front(app=model)``."""
    with contextlib.ExitStack() as stack:

        def serve(supervisor: Supervisor | None = None, *, person: Any = person, **given: Any) -> FrontEnd:
            options = {name: given.pop(name) for name in ("origins", "hosts") if name in given}
            started = supervisor or begin(**given)
            listener = listening(0)
            port = listener.getsockname()[1]
            program = Starlette(routes=[Mount("/agui", app(started, person, **options))])
            server = LoopbackServer(program, listener, thread="agui-test")
            server.start()
            stack.callback(server.stop)
            return FrontEnd(started, f"http://{LOOPBACK}:{port}/agui")

        yield serve
