"""Hidden rows, hidden columns and filters of a workbook."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
import xlsxwriter
from openpyxl.worksheet.filters import CustomFilter, CustomFilters, FilterColumn, Filters

from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Call

HEADER = ["Name", "Salary", "City"]
ROWS = [["e", 5, "x"], ["b", 2, "y"], ["d", 4, "x"], ["a", 1, "y"], ["c", 3, "x"]]


def made(workspace: Path, change: Callable[[Any, Any], None], *, table: bool = False) -> Path:
    """Write a workbook of five rows with XlsxWriter, and change it."""
    path = workspace / "book.xlsx"
    book = xlsxwriter.Workbook(str(path))
    sheet = book.add_worksheet("Data")
    for number, row in enumerate([HEADER, *ROWS]):
        sheet.write_row(number, 0, row)
    if table:
        sheet.add_table("A1:C6", {"name": "People", "columns": [{"header": text} for text in HEADER]})
    change(book, sheet)
    book.close()
    return path


def filtered(_: Any, sheet: Any) -> None:
    """Filter the column City by x, which hides rows 3 and 5."""
    sheet.autofilter("A1:C6")
    sheet.filter_column("C", "x == x")
    for row in (2, 4):
        sheet.set_row(row, None, None, {"hidden": True})


def detail(surface: DocumentSurface, control: str) -> Any:
    target = next(target for target in surface.targets() if target.name == "book.xlsx")
    return next(entry.detail for entry in surface.observe(target).controls if entry.id == control)


def names(path: Path) -> list[object]:
    return [cell.value for cell in openpyxl.load_workbook(path)["Data"]["A"]][1:]


def test_observation_names_hidden_lines_and_filters(workspace: Path, surface: DocumentSurface) -> None:
    def change(book: Any, sheet: Any) -> None:
        filtered(book, sheet)
        sheet.set_column("B:B", 20, None, {"hidden": True})

    made(workspace, change)
    seen = detail(surface, "sheet-1")
    assert (seen["hidden_rows"], seen["hidden_columns"]) == ("3, 5", "B")
    assert seen["filters"] == [{"cells": "A1:C6", "column": "City", "shows": "x"}]


def test_observation_names_a_filter_of_a_table(workspace: Path, surface: DocumentSurface, call: Call) -> None:
    path = made(workspace, lambda *_: None, table=True)
    book = openpyxl.load_workbook(path)
    rule = CustomFilters(_and=True, customFilter=[CustomFilter("greaterThan", "1"), CustomFilter("lessThan", "5")])
    book["Data"].tables["People"].autoFilter.filterColumn.append(FilterColumn(colId=1, customFilters=rule))
    book.save(path)
    assert detail(surface, "table-1")["filters"] == [{"cells": "A1:C6", "column": "Salary", "shows": "> 1 and < 5"}]
    call("append_rows", "book.xlsx", values=[["f", 6, "y"]])
    assert detail(surface, "table-1")["filters"] == [{"cells": "A1:C7", "column": "Salary", "shows": "> 1 and < 5"}]


@pytest.mark.parametrize("how", ["filter", "hidden", "flat"])
def test_sort_moves_visible_rows_only(workspace: Path, call: Call, how: str) -> None:
    def change(book: Any, sheet: Any) -> None:
        if how == "filter":
            filtered(book, sheet)
        for row in (2, 4):
            sheet.set_row(row, 0 if how == "flat" else None, None, {"hidden": how != "flat"})

    path = made(workspace, change)
    answer = call("sort_range", "book.xlsx", by=[{"column": "Name"}])
    assert names(path) == ["c", "b", "d", "a", "e"]
    assert (answer["rows_sorted"], answer["hidden_rows"], answer["hidden_rows_sorted"]) == (3, "3, 5", 0)


def test_hidden_column_stays_hidden_when_reordered(workspace: Path, call: Call, surface: DocumentSurface) -> None:
    def change(_: Any, sheet: Any) -> None:
        sheet.set_column("B:B", 9, None, {"hidden": True})
        sheet.set_column("C:C", 40)

    path = made(workspace, change)
    call("reorder_columns", "book.xlsx", order=["City", "Salary", "Name"])
    assert detail(surface, "sheet-1")["hidden_columns"] == "B"
    call("reorder_columns", "book.xlsx", order=["Salary"])
    columns = openpyxl.load_workbook(path)["Data"].column_dimensions
    assert [(columns[letter].hidden, columns[letter].width) for letter in "AB"] == [
        (True, 9.7109375),
        (False, 40.7109375),
    ]


def test_reorder_refuses_to_show_what_stands_below(workspace: Path, call: Call) -> None:
    def change(_: Any, sheet: Any) -> None:
        sheet.set_column("B:B", 9, None, {"hidden": True})
        sheet.write("C9", "a note")

    path = made(workspace, change)
    before = path.read_bytes()
    with pytest.raises(ToolError, match="column B is hidden, and C9 outside of A1:C6"):
        call("reorder_columns", "book.xlsx", order=["Name", "City", "Salary"], cells="A1:C6")
    assert path.read_bytes() == before


@pytest.mark.parametrize("table", [False, True])
def test_criteria_of_filters_follow_their_column(
    workspace: Path, call: Call, surface: DocumentSurface, *, table: bool
) -> None:
    path = made(workspace, filtered if not table else lambda *_: None, table=table)
    if table:
        book = openpyxl.load_workbook(path)
        filters = book["Data"].tables["People"].autoFilter.filterColumn
        filters.append(FilterColumn(colId=2, filters=Filters(filter=["x"])))
        book.save(path)
    call("reorder_columns", "book.xlsx", order=["City"])
    seen = detail(surface, "table-1" if table else "sheet-1")
    assert seen["filters"] == [{"cells": "A1:C6", "column": "City", "shows": "x"}]


def test_answers_say_whether_hidden_rows_were_counted(workspace: Path, call: Call) -> None:
    made(workspace, filtered)
    answer = call("summarize", "book.xlsx", columns=["Salary"])
    assert (answer["summary"]["Salary"]["sum"], answer["hidden_rows"], answer["hidden_rows_counted"]) == (15, "3, 5", 2)
    answer = call("summarize", "book.xlsx", columns=["Salary"], where=[{"column": "City", "value": "x"}])
    assert answer["hidden_rows_counted"] == 0
    answer = call("filter_rows", "book.xlsx", where=[{"column": "Salary", "operator": "<", "value": 3}], to="F1")
    assert (answer["rows_copied"], answer["hidden_rows_copied"]) == (2, 2)
    answer = call("insert_chart", "book.xlsx", type="bar", columns=["Salary"], cells="A1:C6")
    assert answer["hidden_rows_drawn"] is False
    assert call("read_range", "book.xlsx", cells="A1:A3")["hidden_rows"] == "3"
    assert call("write_range", "book.xlsx", cell="A5", values=[["z"]])["hidden_rows"] == "5"
    assert "hidden" not in json.dumps(call("read_range", "book.xlsx", cells="A1:A2"))


def test_hidden_column_is_copied_as_a_hidden_one(workspace: Path, call: Call) -> None:
    path = made(workspace, lambda _, sheet: sheet.set_column("B:B", 9, None, {"hidden": True}))
    where = [{"column": "City", "value": "x"}]
    call("filter_rows", "book.xlsx", where=where, to="New!A1")
    assert openpyxl.load_workbook(path)["New"].column_dimensions["B"].hidden
    assert call("filter_rows", "book.xlsx", where=where, to="F1")["hidden_columns_copied"] == "B"


def test_inserted_column_among_hidden_ones_is_seen(workspace: Path, call: Call, surface: DocumentSurface) -> None:
    made(workspace, lambda _, sheet: sheet.set_column("A:B", 9, None, {"hidden": True}))
    call("insert_rows_or_columns", "book.xlsx", what="columns", at="B")
    assert detail(surface, "sheet-1")["hidden_columns"] == "A, C"


def test_deleted_hidden_lines_are_named(workspace: Path, call: Call) -> None:
    made(workspace, filtered)
    answer = call("delete_rows_or_columns", "book.xlsx", what="rows", at="2", count=3)
    assert answer["hidden_rows_deleted"] == "3"


def test_default_of_hidden_rows_counts(workspace: Path, surface: DocumentSurface) -> None:
    path = made(workspace, lambda _, sheet: sheet.set_default_row(None, hide_unused_rows=True))
    book = openpyxl.load_workbook(path)
    book["Data"]["A9"] = "far"
    book.save(path)
    assert detail(surface, "sheet-1")["hidden_rows"] == "7:8"
