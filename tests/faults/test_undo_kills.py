"""Undo after a kill in the middle of a change."""

from __future__ import annotations

import json
import os
import signal
import sys

import openpyxl
import pytest

import forks
from support import PATIENCE, command_line

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="programs are killed with SIGKILL")

PROGRAM = """
import json, sys
from pathlib import Path
from callboard import FunctionModel, Settings, Supervisor, Task
from callboard.testing import Faults, kill_process

folder, places = Path(sys.argv[1]), json.loads(sys.argv[2])

def write(value):
    arguments = {"cell": "A1", "values": [[value]]}
    return {"Status": "CONTINUE", "Function": "write_range", "Args": arguments}

def model(request):
    done = [result.value for record in request.memory for result in record.results]
    return {"Status": "FINISH"} if len(done) == 2 else write(f"new {len(done)}")

settings = Settings.load(documents={"workspace": folder / "workspace"}, journal={"path": folder / "journal.db"})
with Faults() as faults:
    for when, kind, nth in places:
        getattr(faults, when)(kind, kill_process, nth=nth)
    with Supervisor.start(settings, models={"app": FunctionModel(model)}) as supervisor:
        task = Task(id="t", request="x", target="book.xlsx", may_change=["book.xlsx"])
        assert supervisor.submit(task).result(60).ok
"""

PLACES = [
    ("before", "foreseen", 1),  # the version is kept, and nothing names it yet
    ("after", "foreseen", 1),  # it is named, and the file is as before
    ("before", "effect", 1),
    ("after", "effect", 1),  # the file is changed, and the journal has no result
    ("after", "command_result", 1),
    ("after", "foreseen", 2),
    ("after", "effect", 2),
    ("before", "task_result", 1),
]
FIRST = PLACES[:3]
"""The places at which nothing was changed yet."""


@pytest.fixture
def work(tmp_path, book):
    """Run a program on the workbook, and kill it at places.

    Returns its ending.
    """
    (tmp_path / "workspace").mkdir()
    book.rename(tmp_path / "workspace" / "book.xlsx")

    def run(*places):
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), json.dumps(places)]
        return forks.run(command, timeout=2 * PATIENCE).returncode

    return run


def cell(path):
    return openpyxl.load_workbook(path).active["A1"].value


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_undo_after_a_kill_brings_back_the_version_before(work, tmp_path, place):
    path, journal = tmp_path / "workspace" / "book.xlsx", tmp_path / "journal.db"
    before = path.read_bytes()
    assert work(place) == -signal.SIGKILL
    assert [each.read_bytes() for each in journal.parent.glob("journal.db.versions/*/*")] == [before]
    told = command_line("undo", "t", journal)
    assert path.read_bytes() == before
    if place == PLACES[0]:
        assert "there is nothing to bring back" in told.stderr
    else:
        assert ("brought back" if place not in FIRST else "unchanged") in told.stdout
        assert "t is not over" in told.stderr
    assert "unchanged" in command_line("undo", "t", journal).stdout or place == PLACES[0]
    assert path.read_bytes() == before


def test_task_that_continues_after_an_undo_looks_again(work, tmp_path):
    path, journal = tmp_path / "workspace" / "book.xlsx", tmp_path / "journal.db"
    before = path.read_bytes()
    assert work(("after", "effect", 1)) == -signal.SIGKILL
    command_line("undo", "t", journal)
    assert work() == 0
    assert cell(path) == "new 1"
    assert "brought back" in command_line("undo", "t", journal).stdout
    assert path.read_bytes() == before


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_task_that_continues_after_a_kill_keeps_the_first_version(work, tmp_path, place):
    path, journal = tmp_path / "workspace" / "book.xlsx", tmp_path / "journal.db"
    before = path.read_bytes()
    assert work(place) == -signal.SIGKILL
    assert work() == 0
    assert cell(path) == "new 1"
    assert [each.read_bytes() for each in journal.parent.glob("journal.db.versions/*/*")] == [before]
    assert "brought back" in command_line("undo", "t", journal).stdout
    assert path.read_bytes() == before
