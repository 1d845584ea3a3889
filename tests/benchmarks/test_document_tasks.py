"""Checks of the office tasks: untouched files and damage fail, and files done by hand pass."""

from __future__ import annotations

import json
import shutil

import docx
import openpyxl
import pytest
from openpyxl.chart import BarChart, LineChart, PieChart, Reference

from benchmarks.document_tasks import ROOT, SETS
from benchmarks.office_checks import PROGRAMS, charted_table
from callboard import Settings, Supervisor
from callboard.messages import found_in
from callboard.terminal import Attendance, EvalChoices, LoadedSet, run_set

WORK, HELD_OUT, EXAMPLE = (LoadedSet.load(path).tasks for path in SETS.values())
BY_NAME = {task.name: task for task in (*WORK, *HELD_OUT)}


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


def put(cell, value):
    return lambda sheet: sheet.__setitem__(cell, value)


WORKBOOKS = {
    "chart": lambda sheet: draw(BarChart(), sheet, 7),
    "add a sheet": lambda sheet: sheet.parent.create_sheet("Archive"),
    "sort numbers": lambda sheet: sort(sheet, lambda values: -values[2]),
    "sum": put("B9", 62),
    "change a number": put("C3", 79),
    "append a row": lambda sheet: sheet.append(["Carpet", 5, 119]),
    "chart with a title": lambda sheet: draw(LineChart(), sheet, 6, "Our visitors"),
    "rename a sheet": lambda sheet: setattr(sheet, "title", "Costs"),
    "number format": show(2, "#,##0.00"),
    "sort texts": lambda sheet: sort(sheet, lambda values: values[0]),
    "mean": put("B8", 432),
    "change a text": put("C2", "Workshop"),
    "pie chart": lambda sheet: draw(PieChart(), sheet, 5),
    "new worksheet": lambda sheet: sheet.parent.create_sheet("Summary"),
    "name of a sheet": lambda sheet: setattr(sheet, "title", "Budget 2027"),
    "descending order": lambda sheet: sort(sheet, lambda values: -values[2]),
    "total": put("C8", 65),
    "new row": lambda sheet: sheet.append(["Tulip", "red", 40]),
    "percentages": show(3, "0%"),
}
BY_TOOL = {
    "fill formulas": [("D2:D5", "= $B2 * $C2")],
    "computed column": [("D2:D4", "=B2*C2")],
}
"""Formulas, whose results openpyxl does not store."""


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
QUESTIONS = {"question on a workbook", "question on a document", "question about a table"}


def change(task, workspace):
    """Do a task as a person would."""
    (path,) = workspace.iterdir()
    if task.name in WORKBOOKS:
        book = openpyxl.load_workbook(path)
        WORKBOOKS[task.name](book.active)
        book.save(path)
    elif task.name in DOCUMENTS:
        document = docx.Document(str(path))
        DOCUMENTS[task.name](document)
        document.save(str(path))


