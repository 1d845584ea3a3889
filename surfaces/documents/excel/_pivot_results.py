"""Compute the displayed cells of a pivot table from its source."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeAlias

from openpyxl.utils.datetime import WINDOWS_EPOCH
from pydantic import BaseModel, ConfigDict, Field

from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PivotFunction: TypeAlias = Literal["sum", "count", "average", "max", "min", "product", "count_numbers"]
GRAND_TOTAL = "Grand Total"
BLANK = "(blank)"
ALL, SEVERAL = "(All)", "(Multiple Items)"
"""The words that Excel shows in a filter without one chosen value."""
VALUES = "Values"
"""Excel's name for the axis of several values."""
_WORDS = {"sum": "Sum", "count": "Count", "average": "Average", "max": "Max", "min": "Min", "product": "Product"}
_WORDS |= {"count_numbers": "Count Numbers"}


class PivotValue(BaseModel):
    """A column whose values are summed, counted and so on."""

    model_config = ConfigDict(extra="forbid")

    column: Annotated[str, Field(description="The column's header, or its letter.")]
    function: Annotated[PivotFunction, Field(description="What is computed of its values.")] = "sum"
    name: Annotated[str, Field(description="The heading; empty for one like Sum of Amount.")] = ""


class PivotFilter(BaseModel):
    """A filter above the pivot table."""

    model_config = ConfigDict(extra="forbid")

    column: Annotated[str, Field(description="The column's header, or its letter.")]
    values: Annotated[list[str], Field(description="The values that count, as they are shown; empty for all.")] = []


@dataclass(frozen=True)
class PivotPlan:
    """A pivot table by the headers or letters of its source's columns."""

    rows: list[str]
    columns: list[str]
    values: list[PivotValue]
    filters: list[PivotFilter]
    totals: bool = True


class SourceValue(NamedTuple):
    """A value of the source; a date is a number."""

    kind: Literal["number", "date", "text", "truth", "error", "empty"]
    value: float | str | bool = ""


EMPTY = SourceValue("empty")


@dataclass(frozen=True)
class PivotField:
    """A column of the source."""

    name: str
    items: list[SourceValue]
    """Its different values in the order in which they are shown; empty for numbers on no axis."""
    numbers: list[int]
    """The number of the item in each row; empty without items."""
    values: list[SourceValue]
    """The value in each row."""
    texts: list[str]
    """The items as they are shown."""
    code: str = "General"
    """The number format."""
    is_calendar: bool = False
    """Whether the items are names of months or days, in the order of the year or the week."""

    def shown(self, item: int) -> DisplayedCell:
        """Return the cell that shows an item."""
        value = self.items[item]
        return (
            DisplayedCell(self.texts[item])
            if value.kind in {"text", "empty"}
            else DisplayedCell(value.value, self.code_of(value))
        )

    def code_of(self, value: SourceValue) -> str:
        """Return the number format of a value."""
        return self.code if value.kind in {"number", "date"} else "General"


@dataclass(frozen=True)
class DataColumn:
    """A column of the source that is summed, counted and so on."""

    field: int
    function: PivotFunction
    name: str
    own_code: str = ""
    """The number format that was chosen for it, if any."""

    def code(self, fields: Sequence[PivotField]) -> str:
        """Return the number format of its results."""
        return self.own_code or ("General" if self.function in {"count", "count_numbers"} else fields[self.field].code)


@dataclass(frozen=True)
class PageFilter:
    """A filter above the pivot table; no items stand for all."""

    field: int
    items: frozenset[int] = frozenset()


@dataclass(frozen=True)
class PivotShape:
    """The fields of a pivot table's axes, by their numbers."""

    rows: list[int]
    columns: list[int]
    data: list[DataColumn]
    filters: list[PageFilter]
    totals: bool = True


class Line(NamedTuple):
    """A row or column of results."""

    key: tuple[int, ...]
    """The numbers of its items, from the outer field to the inner one; fewer for a total."""
    data: int
    """The number of the value, where several stand side by side."""
    is_total: bool


class DisplayedCell(NamedTuple):
    """A displayed cell; NaN is #DIV/0!, an infinite number #NUM!."""

    value: float | str | bool
    code: str = "General"
    """Its number format."""


