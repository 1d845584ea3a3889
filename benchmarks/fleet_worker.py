"""A machine of a fleet, as a process.

    python -m benchmarks.fleet_worker URL NAME FOLDER

It does the work of other machines until its standard input ends.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.board import Memo
from callboard import FunctionModel, ModelRequest, Settings, Supervisor, tool
from callboard.messages import AgentKind, Effect
from callboard.testing import MemoryServer

WINDOWS = 8
SHELL = "yard"
CPU_SECONDS = 0.05


class Desk(Memo):
    """Windows, and a shell, which any machine has."""

    def __init__(self) -> None:
        super().__init__(WINDOWS)
        self._targets += (MemoryServer.shell(SHELL, self.name),)
        self._texts[SHELL] = ""

    @tool(effect=Effect.IDEMPOTENT, agents={AgentKind.APP, AgentKind.LINUX})
    async def write(self, target: str, text: str) -> str:
        """Set the text."""
        return await self.written(target, text)

    @tool(effect=Effect.IDEMPOTENT)
    def compute(self, seconds: float) -> str:
        """Use the processor for some seconds of its time."""
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass
        return "computed"


async def think(request: ModelRequest) -> dict[str, Any]:
    """Decide after the seconds that the request says: write, and finish."""
    await asyncio.sleep(float(request.request))
    return {"Status": "FINISH", "Function": "write", "Args": {"text": request.request}}


async def compute(request: ModelRequest) -> dict[str, Any]:
    """Use the processor for the seconds of the request, and finish."""
    return {"Status": "FINISH", "Function": "compute", "Args": {"seconds": float(request.request)}}


def kept(folder: Path, name: str, fleet: dict[str, Any] | None = None) -> Settings:
    """Give settings with a journal and a log."""
    journal = {"path": folder / f"{name}.db", "durability": "process"}
    return Settings.load(log={"file": folder / f"{name}.log"}, journal=journal, fleet=fleet or {})


def started(url: str, name: str, folder: Path) -> Supervisor:
    """Start a supervisor with a journal and a log."""
    models = {"app": FunctionModel(think), "linux": FunctionModel(think)}
    return Supervisor.start(kept(folder, name, {"url": url, "name": name}), models=models, servers=[Desk()])


def parts() -> dict[str, Any]:
    """Give the surface and the model of a machine that computes."""
    return {"models": {"app": FunctionModel(compute)}, "servers": [Desk()]}


def main(url: str, name: str, folder: str) -> None:
    """Serve."""
    with started(url, name, Path(folder)) as supervisor:
        supervisor.serve()
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
