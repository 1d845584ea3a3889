"""Copied cells, split texts, and texts replaced by a pattern."""

from __future__ import annotations

import datetime as dt
import re
import zipfile
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
import xlsxwriter
from excel_books import change_sheet, save_book, workbook_of
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from openpyxl.comments import Comment
from openpyxl.formatting.rule import FormulaRule
from openpyxl.styles import Font, PatternFill
from openpyxl.worksheet.cell_range import CellRange
from openpyxl.worksheet.datavalidation import DataValidation

from callboard.messages import Hazard
from callboard.surfaces import ToolError
from callboard.surfaces.documents.excel._copy_cells import copy_cells
from callboard.surfaces.documents.excel._sheet_controls import SheetRange
from callboard.surfaces.documents.excel._text_patterns import compiled, expansion
from callboard.surfaces.documents.excel._workbook import ExcelFile

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

    from callboard.surfaces.documents import DocumentSurface

pytest.importorskip("re2")

ROWS = [["Name", "Price", "Qty", "Total"], ["bolt", 2, 3, "=B2*C2"], ["nut", 5, 1, "=B3*$C$2"]]


@pytest.fixture
def book(workspace: Path, call: Call) -> Path:
    """Give a workbook with formulas and a date."""
    workbook = workbook_of(ROWS, "Data")
    workbook.active["A2"].font = Font(bold=True)
    workbook.active["A5"] = dt.date(2026, 5, 31)
    return save_book(workbook, workspace / "book.xlsx", call)


def rows_of(book: Path, title: str, cells: str) -> list[list[Any]]:
    """Read the values and formulas of cells."""
    return [[cell.value for cell in row] for row in openpyxl.load_workbook(book)[title][cells]]


def test_a_copy_has_values_formats_and_moved_formulas(book: Path, call: Call) -> None:
    answer = call("copy_range", book.name, cells="A1:D3", to="F2")
    assert answer["cells"] == "F2:I4"
    expected = [["Name", "Price", "Qty", "Total"], ["bolt", 2, 3, "=G3*H3"], ["nut", 5, 1, "=G4*$C$2"]]
    assert rows_of(book, "Data", "F2:I4") == expected
    assert openpyxl.load_workbook(book)["Data"]["F3"].font.b
    assert call("read_range", book.name, cells="I2:I4")["values"] == [["Total"], [6], [15]]
    assert rows_of(book, "Data", "A1:D3") == ROWS


def test_a_copy_goes_to_a_new_sheet_with_widths(book: Path, call: Call) -> None:
    call("format_cells", book.name, cells="A1", width=33)
    call("copy_range", book.name, cells="A1:C3", to="'My copy'!A1")
    assert rows_of(book, "My copy", "A1:C3") == [row[:3] for row in ROWS]
    assert openpyxl.load_workbook(book)["My copy"].column_dimensions["A"].width == 33


def test_values_are_copied_without_formulas_and_formats(book: Path, call: Call) -> None:
    call("copy_range", book.name, cells="A2:D3", to="F2", content="values")
    assert rows_of(book, "Data", "F2:I3") == [["bolt", 2, 3, 6], ["nut", 5, 1, 15]]
    assert not openpyxl.load_workbook(book)["Data"]["F2"].font.b
    call("copy_range", book.name, cells="A5", to="F5", content="values")
    assert openpyxl.load_workbook(book)["Data"]["F5"].value == dt.datetime(2026, 5, 31)  # noqa: DTZ001 - has no zone


def test_formats_are_copied_alone(book: Path, call: Call) -> None:
    call("copy_range", book.name, cells="A2", to="B2:C3", content="formats")
    sheet = openpyxl.load_workbook(book)["Data"]
    assert [sheet[name].font.b for name in ("B2", "C2", "B3", "C3", "A3")] == [True] * 4 + [False]
    assert rows_of(book, "Data", "A1:D3") == ROWS


