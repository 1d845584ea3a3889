"""Pivot tables, inserted and edited as an agent does."""

from __future__ import annotations

import datetime as dt
import zipfile
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
from lxml import etree

from callboard.surfaces import ToolError
from callboard.surfaces.documents.excel import _pivot_results, _pivot_source

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from conftest import Call

    from callboard.messages import Control
    from callboard.surfaces.documents import DocumentSurface

HEADER = ["Region", "Item", "Quarter", "Amount", "Units"]
ROWS: list[list[Any]] = [
    ["East", "Desk", "Q1", 10, 1],
    ["West", "Lamp", "Q1", 20.5, None],
    ["east", "Desk", "Q2", 5, 3],
    ["East", None, "Q2", 4, "x"],
    ["West", "Desk", "Q2", -1, 2],
]
AMOUNT = [{"column": "Amount"}]
N = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def made(folder: Path, rows: Iterable[list[Any]] = ROWS, header: list[Any] = HEADER, name: str = "book.xlsx") -> Path:
    book = openpyxl.Workbook()
    book.active.title = "Data"
    for row in [header, *rows]:
        book.active.append(row)
    book.save(folder / name)
    return folder / name


def shown(call: Call, name: str = "book.xlsx", pivot: str = "pivot-1") -> Any:
    return call("read_range", name, control_id=pivot)["values"]


def pivots(surface: DocumentSurface, name: str = "book.xlsx") -> list[Control]:
    target = next(target for target in surface.targets() if target.name == name)
    return [control for control in surface.observe(target).controls if control.kind == "pivot"]


def part(path: Path, name: str) -> Any:
    with zipfile.ZipFile(path) as archive:
        return etree.fromstring(archive.read(name))


def test_pivot_table_sums_by_group(call: Call, workspace: Path, surface: DocumentSurface) -> None:
    made(workspace)
    answer = call("insert_pivot", "book.xlsx", rows=["Region"], values=AMOUNT)
    assert answer == {
        "sheet": "Pivot", "cells": "A1:B4", "control_id": "pivot-1", "name": "PivotTable1", "source": "Data!A1:E6",
        "source_rows": 5,
    }  # fmt: skip
    assert shown(call) == [["Region", "Sum of Amount"], ["East", 19], ["West", 19.5], ["Grand Total", 38.5]]
    (control,) = pivots(surface)
    assert (control.id, control.name, control.place) == ("pivot-1", "PivotTable1", "Pivot")
    assert control.detail == {
        "sheet": "sheet-2", "cells": "A1:B4", "source": "Data!A1:E6", "rows": ["Region"], "columns": [],
        "values": {"Sum of Amount": "sum of Amount"}, "filters": {},
    }  # fmt: skip


def test_pivot_table_has_subtotals_and_columns(call: Call, workspace: Path) -> None:
    made(workspace)
    call("insert_pivot", "book.xlsx", rows=["Region", "Item"], columns=["Quarter"], values=AMOUNT, to="Data!H2")
    assert shown(call) == [
        ["Sum of Amount", None, "Quarter", None, None],
        ["Region", "Item", "Q1", "Q2", "Grand Total"],
        ["East", "Desk", 10, 5, 15],
        [None, "(blank)", None, 4, 4],
        ["East Total", None, 10, 9, 19],
        ["West", "Desk", None, -1, -1],
        [None, "Lamp", 20.5, None, 20.5],
        ["West Total", None, 20.5, -1, 19.5],
        ["Grand Total", None, 30.5, 8, 38.5],
    ]


def test_values_stand_side_by_side(call: Call, workspace: Path) -> None:
    made(workspace)
    values = [{"column": "D", "function": "average", "name": "Mean"}, {"column": "Units", "function": "count"}]
    call("insert_pivot", "book.xlsx", rows=["Quarter"], values=values, to="S!A1")
    assert shown(call) == [
        [None, "Values", None],
        ["Quarter", "Mean", "Count of Units"],
        ["Q1", 15.25, 1],
        ["Q2", pytest.approx(8 / 3), 3],
        ["Grand Total", 7.7, 4],
    ]
    call("insert_pivot", "book.xlsx", sheet="Data", rows=["Region"], columns=["Quarter"], values=values, to="S!F1")
    assert shown(call, pivot="pivot-2")[:4] == [
        [None, "Quarter", "Values", None, None, None, None],
        [None, "Q1", None, "Q2", None, "Total Mean", "Total Count of Units"],
        ["Region", "Mean", "Count of Units", "Mean", "Count of Units", None, None],
        ["East", 10, 1, 4.5, 2, pytest.approx(19 / 3), 3],
    ]


