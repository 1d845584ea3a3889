"""Programs that are killed and restarted, two at a time."""

from __future__ import annotations

import concurrent.futures
import importlib
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from openpyxl import Workbook


def beside(name: str) -> ModuleType:
    """Load a file of this folder, which is not a package."""
    with mock.patch.object(sys, "path", [str(Path(__file__).parent), *sys.path]):
        return importlib.import_module(name)


script, world, checker, program = map(beside, ("script", "world", "checker", "program"))

AT_ONCE = 3
MOST_LIVES = 12
SHORT_CAMPAIGN = 6

FIGURES: pytest.StashKey[dict[str, Any]] = pytest.StashKey()

KILLED = -9

Life = dict[str, Any]
"""The end of a life, by one of these keys, or none:

- ``kills``: places as (when, kind, nth), with optional seconds after the place;
- ``kill_after`` or ``stop_after``: seconds;
- ``file_size``: the maximum size of a file.

``then`` changes the folder afterwards.
"""


class Nursery:
    """A process that forks programs."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, program.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("CALLBOARD_")},
        )

    def live(self, **order: Any) -> int:
        """Run a program once, and return its status (a signal is negative)."""
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Trials:
    """A runner of programs through their lives, two at a time."""

    def __init__(self, root: Callable[[str], Path]) -> None:
        self._root = root
        self._documents = root("documents") / "workspace"
        world.prepare(self._documents)
        self._free: queue.SimpleQueue[Nursery] = queue.SimpleQueue()
        self._nurseries = [Nursery() for _ in range(AT_ONCE)]
        for nursery in self._nurseries:
            self._free.put(nursery)
        self._pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        self._undisturbed: dict[tuple[str, ...], Path] = {}
        self._one_by_one: dict[tuple[str, ...], threading.Lock] = defaultdict(threading.Lock)

    def begin(self, name: str, lives: Sequence[Life], **order: Any) -> concurrent.futures.Future[Any]:
        """Start a trial in a folder; the future gives its figures."""
        return self._pool.submit(self._try, self._root(name), lives, order)

    def together(self, trials: Sequence[Sequence[Life]], **order: Any) -> Iterator[Any]:
        """Run trials, and return the figures of each."""
        begun = [self.begin("killed", lives, **order) for lives in trials]
        return (trial.result() for trial in begun)

    def _try(self, folder: Path, lives: Sequence[Life], order: dict[str, Any]) -> Any:
        without = checker.Without.of(self._without(order))
        shutil.copytree(self._documents, folder / "workspace")
        known: dict[int, Any] = {}
        forgotten: set[str] = set()
        kills = full = life = 0
        nursery = self._free.get()
        try:
            status = -1
            while status:
                ends = dict(lives[life]) if life < len(lives) else {}
                then = ends.pop("then", None)
                life += 1
                known[life] = checker.answered(folder)
                status = nursery.live(folder=str(folder), life=life, **ends, **order)
                kills += status == KILLED
                full += status == program.FULL
                forgotten.update(checker.forgotten(folder))
                if status == program.BROKEN or life >= MOST_LIVES:
                    break
                if status and then is not None:
                    then(folder)
        finally:
            self._free.put(nursery)
        if status:
            figures = checker.Figures(problems=[f"life {life} ended with {status}: {_said(folder)}"])
        else:
            figures = checker.check(folder, order.get("tasks", script.ALL), known, without)
        figures.kills, figures.full, figures.lives = kills, full, life
        figures.lost += len(forgotten)
        figures.problems += [f"{task} was accepted, and then the journal did not know it" for task in forgotten]
        return figures

    def passed(self, **order: Any) -> dict[tuple[str, str], int]:
        """Count the places that an undisturbed life passes."""
        places = json.loads((self._without(order) / "passed-1.json").read_text(encoding="utf-8"))
        return {(when, kind): count for when, kind, count in places}

    def _without(self, order: dict[str, Any]) -> Path:
        """Give the folder of an undisturbed life."""
        names = tuple(order.get("tasks", script.ALL))
        with self._one_by_one[names]:
            if names not in self._undisturbed:
                folder = self._root("undisturbed")
                shutil.copytree(self._documents, folder / "workspace")
                nursery = self._free.get()
                status = nursery.live(folder=str(folder), life=1, tasks=names, limits=order.get("limits", {}))
                self._free.put(nursery)
                assert status == program.DONE, _said(folder)
                figures = checker.check(folder, names, {1: set()}, checker.Without.of(folder))
                assert figures.problems == []
                assert (figures.repeated, figures.again, figures.done, figures.not_done) == (0, 0, 0, 0)
                self._undisturbed[names] = folder
        return self._undisturbed[names]

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)
        for nursery in self._nurseries:
            nursery.close()


def _said(folder: Path) -> str:
    failures = folder / "failures.txt"
    return failures.read_text(encoding="utf-8") if failures.exists() else "it was killed each time"


@pytest.fixture(scope="session")
def trials(tmp_path_factory) -> Iterator[Trials]:
    """Start the processes that fork programs."""
    running = Trials(tmp_path_factory.mktemp)
    yield running
    running.close()


@pytest.fixture(params=["short", pytest.param("long", marks=(pytest.mark.slow, pytest.mark.timeout(7200)))])
def kills(request) -> int:
    """Give a campaign's number of kills: few, or ``--kills`` if slow."""
    return SHORT_CAMPAIGN if request.param == "short" else int(request.config.getoption("kills"))


@pytest.fixture
def report(request) -> Callable[[str, Any], None]:
    """Add figures to the report at the end of the tests."""
    found = request.config.stash.setdefault(FIGURES, {})

    def add(name: str, figures: Any) -> None:
        found.setdefault(name, checker.Figures()).add(figures)

    return add


def pytest_terminal_summary(terminalreporter, config) -> None:
    """Print the figures."""
    found = config.stash.get(FIGURES, {})
    if found:
        terminalreporter.section("kill -9")
        for name, figures in found.items():
            terminalreporter.write_line(f"{name}: {figures}")


@pytest.fixture
def book(tmp_path):
    """A workbook with one cell that says "old"."""
    path = tmp_path / "book.xlsx"
    workbook = Workbook()
    workbook.active["A1"] = "old"
    workbook.save(path)
    return path
