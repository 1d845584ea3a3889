"""A dispatcher on a server in memory, and real MCP servers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest

from callboard.actors.commands import Dispatcher, McpSession, Secrets
from callboard.actors.runtime import EventStream, Lanes, Lease, SystemClock, VirtualClock
from callboard.messages import Command, CommandResult, Target
from callboard.testing import MemoryServer
from support import PATIENCE

NOTES = '''
"""A third-party MCP server, as an operator would configure it."""

import itertools
import json
import os
import signal
import socket
import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("notes", title="A shelf of notes", instructions="Put notes by key.", log_level="ERROR")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def put(key: str) -> dict[str, object]:
    """Put a note."""
    return {"key": key, "success": True}


@server.tool()
def lock() -> str:
    """Fail with a text."""
    raise ToolError("the shelf is locked")


@server.tool()
def refuse() -> dict[str, object]:
    """Report a failure with a success flag."""
    return {"success": False, "error": "no paper"}


@server.tool(structured_output=False)
def refuse_in_text() -> str:
    """Report a failure with a success flag, as text only."""
    return json.dumps({"success": False, "error": "no ink"})


@server.tool(structured_output=False)
def words() -> str:
    """Say something in words."""
    return "just words"


turns = itertools.count(1)


@server.tool()
def turn() -> int:
    """Answer otherwise each time."""
    return next(turns)


@server.tool()
async def count(steps: int, total: float | None, ctx: Context) -> int:
    """Tell how far it is."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, total, None)
    return steps


@server.tool()
def pid() -> int:
    """Say which process this is."""
    return os.getpid()


@server.tool()
def environment(name: str) -> str:
    """Read a variable."""
    return os.environ.get(name, "")


@server.tool()
def folder() -> str:
    """Say where it works."""
    return os.getcwd()


@server.tool()
def header(name: str, ctx: Context) -> str:
    """Read a header of the request."""
    return ctx.request_context.request.headers.get(name, "")


@server.tool()
async def hang(port: int) -> str:
    """Say on a socket that it began, and never end."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(b"begun\\n")
        try:
            await anyio.sleep_forever()
        finally:
            line.sendall(b"left\\n")


@server.tool(structured_output=False)
def flood(size: int) -> str:
    """Answer with a text of some length."""
    return "x" * size


@server.tool()
def freeze() -> None:
    """Stop the whole process."""
    os.kill(os.getpid(), signal.SIGSTOP)


@server.tool()
def leak(name: str) -> str:
    """Fail with a variable in the text."""
    raise ToolError("the key " + os.environ[name] + " is wrong")


@server.tool()
def leave() -> None:
    """End the process in the middle of a call."""
    os._exit(3)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def faint() -> None:
    """End the process in the middle of a call that changes nothing."""
    os._exit(3)


if "NOTES_PID" in os.environ:
    with open(os.environ["NOTES_PID"], "w") as file:
        file.write(str(os.getpid()))
if sys.argv[1:] == ["http"]:
    import uvicorn

    listening = socket.create_server(("127.0.0.1", int(os.environ.get("NOTES_PORT", "0"))))
    print(listening.getsockname()[1], flush=True)
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])
else:
    server.run("stdio")
'''


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
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the program of a third-party server."""
    program = tmp_path_factory.mktemp("notes") / "notes.py"
    program.write_text(NOTES, encoding="utf-8")
    return program


@pytest.fixture
def over_stdio(notes: Path) -> dict[str, Any]:
    """Give the settings of the server, started as a program."""
    return {"command": sys.executable, "args": [str(notes)], "surface": False}


@pytest.fixture(scope="session")
def url(notes: Path) -> Iterator[str]:
    """Run the server on a free port and give its address."""
    with subprocess.Popen([sys.executable, str(notes), "http"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
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
