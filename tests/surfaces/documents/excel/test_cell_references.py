"""References in formulas, to this workbook and to others."""

from __future__ import annotations

import io
import re
import zipfile
from typing import TYPE_CHECKING

import openpyxl
import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st
from office_files import changed, rewritten
from openpyxl.formula.translate import Translator
from openpyxl.workbook.defined_name import DefinedName

from callboard.surfaces import ToolError
from callboard.surfaces.documents.excel._cell_references import areas, mentions, renamed, words
from callboard.surfaces.documents.excel._formula_text import titles, translated

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

RENAMED = {
    # other files stay
    "[1]Prices!A1": "[1]Prices!A1",
    "'[1]Prices'!A1": "'[1]Prices'!A1",
    "'[1]Prices:Sheet4'!A1": "'[1]Prices:Sheet4'!A1",
    r"'C:\old\[book.xlsx]Prices'!$A$1": r"'C:\old\[book.xlsx]Prices'!$A$1",
    "[2]!Prices": "[2]!Prices",
    "[1]Prices!Rate": "[1]Prices!Rate",
    # spans of sheets, names and errors follow
    "SUM(Prices:Sheet4!A1)": "SUM('New 1:Sheet4'!A1)",
    "SUM('Sheet 2:Prices'!A1)": "SUM('Sheet 2:New 1'!A1)",
    "Prices!Rate+Prices!#REF!": "'New 1'!Rate+'New 1'!#REF!",
    "'Prices'!1:3+prices!$A:B": "'New 1'!1:3+'New 1'!$A:B",
    "Prices!A1:Prices!B2": "'New 1'!A1:'New 1'!B2",
    # what only has the same name stays
    'Prices[Prices]&"Prices!A1"': 'Prices[Prices]&"Prices!A1"',
    "MyPrices!A1+'My Prices'!A1": "MyPrices!A1+'My Prices'!A1",
}
CELL = st.from_regex(r"\$?([A-Z]|[A-Z]{2}|[A-V][A-Z]{2})\$?[1-9][0-9]{0,4}", fullmatch=True)
TITLES = ["Sheet1!", "'My sheet'!", "'It''s'!", "[1]Prices!", "'[1]Old prices'!", "Jan:Dec!"]
PARTS = st.one_of(
    CELL,
    st.tuples(CELL, CELL).map(":".join),
    st.tuples(st.sampled_from(TITLES), CELL).map("".join),
    st.sampled_from(["A:C", "$B:$B", "1:3", "$2:$2", "Rate", "Prices[Q1]", '"A1"', "LOG10(5)", "1.5", "TRUE"]),
)  # fmt: skip


@pytest.mark.parametrize(("formula", "new"), RENAMED.items())
def test_rename_changes_own_sheets_only(formula: str, new: str) -> None:
    assert renamed(formula, "Prices", "New 1") == new
    assert mentions(formula, "Prices") == (formula != new)


@given(st.lists(PARTS, min_size=1, max_size=4), st.integers(0, 50), st.integers(0, 20))
def test_translation_is_that_of_openpyxl(parts: list[str], down: int, right: int) -> None:
    formula = "+".join(parts)
    target = f"{openpyxl.utils.get_column_letter(right + 1)}{down + 1}"
    assert f"={translated(formula, down, right)}" == Translator(f"={formula}", origin="A1").translate_formula(target)


def test_name_that_looks_like_a_cell_is_not_a_reference() -> None:
    formula = "ZIP1+XFE5+A1048577+ABCD12+Tax[Q1]+XFD1048576"
    assert [text for _, text in areas(formula)] == ["XFD1048576"]
    assert translated("ZIP1+A1", 1, 0) == "ZIP1+A2"


def test_ends_of_a_range_are_references_of_their_own() -> None:
    assert [text for _, text in areas("SUM(B2:INDEX(C:C,5))+SUM(Own!D1:Own!D4)")] == ["B2", "C:C", "D1", "D4"]
    assert translated("SUM(B2:INDEX(C:C,5))", 1, 0) == "SUM(B3:INDEX(C:C,5))"


def test_translation_off_the_sheet_is_an_error() -> None:
    assert translated("A1+$A$1+A:A", -1, 0) == "#REF!+$A$1+A:A"
    assert translated("XFD1", 0, 1) == "#REF!"


def test_prefix_of_another_workbook_has_no_titles() -> None:
    assert titles("'It''s:B'!") == ["It's", "B"]
    assert titles("[1]A!") == titles(r"'C:\[b.xlsx]A'!") == titles("") == []
    assert [*words("[1]!Rate*Own+[2]!Prices[Price]")] == ["Own"]


