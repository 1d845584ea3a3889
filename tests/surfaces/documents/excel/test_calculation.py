"""Results from programs that may fail, lie, or be wrong about some functions."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import zipfile
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
import xlsxwriter
from office_files import changed, rewritten
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from callboard.errors import ToolError
from callboard.surfaces.documents import DocumentSurface
from callboard.surfaces.documents._libre_office import LIBRE_OFFICE, OfficeFailedError
from callboard.surfaces.documents.excel import _engines
from callboard.surfaces.documents.excel._trusted_functions import VERSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conftest import Call

    Book = Callable[..., None]

ANSWER = """
import json, os, sys
value = ",".join(sorted(os.environ))
json.dump([{"unknown": [], "values": [[0, value, False]]}], open(sys.argv[2], "w"))
"""
NOT_COMPUTED = "(not computed)"


@pytest.fixture(scope="module")
def office() -> Iterator[None]:
    """Keep one LibreOffice for all tests of this module."""
    if shutil.which("soffice") is None:
        (pytest.fail if os.environ.get("REQUIRE_SOFFICE") == "1" else pytest.skip)("soffice is not installed")
    LIBRE_OFFICE.open()
    yield
    LIBRE_OFFICE.close()


@pytest.fixture
def no_office(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave only IronCalc."""
    monkeypatch.setattr(_engines.Office, "is_available", lambda _: False)


@pytest.fixture
def book(workspace: Path) -> Book:
    """Write formulas that were never computed into the first column."""

    def write(*formulas: str) -> None:
        made = openpyxl.Workbook()
        for formula in formulas:
            made.active.append([formula])
        made.save(workspace / "book.xlsx")

    return write


def values(call: Call, cells: str = "") -> list[Any]:
    """Read the first column."""
    return [row[0] for row in call("read_range", "book.xlsx", cells=cells)["values"]]


def stored(workspace: Path, cell: str) -> Any:
    """Return the result that the file holds."""
    return openpyxl.load_workbook(workspace / "book.xlsx", data_only=True).active[cell].value


def with_results(workspace: Path, rows: list[list[Any]], formulas: dict[str, tuple[str, Any]]) -> None:
    """Write a workbook with values, and formulas with results as another program left them."""
    with xlsxwriter.Workbook(workspace / "book.xlsx") as made:
        sheet = made.add_worksheet("Sheet")
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)
        for cell, (formula, result) in formulas.items():
            sheet.write_formula(cell, formula, None, result)


# Programs that fail


