"""Pivot tables: inserted, changed and deleted."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._tables import clean, listed, nearest
from callboard.surfaces.documents.excel._cell_ranges import check_empty, positions_in, spread, widen, writable
from callboard.surfaces.documents.excel._pivot_parts import PivotParts, remove_parts
from callboard.surfaces.documents.excel._pivot_results import (
    DataColumn,
    PageFilter,
    PivotShape,
    compute,
    default_name,
    pages,
)
from callboard.surfaces.documents.excel._pivot_source import LONGEST_NAME, read_fields
from callboard.surfaces.documents.excel._pivot_tables import all_pivots, pivots_of
from callboard.surfaces.documents.excel._sheet_controls import SheetRange, column_of, destination, parse_cells
from callboard.surfaces.documents.excel._sheets import add_sheet, check_structure, check_title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.surfaces.documents.excel._pivot_results import (
        DisplayedCell,
        PivotField,
        PivotFilter,
        PivotPlan,
    )
    from callboard.surfaces.documents.excel._pivot_source import PivotSource
    from callboard.surfaces.documents.excel._pivot_tables import PivotTable
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_EXACT = 10**15
_NEEDS_NUMBERS = frozenset({"sum", "average", "max", "min", "product"})


def new_title(file: ExcelFile) -> str:
    """Return the title of a new sheet for a pivot table."""
    titles = {sheet.title.casefold() for sheet in file.sheets}
    return next(
        title
        for number in range(len(titles) + 1)
        if (title := f"Pivot{number + 1 if number else ''}").casefold() not in titles
    )


def place_of(source: PivotSource, to: str) -> SheetRange:
    """Find the corner of a pivot table; a missing sheet is added.

    Raises:
        ToolError: If there is no such place, or its sheet is protected.
    """
    file = source.sheet.file
    title, corner = destination(to)
    cells = parse_cells(corner or "A1")
    if to and not title:
        return writable(SheetRange(source.sheet, cells))
    title = title or new_title(file)
    if title.casefold() in {sheet.title.casefold() for sheet in file.sheets}:
        return writable(SheetRange(file.sheet(title), cells))
    check_title(file, title)
    check_structure(file)
    return SheetRange(add_sheet(file, title, None), cells)


def check_name(file: ExcelFile, name: str) -> str:
    """Return the name of a new pivot table.

    Raises:
        ToolError: If it is too long, or another one has it.
    """
    names = {pivot.name.casefold() for pivot in all_pivots(file)}
    if not name.strip():
        return next(free for n in range(1, len(names) + 2) if (free := f"PivotTable{n}").casefold() not in names)
    if len(clean(name)) > LONGEST_NAME or name.casefold() in names:
        msg = f"{name!r} can't name the pivot table: at most {LONGEST_NAME} characters, and not taken yet"
        raise ToolError(msg)
    return name


def insert(source: PivotSource, plan: PivotPlan, name: str, corner: SheetRange) -> PivotTable:
    """Insert a pivot table into empty cells.

    Raises:
        ToolError: If a column is missing or can't be used so, the place is not empty, or there would be too many cells.
    """
    fields, shape = _fields_and_shape(source, plan)
    parts = _place(corner, name, source, fields, shape)
    return _written(parts, parts.add())


def change(pivot: PivotTable, source: PivotSource, plan: PivotPlan) -> PivotTable:
    """Compute a pivot table again, in its place.

    Raises:
        ToolError: As for `insert`; also if it grows into cells that are not empty.
    """
    fields, shape = _fields_and_shape(source, plan)
    codes, names = pivot.codes(), pivot.fields
    own = {(names[field].lower(), function): code for (field, function), code in codes.items() if field < len(names)}
    data = [
        replace(entry, own_code=own.get((fields[entry.field].name.lower(), entry.function), "")) for entry in shape.data
    ]
    shape = replace(shape, data=data)
    block = pivot.block
    corner = CellRange(None, block.min_col, block.min_row, block.min_col, block.min_row)
    parts = _place(SheetRange(pivot.sheet, corner), pivot.name, source, fields, shape, old=pivot)
    return _written(parts, parts.replace(pivot.part))


def delete_pivot(pivot: PivotTable) -> None:
    """Delete a pivot table with its displayed cells.

    Raises:
        ToolError: If its sheet is protected.
    """
    writable(SheetRange(pivot.sheet, None))
    _clear(pivot)
    remove_parts(pivot.sheet, pivot.part)


def _clear(pivot: PivotTable) -> None:
    """Empty the displayed cells of a pivot table."""
    for area in pivot.areas:
        for row, column in positions_in(area):
            pivot.sheet.write(row, column, None)
        pivot.sheet.file.pivots_written.append((pivot.sheet.title, area))


def _fields_and_shape(source: PivotSource, plan: PivotPlan) -> tuple[list[PivotField], PivotShape]:
    """Read the columns that a plan uses."""
    shape = _shape(source, plan)
    axes = [*shape.rows, *shape.columns, *(entry.field for entry in shape.filters)]
    fields = read_fields(source, axes, [data.field for data in shape.data])
    _check_numbers(fields, shape)
    filters = [
        replace(entry, items=_chosen(fields[entry.field], wanted))
        for entry, wanted in zip(shape.filters, plan.filters, strict=True)
    ]
    return fields, replace(shape, filters=filters)


def _place(
    corner: SheetRange,
    name: str,
    source: PivotSource,
    fields: list[PivotField],
    shape: PivotShape,
    *,
    old: PivotTable | None = None,
) -> PivotParts:
    """Write the displayed cells; those of an old pivot table are emptied."""
    grid = compute(fields, shape, source.count)
    sheet, lines = corner.sheet, [*pages(fields, shape), *grid.cells]
    block = spread(corner, len(lines), max(map(len, lines)))
    if old is not None:
        _clear(old)
    _check_free(sheet, block, source, old)
    for row, line in enumerate(lines, start=block.min_row):
        for column, shown in enumerate(line, start=block.min_col):
            if shown is not None:
                _put(sheet, row, column, shown)
    widen(sheet, block)
    sheet.file.pivots_written.append((sheet.title, block))
    right, top = block.min_col + len(grid.cells[0]) - 1, block.max_row - len(grid.cells) + 1
    cells = CellRange(None, block.min_col, top, right, block.max_row)
    return PivotParts(sheet, name, cells, source, fields, shape, grid)


def _written(parts: PivotParts, part: str) -> PivotTable:
    return next(pivot for pivot in pivots_of(parts.sheet) if pivot.part == part)


def _shape(source: PivotSource, plan: PivotPlan) -> PivotShape:
    """Find the columns of a plan in the source."""

    def number(name: str) -> int:
        return column_of(source.sheet, source.cells, name, header=True) - source.cells.min_col

    axes = [(name, number(name)) for name in [*plan.rows, *plan.columns, *(entry.column for entry in plan.filters)]]
    twice = [name for position, (name, field) in enumerate(axes) if field in [other for _, other in axes[:position]]]
    if twice:
        msg = f"{twice[0]!r} stands twice among the rows, columns and filters; a pivot table uses a column once there"
        raise ToolError(msg)
    names = {name.casefold() for name in source.names}
    data: list[DataColumn] = []
    for value in plan.values:
        field = number(value.column)
        heading = clean(value.name).strip()
        if heading and (heading.casefold() in names or len(heading) > LONGEST_NAME):
            msg = f"{value.name!r} can't be the heading of a value: it is a column's header, used already, or too long"
            raise ToolError(msg)
        heading = heading or _free(default_name(value.function, source.names[field]), names)
        names.add(heading.casefold())
        data.append(DataColumn(field, value.function, heading))
    return PivotShape(
        [number(name) for name in plan.rows],
        [number(name) for name in plan.columns],
        data,
        [PageFilter(number(entry.column)) for entry in plan.filters],
        plan.totals,
    )


def _free(name: str, names: set[str]) -> str:
    """Number a heading that is taken, as Excel does."""
    name = name[:LONGEST_NAME]
    if name.casefold() not in names:
        return name
    numbered = (f"{name[: LONGEST_NAME - len(str(n))]}{n}" for n in range(2, len(names) + 3))
    return next(free for free in numbered if free.casefold() not in names)


def _check_numbers(fields: Sequence[PivotField], shape: PivotShape) -> None:
    for data in shape.data:
        column = fields[data.field]
        if data.function in _NEEDS_NUMBERS and not any(value.kind in {"number", "date"} for value in column.values):
            msg = f"{column.name!r} has no numbers, so there is no {data.function} of them; use the function count"
            raise ToolError(msg)


def _chosen(field: PivotField, wanted: PivotFilter) -> frozenset[int]:
    """Find the items that a filter keeps."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, text in enumerate(field.texts):  # a number and a text may be shown alike
        numbers[text.lower()].append(number)
    missing = [text for text in wanted.values if text.lower() not in numbers]
    if missing:
        msg = f"{field.name!r} has no value {missing[0]!r}; there are: {listed(field.texts)}"
        raise ToolError(msg + nearest(missing[0], field.texts))
    items = frozenset(number for text in wanted.values for number in numbers[text.lower()])
    return frozenset() if len(items) == len(field.texts) > 1 else items


