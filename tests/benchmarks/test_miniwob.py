"""MiniWoB++: some of its pages, solved through a supervisor; and the table of a run."""

from __future__ import annotations

import importlib.util
import os

import pytest

from benchmarks.miniwob.pages import MISSING, page_names, pages_folder
from benchmarks.miniwob.report import REASONS, miniwob_lines
from benchmarks.miniwob.run import SOLVERS, attempts
from callboard.surfaces.browser import BrowserSurface

SOME = ("click-test", "click-collapsible", "choose-list", "use-slider", "read-table", "drag-items", "text-editor")
"""Pages of each kind: controls, lists, keys, a table, points, dragging, selected text."""


@pytest.fixture
def pages() -> None:
    missing = [need.told for need in BrowserSurface.needs({"executable": "chromium"}) if not need.met]
    if pages_folder() is None and not os.environ.get("REQUIRE_MINIWOB"):
        pytest.skip(MISSING)
    if missing and not os.environ.get("REQUIRE_BROWSER"):
        pytest.skip("; ".join(missing))


def test_some_pages_are_solved_by_controls_and_points(pages):
    runs = list(attempts(SOME, [1]))
    assert [(run.name, run.reward, run.reason) for run in runs] == [(name, 1, "") for name in SOME]
    assert {run.by for run in runs} == {"app", "operator"}


def test_every_page_has_a_solver_or_a_reason(pages):
    names = set(page_names())
    assert len(names) == 130
    assert SOLVERS.keys() <= names
    assert names - SOLVERS.keys() <= REASONS.keys() <= names


def test_missing_pages_are_reported_with_the_remedy(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="pip install --no-deps miniwob"):
        page_names()


def test_the_table_counts_solved_pages_and_gives_reasons():
    solved = {"solved": 2, "seeds": 2, "by": "app", "steps": [2, 4], "calls": [3, 5], "times": [1.0, 2.0]}
    answers = {
        "miniwob/click-test": [solved],
        "miniwob/drag-box": [{**solved, "by": "operator"}],
        "miniwob/draw-circle": [{"solved": 0, "seeds": 2}],
        "miniwob/click-pie": [{**solved, "solved": 1, "reward": -1.0}],
    }
    lines = list(miniwob_lines(answers))
    assert lines[2:5] == [
        "| an AppAgent | 1 | 3 | 4 | 1.5 |",
        "| an operator | 1 | 3 | 4 | 1.5 |",
        "| both | 2 of 4 | 3 | 4 | 1.5 |",
    ]
    assert f"| `draw-circle` | 0 of 2 |  | {REASONS['draw-circle']} |" in lines
    assert list(miniwob_lines({})) == []