def verify(task, folder, *changes):
    """Run a task whose agent says FINISH after each change in turn; gives its result."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    shutil.copy(task.documents[0], workspace)

    def model(request):
        made = changes[request.call - 1] if request.call <= len(changes) else None
        if isinstance(made, list):
            cells, formula = made[0]
            action = {"Function": "set_formula", "Args": {"control_id": "sheet-1", "cells": cells, "formula": formula}}
            return {"Status": "FINISH", **action}
        if made is not None:
            made(task, workspace)
        return {"Status": "FINISH"}

    settings = Settings.load(documents={"workspace": workspace}, limits={"check_retries": max(0, len(changes) - 1)})
    with Supervisor.start(settings, models={"app": model}, checks=PROGRAMS) as supervisor:
        return supervisor.submit(task.task).result(60)


def nothing(task, workspace):
    """Leave the file as it is."""


OFTEN = {"chart", "add a sheet", "sum", "fill formulas", "number format", "replace a word", "a heading", "bold"}
"""The tasks that always run, one of each kind of check; the others are slow in sum."""
CASES = [
    pytest.param(task, id=task.name, marks=() if task.name in OFTEN | QUESTIONS else pytest.mark.slow)
    for task in BY_NAME.values()
]


@pytest.mark.parametrize("task", CASES)
def test_a_task_is_verified_when_it_is_done_and_only_then(tmp_path, task):
    result = verify(task, tmp_path / "done", nothing, BY_TOOL.get(task.name, change))
    assert result.verified
    assert result.usage.model_calls == (1 if task.name in QUESTIONS else 2)


def test_no_task_to_work_on_is_held_out():
    assert (len(WORK), len(HELD_OUT), len(BY_NAME)) == (22, 12, 34)
    assert not {task.documents for task in WORK} & {task.documents for task in HELD_OUT}


@pytest.mark.parametrize(("cell", "value"), [("A1", "Article"), ("A9", "Carpet"), ("D2", 413), ("C7", None)])
def test_damage_to_a_workbook_is_found(tmp_path, cell, value):
    def damage(task, workspace):
        change(task, workspace)
        (path,) = workspace.iterdir()
        book = openpyxl.load_workbook(path)
        book.active[cell] = value
        book.save(path)

    assert verify(BY_NAME["append a row"], tmp_path, damage).verified is False


# The example

TABLE = [["Region", "Q1", "Q2"], ["North", "1,412.5", "438"], ["South", "298", "341.5"]]
RIGHT = [["Region", "Q1", "Q2"], ["North", 1412.5, 438], ["South", 298, 341.5]]


def report(folder, rows, charted):
    document = docx.Document()
    table = document.add_table(rows=0, cols=3)
    for row in TABLE:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    document.save(str(folder / "sales.docx"))
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    chart = BarChart()
    for column in charted:
        chart.add_data(Reference(book.active, column, 1, column, len(rows)), titles_from_data=True)
    if charted:
        book.active.add_chart(chart, "F1")
    book.save(folder / "book.xlsx")


@pytest.mark.parametrize(
    ("rows", "charted", "found"),
    [
        (RIGHT, (2, 3), True),
        (RIGHT, (2,), "the chart draws only a part of the table"),
        (RIGHT, (), "there is no chart"),
        (RIGHT[1:], (2, 3), "there is no header"),
        ([*RIGHT[:2], ["South", 298, "341.5"]], (2, 3), "there are other values"),
    ],
    ids=["right", "part", "none", "header", "text"],
)
def test_a_report_is_right_with_all_rows_and_a_chart_of_them(tmp_path, rows, charted, found):
    report(tmp_path, rows, charted)
    assert charted_table({path.name: path for path in tmp_path.iterdir()}, "sales.docx") == found


ANSWERS = {task.name: task.answer for task in (*WORK, *HELD_OUT) if task.answer}
NUMBERS = {"question about a table": "45", "question on a workbook": "11", "question on a document": "2019"}


def test_each_question_has_a_right_answer():
    assert ANSWERS.keys() == NUMBERS.keys()


@pytest.mark.parametrize("name", NUMBERS)
def test_an_answer_counts_if_it_names_the_right_number_and_no_other(name):
    number = NUMBERS[name]
    for right in (number, f"{number}.", f"It is {number}.", f"{number} of them"):
        assert found_in(ANSWERS[name], right), right
    for wrong in ("", "none", f"{number}0", f"1{number}", f"{number}.5", f"{number} or 7", str(int(number) + 1)):
        assert not found_in(ANSWERS[name], wrong), wrong


def test_a_set_runs_with_the_check_programs(tmp_path):
    script = ROOT / "examples/sales_report/script.yaml"
    choices = EvalChoices(
        Attendance(absent="test"),
        models=[f"scripted:{script}"],
        tasks=["3 tables"],
        seeds=1,
        output=tmp_path / "out",
        as_json=True,
    )
    assert run_set(SETS["example"], choices, PROGRAMS) == 0
    (result,) = json.loads((tmp_path / "out/report.json").read_text("utf-8"))["results"]
    assert result["passed"], result
