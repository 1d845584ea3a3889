"""Large sheets read in blocks: their answers equal those of sheets that are read whole."""

from __future__ import annotations

import datetime as dt
import io
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
import xlsxwriter
from lxml import etree
from openpyxl import Workbook, load_workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.utils.datetime import MAC_EPOCH
from openpyxl.worksheet.formula import ArrayFormula
from openpyxl.worksheet.table import Table

from callboard.actors.runtime import Lease
from callboard.surfaces import EffectGuard, ToolError
from callboard.surfaces.documents import DocumentSurface, _streamed_part
from callboard.surfaces.documents._workspace import Workspace
from callboard.surfaces.documents.excel import _row_blocks
from callboard.surfaces.documents.excel._workbook import ExcelFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Call = Callable[..., Any]

_WHOLE = 1 << 40
_ERRORS = ["#DIV/0!", "#N/A"]
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def stream(monkeypatch: pytest.MonkeyPatch, block_bytes: int = 700) -> None:
    """Have all sheets read in small blocks."""
    monkeypatch.setattr(_streamed_part, "STREAMED_BYTES", 0)
    monkeypatch.setattr(_streamed_part, "BLOCK_BYTES", block_bytes)


def answer(call: Call, *arguments: Any, **keywords: Any) -> Any:
    """Call a tool; an error is an answer, too."""
    try:
        return call(*arguments, **keywords)
    except ToolError as error:
        return str(error)


def answers_of(call: Call, surface: DocumentSurface, document: str) -> list[Any]:
    """Ask the tools that only read about a workbook."""
    target = next(target for target in surface.targets() if target.id == document)
    look = surface.observe(target)
    answers: list[Any] = [look.controls, look.window]
    titles = [control.name for control in look.controls if control.kind == "sheet"]
    for title in titles:
        answers += [
            answer(call, "read_range", document, sheet=title, cells=cells) for cells in ("", "A1:D9", "B30:E52")
        ]
        answers.append(answer(call, "summarize", document, sheet=title))
        answers.append(answer(call, "summarize", document, sheet=title, by="B"))
        conditions = [{"column": "A", "operator": ">", "value": 20}]
        answers.append(answer(call, "summarize", document, sheet=title, where=conditions))
    return answers


def written_by_xlsxwriter(path: Path) -> None:
    """Write a workbook with all kinds of values by XlsxWriter."""
    book = xlsxwriter.Workbook(path)
    date, bold, red = (
        book.add_format(look) for look in ({"num_format": "yyyy-mm-dd"}, {"bold": True}, {"font_color": "red"})
    )
    sheet = book.add_worksheet("Data")
    sheet.write_row(0, 0, ["Id", "Region", "Day", "Amount", "Paid", "Double"])
    for row in range(1, 60):
        sheet.write_number(row, 0, row)
        sheet.write_string(row, 1, ["North & West", "<South>", " East ", 'say "x"'][row % 4])
        sheet.write_datetime(row, 2, dt.datetime.fromisoformat(f"2024-01-{row % 28 + 1:02}T{row % 3:02}:00"), date)
        sheet.write_number(row, 3, row * 1.25)
        sheet.write_boolean(row, 4, row % 2 == 0)
        sheet.write_formula(row, 5, f"=D{row + 1}*2", None, row * 2.5 if row % 5 else 0)
    sheet.write_blank(70, 9, None, bold)
    sheet.set_row(12, None, None, {"hidden": True})
    sheet.set_row(13, 0)
    sheet.set_row(14, 30)
    sheet.set_column("H:I", 10, None, {"hidden": True})
    sheet.merge_range("H3:I4", "merged")
    sheet.write_rich_string("H10", "plain ", bold, "bold", red, " red")
    sheet.write_array_formula("H20:H22", "{=A2:A4*2}", None, 0)
    sheet.write_formula("H30", "=1/0", None, "#DIV/0!")
    sheet.data_validation("B2:B60", {"validate": "list", "source": ["North & West", "<South>"]})
    sheet.autofilter("A1:F60")
    other = book.add_worksheet("Table")
    other.add_table("B2:D20", {"data": [[row, f"text {row}", row / 3] for row in range(18)]})
    book.add_worksheet("Empty")
    book.close()


