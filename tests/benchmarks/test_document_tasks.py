"""Checks of the office tasks.

Untouched files fail all of them, files done by hand pass, and damage is found.
"""

from __future__ import annotations

import docx
import openpyxl
import pytest
from openpyxl.chart import BarChart, LineChart, PieChart, Reference

from benchmarks.document_tasks import Ran, row
from benchmarks.held_out_tasks import HELD_OUT
from benchmarks.office_tasks import NOTICE, STOCK, TASKS

BY_NAME = {task.name: task for task in (*TASKS, *HELD_OUT)}


def draw(chart, sheet, rows, title=None):
    chart.add_data(Reference(sheet, 2, 1, 2, rows), titles_from_data=True)
    chart.title = title
    sheet.add_chart(chart, "F1")


def sort(sheet, key):
    rows = sorted(list(sheet.values)[1:], key=key)
    for number, values in enumerate(rows, 2):
        for column, value in enumerate(values, 1):
            sheet.cell(number, column).value = value


def show(column, shown):
    def change(sheet):
        for number in range(2, 6):
            sheet.cell(number, column).number_format = shown

    return change


def fill(last):
    def change(sheet):
        for number in range(2, last + 1):
            sheet.cell(number, 4).value = f"= $B{number} * $C{number}"

    return change


def put(cell, value):
    return lambda sheet: sheet.__setitem__(cell, value)


WORKBOOKS = {
    "chart": lambda sheet: draw(BarChart(), sheet, 7),
    "add a sheet": lambda sheet: sheet.parent.create_sheet("Archive"),
    "sort numbers": lambda sheet: sort(sheet, lambda values: -values[2]),
    "sum": put("B9", "=sum(B2:B7)"),
    "change a number": put("C3", 79),
    "append a row": lambda sheet: sheet.append(["Carpet", 5, 119]),
    "chart with a title": lambda sheet: draw(LineChart(), sheet, 6, "Our visitors"),
    "rename a sheet": lambda sheet: setattr(sheet, "title", "Costs"),
    "fill formulas": fill(5),
    "number format": show(2, "#,##0.00"),
    "sort texts": lambda sheet: sort(sheet, lambda values: values[0]),
    "mean": put("B8", 432),
    "change a text": put("C2", "Workshop"),
    "pie chart": lambda sheet: draw(PieChart(), sheet, 5),
    "new worksheet": lambda sheet: sheet.parent.create_sheet("Summary"),
    "name of a sheet": lambda sheet: setattr(sheet, "title", "Budget 2027"),
    "descending order": lambda sheet: sort(sheet, lambda values: -values[2]),
    "total": put("C8", "=SUM(C2:C6)"),
    "new row": lambda sheet: sheet.append(["Tulip", "red", 40]),
    "computed column": fill(4),
    "percentages": show(3, "0%"),
}


def say(number, text):
    def change(document):
        document.paragraphs[number].text = text

    return change


def replace(old, new):
    def change(document):
        for paragraph in document.paragraphs:
            paragraph.text = paragraph.text.replace(old, new)

    return change


def add_row(document):
    for cell, text in zip(document.tables[0].add_row().cells, ("Drill", "Haas", "2022"), strict=True):
        cell.text = text


DOCUMENTS = {
    "replace a word": replace("Monday", "Tuesday"),
    "append a paragraph": lambda document: document.add_paragraph("The next meeting is in June."),
    "a table's cell": lambda document: setattr(document.tables[0].cell(1, 1), "text", "32"),
    "a heading": lambda document: document.add_heading("Contact"),
    "a table's row": add_row,
    "change a date": say(4, "The deadline for reports is 4 May."),
    "a name in a letter": replace("Keller", "Brandt"),
    "last sentence": lambda document: document.add_paragraph("The office is closed in August."),
    "a wrong number in a table": lambda document: setattr(document.tables[0].cell(2, 1), "text", "47"),
    "bold": lambda document: setattr(document.paragraphs[3].runs[0], "bold", True),
}
ANSWERS = {"question on a workbook": "There are 11 shelves.", "question on a document": "2019"}
ANSWERS |= {"question about a table": "It costs 45."}


def done(task, path):
    """Do a task as a person would; gives the answer in words."""
    if task.name in WORKBOOKS:
        book = openpyxl.load_workbook(path)
        WORKBOOKS[task.name](book.active)
        book.save(path)
    elif task.name in DOCUMENTS:
        document = docx.Document(str(path))
        DOCUMENTS[task.name](document)
        document.save(str(path))
    return ANSWERS.get(task.name, "")


@pytest.mark.parametrize("task", BY_NAME.values(), ids=lambda task: task.name)
def test_a_file_is_right_when_the_task_is_done_and_only_then(tmp_path, task):
    path = task.make(tmp_path)
    assert task.wrong(path, "")
    said = done(task, path)
    assert task.wrong(path, said) == ""


def test_no_task_to_work_on_is_held_out():
    assert (len(TASKS), len(HELD_OUT), len(BY_NAME)) == (22, 12, 34)
    assert not {task.file for task in TASKS} & {task.file for task in HELD_OUT}


@pytest.mark.parametrize(("cell", "value"), [("A1", "Article"), ("A9", "Carpet"), ("D2", 413), ("C7", None)])
def test_damage_to_a_workbook_is_found(tmp_path, cell, value):
    task = BY_NAME["append a row"]
    path = task.make(tmp_path)
    done(task, path)
    book = openpyxl.load_workbook(path)
    book.active[cell] = value
    book.save(path)
    assert task.wrong(path, "") == f"{cell} is {value!r}"


def test_an_answer_with_another_row_s_number_is_wrong(tmp_path):
    task = BY_NAME["question on a workbook"]
    path = task.make(tmp_path)
    assert task.wrong(path, str(STOCK))
    assert task.wrong(path, "11 shelves") == ""


def test_a_paragraph_in_another_style_is_wrong(tmp_path):
    task = BY_NAME["a heading"]
    path = task.make(tmp_path)
    document = docx.Document(str(path))
    document.add_paragraph("Contact")
    document.save(str(path))
    assert task.wrong(path, "") == "found ('Normal', 'Contact')"
    assert NOTICE[-1][0] == "table"


def ran(outcome="finished", wrong="", tools=()):
    return Ran("chart", 1, outcome, wrong, "", 1, 0, tools, 1.0)


def test_a_row_has_each_reason_once():
    found = [ran(), ran("failed", "no chart"), ran("failed", "no chart"), ran(wrong="A|1", tools=("read",))]
    assert row("chart", found) == "| chart | 1 of 4 | failed before any action, no chart; A/1 |"
