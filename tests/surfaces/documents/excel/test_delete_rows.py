"""Rows deleted by conditions and as duplicates, with all that follows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
from excel_books import change_sheet, save_book, workbook_of
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.comments import Comment
from openpyxl.formatting.rule import CellIsRule
from openpyxl.styles import Font, PatternFill
from openpyxl.worksheet.cell_range import CellRange
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table

from callboard.surfaces import ToolError
from callboard.surfaces.documents.excel._shift import Deletion, Shift
from callboard.surfaces.documents.excel._workbook import ExcelFile

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

ROWS = [["Id", "Region", "Sales"], [1, "East", 5], [2, "West", 7], [1, "east", 5], [3, "West", 9], [4, None, 7]]
WEST = [{"column": "Region", "value": "west"}]


@pytest.fixture
def book(workspace: Path, call: Call) -> Path:
    """Give a workbook with a block of rows, and a sum elsewhere."""
    workbook = workbook_of(ROWS, "Data")
    workbook.create_sheet("Sums").append(["=SUM(Data!C2:C6)", "=Data!C6", "=Data!C3"])
    return save_book(workbook, workspace / "book.xlsx", call)


def rows_of(book: Path) -> list[list[Any]]:
    """Read the rows of the first sheet."""
    return [list(row) for row in openpyxl.load_workbook(book)["Data"].iter_rows(values_only=True)]


def delete(call: Call, book: Path, **arguments: Any) -> Any:
    return call("delete_rows_or_columns", book.name, what="rows", sheet="Data", **arguments)


def test_rows_that_meet_conditions_are_deleted_in_one_call(book: Path, call: Call) -> None:
    answer = delete(call, book, where=WEST)
    assert rows_of(book) == [ROWS[0], ROWS[1], ROWS[3], ROWS[5]]
    assert (answer["deleted"], answer["rows_deleted"], answer["rows_kept"]) == (2, "3, 5", 3)
    sums = openpyxl.load_workbook(book)["Sums"]
    assert [cell.value for cell in sums[1]] == ["=SUM(Data!C2:C4)", "=Data!C4", "=#REF!"]
    assert answer["references_lost"] == ["Sums!C1"]
    assert call("read_range", book.name, sheet="Sums")["values"][0][:2] == [17, 7]


@pytest.mark.parametrize(
    ("columns", "kept"),
    [(["*"], [1, 2, 4, 5]), (["Region"], [1, 2, 5]), (["A"], [1, 2, 4, 5]), (["Sales"], [1, 2, 4])],
)
def test_duplicates_are_deleted_but_the_first(book: Path, call: Call, columns: list[str], kept: list[int]) -> None:
    answer = delete(call, book, duplicates_in=columns)
    assert rows_of(book) == [ROWS[0], *(ROWS[number] for number in kept)]
    assert answer["deleted"] == 5 - len(kept)
    with pytest.raises(ToolError, match=r"no row of A1:C\d repeats another"):
        delete(call, book, duplicates_in=columns)


def test_duplicates_count_among_the_rows_that_meet_conditions(book: Path, call: Call) -> None:
    delete(call, book, where=[{"column": "Sales", "value": 7}], duplicates_in=["Sales"])
    assert rows_of(book) == ROWS[:5]


def test_formats_notes_rules_and_heights_stay_with_their_rows(book: Path, call: Call) -> None:
    def add(sheet: Any) -> None:
        sheet["A5"].font = Font(bold=True)
        sheet["B5"].comment = Comment("checked", "Ada")
        sheet["C3"].comment = Comment("gone", "Ada")
        sheet.row_dimensions[5].height = 40
        fill = PatternFill("solid", bgColor="FFFF0000")
        sheet.conditional_formatting.add("C5:C6", CellIsRule(operator="greaterThan", formula=["C2"], fill=fill))
        rule = DataValidation(type="whole", operator="greaterThan", formula1="0", sqref="A2:A6")
        sheet.add_data_validation(rule)

    change_sheet(book, call, add)
    delete(call, book, where=[{"column": "Id", "value": 2}])
    sheet = openpyxl.load_workbook(book)["Data"]
    assert (sheet["A4"].value, sheet["A4"].font.b, sheet["B4"].comment.text) == (3, True, "checked")
    assert [cell.coordinate for row in sheet.iter_rows() for cell in row if cell.comment] == ["B4"]
    assert sheet.row_dimensions[4].height == 40
    assert [str(area.sqref) for area in sheet.conditional_formatting] == ["C4:C5"]
    assert str(sheet.data_validations.dataValidation[0].sqref) == "A2:A5"


def test_cells_beside_are_not_deleted_with_the_rows(book: Path, call: Call) -> None:
    change_sheet(book, call, lambda sheet: sheet.__setitem__("E5", "beside"))
    with pytest.raises(ToolError, match="E5 beside A1:C6 would be deleted with its row: set whole_rows to false"):
        delete(call, book, where=WEST, cells="A1:C6")
    delete(call, book, where=WEST, cells="A1:C6", whole_rows=False)
    expected = [ROWS[0], ROWS[1], ROWS[3], ROWS[5], [None] * 3]
    assert [row[:3] for row in rows_of(book)] == expected
    assert openpyxl.load_workbook(book)["Data"]["E5"].value == "beside"
    sums = openpyxl.load_workbook(book)["Sums"]
    assert [cell.value for cell in sums[1]] == ["=SUM(Data!C2:C4)", "=Data!C4", "=#REF!"]


def test_a_table_shrinks_beside_other_cells(book: Path, call: Call) -> None:
    def add(sheet: Any) -> None:
        sheet.add_table(Table(displayName="Sales", ref="A1:C6"))
        sheet["E3"], sheet["E9"] = "=SUM(Sales[Sales])", "=SUM(A2:E6)"
        sheet["A9"] = "below"
        fill = PatternFill("solid", bgColor="FFFF0000")
        sheet.conditional_formatting.add("B2:F9", CellIsRule(operator="equal", formula=["1"], fill=fill))

    change_sheet(book, call, add)
    delete(call, book, where=WEST, cells="Sales", whole_rows=False)
    sheet = openpyxl.load_workbook(book)["Data"]
    assert sheet.tables["Sales"].ref == "A1:C4"
    assert (sheet["A7"].value, sheet["E3"].value, sheet["E9"].value) == ("below", "=SUM(Sales[Sales])", "=SUM(A2:E6)")
    assert [str(area.sqref) for area in sheet.conditional_formatting] == ["B2:C7 D2:F9"]
    assert call("read_range", book.name, sheet="Data", cells="E3")["values"] == [[17]]


def test_what_would_be_cut_is_refused(book: Path, call: Call) -> None:
    change_sheet(book, call, lambda sheet: sheet.merge_cells("C8:D8"))
    with pytest.raises(ToolError, match="the merged cells C8:D8 would be cut"):
        delete(call, book, where=WEST, cells="A1:C6", whole_rows=False)
    change_sheet(book, call, lambda sheet: sheet.unmerge_cells("C8:D8"))
    change_sheet(book, call, lambda sheet: setattr(sheet.row_dimensions[4], "hidden", True))
    with pytest.raises(ToolError, match="rows 4 are hidden"):
        delete(call, book, where=WEST, cells="A1:C6", whole_rows=False)
    assert delete(call, book, duplicates_in=["*"])["hidden_rows_deleted"] == "4"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "say where"),
        ({"where": WEST, "at": "2"}, "choose rows themselves"),
        ({"where": [{"column": "Region", "value": "South"}]}, "no row of A1:C6 meets the conditions"),
        ({"duplicates_in": ["Price"]}, "no column 'Price'"),
        ({"at": "2", "whole_rows": False}, "say where"),
    ],
)
def test_a_deletion_that_is_not_clear_is_refused(
    book: Path, call: Call, arguments: dict[str, Any], message: str
) -> None:
    before = book.read_bytes()
    with pytest.raises(ToolError, match=message):
        delete(call, book, **arguments)
    assert book.read_bytes() == before


def test_totals_are_no_duplicates(book: Path, call: Call) -> None:
    change_sheet(book, call, lambda sheet: sheet.append(["Total", None, "=SUM(C2:C6)"]))
    answer = delete(call, book, where=[{"column": "Sales", "operator": ">", "value": 0}, *WEST])
    assert answer["totals_left_out"] == "7"
    assert rows_of(book)[-1] == ["Total", None, "=SUM(C2:C4)"]


NUMBERS = st.integers(1, 14)


@settings(max_examples=60, deadline=None)
@given(st.sets(NUMBERS, min_size=1, max_size=6), st.tuples(NUMBERS, NUMBERS).map(sorted))
def test_a_deletion_is_that_of_one_row_after_the_other(rows: set[int], span: list[int]) -> None:
    sheet = ExcelFile.new().active
    at_once = Deletion.of(sheet, sorted(rows))
    cells: CellRange | None = CellRange(None, 2, span[0], 3, span[1])
    reference = f"B{span[0]}:$C${span[1]}"
    for row in sorted(rows, reverse=True):
        step = Shift(sheet, "row", row, -1)
        cells = step.area(cells) if cells is not None else None
        reference = step.reference(reference)
    first = CellRange(None, 2, span[0], 3, span[1])
    assert (new := at_once.area(first)) == cells or (new is not None and cells is not None and new.coord == cells.coord)
    assert at_once.reference(f"B{span[0]}:$C${span[1]}") == reference
    part = Deletion.of(sheet, sorted(rows), (2, 3))
    assert part.reference(f"B{span[0]}:$C${span[1]}") == reference
    assert part.reference(f"A{span[0]}:C{span[1]}") == f"A{span[0]}:C{span[1]}"
