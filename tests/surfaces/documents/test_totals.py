"""Rows of totals, and the rows that a template prefills."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import docx
import openpyxl
import pytest
from openpyxl.worksheet.table import Table

from callboard.surfaces import ToolError
from callboard.surfaces.documents._total_words import total_label

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

HEADER = ["Region", "Item", "Amount"]
EAST, WEST = [["East", "a", 10], ["East", "b", 5]], [["West", "c", 7], ["West", "d", 1]]


def made(workspace: Path, rows: list[list[Any]], name: str = "book.xlsx") -> Path:
    path = workspace / name
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def grouped(east: object, west: object, label: str = "{} subtotal") -> list[list[Any]]:
    """Arrange two groups of two rows, each with its total."""
    return [HEADER, *EAST, [label.format("East"), None, east], *WEST, [label.format("West"), None, west]]


GROUPS = {
    "subtotal": grouped("=SUBTOTAL(9,C2:C3)", "=SUBTOTAL(9,C5:C6)"),
    "sum without a word": grouped("=SUM(C2:C3)", "=SUM(C5:C6)", "{}"),
    "mean": grouped("=AVERAGE(C2:C3)", "=AVERAGE(C5:C6)", "Ø {}"),
    "operators": grouped("=C2+C3", "=C5+C6", "Summe {}"),
    "typed": grouped(15, 8, "Total {}"),
    "typed in Polish": grouped(15, 8, "{} Suma"),
    "typed in Japanese": grouped(15, 8, "{}小計"),
    "typed means": grouped(7.5, 4, "Durchschnitt"),
    "word behind the group": [HEADER, *EAST, ["East", "Total", 15], *WEST, ["West", "Summe:", 8]],
}


@pytest.mark.parametrize("rows", GROUPS.values(), ids=GROUPS)
def test_totals_between_rows_are_counted_once(workspace: Path, call: Call, rows: list[list[Any]]) -> None:
    path = made(workspace, rows)
    answer = call("summarize", path.name, columns=["Amount"])
    assert (answer["rows"], answer["summary"]["Amount"]["sum"], answer["totals_left_out"]) == (4, 23, "4, 7")
    answer = call("filter_rows", path.name, where=[{"column": "Amount", "operator": ">", "value": 6}], to="New!A1")
    assert (answer["rows_copied"], answer["totals_left_out"]) == (2, "4, 7")
    before = path.read_bytes()
    for name, arguments in (("sort_range", {"by": [{"column": "Amount"}]}), ("insert_chart", {"type": "bar"})):
        with pytest.raises(ToolError, match=r"totals between its rows \(row 4\)"):
            call(name, path.name, control_id="range-1", cells="" if name == "insert_chart" else "A1:C7", **arguments)
    assert path.read_bytes() == before
    call("sort_range", path.name, by=[{"column": "C"}], cells="A2:C3", header=False)
    assert call("read_range", path.name, cells="B2:B4")["values"][:2] == [["b"], ["a"]]


def test_chart_of_named_cells_reports_the_totals_it_draws(workspace: Path, call: Call) -> None:
    made(workspace, GROUPS["subtotal"])
    answer = call("insert_chart", "book.xlsx", type="bar", cells="A1:C7", columns=["Amount"])
    assert answer["totals_drawn"] == "4, 7"


def test_row_is_not_a_total_by_its_label_alone(workspace: Path, call: Call) -> None:
    made(workspace, [["Film", "Year"], ["Total Recall", 1990], ["Sum of Us", 1994], ["Total", 1999], ["Alien", 1979]])
    answer = call("summarize", "book.xlsx", columns=["Year"])
    assert (answer["rows"], answer["summary"]["Year"]["sum"]) == (4, 7962)
    assert answer["may_be_totals"]["row 4"] == "Total"
    call("sort_range", "book.xlsx", by=[{"column": "Film"}])
    assert call("read_range", "book.xlsx", cells="A2")["values"] == [["Alien"]]


@pytest.mark.parametrize(
    "formula",
    ["=SUM(B$2:B{row})", "=C{above}+B{row}", "=AVERAGE(B{above}:B{row})", "=SUM(C$1:C{above})+B{row}", "=MAX(B$2:B$4)"],
)
def test_running_figures_are_not_totals(workspace: Path, call: Call, formula: str) -> None:
    rows = [[f"item {row}", row, formula.format(row=row, above=row - 1)] for row in range(2, 7)]
    made(workspace, [["Item", "Amount", "Figure"], *rows])
    answer = call("summarize", "book.xlsx", columns=["Amount"])
    assert (answer["rows"], answer["summary"]["Amount"]["sum"]) == (5, 20)


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("Total", "whole"), ("TOTAL:", "whole"), ("Zwischensumme", "whole"), ("Total général", "whole"),
        ("Итого", "whole"), ("合計", "whole"), ("  Grand  total ", "whole"), ("Sous-total", "whole"),
        ("Total East", "part"), ("East Totaal", "part"), ("Celkem 2026", "part"), ("東京小計", "part"),
        ("Σ", "whole"), ("∑:", "whole"), ("Ø", "whole"), ("Avg.", "whole"), ("T O T A L", "whole"),
        ("→ Total", "whole"), ("Grand-Total", "whole"), ("S/Total", "whole"), ("Вкупно", "whole"),
        ("a b c d", ""), ("Totally", ""), ("Summer", ""), ("TotalEnergies", ""), ("Media player", ""), ("", ""),
    ],
)  # fmt: skip
def test_label_of_a_total(label: str, kind: str) -> None:
    assert total_label(label) == kind


def test_data_between_subtotals_by_operators_is_data(workspace: Path, call: Call) -> None:
    groups = [["a", 1], ["b", 2], ["Subtotal", "=B2+B3"], ["c", 3], ["d", 4], ["Subtotal", "=B5+B6"]]
    path = made(workspace, [["Item", "Amount"], *groups, ["Total", "=B4+B7"]])
    answer = call("summarize", path.name, columns=["Amount"])
    assert (answer["summary"]["Amount"]["sum"], answer["totals_left_out"]) == (10, "4, 7:8")


def test_total_of_numbers_as_texts_is_a_total(workspace: Path, call: Call) -> None:
    path = made(workspace, [["Item", "Amount"], ["a", "100"], ["b", "200.50"], ["Total", "300.50"]])
    assert call("append_rows", path.name, values=[["c", "5"]])["cells"] == "A4:B4"


def test_total_as_a_value_in_a_column_of_kinds_is_not_a_total(workspace: Path, call: Call) -> None:
    path = made(workspace, [["Case", "Loss", "Amount"], ["a", "partial", 100], ["b", "total", 100], ["c", "total", 70]])
    answer = call("summarize", path.name, columns=["Amount"])
    assert (answer["summary"]["Amount"]["sum"], "totals_left_out" in answer) == (270, False)


# Rows appended above totals


def test_row_goes_above_a_typed_total_which_is_named(workspace: Path, call: Call) -> None:
    path = made(workspace, [["Item", "Amount"], ["a", 100], ["b", 5], ["Gesamt", 105]])
    answer = call("append_rows", path.name, values=[["c", 50]])
    assert [cell.value for cell in openpyxl.load_workbook(path).active["A"]] == ["Item", "a", "b", "c", "Gesamt"]
    assert answer["totals_not_updated"] == ["B5"]


def word(workspace: Path, rows: list[tuple[str, str]]) -> Path:
    document = docx.Document()
    table = document.add_table(len(rows), 2)
    for row, texts in zip(table.rows, rows, strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    path = workspace / "letter.docx"
    document.save(path)
    return path


TEXTS = {
    "Total": [("Item", "Amt"), ("a", "100"), ("Total", "100")],
    "Summe netto, Summe brutto": [("Item", "Amt"), ("a", "100"), ("b", "1,5"), ("Summe netto", "101,50")],
    "taxes": [
        ("Item", "Amt"),
        ("a", "100"),
        ("b", "50"),
        ("Subtotal", "150"),
        ("VAT 19 %", "28.50"),
        ("Total", "178.50"),
    ],
    "payments": [("Item", "Amt"), ("a", "100"), ("Total", "100"), ("Paid", "40"), ("Amount due", "60")],
    "the last group": [("Item", "Amt"), ("a", "1"), ("b", "2"), ("Sum West", "3"), ("Gesamtsumme", "3")],
    "Σύνολο:": [("Item", "Amt"), ("a", "100"), ("Summa:", "120"), ("Összesen", "130")],
}


@pytest.mark.parametrize("rows", TEXTS.values(), ids=TEXTS)
def test_rows_of_texts_go_above_totals(workspace: Path, call: Call, rows: list[tuple[str, str]]) -> None:
    path = word(workspace, rows)
    first = next(number for number, row in enumerate(rows) if total_label(row[0]))
    answer = call("append_rows", path.name, control_id="table-1", rows=[["new", "50"]])
    texts = [row.cells[0].text for row in docx.Document(path).tables[0].rows]
    assert texts == [row[0] for row in [*rows[:first], ("new", ""), *rows[first:]]]
    assert answer["totals_not_updated"] == [row[0] for row in rows[first:]]
    (workspace / "table.csv").write_bytes("".join(f"{a};{b}\r\n" for a, b in rows).rstrip().encode())
    answer = call("append_rows", "table.csv", rows=[["new", 50]])
    lines = (workspace / "table.csv").read_text(encoding="utf-8").split("\n")
    assert [line.partition(";")[0] for line in lines] == texts
    assert answer["totals_not_updated"] == [row[0] for row in rows[first:]]


def test_totals_without_a_label_and_empty_rows_stay_below(workspace: Path, call: Call) -> None:
    path = word(workspace, [("Item", "Amt"), ("a", "1,5"), ("b", "2,25"), ("", "3,75"), ("", "")])
    call("append_rows", path.name, control_id="table-1", rows=[["new", 1.25]])
    rows = [tuple(cell.text for cell in row.cells) for row in docx.Document(path).tables[0].rows]
    assert rows[2:] == [("b", "2,25"), ("new", "1,25"), ("", "3,75"), ("", "")]
    call("write_cell", path.name, control_id="table-1", row=2, column=2, value=0.5)
    assert docx.Document(path).tables[0].cell(1, 1).text == "0,5"


def test_row_that_only_begins_like_a_total_stays_above(workspace: Path, call: Call) -> None:
    path = workspace / "table.csv"
    path.write_bytes(b"Station,Litres\nShell,30\nTotal Lyon,42\n")
    answer = call("append_rows", path.name, rows=[["Esso", 20]])
    assert path.read_text().endswith("Total Lyon,42\nEsso,20\n")
    assert "totals_not_updated" not in json.dumps(answer)


CODES = {
    "numbered": "id,qty\n1,5\n2,7\n3,9\n",
    "zeros": "id,errors\n10,0\n20,0\n40,0\n50,0\n",
    "years": "year,sold\n2019,3\n2020,4\n2021,7\n",
    "zero beside a word": "who,paid\nAnn,0\nBob,0\nDue Carl,0\n",
}


@pytest.mark.parametrize("text", CODES.values(), ids=CODES)
def test_row_whose_numbers_add_up_by_chance_stays_above(workspace: Path, call: Call, text: str) -> None:
    path = workspace / "table.csv"
    path.write_bytes(text.encode())
    answer = call("append_rows", path.name, rows=[[60, 1]])
    assert path.read_text() == f"{text}60,1\n"
    assert "totals_not_updated" not in answer


# Rows that a template prefills


def template(workspace: Path, formula: str, *, table: bool = False, total: bool = False) -> Path:
    path = workspace / "book.xlsx"
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Item", "Price", "Qty", "Total"])
    sheet["A2"], sheet["B2"], sheet["C2"] = "a", 2, 3
    for row in range(2, 9):
        sheet.cell(row, 4).value = formula.format(row=row, above=row - 1)
    if total:
        sheet["A9"], sheet["D9"] = "Total", "=SUM(D2:D8)"
    if table:
        sheet.add_table(Table(displayName="Orders", ref="A1:D8"))
    book.save(path)
    return path


FORMULAS = ['=IF(B{row}="","",B{row}*C{row})', "=B{row}*C{row}", "=IFERROR(B{row}*C{row},0)+N(D{above})"]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("total", [False, True])
def test_row_goes_to_the_first_prefilled_one(workspace: Path, call: Call, formula: str, *, total: bool) -> None:
    path = template(workspace, formula, total=total)
    answer = call("append_rows", path.name, values=[["b", 4, 5, None], ["c", 3, 7]])
    assert answer["cells"] == "A3:D4"
    sheet = openpyxl.load_workbook(path).active
    assert [sheet[f"A{row}"].value for row in range(2, 6)] == ["a", "b", "c", None]
    assert sheet["D3"].value == formula.format(row=3, above=2)
    assert sheet.max_row == (9 if total else 8)


def test_rows_beyond_the_prefilled_ones_are_added(workspace: Path, call: Call) -> None:
    path = template(workspace, FORMULAS[1], total=True)
    call("append_rows", path.name, values=[[f"item {number}", 1, number] for number in range(8)])
    sheet = openpyxl.load_workbook(path).active
    assert [sheet["A10"].value, sheet["D10"].value, sheet["D11"].value] == ["item 7", "=B10*C10", "=SUM(D2:D10)"]


def test_prefilled_rows_of_a_table_are_filled(workspace: Path, call: Call) -> None:
    path = template(workspace, "=Orders[[#This Row],[Price]]*Orders[[#This Row],[Qty]]", table=True)
    assert call("append_rows", path.name, values=[["b", 4, 5]])["cells"] == "A3:D3"
    assert openpyxl.load_workbook(path).active.tables["Orders"].ref == "A1:D8"


def test_prefilled_formula_is_not_overwritten(workspace: Path, call: Call) -> None:
    path = template(workspace, FORMULAS[0])
    before = path.read_bytes()
    with pytest.raises(ToolError, match=r"D3 holds the formula .* give null to keep it"):
        call("append_rows", path.name, values=[["b", 4, 5, 20]])
    assert path.read_bytes() == before


def test_prefilled_rows_are_not_data(workspace: Path, call: Call) -> None:
    template(workspace, FORMULAS[1])
    assert call("summarize", "book.xlsx", columns=["Total"])["rows"] == 1
    call("append_rows", "book.xlsx", values=[["A", 1, 1]])
    assert call("sort_range", "book.xlsx", by=[{"column": "Price"}])["rows_sorted"] == 2


@pytest.mark.parametrize(
    ("before", "row", "place"),
    [
        ([None], [None, "b", 4], 3), ([2], [2, "b", 4], 3), ([99], [99, "b", 4], 6), (["Open"], ["Open", "b", 4], 6),
    ],
)  # fmt: skip
def test_numbered_row_of_a_template_is_filled(
    workspace: Path, call: Call, before: list[Any], row: list[Any], place: int
) -> None:
    first = [number if before != ["Open"] else "Open" for number in range(1, 5)]
    rows = [[each, None, None, f'=IF(C{n}="","",C{n}*2)'] for n, each in enumerate(first, start=2)]
    rows[0][1:3] = ["a", 1]
    path = made(workspace, [["No", "Item", "Qty", "Twice"], *rows])
    assert call("append_rows", path.name, values=[row])["cells"] == f"A{place}:D{place}"
    value = openpyxl.load_workbook(path).active[f"A{place}"].value
    assert value == (row[0] if row[0] is not None else 2)


@pytest.mark.parametrize("formula", ["=Other!A{row}", "=A{above}+1"])
def test_rows_that_a_formula_fills_are_data(workspace: Path, call: Call, formula: str) -> None:
    path = workspace / "book.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["Number", "Note"])
    book.active.append([1, "first"])
    for row in range(3, 7):
        book.active.cell(row, 1).value = formula.format(row=row, above=row - 1)
    book.create_sheet("Other")
    book.save(path)
    assert call("append_rows", path.name, values=[[9, "last"]])["cells"] == "A7:B7"