@pytest.mark.parametrize(
    ("function", "figures"),
    [
        ("sum", [4, 2, 6]), ("count", [3, 1, 4]), ("count_numbers", [2, 1, 3]), ("average", [2, 2, 2]),
        ("max", [3, 2, 3]), ("min", [1, 2, 1]), ("product", [3, 2, 6]),
    ],
)  # fmt: skip
def test_functions_leave_out_texts_and_empty_cells(
    call: Call, workspace: Path, function: str, figures: list[int]
) -> None:
    made(workspace)
    call("insert_pivot", "book.xlsx", rows=["Region"], values=[{"column": "Units", "function": function}])
    assert [row[1] for row in shown(call)[1:]] == figures


def test_group_without_numbers_shows_what_excel_shows(call: Call, workspace: Path) -> None:
    made(workspace, [["a", "x"], ["b", None], ["c", 1e308], ["c", 1e308], ["d", 2]], ["Key", "Value"])
    values = [{"column": "Value", "function": name} for name in ("sum", "average", "min")]
    call("insert_pivot", "book.xlsx", rows=["Key"], values=values)
    assert shown(call)[2:6] == [
        ["a", 0, "#DIV/0!", 0], ["b", None, None, None], ["c", "#NUM!", "#NUM!", 1e308], ["d", 2, 2, 2],
    ]  # fmt: skip


def test_filters_choose_rows(call: Call, workspace: Path, surface: DocumentSurface) -> None:
    made(workspace)
    filters = [{"column": "Item", "values": ["desk"]}, {"column": "Quarter"}, {"column": "Units", "values": ["1", "3"]}]
    call("insert_pivot", "book.xlsx", rows=["Region"], values=AMOUNT, filters=filters, totals=False)
    assert shown(call) == [
        ["Item", "Desk"], ["Quarter", "(All)"], ["Units", "(Multiple Items)"], [None, None],
        ["Region", "Sum of Amount"], ["East", 15],
    ]  # fmt: skip
    (control,) = pivots(surface)
    assert control.detail["filters"] == {"Item": ["Desk"], "Quarter": "all", "Units": ["1", "3"]}
    assert control.detail["cells"] == "A1:B6"


def test_dates_and_formats_are_those_of_the_source(call: Call, workspace: Path) -> None:
    path = made(workspace, [[dt.date(2024, 2, 1), 1.5, True], [dt.date(2024, 1, 1), 2, False]], ["Day", "Price", "On"])
    book = openpyxl.load_workbook(path)
    for row in (2, 3):
        book["Data"].cell(row, 1).number_format, book["Data"].cell(row, 2).number_format = "dd.mm.yyyy", "#,##0.00"
    book.save(path)
    values = [{"column": "Price"}, {"column": "Day", "function": "max"}, {"column": "Price", "function": "count"}]
    call("insert_pivot", "book.xlsx", rows=["Day", "On"], values=values, to="P!A1")
    sheet, day = openpyxl.load_workbook(path)["P"], dt.datetime.fromisoformat("2024-01-01")
    assert [sheet.cell(3, column).value for column in range(1, 6)] == [
        day, False, 2, day, 1,
    ]  # fmt: skip
    assert [sheet.cell(3, n).number_format for n in range(1, 6)] == [
        "dd.mm.yyyy", "General", "#,##0.00", "dd.mm.yyyy", "General",
    ]  # fmt: skip
    (field, _, _) = part(path, "xl/pivotCache/pivotCacheDefinition1.xml").iter(f"{N}cacheField")
    assert [item.get("v") for item in field[0]] == ["2024-01-01T00:00:00", "2024-02-01T00:00:00"]