def test_a_range_is_transposed(book: Path, call: Call) -> None:
    call("copy_range", book.name, cells="A1:C3", to="F1", transpose=True)
    assert rows_of(book, "Data", "F1:H3") == [list(column) for column in zip(*[row[:3] for row in ROWS], strict=True)]
    with pytest.raises(ToolError, match="the formula of D2 reads cells by their distance; copy values"):
        call("copy_range", book.name, cells="D1:D3", to="F5", transpose=True)
    call("copy_range", book.name, cells="D1:D3", to="F5", transpose=True, content="values")
    assert rows_of(book, "Data", "F5:H5") == [["Total", 6, 15]]


def test_one_cell_fills_a_range(book: Path, call: Call) -> None:
    call("copy_range", book.name, cells="D2", to="E2:E3", content="formulas")
    assert rows_of(book, "Data", "E2:E3") == [["=C2*D2"], ["=C3*D3"]]


def test_copy_counts_rules_of_excel_extensions_as_not_copied(workspace: Path, call: Call) -> None:
    path = workspace / "bars.xlsx"
    with xlsxwriter.Workbook(path) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write_column("A1", [1, 2, 3])
        sheet.conditional_format("A1:A3", {"type": "data_bar", "data_bar_2010": True})
    call("get_controls", path.name)
    answer = call("copy_range", path.name, cells="A1:A3", to="C1")
    assert answer["not_copied"] == {"conditional formats and validations": 1}
    with zipfile.ZipFile(path) as archive:
        root = etree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
    assert [rule.get("sqref") for rule in root.iterfind("{*}conditionalFormatting")] == ["A1:A3", "C1:C3"]


def test_copied_data_bar_has_an_id_of_its_own(workspace: Path, call: Call) -> None:
    path = workspace / "bars.xlsx"
    with xlsxwriter.Workbook(path) as workbook:
        sheet = workbook.add_worksheet()
        sheet.conditional_format("A1:A3", {"type": "data_bar", "data_bar_2010": True})
    call("get_controls", path.name)
    for goal in ("C1", "E1"):
        call("copy_range", path.name, cells="A1:A3", to=goal)
    with zipfile.ZipFile(path) as archive:
        root = etree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
    ids = [mark.text for rule in root.iterfind("{*}conditionalFormatting") for mark in rule.iter("{*}id")]
    assert len(set(ids)) == 3
    assert ids[0] == next(root.iter("{*}conditionalFormattings"))[0][0].get("id")
    assert all(re.fullmatch(r"\{[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}\}", text) for text in ids)


def test_merged_cells_and_rules_are_copied(book: Path, call: Call) -> None:
    def add(sheet: Any) -> None:
        sheet.merge_cells("A7:B7")
        sheet["A2"].comment = Comment("why", "Ada")
        fill = PatternFill("solid", bgColor="FFFF0000")
        sheet.conditional_formatting.add("B2:B9", FormulaRule(formula=["B2>$C$2"], fill=fill))
        sheet.add_data_validation(DataValidation(type="list", formula1='"bolt,nut"', sqref="A2:A3"))

    change_sheet(book, call, add)
    answer = call("copy_range", book.name, cells="A2:C7", to="F3")
    assert answer["not_copied"] == {"notes": 1}
    sheet = openpyxl.load_workbook(book)["Data"]
    assert {str(area) for area in sheet.merged_cells.ranges} == {"A7:B7", "F8:G8"}
    rules = {str(area.sqref): area.rules[0].formula for area in sheet.conditional_formatting}
    assert rules == {"B2:B9": ["B2>$C$2"], "G3:G8": ["G3>$C$2"]}
    assert {str(rule.sqref) for rule in sheet.data_validations.dataValidation} == {"A2:A3", "F3:F4"}
    with pytest.raises(ToolError, match="cuts the merged cells A7:B7"):
        call("copy_range", book.name, cells="A6:A7", to="K1")
    with pytest.raises(ToolError, match="has the merged cells F8:G8"):
        call("copy_range", book.name, cells="C1:C3", to="F7")


