"""Programs that are killed and started again, two at a time, and what came of it."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import json
import os
import queue
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def beside(name: str) -> ModuleType:
    """Load a file of this folder; the test tree is no package."""
    spec = importlib.util.spec_from_file_location(f"callboard_faults_{name}", Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


program, checker = beside("program"), beside("checker")

AT_ONCE = 2
MOST_LIVES = 12
EXPECTED = {mark for script in program.SCRIPTS.values() for mark in json.dumps(script).split('"') if "#" in mark}

FIGURES: pytest.StashKey[dict[str, Any]] = pytest.StashKey()

KILLED = -9

Life = dict[str, Any]
"""How a life ends: ``kills``, places as (when, kind, nth), ``kill_after`` or ``stop_after``, in seconds, or nothing of
these; and with ``then``, what is done to the folder after it."""


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
        """Let a program live once; returns its status, or the signal that killed it, negative."""
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Trials:
    """Runs programs through their lives, two at a time."""

    def __init__(self, root: Callable[[str], Path]) -> None:
        self._root = root
        self._free: queue.SimpleQueue[Nursery] = queue.SimpleQueue()
        self._nurseries = [Nursery() for _ in range(AT_ONCE)]
        for nursery in self._nurseries:
            self._free.put(nursery)
        self._pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)

    def begin(self, name: str, lives: Sequence[Life], **order: Any) -> concurrent.futures.Future[Any]:
        """Begin a trial: a folder, and a program that lives there until all is done; gives its figures."""
        return self._pool.submit(self._try, self._root(name), lives, order)

    def together(self, trials: Sequence[Sequence[Life]], **order: Any) -> Iterator[Any]:
        """Run trials, and give the figures of each."""
        begun = [self.begin("killed", lives, **order) for lives in trials]
        return (trial.result() for trial in begun)

    def _try(self, folder: Path, lives: Sequence[Life], order: dict[str, Any]) -> Any:
        program.prepare(folder / "workspace")
        known: dict[int, Any] = {}
        forgotten: set[str] = set()
        kills = life = 0
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
                forgotten.update(checker.forgotten(folder))
                if status == program.BROKEN or life >= MOST_LIVES:
                    break
                if status and then is not None:
                    then(folder)
        finally:
            self._free.put(nursery)
        if status:
            failures = folder / "failures.txt"
            said = failures.read_text(encoding="utf-8") if failures.exists() else "it was killed each time"
            figures = checker.Figures(problems=[f"life {life} ended with {status}: {said}"])
        else:
            expected = {mark for mark in EXPECTED if mark.partition("#")[0] in order.get("tasks", program.TASKS)}
            figures = checker.check(folder, program.marks_in(folder / "workspace"), expected, known)
        figures.kills, figures.lives = kills, life
        figures.lost += len(forgotten)
        figures.problems += [f"{task} was accepted, and then the journal did not know it" for task in forgotten]
        return figures

    def passed(self, tasks: Sequence[str] | None = None) -> dict[tuple[str, str], int]:
        """Tell which places a life passes that nobody disturbs, and how often."""
        folder = self._root("undisturbed")
        figures = self._try(folder, (), {"tasks": tasks or list(program.TASKS)})
        assert figures.problems == []
        places = json.loads((folder / "passed-1.json").read_text(encoding="utf-8"))
        return {(when, kind): count for when, kind, count in places}

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)
        for nursery in self._nurseries:
            nursery.close()


@pytest.fixture(scope="session")
def trials(tmp_path_factory) -> Iterator[Trials]:
    """Start the processes that fork programs."""
    running = Trials(tmp_path_factory.mktemp)
    yield running
    running.close()


@pytest.fixture
def kills(request) -> int:
    """Tell how often programs are to be killed at random times: `--kills`."""
    return int(request.config.getoption("kills"))


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