def test_file_has_the_parts_that_excel_needs(call: Call, workspace: Path) -> None:
    path = made(workspace)
    call("insert_pivot", "book.xlsx", rows=["Region"], columns=["Item"], values=AMOUNT, name='A "b" <c> & ü')
    book = openpyxl.load_workbook(path)
    (pivot,) = book["Pivot"]._pivots
    assert pivot.name == 'A "b" <c> & ü'
    assert pivot.location.ref == "A1:E5"
    assert pivot.cache.refreshOnLoad
    assert [field.name for field in pivot.cache.cacheFields] == HEADER
    assert len(pivot.cache.records.r) == len(ROWS)
    assert [line.t for line in pivot.rowItems] == ["data", "data", "grand"]
    caches = part(path, "xl/workbook.xml").find(f"{N}pivotCaches")
    assert [cache.get("cacheId") for cache in caches] == ["1"]
    book.save(path)  # openpyxl keeps it
    assert shown(call)[-1] == ["Grand Total", 14, 20.5, 4, 38.5]


def test_table_is_named_as_the_source_and_grows(call: Call, workspace: Path, surface: DocumentSurface) -> None:
    made(workspace, [])
    call(
        "insert_table",
        "book.xlsx",
        header=["Key", "Value"],
        rows=[["a", 1], ["b", 2]],
        sheet="Data",
        cell="A5",
        name="T",
    )
    assert call("insert_pivot", "book.xlsx", cells="T", rows=["Key"], values=[{"column": "Value"}])["source"] == "T"
    answer = call("append_rows", "book.xlsx", control_id="table-1", values=[["c", 3]])
    assert answer["pivots_to_refresh"] == ["pivot-1"]
    call("edit_pivot", "book.xlsx", control_id="pivot-1")
    assert shown(call)[-2:] == [["c", 3], ["Grand Total", 6]]
    assert pivots(surface)[0].detail["source"] == "T"


def test_edited_pivot_table_keeps_the_rest(call: Call, workspace: Path) -> None:
    path = made(workspace)
    call("insert_pivot", "book.xlsx", rows=["Region"], values=AMOUNT, to="P!B2", name="First")
    call("insert_pivot", "book.xlsx", sheet="Data", rows=["Item"], values=AMOUNT, to="P!H2")
    call("write_range", "book.xlsx", sheet="Data", cell="D2", values=[[110]])
    filters = [{"column": "Quarter", "values": ["Q1"]}]
    answer = call("edit_pivot", "book.xlsx", control_id="pivot-1", columns=["Item"], filters=filters)
    assert (answer["control_id"], answer["cells"], answer["name"]) == ("pivot-1", "B2:E8", "First")
    expected = [
        ["Quarter", "Q1", None, None], [None] * 4, ["Sum of Amount", "Item", None, None],
        ["Region", "Desk", "Lamp", "Grand Total"], ["East", 110, None, 110], ["West", None, 20.5, 20.5],
        ["Grand Total", 110, 20.5, 130.5],
    ]  # fmt: skip
    assert shown(call) == expected
    before = path.read_bytes()
    call("edit_pivot", "book.xlsx", control_id="pivot-1")
    assert shown(call) == expected
    call("edit_pivot", "book.xlsx", control_id="pivot-1", rows=["Item"], columns=[], filters=[], totals=False)
    assert shown(call) == [["Item", "Sum of Amount"], ["Desk", 114], ["Lamp", 20.5], ["(blank)", 4]]
    assert call("read_range", "book.xlsx", sheet="P", cells="B6:E8")["values"] == [[None] * 4] * 3
    with zipfile.ZipFile(path) as archive:
        assert len([name for name in archive.namelist() if "pivotCacheDefinition" in name]) == 4  # with their links
    assert before != path.read_bytes()


