"""Validations set, replaced and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
from excel_books import save_book, workbook_of
from openpyxl.worksheet.datavalidation import DataValidation

from callboard.surfaces import ToolError

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

    from callboard.surfaces.documents import DocumentSurface

ROWS = [["Item", "Size", "Due"], ["a", "S", 5], ["b", "XL", 12]]


@pytest.fixture
def book(workspace: Path, call: Call) -> Path:
    """Give a workbook with a block and a sheet of choices."""
    workbook = workbook_of(ROWS)
    lists = workbook.create_sheet("My lists")
    for size in ("S", "M", "L"):
        lists.append([size])
    return save_book(workbook, workspace / "book.xlsx", call)


def validations(book: Path) -> dict[str, DataValidation]:
    """Read the validations with another program."""
    return {
        str(rule.sqref): rule for rule in openpyxl.load_workbook(book).worksheets[0].data_validations.dataValidation
    }


def shown(call: Call, book: Path) -> dict[str, str]:
    """Return the validations that an observation shows."""
    detail: dict[str, Any] = call("get_controls", book.name)["controls"][0]["detail"]
    found: dict[str, str] = detail.get("validations", {})
    return found


def test_choices_are_set_and_kept(book: Path, call: Call) -> None:
    answer = call(
        "set_validation", book.name, kind="list", cells="B2:B9,D2", choices=["S", "M", 'L "plus"'], error="No"
    )
    assert answer["values_not_allowed"] == ["B3"]
    rule = validations(book)["B2:B9 D2"]
    assert (rule.formula1, rule.error, rule.showErrorMessage) == ('"S,M,L ""plus"""', "No", True)
    assert shown(call, book) == {"B2:B9 D2": 'one of: S, M, L "plus"'}
    with pytest.raises(ToolError, match="B4 takes one of: S, M"):
        call("write_range", book.name, cell="B4", values=[["XXL"]])
    call("write_range", book.name, cell="B4", values=[['L "plus"']])


def test_choices_come_from_cells_that_stay_fixed(book: Path, call: Call) -> None:
    call("set_validation", book.name, kind="list", cells="B2:B3", source="'my lists'!A1:A3")
    assert validations(book)["B2:B3"].formula1 == "'My lists'!$A$1:$A$3"
    assert shown(call, book) == {"B2:B3": "one of: S, M, L"}
    call("insert_rows_or_columns", book.name, what="rows", at="1", sheet="My lists")
    assert validations(book)["B2:B3"].formula1 == "'My lists'!$A$2:$A$4"


@pytest.mark.parametrize(
    ("arguments", "formulas", "description"),
    [
        ({"kind": "whole", "limits": [1, 10]}, ("1", "10"), "a whole number between 1 and 10"),
        ({"kind": "number", "operator": ">", "limits": [0.5]}, ("0.5", None), "a number > 0.5"),
        ({"kind": "length", "operator": "<=", "limits": [8]}, ("8", None), "a text with a length in characters <= 8"),
        (
            {"kind": "date", "operator": ">=", "limits": [{"date": "2026-05-31"}]},
            ("46173", None),
            "a date >= 2026-05-31",
        ),
        ({"kind": "time", "limits": [{"date": "6:00"}, {"date": "18:00"}]}, ("0.25", "0.75"), None),
        ({"kind": "formula", "formula": "=C2>LEN(A2)"}, ("C2>LEN(A2)", None), "what fulfils =C2>LEN(A2)"),
    ],
)
def test_limits_of_all_kinds_are_set(
    book: Path, call: Call, arguments: dict[str, Any], formulas: tuple[str, str | None], description: str | None
) -> None:
    call("set_validation", book.name, cells="C2:C5", **arguments)
    rule = validations(book)["C2:C5"]
    assert (rule.formula1, rule.formula2) == formulas
    assert description is None or shown(call, book)["C2:C5"] == description


def test_a_validation_replaces_those_of_its_cells(book: Path, call: Call) -> None:
    call("set_validation", book.name, kind="list", cells="B2:B9", choices=["S", "XL"])
    call("set_validation", book.name, kind="length", cells="B4:B5", operator="<", limits=[3])
    assert {*validations(book)} == {"B2:B3 B6:B9", "B4:B5"}
    answer = call("set_validation", book.name, kind="none", cells="B1:B9")
    assert answer["validations_deleted"] == 2
    assert validations(book) == {}


def test_a_validation_that_only_warns_does_not_refuse(book: Path, call: Call) -> None:
    call("set_validation", book.name, kind="whole", cells="C2:C3", limits=[1, 20], warns=True, prompt="1 to 20")
    rule = validations(book)["C2:C3"]
    assert (rule.errorStyle, rule.prompt) == ("warning", "1 to 20")
    answer = call("write_range", book.name, cell="C2", values=[[99]])
    assert "although the cell takes" in answer["validations"]["C2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "list"}, "choices, or a source"),
        ({"kind": "list", "choices": ["a,b"]}, "hold no commas"),
        ({"kind": "list", "choices": ["x" * 99, "y" * 99, "z" * 99]}, "at most 255 characters"),
        ({"kind": "list", "source": "None!A1"}, "no sheet 'None'"),
        ({"kind": "list", "choices": ["a"], "limits": [1]}, "list takes choices or source, and not limits"),
        ({"kind": "whole", "limits": [1]}, "between takes 2 limits"),
        ({"kind": "date", "limits": [1, 2]}, "date is limited by"),
        ({"kind": "number", "limits": [{"date": "6:00"}, 1]}, "number is limited by numbers"),
        ({"kind": "date", "operator": "=", "limits": [{"date": "6:00"}]}, "a time by"),
        ({"kind": "formula", "formula": "B2>1"}, "begins with ="),
        ({"kind": "list", "choices": ["a"], "error": "x" * 256}, "256 characters"),
    ],
)
def test_a_validation_that_is_not_possible_is_refused(book: Path, call: Call, arguments: dict, message: str) -> None:
    before = book.read_bytes()
    with pytest.raises(ToolError, match=message):
        call("set_validation", book.name, cells="B2:B3", **arguments)
    assert book.read_bytes() == before


def test_a_list_names_the_cells_that_it_reads(surface: DocumentSurface, book: Path) -> None:
    target = next(target for target in surface.targets() if target.id == book.name)
    arguments = {"kind": "list", "cells": "B2,B3", "source": "'My lists'!A1:A3", "sheet": ""}
    named = surface.resources(target, "set_validation", {**arguments, "control_id": "", "control_name": ""})
    assert named == ["range:Sheet!B2", "range:Sheet!B3", "range:My lists!A1:A3"]
