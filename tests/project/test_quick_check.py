"""`.ci/quick` knows the tests of each module that is shipped."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import time
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

import forks
from support import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "quick"
OUTPUT = """\
tests/a/test_one.py::test_x
[gw0] [ 10%] PASSED tests/a/test_one.py::test_x
[gw1] [ 20%] PASSED tests/a/test_two.py::test_x
[gw1] [ 30%] SKIPPED tests/a/test_three.py::test_x
"""
"""The output of pytest with two workers, which names a test when it begins and when it has ended."""


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
        ("actors/processing/_recover.py", "processing/test_recover.py"),
        ("config/_policy.py", "processing/test_permitted_actions.py"),
        ("surfaces/desktop/_desktop.py", "surfaces/desktop/test_desktop.py"),
        ("tests/helpers/ssh_server.py", "faults/test_shell_kills.py"),
        ("tests/conftest.py", "actors/test_rounds.py"),
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


def test_files_with_tests_that_may_not_have_run_are_listed(quick, capsys):
    quick.report_unfinished(OUTPUT, [f"tests/a/test_{name}.py" for name in ("one", "two", "three", "four")])
    assert capsys.readouterr().out.splitlines() == [
        "2 tests passed. Time limit of 59 s reached.",
        "Tests of these files may not have run:",
        "  tests/a/test_one.py",
        "  tests/a/test_three.py",
        "  tests/a/test_four.py",
    ]


def test_an_interrupted_check_ends_its_tests(tmp_path):
    (tmp_path / "test_endless.py").write_text(
        "import os, pathlib, time\n"
        "def test_endless():\n"
        f"    pathlib.Path({str(tmp_path)!r}, 'process').write_text(str(os.getpid()))\n"
        "    time.sleep(600)\n",
        encoding="utf-8",
    )
    code = f"import runpy; runpy.run_path({str(SCRIPT)!r})['run']([{str(tmp_path / 'test_endless.py')!r}], 600)"
    with forks.Program([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as check:
        deadline = time.monotonic() + PATIENCE
        while not (tmp_path / "process").exists() or not (tmp_path / "process").read_text(encoding="utf-8"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        check.send_signal(signal.SIGINT)
        check.wait(PATIENCE)
    process = int((tmp_path / "process").read_text(encoding="utf-8"))
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