def test_source_is_changed(call: Call, workspace: Path) -> None:
    made(workspace)
    call("insert_pivot", "book.xlsx", rows=["Region"], values=AMOUNT)
    rows = [*[[f"more {n}", None, None, n, None] for n in range(2)], ["East", None, None, 1, None]]
    call("write_range", "book.xlsx", sheet="Data", cell="A7", values=rows)
    assert call("edit_pivot", "book.xlsx", control_id="pivot-1", cells="A1:E9")["source"] == "Data!A1:E9"
    assert [row[0] for row in shown(call)] == ["Region", "East", "more 0", "more 1", "West", "Grand Total"]
    with pytest.raises(ToolError, match=r"uses the column 'Region', and D1:E9 has none"):
        call("edit_pivot", "book.xlsx", control_id="pivot-1", cells="D1:E9")


def test_pivot_table_is_deleted_with_its_parts(call: Call, workspace: Path, surface: DocumentSurface) -> None:
    path = made(workspace)
    with zipfile.ZipFile(path) as archive:
        names = {*archive.namelist()}
    call("insert_pivot", "book.xlsx", rows=["Region"], values=AMOUNT, to="Data!H1", filters=[{"column": "Item"}])
    answer = call("edit_pivot", "book.xlsx", control_id="pivot-1", delete=True)
    assert answer == {"sheet": "Data", "deleted": "pivot-1", "emptied": "H1:I6"}
    assert not pivots(surface)
    assert call("read_range", "book.xlsx", sheet="Data")["cells"] == "A1:E6"
    with zipfile.ZipFile(path) as archive:
        assert {*archive.namelist()} - names <= {"xl/worksheets/_rels/sheet1.xml.rels"}
    assert part(path, "xl/workbook.xml").find(f"{N}pivotCaches") is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rows": ["Area"]}, "no column 'Area'"),
        ({"rows": ["Region", "A"]}, "'A' stands twice"),
        ({"columns": ["Region"]}, "'Region' stands twice"),
        ({"values": [{"column": "Item"}]}, "'Item' has no numbers, so there is no sum of them; use the function count"),
        ({"values": [{"column": "Amount", "name": "units"}]}, "can't be the heading of a value"),
        ({"filters": [{"column": "Item", "values": ["Dsk"]}]}, "'Item' has no value 'Dsk'"),
        ({"rows": ["B"], "filters": [{"column": c, "values": [v]} for c, v in (("A", "West"), ("E", "1"))]}, "no rows"),
        ({"to": "Data!D3"}, "overlaps A1:E6"),
        ({"to": "Data!B8"}, "is not empty"),
        ({"to": "Old!A3"}, "is not empty"),
        ({"to": "Old!XFD1"}, "do not fit"),
        ({"name": "taken"}, "'taken' can't name the pivot table"),
        ({"cells": "Data!A2:E6"}, "begins below the header"),
        ({"cells": "Data!A1:E1"}, "no rows below its header"),
        ({"cells": "Data!A1:F6"}, r"the header is empty in F1"),
    ],
)  # fmt: skip
def test_unusable_pivot_table_is_refused(call: Call, workspace: Path, changes: dict[str, Any], reason: str) -> None:
    path = made(workspace)
    call("write_range", path.name, sheet="Data", cell="C10", values=[["here"]])
    call("insert_pivot", path.name, cells="Data!A1:E6", rows=["Item"], values=AMOUNT, to="Old!A1", name="Taken")
    before = path.read_bytes()
    arguments = {"cells": "Data!A1:E6", "rows": ["Region"], "values": AMOUNT, **changes}
    with pytest.raises(ToolError, match=reason):
        call("insert_pivot", path.name, **arguments)
    assert path.read_bytes() == before


def test_hostile_headers_and_values_are_kept(call: Call, workspace: Path) -> None:
    header = ["=Key", "Value", "Value", 'It\'s <a> & "b"', 2024]
    rows = [
        ["=1+1", 1, 10, "_x0041_\n&<>\"'", "1.5"], ["+x", 2, 20, "#N/A", 3], [7, 3, 30, None, "x" * 300],
    ]  # fmt: skip
    made(workspace, [], [None])
    call("write_range", "book.xlsx", values=[header, *rows])
    values = [{"column": "C"}, {"column": "2024", "function": "max"}]
    answer = call("insert_pivot", "book.xlsx", rows=["=Key", header[3]], values=values, totals=False)
    assert answer["texts_not_counted"] == ["E2"]
    assert shown(call) == [
        [None, None, "Values", None],
        ["=Key", header[3], "Sum of Value2", "Max of 2024"],
        [7, "(blank)", 30, 0],
        ["+x", "#N/A", 20, 3],
        ["=1+1", "_x0041_\n&<>\"'", 10, 0],
    ]
    with pytest.raises(ToolError, match="two columns are called 'Value'"):
        call("insert_pivot", "book.xlsx", sheet="Data", rows=["=Key"], values=[{"column": "Value"}])
    call("edit_pivot", "book.xlsx", control_id="pivot-1")
    assert shown(call)[2] == [7, "(blank)", 30, 0]


