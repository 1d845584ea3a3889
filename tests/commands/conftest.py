"""A dispatcher on a surface in memory, and real MCP servers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest

from callboard.actors.commands import Dispatcher, Secrets
from callboard.actors.commands.mcp import McpSession
from callboard.actors.runtime import EventStream, Lanes, Lease, SystemClock, VirtualClock
from callboard.messages import Command, CommandResult, Target
from callboard.testing import MemoryServer
from forks import Program
from support import PATIENCE

NOTES = Path(__file__).parent / "mcp/notes_over_stdio.py"
NOTES_OVER_HTTP = Path(__file__).parent / "mcp/notes_over_http.py"


class Line:
    """The socket on which the tool ``hang`` reports start and end."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(PATIENCE)
        self._file: TextIO | None = None
        self.port = self._listening.getsockname()[1]

    def read(self) -> str:
        """Wait for the tool's next message."""
        if self._file is None:
            caller, _ = self._listening.accept()
            caller.settimeout(PATIENCE)
            with caller:
                self._file = caller.makefile("r")
        return self._file.readline().strip()

    @property
    def silent(self) -> bool:
        """True if no tool has connected so far."""
        self._listening.settimeout(0)
        try:
            self._listening.accept()[0].close()
        except BlockingIOError:
            return True
        return False

    def close(self) -> None:
        """Close everything."""
        self._listening.close()
        if self._file is not None:
            self._file.close()


@pytest.fixture
def line() -> Iterator[Line]:
    """Give a line for the tool ``hang``."""
    made = Line()
    yield made
    made.close()


@pytest.fixture
def lanes() -> Iterator[Lanes]:
    """Give lanes, and check that all calls have returned."""
    made = Lanes()
    yield made
    assert made.close(PATIENCE) == ()


@pytest.fixture
def stream() -> EventStream:
    """Give an event stream."""
    return EventStream(VirtualClock(), kept=100, queue=100)


@pytest.fixture
def dispatcher(stream: EventStream) -> Dispatcher:
    """Give a dispatcher."""
    return Dispatcher(stream, SystemClock("test"), Secrets({}))


@pytest.fixture
def lease() -> Lease:
    """Give a valid lease."""
    return Lease("app/memo/one", 1)


@pytest.fixture
def dispatch(dispatcher: Dispatcher, lease: Lease) -> Callable[..., Awaitable[tuple[CommandResult, ...]]]:
    """Run commands with the tools of an MCP session."""

    async def run(session: McpSession, *commands: Command) -> tuple[CommandResult, ...]:
        tools = {tool.info.name: tool for tool in session.tools()}
        return tuple([await dispatcher.run(command, tools, lease) for command in commands])

    return run


@pytest.fixture
def window() -> Target:
    """Give the window ``memo:one``."""
    return MemoryServer.window()


@pytest.fixture
def command() -> Callable[..., Command]:
    """Make commands: ``command("write", text="x")``."""

    def make(tool: str, timeout: float = PATIENCE, /, **parameters: Any) -> Command:
        return Command(
            task_id="task-1",
            run_id="task-1~1",
            token=1,
            call_id=f"1.{tool}",
            tool=tool,
            parameters=parameters,
            timeout=timeout,
        )

    return make


@pytest.fixture(scope="session")
def notes() -> Path:
    """Give the program of a third-party server over stdio."""
    return NOTES


@pytest.fixture(scope="session")
def notes_over_http() -> Path:
    """Give the program of a server over HTTP; it prints its port."""
    return NOTES_OVER_HTTP


@pytest.fixture
def over_stdio(notes: Path) -> dict[str, Any]:
    """Give the settings of the server, started as a program."""
    return {"command": sys.executable, "args": [str(notes)], "surface": False}


@pytest.fixture(scope="session")
def url(notes_over_http: Path) -> Iterator[str]:
    """Run the server on a free port and give its address."""
    with Program([sys.executable, str(notes_over_http)], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


@pytest.fixture
def over_http(url: str) -> dict[str, Any]:
    """Give the settings of the running server."""
    return {"url": url, "surface": False}


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Give the settings of the server over stdio and over HTTP."""
    settings: dict[str, Any] = request.getfixturevalue(f"over_{request.param}")
    return settings


@pytest.fixture
def is_gone() -> Callable[[int], bool]:
    """Check that a process has ended."""

    def gone(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    return gone
