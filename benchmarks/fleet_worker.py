"""A machine of a fleet, as a process.

    python -m benchmarks.fleet_worker URL NAME FOLDER

It does the work of other machines until its standard input ends.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from benchmarks.board import Memo
from callboard import FunctionModel, ModelRequest, Settings, Supervisor

WINDOWS = 8


async def think(request: ModelRequest) -> dict[str, Any]:
    """Decide after the seconds that the request says: write, and finish."""
    await asyncio.sleep(float(request.request))
    return {"Status": "FINISH", "Function": "write", "Args": {"text": request.request}}


def started(url: str, name: str, folder: Path) -> Supervisor:
    """Start a supervisor with a journal and a log."""
    settings = Settings.load(
        log={"file": folder / f"{name}.log"},
        journal={"path": folder / f"{name}.db", "durability": "process"},
        fleet={"url": url, "name": name},
    )
    return Supervisor.start(settings, models={"app": FunctionModel(think)}, servers=[Memo(WINDOWS)])


def main(url: str, name: str, folder: str) -> None:
    """Serve."""
    with started(url, name, Path(folder)) as supervisor:
        supervisor.serve()
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