def test_validations_are_copied_with_values_that_break_them(book: Path, call: Call) -> None:
    def add(sheet: Any) -> None:
        rule = DataValidation(type="whole", operator="greaterThan", formula1="2", sqref="B2:B3", showErrorMessage=True)
        sheet.add_data_validation(rule)
        sheet.add_data_validation(DataValidation(type="list", formula1='"x"', sqref="F2:F9", showErrorMessage=True))

    change_sheet(book, call, add)
    call("copy_range", book.name, cells="B2:B3", to="F2")
    sheet = openpyxl.load_workbook(book)["Data"]
    rules = {str(rule.sqref): rule.type for rule in sheet.data_validations.dataValidation}
    assert rules == {"B2:B3": "whole", "F4:F9": "list", "F2:F3": "whole"}
    with pytest.raises(ToolError, match="F4 takes one of: x"):
        call("copy_range", book.name, cells="B2:B3", to="F4", content="values")


def test_the_header_of_a_table_follows_a_copy_over_it(book: Path, call: Call) -> None:
    call("insert_table", book.name, cell="H1", header=["Old", "Other"], rows=[[1, 2]], name="Goods")
    call("copy_range", book.name, cells="A1", to="H1")
    assert openpyxl.load_workbook(book)["Data"].tables["Goods"].column_names == ["Name", "Other"]


def test_a_copy_says_what_it_replaces(surface: DocumentSurface, book: Path, call: Call) -> None:
    target = next(target for target in surface.targets() if target.id == book.name)
    arguments = {"cells": "B2:B3", "to": "C2"}
    assert surface.hazards(target, "copy_range", arguments, []) == {Hazard.OVERWRITES}
    assert surface.replaced(target, "copy_range", arguments) == "2 cells of 'Data' with content: C2 '3', C3 '1'"
    assert surface.hazards(target, "copy_range", {**arguments, "to": "H2"}, []) == set()
    named = surface.resources(target, "copy_range", {**arguments, "sheet": "", "control_id": "", "control_name": ""})
    assert named == ["range:Data!B2:B3", "sheet:Data"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"delimiter": ","}, [["Lee", "Ann", 7], ["Ray", "Bo", None], [None, None, None]]),
        ({"delimiter": ",", "parts": 2}, [["Lee", "Ann, 7"], ["Ray", "Bo"], [None, None]]),
        ({"delimiter": " "}, [["Lee,", "Ann,", 7], ["Ray,", "Bo", None], [None, None, None]]),
        ({"widths": [3, 2]}, [["Lee", ",", "Ann, 7"], ["Ray", ",", "Bo"], [None, None, None]]),
        ({"pattern": r"(\w+), (\w+)"}, [["Lee", "Ann"], ["Ray", "Bo"], [None, None]]),
        ({"pattern": r"\d+"}, [[7], [None], [None]]),
    ],
)
def test_texts_are_split_into_columns(
    book: Path, call: Call, options: dict[str, Any], expected: list[list[Any]]
) -> None:
    call("write_range", book.name, values=[["Lee, Ann, 7"], ["Ray, Bo"]], cell="J1")
    answer = call("copy_range", book.name, cells="J1:J3", to="K1", **options)
    assert call("read_range", book.name, cells=answer["cells"])["values"] == expected
    assert answer.get("not_matched", []) == (["J2"] if options == {"pattern": r"\d+"} else [])


