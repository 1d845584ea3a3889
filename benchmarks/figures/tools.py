"""A tool call in process, over stdio and over HTTP.

The same tool, which takes no time, runs on a surface in process and on an MCP server of each kind. The answer to
``{"calls": n}`` has for each of them the median seconds of a call, as in its event. ``serve-stdio`` and ``serve-http``
run the MCP server alone.
"""

from __future__ import annotations

import asyncio
import socket
import statistics
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from benchmarks.board import PATIENCE, Memo, finish
from benchmarks.protocol import serve
from callboard import EventName, FunctionModel, ModelRequest, Settings, Supervisor, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
MODULE = "benchmarks.figures.tools"

remote = MCPServer("remote", log_level="ERROR")


@remote.tool(annotations=ToolAnnotations(idempotent_hint=True, destructive_hint=False, open_world_hint=False))
async def write(text: str) -> str:
    """Set the text."""
    return text


def measure(parameters: dict[str, Any]) -> dict[str, float]:
    """Measure all three."""
    calls = int(parameters["calls"])
    stdio = {"command": sys.executable, "args": ["-m", MODULE, "serve-stdio"], "cwd": ROOT}
    everywhere = {"trusted": True, "surface": False}
    with over_http() as url:
        return {
            "in_process": median_call("write", {}, calls),
            "stdio": median_call("remote.write", {"remote": {**stdio, **everywhere}}, calls),
            "http": median_call("remote.write", {"remote": {"url": url, **everywhere}}, calls),
        }


def median_call(name: str, mcp_servers: dict[str, Any], calls: int) -> float:
    """Run a task with a number of steps, one call each."""

    async def work(request: ModelRequest) -> dict[str, Any]:
        status = "CONTINUE" if request.step < calls else "FINISH"
        return {"Status": status, "Function": name, "Args": {"text": str(request.step)}}

    settings = Settings.load(
        mcp_servers=mcp_servers,
        policy=[{"verdict": "allow", "tool": "*"}],
        limits={"steps": calls, "repeats": calls},
    )
    with Supervisor.start(settings, models={"app": FunctionModel(work)}, servers=[Memo(1)]) as supervisor:
        handle = supervisor.submit(Task(request="write", target="memo:0"))
        finish([handle], calls)
        ended = (event for event in handle.events() if event.name is EventName.COMMAND_ENDED)
        return statistics.median(float(event.duration or 0.0) for event in ended)


@contextmanager
def over_http() -> Iterator[str]:
    """Run the server in a separate process, and give its address."""
    command = [sys.executable, "-m", MODULE, "serve-http"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:  # ourselves
        try:
            if process.stdout is None:
                raise RuntimeError
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait(PATIENCE)


async def serve_http() -> None:
    """Serve on a free port, and print the address."""
    server = uvicorn.Server(uvicorn.Config(remote.streamable_http_app(), log_level="error"))
    # with any other protocol number asyncio leaves Nagle's algorithm on, and each answer waits for 40 ms
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # an early client waits until the server serves
        print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
        await server.serve(sockets=[listening])


def main() -> None:
    """Measure, or run the server."""
    match sys.argv[1:]:
        case ["serve-stdio"]:
            remote.run()
        case ["serve-http"]:
            asyncio.run(serve_http())
        case _:
            serve(measure)


if __name__ == "__main__":
    main()