_MAX_CELLS = 100_000
"""The most cells of one pivot table."""


@dataclass(frozen=True)
class PivotGrid:
    """The displayed cells of a pivot table without its filters."""

    row_lines: list[Line]
    column_lines: list[Line]
    header_rows: int
    cells: list[list[DisplayedCell | None]] = field(default_factory=list)


def number_text(number: float) -> str:
    """Return the text of a number, as filters show it."""
    return str(int(number)) if number.is_integer() and abs(number) < 10**15 else f"{number:.15g}"


def iso_moment(serial: float, epoch: dt.datetime) -> str:
    """Return the moment of a serial number, to the second.

    Times are of 1899-12-30.
    """
    days = dt.timedelta(days=serial + (1 <= serial < 60 and epoch == WINDOWS_EPOCH))  # 1900 had no 29 February
    moment = epoch + days
    return (moment.replace(microsecond=0) + dt.timedelta(seconds=round(moment.microsecond / 1e6))).isoformat()


def moment_text(iso: str) -> str:
    """Return the text of a stored moment, as filters show it."""
    return iso.removesuffix("T00:00:00").removeprefix("1899-12-30T")


def default_name(function: PivotFunction, column: str) -> str:
    """Return Excel's heading of a value."""
    return f"{_WORDS[function]} of {column}"


def compute(fields: Sequence[PivotField], shape: PivotShape, count: int) -> PivotGrid:
    """Compute the displayed cells, in Excel's tabular form.

    Args:
        fields: The columns of the source.
        shape: The fields of the axes.
        count: The number of rows of the source.

    Raises:
        ToolError: If no row passes the filters, or the pivot table would have too many cells.
    """
    records = [number for number in range(count) if _passes(fields, shape, number)]
    if not records:
        msg = "the filters leave no rows for the pivot table"
        raise ToolError(msg)
    row_keys = _keys(fields, shape.rows, records)
    column_keys = _keys(fields, shape.columns, records)
    row_lines = [Line(key, 0, total) for key, total in _lines({*row_keys}, len(shape.rows), totals=shape.totals)]
    column_lines = [
        Line(key, data, total)
        for key, total in _lines({*column_keys}, len(shape.columns), totals=shape.totals)
        for data in range(len(shape.data))
    ]
    if (cells := len(row_lines) * (len(column_lines) + len(shape.rows))) > _MAX_CELLS:
        msg = (
            f"the pivot table would have {cells:,} cells, and at most {_MAX_CELLS:,} are written: choose columns with "
            "fewer different values"
        )
        raise ToolError(msg)
    groups: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = defaultdict(list)
    for record, row_key, column_key in zip(records, row_keys, column_keys, strict=True):
        groups[row_key, column_key].append(record)
    members: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = defaultdict(list)
    for (row_key, column_key), numbers in groups.items():
        for row_depth in range(len(row_key) + 1):
            for column_depth in range(len(column_key) + 1):
                members[row_key[:row_depth], column_key[:column_depth]] += numbers
    several = len(shape.data) > 1
    header_rows = 1 + len(shape.columns) + several
    grid = PivotGrid(row_lines, column_lines, header_rows)
    grid.cells.extend(_header(fields, shape, grid))
    codes = [data.code(fields) for data in shape.data]
    for labels, row in zip(_labels(fields, shape.rows, row_lines), row_lines, strict=True):
        results: list[DisplayedCell | None] = []
        for column in column_lines:
            data = shape.data[column.data]
            values = fields[data.field].values
            result = _result(data.function, [values[number] for number in members[row.key, column.key]])
            results.append(None if result is None else DisplayedCell(result, codes[column.data]))
        grid.cells.append([*labels, *results])
    return grid


def pages(fields: Sequence[PivotField], shape: PivotShape) -> list[list[DisplayedCell | None]]:
    """Return the rows of filters, and the empty one below them."""
    rows: list[list[DisplayedCell | None]] = []
    for entry in shape.filters:
        field, item = fields[entry.field], min(entry.items, default=None)
        chosen = (
            DisplayedCell(ALL)
            if item is None
            else field.shown(item)
            if len(entry.items) == 1
            else DisplayedCell(SEVERAL)
        )
        rows.append([DisplayedCell(field.name), chosen])
    return [*rows, []] if rows else []