def test_error_in_a_used_column_is_refused(call: Call, workspace: Path) -> None:
    path = made(workspace, [["a", 1, 1], ["b", "#N/A", 2]], ["Key", "Value", "Other"])
    book = openpyxl.load_workbook(path)
    book["Data"]["B3"].data_type = "e"
    book.save(path)
    with pytest.raises(ToolError, match=r"B3 holds the error #N/A"):
        call("insert_pivot", "book.xlsx", rows=["Key"], values=[{"column": "Value", "function": "count"}])
    call("insert_pivot", "book.xlsx", rows=["Key"], values=[{"column": "Other"}])
    assert shown(call)[-1] == ["Grand Total", 3]


def test_formulas_count_with_their_results(call: Call, workspace: Path) -> None:
    path = made(workspace, [["a", 1, "=B2*2"], ["b", 2, "=B3*2"]], ["Key", "Value", "Twice"])
    call("insert_pivot", path.name, rows=["Key"], values=[{"column": "Twice"}])
    assert shown(call)[1:] == [["a", 2], ["b", 4], ["Grand Total", 6]]


def test_totals_of_the_source_are_left_out(call: Call, workspace: Path) -> None:
    made(workspace, [["a", 1], ["b", 2], ["Total", "=SUM(B2:B3)"]], ["Key", "Value"])
    answer = call("insert_pivot", "book.xlsx", rows=["Key"], values=[{"column": "Value"}])
    assert (answer["source"], answer["totals_left_out"]) == ("Data!A1:B3", "4")
    made(workspace, [["a", 1], ["b", 2], ["Total", "=SUM(B2:B3)"], ["c", 4]], ["Key", "Value"], "between.xlsx")
    with pytest.raises(ToolError, match="has totals between its rows"):
        call("insert_pivot", "between.xlsx", rows=["Key"], values=[{"column": "Value"}])
    named = call("insert_pivot", "between.xlsx", cells="A1:B5", rows=["Key"], values=[{"column": "Value"}])
    assert named["totals_counted"] == "4"


