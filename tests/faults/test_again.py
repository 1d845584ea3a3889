"""Repeatable actions are not repeated after a crash if their effect is visible, and no person is asked."""

from __future__ import annotations

import pytest
from docx import Document
from openpyxl import Workbook, load_workbook

from callboard import Task
from callboard.messages import JournalError
from callboard.testing import Faults, disk_full
from support import PATIENCE

DAY = {"date": "2024-05-31"}
CALLS = {
    "write_range": {"cell": "B2", "values": [["text", 1.5, None], [True, DAY, "=A1"]]},
    "set_formula": {"cells": "B2:C3", "formula": "=SUM($A$1:A1)"},
}


@pytest.fixture
def given(tmp_path):
    """Settings of a test: its folder, and a journal."""
    return {"servers": [], "documents": {"workspace": tmp_path}, "journal": {"path": tmp_path / "journal.db"}}


@pytest.mark.parametrize("tool", CALLS)
def test_a_call_repeated_on_the_cells_that_it_wrote_needs_no_approval(start, tmp_path, given, tool):
    Workbook().save(tmp_path / "book.xlsx")

    def app(request):
        again = {"Status": "CONTINUE", "Function": tool, "Args": {**CALLS[tool], "sheet": "Sheet"}}
        return {"Status": "FINISH"} if len(request.memory) > 1 else again

    with Faults() as faults:
        assert start(app=app, **given).submit(Task(request="do it", target="book.xlsx")).result(PATIENCE).ok
    assert (faults.passed["after", "effect"], faults.passed["after", "approval_request"]) == (2, 0)
    assert load_workbook(tmp_path / "book.xlsx")["Sheet"]["B2"].value in {"text", "=SUM($A$1:A1)"}


@pytest.mark.parametrize("tool", CALLS)
def test_cells_written_by_a_call_before_a_crash_are_not_written_again(start, tmp_path, given, tool):
    Workbook().save(tmp_path / "book.xlsx")

    def app(request):
        call = {"Status": "CONTINUE", "Function": tool, "Args": {**CALLS[tool], "sheet": "Sheet"}}
        return {"Status": "FINISH"} if request.memory else call

    with Faults() as faults:
        faults.before("command_result", disk_full)
        broken = start(app=app, **given)
        with pytest.raises(JournalError):
            broken.submit(Task(id="t", request="do it", target="book.xlsx")).result(PATIENCE)
        broken.stop()
        assert start(app=app, **given).handle("t").result(PATIENCE).ok
    assert (faults.passed["after", "effect"], faults.passed["after", "approval_request"]) == (1, 0)


NAMES_ITSELF = {
    "edit_paragraph": {"control_id": "paragraph-1", "text": "another"},
    "write_cell": {"control_id": "table-1", "row": 1, "column": 1, "value": "another"},
}


@pytest.mark.parametrize("named", [True, False], ids=["with its name", "by its id"])
@pytest.mark.parametrize("tool", NAMES_ITSELF)
def test_a_call_that_renamed_its_own_control_before_a_crash_is_known_done(start, tmp_path, given, tool, named):
    document = Document()
    document.add_paragraph("one")
    document.add_table(1, 1).cell(0, 0).text = "one"
    document.save(str(tmp_path / "one.docx"))
    answers = []

    def app(request):
        if request.memory:
            answers.extend(result.value for result in request.memory[-1].results)
            return {"Status": "FINISH"}
        arguments = {**NAMES_ITSELF[tool], **({"control_name": "one"} if named else {})}
        second = {"function": "insert_paragraph", "arguments": {"text": "two"}}
        return {"Status": "CONTINUE", "Actions": [{"function": tool, "arguments": arguments}, second]}

    given |= {"app": app, "policy": [{"verdict": "allow", "tool": "*"}]}
    with Faults() as faults:
        faults.before("command_result", disk_full)
        broken = start(**given)
        with pytest.raises(JournalError):
            broken.submit(Task(id="t", request="do it", target="one.docx")).result(PATIENCE)
        broken.stop()
        assert start(**given).handle("t").result(PATIENCE).ok
        assert faults.passed["after", "effect"] == 2
    assert [answer["control_id"] for answer in answers] == [NAMES_ITSELF[tool]["control_id"], "paragraph-2"]
    assert [paragraph.text for paragraph in Document(str(tmp_path / "one.docx")).paragraphs][-1] == "two"
