"""Ended tasks leave nothing that only the garbage collector can free."""

from __future__ import annotations

import collections
import gc
from contextlib import contextmanager

import pytest

from callboard import Outcome, Task
from support import FINISH, PATIENCE, append

ASSIGN_WINDOW = {"Status": "ASSIGN", "ControlText": "memo:one", "Current Sub-Task": "append"}
TASKS = 10


@contextmanager
def in_cycles():
    """Count the objects of this package that are dropped meanwhile, but kept by reference cycles; by class."""
    found: collections.Counter[str] = collections.Counter()
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kinds = [type(each) for each in gc.garbage]
        found.update(kind.__qualname__ for kind in kinds if kind.__module__.startswith("callboard"))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("kept", [False, True])
def test_ended_tasks_leave_no_reference_cycles(start, tmp_path, kept):
    journal = {"path": tmp_path / "journal.db"} if kept else {}
    app = [append("a"), append("b", "FINISH")]
    supervisor = start(host=[ASSIGN_WINDOW, FINISH], app=app, limits={"sessions": 1}, journal=journal)

    def finish():
        assert supervisor.submit(Task(request="x")).result(PATIENCE).outcome is Outcome.FINISHED

    finish()  # objects made once: schemas, statements
    for _ in range(2):  # a supervisor of an earlier test may be dropped meanwhile, but only once
        with in_cycles() as found:
            for _ in range(TASKS):
                finish()
        if not found:
            break
    assert found == {}
