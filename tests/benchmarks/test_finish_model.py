"""The checks of the tasks for small models."""

from __future__ import annotations

import shutil

import openpyxl
import pytest

from benchmarks.finish_model import NOTES, TASKS, _is_right, write_documents

ANSWERS = {
    "How many orders are from Weber?": "2",
    "What is the amount of order P-9?": "415",
    "In which room is the meeting?": "Maple",
    "Who does the task Budget?": "Rossi",
    "When does the contract end?": "31 March 2028",
    "How much does the repair cost?": "1,280 euros",
}
BY_REQUEST = {task.request: task for task in TASKS}


@pytest.fixture
def folder(tmp_path):
    write_documents(tmp_path)
    return tmp_path


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.request)
def test_untouched_documents_are_right_for_an_answered_question_only(folder, task):
    assert not _is_right(task, folder, "it is done")
    assert _is_right(task, folder, ANSWERS.get(task.request, "")) == (task.request in ANSWERS)


def test_edit_by_hand_is_right_and_another_cell_is_wrong(folder):
    task = BY_REQUEST['Write "Paid" into cell D3']
    for cell, is_right in (("D3", True), ("D4", False)):
        book = openpyxl.load_workbook(folder / "orders.xlsx")
        book["Orders"][cell] = "Paid"
        book.save(folder / "orders.xlsx")
        assert _is_right(task, folder, "") is is_right


def test_copy_under_the_name_of_the_request_is_right(folder):
    task = BY_REQUEST["Save a copy of this workbook as archive.xlsx"]
    shutil.copy(folder / "orders.xlsx", folder / "archive.xlsx")
    assert _is_right(task, folder, "")


def test_line_at_the_end_is_right(folder):
    task = BY_REQUEST['Add the line "Call the plumber" at the end of the file']
    (folder / "notes.txt").write_text(f"{NOTES}Call the plumber\n", encoding="utf-8")
    assert _is_right(task, folder, "")