def _passes(fields: Sequence[PivotField], shape: PivotShape, record: int) -> bool:
    return all(not entry.items or fields[entry.field].numbers[record] in entry.items for entry in shape.filters)


def _keys(fields: Sequence[PivotField], axis: Sequence[int], records: Sequence[int]) -> list[tuple[int, ...]]:
    return [tuple(fields[number].numbers[record] for number in axis) for record in records]


def _lines(keys: set[tuple[int, ...]], depth: int, *, totals: bool) -> Iterator[tuple[tuple[int, ...], bool]]:
    """Yield the keys of an axis; a total follows its group."""
    ordered = sorted(keys)
    for key, following in itertools.zip_longest(ordered, ordered[1:]):
        yield key, False
        for level in range(depth - 1, 0, -1) if totals else ():
            if following is None or following[:level] != key[:level]:
                yield key[:level], True
    if totals and depth:
        yield (), True


def _labels(
    fields: Sequence[PivotField], axis: Sequence[int], lines: Sequence[Line]
) -> Iterator[list[DisplayedCell | None]]:
    """Yield the headings of lines; outer items are not repeated."""
    before: tuple[int, ...] = ()
    for line in lines:
        labels: list[DisplayedCell | None] = [None] * len(axis)
        if line.is_total:
            labels[max(len(line.key) - 1, 0)] = DisplayedCell(
                f"{_group(fields, axis, line)} Total" if line.key else GRAND_TOTAL
            )
        else:
            for level, item in enumerate(line.key):
                if line.key[: level + 1] != before[: level + 1]:
                    labels[level] = fields[axis[level]].shown(item)
        before = line.key
        yield labels


def _group(fields: Sequence[PivotField], axis: Sequence[int], line: Line) -> str:
    """Return the name of the group that a total is of."""
    return fields[axis[len(line.key) - 1]].texts[line.key[-1]] if line.key else "Total"


def _header(fields: Sequence[PivotField], shape: PivotShape, grid: PivotGrid) -> list[list[DisplayedCell | None]]:
    """Return the rows above the results."""
    several, width = len(shape.data) > 1, len(shape.rows)
    rows: list[list[DisplayedCell | None]] = [
        [None] * (width + len(grid.column_lines)) for _ in range(grid.header_rows)
    ]
    rows[-1][:width] = [DisplayedCell(fields[number].name) for number in shape.rows]
    if not shape.columns and not several:
        rows[0][width] = DisplayedCell(shape.data[0].name)
        return rows
    captions = [DisplayedCell(fields[number].name) for number in shape.columns] + [DisplayedCell(VALUES)] * several
    rows[0][width : width + len(captions)] = captions[: len(grid.column_lines)]
    if not several:
        rows[0][0] = DisplayedCell(shape.data[0].name)
    labels = _labels(fields, shape.columns, [line for line in grid.column_lines if line.data == 0])
    for column, line in enumerate(grid.column_lines, start=width):
        heading = DisplayedCell(shape.data[line.data].name)
        if several and line.is_total:
            group = _group(fields, shape.columns, line)
            rows[max(len(line.key), 1)][column] = DisplayedCell(f"{group} {heading.value}")
        elif several:
            rows[-1][column] = heading
        if line.data:
            continue
        for level, label in enumerate(next(labels), start=1):
            rows[level][column] = rows[level][column] or label
    return rows


def _result(function: PivotFunction, values: Sequence[SourceValue]) -> float | None:
    """Compute a figure as Excel does; None for an empty cell."""
    filled = sum(1 for value in values if value.kind != "empty")
    if not filled:
        return None
    numbers = [float(value.value) for value in values if value.kind in {"number", "date"}]
    match function:
        case "count":
            return filled
        case "count_numbers":
            return len(numbers)
        case "average":
            return _sum(numbers) / len(numbers) if numbers else math.nan
        case "sum":
            return _sum(numbers)
        case "product":
            return math.prod(numbers) if numbers else 0.0
        case "max":
            return max(numbers, default=0.0)
        case "min":
            return min(numbers, default=0.0)


def _sum(numbers: Sequence[float]) -> float:
    try:
        return math.fsum(numbers)
    except OverflowError:
        return math.inf
