"""Edits of a workbook, and all that follows them."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

import openpyxl
import pytest
from openpyxl.comments import Comment
from openpyxl.formatting.rule import CellIsRule
from openpyxl.styles import PatternFill
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.filters import AutoFilter
from openpyxl.worksheet.table import Table

from callboard.surfaces import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Call

HEADER = ["Item", "Quantity", "Price", "Total"]
ROWS = [["bolt", 2, 1.5], ["nut", 5, 0.5], ["gear", 1, 20]]


@pytest.fixture
def book(workspace: Path, call: Call) -> Path:
    """Give a workbook with four columns, formulas, and a row of totals."""
    path = workspace / "book.xlsx"
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.title = "Sheet1"
    sheet.append(HEADER)
    for number, row in enumerate(ROWS, start=2):
        sheet.append([*row, f"=B{number}*C{number}"])
    sheet.append(["Sum", "=SUM(B2:B4)", None, "=SUM(D2:D4)"])
    made.create_sheet("Other")["A1"] = "=Sheet1!D5*2"
    made.save(path)
    call("get_controls", path.name)
    return path


def values(call: Call, **arguments: object) -> list[list[object]]:
    """Read the values of the workbook."""
    return call("read_range", "book.xlsx", **arguments)["values"]


def formulas(call: Call, **arguments: object) -> dict[str, str]:
    """Read the formulas of the workbook."""
    return call("read_range", "book.xlsx", **arguments)["formulas"]


def saved(book: Path, call: Call, change: Callable[[openpyxl.Workbook], None]) -> None:
    """Change the workbook with another program."""
    made = openpyxl.load_workbook(book)
    change(made)
    made.save(book)
    call("get_controls", book.name)


def parts(path: Path) -> dict[str, bytes]:
    """Unpack a workbook."""
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# Results


def test_results_follow_an_edit(book: Path, call: Call) -> None:
    call("write_range", book.name, values=[[10]], cell="B2")
    assert values(call) == [
        HEADER,
        ["bolt", 10, 1.5, 15],
        ["nut", 5, 0.5, 2.5],
        ["gear", 1, 20, 20],
        ["Sum", 16, None, 37.5],
    ]
    assert values(call, sheet="Other") == [[75]]
    assert openpyxl.load_workbook(book, data_only=True)["Other"]["A1"].value == 75


def test_a_new_formula_has_its_result(book: Path, call: Call) -> None:
    call("set_formula", book.name, cells="F2:F4", formula='=IF(B2>1,"many","one")')
    assert values(call, cells="F2:F4") == [["many"], ["many"], ["one"]]


def test_a_result_that_is_an_error_is_read_as_one(book: Path, call: Call) -> None:
    call("set_formula", book.name, cells="F2", formula="=B2/0")
    assert values(call, cells="F2") == [["#DIV/0!"]]
    assert openpyxl.load_workbook(book, data_only=True)["Sheet1"]["F2"].data_type == "e"


def test_formulas_of_a_file_without_results_are_computed_when_read(book: Path, call: Call) -> None:
    read = call("read_range", book.name, cells="D2:D5")
    assert (read["values"], read["not_computed"]) == ([[3], [2.5], [20], [25.5]], [])


def test_formula_depending_on_an_unknown_function_is_not_computed(book: Path, call: Call) -> None:
    def change(made: openpyxl.Workbook) -> None:
        made["Sheet1"]["F2"] = "=_xlfn.NEWFUNCTION(B2)"
        made["Sheet1"]["F3"] = "=IFERROR(F2,0)"

    saved(book, call, change)
    call("write_range", book.name, values=[[9]], cell="B2")
    read = call("read_range", book.name, cells="D2:F3")
    assert read["values"] == [[13.5, None, "(not computed)"], [2.5, None, "(not computed)"]]
    assert read["not_computed"] == ["F2", "F3"]


def test_results_that_an_edit_does_not_touch_stay(book: Path, call: Call) -> None:
    call("write_range", book.name, values=[["x"]], cell="B2")
    call("write_range", book.name, values=[[2]], cell="B2")
    sheet = parts(book)["xl/worksheets/sheet1.xml"]
    call("write_range", book.name, values=[["note"]], cell="G9")
    assert sheet.count(b"<v>") == parts(book)["xl/worksheets/sheet1.xml"].count(b"<v>")


# Formulas


def test_formula_that_reads_its_own_cell_is_refused_with_a_suggestion(book: Path, call: Call) -> None:
    call("write_range", book.name, cell="K1", values=[["Sum of"], [1], [2.5], [None]])
    before = book.read_bytes()
    with pytest.raises(
        ToolError, match=r"'=SUM\(K2:K9\)' in K6 refers to its own cell; the numbers above it are K2:K3"
    ):
        call("set_formula", book.name, cells="K6", formula="=SUM(K2:K9)")
    with pytest.raises(ToolError, match=r"in L1 refers to its own cell$"):
        call("set_formula", book.name, cells="L1:L3", formula="=SUM(L:L)")
    assert book.read_bytes() == before
    call("set_formula", book.name, cells="L2:L3", formula="=ROW(L2)+SUM(K:K)+SUM(L$1:L1)")


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("=Quantity * Price", "no name 'Quantity'; the column 'Quantity' is B2:B5: write B2"),
        ("=SUM(Wages)", "no name 'Wages'; write cells"),
        ("=SUM(Goods[Weight])", "the table Goods has no column 'Weight'; there are: 'a', 'b'"),
        ("=SUM(Goods[bb])", "the table Goods has no column 'bb'; did you mean 'b'"),
        ("=SUM(Good[a])", "no table 'Good'; did you mean 'Goods'"),
        ("=[@a]*2", r"A1:D5 lies in no table; write the table's name before \[@a\]"),
        ("=SUM([a])", "A1:D5 lies in no table"),
        ("=Goods[[#This Row],a]", r"is malformed; write it like Table\[\[#Headers\],\[Column\]\]"),
        ("=Nope!A1", "there is no sheet 'Nope'; there are: 'Sheet1', 'Other'"),
        ("=SUM('Sheet 1'!A1:A3)", "there is no sheet 'Sheet 1'; did you mean 'Sheet1'"),
        ("=SUM(Sheet1:Others!A1)", "there is no sheet 'Others'; did you mean 'Other'"),
        ("=Sheet1!A1:Nope!B2", "there is no sheet 'Nope'"),
        ("=Nope!Rate", "there is no sheet 'Nope'"),
    ],
)
def test_undefined_name_is_refused_with_a_suggestion(book: Path, call: Call, formula: str, why: str) -> None:
    call("insert_table", book.name, header=["a", "b"], rows=[[1, 2]], cell="J1", name="Goods")
    before = book.read_bytes()
    with pytest.raises(ToolError, match=why):
        call("set_formula", book.name, cells="Sheet1!A1:D5", formula=formula)
    assert book.read_bytes() == before


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("=Goods[@b]*2", "=Goods[[#This Row],[b]]*2"),
        ("=goods[@[unit cost]]", "=Goods[[#This Row],[unit cost]]"),
        ("=SUM(Goods[@[b]:[unit cost]])", "=SUM(Goods[[#This Row],[b]:[unit cost]])"),
        ("=[@b]+SUM([b])", "=Goods[[#This Row],[b]]+SUM(Goods[b])"),
        ("=COLUMNS(Goods[@])", "=COLUMNS(Goods[#This Row])"),
        ("=Goods[ [#Headers] , [b] ]", "=Goods[[#Headers],[b]]"),
        ("=Goods[@[EUR '[net']]]", "=Goods[[#This Row],[EUR '[net']]]"),
        ("=SUM(Goods[b]:Goods[unit cost])", "=SUM(Goods[b]:Goods[unit cost])"),
        ("=ROWS(Goods[#All])", "=ROWS(Goods[#All])"),
    ],
)
def test_structured_references_are_written_as_files_hold_them(
    book: Path, call: Call, written: str, stored: str
) -> None:
    header = ["a", "b", "unit cost", "EUR [net]", "c"]
    call("insert_table", book.name, header=header, rows=[[1, 2, 3, 4, None]], cell="J1", name="Goods")
    assert call("set_formula", book.name, cells="N2", formula=written)["formula"] == stored
    assert formulas(call, cells="N2") == {"N2": stored}
    # LibreOffice takes a reference to all cells of a row or table, the formula's own too, for a circle.
    circles = {"=SUM(Goods[b]:Goods[unit cost])", "=ROWS(Goods[#All])", "=COLUMNS(Goods[@])"}
    assert written in circles or values(call, cells="N2") != [["(not computed)"]]


def test_a_formula_may_name_any_sheet(book: Path, call: Call) -> None:
    call("add_sheet", book.name, title="It's new")
    call("set_formula", book.name, cells="F1", sheet="Sheet1", formula="=SUM(sheet1:other!B2,'it''s NEW'!A1)")
    call("set_formula", book.name, cells="F2", sheet="Sheet1", formula="=SUM(Sheet1!B2:Sheet1!B3)")
    assert formulas(call, cells="F1:F2", sheet="Sheet1") == {
        "F1": "=SUM(Sheet1:Other!B2,'It''s new'!A1)",
        "F2": "=SUM(Sheet1!B2:Sheet1!B3)",
    }


@pytest.mark.parametrize("reference", ["goods[unit COST]", "GOODS[[#data],[unit COST]]"])
def test_columns_of_tables_are_found_in_any_capitals(book: Path, call: Call, reference: str) -> None:
    call("insert_table", book.name, header=["a", "Unit cost"], rows=[[1, 2], [3, 4]], cell="J1", name="Goods")
    stored = call("set_formula", book.name, cells="N1", formula=f"=SUM({reference})")["formula"]
    assert stored in {"=SUM(Goods[Unit cost])", "=SUM(Goods[[#Data],[Unit cost]])"}
    assert values(call, cells="N1") == [[6]]


def test_the_result_of_a_title_in_a_text_is_not_kept_after_a_rename(sheet, call) -> None:
    name = sheet([[1, '=INDIRECT("Sheet!A1")', "=B1+1"]])
    assert values(call, cells="B1:C1") == [[1, 2]]
    call("rename_sheet", name, sheet="Sheet", title="New")
    assert values(call, cells="B1:C1") == [["#REF!", "#REF!"]]


def test_structured_references_follow_renamed_headers(book: Path, call: Call) -> None:
    rows = [[1, 2, 3], [4, 5, 6]]
    call("insert_table", book.name, sheet="Other", header=["a", "b", "c"], rows=rows, cell="J1", name="Goods")
    call("insert_table", book.name, sheet="Other", header=["a", "b"], rows=[[1, 2]], cell="N1", name="Bads")
    for cell, formula in {
        "F1": "=SUM(Goods[a])",
        "F2": "=SUM(goods[[#Data],[a]:[B]])&Goods[[#Headers],[a]]",
        "F3": '=SUM(Bads[a])&"Goods[a]"',
        "F4": "=SUM(Goods[c])",
    }.items():
        call("set_formula", book.name, sheet="Sheet1", cells=cell, formula=formula)
    saved(book, call, lambda made: made.defined_names.add(DefinedName("Sum", attr_text="SUM(Goods[b])")))
    call("write_range", book.name, sheet="Other", cell="J1", values=[["b", "a #1 [it's]"]])
    assert formulas(call, sheet="Sheet1", cells="F1:F4") == {
        "F1": "=SUM(Goods[b])",
        "F2": "=SUM(Goods[[#Data],[b]:[a '#1 '[it''s']]])&Goods[[#Headers],[b]]",
        "F3": '=SUM(Bads[a])&"Goods[a]"',
        "F4": "=SUM(Goods[c])",
    }
    assert values(call, sheet="Sheet1", cells="F1:F4") == [[5], ["12b"], ["1Goods[a]"], [9]]
    assert openpyxl.load_workbook(book).defined_names["Sum"].attr_text == "SUM(Goods[a '#1 '[it''s']])"


def test_references_without_their_table_follow_and_are_computed(workspace: Path, call: Call) -> None:
    made = openpyxl.Workbook()
    for row in (["Item", "Price"], ["a", 1], ["b", 2], ["Total", "=SUBTOTAL(109,[Price])"]):  # as by XlsxWriter
        made.active.append(row)
    table = Table(displayName="Goods", name="Goods", ref="A1:B4", totalsRowCount=1)
    table.autoFilter = AutoFilter(ref="A1:B3")
    made.active.add_table(table)
    made.save(workspace / "goods.xlsx")
    call("append_rows", "goods.xlsx", values=[["c", 4]])
    call("write_range", "goods.xlsx", values=[["Cost"]], cell="B1")
    read = call("read_range", "goods.xlsx", cells="B5")
    assert (read["formulas"], read["values"]) == ({"B5": "=SUBTOTAL(109,[Cost])"}, [[7]])


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        ("=DATE(2024,1,5)", "2024-01-05"),
        ("=EDATE($K$1, 1)", "2024-06-01"),
        ("=EOMONTH(K1,MAX(0,0))", "2024-05-31"),
        ("=K1+30", "2024-05-31"),
        ("=7 + sheet1!$K$1 - L1", "2024-05-06"),
        ("=K1", "2024-05-01"),
        ("=K1-K2", -31),
        ("=K1+K2", 90857),
        ("=100000-K1", 54587),
        ("=YEAR(K1)+1", 2025),
        ("=DATE(2024,1,5)-DATE(2024,1,1)", 4),
        ("=K1*1", 45413),
        ("=L1+1", 3),
        ("=M1+1", 1.25),
    ],
)
def test_a_formula_of_dates_is_shown_as_a_date(book: Path, call: Call, formula: str, shown: object) -> None:
    rows = [[{"date": "2024-05-01"}, 2, 0.25], [{"date": "2024-06-01"}, None, None]]
    call("write_range", book.name, cell="K1", sheet="Sheet1", values=rows)
    call("format_cells", book.name, cells="M1", number_format="hh:mm")
    call("set_formula", book.name, cells="P1", formula=formula)
    assert values(call, cells="P1") == [[shown]]


def test_a_format_other_than_general_stays_where_a_formula_is_a_date(book: Path, call: Call) -> None:
    call("format_cells", book.name, cells="P1", number_format="dd.mm.yyyy")
    call("set_formula", book.name, cells="P1:P2", formula="=DATE(2024,1,5)")
    made = openpyxl.load_workbook(book)["Sheet1"]
    assert [made["P1"].number_format, made["P2"].number_format] == ["dd.mm.yyyy", "yyyy-mm-dd"]


def test_defined_names_and_tables_are_accepted(book: Path, call: Call) -> None:
    saved(book, call, lambda made: made.defined_names.add(DefinedName("Rate", attr_text="Sheet1!$C$2")))
    call("insert_table", book.name, header=["a", "b"], rows=[[1, 2]], cell="J1", name="Goods")
    call("set_formula", book.name, cells="F1", formula="=rate*SUM(Goods[b])")
    assert values(call, cells="F1") == [[3]]


# Rows and columns


def test_formulas_names_rules_notes_and_charts_follow_an_inserted_row(book: Path, call: Call) -> None:
    def change(made: openpyxl.Workbook) -> None:
        sheet = made["Sheet1"]
        made.defined_names.add(DefinedName("Prices", attr_text="Sheet1!$C$2:$C$4"))
        fill = PatternFill(bgColor="FFC7CE")
        sheet.conditional_formatting.add("B2:B4", CellIsRule(operator="greaterThan", formula=["$B$4"], fill=fill))
        rule = DataValidation(type="list", formula1="$A$2:$A$4")
        rule.add("F4")
        sheet.add_data_validation(rule)
        sheet["A4"].comment = Comment("about gear", "Ada")
        sheet["A4"].hyperlink = "https://example.org/"
        sheet.merge_cells("F3:G4")
        sheet.row_dimensions[4].height = 30

    saved(book, call, change)
    call("insert_chart", book.name, type="bar", cells="A1:B4", anchor="I4")
    answer = call("insert_rows_or_columns", book.name, what="rows", at="3", count=2, sheet="Sheet1")
    assert answer == {"sheet": "Sheet1", "inserted": 2, "used": "A1:D7"}
    assert formulas(call, sheet="Sheet1") == {
        "D2": "=B2*C2", "D5": "=B5*C5", "D6": "=B6*C6", "B7": "=SUM(B2:B6)", "D7": "=SUM(D2:D6)",
    }  # fmt: skip
    assert formulas(call, sheet="Other") == {"A1": "=Sheet1!D7*2"}
    made = openpyxl.load_workbook(book)
    sheet = made["Sheet1"]
    assert made.defined_names["Prices"].attr_text == "Sheet1!$C$2:$C$6"
    (formats,) = sheet.conditional_formatting
    assert (str(formats.sqref), formats.rules[0].formula) == ("B2:B6", ["$B$6"])
    (rule,) = sheet.data_validations.dataValidation
    assert (str(rule.sqref), rule.formula1) == ("F6", "$A$2:$A$6")
    assert [each.coord for each in sheet.merged_cells.ranges] == ["F5:G6"]
    assert (sheet["A6"].comment.text, sheet["A6"].hyperlink.target) == ("about gear", "https://example.org/")
    assert (sheet.row_dimensions[6].height, sheet.row_dimensions[4].height) == (30, None)
    chart = parts(book)["xl/charts/chart1.xml"]
    assert b"'Sheet1'!$B$2:$B$6" in chart
    (control,) = [each for each in call("get_controls", book.name)["controls"] if each["kind"] == "chart"]
    assert control["detail"]["at"] == "I6"
    assert values(call, cells="B7:D7") == [[8, None, 25.5]]


def test_deleted_row_shrinks_references_to_it(book: Path, call: Call) -> None:
    saved(book, call, lambda made: made["Other"].__setitem__("A2", "=Sheet1!B3"))
    call("delete_rows_or_columns", book.name, what="rows", at="3", sheet="Sheet1")
    assert formulas(call, sheet="Sheet1") == {"D2": "=B2*C2", "D3": "=B3*C3", "B4": "=SUM(B2:B3)", "D4": "=SUM(D2:D3)"}
    assert formulas(call, sheet="Other") == {"A1": "=Sheet1!D4*2", "A2": "=#REF!"}
    assert values(call, sheet="Sheet1", cells="B4:D4") == [[3, None, 23]]


def test_columns_are_inserted_and_deleted_with_their_widths(book: Path, call: Call) -> None:
    call("format_cells", book.name, cells="C1:C1", width=22)
    call("insert_rows_or_columns", book.name, what="columns", at="B")
    assert formulas(call)["E2"] == "=C2*D2"
    assert openpyxl.load_workbook(book)["Sheet1"].column_dimensions["D"].width == 22
    call("delete_rows_or_columns", book.name, what="columns", at="B")
    assert formulas(call)["D2"] == "=B2*C2"
    assert openpyxl.load_workbook(book)["Sheet1"].column_dimensions["C"].width == 22


def test_a_table_grows_and_shrinks_with_its_sheet(book: Path, call: Call) -> None:
    call("insert_table", book.name, header=["a", "b"], rows=[[1, 2], [3, 4]], cell="J1", name="Goods")
    call("insert_rows_or_columns", book.name, what="rows", at="3")
    call("insert_rows_or_columns", book.name, what="columns", at="K")
    table = openpyxl.load_workbook(book)["Sheet1"].tables["Goods"]
    assert (table.ref, table.column_names, table.autoFilter.ref) == ("J1:L4", ["a", "Column1", "b"], "J1:L4")
    assert values(call, cells="J1:L1") == [["a", "Column1", "b"]]
    with pytest.raises(ToolError, match="must keep its header"):
        call("delete_rows_or_columns", book.name, what="rows", at="1")
    call("delete_rows_or_columns", book.name, what="columns", at="K")
    assert openpyxl.load_workbook(book)["Sheet1"].tables["Goods"].column_names == ["a", "b"]


def test_formats_at_the_end_of_a_sheet_do_not_keep_rows_and_columns_out(book: Path, call: Call) -> None:
    call("format_cells", book.name, cells="A1048576", bold=True)
    call("format_cells", book.name, cells="XFD1", bold=True)
    call("insert_rows_or_columns", book.name, what="rows", at="2")
    call("insert_rows_or_columns", book.name, what="columns", at="B")
    assert values(call, cells="A3:C3") == [["bolt", None, 2]]


def test_a_formula_over_several_sheets_keeps_rows_in_place(book: Path, call: Call) -> None:
    call("set_formula", book.name, cells="C1", formula="=SUM(Sheet1:Other!B2)", sheet="Other")
    with pytest.raises(ToolError, match="Other!C1 reads the same cells of several sheets"):
        call("insert_rows_or_columns", book.name, what="rows", at="2", sheet="Sheet1")
    call("write_range", book.name, values=[[40]], cell="B2", sheet="Other")
    assert b"<v>2</v>" not in parts(book)["xl/worksheets/sheet2.xml"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"what": "rows", "at": "C"}, "no row"),
        ({"what": "columns", "at": "XFE"}, "no column"),
        ({"what": "rows", "at": "3", "count": 2}, "no room"),
        ({"what": "rows", "at": "2", "sheet": "Nothing"}, "no sheet"),
    ],
)
def test_a_place_that_no_row_or_column_has_is_refused(
    book: Path, call: Call, arguments: dict[str, object], why: str
) -> None:
    call("write_range", book.name, values=[["last"]], cell="A1048576")
    before = book.read_bytes()
    with pytest.raises(ToolError, match=why):
        call("insert_rows_or_columns", book.name, **arguments)
    assert book.read_bytes() == before


def test_rows_are_appended_above_the_totals_with_their_formulas(book: Path, call: Call) -> None:
    call("format_cells", book.name, cells="C4", number_format="0.00")
    answer = call("append_rows", book.name, values=[["cog", 3, 2], ["pin", 4, 1, None]], sheet="Sheet1")
    assert answer == {"sheet": "Sheet1", "cells": "A5:D6", "rows_appended": 2}
    assert values(call)[4:] == [["cog", 3, 2, 6], ["pin", 4, 1, 4], ["Sum", 15, None, 35.5]]
    assert formulas(call)["B7"] == "=SUM(B2:B6)"
    assert openpyxl.load_workbook(book)["Sheet1"]["C6"].number_format == "0.00"


def test_rows_are_appended_to_a_table_and_to_an_empty_sheet(book: Path, call: Call) -> None:
    call("insert_table", book.name, header=["a", "b"], rows=[[1, 2]], cell="J1", name="Goods")
    call("append_rows", book.name, values=[[3, 4]], control_id="table-1")
    assert openpyxl.load_workbook(book)["Sheet1"].tables["Goods"].ref == "J1:K3"
    call("append_rows", book.name, values=[[5, 6]], sheet="Sheet1")
    assert openpyxl.load_workbook(book)["Sheet1"].tables["Goods"].ref == "J1:K4"
    call("add_sheet", book.name, title="New")
    assert call("append_rows", book.name, values=[["x"], ["y"]], sheet="New")["cells"] == "A1:A2"
    with pytest.raises(ToolError, match="3 values, and J1:K4 has 2 columns"):
        call("append_rows", book.name, values=[[1, 2, 3]], control_id="table-1")


BESIDE = [["Item", "Qty", None, "Check"], ["c", 3, None, "=SUM(B2:B4)"], ["a", 1], ["b", 2], [None, None, None, "note"]]
STACKED = [["Item", "Qty"], ["b", 1], ["a", 2], [None], ["City", "People"], ["y", 5], ["x", 6]]
KEY = {"column": "Item"}


@pytest.fixture
def sheet(workspace: Path, call: Call) -> Callable[[list[list[object]]], str]:
    """Make a workbook of rows, and return its name."""

    def write(rows: list[list[object]]) -> str:
        made = openpyxl.Workbook()
        for row in rows:
            made.active.append(row)
        made.save(workspace / "book.xlsx")
        call("get_controls", "book.xlsx")
        return "book.xlsx"

    return write


@pytest.mark.parametrize(("rows", "blocks"), [(BESIDE, "A1:B4, D1:D2, D5"), (STACKED, "A1:B3, A5:B7")])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("sort_range", {"by": [KEY]}),
        ("sort_range", {"by": [KEY], "control_id": "range-1"}),
        ("filter_rows", {"where": [{**KEY, "value": "a"}], "to": "New!A1"}),
        ("reorder_columns", {"order": ["Qty"]}),
        ("summarize", {}),
        ("insert_chart", {"type": "bar"}),
        ("append_rows", {"values": [["d", 4]]}),
    ],
)
def test_the_cells_must_be_named_on_a_sheet_with_several_blocks(sheet, call, rows, blocks, tool, arguments) -> None:
    name = sheet(rows)
    before = values(call)
    with pytest.raises(ToolError, match=f"several blocks: {blocks}; "):
        call(tool, name, **arguments)
    assert values(call) == before


def test_named_cells_of_one_block_are_sorted_alone(sheet, call) -> None:
    call("sort_range", sheet(STACKED), by=[KEY], cells="A1:B3")
    assert values(call) == [["Item", "Qty"], ["a", 2], ["b", 1], [None, None], *STACKED[4:]]


@pytest.mark.parametrize("title", [[], [["Sales"]]])
def test_cells_that_begin_below_their_header_are_refused(sheet, call, title: list[list[object]]) -> None:
    top = len(title) + 1
    name = sheet([*title, ["Item", "Qty"], ["c", 3], ["a", 1], ["b", 2]])
    data = f"A{top + 1}:B{top + 3}"
    with pytest.raises(ToolError, match=f"{data} begins below the header in row {top}: name A{top}:B{top + 3}"):
        call("sort_range", name, by=[{"column": "B"}], cells=data)
    assert call("sort_range", name, by=[{"column": "B"}], cells=data, header=False)["rows_sorted"] == 3
    assert call("summarize", name, columns=["Qty"], cells=f"A{top}:B{top + 3}")["rows"] == 3


def test_the_error_for_a_column_names_the_row_of_the_header(sheet, call) -> None:
    name = sheet([["Sales"], ["of May", "draft"], ["Item", "Qty", "Price"], ["a", 1, 2]])
    with pytest.raises(ToolError, match="; row 3 has it: name the cells A3:C4"):
        call("sort_range", name, by=[{"column": "qty"}])
    call("sort_range", name, by=[{"column": "qty"}], cells="A3:C4")


def test_an_excel_table_with_an_empty_row_is_one_block(book: Path, call: Call) -> None:
    rows = [[2, 2], [None, None], [1, 1]]
    call("add_sheet", book.name, title="New")
    call("insert_table", book.name, header=["a", "b"], rows=rows, sheet="New")
    call("sort_range", book.name, by=[{"column": "a"}], sheet="New")
    assert values(call, sheet="New", cells="A2:A4") == [[1], [2], [None]]


def test_rows_are_appended_despite_single_cells_above_and_beside(sheet, call) -> None:
    name = sheet([["Sales"], [None], ["Item", "Qty"], ["a", 1, None, "note"]])
    assert call("append_rows", name, values=[["b", 2]])["cells"] == "A5:B5"
    call("write_range", name, values=[["Source: the shop"]], cell="A7")
    with pytest.raises(ToolError, match="several blocks: A1, A3:B5, D4, A7; write the rows"):
        call("append_rows", name, values=[["c", 3]])


def test_a_table_must_be_named_to_append_on_a_sheet_with_several(book: Path, call: Call) -> None:
    for cell, table in (("J1", "One"), ("J8", "Two")):
        call("insert_table", book.name, header=["a", "b"], rows=[[1, 2]], cell=cell, name=table)
    with pytest.raises(ToolError, match="several tables: One in J1:K2, Two in J8:K9; give the control_id of one"):
        call("append_rows", book.name, values=[[3, 4]], sheet="Sheet1")
    assert call("append_rows", book.name, values=[[3, 4]], control_id="table-2")["cells"] == "J10:K10"


@pytest.mark.parametrize("rows", [[], [[]], [[None, None]], [["a", 1], [None]]])
def test_rows_without_values_are_not_appended(book: Path, call: Call, rows: list[list[object]]) -> None:
    before = book.read_bytes()
    with pytest.raises(ToolError, match=r"no rows to append|row [12] of the values holds nothing"):
        call("append_rows", book.name, values=rows)
    assert book.read_bytes() == before


@pytest.mark.parametrize("total", [[], [["Total", "=SUM(B2:B4)"]]])
def test_append_names_the_formulas_that_omit_the_new_rows(sheet, call, total: list[list[object]]) -> None:
    name = sheet([["Item", "Price"], ["a", 1], ["b", 2], ["c", 3], *total])
    call("insert_chart", name, type="bar", cells="A1:B4")
    call("add_sheet", name, title="Other")
    call("set_formula", name, sheet="Other", cells="A1", formula="=SUM(Sheet!B2:B4)")
    call("set_formula", name, sheet="Other", cells="A2", formula="=SUM(Sheet!B2:B3)+COUNT(Sheet!B:B)")
    answer = call("append_rows", name, sheet="Sheet", values=[["d", 4]])
    assert answer["not_extended"] == ["Other!A1", "a chart on Sheet"]
    call("delete_rows_or_columns", name, what="sheet", sheet="Other")
    call("edit_chart", name, control_id="chart-1", cells="A1:B5")
    assert call("append_rows", name, values=[["e", 5]])["not_extended"] == ["a chart on Sheet"]
    call("edit_chart", name, control_id="chart-1", delete=True)
    assert "not_extended" not in call("append_rows", name, values=[["f", 6]])


def test_references_to_table_columns_include_appended_rows(sheet, call, workspace: Path) -> None:
    name = sheet([["Prices"], [None], ["Item", "Price"], ["a", 1], ["b", 2]])
    table = Table(displayName="Prices", ref="A3:B5")
    saved(workspace / name, call, lambda made: made.active.add_table(table))
    call("insert_chart", name, type="bar", cells="A3:B5")
    call("add_sheet", name, title="Other")
    read = ["B4:B5", "$B$3:$B$5", "B5:B5", "B5", "B1:B5", "B4:C5"]
    for row, cells in enumerate(read, start=1):
        call("set_formula", name, sheet="Other", cells=f"A{row}", formula=f"=SUM(Sheet!{cells})")
    answer = call("append_rows", name, sheet="Sheet", values=[["c", 3]])
    assert answer["not_extended"] == ["Other!A5", "Other!A6"]
    assert [row[0] for row in values(call, sheet="Other", cells="A1:A6")] == [6, 6, 2, 2, 3, 3]
    (chart,) = openpyxl.load_workbook(workspace / name)["Sheet"]._charts
    assert [(each.cat.strRef or each.cat.numRef).f[-9:] + each.val.numRef.f[-9:] for each in chart.series] == [
        "$A$4:$A$6$B$4:$B$6"
    ]


def test_a_note_below_the_totals_stays_below_them(sheet, call) -> None:
    name = sheet([["Item", "Price"], ["a", 1], ["b", 2], ["Total", "=SUM(B2:B3)"], ["Source: shop"]])
    call("append_rows", name, values=[["c", 4]])
    read = call("read_range", name, cells="A4:B6")
    assert read["values"] == [["c", 4], ["Total", 7], ["Source: shop", None]]
    assert call("summarize", name, columns=["Price"])["summary"]["Price"]["sum"] == 7


def test_formulas_within_a_table_that_leave_new_rows_out_are_named(sheet, call) -> None:
    rows = [["a", 1, "=B3/SUM($B$3:$B$4)", "=SUM(B$3:B3)"], ["b", 2, "=B4/SUM($B$3:$B$4)", "=SUM(B$3:B4)"]]
    name = sheet([["Total", "=SUM(B3:B4)", None, None], ["Item", "Price", "Share", "So far"], *rows])
    answer = call("append_rows", name, values=[["c", 3]])
    assert answer["not_extended"] == ["Sheet!B1", "Sheet!C3", "Sheet!C4", "Sheet!C5"]


def test_rules_of_the_last_row_hold_for_appended_rows(sheet, call, workspace: Path) -> None:
    name = sheet([["Item", "Price"], ["a", 1], ["b", 2]])
    rule, choice = CellIsRule(operator="greaterThan", formula=["1"]), DataValidation(type="list", formula1='"a,b,c"')

    def change(made: openpyxl.Workbook) -> None:
        made.active.conditional_formatting.add("B2:B3 D1:D3", rule)
        made.active.add_data_validation(choice)
        choice.add("A2:A3")

    saved(workspace / name, call, change)
    call("append_rows", name, values=[["c", 3], ["d", 4]])
    made = openpyxl.load_workbook(workspace / name).active
    assert [str(each.sqref) for each in made.conditional_formatting] == ["B2:B5 D1:D3"]
    assert [str(each.sqref) for each in made.data_validations.dataValidation] == ["A2:A5"]


def test_cells_that_leave_out_columns_of_their_table_are_not_sorted(sheet, call) -> None:
    name = sheet([["Note", "Item", "Price", "Left"], ["x", "b", 2, 5], ["y", "a", 1, 6]])
    with pytest.raises(ToolError, match=r"B1:C3 leaves out columns beside it.*: name A1:D3"):
        call("sort_range", name, cells="B1:C3", by=[{"column": "Price"}])
    call("sort_range", name, cells="B2:C3", by=[{"column": "C"}], header=False)
    assert values(call, cells="A2:D3") == [["x", "a", 1, 5], ["y", "b", 2, 6]]


def test_totals_stay_below_when_rows_are_sorted(book: Path, call: Call) -> None:
    call("sort_range", book.name, by=[{"column": "Total", "descending": True}])
    assert [row[0] for row in values(call)] == ["Item", "gear", "bolt", "nut", "Sum"]
    assert values(call, cells="D5") == [[25.5]]


INVOICE = [
    ["Item", "Sum"],
    ["c", 1],
    ["a", 3],
    ["Subtotal", "=SUM(B2:B3)"],
    ["Shipping", 5],
    ["VAT", "=B4*0.5"],
    ["Total", "=B4+B5+B6"],
]


def test_a_block_of_totals_stays_below_new_and_sorted_rows(sheet, call) -> None:
    name = sheet(INVOICE)
    assert call("append_rows", name, values=[["b", 2]])["cells"] == "A4:B4"
    assert call("sort_range", name, by=[KEY])["rows_sorted"] == 3
    assert call("summarize", name)["summary"]["Sum"]["sum"] == 6
    expected = [["a", 3], ["b", 2], ["c", 1], ["Subtotal", 6], ["Shipping", 5], ["VAT", 3], ["Total", 14]]
    assert values(call)[1:] == expected


def test_a_chart_without_named_cells_leaves_out_the_totals(sheet, call) -> None:
    name = sheet(INVOICE)
    assert call("insert_chart", name, type="bar")["cells"] == "A1:B3"
    assert call("insert_chart", name, type="bar", cells="A1:B7")["cells"] == "A1:B7"


def test_the_total_of_one_row_is_extended(sheet, call) -> None:
    call("append_rows", sheet([["Item", "Sum"], ["a", 1], ["Total", "=SUM(B2:B2)"]]), values=[["b", 2]])
    assert values(call)[2:] == [["b", 2], ["Total", 3]]


def test_rows_are_not_appended_above_a_total_of_single_cells(sheet, call) -> None:
    name = sheet([["Item", "Sum"], ["b", 1], ["a", 2], ["Total", "=B2+B3"]])
    with pytest.raises(ToolError, match="the total in B4 reads B3 alone"):
        call("append_rows", name, values=[["c", 3]])
    call("sort_range", name, by=[KEY])
    assert values(call)[1:] == [["a", 2], ["b", 1], ["Total", 3]]


@pytest.mark.parametrize(
    ("column", "filled"),
    [
        (["=A2", "=B2+A3"], "=B3+A4"),
        (["=A2", "=B2+A3", "=B3+A4"], "=B4+A5"),
        ([None, "=AVERAGE(A2:A3)"], "=AVERAGE(A3:A4)"),
        ([None, None, "=AVERAGE(A2:A3)", "=AVERAGE(A3:A4)"], "=AVERAGE(A4:A5)"),
        (["=SUM(A$2:A2)", "=SUM(A$2:A3)"], "=SUM(A$2:A4)"),
    ],
)
def test_series_down_to_the_last_row_is_not_a_total(sheet, call, column: list[str], filled: str) -> None:
    name = sheet([["In", "Out"], *([1, formula] for formula in column)])
    last = len(column) + 2
    assert call("append_rows", name, values=[[2]])["cells"] == f"A{last}:B{last}"
    assert formulas(call)[f"B{last}"] == filled


# Questions


def test_columns_are_summarized_in_all_and_by_group(book: Path, call: Call) -> None:
    before = book.read_bytes()
    answer = call("summarize", book.name, columns=["Quantity", "Total"])
    figures = {"filled": 3, "numbers": 3, "sum": 8, "mean": 8 / 3, "min": 1, "max": 5}
    assert answer["summary"]["rows"] == 3
    assert answer["summary"]["Quantity"] == pytest.approx(figures)
    assert answer["summary"]["Total"]["sum"] == 25.5
    grouped = call(
        "summarize", book.name, by="Item", columns=["B"], where=[{"column": "Price", "operator": "<", "value": 2}]
    )
    assert {name: group["Quantity"]["sum"] for name, group in grouped["groups"].items()} == {"bolt": 2, "nut": 5}
    assert book.read_bytes() == before


def test_columns_named_rows_or_alike_are_summarized_by_letter(sheet, call) -> None:
    name = sheet([["Item", "rows", "Sum", "Sum", "Price"], ["a", 10, 1, 2, 3], ["b", 20, 3, 4, 5]])
    summary = call("summarize", name)["summary"]
    assert list(summary) == ["rows", "B", "C", "D", "Price"]
    assert (summary["rows"], summary["B"]["sum"]) == (2, 30)


def test_rows_that_meet_conditions_are_copied_to_a_new_sheet(book: Path, call: Call) -> None:
    where = [{"column": "Item", "operator": "contains", "value": "T"}, {"column": "Total", "operator": ">", "value": 2}]
    answer = call("filter_rows", book.name, where=where, to="Found!B2", cells="Sheet1!A1:D4")
    assert answer == {"sheet": "Found", "cells": "B2:E4", "rows_copied": 2}
    assert values(call, sheet="Found") == [HEADER, ["bolt", 2, 1.5, 3], ["nut", 5, 0.5, 2.5]]
    with pytest.raises(ToolError, match="not empty"):
        call("filter_rows", book.name, where=where, to="A1", cells="Sheet1!A1:D4")


def test_formulas_without_results_are_computed_before_they_are_copied(book: Path, call: Call) -> None:
    call("filter_rows", book.name, where=[{"column": "Item", "value": "nut"}], to="G1")
    assert values(call, cells="G2:J2") == [["nut", 5, 0.5, 2.5]]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ({"operator": "=", "value": "NUT"}, ["nut"]),
        ({"operator": "<>", "value": "nut"}, ["bolt", "gear"]),
        ({"operator": "begins", "value": "g"}, ["gear"]),
        ({"operator": "ends", "value": "t"}, ["bolt", "nut"]),
        ({"operator": "filled"}, ["bolt", "nut", "gear"]),
        ({"column": "Quantity", "operator": ">=", "value": 2}, ["bolt", "nut"]),
        ({"column": "Quantity", "operator": "=", "value": "5"}, ["nut"]),
        ({"column": "Price", "operator": "empty"}, []),
    ],
)
def test_conditions_compare_as_their_operators_say(
    book: Path, call: Call, condition: dict[str, object], found: list[str]
) -> None:
    groups = call("summarize", book.name, by="Item", where=[{"column": "Item", **condition}])["groups"]
    assert list(groups) == found


@pytest.mark.parametrize(
    ("operator", "value", "rows"),
    [
        ("=", "2024-05-31", [2, 5]),
        ("=", {"date": "2024-05-31"}, [2]),
        ("<>", "2024-05-31", [3, 4]),
        (">=", "2024-06-01", [3, 4]),
        ("<", "2024-06-03T09:30", [2, 3]),
        ("=", "2024-06-03 09:30:00", [4]),
        ("begins", "2024-06", [3, 4]),
        ("ends", "06-01", [3]),
        ("contains", "03T09", [4]),
    ],
)
def test_a_text_in_iso_form_is_compared_with_dates(
    book: Path, call: Call, operator: str, value: object, rows: list[int]
) -> None:
    moments = [{"date": each} for each in ("2024-05-31", "2024-06-01", "2024-06-03T09:30:00")]
    dated = [["Date", "Row"], *([moment, row] for row, moment in enumerate([*moments, "2024-05-31"], start=2))]
    call("write_range", book.name, values=dated, sheet="Other")
    where = [{"column": "Date", "operator": operator, "value": value}]
    groups = call("summarize", book.name, sheet="Other", by="Row", where=where)["groups"]
    assert groups.keys() == {str(row) for row in rows}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("x", r"'x' is no number and no date; < compares numbers and dates.* as {\"date\": \"2024-05-31\"}"),
        ({"date": "2024-05-31T09:30:00+02:00"}, "has a time zone"),
    ],
)
def test_a_condition_that_compares_nothing_is_refused(book: Path, call: Call, value: object, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        call("summarize", book.name, where=[{"column": "Item", "operator": "<", "value": value}])


# Texts and formats


def test_a_text_is_replaced_in_texts_alone(book: Path, call: Call) -> None:
    call("write_range", book.name, values=[["Nut and nut", 2, True]], cell="A8")
    answer = call("replace_text", book.name, find_text="nut", new_text="cog")
    assert (answer["changed"], answer["cells"]) == (2, ["A3", "A8"])
    assert values(call, cells="A8:C8") == [["cog and cog", 2, True]]
    assert call("replace_text", book.name, find_text="COG", new_text="nut", whole_cell=True)["cells"] == ["A3"]
    with pytest.raises(ToolError, match="in no text"):
        call("replace_text", book.name, find_text="NUT", new_text="x", match_case=True)


def test_formats_are_added_to_those_that_a_cell_has(book: Path, call: Call) -> None:
    call("format_cells", book.name, cells="A1:D1", bold=True, fill="light green", horizontal="center", border="thin")
    call("format_cells", book.name, cells="B1:B4", number_format="#,##0.0", color="#ff0000", size=14, width=20)
    sheet = openpyxl.load_workbook(book)["Sheet1"]
    cell = sheet["B1"]
    assert (cell.font.b, cell.font.sz, cell.font.color.rgb) == (True, 14, "FFFF0000")
    assert (cell.fill.fgColor.rgb, cell.alignment.horizontal, cell.border.left.style) == ("FFC6EFCE", "center", "thin")
    assert (cell.number_format, sheet["A1"].number_format, sheet["A2"].font.b) == ("#,##0.0", "General", False)
    assert sheet.column_dimensions["B"].width == 20
    with pytest.raises(ToolError, match="no color"):
        call("format_cells", book.name, cells="A1", color="pinkish")
    with pytest.raises(ToolError, match="say which format"):
        call("format_cells", book.name, cells="A1")


def test_an_alignment_that_is_not_set_stays_unset(book: Path, call: Call) -> None:
    call("format_cells", book.name, cells="A1", horizontal="left")
    call("write_range", book.name, values=[["x"]], cell="A1")
    assert b"vertical" not in parts(book)["xl/styles.xml"]


def test_cells_are_merged_and_taken_apart(book: Path, call: Call) -> None:
    call("write_range", book.name, values=[["wide"]], cell="F1")
    call("format_cells", book.name, cells="F1:H1", merge=True)
    assert call("read_range", book.name, cells="F1:H1")["merged"] == ["F1:H1"]
    for cells, why in (("A1:B1", "B1 holds something"), ("G1:G2", "not empty"), ("K1", "one cell")):
        with pytest.raises(ToolError, match=why):
            call("format_cells", book.name, cells=cells, merge=True)
    assert call("format_cells", book.name, cells="F1:H9", merge=False)["taken_apart"] == ["F1:H1"]
    assert call("read_range", book.name, cells="F1:H1")["merged"] == []


def test_an_empty_text_is_not_an_empty_cell(book: Path, call: Call) -> None:
    call("write_range", book.name, values=[["", None]], cell="F1")
    assert values(call, cells="F1:G1") == [["", None]]
    assert openpyxl.load_workbook(book)["Sheet1"]["F1"].data_type == "s"


def test_a_part_of_an_array_formula_is_not_written(book: Path, call: Call) -> None:
    array = openpyxl.worksheet.formula.ArrayFormula("F2:F4", "=B2:B4*C2:C4")
    saved(book, call, lambda made: made["Sheet1"].__setitem__("F2", array))
    with pytest.raises(ToolError, match="F2:F4 holds one array formula"):
        call("write_range", book.name, values=[[1]], cell="F3")
    with pytest.raises(ToolError, match="can't be cut"):
        call("insert_rows_or_columns", book.name, what="rows", at="3")
    call("write_range", book.name, values=[[1], [2], [3]], cell="F2")
    assert values(call, cells="F2:F4") == [[1], [2], [3]]


def test_results_of_an_array_fill_cells_that_the_file_leaves_out(book: Path, call: Call) -> None:
    array = openpyxl.worksheet.formula.ArrayFormula("F2:F4", "=B2:B4*C2:C4")
    saved(book, call, lambda made: made["Sheet1"].__setitem__("F2", array))
    call("write_range", book.name, values=[[10]], cell="B2")
    assert values(call, cells="F2:F4") == [[15], [2.5], [20]]


def test_the_texts_of_an_array_formula_are_not_replaced(book: Path, call: Call) -> None:
    array = openpyxl.worksheet.formula.ArrayFormula("F2:F4", '=A2:A4&"!"')
    saved(book, call, lambda made: made["Sheet1"].__setitem__("F2", array))
    call("write_range", book.name, values=[["bolts"]], cell="A2")
    assert call("replace_text", book.name, find_text="nut", new_text="cog")["cells"] == ["A3"]
    assert values(call, cells="F2:F4") == [["bolts!"], ["cog!"], ["gear!"]]


# Charts


def test_a_chart_is_changed_moved_and_deleted(book: Path, call: Call) -> None:
    call("insert_chart", book.name, type="bar", cells="A1:B4", title="Old")
    answer = call("edit_chart", book.name, control_id="chart-1", title="New", y_title="pieces", anchor="K9")
    assert answer == {"sheet": "Sheet1", "control_id": "chart-1", "type": "bar", "at": "K9"}
    with pytest.raises(ToolError, match=r"to change its type; now: 'Sheet1'!B1, 'Sheet1'!\$A\$2:\$A\$4"):
        call("edit_chart", book.name, control_id="chart-1", type="line")
    call("edit_chart", book.name, control_id="chart-1", type="line", cells="A1:C4", columns=["Price"])
    (control,) = [each for each in call("get_controls", book.name)["controls"] if each["kind"] == "chart"]
    assert (control["name"], control["detail"]["type"]) == ("New", "line")
    assert b"'Sheet1'!$C$2:$C$4" in parts(book)["xl/charts/chart1.xml"]
    with pytest.raises(ToolError, match="say what changes"):
        call("edit_chart", book.name, control_id="chart-1")
    with pytest.raises(ToolError, match="is no chart"):
        call("edit_chart", book.name, control_id="sheet-1", title="x")
    assert call("edit_chart", book.name, control_id="chart-1", delete=True)["deleted"] == "chart-1"
    assert not [name for name in parts(book) if "chart" in name]
    assert openpyxl.load_workbook(book)["Sheet1"]._charts == []


def test_a_chart_before_others_is_answered_with_its_own_id(book: Path, call: Call) -> None:
    call("write_range", book.name, values=[["k", "v"], ["a", 1]], cell="C1", sheet="Other")
    call("insert_chart", book.name, type="bar", cells="C1:D2", sheet="Other", title="old")
    made = call("insert_chart", book.name, type="bar", cells="A1:B4", sheet="Sheet1", title="new")
    assert (made["control_id"], made["charts"]) == ("chart-1", 2)
    found = {each["id"]: each["name"] for each in call("get_controls", book.name)["controls"]}
    assert (found["chart-1"], found["chart-2"]) == ("new", "old")


def test_the_titles_of_axes_stay_when_the_data_change_and_are_removed(book: Path, call: Call) -> None:
    call("insert_chart", book.name, type="bar", cells="A1:B4", x_title="item", y_title="pieces")
    call("edit_chart", book.name, control_id="chart-1", type="line", cells="A1:C4", columns=["Price"])
    (chart,) = openpyxl.load_workbook(book)["Sheet1"]._charts
    titles = [axis.title.tx.rich.p[0].r[0].t for axis in (chart.x_axis, chart.y_axis)]
    assert titles == ["item", "pieces"]
    call("edit_chart", book.name, control_id="chart-1", x_title="")
    (chart,) = openpyxl.load_workbook(book)["Sheet1"]._charts
    assert (chart.x_axis.title, chart.y_axis.title is None) == (None, False)


@pytest.mark.parametrize("kind", ["bar", "horizontal_bar", "line", "pie", "area", "scatter"])
def test_each_kind_of_chart_is_listed_with_its_type(book: Path, call: Call, kind: str) -> None:
    call("insert_chart", book.name, type=kind, cells="B1:C4", columns=["Price"], title=kind)
    (control,) = [each for each in call("get_controls", book.name)["controls"] if each["kind"] == "chart"]
    assert (control["name"], control["detail"]["type"]) == (kind, kind)
    assert len(openpyxl.load_workbook(book)["Sheet1"]._charts) == 1


# Hazards


@pytest.mark.parametrize(
    ("tool", "arguments", "hazards"),
    [
        ("set_formula", {"cells": "A1:D5", "formula": "=1+1"}, {"overwrites"}),
        ("set_formula", {"cells": "F1:F5", "formula": "=1+1"}, set()),
        ("set_formula", {"cells": "D2:D4", "formula": "=B2*C2"}, set()),
        ("replace_text", {"find_text": "nut", "new_text": "x"}, {"overwrites"}),
        ("replace_text", {"find_text": "zzz", "new_text": "x"}, set()),
        ("append_rows", {"values": [["x"]]}, set()),
        ("edit_chart", {"delete": True}, {"deletes"}),
        ("edit_chart", {"title": "x"}, set()),
    ],
)
def test_call_that_replaces_or_deletes_has_a_hazard(
    surface, book: Path, tool: str, arguments: dict[str, object], hazards: set[str]
) -> None:
    (target,) = (target for target in surface.targets() if target.id == book.name)
    given = {"match_case": False, "whole_cell": False, **arguments}
    assert {str(hazard) for hazard in surface.hazards(target, tool, given, ())} == hazards


def test_a_refused_call_replaces_nothing(surface, book: Path, call: Call) -> None:
    array = openpyxl.worksheet.formula.ArrayFormula("F2:F4", "=B2:B4*C2:C4")
    saved(book, call, lambda made: made["Sheet1"].__setitem__("F2", array))
    (target,) = (target for target in surface.targets() if target.id == book.name)
    assert surface.replaced(target, "set_formula", {"cells": "F2:F3", "formula": "=1+1"}) == ""


def test_approval_text_lists_the_cells_a_call_would_replace(surface, book: Path) -> None:
    (target,) = (target for target in surface.targets() if target.id == book.name)
    found = surface.replaced(target, "set_formula", {"cells": "Sheet1!A1:D5", "formula": "=1+1"})
    assert found == "19 cells of 'Sheet1' with content: A1 'Item', B1 'Quantity', C1 'Price' and 16 more"
    assert surface.replaced(target, "append_rows", {"values": [[1]]}) == ""


def test_notes_that_stay_in_place_keep_the_bytes_of_their_part(workspace: Path, call: Call) -> None:
    book = openpyxl.Workbook()
    for row in (["Item", "Amount"], ["a", 1], ["Total", "=SUM(B2:B2)"]):
        book.active.append(row)
    book.active["A1"].comment = Comment("note", "Ada")
    book.save(workspace / "book.xlsx")

    def notes() -> bytes:
        with zipfile.ZipFile(workspace / "book.xlsx") as archive:
            return archive.read("xl/comments/comment1.xml")

    before = notes()
    call("append_rows", "book.xlsx", values=[["b", 2]])
    assert notes() == before
    call("insert_rows_or_columns", "book.xlsx", what="rows", at="1")
    assert b'ref="A2"' in notes()
