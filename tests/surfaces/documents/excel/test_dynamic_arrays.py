"""Formulas that fill as many cells as they need, written and computed."""

from __future__ import annotations

import operator
import random
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
import xlsxwriter
from excel_books import save_book, workbook_of
from lxml import etree
from openpyxl.utils import get_column_letter

from callboard.surfaces import ToolError

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

    from callboard.surfaces.documents import DocumentSurface

pytest.importorskip("ironcalc")

ROWS = [["a", "East", 5], ["b", "West", 12], ["c", "East", 7]]


@pytest.fixture
def book(workspace: Path, call: Call) -> Path:
    """Give a workbook with three columns."""
    return save_book(workbook_of(ROWS), workspace / "book.xlsx", call)


def part_of(path: Path, name: str) -> bytes:
    """Read a part of a workbook."""
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


def column(call: Call, cells: str) -> list[Any]:
    """Read one column."""
    return [row[0] for row in call("read_range", "book.xlsx", cells=cells)["values"]]


def test_filter_fills_the_cells_that_it_needs(book: Path, call: Call) -> None:
    answer = call("set_formula", book.name, cells="E1", formula='=FILTER(A1:A3,B1:B3="east")')
    assert "before Excel 2021 and LibreOffice 24.8" in answer["note"]
    assert column(call, "E1:E3") == ["a", "c", None]
    call("write_range", book.name, cell="B2", values=[["East"]])
    assert column(call, "E1:E3") == ["a", "b", "c"]
    assert call("read_range", book.name, cells="E1")["formulas"] == {"E1": '{=_xlfn._xlws.FILTER(A1:A3,B1:B3="east")}'}
    sheet = etree.fromstring(part_of(book, "xl/worksheets/sheet1.xml"))
    anchor = sheet.find(".//{*}c[@r='E1']")
    assert (anchor.get("cm"), anchor.find("{*}f").get("t"), anchor.find("{*}f").get("ref")) == ("1", "array", "E1:E3")


def test_the_metadata_is_that_of_xlsxwriter(book: Path, call: Call, tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "other.xlsx") as workbook:
        workbook.add_worksheet().write_dynamic_array_formula("A1", "=UNIQUE(B1:B2)")
    call("set_formula", book.name, cells="E1", formula="=UNIQUE(B1:B3)")
    call("set_formula", book.name, cells="G1", formula="=SORT(C1:C3)")
    written, other = (part_of(path, "xl/metadata.xml") for path in (book, tmp_path / "other.xlsx"))
    parser = etree.XMLParser(remove_blank_text=True)
    texts = [etree.tostring(etree.fromstring(part, parser), method="c14n") for part in (written, other)]
    assert texts[0] == texts[1]
    assert part_of(book, "[Content_Types].xml").count(b"sheetMetadata+xml") == 1
    assert part_of(book, "xl/_rels/workbook.xml.rels").count(b"/sheetMetadata") == 1
    assert (column(call, "E1:E2"), column(call, "G1:G3")) == (["East", "West"], [5, 7, 12])


@pytest.mark.parametrize(
    ("cells", "formula", "message"),
    [
        ("E1:E2", "=UNIQUE(B1:B3)", "name its first cell"),
        ("A1", "=UNIQUE(A1:A3)", "refers to its own cell"),
        ("E1", "=LET(x,1,x)", "LET needs the form of files"),
    ],
)
def test_a_spill_that_is_not_possible_is_refused(
    book: Path, call: Call, cells: str, formula: str, message: str
) -> None:
    before = book.read_bytes()
    with pytest.raises(ToolError, match=message):
        call("set_formula", book.name, cells=cells, formula=formula)
    assert book.read_bytes() == before


def test_a_spill_in_a_table_is_refused(book: Path, call: Call) -> None:
    call("insert_table", book.name, cell="H1", header=["x"], rows=[[1]])
    with pytest.raises(ToolError, match="H2 is in a table"):
        call("set_formula", book.name, cells="H2", formula="=UNIQUE(B1:B3)")


def test_a_result_that_is_not_proven_is_not_computed(book: Path, call: Call) -> None:
    answer = call("set_formula", book.name, cells="E1", formula="=SORTBY(A1:A3,C1:C3,-1)")
    assert answer["not_computed"] == ["Sheet!E1"]
    assert column(call, "E1") == ["(not computed)"]


COMPARE = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def test_filters_agree_with_a_plain_model(workspace: Path, call: Call) -> None:
    numbers = random.Random(3)  # noqa: S311 - the data of a test
    rows = [
        (f"item {number}", numbers.choice(["East", "west", "North"]), numbers.choice([-2.5, 0, 3, 40, 2024, 123_456]))
        for number in range(30)
    ]
    tests = [
        (f"C1:C30{sign}{value}", 2, sign, value) for sign, value in zip(COMPARE, (0, 40, 3, 3, 2024, 0), strict=True)
    ]
    tests += [(f'B1:B30{sign}"WEST"', 1, sign, "west") for sign in ("=", "<>")]
    workbook_of(rows).save(workspace / "book.xlsx")
    for number, (condition, *_) in enumerate(tests):
        cell = f"{get_column_letter(6 + 4 * number)}1"
        call("set_formula", "book.xlsx", cells=cell, formula=f"=FILTER(A1:C30,{condition})")
    results = call("read_range", "book.xlsx", cells="A1:AL31")["values"]
    for number, (condition, tested, sign, value) in enumerate(tests):
        kept = [
            list(row)
            for row in rows
            if COMPARE[sign](row[tested].casefold() if isinstance(row[tested], str) else row[tested], value)
        ]
        first = 5 + 4 * number
        shown = [line[first : first + 3] for line in results]
        assert kept
        assert shown == kept + [[None] * 3] * (len(shown) - len(kept)), condition


def test_a_spill_may_fill_cells_of_the_whole_sheet(surface: DocumentSurface, book: Path) -> None:
    target = next(target for target in surface.targets() if target.id == book.name)
    arguments = {"cells": "E1", "formula": "=UNIQUE(B1:B3)", "sheet": "", "control_id": "", "control_name": ""}
    assert surface.resources(target, "set_formula", arguments) == ["range:Sheet!E1", "sheet:Sheet", "range:Sheet!B1:B3"]
