"""Questions to a table: figures by group, and rows that meet conditions."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import statistics
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from openpyxl.utils import get_column_letter
from openpyxl.worksheet.cell_range import CellRange
from pydantic import BaseModel, ConfigDict, Field

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents.excel._cell_ranges import filled_positions
from callboard.surfaces.documents.excel._cell_values import Date, parse_span, to_json
from callboard.surfaces.documents.excel._formula_results import fill_results, need_result
from callboard.surfaces.documents.excel._hidden_rows import hidden_in, hidden_rows
from callboard.surfaces.documents.excel._named_tables import header_of
from callboard.surfaces.documents.excel._sheet import where_of
from callboard.surfaces.documents.excel._sheet_controls import SheetRange, column_of
from callboard.surfaces.documents.excel._sort_reorder import as_number
from callboard.surfaces.documents.excel._written_types import numbers_as_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue

    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">=", "contains", "begins", "ends", "empty", "filled"]
_OF_TEXTS = frozenset({"contains", "begins", "ends", "empty", "filled"})
_MAX_GROUPS = 500
_MOST_ERRORS = 20
_SAME_TIME = 0.5 / 86_400
"""In days. The fractions of times are not exact."""


class Condition(BaseModel):
    """A condition on a column."""

    model_config = ConfigDict(extra="forbid")

    column: Annotated[str, Field(description="The column's header, or its letter.")]
    operator: Annotated[Operator, Field(description="How the cell compares; capitals do not count.")] = "="
    value: Annotated[
        str | bool | int | float | Date,
        Field(
            description='The value to compare with, a date or time like {"date": "2024-05-31"}; none for empty, filled.'
        ),
    ] = ""


def matching(
    file: ExcelFile, target: SheetRange, rows: list[int], conditions: list[Condition], *, header: bool
) -> list[int]:
    """Find those of some rows of a range that meet all conditions.

    Raises:
        ToolError: If a column is missing, or a value can't be compared so.
    """
    sheet, cells = target.sheet, target.need()
    tests = []
    for condition in conditions:
        column = column_of(sheet, cells, condition.column, header=header)
        fill_results(file, sheet, CellRange(None, column, cells.min_row, column, cells.max_row))
        tests.append((column, value_test(condition)))
        check_dates(sheet, rows, column, condition)
    return [row for row in rows if all(test(*sheet.raw(row, column)) for column, test in tests)]


def check_dates(sheet: Sheet, rows: list[int], column: int, condition: Condition) -> None:
    """Refuse to compare dates with a number, which counts days since 1900.

    Raises:
        ToolError: If the column holds dates.
    """
    value = condition.value
    if condition.operator in _OF_TEXTS or isinstance(value, Date) or "number" not in _numbers(value):
        return
    if any(isinstance(sheet.raw(row, column)[0], dt.date) for row in rows):
        msg = f'{condition.column!r} holds dates: compare them with {{"date": "2024-05-31"}}, and not with {value!r}'
        raise ToolError(msg)


def texts_compared(target: SheetRange, rows: list[int], conditions: list[Condition], *, header: bool) -> Answer:
    """List the numbers as texts that comparisons with numbers left out."""
    sheet, cells = target.sheet, target.need()
    columns = [
        column_of(sheet, cells, condition.column, header=header)
        for condition in conditions
        if condition.operator not in _OF_TEXTS and _numbers(condition.value)
    ]
    texts = numbers_as_text(sheet, rows, dict.fromkeys(columns))
    return {"texts_not_compared": texts} if texts else {}


def summarize(
    file: ExcelFile, target: SheetRange, rows: list[int], *, columns: list[str], by: str, header: bool
) -> Answer:
    """Compute count, sum, mean, min and max of columns.

    The figures are of all rows, or of each group of rows.

    Raises:
        ToolError: If a column is missing, or a formula in it has no result.
    """
    sheet, cells = target.sheet, target.need()
    group = column_of(sheet, cells, by, header=header) if by else None
    figure_columns = [column_of(sheet, cells, name, header=header) for name in columns]
    fill_results(file, sheet, cells)
    if not figure_columns:
        row_numbers = set(rows)
        numbers = {
            column
            for row, column in filled_positions(sheet, cells)
            if row in row_numbers and _is_figure(*sheet.raw(row, column))
        }
        figure_columns = sorted(numbers - {group})
    groups: dict[str, list[int]] = {}
    for row in rows:
        groups.setdefault(_text(sheet.value(row, group)) if group is not None else "", []).append(row)
    titles = header_of(sheet, cells) if header else []
    first_groups = dict(list(groups.items())[:_MAX_GROUPS])
    figures: dict[str, JsonValue] = {
        key: {
            "rows": len(members),
            **{_title(titles, cells, column): _figures(sheet, column, members) for column in figure_columns},
        }
        for key, members in first_groups.items()
    }
    answer: Answer = {"sheet": sheet.title, "cells": cells.coord, "rows": len(rows), **hidden_in(sheet, cells)}
    if "hidden_rows" in answer:
        answer["hidden_rows_counted"] = len({*rows} & {*hidden_rows(sheet, cells)})
    all_columns = range(cells.min_col, cells.max_col + 1)
    if texts := numbers_as_text(sheet, rows, {*figure_columns} if columns else {*all_columns} - {group}):
        answer["texts_not_counted"] = texts
    errors = [
        where_of(row, column) for row in rows for column in figure_columns if sheet.raw(row, column)[1] == "error"
    ]
    if errors:
        more = [f"{len(errors) - _MOST_ERRORS} more"] if len(errors) > _MOST_ERRORS else []
        answer["errors_not_counted"] = [*errors[:_MOST_ERRORS], *more]
    if group is None:
        empty: JsonValue = {"rows": 0}
        return answer | {"summary": figures.get("", empty)}
    return answer | {"groups": figures, "groups_left_out": len(groups) - len(first_groups)}


def _is_figure(value: Any, kind: str) -> bool:
    return kind == "number" or isinstance(value, (dt.time, dt.timedelta))


def _figures(sheet: Sheet, column: int, rows: list[int]) -> JsonValue:
    numbers, times, dates = list[float](), list[float](), list[dt.datetime]()
    filled_count = 0
    for row in rows:
        value, kind = sheet.raw(row, column)
        if kind == "empty":
            need_result(sheet, row, column)
        filled_count += kind != "empty"
        if kind == "number":
            numbers.append(value)
        elif isinstance(value, (dt.time, dt.timedelta)):
            times.append(as_number(value) or 0.0)
        elif isinstance(value, dt.date):
            dates.append(value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time.min))
    figures: dict[str, JsonValue] = {"filled": filled_count, "numbers": len(numbers)}
    if numbers:
        figures |= {name: _tidy(figure) for name, figure in _sums(numbers).items()}
    if times:
        prefix = "times_" if numbers else ""
        figures["times"] = len(times)
        figures |= {prefix + name: to_json(dt.timedelta(days=figure)) for name, figure in _sums(times).items()}
    if dates:
        figures |= {"dates": len(dates), "earliest": to_json(min(dates)), "latest": to_json(max(dates))}
    return figures


def _sums(numbers: list[float]) -> dict[str, float]:
    mean = statistics.fmean(numbers)
    return {"sum": math.fsum(numbers), "mean": mean, "min": min(numbers), "max": max(numbers)}


def _tidy(number: float) -> float:
    """Round a number to 15 digits, like spreadsheet programs."""
    rounded = float(f"{number:.15g}")
    return int(rounded) if rounded.is_integer() else rounded


def _title(titles: list[str], cells: CellRange, column: int) -> str:
    """Return a column's header, or its letter if that is ambiguous."""
    title = titles[column - cells.min_col] if titles else ""
    usable = title.strip() and title != "rows" and titles.count(title) == 1
    return title if usable else get_column_letter(column)


