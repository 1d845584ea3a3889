"""LibreOffice as an independent reader of edited workbooks."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import openpyxl
import pytest
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces import ToolError
from callboard.surfaces.documents.excel._condition_formulas import formula_of
from callboard.surfaces.documents.excel._formula_text import translated
from callboard.surfaces.documents.excel._met_conditions import CellCondition, cells_meeting
from callboard.surfaces.documents.excel._summaries import Operator
from callboard.surfaces.documents.excel._workbook import ExcelFile
from support import PATIENCE

if TYPE_CHECKING:
    from conftest import Call

    from callboard.surfaces.documents import DocumentSurface

WORDS = [
    "Zebra",
    "Ärger",
    "Apfel",
    "Öl",
    "banane",
    "Éclair",
    "Otto",
    "ñandú",
    "nz",
    "Straße",
    "Strasse",
    "Strass",
    "a b",
]
LONGEST = 60
COMPARED = [None, "x", "X1", "a~b*", "3", 3, 3.5, -1, 0, 1.5, 'say "hi"']  # LibreOffice's truth values are numbers
OPERANDS = ["x", "3", 3, 0, True, "", "~b*", "1", '"hi"', {"date": "36:00:00"}]
FORMULAS = [
    "=SUM(Jan:Mar!A1)", "=SUM(Jan!A1:A3)", "=SUM('Jan'!$A$1:INDEX(Jan!A:A,3))", "=Jan!Rate*ZIP1", "=SUM(Jan!1:1)",
    "=COUNT(Jan!A:A)", "=ROWS(Jan!A2:A3)", "=VLOOKUP(2,Jan!A1:B3,2,FALSE)", "=Feb!A1",
    "=MAX('Jan'!A1:'Jan'!A3)",
]  # fmt: skip


def made(path: Path, rows: list[list[Any]], formats: dict[str, str] | None = None) -> None:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cell, code in (formats or {}).items():
        book.active[cell].number_format = code
    book.save(path)


def spanned(path: Path) -> None:
    """Write a workbook whose last sheet reads the others in many ways."""
    book = openpyxl.Workbook()
    book.active.title = "Jan"
    for title in ("Feb", "Mar"):
        book.create_sheet(title)["A1"] = 10
    for number, row in enumerate([(1, "x"), (2, "y"), (3, "z")], start=1):
        book["Jan"].append(row)
        book["Jan"].cell(number, 3).value = f"=A{number}*2"
    book["Jan"].defined_names["Rate"] = DefinedName("Rate", attr_text="Jan!$A$3")
    book.defined_names["ZIP1"] = DefinedName("ZIP1", attr_text="Jan!$A$2")
    summary = book.create_sheet("Sum")
    for formula in FORMULAS:
        summary.append([formula])
    book.save(path)


def recomputed(folder: Path, tmp_path: Path) -> dict[str, openpyxl.Workbook]:
    """Have LibreOffice compute workbooks, without the results in them."""
    for path in folder.glob("*.xlsx"):
        openpyxl.load_workbook(path).save(path)
    return converted(folder, tmp_path)


def converted(folder: Path, tmp_path: Path) -> dict[str, openpyxl.Workbook]:
    """Have LibreOffice open and save workbooks."""
    program = shutil.which("soffice")
    if program is None:
        (pytest.fail if os.environ.get("REQUIRE_SOFFICE") == "1" else pytest.skip)("soffice is not installed")
    files = sorted(folder.glob("*.xlsx"))
    profile, out = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}", str(tmp_path / "out")
    command = [program, profile, "--headless", "--convert-to", "xlsx", "--outdir", out, *map(str, files)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    return {path.stem: openpyxl.load_workbook(tmp_path / "out" / path.name, data_only=True) for path in files}


def conditions(path: Path) -> list[list[bool]]:
    """Write conditions as formulas beside values; return where they are met."""
    file = ExcelFile.new()
    sheet, cells = file.active, CellRange(None, 1, 1, 1, len(COMPARED))
    for row, value in enumerate(COMPARED, start=1):
        sheet.write(row, 1, value)
    expected = []
    for operator, operand in itertools.product(get_args(Operator), OPERANDS):
        condition = CellCondition.model_validate({"operator": operator, "value": operand})
        try:
            met = cells_meeting(file, sheet, cells, [condition], header=False)
        except ToolError:
            continue
        formula = formula_of(sheet, cells, cells, [condition], header=False)
        for row in range(1, len(COMPARED) + 1):
            sheet.write_formula(row, len(expected) + 2, translated(f"={formula}", row - 1, 0))
        expected.append([(row, 1) in met for row in range(1, len(COMPARED) + 1)])
    path.write_bytes(file.to_bytes())
    return expected


def test_libreoffice_agrees_with_edited_workbooks(workspace: Path, tmp_path: Path, call: Call) -> None:
    # the order of texts: LibreOffice counts for each text those before it
    made(workspace / "order.xlsx", [["Word"], *([word] for word in WORDS)])
    call("sort_range", "order.xlsx", by=[{"column": "Word"}])
    last = len(WORDS) + 1
    call("set_formula", "order.xlsx", cells=f"B2:B{last}", formula=f"=SUMPRODUCT(--(A$2:A${last}<A2))")
    # times and durations, appended and summed
    formats = dict.fromkeys(["B2", "B3"], "[h]:mm")
    made(workspace / "times.xlsx", [["Who", "Hours"], ["a", 0.25], ["b", 1.5]], formats)
    call("append_rows", "times.xlsx", values=[["c", "8:00:00"], ["d", {"date": "-2:30"}]])
    call("set_formula", "times.xlsx", cells="B7", formula="=SUM(B2:B5)*24")
    # a template of prefilled formulas
    rows = [
        ["Item", "Price", "Qty", "Total"],
        ["a", 2, 3, "=B2*C2"],
        *([None, None, None, f"=B{n}*C{n}"] for n in (3, 4)),
    ]
    made(workspace / "template.xlsx", [*rows, ["Total", None, None, "=SUM(D2:D4)"]])
    call("append_rows", "template.xlsx", values=[["b", 4, 5], ["c", 1, 1], ["d", 10, 10]])
    # references
    spanned(workspace / "before.xlsx")
    spanned(workspace / "after.xlsx")
    call("rename_sheet", "after.xlsx", sheet="Mar", title="März")
    call("rename_sheet", "after.xlsx", sheet="Jan", title="Jän")
    call("rename_sheet", "after.xlsx", sheet="Feb", title="Q1 '26")
    call("insert_rows_or_columns", "after.xlsx", what="columns", at="A", sheet="Sum")
    # numbers in texts
    made(workspace / "texts.xlsx", [["Price"], ["USD 100"], ["USD 2.5"], ["=SUM(A2:A3)"]])
    call("replace_text", "texts.xlsx", find_text="USD ", new_text="")

    # rows deleted by a condition and as duplicates, with the formulas of those that stay
    numbers = [(number * 7 % 11, number) for number in range(40)]
    lines = [[key, value, f"=B{row}*2", "=SUM(B$2:B$41)"] for row, (key, value) in enumerate(numbers, 2)]
    rows = [["Key", "Value", "Double", "All"], *lines]
    made(workspace / "fewer.xlsx", rows)
    above = [{"column": "Value", "operator": ">=", "value": 5}]
    call("delete_rows_or_columns", "fewer.xlsx", what="rows", where=above, duplicates_in=["Key"], cells="A1:D41")
    # formulas copied to another place, and parts of texts
    made(workspace / "copies.xlsx", [["x", 1, "=B1*10", "a1-b2"], ["y", 2, "=B2*10+$B$1", "c3-d4"]])
    call("copy_range", "copies.xlsx", cells="A1:C2", to="F5")
    call("copy_range", "copies.xlsx", cells="D1:D2", to="F8", pattern=r"([a-z])\d-(\w)")
    call("write_range", "copies.xlsx", cell="G6", values=[[7]])
    expected_conditions = conditions(workspace / "conditions.xlsx")

    books = recomputed(workspace, tmp_path)
    ranks = [cell.value for cell in books["order"].active["B"][1:]]
    assert ranks == sorted(ranks)
    assert round(books["times"].active["B7"].value, 6) == 6 + 36 + 8 - 2.5
    assert [cell.value for cell in books["template"].active["D"][1:]] == [6, 20, 1, 100, 127]
    kept_rows = numbers[:5] + numbers[5:16]
    total = sum(value for _, value in kept_rows)
    expected = [(key, value, value * 2, total) for key, value in kept_rows]
    assert [*books["fewer"].active.iter_rows(min_row=2, values_only=True)] == expected
    assert [[cell.value for cell in row] for row in books["copies"].active["F5:H6"]] == [["x", 1, 10], ["y", 7, 71]]
    assert [[cell.value for cell in row] for row in books["copies"].active["F8:G9"]] == [["a", "b"], ["c", "d"]]
    columns = [*books["conditions"].active.iter_cols(min_col=2, values_only=True)]
    assert columns == [tuple(met) for met in expected_conditions]
    before = [cell.value for cell in books["before"]["Sum"]["A"]]
    assert [cell.value for cell in books["after"]["Sum"]["B"]] == before
    assert before[:5] == [21, 6, 6, 6, 3]
    assert books["texts"].active["A4"].value == 102.5


SALES: list[list[Any]] = [
    ["Region", "Item", "Quarter", "Day", "Amount", "Units"],
    *(
        [region, item, f"Q{number % 4 + 1}", dt.date(2024, 1, number % 3 + 1), number * 7 % 11 + 0.25, units]
        for number, (region, item, units) in enumerate(
            itertools.product(["East", "west", "<N> & 'S'"], ["Desk", "Lamp", None, 7], [1, None, "x", 4])
        )
    ),
]
PIVOTS: list[dict[str, Any]] = [
    {"rows": ["Region"], "values": [{"column": "Amount"}]},
    {"rows": ["Region", "Item"], "values": [{"column": "Amount"}, {"column": "Units", "function": "count"}]},
    {"rows": ["Day", "Region"], "columns": ["Quarter"], "values": [{"column": "Amount", "function": "average"}]},
    {
        "rows": ["Item"], "columns": ["Region", "Quarter"],
        "values": [{"column": "Amount", "function": "max"}, {"column": "Units", "function": "count"}],
        "filters": [{"column": "Day", "values": ["2024-01-01", "2024-01-03"]}],
    },
    {
        "rows": ["Quarter", "Region", "Day"], "values": [{"column": "Amount", "function": "min"}], "totals": False,
        "filters": [{"column": "Item", "values": ["desk"]}, {"column": "Units"}],
    },
]  # fmt: skip
OWN_WORDS = {"(empty)": "(blank)", "Total Result": "Grand Total", "- multiple -": "(Multiple Items)", "Data": "Values"}
OWN_WORDS |= {"- all -": "(All)"}


def in_our_words(value: Any) -> Any:
    """Return the text of LibreOffice's pivot tables in Excel's words."""
    if isinstance(value, str):
        return OWN_WORDS.get(value, value.replace(" Result", " Total")) or None
    return pytest.approx(value) if isinstance(value, (int, float)) else value


def test_libreoffice_computes_the_same_pivot_tables(call: Call, workspace: Path, tmp_path: Path) -> None:
    made(workspace / "sales.xlsx", SALES)
    for number, plan in enumerate(PIVOTS):
        call("insert_pivot", "sales.xlsx", sheet="Sheet", to=f"P{number}!B2", **plan)
    ours, theirs = openpyxl.load_workbook(workspace / "sales.xlsx"), converted(workspace, tmp_path)["sales"]
    for number in range(len(PIVOTS)):
        sheet, computed = ours[f"P{number}"], theirs[f"P{number}"]
        assert len(computed._pivots) == 1  # LibreOffice knows it as a pivot table
        for row in sheet.iter_rows(max_row=computed.max_row, max_col=computed.max_column):
            for cell in row:
                assert cell.value == in_our_words(computed[cell.coordinate].value), f"{sheet.title}!{cell.coordinate}"
    assert "Total Result" in {cell.value for row in theirs["P0"].iter_rows() for cell in row}  # it computed them


def test_pivot_tables_of_libreoffice_are_kept(
    call: Call, workspace: Path, tmp_path: Path, surface: DocumentSurface
) -> None:
    made(workspace / "sales.xlsx", SALES)
    call("insert_pivot", "sales.xlsx", to="P!A1", **PIVOTS[0])
    converted(workspace, tmp_path)
    path = Path(shutil.copy(tmp_path / "out" / "sales.xlsx", workspace / "theirs.xlsx"))
    target = next(target for target in surface.targets() if target.name == path.name)
    (pivot,) = [control for control in surface.observe(target).controls if control.kind == "pivot"]
    assert (pivot.detail["rows"], pivot.detail["source"]) == (["Region"], "Sheet!A1:F49")
    with zipfile.ZipFile(path) as archive:
        before = {name: archive.read(name) for name in archive.namelist()}
    answer = call("write_range", path.name, sheet="Sheet", cell="E2", values=[[1000]])
    assert answer["pivots_to_refresh"] == ["pivot-1"]
    with zipfile.ZipFile(path) as archive:
        after = {name: archive.read(name) for name in archive.namelist()}
    assert [name for name in before if before[name] != after[name]] == ["xl/worksheets/sheet1.xml"]
    call("insert_rows_or_columns", path.name, sheet="Sheet", at="3", what="rows")
    answer = call("edit_pivot", path.name, control_id="pivot-1")
    assert answer["source"] == "Sheet!A1:F50"
