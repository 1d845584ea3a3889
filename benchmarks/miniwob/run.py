"""Solve the pages through a supervisor, and count steps and calls."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.miniwob import by_controls, by_points
from benchmarks.miniwob.oracle import PageView
from benchmarks.miniwob.pages import LOCAL, Pages
from callboard import FunctionModel, Settings, Supervisor, Task
from callboard.surfaces.browser import BrowserSurface

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from callboard import ModelRequest

PATIENCE = 120.0
SOLVERS = {**by_controls.SOLVERS, **by_points.SOLVERS}


@dataclass(frozen=True)
class Attempt:
    """The end of one page."""

    name: str
    seed: int
    by: str
    """The kind of agent."""
    reward: float | None
    steps: int
    calls: int
    seconds: float
    reason: str

    @property
    def is_solved(self) -> bool:
        """True for the full reward."""
        return self.reward is not None and self.reward >= 1.0


class Oracles:
    """The models of three agents, for one page after the other."""

    def __init__(self, surface: BrowserSurface) -> None:
        self._surface = surface
        self.name = ""
        self.url = ""
        self.view = PageView(surface)

    def begin(self, name: str, url: str) -> None:
        """Begin with a page."""
        self.name, self.url, self.view = name, url, PageView(self._surface)

    def host(self, request: ModelRequest) -> dict[str, Any]:
        """Open the page, and assign it."""
        if request.memory and request.memory[-1].decision.status == "ASSIGN":
            return {"Status": "FINISH"}
        kind = "operator:" if self.name in by_points.SOLVERS else ""
        tabs = [target for target in request.observation.targets if target.id.startswith(f"{kind}tab-")]
        if not tabs:
            arguments = {"application": "browser", "arguments": {"address": self.url}}
            return {"Status": "CONTINUE", "Function": "open_in_browser", "Args": arguments}
        return {"Status": "ASSIGN", "ControlText": tabs[0].id, "Current Sub-Task": self.name}

    async def agent(self, request: ModelRequest) -> dict[str, Any]:
        """Answer for the agent of the page."""
        return await self.view.answer(request, SOLVERS[self.name])


def attempts(names: Sequence[str], seeds: Sequence[int]) -> Iterator[Attempt]:
    """Solve pages, one after the other."""
    surface = BrowserSurface("chromium", sandbox=os.geteuid() != 0, grace=1.0, network=LOCAL)
    oracles = Oracles(surface)
    models = {"host": FunctionModel(oracles.host), **dict.fromkeys(("app", "operator"), FunctionModel(oracles.agent))}
    with tempfile.TemporaryDirectory() as folder, Pages() as pages:
        settings = Settings.load(
            journal={"path": Path(folder, "journal.db")},
            limits={"steps": 1000, "repeats": 1000, "action_failures": 100},
            policy=[{"verdict": "allow"}],
        )
        with Supervisor.start(settings, models=models, servers=[surface]) as supervisor:
            for name in names:
                for seed in seeds:
                    yield _attempt(supervisor, oracles, name, seed, pages.url(name, seed))


def _attempt(supervisor: Supervisor, oracles: Oracles, name: str, seed: int, url: str) -> Attempt:
    oracles.begin(name, url)
    begin = time.monotonic()
    result = supervisor.submit(Task(request=name)).result(PATIENCE)
    view = oracles.view
    view.stop()
    by = "operator" if name in by_points.SOLVERS else "app"
    reason = view.reason or ("" if result.ok else f"{result.outcome.value}: {result.reason}")
    return Attempt(name, seed, by, view.reward, view.steps, view.calls, time.monotonic() - begin, reason)


def median(attempts: Sequence[Attempt], what: str) -> float:
    """Return the median of a number of solved pages."""
    return statistics.median(float(getattr(attempt, what)) for attempt in attempts if attempt.is_solved)
