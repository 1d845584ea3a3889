"""Hidden rows, hidden columns and active filters of a sheet."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from openpyxl.utils import get_column_letter

from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import local
from callboard.surfaces.documents._tables import short
from callboard.surfaces.documents.excel._cell_elements import SIGNS, area_of, is_hidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from openpyxl.worksheet.cell_range import CellRange
    from pydantic import JsonValue

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._named_tables import Table
    from callboard.surfaces.documents.excel._sheet import Sheet

_TRUE = frozenset({"1", "true"})
_MOST_SPANS = 20
_MOST_VALUES = 20
_DATE_PARTS = ("year", "month", "day", "hour", "minute", "second")


def hidden_rows(sheet: Sheet, cells: CellRange) -> list[int]:
    """List the rows of a range that are hidden or filtered out."""
    within = range(cells.min_row, cells.max_row + 1)
    defaults = sheet.root.find(q("sheetFormatPr"))
    if defaults is not None and defaults.get("zeroHeight") in _TRUE:
        return [row for row in within if row not in sheet.rows or is_hidden(sheet.rows[row], "ht")]
    if sheet.blocks is not None:
        return [row for row in sheet.blocks.hidden_rows() if row in within]
    return [row for row, line in sheet.rows.items() if row in within and is_hidden(line, "ht")]


def hidden_columns(sheet: Sheet, cells: CellRange) -> list[int]:
    """List the columns of a range that are hidden."""
    spans = [
        (int(entry.get("min", "1")), int(entry.get("max", "0")))
        for entry in sheet.root.iterfind(f"{q('cols')}/{q('col')}")
        if is_hidden(entry, "width")
    ]
    across = range(cells.min_col, cells.max_col + 1)
    return [column for column in across if any(first <= column <= last for first, last in spans)]


def row_spans(rows: Iterable[int]) -> str:
    """Write numbers of rows shortly, like ``3:5, 9``."""
    return ", ".join(_spans(rows, str))


def column_spans(columns: Iterable[int]) -> str:
    """Write numbers of columns shortly as letters, like ``B, D:F``."""
    return ", ".join(_spans(columns, get_column_letter))


def _spans(numbers: Iterable[int], name: Callable[[int], str]) -> Iterator[str]:
    groups = itertools.groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0])
    for count, (_, group) in enumerate(groups):
        line = [number for _, number in group]
        if count == _MOST_SPANS:
            yield "…"
            return
        yield name(line[0]) if len(line) == 1 else f"{name(line[0])}:{name(line[-1])}"


def hidden_in(sheet: Sheet, cells: CellRange) -> Answer:
    """Name the hidden rows and columns of a range; empty without any."""
    answer: Answer = {}
    if rows := hidden_rows(sheet, cells):
        answer["hidden_rows"] = row_spans(rows)
    if columns := hidden_columns(sheet, cells):
        answer["hidden_columns"] = column_spans(columns)
    return answer


def filters_of_table(table: Table) -> Answer:
    """Describe the active filters of a table for an observation."""
    auto_filter = table.root.find(q("autoFilter"))
    filters: list[JsonValue] = [*_criteria(table.sheet, auto_filter)] if auto_filter is not None else []
    return {"filters": filters} if filters else {}


def _criteria(sheet: Sheet, element: Element) -> Iterator[JsonValue]:
    cells = area_of(element.get("ref"))
    for entry in element.iterfind(q("filterColumn")):
        if len(entry):
            column = cells.min_col + int(entry.get("colId", "0"))
            title = sheet.value(cells.min_row, column)
            name = get_column_letter(column) if title is None else short(str(title))
            yield {"cells": cells.coord, "column": name, "shows": ", ".join(_shows(entry[0]))}


def _shows(criterion: Element) -> Iterator[str]:
    kind = local(criterion)
    if kind == "filters":
        values = [
            entry.get("val", "") if local(entry) == "filter" else "-".join(filter(None, map(entry.get, _DATE_PARTS)))
            for entry in criterion
        ]
        yield from values[:_MOST_VALUES]
        if criterion.get("blank") in _TRUE:
            yield "empty cells"
        if len(values) > _MOST_VALUES:
            yield f"{len(values) - _MOST_VALUES} more values"
    elif kind == "customFilters":
        tests = [f"{SIGNS.get(entry.get('operator'), '=')} {entry.get('val', '')}" for entry in criterion]
        yield (" and " if criterion.get("and") in _TRUE else " or ").join(tests)
    elif kind == "top10":
        side = "lowest" if criterion.get("top") in {"0", "false"} else "highest"
        yield f"the {side} {criterion.get('val')}{' %' if criterion.get('percent') in _TRUE else ''}"
    else:
        yield {"dynamicFilter": criterion.get("type", ""), "colorFilter": "a color", "iconFilter": "an icon"}.get(
            kind, kind
        )


def facts_of(sheet: Sheet, used: CellRange | None) -> Answer:
    """Describe what a sheet hides: rows, columns, and its own filters."""
    facts = hidden_in(sheet, used) if used else {}
    auto_filter, properties = sheet.root.find(q("autoFilter")), sheet.root.find(q("sheetPr"))
    filters: list[JsonValue] = [*_criteria(sheet, auto_filter)] if auto_filter is not None else []
    if auto_filter is None and properties is not None and properties.get("filterMode") in _TRUE:
        filters.append({"shows": "the rows that meet the conditions of an advanced filter"})
    return {**facts, "filters": filters} if filters else facts
