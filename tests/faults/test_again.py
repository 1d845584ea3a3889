"""What may be repeated is done again after a crash; nobody is asked about it once more, and it comes to the same."""

from __future__ import annotations

import pytest
from openpyxl import Workbook, load_workbook

from callboard import Task
from callboard.messages import JournalError
from callboard.testing import Faults, disk_full

DAY = {"date": "2024-05-31"}
CALLS = {
    "write_range": {"cell": "B2", "values": [["text", 1.5, None], [True, DAY, "=A1"]]},
    "set_formula": {"cells": "B2:C3", "formula": "=SUM($A$1:A1)"},
}


@pytest.mark.parametrize("tool", CALLS)
def test_what_stands_in_cells_because_of_the_same_call_before_a_crash_is_not_overwritten_by_it(start, tmp_path, tool):
    Workbook().save(tmp_path / "book.xlsx")
    given = {
        "app": lambda request: (
            {"Status": "FINISH"}
            if request.memory
            else {"Status": "CONTINUE", "Function": tool, "Args": {**CALLS[tool], "sheet": "Sheet"}}
        ),
        "servers": [],
        "documents": {"workspace": tmp_path},
        "journal": {"path": tmp_path / "journal.db"},
    }
    with Faults() as faults:
        faults.before("command_result", disk_full)
        broken = start(**given)
        with pytest.raises(JournalError):
            broken.submit(Task(id="t", request="do it", target="book.xlsx")).result(10)
        broken.stop()
        assert faults.passed["after", "deed"] == 1
        supervisor = start(**given)
        assert supervisor.handle("t").result(10).ok
        assert faults.passed["after", "deed"] == 2
        assert faults.passed["after", "approval_request"] == 0
    assert load_workbook(tmp_path / "book.xlsx")["Sheet"]["B2"].value in {"text", "=SUM($A$1:A1)"}
