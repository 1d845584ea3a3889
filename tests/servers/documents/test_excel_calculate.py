"""Results from a process of its own that may fail or lie."""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING

import openpyxl
import pytest
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from callboard.actors.servers.documents import _excel_calculate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Call

    Book = Callable[..., None]

ANSWER = """
import json, os, sys
value = ",".join(sorted(os.environ))
json.dump({"unknown": [], "values": [["sheet", 1, 1, value, False]]}, open(sys.argv[3], "w"))
"""


@pytest.fixture
def book(workspace: Path) -> Book:
    """Write formulas that were never computed into the first column."""

    def write(*formulas: str) -> None:
        made = openpyxl.Workbook()
        for formula in formulas:
            made.active.append([formula])
        made.save(workspace / "book.xlsx")

    return write


def values(call: Call) -> list[object]:
    """Read the first column."""
    return [row[0] for row in call("read_range", "book.xlsx")["values"]]


@pytest.mark.parametrize(
    "program", ["import time; time.sleep(60)", "import os; os._exit(3)", "raise SystemExit('no results')"]
)
def test_a_calculator_that_hangs_or_crashes_computes_nothing(
    book: Book, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    fake = tmp_path / "fake.py"
    fake.write_text(program)
    monkeypatch.setattr(_excel_calculate, "_PROGRAM", fake)
    monkeypatch.setattr(_excel_calculate, "SECONDS", 1)
    book("=1+1")
    assert values(call) == ["(not computed)"]


def test_the_calculator_does_not_get_the_environment(
    book: Book, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "fake.py"
    fake.write_text(ANSWER)
    monkeypatch.setattr(_excel_calculate, "_PROGRAM", fake)
    monkeypatch.setenv("API_KEY", "secret")
    book("=1+1")
    (names,) = values(call)
    assert set(str(names).split(",")) <= {"SYSTEMROOT", "LD_LIBRARY_PATH", "LC_CTYPE", "__CF_USER_TEXT_ENCODING"}
    assert "API_KEY" in os.environ


@pytest.mark.parametrize(
    "formula",
    [
        "=SUM(SEQUENCE(1048576,16384))",
        "=SUM(MMULT(SEQUENCE(3000,3000),SEQUENCE(3000,3000)))",
        '=WEBSERVICE("http://127.0.0.1:9/")',
        "=IFERROR(NOFUNCTION(1),0)",
        "=A1",
    ],
)
def test_a_formula_that_is_too_large_or_unknown_is_not_computed(book: Book, call: Call, formula: str) -> None:
    book(formula, "=1+1")
    assert values(call) == ["(not computed)", 2]


def test_nothing_is_computed_where_dates_count_from_1904(call: Call, workspace: Path) -> None:
    made = openpyxl.Workbook()
    made.epoch = CALENDAR_MAC_1904
    made.active.append([dt.date(2024, 5, 1), "=YEAR(A1)"])
    made.save(workspace / "book.xlsx")
    call("set_formula", "book.xlsx", cells="C1", formula="=YEAR(A1)")
    assert call("read_range", "book.xlsx")["values"] == [["2024-05-01", "(not computed)", "(not computed)"]]


def test_a_result_that_is_too_long_for_a_cell_is_an_error(book: Book, call: Call) -> None:
    book('=REPT(REPT("x",32000),32000)')
    assert values(call) == ["#VALUE!"]


def test_a_workbook_unknown_to_the_calculator_is_read_without_results(
    book: Book, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_excel_calculate, "_reduced", lambda _file: b"PK no workbook")
    book("=1+1")
    assert values(call) == ["(not computed)"]


def test_a_column_that_is_called_like_a_number_is_of_this_workbook(book: Book, call: Call, workspace: Path) -> None:
    book("=SUM(Goods[2024])", "=[1]Sheet!A1", "='[1]My sheet'!A1+1", "=SUM(Goods[[2023]:[2024]])")
    made = openpyxl.load_workbook(workspace / "book.xlsx")
    for row in (["2023", "2024"], [1, 5], [2, 6]):
        made.active.append([None, *row])
    made.active.add_table(openpyxl.worksheet.table.Table(displayName="Goods", ref="B5:C7"))
    made.save(workspace / "book.xlsx")
    assert values(call)[:4] == [11, "(not computed)", "(not computed)", 14]


def test_formulas_of_several_sheets_names_and_tables_are_computed(book: Book, call: Call, workspace: Path) -> None:
    book("=SUM(Numbers)", "=Other!A1*2", "=SUM(Goods[b])")
    made = openpyxl.load_workbook(workspace / "book.xlsx")
    made.create_sheet("Other").append([21])
    made.defined_names.add(openpyxl.workbook.defined_name.DefinedName("Numbers", attr_text="Other!$A$1:$A$1"))
    for row in (["a", "b"], [1, 5], [2, 6]):
        made["Other"].append(row)
    made["Other"].add_table(openpyxl.worksheet.table.Table(displayName="Goods", ref="A2:B4"))
    made.save(workspace / "book.xlsx")
    assert values(call) == [21, 42, 11]
