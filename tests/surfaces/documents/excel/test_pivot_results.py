"""The figures of pivot tables, compared with a plain model of the same rows."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from callboard.surfaces.documents._package import Package
from callboard.surfaces.documents.excel._pivot_plans import PivotChanges, changed, foreign, plan_of, source_of
from callboard.surfaces.documents.excel._pivot_results import PivotFilter, PivotPlan, PivotValue
from callboard.surfaces.documents.excel._pivot_source import pivot_source
from callboard.surfaces.documents.excel._pivot_tables import all_pivots
from callboard.surfaces.documents.excel._pivots import change, check_name, insert, place_of
from callboard.surfaces.documents.excel._sheet_controls import SheetRange
from callboard.surfaces.documents.excel._workbook import ExcelFile

if TYPE_CHECKING:
    from callboard.surfaces.documents.excel._pivot_tables import PivotTable

FUNCTIONS = ["sum", "count", "average", "max", "min", "product", "count_numbers"]
KEYS = st.sampled_from([None, "a", "B", "b", "\u00e9t\u00e9", "<x> & 'y'", 1, 2.5, True])
FIGURES = st.one_of(st.none(), st.just("text"), st.integers(-1000, 1000), st.floats(-1e6, 1e6, width=32))
ROWS = st.lists(st.tuples(KEYS, KEYS, KEYS, KEYS, FIGURES, FIGURES), min_size=1, max_size=25)
HEADER = ["K1", "K2", "K3", "K4", "V1", "V2"]


def filled(rows: list[tuple[Any, ...]]) -> tuple[ExcelFile, SheetRange]:
    """Make a workbook with the rows below their header."""
    file = ExcelFile.new()
    for row, line in enumerate([HEADER, *rows], start=1):
        for column, value in enumerate(line, start=1):
            file.active.write(row, column, value)
    used = file.active.used()
    assert used is not None
    return file, SheetRange(file.active, used)


def label(value: Any) -> Any:
    """Return a key as it is compared: capitals do not count."""
    return "(blank)" if value is None else value.casefold() if isinstance(value, str) else (type(value), float(value))


def figure(function: str, values: list[Any]) -> Any:
    """Compute a figure from its definition."""
    present = [value for value in values if value is not None]
    numbers = [value for value in present if not isinstance(value, str)]
    if not present:
        return None
    if function == "average" and not numbers:
        return "#DIV/0!"
    return {
        "count": len(present), "count_numbers": len(numbers), "sum": math.fsum(numbers),
        "average": math.fsum(numbers) / max(len(numbers), 1), "max": max(numbers, default=0),
        "min": min(numbers, default=0), "product": math.prod(numbers) if numbers else 0,
    }[function]  # fmt: skip


def read(pivot: PivotTable) -> list[list[Any]]:
    cells = pivot.cells
    return [
        [pivot.sheet.raw(row, column)[0] for column in range(cells.min_col, cells.max_col + 1)]
        for row in range(cells.min_row, cells.max_row + 1)
    ]


def keys(lines: list[list[Any]], depth: int) -> list[tuple[Any, ...] | None]:
    """Return the items of lines of labels, filled down; of a total those of its group."""
    found: list[tuple[Any, ...] | None] = []
    last: list[Any] = []
    for line in lines:
        level = next((number for number, value in enumerate(line) if value is not None), None)
        if level is None:
            found.append(found[-1])
            continue
        text = str(line[level])
        if text == "Grand Total" or text.startswith("Total "):
            found.append(())
        elif text.endswith(" Total") or " Total " in text or (len(line) > level + 1 and " of V" in text):
            found.append(tuple(last[: level + 1]))
        else:
            last = [*last[:level], *(label(value if value != "(blank)" else None) for value in line[level:])]
            assert len(last) == depth
            found.append(tuple(last))
    return found


@pytest.mark.parametrize("most_columns", [1, 2])
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_figures_are_those_of_a_plain_model(most_columns: int, data: st.DataObject) -> None:
    rows = data.draw(ROWS)
    rows.append((None, "a", "B", 1, 3, 4))  # a row that no filter of the test leaves out, and numbers to sum
    order = data.draw(st.permutations(range(4)))
    row_axis, column_axis = data.draw(st.integers(1, 3)), data.draw(st.integers(0, most_columns))
    axes = [HEADER[number] for number in order[: row_axis + column_axis]]
    names, columns = axes[:row_axis], axes[row_axis : row_axis + column_axis]
    picked = data.draw(st.lists(st.tuples(st.sampled_from([4, 5]), st.sampled_from(FUNCTIONS)), min_size=1, max_size=3))
    values = [PivotValue.model_validate({"column": HEADER[n], "function": name}) for n, name in picked]
    rest = [number for number in range(4) if HEADER[number] not in {*names, *columns}]
    filters, kept = [], rows
    if rest and data.draw(st.booleans()):
        chosen = rows[-1][rest[0]]
        filters = [PivotFilter(column=HEADER[rest[0]], values=["(blank)" if chosen is None else str(chosen)])]
        kept = [row for row in rows if label(row[rest[0]]) == label(chosen)]
    totals = data.draw(st.booleans())
    file, target = filled(rows)
    source, _ = pivot_source(target, named=True)
    plan = PivotPlan(names, columns, values, filters, totals)
    pivot = insert(source, plan, check_name(file, ""), place_of(source, ""))
    check(pivot, kept, plan, [number for number, _ in picked])
    again = ExcelFile(Package("again", {name: file.package.bytes_of(name) for name in file.package}))
    (stored,) = all_pivots(again)
    assert foreign(stored) == ""
    assert (plan_of(stored).rows, plan_of(stored).columns, plan_of(stored).totals) == (names, columns, totals)
    renewed, _ = pivot_source(source_of(stored, ""), named=True)
    before = read(stored)
    change(stored, renewed, changed(plan_of(stored), PivotChanges(None, None, None, None, None), renewed))
    assert read(stored) == before


def check(pivot: PivotTable, rows: list[tuple[Any, ...]], plan: PivotPlan, figures: list[int]) -> None:
    """Compare each displayed figure with that of the rows of its group."""
    grid, depth, width, several = read(pivot), len(plan.rows), len(plan.columns), len(plan.values) > 1
    head = 1 + width + several
    row_keys = keys([line[:depth] for line in grid[head:]], depth)
    column_lines = [[grid[level][column] for level in range(1, 1 + width)] for column in range(depth, len(grid[0]))]
    column_keys = keys(column_lines, width) if width else [()] * len(column_lines)
    members: dict[tuple[Any, Any], list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        row_key = [label(row[HEADER.index(name)]) for name in plan.rows]
        column_key = [label(row[HEADER.index(name)]) for name in plan.columns]
        for upper, left in itertools.product(range(depth + 1), range(width + 1)):
            members[tuple(row_key[:upper]), tuple(column_key[:left])].append(row)
    shown = {(row_key, column_key) for row_key in row_keys for column_key in column_keys}
    full = {key for key in members if len(key[0]) == depth and len(key[1]) == width}
    assert full <= shown
    assert not plan.totals or {*members} <= shown
    for line, row_key in zip(grid[head:], row_keys, strict=True):
        for number, (cell, column_key) in enumerate(zip(line[depth:], column_keys, strict=True)):
            value = number % len(plan.values)
            wanted = figure(plan.values[value].function, [row[figures[value]] for row in members[row_key, column_key]])
            assert cell == (pytest.approx(wanted, rel=1e-9, abs=1e-6) if isinstance(wanted, (int, float)) else wanted)