def test_sizes_are_bounded(call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(workspace)
    monkeypatch.setattr(_pivot_source, "_MAX_ROWS", 4)
    with pytest.raises(ToolError, match=r"A1:E6 has 5 rows and 5 columns; a pivot table reads at most 4 rows"):
        call("insert_pivot", "book.xlsx", rows=["Region"], values=AMOUNT)
    monkeypatch.undo()
    monkeypatch.setattr(_pivot_results, "_MAX_CELLS", 5)
    with pytest.raises(ToolError, match=r"would have 6 cells, and at most 5 are written"):
        call("insert_pivot", "book.xlsx", rows=["Region"], values=AMOUNT)


def test_protected_sheet_is_refused(call: Call, workspace: Path, surface: DocumentSurface) -> None:
    path = made(workspace)
    call("insert_pivot", path.name, rows=["Region"], values=AMOUNT, to="P!A1")
    book = openpyxl.load_workbook(path)
    book["P"].protection.sheet = True
    book.save(path)
    assert pivots(surface)
    for name, arguments in (
        ("insert_pivot", {"sheet": "Data", "rows": ["Region"], "values": AMOUNT, "to": "P!H1"}),
        ("edit_pivot", {"control_id": "pivot-1"}),
        ("edit_pivot", {"control_id": "pivot-1", "delete": True}),
    ):
        with pytest.raises(ToolError, match="is protected"):
            call(name, path.name, **arguments)


def test_growing_pivot_table_overwrites_no_cells(call: Call, workspace: Path) -> None:
    path = made(workspace)
    call("insert_pivot", path.name, rows=["Region"], values=AMOUNT, to="P!A1")
    call("write_range", path.name, sheet="P", cell="A6", values=[["note"]])
    before = path.read_bytes()
    with pytest.raises(ToolError, match=r"A1:C7 is not empty \(A6\); the pivot table has grown"):
        call(
            "edit_pivot",
            path.name,
            control_id="pivot-1",
            rows=["Region", "Item"],
            totals=False,
            columns=[],
            filters=[{"column": "Quarter"}],
        )
    assert path.read_bytes() == before


def test_edit_says_what_it_does(call: Call, workspace: Path) -> None:
    made(workspace)
    call("insert_pivot", "book.xlsx", rows=["Region"], values=AMOUNT)
    with pytest.raises(ToolError, match="either delete the pivot table, or change it"):
        call("edit_pivot", "book.xlsx", control_id="pivot-1", delete=True, cells="A1:B2")
    with pytest.raises(ToolError, match="'sheet-1' is no pivot table, but a sheet"):
        call("edit_pivot", "book.xlsx", control_id="sheet-1")


def test_answer_names_hidden_rows_of_the_source(call: Call, workspace: Path) -> None:
    path = made(workspace)
    book = openpyxl.load_workbook(path)
    book["Data"].row_dimensions[3].hidden = True
    book.save(path)
    assert call("insert_pivot", path.name, rows=["Region"], values=AMOUNT)["source_hidden_rows"] == "3"


def refreshed(call: Call) -> Any:
    """Refresh the pivot table, and check that it is computed and stays as it was."""
    before = shown(call)
    answer = call("edit_pivot", "book.xlsx", control_id="pivot-1")
    assert "not_computed" not in answer
    assert shown(call) == before
    return before


def test_accented_items_are_sorted_and_refreshed(call: Call, workspace: Path) -> None:
    keys = ["Berta", "\u00c4rger", "a-b", "Zeta", "ab", "\u00e9t\u00e9", "b ", "B", "\u00df", "ss"]
    made(workspace, [[key, 1] for key in keys], ["Key", "Value"])
    call("insert_pivot", "book.xlsx", rows=["Key"], values=[{"column": "Value"}], totals=False)
    labels = [row[0] for row in refreshed(call)[1:]]
    assert sorted(labels) == sorted(keys)
    assert labels.index("\u00c4rger") < labels.index("Berta") < labels.index("\u00e9t\u00e9") < labels.index("Zeta")


def test_numbers_and_dates_of_one_column_are_refreshed(call: Call, workspace: Path) -> None:
    days = [dt.date(2024, 1, 1), 45293, dt.date(2024, 1, 3), None, True, "x"]
    made(workspace, [[day, 1] for day in days], ["Day", "Value"])
    call("insert_pivot", "book.xlsx", rows=["Day"], values=[{"column": "Value"}], totals=False)
    assert len(refreshed(call)) == 7


ALPHABETICAL = [["April", "Jan", "May"], ["Ann", "May"]]
"""Lists of items that are no names of months or days of one form."""


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Mar", "Jan", "feb", "Dec"], ["Jan", "feb", "Mar", "Dec"]),
        (["March", "January", "May"], ["January", "March", "May"]),
        (["Mon", "Sun", "Fri"], ["Sun", "Mon", "Fri"]),
        (["Friday", "Monday"], ["Monday", "Friday"]),
        (["May", "April", "Jan"], ["April", "Jan", "May"]),
        (["May", "Ann"], ["Ann", "May"]),
    ],
)
def test_months_and_days_stand_in_calendar_order(
    call: Call, workspace: Path, names: list[str], expected: list[str]
) -> None:
    path = made(workspace, [[name, 1] for name in names], ["Name", "Value"])
    call("insert_pivot", path.name, rows=["Name"], values=[{"column": "Value"}], totals=False)
    assert [row[0] for row in refreshed(call)[1:]] == expected
    sort = next(part(path, "xl/pivotTables/pivotTable1.xml").iter(f"{N}pivotField")).get("sortType")
    assert sort == ("ascending" if expected in ALPHABETICAL else None)


