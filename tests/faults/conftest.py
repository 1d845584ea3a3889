"""Programs that are killed and restarted, some at a time."""

from __future__ import annotations

import concurrent.futures
import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from openpyxl import Workbook

import forks


def beside(name: str) -> ModuleType:
    """Load a file of this folder, which is not a package."""
    with mock.patch.object(sys, "path", [str(Path(__file__).parent), *sys.path]):
        return importlib.import_module(name)


script, world, checker, program = map(beside, ("script", "world", "checker", "program"))

PROGRAM = "import program; program.main()"
AT_ONCE = 3
WAITING_AT_ONCE = 8
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


Undisturbed = tuple[Path, Any]
"""The folder of a program that was not killed, and what the checker found in it."""


class Trials:
    """A runner of programs through their lives, some at a time."""

    def __init__(self, root: Callable[[str], Path]) -> None:
        self._root = root
        place = root("documents")
        self._documents, self._template = place / "workspace", place / "template.docx"
        world.make_template(self._template)
        world.prepare(self._documents, self._template)
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("CALLBOARD_")}
        self._pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        self._waiting = concurrent.futures.ThreadPoolExecutor(WAITING_AT_ONCE)
        self._undisturbed: dict[tuple[str, ...], concurrent.futures.Future[Undisturbed]] = {}

    def begin(self, name: str, lives: Sequence[Life], **order: Any) -> concurrent.futures.Future[Any]:
        """Start a trial in a folder; the future gives its figures."""
        undisturbed = self._without(order)
        return self._pool_of(order).submit(self._try, self._root(name), lives, order, undisturbed)

    def _pool_of(self, order: dict[str, Any]) -> concurrent.futures.ThreadPoolExecutor:
        """Choose the pool of a trial.

        Trials with time limits mostly wait, so all of them run at once.
        """
        return self._waiting if order.get("limits") else self._pool

    def together(self, trials: Sequence[Sequence[Life]], **order: Any) -> Iterator[Any]:
        """Run trials, and return the figures of each."""
        begun = [self.begin("killed", lives, **order) for lives in trials]
        return (trial.result() for trial in begun)

    def _live(self, folder: Path, *, kill_after: float | None = None, **order: Any) -> int:
        """Run a program once, and return its status (a signal is negative)."""
        order |= {"folder": str(folder), "template": str(self._template)}
        command = [sys.executable, "-c", PROGRAM, json.dumps(order)]
        with (
            (folder / "failures.txt").open("ab") as failures,
            forks.Program(command, cwd=Path(__file__).parent, env=self._environment, stderr=failures) as running,
        ):
            try:
                return running.wait(kill_after)
            except subprocess.TimeoutExpired:
                running.kill()
                return running.wait()

    def _try(
        self,
        folder: Path,
        lives: Sequence[Life],
        order: dict[str, Any],
        undisturbed: concurrent.futures.Future[Undisturbed],
    ) -> Any:
        shutil.copytree(self._documents, folder / "workspace")
        known: dict[int, Any] = {}
        forgotten: set[str] = set()
        kills = full = life = 0
        status = -1
        while status:
            ends = dict(lives[life]) if life < len(lives) else {}
            then = ends.pop("then", None)
            life += 1
            known[life] = checker.answered(folder)
            status = self._live(folder, life=life, **ends, **order)
            kills += status == KILLED
            full += status == program.FULL
            forgotten.update(checker.forgotten(folder))
            if status == program.BROKEN or life >= MOST_LIVES:
                break
            if status and then is not None:
                then(folder)
        if status:
            figures = checker.Figures(problems=[f"life {life} ended with {status}: {_said(folder)}"])
        else:
            _, without = undisturbed.result()
            figures = checker.check(folder, order.get("tasks", script.ALL), known, without)
        figures.kills, figures.full, figures.lives = kills, full, life
        figures.lost += len(forgotten)
        figures.problems += [f"{task} was accepted, and then the journal did not know it" for task in forgotten]
        return figures

    def passed(self, **order: Any) -> dict[tuple[str, str], int]:
        """Count the places that an undisturbed life passes."""
        folder, _ = self._without(order).result()
        places = json.loads((folder / "passed-1.json").read_text(encoding="utf-8"))
        return {(when, kind): count for when, kind, count in places}

    def _without(self, order: dict[str, Any]) -> concurrent.futures.Future[Undisturbed]:
        """Begin an undisturbed life, once for the same tasks."""
        names = tuple(order.get("tasks", script.ALL))
        if names not in self._undisturbed:
            limits = order.get("limits", {})
            self._undisturbed[names] = self._pool_of(order).submit(self._live_undisturbed, names, limits)
        return self._undisturbed[names]

    def _live_undisturbed(self, names: tuple[str, ...], limits: dict[str, Any]) -> Undisturbed:
        folder = self._root("undisturbed")
        shutil.copytree(self._documents, folder / "workspace")
        status = self._live(folder, life=1, tasks=names, limits=limits)
        assert status == program.DONE, _said(folder)
        without = checker.Without.of(folder)
        figures = checker.check(folder, names, {1: set()}, without)
        assert figures.problems == []
        assert (figures.repeated, figures.again, figures.done, figures.not_done) == (0, 0, 0, 0)
        return folder, without

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)
        self._waiting.shutdown(cancel_futures=True)


def _said(folder: Path) -> str:
    failures = folder / "failures.txt"
    return failures.read_text(encoding="utf-8") or "it was killed each time"


@pytest.fixture(scope="session")
def trials(tmp_path_factory) -> Iterator[Trials]:
    """Start the threads that run programs."""
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
