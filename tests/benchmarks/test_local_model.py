"""The local model's benchmark: the documents that it makes, and the mistakes that it finds in a workbook."""

from __future__ import annotations

import openpyxl
import pytest
from openpyxl.chart import BarChart, Reference

from benchmarks import local_model


@pytest.mark.parametrize(("name", "rows", "tables"), [("as it is", 5, 1), ("40 rows", 41, 1), ("3 tables", 5, 3)])
def test_the_documents_have_the_table_that_is_asked_for(tmp_path, name, rows, tables):
    table = local_model.prepared(tmp_path / "example", local_model.DOCUMENTS[name])
    assert table[0] == ["Region", "Q1", "Q2", "Q3", "Q4"]
    assert {len(row) for row in table} == {5}
    assert len(table) == rows
    document = local_model.docx.Document(str(tmp_path / "example" / "workspace" / "sales.docx"))
    assert len(document.tables) == tables


TABLE = [["Region", "Q1", "Q2"], ["North", "1,412.5", "438"], ["South", "298", "341.5"]]


def workbook(folder, rows, charted=()):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    chart = BarChart()
    for column in charted:
        chart.add_data(Reference(book.active, column, 1, column, len(rows)), titles_from_data=True)
    if charted:
        book.active.add_chart(chart, "F1")
    book.save(folder / "book.xlsx")


RIGHT = [["Region", "Q1", "Q2"], ["North", 1412.5, 438], ["South", 298, 341.5]]


@pytest.mark.parametrize(
    ("rows", "charted", "said"),
    [
        (RIGHT, (2, 3), ""),
        (RIGHT, (2,), "a chart of a part"),
        (RIGHT, (), "no chart"),
        (RIGHT[1:], (2, 3), "no header"),
        ([*RIGHT[:2], ["South", 298, "341.5"]], (2, 3), "other values"),
    ],
    ids=["right", "part", "none", "header", "text"],
)
def test_a_workbook_is_right_with_all_rows_and_a_chart_of_them(tmp_path, rows, charted, said):
    workbook(tmp_path, rows, charted)
    assert local_model.wrong(tmp_path, TABLE) == said


def test_no_workbook_is_wrong(tmp_path):
    assert local_model.wrong(tmp_path, TABLE) == "no workbook"
