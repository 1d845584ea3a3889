"""Tables as rectangular grids of texts, and answers about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from callboard.surfaces._numbers import (
    Separator,
    are_numbers,
    is_ambiguous,
    is_numeric,
    parse_number,
    separator_of,
)
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._total_words import totals_at_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from docx.oxml.xmlchemy import BaseOxmlElement
    from pydantic import JsonValue

    from callboard.surfaces.documents._tables import Answer


@dataclass
class Grid:
    """A table's cells on a rectangular grid.

    A merged cell's text is at its top left position; its other positions are empty.
    """

    texts: list[list[str]]
    cells: dict[tuple[int, int], BaseOxmlElement]
    """The cells by row and column, from 0; a merged cell only at its top left position."""
    merged: list[tuple[int, int, int, int]]
    """Row, column, rows and columns of each merged cell, from 0."""

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return len(self.texts), len(self.texts[0]) if self.texts else 0

    def cell(self, row: int, column: int) -> BaseOxmlElement:
        """Return a cell, by its row and column from 0.

        Raises:
            ToolError: If it does not exist, or lies within a merged one.
        """
        height, width = self.size
        if row >= height or column >= width:
            msg = f"the table has {height} rows and {width} columns"
            raise ToolError(msg)
        if (row, column) not in self.cells:
            msg = f"row {row + 1}, column {column + 1} lies within a merged cell; write to that cell's top left corner"
            raise ToolError(msg)
        return self.cells[row, column]

    def check_deletion(self, rows: set[int], columns: set[int]) -> None:
        """Refuse to delete rows or columns, counted from 0.

        Raises:
            ToolError: If there is no such row or column, or if nothing would be left.
        """
        height, width = self.size
        for numbers, size, kind in ((rows, height, "row"), (columns, width, "column")):
            if wrong_numbers := sorted(number + 1 for number in numbers if number >= size):
                msg = f"the table has no {kind} {wrong_numbers[0]}; it has {height} rows and {width} columns"
                raise ToolError(msg)
            if size and len(numbers) == size:
                msg = f"these are all {kind}s of the table; delete the whole table with delete_control instead"
                raise ToolError(msg)


def plain_grid(rows: list[list[str]]) -> Grid:
    """Make a grid without merged cells, padding short rows."""
    return Grid(padded(rows), {}, [])


@dataclass
class TablePart:
    """Some rows of a table, padded to its width."""

    header: list[list[str]]
    """The header, or no row."""
    rows: list[list[str]]
    samples: list[list[str]]
    """Other rows, by which the columns' numbers are understood."""
    start: int
    """The rows above, without the header."""
    row_count: int
    """All rows of the table, without the header."""
    column_count: int


def padded(rows: list[list[str]], width: int = 0) -> list[list[str]]:
    """Pad short rows to a width, by default the longest's."""
    width = width or max(map(len, rows), default=0)
    return [[*row, *[""] * (width - len(row))] for row in rows]


def row_to_continue(grid: Grid, rows: Sequence[Sequence[object]]) -> tuple[int, list[str]]:
    """Return the row after which new ones go, formatted like it.

    Args:
        grid: The table.
        rows: The new rows.

    Returns:
        The row, from 0, and the labels of the rows of totals below it.

    Raises:
        ToolError: If the table is empty, the row has merged cells, or a new row's length is not the table's width.
    """
    if not grid.texts:
        msg = "the table is empty; there is no row to format new ones like"
        raise ToolError(msg)
    totals = totals_at_end(grid.texts)
    width, last = len(grid.texts[0]), len(grid.texts) - 1 - len(totals)
    if any(row <= last < row + height for row, _, height, _ in grid.merged):
        msg = "the table's last row has merged cells; rows can't be added after it"
        raise ToolError(msg)
    for row in rows:
        if len(row) != width:
            msg = f"a row has {len(row)} cells; the table has {width} columns"
            raise ToolError(msg)
    return last, totals


def answer_of(
    grid: Grid, *, header: bool, numbers: bool, decimal: Separator | Literal["auto"], start: int, limit: int
) -> Answer:
    """Describe a table as JSON; see the tool ``read_table``."""
    header_rows = 1 if header and grid.texts else 0
    first = header_rows + start
    part = TablePart(
        header=grid.texts[:header_rows],
        rows=grid.texts[first : first + limit],
        samples=[*grid.texts[header_rows:first], *grid.texts[first + limit :]],
        start=start,
        row_count=len(grid.texts) - header_rows,
        column_count=len(grid.texts[0]) if grid.texts else 0,
    )
    merged: list[JsonValue] = [
        {"row": row + 1 - header_rows, "column": column + 1, "rows": rows, "columns": across}
        for row, column, rows, across in grid.merged
    ]
    return describe(part, numbers=numbers, decimal=decimal, merged=merged)


def describe(
    part: TablePart, *, numbers: bool, decimal: Separator | Literal["auto"], merged: Sequence[JsonValue] = ()
) -> Answer:
    """Describe rows as JSON; see the tool ``read_table``."""
    columns = list(zip(*part.samples, *part.rows, strict=True)) or [()] * part.column_count
    marks = [separator_of(column) if decimal == "auto" else decimal for column in columns]
    text_rows = part.rows
    answer: Answer = {
        "header": list(part.header[0]) if part.header else [],
        "rows": [list(row) for row in text_rows],
        "row_count": part.row_count,
        "column_count": part.column_count,
        "left_out": max(0, part.row_count - part.start - len(text_rows)),
        "merged": [*merged],
    }
    if numbers:
        loose = [are_numbers(column, mark) for column, mark in zip(columns, marks, strict=True)]
        number_rows = [
            [
                parse_number(text, mark, loose=all_numbers)
                for text, mark, all_numbers in zip(row, marks, loose, strict=True)
            ]
            for row in text_rows
        ]
        answer["rows"] = [
            [number.value if number else text or None for text, number in zip(row, numbers_of_row, strict=True)]
            for row, numbers_of_row in zip(text_rows, number_rows, strict=True)
        ]
        units = [{number.unit for row in number_rows if (number := row[column])} for column in range(len(columns))]
        answer["units"] = [next(iter(of_column)) if len(of_column) == 1 else "" for of_column in units]
        counts = [
            (sum(row[column] is not None for row in number_rows), sum(bool(row[column]) for row in text_rows))
            for column in range(len(columns))
        ]
        answer["kept_as_text"] = [
            {"row": part.start + number + 1, "column": column + 1, "text": text}
            for number, texts in enumerate(text_rows)
            for column, text in enumerate(texts)
            if number_rows[number][column] is None and (is_ambiguous(text) or _stays_behind(text, *counts[column]))
        ]
    return answer


def _stays_behind(text: str, numbers: int, cells: int) -> bool:
    """Return whether a text seems to be a number."""
    return numbers > 0 and (is_numeric(text) or (4 * numbers >= cells and any(map(str.isdigit, text))))


def decimals_of(rows: list[list[str]], columns: Iterable[int]) -> dict[int, str]:
    """Infer the decimal separators that columns, counted from 0, use.

    A column that shows none has that of the table, or else a point.
    """
    marks = {column: separator_of(row[column] for row in rows if column < len(row)) for column in columns}
    default = "." if all(marks.values()) else separator_of(cell for row in rows for cell in row) or "."
    return {column: mark or default for column, mark in marks.items()}