def test_filter_keeps_all_that_is_shown_alike(call: Call, workspace: Path) -> None:
    made(workspace, [[2024, 1], ["2024", 2], [2023, 4]], ["Year", "Value"])
    filters = [{"column": "Year", "values": ["2024"]}]
    call("insert_pivot", "book.xlsx", rows=["Value"], values=[{"column": "Value"}], filters=filters)
    assert refreshed(call)[-1] == ["Grand Total", 3]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (123456789012345678, "1.23456789012346e+17"),
        (0.1 + 0.2, "0.3"),
        (dt.datetime(2024, 1, 2, 10, 30, 15, 700000), "2024-01-02T10:30:16"),  # noqa: DTZ001 - Excel has no zones
        (dt.time(10, 30), "10:30:00"),
        (dt.date(2024, 1, 2), "2024-01-02"),
        (dt.timedelta(hours=30), "1900-01-01T06:00:00"),
        (True, "TRUE"),
    ],
)
def test_filter_of_one_value_is_refreshed(call: Call, workspace: Path, value: object, text: str) -> None:
    made(workspace, [[value, 1], ["other", 2]], ["Key", "Value"])
    filters = [{"column": "Key", "values": [text]}]
    call("insert_pivot", "book.xlsx", rows=["Value"], values=[{"column": "Value"}], filters=filters)
    assert refreshed(call)[-1] == ["Grand Total", 1]


def test_moments_of_one_second_are_one_item(call: Call, workspace: Path) -> None:
    moments = [dt.datetime(2024, 1, 2, 10, 30, 15, part) for part in (0, 1000, 400000)]  # noqa: DTZ001 - as above
    path = made(workspace, [[moment, 1] for moment in moments], ["When", "Value"])
    call("insert_pivot", path.name, rows=["When"], values=[{"column": "Value"}], totals=False)
    assert [row[1] for row in shown(call)] == ["Sum of Value", 3]
    (field, _) = part(path, "xl/pivotCache/pivotCacheDefinition1.xml").iter(f"{N}cacheField")
    assert [item.get("v") for item in field[0]] == ["2024-01-02T10:30:15"]


def test_look_that_was_chosen_in_excel_is_kept(call: Call, workspace: Path, surface: DocumentSurface) -> None:
    path = made(workspace)
    values = [{"column": "Amount"}, {"column": "Amount", "function": "average"}]
    call("insert_pivot", path.name, rows=["Region"], values=values, to="P!A1")
    book = openpyxl.load_workbook(path)
    (pivot,) = book["P"]._pivots
    pivot.pivotTableStyleInfo.name = "PivotStyleMedium9"
    pivot.dataFields[0].numFmtId = 4
    book.save(path)
    assert pivots(surface)
    call("edit_pivot", path.name, control_id="pivot-1", columns=["Quarter"], totals=False)
    book = openpyxl.load_workbook(path)
    (pivot,) = book["P"]._pivots
    assert pivot.pivotTableStyleInfo.name == "PivotStyleMedium9"
    assert [field.numFmtId for field in pivot.dataFields] == [4, None]
    assert [book["P"].cell(4, column).number_format for column in (2, 3)] == ["#,##0.00", "General"]


def test_long_headers_are_cut_as_in_excel(call: Call, workspace: Path) -> None:
    path = made(workspace, [["a", 1, 2, 3]], ["k" * 300, "v" * 300, "v" * 299 + "w", "v" * 255])
    call("insert_pivot", path.name, rows=["A"], values=[{"column": letter} for letter in "BCD"])
    fields = part(path, "xl/pivotCache/pivotCacheDefinition1.xml").iter(f"{N}cacheField")
    names = [field.get("name") for field in fields]
    assert names == ["k" * 255, "v" * 255, "v" * 254 + "2", "v" * 254 + "3"]
    headings = refreshed(call)[1][1:]
    assert len({*headings}) == 3
    assert {len(heading) for heading in headings} == {255}
