"""callboard as a contender: the job on a supervisor.

Models and tools take no time. ``python -m benchmarks.board process`` runs one; `VARIANTS` lists all variants.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from benchmarks.protocol import STEPS, serve, timed
from callboard import FunctionModel, ModelRequest, Server, Settings, Supervisor, Task, tool
from callboard.messages import Effect, Look, Observation, Target, TargetKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from benchmarks.protocol import Go
    from callboard import TaskHandle
    from callboard.messages import Hazard

POOL = 10
"""Application agents that all tasks share."""
DECISIONS = 2 + STEPS
PATIENCE = 600.0


class Memo(Server):
    """Windows in memory, each with one text.

    Nothing changes after an action has ended, so one observation is enough.
    """

    name = "memo"
    settles = False
    blocks = False

    def __init__(self, windows: int, wait: float = 0.0) -> None:
        self._targets = tuple(_window(str(number)) for number in range(windows))
        self._texts = {target.id: "" for target in self._targets}
        self._wait = wait

    def targets(self) -> tuple[Target, ...]:
        """List the windows."""
        return self._targets

    def observe(self, target: Target, look: Look) -> Observation:
        """Show a window's text."""
        text = self._texts[target.id]
        return Observation(text=text, fingerprint=text or "empty")

    @tool(effect=Effect.IDEMPOTENT)
    async def write(self, target: str, text: str) -> str:
        """Set the window's text."""
        return await self.written(target, text)

    async def written(self, target: str, text: str) -> str:
        """Set it."""
        if self._wait:
            await asyncio.sleep(self._wait)
        self._texts[target] = text
        return text


class MemoOnce(Memo):
    """The same, with an action that needs an intent in the journal."""

    @tool(effect=Effect.ONCE)
    async def write(self, target: str, text: str) -> str:
        """Set the window's text."""
        return await self.written(target, text)


class MemoBlocks(Memo):
    """The same, but observations and effect queries run on the window's thread."""

    blocks = True

    def hazards(self, *_call: object) -> set[Hazard]:
        """Give no hazards; the benchmark measures the query itself."""
        return set()


def _window(number: str) -> Target:
    key = f"memo:{number}"
    return Target(
        id=key, name=key, kind=TargetKind.WINDOW, address=f"app/memo/{number}", server="memo", binds={"target": key}
    )


class Stub:
    """The models of both agents, which answer after an optional wait."""

    def __init__(self, wait: float = 0.0, steps: int = STEPS) -> None:
        self._wait = wait
        self._steps = steps

    async def plan(self, request: ModelRequest) -> dict[str, Any]:
        """Decide for a HostAgent: assign the subtask to its window, then finish."""
        if self._wait:
            await asyncio.sleep(self._wait)
        if request.subtasks:
            return {"Status": "FINISH"}
        return {"Status": "ASSIGN", "Current Sub-Task": "fill the field", "ControlLabel": request.task_request}

    async def work(self, request: ModelRequest) -> dict[str, Any]:
        """Decide for an AppAgent: write at each step, finish with the last."""
        if self._wait:
            await asyncio.sleep(self._wait)
        status = "CONTINUE" if request.step < self._steps else "FINISH"
        return {"Status": status, "Function": "write", "Args": {"text": str(request.step)}}

    def models(self) -> dict[str, FunctionModel]:
        """Give the models by kind of agent."""
        return {"host": FunctionModel(self.plan), "app": FunctionModel(self.work)}


@dataclass(frozen=True)
class Variant:
    """One way to run the tasks."""

    title: str
    durability: Literal["process", "full"] | None
    """Durability of the journal; None: a journal in memory, and no log."""
    own_windows: bool = False
    """Whether each task has its own window; otherwise all share `POOL` windows, and take turns."""
    wait: float = 0.0
    """Seconds that each model call and each tool call waits."""
    surface: type[Memo] = Memo

    def settings(self, folder: Path, windows: int = POOL) -> Settings:
        """Give the settings for a number of windows, whose agents are kept."""
        limits = {"idle_agents": max(POOL, windows)}
        if self.durability is None:
            return Settings.load(limits=limits)
        journal = {"path": folder / "journal.db", "durability": self.durability}
        return Settings.load(log={"file": folder / "events.log"}, journal=journal, limits=limits)


VARIANTS = {
    "process": Variant("callboard, journal `process`, log", "process"),
    "full": Variant("callboard, journal `full`, log", "full"),
    "off": Variant("callboard, no journal, no log", None),
    "blocks": Variant("callboard, `process`, log, a surface that may block", "process", surface=MemoBlocks),
    "once": Variant("callboard, `process`, log, actions with effect `once`", "process", surface=MemoOnce),
    "own": Variant("callboard, `process`, log, one window per task", "process", own_windows=True),
    "waits": Variant("callboard, 8 waits of 10 ms a task, a window a task", "process", own_windows=True, wait=0.01),
}


@contextmanager
def board(variant: Variant, size: int, folder: Path, steps: int = STEPS) -> Iterator[Supervisor]:
    """Start a supervisor for batches of a size, with its agents."""
    windows = size if variant.own_windows else min(size, POOL)
    settings, models = variant.settings(folder, windows), Stub(variant.wait, steps).models()
    surfaces = [variant.surface(windows, variant.wait)]
    with Supervisor.start(settings, models=models, servers=surfaces) as supervisor:
        yield supervisor


def tasks(count: int, windows: int) -> list[Task]:
    """Make tasks for the windows, in turn."""
    return [Task(request=f"memo:{number % windows}") for number in range(count)]


def finish(handles: Iterable[TaskHandle], decisions: int = DECISIONS) -> None:
    """Wait for tasks.

    Raises:
        RuntimeError: If a task did not finish, or took an unexpected path.
    """
    for handle in handles:
        result = handle.result(PATIENCE)
        if not result.ok or result.usage.model_calls != decisions:
            msg = f"the benchmark is broken: {result}"
            raise RuntimeError(msg)


@contextmanager
def prepare(variant: Variant, size: int) -> Iterator[Go]:
    """Prepare batches of a size."""
    with tempfile.TemporaryDirectory() as folder, board(variant, size, Path(folder)) as supervisor:
        windows = size if variant.own_windows else min(size, POOL)

        def go(batches: int) -> None:
            for _ in range(batches):
                finish(supervisor.submit_all(tasks(size, windows)))

        yield go


if __name__ == "__main__":
    serve(timed(partial(prepare, VARIANTS[sys.argv[1]])))
