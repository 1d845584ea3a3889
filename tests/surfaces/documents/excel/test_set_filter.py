"""Filters that hide rows: set, read and cleared."""

from __future__ import annotations

import shutil
import zipfile
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
from excel_books import change_sheet, save_book, workbook_of
from openpyxl.worksheet.table import Table

from callboard.surfaces import ToolError

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

ROWS = [
    ["Item", "Region", "Sales"], ["a", "East", 5], ["b", "West", 12], ["c", "east", 7], ["d", None, 1],
    ["Total", None, "=SUBTOTAL(9,C2:C5)"],
]  # fmt: skip
EAST = [{"column": "Region", "value": "East"}]


@pytest.fixture
def book(workspace: Path, call: Call) -> Path:
    """Give a workbook with a block and a row of totals."""
    return save_book(workbook_of(ROWS, "My data"), workspace / "book.xlsx", call)


def hidden(book: Path) -> list[int]:
    """List the hidden rows."""
    return [row for row, line in openpyxl.load_workbook(book).active.row_dimensions.items() if line.hidden]


def test_a_filter_hides_the_other_rows(book: Path, call: Call) -> None:
    answer = call("filter_rows", book.name, where=EAST)
    assert (answer["cells"], answer["rows_shown"], answer["rows_hidden"]) == ("A1:C5", 2, 2)
    assert hidden(book) == [3, 5]
    sheet = openpyxl.load_workbook(book).active
    assert sheet.auto_filter.ref == "A1:C5"
    assert sheet.sheet_properties.filterMode
    assert b"'My data'!$A$1:$C$5</" in workbook_part(book)
    detail = call("get_controls", book.name)["controls"][0]["detail"]
    assert detail["filters"] == [{"cells": "A1:C5", "column": "Region", "shows": "= East"}]
    assert detail["hidden_rows"] == "3, 5"


def workbook_part(book: Path) -> bytes:
    """Read the workbook's part."""
    with zipfile.ZipFile(book) as archive:
        return archive.read("xl/workbook.xml")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ([{"column": "Sales", "operator": ">", "value": 5}], [2, 5]),
        ([{"column": "C", "operator": ">=", "value": 5}, {"column": "Sales", "operator": "<", "value": 12}], [3, 5]),
        ([{"column": "Region", "operator": "empty"}], [2, 3, 4]),
        ([{"column": "Region", "operator": "filled"}, {"column": "C", "operator": "<>", "value": 7}], [4, 5]),
        ([{"column": "Region", "operator": "contains", "value": "ES"}], [2, 4, 5]),
        ([{"column": "Region", "operator": "begins", "value": "w"}], [2, 4, 5]),
    ],
)  # fmt: skip
def test_a_filter_holds_conditions_of_all_kinds(book: Path, call: Call, where: list, expected: list[int]) -> None:
    call("filter_rows", book.name, where=where)
    assert hidden(book) == expected
    if shutil.which("soffice"):  # which evaluates the criteria itself
        total = sum(ROWS[row - 1][2] for row in range(2, 6) if row not in expected)
        assert call("read_range", book.name, cells="C6")["values"] == [[total]]


def test_a_new_filter_replaces_the_former_one_and_is_cleared(book: Path, call: Call) -> None:
    call("filter_rows", book.name, where=EAST)
    call("filter_rows", book.name, where=[{"column": "Item", "value": "b"}])
    assert hidden(book) == [2, 4, 5]
    call("filter_rows", book.name, where=[])
    assert hidden(book) == []
    sheet = openpyxl.load_workbook(book).active
    assert (sheet.auto_filter.ref, sheet.sheet_properties.filterMode) == (None, None)
    assert b"definedName" not in workbook_part(book)


def test_the_filter_of_a_table_is_set_and_cleared(book: Path, call: Call) -> None:
    change_sheet(book, call, lambda sheet: sheet.add_table(Table(displayName="Sales", ref="A1:C5")))
    call("filter_rows", book.name, where=EAST, cells="Sales")
    table = openpyxl.load_workbook(book).active.tables["Sales"]
    assert table.autoFilter.filterColumn[0].colId == 1
    assert hidden(book) == [3, 5]
    call("filter_rows", book.name, where=[], cells="Sales")
    assert hidden(book) == []
    assert openpyxl.load_workbook(book).active.tables["Sales"].autoFilter.ref == "A1:C5"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"where": EAST * 3}, "at most 2 conditions on 'Region'"),
        ({"where": [*EAST, {"column": "Region", "operator": "empty"}]}, "empty stands alone"),
        ({"where": EAST, "header": False}, "a filter needs a header"),
        ({"where": [], "to": "H1"}, "say which rows are copied"),
        ({"where": [{"column": "Price", "value": 1}]}, "no column 'Price'"),
    ],
)
def test_a_filter_that_is_not_possible_is_refused(book: Path, call: Call, arguments: dict, message: str) -> None:
    before = book.read_bytes()
    with pytest.raises(ToolError, match=message):
        call("filter_rows", book.name, **arguments)
    assert book.read_bytes() == before


def test_a_second_filter_on_a_sheet_is_refused(book: Path, call: Call) -> None:
    call("filter_rows", book.name, where=EAST)
    call("write_range", book.name, cell="H1", values=[["k"], ["v"]])
    with pytest.raises(ToolError, match="A1:C5 on 'My data' has a filter"):
        call("filter_rows", book.name, where=[{"column": "k", "value": "v"}], cells="H1:H2")


def test_totals_of_visible_rows_follow_a_filter(book: Path, call: Call) -> None:
    answer = call("filter_rows", book.name, where=EAST)
    value: Any = call("read_range", book.name, cells="C6")["values"][0][0]
    assert value == (12 if shutil.which("soffice") else "(not computed)"), answer
