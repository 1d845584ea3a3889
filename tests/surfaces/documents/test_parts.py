"""Parts of documents that checks read: each whole, and the only one that fits."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import zipfile
from typing import TYPE_CHECKING, Any

import docx
import openpyxl
import pytest
import xlsxwriter
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.table import Table

from callboard.actors.commands import Asked, Policy, Toolbox
from callboard.actors.runtime import Lanes
from callboard.config import PolicyRule, Verdict
from callboard.messages import AgentKind, Effect
from callboard.models import ToolInfo
from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface, _pdf, _workspace
from callboard.surfaces.documents.excel import _engines, _workbook_parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Call

ROWS = [["North", 10], ["South", 20]]
EVENT = (
    b"BEGIN:VEVENT\r\nUID:%d\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:20260601T090000Z\r\nSUMMARY:%s\r\nEND:VEVENT\r\n"
)


@pytest.fixture
def read(call: Call) -> Callable[..., Any]:
    """Read a part as a check does: ``read("cells", "book.xlsx!Sales!B8")``."""

    def run(form: str, name: str, /, **args: Any) -> Any:
        document, _, part = name.partition("!")
        answer = call("read_part", document, form=form, part=part, args=args)
        assert json.loads(json.dumps(answer)) == answer
        return answer

    return run


# Cells


@pytest.fixture
def book(workspace: Path) -> Path:
    """Write a workbook with two sheets, a hidden one, a table and names."""
    made = openpyxl.Workbook()
    sales = made.active
    sales.title = "Sales"
    for row in (["Region", "Q1", "Paid"], ["North", 10, True], ["South", 20.5, None], ["Total", None, None]):
        sales.append(row)
    sales.add_table(Table(displayName="Revenue", ref="A1:C4", totalsRowCount=1))
    sales["E1"] = "=SUM(B2:B3)"
    mine = made.create_sheet("It's mine!")
    mine["A1"], mine["A2"], mine["B1"] = "x", "#DIV/0!", dt.date(2023, 3, 15)
    mine["A2"].data_type = "e"
    made.create_sheet("Secret").sheet_state = "hidden"
    made["Secret"]["A1"] = 7
    made.defined_names["Wages"] = DefinedName("Wages", attr_text="Sales!$B$2:$B$3")
    made.defined_names["Rate"] = DefinedName("Rate", attr_text="0.25")
    sales.defined_names["Local"] = DefinedName("Local", attr_text="Sales!$A$2")
    mine.defined_names["Local"] = DefinedName("Local", attr_text="'It''s mine!'!$A$1")
    made.save(workspace / "book.xlsx")
    return workspace / "book.xlsx"


CELLS = [
    ("Sales!B3", 20.5),
    ("sales!$b$3", 20.5),
    ("'Sales'!A2:C3", [["North", 10, True], ["South", 20.5, None]]),
    ("'It''s mine!'!A1", "x"),
    ("'It''s mine!'!A2:B2", [["#DIV/0!", None]]),
    ("'It''s mine!'!B1", "2023-03-15"),
    ("Sales!Z99", None),
    ("Secret!A1", 7),
    ("Wages", [[10], [20.5]]),
    ("wages", [[10], [20.5]]),
    ("Sales!Local", "North"),
    ("'It''s mine!'!Local", "x"),
    ("Revenue", [["North", 10, True], ["South", 20.5, None]]),
    ("Revenue[Q1]", [[10], [20.5]]),
    ("Sales!Revenue[q1]", [[10], [20.5]]),
]


@pytest.mark.parametrize(("part", "value"), CELLS, ids=[part for part, _ in CELLS])
def test_cells_are_read(book: Path, read: Call, part: str, value: Any) -> None:
    assert read("cells", f"book.xlsx!{part}") == value


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("", "no cells of 'book.xlsx' are named"),
        ("B3", "2 visible sheets [(]Sales, It's mine!.*like Sales!B8"),
        ("Sales", "'Sales' is no range of cells.*the sheets are 'Sales'"),
        ("Sales!", "no range of cells"),
        ("Sale!B3", "no sheet 'Sale'; there are: 'Sales'"),
        ("Sales!B:B", "no range of cells"),
        ("Sales!B3:A1", "does not begin at its top left cell; write it as A1:B3"),
        ("Sales!ZZZ1", "beyond XFD1048576"),
        ("Sales!A1:Z9999", "259974 cells; at most 100000"),
        ("Sales!E1", "Sales!E1 is a formula that has no computed result"),
        ("Sales!A1:E4", "Sales!E1 is a formula"),
        ("Wage", "did you mean 'Wages'"),
        ("Rate", "'Rate' does not stand for one range"),
        ("Local", "'Local' is the name of 2 ranges [(]Sales!A2, It's mine!!A1[)]"),
        ("Secret!Wages", "no range of cells"),
        ("Revenue[Q9]", "'Revenue' has no column 'Q9'"),
        ("range-1", "no range of cells"),
    ],
)
def test_cells_that_are_not_clear_are_not_read(book: Path, read: Call, part: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        read("cells", f"book.xlsx!{part}")


def test_the_only_visible_sheet_needs_no_name(workspace: Path, read: Call) -> None:
    made = openpyxl.Workbook()
    made.active["A1"] = 3
    made.create_sheet("Other").sheet_state = "hidden"
    made.save(workspace / "book.xlsx")
    assert read("cells", "book.xlsx!A1") == 3
    assert read("cells", "book.xlsx!A1:B1") == [[3, None]]


def formulas(path: Path, *cells: tuple[str, str, Any], calculation: str = "") -> None:
    """Write formulas with results, as a program does that computes them; None leaves one out."""
    made = openpyxl.Workbook()
    for where, formula, _ in cells:
        made.active[where] = formula
    made.save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    for where, _, result in cells:
        before, _, after = parts["xl/worksheets/sheet1.xml"].partition(f'<c r="{where}">')
        after = after.replace("<v></v>", "" if result is None else f"<v>{result}</v>", 1).replace("<v/>", "", 0)
        if result is not None and f"<v>{result}</v>" not in after.partition("</c>")[0]:
            after = after.replace("<v />", f"<v>{result}</v>", 1).replace("<v/>", f"<v>{result}</v>", 1)
        parts["xl/worksheets/sheet1.xml"] = f'{before}<c r="{where}">{after}'
    book = parts["xl/workbook.xml"]
    start = book.index("<calcPr")
    parts["xl/workbook.xml"] = book[:start] + f"<calcPr {calculation}/>" + book[book.index("/>", start) + 2 :]
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)


ON_LOAD = 'fullCalcOnLoad="1"'


@pytest.mark.parametrize(
    ("cells", "calculation", "found"),
    [
        ([("A1", "=1+1", 2)], "", 2),
        ([("A1", "=1+1", None)], "", "A1 is a formula that has no computed result"),
        ([("A1", "=B1*2", 4), ("B1", "=1+1", None)], "", "A1 is a formula that has an outdated result"),
        ([("A1", "=C1*2", 4), ("B1", "=1+1", None), ("C1", "=B1", 2)], "", "A1 is a formula that has an outdated"),
        ([("A1", '=INDIRECT("B1")', 4), ("B1", "=1+1", None)], "", "A1 is a formula that has an outdated result"),
        ([("A1", "=1+1", 2), ("B1", "=1+1", None)], "", 2),
        ([("A1", "=1+1", 3)], 'calcMode="manual" calcCompleted="0"', "a result from before the last change"),
        ([("A1", "=1+1", 0)], f'calcId="124519" {ON_LOAD}', "A1 is a formula that has no computed result"),
        ([("A1", "=1-1", 0)], ON_LOAD, 0),
    ],
)  # fmt: skip
def test_only_results_that_hold_are_read(
    workspace: Path,
    read: Call,
    monkeypatch: pytest.MonkeyPatch,
    cells: list[Any],
    calculation: str,
    found: Any,
) -> None:
    pytest.importorskip("ironcalc")
    monkeypatch.setattr(_engines.Office, "is_available", lambda _: False)
    formulas(workspace / "book.xlsx", *cells, calculation=calculation)
    if isinstance(found, str):
        with pytest.raises(ToolError, match=found):
            read("cells", "book.xlsx!A1")
    else:
        assert read("cells", "book.xlsx!A1") == found


def test_zeros_of_xlsxwriter_are_not_results(workspace: Path, read: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_engines.Office, "is_available", lambda _: False)
    made = xlsxwriter.Workbook(str(workspace / "book.xlsx"))
    sheet = made.add_worksheet("Sales")
    sheet.write("A1", 5)
    sheet.write_formula("A2", "=A1-5")
    sheet.write_formula("A3", "=A1+1")
    made.close()
    assert read("cells", "book.xlsx!A1") == 5
    with pytest.raises(ToolError, match="Sales!A2 and 1 more formulas have no computed result"):
        read("cells", "book.xlsx!A2:A3")


def test_the_cells_of_an_array_formula_need_results(workspace: Path, read: Call) -> None:
    made = openpyxl.Workbook()
    made.active["A1"] = openpyxl.worksheet.formula.ArrayFormula("A1:A2", "=ROW(A1:A2)")
    made.save(workspace / "book.xlsx")
    with pytest.raises(ToolError, match="Sheet!A2 is a formula that has no computed result"):
        read("cells", "book.xlsx!A2")


def test_an_array_formula_with_an_outdated_result_is_not_read(workspace: Path, read: Call) -> None:
    made = openpyxl.Workbook()
    made.active["A1"] = openpyxl.worksheet.formula.ArrayFormula("A1:A2", "=ROW(A1:A2)+B1")
    made.active["A2"], made.active["B1"] = 2, "=1+1"
    made.save(workspace / "book.xlsx")
    with pytest.raises(ToolError, match="Sheet!A1 is a formula that has an outdated result"):
        read("cells", "book.xlsx!A2")


# Tables


@pytest.mark.parametrize(
    ("part", "rows"),
    [
        ("Revenue", [["North", 10, True], ["South", 20.5, None], ["Total", None, None]]),
        ("revenue", [["North", 10, True], ["South", 20.5, None], ["Total", None, None]]),
        ("Pay", [["Ann", 1], ["Bob", 2]]),
        ("'pay'", [["Ann", 1], ["Bob", 2]]),
        ("Sales", "'Sales' has several blocks: A1:C4, E1"),
        ("", "there are 3 tables, and none is named: 'Revenue' [(]Sales!A1:C4[)], 'Staff' .*'Sales' [(]Sales!E1[)]"),
        ("table-1", "no table 'table-1'; there are: 'Revenue' [(]Sales!A1:C4[)].*the sheet 'Pay'"),
        ("Reven", "did you mean 'Revenue'"),
        ("Secret", []),
    ],
)
def test_tables_of_a_workbook_are_read_by_name(book: Path, read: Call, part: str, rows: Any) -> None:
    made = openpyxl.load_workbook(book)
    pay = made["It's mine!"]
    pay.title = "Pay"
    pay.delete_rows(1, 3)
    for row in (["name", "pay"], ["Ann", 1], ["Bob", 2]):
        pay.append(row)
    pay.move_range("A4:B6", rows=-3) if pay["A1"].value is None else None
    pay.add_table(Table(displayName="Staff", ref="A1:B3"))
    del made.defined_names["Wages"]
    made.save(book)
    if isinstance(rows, str):
        with pytest.raises(ToolError, match=rows):
            read("table", f"book.xlsx!{part}")
    else:
        assert read("table", f"book.xlsx!{part}") == rows


def test_the_first_row_of_a_sheet_can_be_data(workspace: Path, read: Call) -> None:
    made = openpyxl.Workbook()
    for row in ROWS:
        made.active.append(row)
    made.save(workspace / "book.xlsx")
    assert read("table", "book.xlsx", header=False) == ROWS
    assert read("table", "book.xlsx!Sheet") == ROWS[1:]


def add_table(document: Any, *rows: list[str]) -> None:
    """Add a table; its first row is the header."""
    table = document.add_table(rows=0, cols=len(rows[0]))
    for row in rows:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text


@pytest.fixture
def letter(workspace: Path) -> Path:
    """Write a Word document with look-alike tables."""
    made = docx.Document()
    made.add_heading("Plan", 1)
    add_table(made, ["Region", "Revenue"], ["North", "1"])
    made.add_heading("Revenue by  region", 1)
    made.add_paragraph("As told by the branches:")
    add_table(made, ["Region", "Revenue"], ["North", "1,234.50"], ["South", "987.25"])
    made.add_paragraph("Table 1: Costs", style="Caption")
    made.add_heading("Terms", 1)
    made.add_paragraph("Pay soon.")
    made.add_heading("Delay", 2)
    made.add_paragraph("Pay more.")
    made.add_heading("Delay", 2)
    made.add_heading("More", 1)
    add_table(made, ["Name", "Share"], ["Ann", "12 %"], ["Bob", "1,5 %"])
    add_table(made, ["Name", "Note"], ["Ann", ""])
    caption = made.add_paragraph("Table B-2 \u2013 Notes")
    field = OxmlElement("w:fldSimple")
    field.set(qn("w:instr"), " SEQ Table \\* ARABIC ")
    caption._p.append(field)
    made.save(workspace / "letter.docx")
    return workspace / "letter.docx"


@pytest.mark.parametrize(
    ("part", "rows"),
    [
        ("Revenue by region", [["North", 1234.5], ["South", 987.25]]),
        ("Table 1: Costs", [["North", 1234.5], ["South", 987.25]]),
        ("Costs", [["North", 1234.5], ["South", 987.25]]),
        ("Notes", [["Ann", None]]),
        ("Plan", [["North", 1]]),
        ("Name | Share", [["Ann", 0.12], ["Bob", 0.015]]),
        ("Share", [["Ann", 0.12], ["Bob", 0.015]]),
        ("Name", "2 tables fit 'Name': 'Name | Share' below 'More', 'Name | Note' below 'More'"),
        ("More", "2 tables fit"),
        ("Region | Revenue", "2 tables fit .*below 'Plan', .*below 'Revenue by region'"),
        ("Revenue", "2 tables fit"),
        ("revenue by region", "no table 'revenue by region'; there are: 'Region | Revenue' below 'Plan'"),
        ("table-2", "no table"),
        ("Terms", "no table"),
        (" ", "no table"),
        ("", "there are 4 tables, and none is named"),
    ],
)
def test_tables_of_a_document_are_found_by_their_text(letter: Path, read: Call, part: str, rows: Any) -> None:
    if isinstance(rows, str):
        with pytest.raises(ToolError, match=rows.replace("|", "[|]")):
            read("table", f"letter.docx!{part}")
    else:
        assert read("table", f"letter.docx!{part}") == rows


def test_the_only_table_of_a_document_needs_no_name(workspace: Path, read: Call) -> None:
    made = docx.Document()
    add_table(made, ["Name", "Share"], ["Ann", "1,234"])
    made.save(workspace / "one.docx")
    assert read("table", "one.docx") == [["Ann", "1,234"]]
    assert read("table", "one.docx", decimal=",") == [["Ann", 1.234]]
    assert read("table", "one.docx", numbers=False, header=False) == [["Name", "Share"], ["Ann", "1,234"]]


def test_a_file_that_is_one_table_is_read_whole(workspace: Path, read: Call) -> None:
    (workspace / "a.csv").write_text("Region;Q1\n" + "North;1,5\n" * 5001)
    assert read("table", "a.csv") == [["North", 1.5]] * 5001
    assert read("table", "a.csv", delimiter=",", header=False)[0] == ["Region;Q1", None]
    pytest.importorskip("icalendar")
    events = EVENT % (1, b"Standup") + EVENT % (2, b"Lunch")
    (workspace / "a.ics").write_bytes(b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\n" + events + b"END:VCALENDAR\r\n")
    assert [row[1] for row in read("table", "a.ics")] == ["Standup", "Lunch"]
    assert [row[1] for row in read("table", "a.ics", first_day="2026-06-01")] == ["Standup", "Lunch"]
    assert read("table", "a.ics", first_day="2026-06-02") == []


def pdf_of(*pages: list[list[list[str]]]) -> bytes:
    """Make a PDF with tables, drawn with lines, on its pages."""
    parts: list[bytes] = [b"", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for tables in pages:
        drawn, top = [], 750
        for rows in tables:
            for row in rows:
                for column, text in enumerate(row):
                    left = 50 + 100 * column
                    drawn.append(f"{left} {top} 100 20 re S BT /F1 10 Tf {left + 5} {top + 5} Td ({text}) Tj ET")
                top -= 20
            top -= 60
        content = "\n".join(drawn).encode()
        parts.append(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
        resources = b"/Resources<</Font<</F1 3 0 R>>>>"
        parts.append(b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R%s>>" % (len(parts), resources))
        kids.append(b"%d 0 R" % len(parts))
    parts[0] = b"<</Type/Catalog/Pages 2 0 R>>"
    parts[1] = b"<</Type/Pages/Kids[%s]/Count %d>>" % (b" ".join(kids), len(kids))
    made, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    size = len(parts) + 1
    end = b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (size, len(made))
    return (
        made + b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, b"".join(b"%010d 00000 n \n" % n for n in places)) + end
    )


PLAN = [["Region", "Q1"], ["North", "1"]]
REAL = [["Region", "Q1"], ["North", "2.5"]]
STAFF = [["Name", "Pay"], ["Ann", "12 %"]]


def test_tables_of_a_pdf_are_read_by_place_or_header(workspace: Path, read: Call) -> None:
    pytest.importorskip("pdfplumber")
    (workspace / "a.pdf").write_bytes(pdf_of([PLAN], [STAFF, REAL]))
    assert read("table", "a.pdf!Name | Pay") == read("table", "a.pdf!Pay") == read("table", "a.pdf!2/1")
    assert read("table", "a.pdf!2/1") == [["Ann", 0.12]]
    assert read("table", "a.pdf!2/2") == read("table", "a.pdf!Region | Q1", page=2) == [["North", 2.5]]
    for part, why in (
        ("Region | Q1", "2 tables fit 'Region . Q1': 1/1 with the header 'Region . Q1', 2/2 with"),
        ("2/3", "no table '2/3'; there are: 2/1 with the header 'Name . Pay', 2/2"),
        ("", "there are 3 tables"),
    ):
        with pytest.raises(ToolError, match=why):
            read("table", f"a.pdf!{part}")


def test_a_long_pdf_is_not_searched_for_tables(workspace: Path, read: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pdfplumber")
    monkeypatch.setattr(_pdf, "_MOST_PAGES", 1)
    (workspace / "a.pdf").write_bytes(pdf_of([PLAN], [STAFF]))
    with pytest.raises(ToolError, match="2 pages, and at most 1 are searched; pass a page"):
        read("table", "a.pdf!Pay")


# Texts


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("Terms", "Pay soon.\n## Delay\nPay more.\n## Delay"),
        ("Plan", "Region\tRevenue\nNorth\t1"),
        ("Delay", "2 headings are called 'Delay'"),
        ("terms", "no heading 'terms'; there are: 'Plan'.*did you mean 'Terms'"),
        ("heading-1", "no heading"),
    ],
)
def test_the_text_below_a_heading_is_read(letter: Path, read: Call, part: str, text: str) -> None:
    if "heading" in text:
        with pytest.raises(ToolError, match=text):
            read("text", f"letter.docx!{part}")
    else:
        assert read("text", f"letter.docx!{part}") == text


def test_the_whole_text_of_a_document_is_read(workspace: Path, read: Call) -> None:
    made = docx.Document()
    made.add_heading("Terms", 1)
    made.add_paragraph("x" * 60_000)
    made.save(workspace / "long.docx")
    assert read("text", "long.docx") == "# Terms\n" + "x" * 60_000


def test_a_document_that_shows_only_other_parts_has_no_text(workspace: Path, read: Call) -> None:
    made = docx.Document()
    made.sections[0].header.paragraphs[0].text = "Invoice"
    made.save(workspace / "empty.docx")
    with pytest.raises(ToolError, match=r"empty[.]docx' has no text, but 1 header"):
        read("text", "empty.docx")
    docx.Document().save(str(workspace / "blank.docx"))
    assert read("text", "blank.docx") == ""


MARKDOWN = """# Plan
Words
## Terms ##
Pay soon.

