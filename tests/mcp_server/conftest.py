"""Supervisors behind an MCP server, and clients of the MCP library."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from held_surface import Held
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from callboard import Supervisor
from callboard.mcp_server import HttpTaskServer, hash_of, new_token
from callboard.mcp_server._caller_tasks import CallerTasks
from callboard.mcp_server._callers import Callers
from callboard.mcp_server._orders import Order
from callboard.mcp_server._task_service import task_server
from support import PATIENCE, wait_for

PEOPLE = "at the front desk"


@dataclass
class Desk:
    """A supervisor with callers, and clients in this process."""

    supervisor: Supervisor
    callers: Callers
    tasks: CallerTasks

    @contextlib.asynccontextmanager
    async def client(self, caller: str = "local", **options: Any) -> AsyncIterator[Client]:
        """Connect a client as a caller."""
        server = task_server(self.tasks, self.callers, self.callers.named(caller), counts_requests=True)
        async with Client(server, **options) as client:
            yield client


@pytest.fixture
def desk(begin: Callable[..., Supervisor]) -> Callable[..., Desk]:
    """Start a supervisor on a journal, with callers by name."""

    def opened(callers: dict[str, Any] | None = None, **given: Any) -> Desk:
        supervisor = begin(mcp_server={"callers": callers or {}, **given.pop("mcp_server", {})}, **given)
        return Desk(supervisor, Callers(supervisor.settings.mcp_server), CallerTasks(supervisor, PEOPLE))

    return opened


@pytest.fixture
def desk_in_doubt(desk: Callable[..., Desk]) -> Iterator[Callable[..., tuple[Desk, str, Held]]]:
    """Restart a server that ended in the middle of ann's task."""
    stuck: list[Held] = []

    def restarted(callers: dict[str, Any], app: Any) -> tuple[Desk, str, Held]:
        held, after = Held([], "after"), Held([], "")
        after.effects = held.effects
        stuck.append(held)
        first = desk(callers, app=app, servers=[held])
        ann = first.callers.named("ann")
        order = Order(request="stamp it", target="memo:one", key="k")
        handle = asyncio.run(first.tasks.submit(ann, order))
        assert held.reached.wait(PATIENCE)
        first.supervisor.stop(timeout=0.1)
        second = desk(callers, app=app, servers=[after])
        assert wait_for(second.supervisor.handle(handle.task_id).questions)
        return second, handle.task_id, after

    yield restarted
    for held in stuck:
        held.go.set()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Make a workspace with two documents and a link to a third."""
    folder = tmp_path / "workspace"
    (folder / "sub").mkdir(parents=True)
    for name in ("prices.csv", "sub/costs.csv"):
        (folder / name).write_text("item,price\npen,3\n", encoding="utf-8")
    (tmp_path / "secret.csv").write_text("item,price\ngold,9\n", encoding="utf-8")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    return folder


@dataclass
class Served:
    """An MCP server over HTTP, with the tokens of its callers."""

    server: HttpTaskServer
    supervisor: Supervisor
    tokens: dict[str, str]

    @contextlib.asynccontextmanager
    async def client(self, caller: str, **options: Any) -> AsyncIterator[Client]:
        """Connect a client with the token of a caller."""
        headers = {"authorization": f"Bearer {self.tokens[caller]}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(self.server.url, http_client=http)
            async with Client(transport, **options) as client:
                yield client


@pytest.fixture
def served(begin: Callable[..., Supervisor]) -> Iterator[Callable[..., Served]]:
    """Serve callers over HTTP, each with a token."""
    with contextlib.ExitStack() as stack:

        def start(callers: dict[str, Any], **given: Any) -> Served:
            tokens = {name: new_token() for name in callers}
            sections = {name: {**rights, "token": hash_of(tokens[name])} for name, rights in callers.items()}
            supervisor = begin(mcp_server={"callers": sections}, **given)
            server = HttpTaskServer(supervisor, port=0, people=PEOPLE)
            server.start()
            stack.callback(server.stop)
            return Served(server, supervisor, tokens)

        yield start