@pytest.mark.parametrize(
    "program", ["import time; time.sleep(60)", "import os; os._exit(3)", "raise SystemExit('no results')"]
)
@pytest.mark.usefixtures("no_office")
def test_a_calculator_that_hangs_or_crashes_computes_nothing(
    book: Book, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    fake = tmp_path / "fake.py"
    fake.write_text(program)
    monkeypatch.setattr(_engines, "_PROGRAM", fake)
    monkeypatch.setattr(_engines, "SECONDS", 1)
    book("=1+1")
    assert values(call) == [NOT_COMPUTED]


@pytest.mark.usefixtures("no_office")
def test_the_calculator_does_not_get_the_environment(
    book: Book, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "fake.py"
    fake.write_text(ANSWER)
    monkeypatch.setattr(_engines, "_PROGRAM", fake)
    monkeypatch.setenv("API_KEY", "secret")
    book("=1+1")
    (names,) = values(call)
    assert set(str(names).split(",")) <= {"SYSTEMROOT", "LD_LIBRARY_PATH", "LC_CTYPE", "__CF_USER_TEXT_ENCODING"}
    assert "API_KEY" in os.environ


def test_formula_that_libreoffice_fails_at_has_no_result(
    book: Book, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OfficeFailedError

    monkeypatch.setattr(_engines.Office, "is_available", lambda _: True)
    monkeypatch.setattr(LIBRE_OFFICE, "convert", fail)
    book("=SUMPRODUCT(LEN(B1:B2))", "=1+1")
    assert values(call) == [NOT_COMPUTED, 2]


@pytest.mark.parametrize(
    "formula",
    [
        "=SUM(_xlfn.SEQUENCE(1048576,16384))",
        '=WEBSERVICE("http://127.0.0.1:9/")',
        "=IFERROR(NOFUNCTION(1),0)",
        "=IFERROR(_xlfn.UNIQUE(B1:B3),0)",
        '=IFERROR(CELL("filename"),0)',
        "=A1",
        '=REPT(REPT("x",32000),32000)',
        "='[1]My sheet'!A1+1",
    ],
)
@pytest.mark.usefixtures("office")
def test_a_formula_that_no_program_knows_is_not_computed(book: Book, call: Call, formula: str) -> None:
    book(formula, "=1+1", "=A1")
    assert values(call) == [NOT_COMPUTED, 2, NOT_COMPUTED]


@pytest.mark.usefixtures("no_office")
def test_iron_calc_computes_nothing_where_dates_count_from_1904(call: Call, workspace: Path) -> None:
    made = openpyxl.Workbook()
    made.epoch = CALENDAR_MAC_1904
    made.active.append([dt.date(2024, 5, 1), "=YEAR(A1)"])
    made.save(workspace / "book.xlsx")
    call("set_formula", "book.xlsx", cells="C1", formula="=YEAR(A1)")
    assert call("read_range", "book.xlsx")["values"] == [["2024-05-01", NOT_COMPUTED, NOT_COMPUTED]]


@pytest.mark.usefixtures("no_office")
def test_a_workbook_unknown_to_the_calculator_is_read_without_results(
    book: Book, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_engines, "reduced", lambda *_: b"PK no workbook")
    book("=1+1")
    assert values(call) == [NOT_COMPUTED]


# Everyday formulas

ROWS = [[text, number, 45_000 + 20 * number] for number, text in enumerate(
    ("red 1", "blue 2", "red 3", "green 4", "red 5", "blue 6"), start=1
)]  # fmt: skip
ARRAYS = {
    '=SUMPRODUCT((LEFT(A1:A6,3)="red")*B1:B6)': 9,
    "=SUMPRODUCT(LEN(A1:A6))": 34,
    "=SUMPRODUCT(1/COUNTIF(A1:A6,A1:A6))": 6,
    "=SUMPRODUCT(MOD(B1:B6,2)*B1:B6)": 9,
    "=SUMPRODUCT(--ISBLANK(D1:D6))": 6,
    "=SUMPRODUCT(ISNUMBER(MATCH(B1:B6,{2,3},0))*1)": 2,
    '=LOOKUP(2,1/(A1:A6="red 3"),B1:B6)': 3,
    "=SUMPRODUCT(SUBTOTAL(9,OFFSET(B1,ROW(B1:B6)-1,0)))": 21,
    '=COUNTIF(A1,"*red*")': 1,
    '=SUMIFS(B1,A1,"red*")': 1,
    "=SUM(LARGE(B1:B6,{1,2}))": 11,
    '=IFERROR(1/COUNTIF(A1,"red 1"),0)': 1,
}
"""Formulas that IronCalc gets wrong, with the right results."""


@pytest.mark.usefixtures("office")
def test_ranges_in_scalar_places_are_computed_right(call: Call, workspace: Path) -> None:
    with_results(workspace, ROWS, {})
    made = openpyxl.load_workbook(workspace / "book.xlsx")
    for number, formula in enumerate(ARRAYS, start=11):
        made.active.cell(number, 7).value = formula
    made.save(workspace / "book.xlsx")
    assert values(call, f"G11:G{10 + len(ARRAYS)}") == list(ARRAYS.values())


@pytest.mark.usefixtures("no_office")
def test_without_libreoffice_they_stay_without_results(call: Call, workspace: Path) -> None:
    with_results(workspace, ROWS, {f"G{number}": pair for number, pair in enumerate(ARRAYS.items(), start=11)})
    answer = call("write_range", "book.xlsx", cell="A1", values=[["red 7", 1]])
    kept = list(ARRAYS).index("=SUMPRODUCT(--ISBLANK(D1:D6))")  # reads nothing that was changed
    expected = [6 if number == kept else NOT_COMPUTED for number in range(len(ARRAYS))]
    assert values(call, f"G11:G{10 + len(ARRAYS)}") == expected
    assert answer["not_computed"] == [f"Sheet!G{11 + number}" for number in range(len(ARRAYS)) if number != kept]
    with zipfile.ZipFile(workspace / "book.xlsx") as archive:
        assert b'fullCalcOnLoad="1"' in archive.read("xl/workbook.xml")


@pytest.mark.usefixtures("office")
def test_right_results_stay_right_after_an_edit_elsewhere(call: Call, workspace: Path) -> None:
    with_results(workspace, ROWS, {f"G{number}": pair for number, pair in enumerate(ARRAYS.items(), start=11)})
    call("write_range", "book.xlsx", cell="A6", values=[["blue 7"]])
    right = [stored(workspace, f"G{number}") for number in range(11, 11 + len(ARRAYS))]
    assert right == list(ARRAYS.values())


@pytest.mark.usefixtures("office")
def test_formulas_that_depend_on_libreoffice_results_are_updated(call: Call, workspace: Path) -> None:
    with_results(workspace, ROWS, {})
    call("set_formula", "book.xlsx", cells="D1", formula='=SUMPRODUCT((LEFT(A1:A6,3)="red")*B1:B6)')
    call("set_formula", "book.xlsx", cells="E1", formula="=ROUND(D1*2,0)+SUM(B1:B6)")
    call("write_range", "book.xlsx", cell="B1", values=[[11]])
    assert (stored(workspace, "D1"), stored(workspace, "E1")) == (19, 69)


@pytest.mark.usefixtures("office")
def test_a_subtotal_of_subtotals_does_not_count_them(call: Call, workspace: Path) -> None:
    with_results(workspace, [[1], [2], [None], [4]], {"A3": ("=SUBTOTAL(9,A1:A2)", 3), "A5": ("=SUBTOTAL(9,A1:A4)", 7)})
    call("write_range", "book.xlsx", cell="A4", values=[[5]])
    assert (stored(workspace, "A3"), stored(workspace, "A5")) == (3, 8)


@pytest.mark.usefixtures("office")
def test_references_over_sheets_are_computed(call: Call, workspace: Path) -> None:
    made = openpyxl.Workbook()
    made.active.title = "One"
    for title in ("Two", "Three"):
        made.create_sheet(title).append([2])
    made["One"].append([1, "=SUM(One:Three!A1)"])
    made.save(workspace / "book.xlsx")
    call("write_range", "book.xlsx", sheet="Two", cell="A1", values=[[10]])
    assert call("read_range", "book.xlsx", sheet="One")["values"] == [[1, 13]]


@pytest.mark.usefixtures("no_office")
def test_formulas_of_several_sheets_names_and_tables_are_computed(book: Book, call: Call, workspace: Path) -> None:
    book("=SUM(Numbers)", "=Other!A1*2", "=SUM(Goods[b])")
    made = openpyxl.load_workbook(workspace / "book.xlsx")
    made.create_sheet("Other").append([21])
    made.defined_names.add(openpyxl.workbook.defined_name.DefinedName("Numbers", attr_text="Other!$A$1:$A$2"))
    for row in (["a", "b"], [1, 5], [2, 6]):
        made["Other"].append(row)
    made["Other"].add_table(openpyxl.worksheet.table.Table(displayName="Goods", ref="A2:B4"))
    made.save(workspace / "book.xlsx")
    assert values(call) == [21, 42, 11]


def test_a_column_that_is_called_like_a_number_is_of_this_workbook(book: Book, call: Call, workspace: Path) -> None:
    book("=SUM(Goods[2024])", "=[1]Sheet!A1", "='[1]My sheet'!A1+1")
    made = openpyxl.load_workbook(workspace / "book.xlsx")
    for row in (["2023", "2024"], [1, 5], [2, 6]):
        made.active.append([None, *row])
    made.active.add_table(openpyxl.worksheet.table.Table(displayName="Goods", ref="B4:C6"))
    made.save(workspace / "book.xlsx")
    assert values(call)[:3] == [11, NOT_COMPUTED, NOT_COMPUTED]


# The file's own results


@pytest.mark.usefixtures("office")
def test_functions_whose_results_are_not_reproduced_are_left_alone(call: Call, workspace: Path) -> None:
    with_results(
        workspace,
        [[1.5, 2]],
        {"C1": ("=ROUND(A1,0)", 1), "D1": ("=ROUND(B1,0)+1", 3), "E1": ("=SUM(A1:B1)", 3.5), "F1": ("=E1&C1", "3.51")},
    )
    answer = call("write_range", "book.xlsx", cell="A1", values=[[2.5]])
    assert answer["not_computed"] == ["Sheet!C1", "Sheet!F1"]
    assert [stored(workspace, f"{column}1") for column in "CDEF"] == [None, 3, 4.5, None]


def test_results_are_compared_once_for_each_version(
    call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_results(workspace, [[1, 2]], {"C1": ("=SUM(A1:B1)", 3)})
    jobs: list[int] = []
    run = _engines.IronCalc.run
    monkeypatch.setattr(_engines.IronCalc, "run", lambda engine, given: jobs.append(len(given)) or run(engine, given))
    for number in range(3):
        call("write_range", "book.xlsx", cell="A1", values=[[number]])
    assert jobs == [2, 1, 1]
    assert stored(workspace, "C1") == 4


@pytest.mark.usefixtures("no_office")
def test_placeholders_of_xlsx_writer_are_not_results(call: Call, workspace: Path) -> None:
    book = xlsxwriter.Workbook(str(workspace / "book.xlsx"))
    sheet = book.add_worksheet()
    sheet.write_row(0, 0, [5, "=A1*2", "=B1+1"])
    sheet.write_array_formula("D1:E1", "{=A1:B1*1}")
    sheet.write_formula("F1", "=A1*3", None, 15)
    sheet.write_row(1, 0, [0, 0])
    book.close()
    assert call("read_range", "book.xlsx")["values"] == [
        [5, 10, 11, NOT_COMPUTED, NOT_COMPUTED, 15],
        [0, 0, *4 * [None]],
    ]
    assert call("summarize", "book.xlsx", columns=["C"], cells="A1:C1", header=False)["summary"]["C"]["sum"] == 11
    call("write_range", "book.xlsx", cell="A1", values=[[7]])
    assert call("read_range", "book.xlsx", cells="A1:C1")["values"] == [[7, 14, 15]]


@pytest.mark.usefixtures("no_office")
def test_results_over_missing_ones_are_not_compared(book: Book, call: Call) -> None:
    book("=2*3", "=A1+4", "=A2+B9", "=A3-B8")
    call("write_range", "book.xlsx", cell="B9", values=[[1]])
    call("write_range", "book.xlsx", cell="B8", values=[[1]])
    assert values(call, "A1:A4") == [6, 10, 11, 10]


@pytest.mark.usefixtures("no_office")
@pytest.mark.parametrize("cell", ["A4", "A1", "B3"])
def test_results_of_a_data_table_do_not_outlive_an_edit(call: Call, workspace: Path, cell: str) -> None:
    path = workspace / "book.xlsx"
    book = xlsxwriter.Workbook(str(path))
    sheet = book.add_worksheet()
    sheet.write_column(0, 0, [10, None, None, 1, 2])
    sheet.write_formula("B3", "=A1*2", None, 20)
    sheet.write_column(3, 1, [2, 4])
    sheet.write_formula("C1", "=SUM(B4:B5)", None, 6)
    book.close()
    table = b'<c r="B4"><f t="dataTable" ref="B4:B5" dt2D="0" dtr="0" r1="A1"/><v>'
    made = changed(path.read_bytes(), rewritten("xl/worksheets/sheet1.xml", b'<c r="B4"><v>', table))
    path.write_bytes(made)
    assert call("write_range", path.name, cell="A9", values=[[7]]).get("not_computed") is None
    assert call("write_range", path.name, cell=cell, values=[[7]])["not_computed"] == ["Sheet1!C1", "Sheet1!B4"]
    assert call("read_range", path.name, cells="B4:B5")["values"] == [[NOT_COMPUTED], [NOT_COMPUTED]]


@pytest.mark.usefixtures("no_office")
def test_volatile_functions_are_not_compared(call: Call, workspace: Path) -> None:
    with_results(workspace, [[1, 2]], {"C1": ("=A1+B1*(NOW()>0)", 99), "D1": ("=A1+B1", 3)})
    call("write_range", "book.xlsx", cell="A1", values=[[5]])
    assert stored(workspace, "D1") == 7


def test_old_versions_are_forgotten() -> None:
    for number in range(100):
        VERSIONS.keep(f"version {number}", {})
    assert len(VERSIONS._checked) == 64


# Large workbooks


def test_computation_above_the_limit_is_skipped_and_reported(
    workspace: Path, call: Call, surface: DocumentSurface
) -> None:
    with_results(workspace, [[1, 2]], {"C1": ("=SUM(A1:B1)", 3), "D1": ("=SUM(B1:B1)", 2)})
    surface._workspace.compute_cells = 3
    answer = call("write_range", "book.xlsx", cell="A1", values=[[5]])
    assert answer["not_computed"] == ["Sheet!C1"]
    assert "documents.compute_cells (3)" in answer["not_computed_because"]
    assert (stored(workspace, "C1"), stored(workspace, "D1")) == (None, 2)
    surface._workspace.compute_cells = 4
    assert call("write_range", "book.xlsx", cell="A1", values=[[6]]).keys() == {"sheet", "cells"}
    assert stored(workspace, "C1") == 8


# Array formulas


def dynamic(workspace: Path, formula: str, cells: str, results: list[Any], column: list[Any]) -> None:
    """Write a workbook with a dynamic array formula over the first column."""
    with xlsxwriter.Workbook(workspace / "book.xlsx") as made:
        sheet = made.add_worksheet("Sheet")
        sheet.write_column(0, 0, column)
        sheet.write_dynamic_array_formula(cells, formula, None, results[0])
        for row, value in enumerate(results[1:], start=1):
            sheet.write(row, 2, value)
        sheet.write_formula("E1", "=COUNTA(C1:C9)", None, len(results))


def test_a_spill_grows_and_shrinks_with_its_result(call: Call, workspace: Path) -> None:
    dynamic(workspace, "=UNIQUE(A1:A4)", "C1:C2", ["Rome", "Oslo"], ["Rome", "Rome", "Oslo", "Oslo"])
    call("write_range", "book.xlsx", cell="A2", values=[["Bern"]])
    assert [stored(workspace, cell) for cell in ("C1", "C2", "C3", "E1")] == ["Rome", "Bern", "Oslo", 3]
    call("write_range", "book.xlsx", cell="A2", values=[["Oslo"], ["Rome"], ["Rome"]])
    assert [stored(workspace, cell) for cell in ("C1", "C2", "C3", "E1")] == ["Rome", "Oslo", None, 2]
    with pytest.raises(ToolError, match="C1:C2 holds one array formula"):
        call("write_range", "book.xlsx", cell="C2", values=[["x"]])


@pytest.mark.parametrize("obstacle", ["value", "merged", "table"])
def test_a_spill_that_has_no_room_stays_without_results(call: Call, workspace: Path, obstacle: str) -> None:
    dynamic(workspace, "=UNIQUE(A1:A4)", "C1:C2", ["Rome", "Oslo"], ["Rome", "Rome", "Oslo", "Oslo"])
    if obstacle == "value":
        call("write_range", "book.xlsx", cell="C3", values=[["mine"]])
    elif obstacle == "merged":
        call("format_cells", "book.xlsx", cells="C3:D3", merge=True)
    else:
        call("insert_table", "book.xlsx", cell="C3", header=["h"], rows=[["v"]], table=True)
    answer = call("write_range", "book.xlsx", cell="A2", values=[["Bern"]])
    assert answer["not_computed"] == ["Sheet!C1", "Sheet!E1"]
    assert stored(workspace, "C1") is None
    assert stored(workspace, "C3") == {"value": "mine", "table": "h"}.get(obstacle)


def test_a_spill_over_a_fixed_size_is_computed_and_stays_dynamic(call: Call, workspace: Path) -> None:
    dynamic(workspace, "=SORT(A1:A3)", "C1:C3", [1, 2, 3], [3, 1, 2])
    call("write_range", "book.xlsx", cell="A1", values=[[50]])
    assert [stored(workspace, cell) for cell in ("C1", "C2", "C3")] == [1, 2, 50]
    with zipfile.ZipFile(workspace / "book.xlsx") as archive:
        assert b'cm="1"' in archive.read("xl/worksheets/sheet1.xml")


@pytest.mark.usefixtures("office")
def test_array_formulas_are_written_and_computed(call: Call, workspace: Path) -> None:
    with_results(workspace, ROWS, {})
    answer = call("set_formula", "book.xlsx", cells="D10", formula="{=MAX(IF(B1:B6<4,B1:B6))}")
    assert answer == {"sheet": "Sheet", "cells": "D10", "formula": "{=MAX(IF(B1:B6<4,B1:B6))}"}
    call("set_formula", "book.xlsx", cells="E11:E13", formula="{=B1:B3*2}")
    assert [stored(workspace, cell) for cell in ("D10", "E11", "E12", "E13")] == [3, 2, 4, 6]
    read = call("read_range", "book.xlsx", cells="D10:E11")
    assert read["formulas"] == {"D10": "{=MAX(IF(B1:B6<4,B1:B6))}", "E11": "{=B1:B3*2}"}
    with pytest.raises(ToolError, match="E11:E13 holds one array formula"):
        call("set_formula", "book.xlsx", cells="E12", formula="=1")
    call("write_range", "book.xlsx", cell="B1", values=[[3.5]])
    assert [stored(workspace, cell) for cell in ("D10", "E11")] == [3.5, 7]


@pytest.mark.usefixtures("office")
def test_a_range_for_one_value_is_noted(call: Call, workspace: Path) -> None:
    with_results(workspace, ROWS, {})
    answer = call("set_formula", "book.xlsx", cells="D2", formula="=MAX(IF(B1:B6<4,B1:B6))")
    assert "B1:B6 stands where one value is expected" in answer["note"]
    assert "note" not in call("set_formula", "book.xlsx", cells="D3", formula="=SUMPRODUCT((B1:B6<4)*B1:B6)")
    assert "note" not in call("set_formula", "book.xlsx", cells="D4", formula='=SUMIF(A1:A6,"red 1",B1:B6)')


@pytest.mark.parametrize(
    ("cells", "formula", "reason"),
    [
        ("A1:A2", "{=B1:B2}", "table"),
        ("D1:E1", "{=B1:C1}", "merged"),
        ("G1:G2", "{=G2:G3}", "own cell"),
        ("G1", "{=FILTER(A1:A3,B1:B3)}", "dynamic arrays"),
        ("G1", "{=}", "not one"),
        ("G1", "{SUM(A1)}", "not one"),
    ],
)
def test_an_array_formula_without_a_place_is_refused(
    call: Call, workspace: Path, cells: str, formula: str, reason: str
) -> None:
    call("create_document", path="book.xlsx")
    call("insert_table", "book.xlsx", cell="A1", header=["a", "b"], rows=[[1, 2]], table=True)
    call("format_cells", "book.xlsx", cells="D1:E1", merge=True)
    before = (workspace / "book.xlsx").read_bytes()
    with pytest.raises(ToolError, match=reason):
        call("set_formula", "book.xlsx", cells=cells, formula=formula)
    assert (workspace / "book.xlsx").read_bytes() == before
