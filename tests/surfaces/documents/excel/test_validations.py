"""Validations of cells: shown to agents, and kept by every tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
import xlsxwriter
from office_files import changed, rewritten
from openpyxl.worksheet.datavalidation import DataValidation

from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

DATES = {"criteria": "between", "minimum": 45292, "maximum": 45657}  # 2024
RULES: dict[str, tuple[dict[str, Any], object, object, str]] = {
    "typed list": ({"validate": "list", "source": ["Open", "Closed"]}, "Open", "open", "one of: Open, Closed"),
    "list in cells": ({"validate": "list", "source": "=$H$1:$H$2"}, "red", "blue", "one of: Red, Green"),
    "list on a sheet": ({"validate": "list", "source": "=Lists!$A$1:$A$2"}, 20, 30, "one of: 10, 20"),
    "named list": ({"validate": "list", "source": "=Colors"}, "Green", "blue", "one of: Red, Green"),
    "column of a table": ({"validate": "list", "source": "=Choices"}, "b", "c", "one of: a, b"),
    "table by its name": ({"validate": "list", "source": '=INDIRECT("Letters[Letter]")'}, "A", "c", "one of: a, b"),
    "whole": ({"validate": "integer", "criteria": "between", "minimum": 0, "maximum": 24}, 24, 2.5, "between 0 and 24"),
    "text for a number": ({"validate": "decimal", "criteria": ">", "value": 0}, 0.1, "much", "a number > 0"),
    "limit in a cell": ({"validate": "decimal", "criteria": "<=", "value": "=$I$1"}, 7, 7.1, "a number <= 7"),
    "date": ({"validate": "date", **DATES}, {"date": "2024-02-01"}, {"date": "2025-02-01"}, "1-01 and 2024-12-31"),
    "length": ({"validate": "length", "criteria": "<=", "value": 3}, "abc", "abcd", "length in characters <= 3"),
    "outside": (
        {"validate": "integer", "criteria": "not between", "minimum": 1, "maximum": 9}, 10, 5, "not between 1 and 9"
    ),
}  # fmt: skip


def made(workspace: Path, rule: dict[str, Any]) -> Path:
    """Write a workbook whose column B has a rule."""
    path = workspace / "book.xlsx"
    book = xlsxwriter.Workbook(str(path))
    sheet, lists = book.add_worksheet("Data"), book.add_worksheet("Lists")
    sheet.write_row(0, 0, ["Task", "Status"])
    sheet.write_row(1, 0, ["a", None])
    sheet.write_column(0, 7, ["Red", "Green"])
    sheet.write("I1", 7)
    lists.write_column(0, 0, [10, 20])
    book.define_name("Colors", "=Data!$H$1:$H$2")
    lists.add_table("C1:C3", {"name": "Letters", "columns": [{"header": "Letter"}], "data": [["a"], ["b"]]})
    book.define_name("Choices", "=Letters[Letter]")
    sheet.data_validation("B2:B9", rule)
    book.close()
    return path


@pytest.mark.parametrize(("rule", "right", "wrong", "text"), RULES.values(), ids=RULES)
def test_value_that_breaks_a_rule_is_refused(
    workspace: Path, call: Call, surface: DocumentSurface, rule: dict[str, Any], right: object, wrong: object, text: str
) -> None:
    path = made(workspace, rule)
    target = next(target for target in surface.targets() if target.name == "book.xlsx")
    assert text in surface.observe(target).controls[0].detail["validations"]["B2:B9"]
    assert text in call("read_range", path.name, cells="A1:B2")["validations"]["B2:B9"]
    assert "validations" not in call("read_range", path.name, cells="A1:A2")
    before = path.read_bytes()
    with pytest.raises(ToolError, match="nothing was written: B3 takes .*" + text.replace(".", r"\.")):
        call("write_range", path.name, cell="A3", values=[["b", wrong]])
    assert path.read_bytes() == before
    assert "validations" not in call("write_range", path.name, cell="A3", values=[["b", right]])


LIST = RULES["typed list"][0]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("append_rows", {"values": [["b", "Done"]], "control_id": "range-1"}),
        ("replace_text", {"find_text": "Open", "new_text": "Done"}),
        ("set_formula", {"cells": "B3", "formula": '="Do"&"ne"'}),
        ("insert_table", {"cell": "A5", "header": ["x", "Open"], "rows": [["y", "Done"]]}),
    ],
)
def test_every_tool_that_writes_keeps_the_rule(workspace: Path, call: Call, name: str, arguments: Any) -> None:
    path = made(workspace, LIST)
    book = openpyxl.load_workbook(path)
    book["Data"]["B2"] = "Open"
    book["Data"].delete_cols(8, 2)
    book.save(path)
    call("get_controls", path.name)
    before = path.read_bytes()
    with pytest.raises(ToolError, match="takes one of: Open, Closed, and not 'Done'"):
        call(name, path.name, **arguments)
    assert path.read_bytes() == before


@pytest.mark.parametrize("style", ["warning", "information", "none"])
def test_broken_warning_rule_is_reported(workspace: Path, call: Call, style: str) -> None:
    rule = {**LIST, "error_message": "Ask Ada"}
    rule |= {"show_error": False} if style == "none" else {"error_type": style}
    path = made(workspace, rule)
    answer = call("write_range", path.name, cell="B2", values=[["Done"]])
    assert answer["validations"] == {"B2": "written, although the cell takes one of: Open, Closed (Ask Ada)"}
    assert openpyxl.load_workbook(path)["Data"]["B2"].value == "Done"


@pytest.mark.parametrize(
    "rule", [{"validate": "custom", "value": "=ISNUMBER(B2)"}, {"validate": "list", "source": '=INDIRECT(A1&"2")'}]
)
def test_uncomputed_rule_is_reported_as_not_checked(workspace: Path, call: Call, rule: dict[str, Any]) -> None:
    path = made(workspace, rule)
    answer = call("write_range", path.name, cell="B2", values=[["Done"]])
    assert answer["validations"]["B2"].startswith("not checked: the cell takes")


def test_old_value_that_breaks_a_rule_stays(workspace: Path, call: Call) -> None:
    path = made(workspace, LIST)
    book = openpyxl.load_workbook(path)
    book["Data"]["B2"] = "Done"
    book.save(path)
    call("write_range", path.name, cell="A2", values=[["b", "Done"]])
    call("sort_range", path.name, by=[{"column": "Task"}], cells="A1:B2")
    call("write_range", path.name, cell="B2", values=[[None]])


def test_relative_limit_moves_with_the_cell(workspace: Path, call: Call) -> None:
    path = workspace / "book.xlsx"
    book = openpyxl.Workbook()
    for row in (["Most", "Used"], [5, 1], [9, 1]):
        book.active.append(row)
    rule = DataValidation(type="decimal", operator="lessThanOrEqual", formula1="A2", showErrorMessage=True)
    rule.add("B2:B3")
    book.active.add_data_validation(rule)
    book.save(path)
    call("write_range", path.name, cell="B3", values=[[9]])
    with pytest.raises(ToolError, match="B2 takes a number <= 5, and not '9'"):
        call("write_range", path.name, cell="B2", values=[[9]])


def test_rule_of_an_extension_counts(workspace: Path, call: Call) -> None:
    path = made(workspace, {"validate": "any"})
    x14, xm = (f"http://schemas.microsoft.com/office/{name}/main" for name in ("spreadsheetml/2009/9", "excel/2006"))
    rule = f"""<extLst><ext uri="{{CCE6A557-97BC-4b89-ADB6-D9C93CAAB3DF}}" xmlns:x14="{x14}"><x14:dataValidations
 count="1" xmlns:xm="{xm}"><x14:dataValidation type="list" showErrorMessage="1"><x14:formula1>
<xm:f>Lists!$A$1:$A$2</xm:f></x14:formula1><xm:sqref>B2:B9</xm:sqref></x14:dataValidation></x14:dataValidations></ext></extLst></worksheet>"""
    path.write_bytes(changed(path.read_bytes(), rewritten("xl/worksheets/sheet1.xml", b"</worksheet>", rule.encode())))
    call("write_range", path.name, cell="B2", values=[[20]])
    with pytest.raises(ToolError, match="B2 takes one of: 10, 20, and not '30'"):
        call("write_range", path.name, cell="B2", values=[[30]])