```
# Not a heading
```
### Delay
More.

End
---
Last
- item
---
# Terms of use
Other
"""


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("", MARKDOWN),
        ("Terms", "Pay soon.\n\n```\n# Not a heading\n```\n### Delay\nMore."),
        ("End", "Last\n- item\n---"),
        ("Delay", "More."),
        ("Terms of use", "Other"),
    ],
)
def test_the_section_of_a_markdown_file_is_read(workspace: Path, read: Call, part: str, text: str) -> None:
    (workspace / "a.md").write_text(MARKDOWN)
    assert read("text", f"a.md!{part}") == text


def test_text_of_other_files_is_read_whole(workspace: Path, read: Call) -> None:
    (workspace / "a.txt").write_bytes("Gr\u00fc\u00dfe\r\n".encode("cp1252") + b"x" * 60_000)
    assert read("text", "a.txt", encoding="cp1252") == "Gr\u00fc\u00dfe\n" + "x" * 60_000
    (workspace / "a.eml").write_bytes(b"Subject: Hello\r\nTo: a@b.c\r\n\r\n" + b"Line\r\n" * 9000)
    text = read("text", "a.eml")
    assert text.startswith("to: a@b.c\nsubject: Hello\n\nLine\n")
    assert text.count("Line") == 9000
    pytest.importorskip("pdfplumber")
    (workspace / "a.pdf").write_bytes(pdf_of([PLAN], [STAFF]))
    text = read("text", "a.pdf")
    assert text.startswith("[page 1]\nRegion Q1\nNorth 1\n[page 2]\nName Pay")
    assert read("text", "a.pdf", page=2) == text[text.index("[page 2]") :]


def test_a_scanned_pdf_has_no_text(workspace: Path, read: Call) -> None:
    pytest.importorskip("pdfplumber")
    pytest.importorskip("PIL.Image").new("RGB", (20, 20), "red").save(workspace / "a.pdf")
    with pytest.raises(ToolError, match="no text, but 1 pictures; they may be scanned"):
        read("text", "a.pdf")


def test_text_in_a_picture_is_recognized(workspace: Path, read: Call) -> None:
    if shutil.which("tesseract") is None:
        (pytest.fail if os.environ.get("REQUIRE_SOFFICE") == "1" else pytest.skip)("tesseract is not installed")
    image = pytest.importorskip("PIL.Image").new("RGB", (300, 60), "white")
    draw, font = pytest.importorskip("PIL.ImageDraw"), pytest.importorskip("PIL.ImageFont")
    draw.Draw(image).text((10, 10), "Hello 42", fill="black", font=font.load_default(32))
    image.save(workspace / "a.png")
    assert read("text", "a.png", language="eng") == "Hello 42"


# Charts


@pytest.fixture
def charts(workspace: Path) -> Path:
    """Write a workbook with charts on two sheets."""
    path = workspace / "charts.xlsx"
    made = xlsxwriter.Workbook(str(path))
    sales, plan = made.add_worksheet("Sales"), made.add_worksheet("My plan")
    for number, row in enumerate([["Region", "Q1", "Q2"], ["North", 1, 2], ["South", 3, 4]]):
        sales.write_row(number, 0, row)
    plan.write("A1", "From a cell")
    for sheet, kind, title, place, columns in (
        (sales, "column", "Revenue", "G2", (1, 2)),
        (sales, "pie", "Shares", "G20", (1,)),
        (plan, "bar", "Revenue", "B3", (1,)),
        (plan, "line", "='My plan'!$A$1", "B30", (2,)),
    ):
        chart = made.add_chart({"type": kind})
        for column in columns:
            data = {"categories": ["Sales", 1, 0, 2, 0], "values": ["Sales", 1, column, 2, column]}
            chart.add_series({**data, "name": ["Sales", 0, column]})
        chart.set_title({"name": title})
        sheet.insert_chart(place, chart)
    mixed = made.add_chart({"type": "column"})
    mixed.add_series({"values": ["My plan", 0, 3, 4, 3], "name": "Own name"})
    line = made.add_chart({"type": "line"})
    line.add_series({"values": ["Sales", 1, 2, 2, 2], "categories": ["Sales", 1, 0, 2, 0]})
    mixed.combine(line)
    mixed.set_title({"name": "Up! And down"})
    plan.insert_chart("B50", mixed)
    made.close()
    return path


REVENUE = {
    "kind": "bar",
    "title": "Revenue",
    "sheet": "Sales",
    "at": "G2",
    "categories": "Sales!A2:A3",
    "ranges": ["Sales!B2:B3", "Sales!C2:C3"],
    "series": ["Q1", "Q2"],
}


@pytest.mark.parametrize(
    ("part", "found"),
    [
        ("Sales!Revenue", REVENUE),
        ("sales!Revenue", REVENUE),
        ("Shares", {"kind": "pie", "at": "G20", "ranges": ["Sales!B2:B3"]}),
        ("'My plan'!Revenue", {"kind": "horizontal_bar", "sheet": "My plan"}),
        ("My plan!From a cell", {"kind": "line", "title": "From a cell"}),
        (
            "My plan!Up! And down",
            {
                "kind": "bar+line",
                "categories": [None, "Sales!A2:A3"],
                "ranges": ["'My plan'!D1:D5", "Sales!C2:C3"],
                "series": ["Own name", ""],
            },
        ),
        ("Up! And down", {"kind": "bar+line"}),
        ("Revenue", "2 charts fit 'Revenue': 'Revenue' [(]Sales!G2[)], 'Revenue' [(]'My plan'!B3[)]"),
        ("Sales", "2 charts fit 'Sales'"),
        ("", "there are 5 charts, and none is named"),
        ("Sales!Costs", "no chart 'Sales!Costs'; there are: 'Revenue' [(]Sales!G2[)], 'Shares'"),
        ("chart-1", "no chart 'chart-1'"),
    ],
)
def test_a_chart_is_read_by_its_sheet_and_title(charts: Path, read: Call, part: str, found: Any) -> None:
    if isinstance(found, str):
        with pytest.raises(ToolError, match=found):
            read("chart", f"charts.xlsx!{part}")
    else:
        chart = read("chart", f"charts.xlsx!{part}")
        assert {**chart, **found} == chart
        assert [*chart] == [*REVENUE]


@pytest.mark.parametrize("kind", ["bar", "horizontal_bar", "line", "pie", "area", "scatter"])
def test_an_inserted_chart_is_read_as_it_was_named(call: Call, read: Call, kind: str) -> None:
    call("create_document", path="report.xlsx")
    call("insert_table", "report.xlsx", header=["Year", "Revenue"], rows=[[2024, 10], [2025, 20]])
    call("insert_chart", "report.xlsx", type=kind, cells="A1:B3", title="Growth", anchor="E5")
    assert read("chart", "report.xlsx") == {
        "kind": kind,
        "title": "Growth",
        "sheet": "Sheet1",
        "at": "E5",
        "categories": "Sheet1!A2:A3",
        "ranges": ["Sheet1!B2:B3"],
        "series": ["Revenue"],
    }


# Files


def damaged(data: bytes, name: str) -> bytes:
    return {"docx": data[:-40], "xlsx": data[:-40], "png": data[:60], "pdf": b"%PDF-1.4 nothing"}[name]


@pytest.mark.parametrize(
    ("suffix", "application"), [("docx", "Word"), ("xlsx", "Excel"), ("png", "Picture"), ("pdf", "PDF")]
)
def test_a_file_that_opens_gives_a_few_facts(
    workspace: Path, call: Call, read: Call, suffix: str, application: str
) -> None:
    path = workspace / f"a.{suffix}"
    if suffix in {"docx", "xlsx"}:
        call("create_document", path=path.name)
    elif suffix == "pdf":
        pytest.importorskip("pdfplumber")
        path.write_bytes(pdf_of([PLAN]))
    else:
        pytest.importorskip("PIL.Image").radial_gradient("L").save(path)
    data = path.read_bytes()
    assert read("file", path.name) == {"application": application, "size": len(data)}
    path.write_bytes(damaged(data, suffix))
    with pytest.raises(ToolError, match=path.name):
        read("file", path.name)


@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.md", "a.eml", "a.ics"])
def test_files_of_other_formats_open(call: Call, read: Call, name: str) -> None:
    if name == "a.ics":
        pytest.importorskip("icalendar")
    call("create_document", path=name)
    assert read("file", name)["size"] >= 0


def test_a_workbook_with_a_damaged_part_does_not_open(book: Path, read: Call) -> None:
    with zipfile.ZipFile(book) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(book, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data[:-20] if name == "xl/styles.xml" else data)
    with pytest.raises(ToolError, match=r"its part xl/styles[.]xml can't be parsed"):
        read("file", "book.xlsx")


@pytest.mark.parametrize(
    ("form", "name", "args", "why"),
    [
        ("cells", "a.csv!A1", {}, "'a.csv' has no cells to read; these files have: .xlsx, .xlsm"),
        ("chart", "a.txt", {}, "'a.txt' has no chart"),
        ("text", "a.xlsx", {}, "'a.xlsx' has no text to read; these files have: .docx, .pptx, .pdf, .eml, .txt"),
        ("table", "a.txt", {}, "'a.txt' has no table"),
        ("table", "a.csv!Sales", {}, "'a.csv' is read whole, and has no part 'Sales'"),
        ("text", "a.txt!Terms", {}, "'Terms' is no part of 'a.txt'"),
        ("file", "a.txt!Terms", {}, "'a.txt' is read whole"),
        (
            "file",
            "a.txt",
            {"encoding": "utf-8"},
            "args: 'encoding' is no argument of `file` for 'a.txt'; it takes none",
        ),
        ("table", "a.csv", {"start": 1}, "args: 'start' is no argument .*there are: numbers, decimal, header, delimi"),
        ("table", "a.csv", {"limit": 1}, "args: 'limit'"),
        ("table", "a.csv", {"decimal": ";"}, "args: decimal: Input should be 'auto', '.' or ','"),
        ("cells", "a.xlsx!Sheet1!A1", {"header": True}, "args: 'header' is no argument of `cells`"),
        ("text", "b.txt", {}, "no document 'b.txt'"),
        ("text", "../a.txt", {}, "leads out of the workspace"),
        ("text", "a.zip", {}, "only .docx"),
    ],
)
def test_impossible_read_gives_the_reason(
    call: Call, read: Call, form: str, name: str, args: dict[str, Any], why: str
) -> None:
    for path in ("a.csv", "a.txt", "a.xlsx"):
        call("create_document", path=path)
    with pytest.raises(ToolError, match=why):
        read(form, name, **args)


# Policy


@pytest.mark.parametrize(
    ("form", "part", "resources", "seen"),
    [
        ("cells", "sales!b3", ["range:Sales!B3"], "Sales!B3"),
        ("cells", "Wages", ["range:Sales!B2:B3"], "Sales!B2:B3"),
        ("cells", "Revenue[Q1]", ["range:Sales!B2:B3"], "Sales!B2:B3"),
        ("cells", "'It''s mine!'!A1", ["range:It's mine!!A1"], "'It''s mine!'!A1"),
        ("cells", "Nothing", ["file:book.xlsx", "unknown"], "Nothing"),
        ("table", "revenue", ["range:Sales!A1:C4"], "Revenue"),
        ("table", "secret", ["range:Secret!A1"], "Secret"),
        ("text", "", ["file:book.xlsx", "unknown"], ""),
        ("file", "", ["file:book.xlsx"], ""),
    ],
)
async def test_a_reading_names_the_cells_that_it_touches(
    book: Path, surface: DocumentSurface, form: str, part: str, resources: list[str], seen: str
) -> None:
    found = await facts(surface, "book.xlsx", form, part)
    assert [name.replace(f"{book.parent}/", "") for name in found.resources] == resources
    assert found.arguments["part"] == seen


async def facts(surface: DocumentSurface, document: str, form: str, part: str, *patterns: str) -> Any:
    """Ask for the facts that the rules see of a reading."""
    target = next(target for target in surface.targets() if target.id == document)
    bound = Toolbox([surface], (), Lanes()).tools(AgentKind.APP, target)["read_part"]
    assert bound.check({"form": form, "part": part}) is None
    return await bound.facts({"form": form, "part": part}, (), Asked(resources=patterns, explain=True))


async def test_a_chart_touches_the_cells_of_its_names(charts: Path, surface: DocumentSurface) -> None:
    found = await facts(surface, "charts.xlsx", "chart", "My plan!From a cell")
    assert [*found.resources] == ["sheet:My plan", "range:My plan!A1", "range:Sales!C1"]


@pytest.mark.parametrize(
    ("resource", "form", "part", "verdict"),
    [
        ("sheet:Secret", "cells", "Secret!A1", Verdict.DENY),
        ("sheet:Secret", "table", "Secret", Verdict.DENY),
        ("sheet:Secret", "cells", "Sales!B3", Verdict.ALLOW),
        ("sheet:Sales", "cells", "Wages", Verdict.DENY),
        ("range:Sales!B2", "cells", "Wages", Verdict.DENY),
        ("file:book.xlsx", "cells", "Sales!B3", Verdict.DENY),
        ("file:book.xlsx", "file", "", Verdict.DENY),
    ],
)
async def test_a_rule_that_denies_a_sheet_or_file_denies_its_readings(
    book: Path, surface: DocumentSurface, resource: str, form: str, part: str, verdict: Verdict
) -> None:
    rule = PolicyRule(verdict=Verdict.DENY, resource=resource)
    found = await facts(surface, "book.xlsx", form, part, resource)
    info = ToolInfo(name="read_part", description="", schema={}, effect=Effect.READ)
    assert Policy((rule,)).rule("app/excel/book.xlsx", info, found).verdict is verdict


def test_models_are_not_offered_the_tool(surface: DocumentSurface) -> None:
    entry = next(entry for entry in surface.tools() if entry.name == "read_part")
    assert (entry.offered, entry.effect, [*entry.agents]) == (False, Effect.READ, [AgentKind.APP])


# Files of a workspace


def test_the_files_of_a_workspace_are_listed_by_name(workspace: Path, surface: DocumentSurface) -> None:
    for name in ("b.zip", "sub/a.txt", ".hidden", ".git/config", "~$a.docx", "runs/callboard.yaml", "runs/a.txt"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_bytes(b"")
    (workspace / "link.txt").symlink_to(workspace / "b.zip")
    (workspace / "out").symlink_to(workspace.parent)
    os.mkfifo(workspace / "pipe")
    assert dict(surface.files()) == {"b.zip": workspace / "b.zip", "sub/a.txt": workspace / "sub/a.txt"}


def test_too_many_files_are_not_listed(
    workspace: Path, surface: DocumentSurface, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_workspace, "_MOST_FILES", 2)
    for name in ("a", "b"):
        (workspace / name).write_bytes(b"")
    assert [*surface.files()] == ["a", "b"]
    (workspace / "c").write_bytes(b"")
    with pytest.raises(ToolError, match="more than 2 files"):
        surface.files()


def test_a_reading_has_a_limit_of_cells(book: Path, read: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_workbook_parts, "_MOST_CELLS", 4)
    with pytest.raises(ToolError, match="Sales!A1:C2 has 6 cells; at most 4"):
        read("cells", "book.xlsx!Sales!A1:C2")


def test_headings_of_many_spaces_are_read_in_linear_time(workspace: Path, read: Call) -> None:
    spaces = " " * 400_000  # they took minutes
    (workspace / "a.md").write_text(f"# x{spaces}y\n\none\n\n##\t# Two ##\t\n\ntwo\n\n# C#\n\nthree\n")
    assert read("text", "a.md!# Two") == "two"
    assert read("text", "a.md!C#") == "three"
