"""Conditional formats: shown, added, changed and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
from excel_books import change_sheet, save_book, workbook_of
from openpyxl.formatting.rule import CellIsRule, ColorScaleRule, FormulaRule
from openpyxl.styles import PatternFill

from callboard.surfaces import ToolError

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

ROWS = [["Item", "Region", "Sales"], ["a", "East", 5], ["b", "West", 12], ["c", "east", 7], ["d", "North", None]]
RED = PatternFill("solid", bgColor="FFFF0000")


@pytest.fixture
def book(workspace: Path, call: Call) -> Path:
    """Give a workbook with one block and two conditional formats."""
    workbook = workbook_of(ROWS)
    workbook.active.conditional_formatting.add("C2:C5", CellIsRule(operator="greaterThan", formula=["10"], fill=RED))
    workbook.active.conditional_formatting.add("A2:B5", FormulaRule(formula=['$B2="East"'], fill=RED))
    return save_book(workbook, workspace / "book.xlsx", call)


def descriptions(call: Call, book: Path) -> dict[str, str]:
    """Return the conditional formats that an observation shows."""
    controls = call("get_controls", book.name)["controls"]
    detail: dict[str, Any] = next(control for control in controls if control["id"] == "sheet-1")["detail"]
    formats: dict[str, str] = detail.get("conditional_formats", {})
    return formats


def rules(book: Path) -> dict[str, list[Any]]:
    """Read the conditional formats with another program."""
    return {str(area.sqref): area.rules for area in openpyxl.load_workbook(book).active.conditional_formatting}


def test_an_observation_shows_conditional_formats(book: Path, call: Call) -> None:
    scale = ColorScaleRule(start_type="min", end_type="max")
    change_sheet(book, call, lambda sheet: sheet.conditional_formatting.add("C2:C5", scale))
    assert descriptions(call, book) == {"C2:C5": "> 10; a color scale", "A2:B5": '=$B2="East"'}


def test_conditions_make_a_conditional_format(book: Path, call: Call) -> None:
    where = [{"column": "Sales", "operator": ">", "value": 6}]
    arguments = {"cells": "A1:C5", "where": where, "fill": "yellow", "bold": True, "conditional": "add"}
    answer = call("format_cells", book.name, **arguments)
    assert answer["formula"] == "=IF(ISNUMBER($C2),$C2>6,FALSE)"
    rule = rules(book)["A2:C5"][0]
    assert (rule.formula, rule.priority) == (["IF(ISNUMBER($C2),$C2>6,FALSE)"], 1)
    assert (rule.dxf.fill.bgColor.rgb, rule.dxf.font.b) == ("FFFFFF00", True)
    assert rules(book)["C2:C5"][0].priority == 2
    before = rules(book)
    call("format_cells", book.name, **arguments)
    assert rules(book).keys() == before.keys()
    assert len(rules(book)["A2:C5"]) == 1


def test_conditional_formats_are_replaced_and_deleted(book: Path, call: Call) -> None:
    answer = call("format_cells", book.name, cells="C2:C5", scale=["red", "yellow", "green"], conditional="replace")
    assert answer["rules_deleted"] == 1
    assert rules(book)["C2:C5"][0].type == "colorScale"
    call("format_cells", book.name, cells="B2:B5", conditional="delete")
    assert {*rules(book)} == {"C2:C5", "A2:A5"}
    call("format_cells", book.name, cells="C2:C5", bars="blue", conditional="replace")
    assert [rule.type for rule in rules(book)["C2:C5"]] == ["dataBar"]
    assert call("format_cells", book.name, cells="A1:C5", conditional="delete")["rules_deleted"] == 2
    assert rules(book) == {}
    assert descriptions(call, book) == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"conditional": "add", "fill": "red"}, "where with a format, or a scale, or bars"),
        ({"conditional": "add", "where": [{"operator": ">", "value": 1}]}, "say which format"),
        ({"conditional": "add", "where": [{"operator": ">", "value": 1}], "size": 9}, "can't change size"),
        ({"conditional": "add", "where": [{"operator": ">", "value": "x"}], "bold": True}, "is no number"),
        ({"scale": ["red"]}, "two or three colors"),
        ({"bars": "none"}, "bars need a color"),
        ({"bars": "red", "scale": ["red", "blue"]}, "or a scale, or bars"),
        ({"conditional": "delete", "bold": True}, "leave out where"),
        ({"cells": "A2:A3", "conditional": "delete"}, "name all of its cells"),
        ({"bars": "red", "merge": True}, "two calls"),
    ],
)
def test_a_conditional_format_that_is_not_clear_is_refused(
    book: Path, call: Call, arguments: dict[str, Any], message: str
) -> None:
    before = book.read_bytes()
    with pytest.raises(ToolError, match=message):
        call("format_cells", book.name, **{"cells": "C2:C5", **arguments})
    assert book.read_bytes() == before
