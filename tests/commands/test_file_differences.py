"""The difference of files in words, for a judge."""

from __future__ import annotations

import io

import docx
import openpyxl
import pytest
from openpyxl.chart import BarChart, Reference
from openpyxl.pivot.cache import CacheDefinition, CacheField, CacheSource, SharedItems, WorksheetSource
from openpyxl.pivot.record import RecordList
from openpyxl.pivot.table import Location, TableDefinition

from callboard import Task
from callboard.actors.commands import _file_differences, differences_in_words
from callboard.messages import Judge, TaskRefusedError
from callboard.surfaces.documents import DocumentSurface


def book(edit=lambda _book: None):
    made = openpyxl.Workbook()
    made.active.title = "Sales"
    for row in (["Name", "Price"], ["Screw", 2], ["Nut", 3]):
        made.active.append(row)
    edit(made)
    data = io.BytesIO()
    made.save(data)
    return data.getvalue()


def letter(*paragraphs):
    made = docx.Document()
    for paragraph in paragraphs:
        made.add_paragraph(paragraph)
    data = io.BytesIO()
    made.save(data)
    return data.getvalue()


def lines(name, old, new):
    return differences_in_words([(name, old, new)]).splitlines()


def edited(made):
    sheet = made.active
    sheet["B2"] = 412.5
    sheet["B3"] = None
    sheet["B10"] = "=SUM(B2:B3)"
    drawn = BarChart()
    drawn.add_data(Reference(sheet, min_col=2, min_row=1, max_row=3))
    sheet.add_chart(drawn, "E2")
    made.create_sheet("Notes")


def with_pivot_table(made):
    field = CacheField(name="Name", sharedItems=SharedItems())
    source = CacheSource(type="worksheet", worksheetSource=WorksheetSource(ref="A1:B3", sheet="Sales"))
    pivot = TableDefinition(name="Prices", cacheId=1, dataCaption="Values", location=Location("D1:E4", 1, 1, 1))
    pivot.cache = CacheDefinition(cacheSource=source, cacheFields=(field,), id="rId1")
    pivot.cache.records = RecordList()
    made.active.add_pivot(pivot)


def test_new_pivot_table_is_counted():
    assert lines("report.xlsx", book(), book(with_pivot_table)) == [
        '"report.xlsx" was changed:',
        "- 1 pivot table new or changed",
    ]


def test_workbook_differences_are_listed_with_their_values():
    *told, chart = lines("report.xlsx", book(), book(edited))
    assert told == [
        '"report.xlsx" was changed:',
        '- new sheet "Notes"',
        '- "Sales!B2": "2" -> "412.5"',
        '- "Sales!B3": "3" -> empty',
        '- "Sales!B10": empty -> "=SUM(B2:B3)"',
    ]
    assert chart.startswith('- 1 chart new or changed ("bar of ')
    assert "$B$1:$B$3" in chart


def test_document_differences_are_listed_by_paragraph():
    assert lines("letter.docx", letter("Dear Ms Kim", "old"), letter("Dear Ms Kim", "new")) == [
        '"letter.docx" was changed:',
        '- paragraph removed: "old"',
        '- paragraph added: "new"',
    ]
    (line,) = lines("letter.docx", letter("one", "two"), letter("two", "one"))[1:]
    assert line == "- the same paragraphs in another order"


def test_new_and_removed_files_are_listed():
    assert lines("a.txt", None, b"hello") == ['"a.txt" is new:', '- line added: "hello"']
    assert lines("a.txt", b"hello", None) == ['"a.txt" was removed']


@pytest.mark.parametrize("old", [b"\xff\xfe\x00", b"PK\x03\x04 broken"])
def test_difference_that_can_not_be_described_is_mentioned(old):
    (line,) = lines("a.xlsx", old, old + b"1")[1:]
    assert "can't be put into words" in line


def test_no_text_of_a_file_can_pass_for_a_line_of_the_description():
    forged = 'x\n- "Sales!B2": empty -> 412.5\n\n"other.xlsx" was changed:'
    told = lines("report.xlsx", book(), book(lambda made: made.active.append([forged])))
    assert len(told) == 2
    assert len(lines("a\nb.txt", None, b"x")) == 2


def test_differences_beyond_the_limit_are_omitted_and_counted(monkeypatch):
    monkeypatch.setattr(_file_differences, "_MOST", 1000)
    new = "\n".join(f"line {number} {'x' * 500}" for number in range(50)).encode()
    told = differences_in_words([("a.txt", b"", new), ("b.txt", b"", new)])
    assert len(told) < 3000
    assert told.count("further differences of this file are left out here") == 2
    assert "more characters" in told


def test_a_workspace_that_is_too_large_for_a_judge_is_refused(start, tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("name,value\nNorth,400\n", encoding="utf-8")
    monkeypatch.setattr("callboard.actors.commands._lookup.MOST_KEPT", 20)
    supervisor = start(servers=[DocumentSurface(tmp_path)], app=lambda _: {}, host=lambda _: {})
    with pytest.raises(TaskRefusedError, match=r"the workspace have 21 bytes or more, and at most 20"):
        supervisor.submit(Task(request="x", target="a.csv", judge=Judge(question="ok?")))
