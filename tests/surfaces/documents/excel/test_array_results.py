"""Results of array formulas and AGGREGATE, against a plain model."""

from __future__ import annotations

import os
import random
import shutil
import statistics
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
from openpyxl.worksheet.formula import ArrayFormula

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

LAST = 41


def model(rows: list[tuple[str, str, int | None]]) -> dict[str, Any]:
    """Return formulas with their results; a missing amount is an error in the sheet."""
    amounts = [amount for _, _, amount in rows if amount is not None]
    east = [amount for _, region, amount in rows if region == "East" and amount is not None]
    places = [number for number, (_, region, _) in enumerate(rows, 1) if region == "East"]
    west = [name for name, region, _ in rows if region == "West"]
    area = {letter: f"{letter}2:{letter}{LAST}" for letter in "ABC"}
    is_east, c = f'{area["B"]}="East"', area["C"]
    return {
        f"{{=MAX(IF({is_east},IF(ISNUMBER({c}),{c})))}}": max(east),
        f"{{=AVERAGE(IF(ISNUMBER({c}),IF({is_east},{c})))}}": statistics.fmean(east),
        f"{{=SUM(IF(ISERROR({c}),0,{c}))}}": sum(amounts),
        f"{{=INDEX({area['A']},SMALL(IF({is_east},ROW({area['A']})-1),3))}}": rows[places[2] - 1][0],
        f'{{=INDEX({area["A"]},MATCH(1,({area["B"]}="West")*({area["A"]}="{west[-1]}"),0))}}': west[-1],
        f"{{=SUM(1/COUNTIF({area['B']},{area['B']}))}}": len({region for _, region, _ in rows}),
        f'{{=_xlfn.TEXTJOIN(",",TRUE,IF({area["B"]}="West",{area["A"]},""))}}': ",".join(west),
        f"=SUMPRODUCT(({is_east})*ISNUMBER({c}))": len(east),
        f'=LOOKUP(2,1/({area["B"]}="West"),{area["A"]})': west[-1],
        f"=_xlfn.AGGREGATE(9,6,{c})": sum(amounts),
        f"=_xlfn.AGGREGATE(1,6,{c})": statistics.fmean(amounts),
        f"=_xlfn.AGGREGATE(4,6,{c})": max(amounts),
        f"=_xlfn.AGGREGATE(14,6,{c},2)": sorted(amounts)[-2],
        f"=_xlfn.AGGREGATE(15,6,{c},3)": sorted(amounts)[2],
        f"=_xlfn.AGGREGATE(12,6,{c})": statistics.median(amounts),
        f"=_xlfn.AGGREGATE(14,6,{c}/({is_east}),1)": max(east),
        f"=INDEX({area['A']},_xlfn.AGGREGATE(15,6,(ROW({area['B']})-1)/({is_east}),4))": rows[places[3] - 1][0],
        f"=SUM({c})": "#DIV/0!",
    }


def test_array_formulas_and_aggregates_are_computed_right(workspace: Path, call: Call) -> None:
    if shutil.which("soffice") is None:
        (pytest.fail if os.environ.get("REQUIRE_SOFFICE") == "1" else pytest.skip)("soffice is not installed")
    numbers = random.Random(7)  # noqa: S311 - the data of a test
    rows: list[tuple[str, str, int | None]] = [
        (f"item {number}", numbers.choice(["East", "West", "North"]), numbers.choice([None, *range(-50, 900)]))
        for number in range(1, LAST - 2)
    ]
    rows += [("none", "East", None), ("last", "West", 5)]
    made = openpyxl.Workbook()
    for row, (name, region, amount) in enumerate([("Item", "Region", 0), *rows], start=1):
        for column, value in enumerate([name, region, "=1/0" if amount is None else amount], start=1):
            made.active.cell(row, column, value)
    expected = model(rows)
    for row, formula in enumerate(expected, start=1):
        is_array = formula.startswith("{")
        made.active.cell(row, 5, ArrayFormula(f"E{row}", formula[1:-1]) if is_array else formula)
    made.save(workspace / "book.xlsx")
    results = [row[0] for row in call("read_range", "book.xlsx", cells=f"E1:E{len(expected)}")["values"]]
    for result, (formula, value) in zip(results, expected.items(), strict=True):
        assert result == (pytest.approx(value) if isinstance(value, float) else value), formula