def linked(workspace: Path) -> Path:
    """Write a workbook whose pivot source, link and table are another file's."""
    path = workspace / "book.xlsx"
    book = xlsxwriter.Workbook(str(path))
    sheet, other = book.add_worksheet("Prices"), book.add_worksheet("Other")
    sheet.write("A1", "x")
    other.write_url("A1", "external:old.xlsx#Prices!A1")
    other.write_url("A2", "internal:Prices!A1")
    image = io.BytesIO(PICTURE)
    other.insert_image("C1", "p.png", {"image_data": image, "url": "internal:Prices!A1"})
    chart = book.add_chart({"type": "bar"})
    chart.add_series({"values": "=Prices!$A$1:$A$3"})
    other.insert_chart("H1", chart)
    book.close()
    return path


PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060000000040001f61738550000000049454e44ae426082"
)


def test_links_to_another_file_stay_when_a_sheet_is_renamed(workspace: Path, call: Call) -> None:
    path = linked(workspace)
    call("rename_sheet", "book.xlsx", sheet="Prices", title="New")
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist() if name.endswith((".xml", ".rels"))}
    assert re.findall('location="([^"]*)"', parts["xl/worksheets/sheet2.xml"]) == ["Prices!A1", "'New'!A1"]
    assert re.findall('Target="(#[^"]*)"', parts["xl/drawings/_rels/drawing1.xml.rels"]) == ["#'New'!A1"]
    assert "'New'!$A$1:$A$3" in parts["xl/charts/chart1.xml"]


@pytest.mark.parametrize(
    ("own", "after"),
    [('sheet="Prices"', 'sheet="New"'), ('sheet="Prices" r:id="rId9"', 'sheet="Prices" r:id="rId9"')],
)
def test_consolidation_of_another_file_stays(workspace: Path, call: Call, own: str, after: str) -> None:
    path = linked(workspace)
    source = f'<dataConsolidate><dataRefs><dataRef ref="A1:B2" {own}/></dataRefs></dataConsolidate><pageMargins'
    path.write_bytes(
        changed(path.read_bytes(), rewritten("xl/worksheets/sheet2.xml", b"<pageMargins", source.encode()))
    )
    call("rename_sheet", "book.xlsx", sheet="Prices", title="New")
    with zipfile.ZipFile(path) as archive:
        assert after in archive.read("xl/worksheets/sheet2.xml").decode()
    if "r:id" not in own:
        with pytest.raises(ToolError, match=r"a consolidation on .* reads the cells that would be deleted"):
            call("delete_rows_or_columns", "book.xlsx", what="rows", at="1", count=2, sheet="New")


@pytest.fixture
def spanned(workspace: Path) -> Path:
    """Give a workbook with a sum over two of its four sheets."""
    path = workspace / "book.xlsx"
    book = openpyxl.Workbook()
    book.active.title = "Jan"
    for title in ("Feb", "Sum", "Notes"):
        book.create_sheet(title)
    book["Jan"]["A1"], book["Feb"]["A1"] = 1, 2
    book["Sum"]["A1"] = "=SUM(Jan:Feb!A1)"
    book["Sum"]["B1"] = "=ZIP1*2"
    book["Sum"]["B2"] = "=SUM(A1:INDEX(A:A,3))"
    book.defined_names["ZIP1"] = DefinedName("ZIP1", attr_text="Jan!$A$1")
    book.save(path)
    return path


def test_rows_of_spanned_sheets_are_not_moved(spanned: Path, call: Call) -> None:
    with pytest.raises(ToolError, match="reads the same cells of several sheets"):
        call("insert_rows_or_columns", "book.xlsx", what="rows", at="1", sheet="Feb")
    call("insert_rows_or_columns", "book.xlsx", what="rows", at="1", sheet="Notes")
    call("insert_rows_or_columns", "book.xlsx", what="rows", at="1", sheet="Sum")
    sheet = openpyxl.load_workbook(spanned)["Sum"]
    assert [sheet[name].value for name in ("A2", "B2", "B3")] == [
        "=SUM(Jan:Feb!A1)", "=ZIP1*2", "=SUM(A2:INDEX(A:A,3))"
    ]  # fmt: skip


def test_renamed_end_of_a_span_is_followed(spanned: Path, call: Call) -> None:
    call("rename_sheet", "book.xlsx", sheet="Feb", title="März")
    assert openpyxl.load_workbook(spanned)["Sum"]["A1"].value == "=SUM(Jan:März!A1)"
    call("rename_sheet", "book.xlsx", sheet="März", title="Feb 2026")
    assert openpyxl.load_workbook(spanned)["Sum"]["A1"].value == "=SUM('Jan:Feb 2026'!A1)"