def test_texts_are_split_in_place(book: Path, call: Call) -> None:
    call("write_range", book.name, values=[["a-1"], ["b-2"]], cell="J1")
    call("copy_range", book.name, cells="J1:J2", to="J1", delimiter="-")
    assert rows_of(book, "Data", "J1:K2") == [["a", 1], ["b", 2]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cells": "A1:B2", "delimiter": ","}, "several columns"),
        ({"cells": "A1:A2", "delimiter": ",", "pattern": "x"}, "give one of"),
        ({"cells": "A1:A2", "parts": 2}, "parts goes with a delimiter"),
        ({"cells": "A1:A2", "delimiter": ",", "transpose": True}, "leave content and transpose out"),
        ({"cells": "A1:A2", "pattern": "(a"}, "no regular expression: missing"),
        ({"cells": "A1:A2", "pattern": "(?=a)"}, "look-ahead and back-references are not supported"),
        ({"cells": "A1:A2", "pattern": "a" * 1001}, "more than 1000 characters"),
        ({"cells": "A1:C3", "to": "XFC1"}, "do not fit on a sheet"),
        ({"cells": "D2", "to": "A2"}, "would leave the sheet"),
    ],
)
def test_a_copy_that_is_not_possible_is_refused(book: Path, call: Call, arguments: dict, message: str) -> None:
    before = book.read_bytes()
    with pytest.raises(ToolError, match=message):
        call("copy_range", book.name, **{"to": "H1", **arguments})
    assert book.read_bytes() == before


def test_replace_text_replaces_by_a_pattern(book: Path, call: Call) -> None:
    call("write_range", book.name, values=[["AB-12"], ["cd-345"], ["none"], [7]], cell="J1")
    arguments = {"cells": "J1:J4", "find_text": r"([a-z]+)-(\d+)", "pattern": True}
    answer = call("replace_text", book.name, new_text=r"\2/\1 \\", **arguments)
    assert rows_of(book, "Data", "J1:J4") == [["12/AB \\"], ["345/cd \\"], ["none"], [7]]
    assert answer["changed"] == 2
    with pytest.raises(ToolError, match="names the group 3"):
        call("replace_text", book.name, new_text=r"\3", **arguments)
    with pytest.raises(ToolError, match=r"a group is written \\1, and not \$1"):
        call("replace_text", book.name, new_text="$1", **arguments)


def test_a_pattern_takes_linear_time() -> None:
    text = "a" * 32_000 + "c"  # Python's expressions would take 2 ** 32,000 steps
    assert compiled("(a|aa)+$", match_case=True).search(text) is None


SIMPLE = st.lists(st.sampled_from(["a", "b", r"\d", ".", "[ab]", "(a|b)", "a+", "b?", r"\w*"]), min_size=1, max_size=4)


@settings(max_examples=150, deadline=None)
@given(SIMPLE, st.text("ab1 -", max_size=12), st.booleans())
def test_patterns_agree_with_those_of_python(parts: list[str], text: str, match_case: bool) -> None:
    expected = re.compile("".join(parts), 0 if match_case else re.IGNORECASE)
    found = compiled("".join(parts), match_case=match_case)
    assert [match.span() for match in found.finditer(text)] == [match.span() for match in expected.finditer(text)]
    assert found.sub(expansion(found, r"<\0>"), text) == expected.sub(r"<\g<0>>", text)


VALUES = st.one_of(st.none(), st.integers(-9, 9), st.text("xyz=", min_size=1, max_size=3), st.booleans())


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(-3, 3), st.booleans(), st.data())
def test_copies_agree_with_a_plain_model(
    height: int,
    width: int,
    offset: int,
    transpose: bool,
    data: st.DataObject,
) -> None:
    model = {(row, column): data.draw(VALUES) for row in range(5, 5 + height) for column in range(5, 5 + width)}
    file = ExcelFile.new()
    sheet = file.active
    for where, value in model.items():
        sheet.write(*where, value)
    source = SheetRange(sheet, CellRange(None, 5, 5, 4 + width, 4 + height))
    corner = 5 + offset
    copy_cells(file, source, SheetRange(sheet, CellRange(None, corner, 5, corner, 5)), "all", transpose=transpose)
    expected = dict(model)
    for (row, column), value in model.items():
        down, right = (column - 5, row - 5) if transpose else (row - 5, column - 5)
        expected[5 + down, corner + right] = value
    assert {where: sheet.value(*where) for where in expected} == expected
