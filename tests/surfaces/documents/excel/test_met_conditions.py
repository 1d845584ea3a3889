"""Formats of several ranges, and of the cells that meet conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
from excel_books import change_sheet, save_book, workbook_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl.worksheet.cell_range import CellRange
from openpyxl.worksheet.table import Table

from callboard.surfaces import ToolError
from callboard.surfaces.documents.excel import _met_conditions, _workbook

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

    from callboard.surfaces.documents import DocumentSurface

ROWS = [["Item", "Region", "Sales"], ["a", "East", 5], ["b", "West", 12], ["c", "east", 7], ["d", "North", None]]
YELLOW = "FFFFFF00"


@pytest.fixture
def book(workspace: Path, call: Call) -> Path:
    """Give a workbook with one table, as plain cells."""
    return save_book(workbook_of(ROWS), workspace / "book.xlsx", call)


def colored(path: Path) -> set[str]:
    """List the yellow cells."""
    sheet = openpyxl.load_workbook(path).active
    return {cell.coordinate for row in sheet.iter_rows() for cell in row if cell.fill.fgColor.rgb == YELLOW}


def test_format_cells_formats_several_ranges_in_one_call(book: Path, call: Call) -> None:
    answer = call("format_cells", book.name, cells="A2:B2,C4, 'Sheet'!A5", fill="yellow", width=20)
    assert answer["cells"] == "A2:B2,C4,A5"
    assert colored(book) == {"A2", "B2", "C4", "A5"}
    widths = openpyxl.load_workbook(book).active.column_dimensions
    assert {widths[letter].width for letter in "ABC"} == {20}


def test_format_cells_refuses_ranges_of_several_sheets(book: Path, call: Call) -> None:
    call("add_sheet", book.name, title="A,B")
    with pytest.raises(ToolError, match="not on the sheet"):
        call("format_cells", book.name, cells="Sheet!A2,'A,B'!A1", fill="yellow")
    with pytest.raises(ToolError, match="empty range between commas"):
        call("format_cells", book.name, cells="A2,,A3", fill="yellow")
    with pytest.raises(ToolError, match="more than 1000 ranges"):
        call("format_cells", book.name, cells=",".join(["A1"] * 1001), fill="yellow")
    assert call("format_cells", book.name, cells="'A,B'!A1,'A,B'!C3", bold=True)["sheet"] == "A,B"


@pytest.mark.parametrize(
    ("cells", "where", "expected"),
    [
        ("", [{"column": "Region", "value": "EAST"}], {"A2", "B2", "C2", "A4", "B4", "C4"}),
        ("A1:A5", [{"column": "Sales", "operator": ">", "value": 6}], {"A3", "A4"}),
        ("A2:A5", [{"column": "C", "operator": ">", "value": 6}], {"A3", "A4"}),
        ("B2:C5", [{"operator": ">=", "value": 7}], {"C3", "C4"}),
        ("", [{"operator": "empty"}], {"C5"}),
        ("A1:C5", [{"column": "Item", "operator": "<>", "value": "b"}, {"operator": "<", "value": 7}], {"C2"}),
        ("A2:A3,C4:C5", [{"column": "Item", "operator": "<>", "value": "a"}], {"A3", "C4", "C5"}),
    ],
)  # fmt: skip
def test_format_cells_colors_what_meets_conditions(
    book: Path, call: Call, cells: str, where: list[dict[str, Any]], expected: set[str]
) -> None:
    answer = call("format_cells", book.name, cells=cells, where=where, fill="yellow")
    assert colored(book) == expected
    assert answer["cells_formatted"] == len(expected)


def test_format_cells_names_the_rows_that_it_formatted(book: Path, call: Call) -> None:
    answer = call("format_cells", book.name, where=[{"column": "Item", "operator": "filled"}], bold=True)
    assert answer["rows_formatted"] == "2:5"
    with pytest.raises(ToolError, match="no cell of A1:C5 meets the conditions"):
        call("format_cells", book.name, where=[{"column": "Sales", "operator": ">", "value": 99}], fill="yellow")
    with pytest.raises(ToolError, match="no column 'Price'"):
        call("format_cells", book.name, where=[{"column": "Price", "value": 1}], fill="yellow")


def test_conditions_look_up_the_columns_of_the_table_around(book: Path, call: Call) -> None:
    def add_table(sheet: Any) -> None:
        for row, line in enumerate([["Item", "Code"], ["x", 1], ["y", 2]], start=8):
            for column, value in enumerate(line, start=2):
                sheet.cell(row, column, value)
        sheet.add_table(Table(displayName="Codes", ref="B8:C10"))

    change_sheet(book, call, add_table)
    call("format_cells", book.name, cells="B9:B10", where=[{"column": "Code", "value": 2}], fill="yellow")
    assert colored(book) == {"B10"}


def test_a_condition_reads_the_table_around_the_cells(surface: DocumentSurface, book: Path) -> None:
    target = next(target for target in surface.targets() if target.id == book.name)
    where = [{"column": "Region", "value": "x"}]
    arguments = {"cells": "A2:A3,C2", "where": where, "sheet": "", "control_id": "", "control_name": ""}
    assert surface.canonical(target, "format_cells", arguments)["cells"] == "A2:A3,C2"
    named = surface.resources(target, "format_cells", arguments)
    assert {name.rpartition("!")[2] for name in named if name.startswith("range:")} == {"A2:A3", "C2", "A1:C5"}


CELLS = st.one_of(st.none(), st.integers(-5, 5), st.sampled_from(["a", "B", "b", "3", ""]), st.booleans())


def test_conditions_agree_with_a_plain_model() -> None:
    compare = {"=": int.__eq__, "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(CELLS, min_size=1, max_size=8), st.sampled_from([*compare]), st.integers(-5, 5))
    def check(column: list[Any], operator: str, number: int) -> None:
        file = _workbook.ExcelFile.new()
        sheet = file.active
        for row, value in enumerate(column, start=1):
            sheet.write(row, 1, value)
        condition = _met_conditions.CellCondition(operator=operator, value=number)
        cells = CellRange(None, 1, 1, 1, len(column))
        met = _met_conditions.cells_meeting(file, sheet, cells, [condition], header=False)
        expected = [
            (row, 1)
            for row, value in enumerate(column, start=1)
            if (isinstance(value, int) and not isinstance(value, bool) and compare[operator](value, number))
            or (operator == "=" and isinstance(value, str) and value == str(number))
        ]
        assert met == expected

    check()