def test_links_of_openpyxl_and_texts_with_a_title(workspace: Path, call: Call) -> None:
    path = workspace / "book.xlsx"
    book = openpyxl.Workbook()
    first, second = book.active, book.create_sheet("My data")
    first["A1"], first["A1"].hyperlink = "go", "#'My data'!B2"
    first["A2"], second["C1"] = "=INDIRECT(\"'My data'!B2\")", '=HYPERLINK("#My data!A1","up")'
    first["A3"], first["A4"] = "='My data'!B2&\"Not my data!\"", '="xMy data!"'
    book.save(path)
    call("insert_rows_or_columns", path.name, what="rows", at="1", sheet="My data")
    answer = call("rename_sheet", path.name, sheet="My data", title="New")
    assert answer["title_in_texts_stays"] == ["Sheet!A2", "Sheet!A3", "New!C2"]
    assert b"Target=\"#'New'!B3\"" in zipfile.ZipFile(path).read("xl/worksheets/_rels/sheet1.xml.rels")


def test_renamed_header_leaves_another_files_table(workspace: Path, call: Call) -> None:
    call("create_document", path="book.xlsx")
    call("insert_table", "book.xlsx", header=["Item", "Price"], rows=[["a", 1]], name="Prices")
    path = workspace / "book.xlsx"
    book = openpyxl.load_workbook(path)
    book.active["D1"], book.active["D2"] = "=SUM([1]!Prices[Price])", "=SUM(Prices[Price])"
    book.save(path)
    call("get_controls", "book.xlsx")
    call("write_range", "book.xlsx", cell="B1", values=[["Cost"]])
    sheet = openpyxl.load_workbook(path).active
    assert [sheet["D1"].value, sheet["D2"].value] == ["=SUM([1]!Prices[Price])", "=SUM(Prices[Cost])"]


def test_sort_moves_references_to_other_files_and_keeps_names(workspace: Path, call: Call) -> None:
    path = workspace / "book.xlsx"
    book = openpyxl.Workbook()
    for row in (["Name", "Value"], ["b", "=[1]Old!A2+ZIP1"], ["a", "=A3+$A$1"]):
        book.active.append(row)
    book.save(path)
    call("sort_range", "book.xlsx", by=[{"column": "Name"}])
    sheet = openpyxl.load_workbook(path).active
    assert [sheet["B2"].value, sheet["B3"].value] == ["=A2+$A$1", "=[1]Old!A3+ZIP1"]


@pytest.fixture
def own_table(workspace: Path) -> Path:
    """Write a table with the references that XlsxWriter makes of ``[@Qty]``, and a rule that reads a cell."""
    path = workspace / "book.xlsx"
    book = xlsxwriter.Workbook(str(path))
    sheet = book.add_worksheet("Data")
    columns = [
        {"header": "Item"},
        {"header": "Qty", "total_function": "sum"},
        {"header": "Sum", "formula": "=[@Qty]*2", "total_function": "sum"},
    ]
    sheet.add_table("A1:C4", {"name": "Items", "columns": columns, "data": [["a", 2], ["b", 4]], "total_row": True})
    scale = {"min_type": "formula", "min_value": "=$F$3", "max_type": "num", "max_value": 9}
    sheet.conditional_format("B2:B3", {"type": "2_color_scale", **scale})
    sheet.write("H1", "=Items[Item]&F3")
    book.close()
    return path


def test_limit_of_a_color_scale_follows(own_table: Path, call: Call) -> None:
    call("insert_rows_or_columns", own_table.name, what="rows", at="3")
    call("insert_rows_or_columns", own_table.name, what="columns", at="E")
    assert b'<cfvo type="formula" val="$G$4"/>' in zipfile.ZipFile(own_table).read("xl/worksheets/sheet1.xml")


def test_columns_of_xlsx_writers_tables_follow(own_table: Path, call: Call) -> None:
    with pytest.raises(ToolError, match=r"Data!C2 refers to the column 'Qty' of the table Items"):
        call("delete_rows_or_columns", own_table.name, what="columns", at="B")
    assert call("read_range", own_table.name, cells="C2:C3")["values"] == [[4], [8]]
    call("write_range", own_table.name, cell="B1", values=[["Count"]])
    assert openpyxl.load_workbook(own_table).active["C3"].value == "=[[#This Row],[Count]]*2"
    call("delete_rows_or_columns", own_table.name, what="columns", at="C")  # its totals go with it
    assert openpyxl.load_workbook(own_table).active["B4"].value == "=SUBTOTAL(109,[Count])"


def test_lost_references_are_named(own_table: Path, call: Call) -> None:
    answer = call("delete_rows_or_columns", own_table.name, what="columns", at="F")
    assert answer["references_lost"] == ["Data!G1", "a conditional format on Data"]
    assert "references_lost" not in call("delete_rows_or_columns", own_table.name, what="columns", at="G")
