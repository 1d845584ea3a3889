"""One task of eight independent subtasks, at several widths.

The host assigns all of them in one answer. A subtask is one decision, which takes `wait` seconds, and one action. The
answer to ``{"width": n, "wait": s, "runs": m}`` has the ``seconds`` of a task that waits, and the CPU milliseconds of a
subtask, ``cpu_ms``, over tasks that do not.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.board import Memo, finish
from benchmarks.fan_out import SUBTASKS, measured
from benchmarks.protocol import serve
from callboard import FunctionModel, ModelRequest, Settings, Supervisor, Task


class Models:
    """The models of the host and of the applications' agents."""

    def __init__(self) -> None:
        self.wait = 0.0

    async def plan(self, request: ModelRequest) -> dict[str, Any]:
        """Decide for a HostAgent: assign all subtasks, then finish."""
        if request.subtasks:
            return {"Status": "FINISH"}
        subtasks = [{"Current Sub-Task": "write", "ControlText": f"memo:{number}"} for number in range(SUBTASKS)]
        return {"Status": "ASSIGN", "Sub-Tasks": subtasks}

    async def work(self, _request: ModelRequest) -> dict[str, Any]:
        """Decide for an AppAgent: write and finish."""
        if self.wait:
            await asyncio.sleep(self.wait)
        return {"Status": "FINISH", "Function": "write", "Args": {"text": "done"}}


def measure(parameters: dict[str, Any]) -> dict[str, float]:
    """Run tasks at one width, with a journal and a log."""
    models = Models()
    with TemporaryDirectory() as folder:
        settings = Settings.load(
            log={"file": Path(folder) / "events.log"},
            journal={"path": Path(folder) / "journal.db", "durability": "process"},
            limits={"parallel_subtasks": parameters["width"]},
        )
        agents = {"host": FunctionModel(models.plan), "app": FunctionModel(models.work)}
        with Supervisor.start(settings, models=agents, servers=[Memo(SUBTASKS)]) as supervisor:

            def run(wait: float) -> None:
                models.wait = wait
                finish([supervisor.submit(Task(request="write all"))], decisions=SUBTASKS + 2)

            return measured(run, parameters)


if __name__ == "__main__":
    serve(measure)
