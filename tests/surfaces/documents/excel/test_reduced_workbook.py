"""The workbook that the programs which compute get."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

import pytest
import xlsxwriter

from callboard.surfaces.documents._package import Package
from callboard.surfaces.documents.excel._engines import IRON_CALC, Computation
from callboard.surfaces.documents.excel._functions import may_be_computed
from callboard.surfaces.documents.excel._outdated_results import Formulas
from callboard.surfaces.documents.excel._reduced_workbook import left_out_names, reduced
from callboard.surfaces.documents.excel._workbook import ExcelFile

if TYPE_CHECKING:
    from collections.abc import Callable


def workbook(fill: Callable[[xlsxwriter.Workbook, xlsxwriter.worksheet.Worksheet], None]) -> ExcelFile:
    """Make a workbook with one sheet."""
    out = io.BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True}) as book:
        fill(book, book.add_worksheet("Data"))
    with zipfile.ZipFile(out) as archive:
        return ExcelFile(Package("book.xlsx", {name: archive.read(name) for name in archive.namelist()}))


def content(file: ExcelFile) -> dict[str, str]:
    """Return the parts of the workbook with all its formulas."""
    formulas = Formulas.of(file)
    live = {place: list(formulas.spilled(place)) for place in formulas.texts}
    with zipfile.ZipFile(io.BytesIO(reduced(file, live, {}))) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_reduced_workbook_has_only_values_formulas_names_and_tables() -> None:
    def fill(book: xlsxwriter.Workbook, sheet: xlsxwriter.worksheet.Worksheet) -> None:
        sheet.write_row(0, 0, ["a", 1, True])
        sheet.write_formula("D1", "=B1*2", None, 2)
        sheet.write_url("E1", "https://example.org/", string="link")
        sheet.data_validation("F1", {"validate": "custom", "value": '=WEBSERVICE("http://example.org/")'})
        sheet.conditional_format("A1:B2", {"type": "formula", "criteria": '=WEBSERVICE("http://example.org/")=1'})
        sheet.insert_textbox("H1", "text", {"textlink": "=$A$1"})
        sheet.write_comment("A1", "note")
        chart = book.add_chart({"type": "line"})
        chart.add_series({"values": "=Data!$B$1:$B$1"})
        sheet.insert_chart("H9", chart)
        sheet.add_table("A5:B6", {"columns": [{"header": "x"}, {"header": "y", "formula": "=[@x]*2"}]})
        book.define_name("Rate", "=Data!$B$1")
        book.define_name("Outside", '=WEBSERVICE("http://example.org/")')
        book.define_name("Command", "=cmd|'/c calc'!A0")

    file = workbook(fill)
    parts = content(file)
    assert sorted(parts) == [
        "[Content_Types].xml", "_rels/.rels", "xl/_rels/workbook.xml.rels", "xl/styles.xml", "xl/tables/table1_1.xml",
        "xl/workbook.xml", "xl/worksheets/_rels/sheet1.xml.rels", "xl/worksheets/sheet1.xml",
    ]  # fmt: skip
    everything = "".join(parts.values())
    for word in ("WEBSERVICE", "example.org", "hyperlink", "calculatedColumnFormula", "cmd", "dataValidation"):
        assert word not in everything, word
    assert 'name="Rate"' in parts["xl/workbook.xml"]
    assert left_out_names(file) == {"outside", "command"}


def test_other_formulas_are_values_and_hidden_rows_stay_hidden() -> None:
    def fill(_: xlsxwriter.Workbook, sheet: xlsxwriter.worksheet.Worksheet) -> None:
        sheet.write_column(0, 0, [" two  spaces ", 2.5])
        sheet.write_formula("B1", "=LEN(A1)", None, 99)
        sheet.write_formula("B2", "=A2", None, 2.5)
        sheet.set_row(1, None, None, {"hidden": True})

    file = workbook(fill)
    with zipfile.ZipFile(io.BytesIO(reduced(file, {("data", 2, 2): []}, {("data", 1, 1): ("x", False)}))) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    assert '<c r="B1" t="n"><v>99</v></c>' in sheet
    assert '<c r="B2"><f>A2</f></c>' in sheet
    assert '<row r="2" hidden="1">' in sheet
    assert ">x</t>" in sheet
    assert "spaces" not in sheet
    (answer,) = IRON_CALC.run([Computation(file, {("data", 1, 2): []})]) or []
    assert answer.values == {("data", 1, 2): (13, False)}


@pytest.mark.parametrize(
    ("formula", "may"),
    [
        ("SUM(A1:A2)", True),
        ("SUM(Prices[2024])", True),
        ('"[1]|"&A1', True),
        ("[1]Sheet!A1", False),
        ("cmd|'/c calc'!A0", False),
        ('WEBSERVICE("http://127.0.0.1/")', False),
        ('HYPERLINK("x")', False),
        ('CELL("filename")', False),
        ("FORMULATEXT(A1)", False),
        ("MyMacro(1)", False),
        ("COM.MICROSOFT.WEBSERVICE(1)", False),
        ('DDE("soffice","x","y")', False),
    ],
)
def test_only_known_functions_of_the_workbook_are_computed(formula: str, may: bool) -> None:
    assert may_be_computed(formula) is may