def written_by_openpyxl(path: Path) -> None:
    """Write a workbook of 1904 with inline rich texts by openpyxl."""
    book = Workbook()
    book.epoch = MAC_EPOCH
    sheet = book.active
    sheet.title = "Data"
    sheet.append(["Id", "Name", "Day", "Time", "Share"])
    for row in range(1, 60):
        sheet.append(
            [
                row,
                f"name {row % 7}",
                dt.datetime.fromisoformat(f"2024-01-{row % 28 + 1:02}"),
                dt.time(row % 24, 30),
                row / 60,
            ]
        )
        sheet.cell(row + 1, 5).number_format = "0%"
    sheet["H2"] = CellRichText("a ", TextBlock(InlineFont(b=True), "b"), " c")
    sheet["H3"] = "#N/A"
    sheet["H4"] = ArrayFormula("H4:H6", "=A2:A4+1")
    sheet.merge_cells("H8:J8")
    sheet.protection.sheet = True
    book.save(path)


def sheet_of(rows: str, around: tuple[str, str] = ("", ""), root: str = f'<worksheet xmlns="{_MAIN}">') -> str:
    """Return the XML of a sheet."""
    return f"{root}{around[0]}<sheetData>{rows}</sheetData>{around[1]}</worksheet>"


def replace_sheet(path: Path, xml: str, number: int = 1) -> None:
    """Write other XML in the place of a workbook's sheet."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            is_sheet = entry.filename.endswith(f"sheet{number}.xml")
            new.writestr(entry.filename, xml.encode() if is_sheet else old.read(entry))
    path.write_bytes(out.getvalue())


NUMBERED = "".join(f'<row r="{row}"><c r="A{row}"><v>{row}</v></c></row>' for row in range(1, 61))
SHARING = "".join(
    f'<row r="{row}"><c r="A{row}"><v>{row}</v></c><c r="B{row}"><f t="shared" si="0"/><v>{row * 2}</v></c></row>'
    for row in range(1, 61)
)
RICH_TEXT = '"A5" t="inlineStr"><is><r><rPr><family val="2"/></rPr><t>x</t></r></is>'
UNUSUAL = {
    "without names": "".join(f"<row><c><v>{row}</v></c><c t='b'><v>1</v></c></row>" for row in range(60)),
    "spaces": NUMBERED.replace("><", ">\n  <"),
    "shared formulas": SHARING.replace(' si="0"/>', ' ref="B1:B60" si="0">A1*2</f>', 1),
    "comments": NUMBERED.replace('<row r="30">', '<!-- <row r="9"> --><row r="30">'),
    "text in CDATA": NUMBERED.replace("<v>7</v>", "<v><![CDATA[7]]></v>"),
    "no values": NUMBERED.replace("<v>60</v>", "").replace("<v>1</v>", "<v></v>"),
    "inline texts": NUMBERED.replace('"A5"><v>5</v>', RICH_TEXT),
    "dates": NUMBERED.replace('"A5"><v>5</v>', '"A5" t="d"><v>2024-05-31T10:00:00</v>'),
    "errors": NUMBERED.replace('"A5"><v>5</v>', '"A5" t="e"><v>#DIV/0!</v>'),
    "hidden rows": NUMBERED.replace('<row r="9">', '<row r="9" spans="1:1" hidden="1">'),
    "rows without height": NUMBERED.replace('<row r="40">', '<row r="40" ht="0.0">'),
    "apostrophes": NUMBERED.replace('<row r="9">', "<row r='9' hidden='true'>"),
    "rows twice": NUMBERED + '<row r="30"><c r="A30"><v>99</v></c></row>',
    "columns backwards": NUMBERED.replace('<c r="A9">', '<c r="C9"><v>3</v></c><c r="A9">'),
    "a column too far": NUMBERED.replace('"A9"', '"XFE9"'),
    "a row too far": NUMBERED.replace('<row r="60">', '<row r="1048577">'),
    "not closed": NUMBERED.replace("</c></row>", "</row>", 1),
    "extensions": NUMBERED.replace("</v></c></row>", '</v></c><extLst><ext uri="x"/></extLst></row>', 3),
}


@pytest.mark.parametrize("write", [written_by_xlsxwriter, written_by_openpyxl])
@pytest.mark.parametrize("block_bytes", [200, 3000])
def test_streamed_reader_answers_as_the_whole_one(
    write: Callable[[Path], None],
    block_bytes: int,
    call: Call,
    surface: DocumentSurface,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    write(workspace / "book.xlsx")
    monkeypatch.setattr(_streamed_part, "STREAMED_BYTES", _WHOLE)
    whole = answers_of(call, surface, "book.xlsx")
    stream(monkeypatch, block_bytes)
    assert answers_of(call, surface, "book.xlsx") == whole


@pytest.mark.parametrize("rows", UNUSUAL.values(), ids=UNUSUAL)
def test_streamed_reader_answers_as_the_whole_one_for_unusual_rows(
    rows: str, call: Call, surface: DocumentSurface, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    written_by_openpyxl(workspace / "book.xlsx")
    replace_sheet(workspace / "book.xlsx", sheet_of(rows))
    monkeypatch.setattr(_streamed_part, "STREAMED_BYTES", _WHOLE)
    try:
        whole = answers_of(call, surface, "book.xlsx")
    except ToolError as error:
        whole = [str(error)]
    stream(monkeypatch)
    try:
        streamed = answers_of(call, surface, "book.xlsx")
    except ToolError as error:
        streamed = [str(error)]
    assert streamed == whole


def test_filter_copies_the_same_rows_from_a_streamed_sheet(
    call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    copies = []
    for name, streamed_bytes in (("whole.xlsx", _WHOLE), ("blocks.xlsx", 0)):
        written_by_xlsxwriter(workspace / name)
        stream(monkeypatch)
        monkeypatch.setattr(_streamed_part, "STREAMED_BYTES", streamed_bytes)
        where = [{"column": "Amount", "operator": ">", "value": 40}]
        answered = call("filter_rows", name, where=where, to="New!A1", sheet="Data", cells="A1:E60")
        copies.append((answered, call("read_range", name, sheet="New")))
    assert copies[0] == copies[1]


WRITES = {
    "number": ("write_range", {"cell": "A30", "values": [[7]]}),
    "text": ("write_range", {"cell": "B31", "values": [["new"], [None]]}),
    "date": ("write_range", {"cell": "C5", "values": [[{"date": "2024-05-31"}]]}),
    "new row between blocks": ("write_range", {"cell": "B62", "values": [[1, 2], [3, 4]]}),
    "row far below": ("write_range", {"cell": "C900", "values": [[1]]}),
    "column to the right": ("write_range", {"cell": "M3", "values": [["right"]]}),
    "many rows": ("write_range", {"cell": "A2", "values": [[row] for row in range(70)]}),
    "many new rows": ("write_range", {"cell": "B59", "values": [[row, "x"] for row in range(150)]}),
    "emptied corner": ("write_range", {"cell": "A60", "values": [[None] * 5]}),
    "value in place of an array": ("write_range", {"cell": "H4", "values": [[1], [2], [3]]}),
    "merged cell": ("write_range", {"cell": "I8", "values": [[1]]}),
    "formula": ("set_formula", {"cells": "G2:G60", "formula": "=A2*2"}),
    "array formula": ("set_formula", {"cells": "G2:G60", "formula": "{=A2:A60*2}"}),
    "shared formula": ("write_range", {"cell": "B1", "values": [[5]], "sheet": "Shared"}),
    "value that formulas read": ("write_range", {"cell": "A40", "values": [[5]], "sheet": "Shared"}),
    "header of a table": ("write_range", {"cell": "B1", "values": [["Other"]], "sheet": "Table"}),
}


def written_for_edits(path: Path) -> None:
    """Write a workbook with shared formulas and a table."""
    written_by_openpyxl(path)
    book = load_workbook(path, rich_text=True)
    book["Data"].protection.sheet = False
    book.create_sheet("Shared")
    table = book.create_sheet("Table")
    table.append(["Id", "Name", "Twice"])
    for row in range(2, 40):
        table.append([row, f"name {row}", "=T1[[#This Row],[Id]]*LEN(T1[[#This Row],[Name]])"])
    table.add_table(Table(displayName="T1", ref="A1:C39"))
    book.save(path)
    replace_sheet(path, sheet_of(UNUSUAL["shared formulas"]), 2)


@pytest.mark.parametrize("name", WRITES)
def test_streamed_edit_writes_the_xml_of_the_whole_one(name: str, workspace: Path, monkeypatch: pytest.MonkeyPatch):
    tool, arguments = WRITES[name]
    stream(monkeypatch, 500)
    written_for_edits(workspace / "book.xlsx")
    data = (workspace / "book.xlsx").read_bytes()
    results = []
    for streamed_bytes in (_WHOLE, 0):
        monkeypatch.setattr(_streamed_part, "STREAMED_BYTES", streamed_bytes)
        (workspace / "book.xlsx").write_bytes(data)
        surface = DocumentSurface(workspace, compute_cells=0)
        entry = next(entry for entry in surface.tools() if entry.name == tool)
        with EffectGuard(Lease("here", 1)).active():
            values = entry.tool.validate({"document": "book.xlsx", "sheet": "Data", **arguments})
            try:
                results.append([entry.tool.fn(**values)])
            except ToolError as error:
                results.append([str(error)])
        with zipfile.ZipFile(workspace / "book.xlsx") as archive:
            sheets = [entry for entry in archive.namelist() if entry.endswith(".xml")]
            results[-1] += [etree.tostring(etree.fromstring(archive.read(part)), method="c14n") for part in sheets]
    assert results[0] == results[1]


def test_sheet_below_the_limit_is_read_whole(workspace: Path):
    written_by_xlsxwriter(workspace / "book.xlsx")
    snapshot = Workspace(workspace, 10_000_000).read("book.xlsx")
    assert not ExcelFile.load(snapshot, 10_000_000, streamed=True).is_streamed


def test_streamed_sheet_keeps_few_rows_in_memory(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    written_by_xlsxwriter(workspace / "book.xlsx")
    stream(monkeypatch, 200)
    monkeypatch.setattr(_row_blocks, "_MOST_VALUES", 30)
    file = ExcelFile.load(Workspace(workspace, 10_000_000).read("book.xlsx"), 10_000_000, streamed=True)
    blocks = file.sheet("Data").blocks
    assert blocks is not None
    assert len(blocks) > 20
    for row in range(1, 61):
        file.sheet("Data").value(row, 1)
    assert 10 < blocks._value_count <= 30


def test_version_of_a_file_is_scanned_once(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    written_by_xlsxwriter(workspace / "book.xlsx")
    stream(monkeypatch)
    scans = []
    scan = _streamed_part.StreamedPart.scan
    monkeypatch.setattr(_streamed_part.StreamedPart, "scan", lambda *parts: scans.append(parts[1]) or scan(*parts))
    files = Workspace(workspace, 10_000_000)
    for _ in range(3):
        ExcelFile.load(files.read("book.xlsx"), 10_000_000, streamed=True)
    first_scans = len(scans)
    written_by_openpyxl(workspace / "book.xlsx")
    ExcelFile.load(files.read("book.xlsx"), 10_000_000, streamed=True)
    assert (first_scans, len(scans)) == (4, 5)


def test_cache_of_no_megabytes_keeps_nothing(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    written_by_openpyxl(workspace / "book.xlsx")
    stream(monkeypatch)
    snapshot = Workspace(workspace, 10_000_000, cache_mb=0).read("book.xlsx")
    assert ExcelFile.load(snapshot, 10_000_000, streamed=True).is_streamed
    assert snapshot.cache.get(snapshot.fingerprint, "indexes") is None