def _text(value: JsonValue) -> str:
    return "" if value is None else str(value)


def value_test(condition: Condition) -> Callable[[Any, str], bool]:
    """Make a test of a cell's value and kind.

    Raises:
        ToolError: If the value can't be compared so.
    """
    operator, operand = condition.operator, condition.value
    if operator in {"empty", "filled"}:
        return lambda value, kind: (kind == "empty" or value == "") == (operator == "empty")
    numbers = _numbers(operand)
    text = str(operand).casefold()
    if operator in {"contains", "begins", "ends"}:
        find = {"contains": str.__contains__, "begins": str.startswith, "ends": str.endswith}[operator]
        return lambda value, kind: kind != "empty" and bool(find(str(to_json(value)).casefold(), text))
    if operator in {"=", "<>"}:
        return lambda value, kind: _equal(value, kind, numbers, text) == (operator == "=")
    if not numbers:
        msg = (
            f"{operand!r} is no number and no date; {operator} compares numbers and dates, "
            'which are written as {"date": "2024-05-31"}'
        )
        raise ToolError(msg)
    compare = {"<": float.__lt__, "<=": float.__le__, ">": float.__gt__, ">=": float.__ge__}[operator]

    def test(value: Any, kind: str) -> bool:
        number = as_number(value) if kind in numbers else None
        return number is not None and bool(compare(number, numbers[kind]))

    return test


def _numbers(value: str | bool | float | Date) -> dict[str, float]:  # noqa: FBT001 - a value
    """Convert a value to numbers, by the kind of the cell.

    A text in ISO 8601 is a date, but only to cells that hold dates.

    Raises:
        ToolError: If a date has a time zone.
    """
    if isinstance(value, bool):
        return {}
    kinds = ["number", "date"]
    date = value.date if isinstance(value, Date) else None
    if isinstance(date, dt.timedelta):
        number = as_number(date)
    elif isinstance(date, dt.date):
        moment = date if isinstance(date, dt.datetime) else dt.datetime.combine(date, dt.time.min)
        if moment.tzinfo is not None:
            msg = f"{moment.isoformat()} has a time zone, and the dates of a workbook have none; leave it out"
            raise ToolError(msg)
        number = as_number(moment)
    else:
        try:
            number = float(str(value))
        except ValueError:
            number, kinds = _moment(str(value)), ["date"]
    return {} if number is None else dict.fromkeys(kinds, number)


def _moment(text: str) -> float | None:
    """Parse a date or time in ISO 8601 as days, if possible."""
    if (span := parse_span(text)) is not None:
        return as_number(span)
    with contextlib.suppress(ValueError):
        moment = dt.datetime.fromisoformat(text.strip())
        return as_number(moment) if moment.tzinfo is None else None
    return None


def _equal(value: Any, kind: str, numbers: dict[str, float], text: str) -> bool:
    if kind == "empty":
        return text == ""
    if kind in {"number", "date"}:
        number = as_number(value)
        if kind not in numbers or number is None:
            return False
        return number == numbers[kind] or (kind == "date" and abs(number - numbers[kind]) < _SAME_TIME)
    return str(value).casefold() == text
