"""`.ci/quick` knows the tests of each module that is shipped."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "quick"


@pytest.fixture(scope="module")
def quick():
    loader = SourceFileLoader("quick", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("quick", loader))
    loader.exec_module(module)
    return module


def test_each_module_has_tests_of_its_own(quick):
    folders = [ROOT / name for name in ("actors", "config", "terminal", "examples", "messages")]
    modules = [*ROOT.glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))]
    found = {path: {test for test in quick.tests_of(path) if test.exists()} - {quick.ALWAYS} for path in modules}
    assert [path for path, tests in found.items() if not tests and path.name != "__init__.py"] == []


def test_every_place_that_it_names_is_there(quick):
    named = {name for names in quick.ELSEWHERE.values() for name in names} | set(quick.DOCUMENTS)
    assert [name for name in named if not (quick.TESTS / name).exists()] == []
    assert [name for name in quick.ELSEWHERE if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    ("changed", "first"),
    [
        ("actors/runtime/_lanes.py", "runtime/test_lanes.py"),
        ("actors/runtime/_budget.py", "runtime/test_budget.py"),
        ("supervisor.py", "supervisor/test_async.py"),
        ("tests/journal/test_lock.py", "journal/test_lock.py"),
        ("config/prompts/host.md", "config/test_prompts.py"),
        ("docs/models.md", "docs/test_docs.py"),
    ],
)
def test_the_nearest_tests_come_first(quick, changed, first):
    found = [test for test in quick.tests_of(ROOT / changed) if test.exists()]
    assert found[0] == quick.TESTS / first


def test_a_path_that_is_not_there_is_refused():
    command = [sys.executable, str(SCRIPT), "actors/nowhere.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"there is no {Path('actors/nowhere.py').resolve()}" in done.stderr