def _check_free(sheet: Sheet, block: CellRange, source: PivotSource, old: PivotTable | None) -> None:
    """Refuse a place that is not free, or is the source."""
    if sheet is source.sheet and not block.isdisjoint(source.cells):
        msg = f"{block.coord} overlaps {source.cells.coord}, which the pivot table reads; choose another place in to"
        raise ToolError(msg)
    advice = "choose another place in to, such as a new sheet: New!A1"
    if old is not None:
        advice = "the pivot table has grown: move what stands there, or insert it elsewhere"
    check_empty(sheet, block, advice, but_part=old.part if old is not None else "")


def _put(sheet: Sheet, row: int, column: int, shown: DisplayedCell) -> None:
    """Write one displayed cell, with its number format."""
    value = shown.value
    if sheet.number_format(row, column) != shown.code:
        sheet.set_style(row, column, sheet.file.styles.with_number_format(sheet.style(row, column), shown.code))
    if isinstance(value, (bool, str)):
        sheet.write(row, column, value)
        return
    if math.isfinite(value):
        sheet.write(row, column, int(value) if float(value).is_integer() and abs(value) < _EXACT else value)
        return
    sheet.write(row, column, 0)
    sheet.set_result(row, column, "#DIV/0!" if math.isnan(value) else "#NUM!", error=True)
