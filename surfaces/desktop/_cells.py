"""Cells of tables by row and column, visible or not.

A sheet has 2^34 cells, so they can't be listed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from callboard.surfaces import committing
from callboard.surfaces._numbers import parse_number, separator_of
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.desktop._calls import ATSPI, BUS, NOTHING, Ask, BusError, attribute, method, value
from callboard.surfaces.desktop._tree import ObjectState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.surfaces.desktop._accessible_programs import AccessibleProgram
    from callboard.surfaces.desktop._calls import Answer
    from callboard.surfaces.desktop._window_actions import WindowActions

Value = str | int | float | None
CellValue = tuple[int, int, str | int | float]
"""A cell's row, its column, and the value to write."""
MOST_CELLS = 5_000
"""The most cells of one call."""
_MOST_STEPS = 200
_TAKEN_SECONDS = 3.0
_READ_AS_SOMETHING_ELSE = re.compile(r"[+-]?[\d.,]+%?$|(true|false)$", re.IGNORECASE)
"""Texts that Calc would read as a number, a date or a truth value."""


def read_table(
    program: AccessibleProgram, path: str, first_row: int, rows: int, columns: int, *, numbers: bool
) -> dict[str, Any]:
    """Read some rows of a table; with `numbers`, unambiguous numbers are converted.

    Raises:
        ToolError: If the control is not a table, or the program does not answer.
    """
    height, width = (value(answer) for answer in program.ask([attribute(path, "Table", name) for name in _SIZE]))
    if not isinstance(height, int) or not isinstance(width, int):
        msg = "this control has no rows and columns"
        raise ToolError(msg)
    row_numbers = range(first_row, min(height, first_row + rows, first_row + MOST_CELLS // max(1, min(width, columns))))
    across = range(min(width, columns))
    cells = _cells(program, path, [(row, column) for row in row_numbers for column in across])
    texts = iter(_texts(program, cells))
    table = [[next(texts) for _ in across] for _ in row_numbers]
    return {
        "rows": _with_numbers(table) if numbers else table,
        "first_row": first_row,
        "total_rows": height,
        "total_columns": width,
    }


def _with_numbers(rows: Sequence[Sequence[str]]) -> list[list[Value]]:
    """Convert texts to numbers; each column's decimal separator is inferred from it."""
    separators = [separator_of(column) for column in zip(*rows, strict=True)]
    read = [[parse_number(text, mark) for text, mark in zip(row, separators, strict=True)] for row in rows]
    return [
        [text if number is None or number.unit else number.value for text, number in zip(*pair, strict=True)]
        for pair in zip(rows, read, strict=True)
    ]


def write_cells(
    actions: WindowActions, pid: int, path: str, cell: str, rows: Sequence[Sequence[Value]]
) -> dict[str, Any]:
    """Write values into a sheet, and verify that it shows them.

    Numbers are set directly. Texts and formulas are typed, because Calc parses only typed input.

    Raises:
        ToolError: If a cell shows another value afterwards, or there are too many cells.
    """
    first_row, first_column = _row_and_column(cell)
    cell_values = [
        (first_row + down, first_column + right, content)
        for down, row in enumerate(rows)
        for right, content in enumerate(row)
        if content is not None
    ]
    if len(cell_values) > MOST_CELLS:
        msg = f"{len(cell_values)} cells are too many for one call; at most {MOST_CELLS:,} can be written"
        raise ToolError(msg)
    program = actions.program(pid)
    cells = _cells(program, path, [(row, column) for row, column, _ in cell_values])
    if NOTHING in cells:
        msg = f"the sheet ends before the last cell of {cell}"
        raise ToolError(msg)
    numbers = [
        (cell, float(content))
        for cell, (*_, content) in zip(cells, cell_values, strict=True)
        if not isinstance(content, str)
    ]
    with committing():
        program.ask([_set(cell, number) for cell, number in numbers])
    for cell_path, (row, column, content) in zip(cells, cell_values, strict=True):
        if isinstance(content, str):
            _enter(actions, pid, cell_path, (row, column, content))
    _verify(actions, pid, cells, cell_values)
    across = max((len(row) for row in rows), default=0)
    if not cell_values:
        return {"written": 0}
    return {
        "cells": f"{_name(first_row, first_column)}:{_name(first_row + len(rows) - 1, first_column + across - 1)}",
        "written": len(cell_values),
    }


def select_cells(actions: WindowActions, pid: int, path: str, cells: str) -> dict[str, Any]:
    """Select a range of a sheet by keys.

    Raises:
        ToolError: If the sheet does not select it, or the range is too large.
    """
    first, _, last = cells.partition(":")
    start, end = _row_and_column(first), _row_and_column(last or first)
    steps = [("Down", end[0] - start[0]), ("Right", end[1] - start[1])]
    if not all(0 <= count <= _MOST_STEPS for _, count in steps):
        msg = f"{cells} must run to the right and down, over at most {_MOST_STEPS} rows and columns"
        raise ToolError(msg)
    program = actions.program(pid)
    corners = _cells(program, path, [start, end])
    window = _put_cursor(actions, pid, corners[0], first)
    for key, count in steps:
        for _ in range(count):
            actions.keys(window, f"shift+{key}")
    if not actions.desktop.wait(
        lambda: all(actions.has(pid, corner, ObjectState.FOCUSED, ObjectState.SELECTED) for corner in corners),
        _TAKEN_SECONDS,
    ):
        msg = f"the sheet does not select {cells}"
        raise ToolError(msg)
    return {"selected": cells}


def _enter(actions: WindowActions, pid: int, cell: str, cell_value: tuple[int, int, str]) -> None:
    """Type a text into a cell, and wait until it shows it.

    A text that Calc would read as another type gets an apostrophe before it. The wait is necessary because keys and
    calls reach a program on different ways: the next call could overtake the keys.
    """
    *position, text = cell_value
    forms = [text] if text.startswith("=") else [text, f"'{text}"]
    if _READ_AS_SOMETHING_ELSE.match(text):
        forms.reverse()
    for form in forms[:-1]:
        _type(actions, pid, cell, form, _name(*position))
        if actions.desktop.wait(
            lambda: not _differences(actions.program(pid), [cell], [cell_value]), _TAKEN_SECONDS / 3
        ):
            return
    _type(actions, pid, cell, forms[-1], _name(*position))
    _verify(actions, pid, [cell], [cell_value])


def _type(actions: WindowActions, pid: int, cell: str, text: str, name: str) -> None:
    """Put the cursor into a cell, and type a text."""
    window = _put_cursor(actions, pid, cell, name)
    actions.type(window, text)
    actions.keys(window, "Delete")  # removes Calc's selected autocompletion, which would be entered too
    actions.keys(window, "Return")


def _put_cursor(actions: WindowActions, pid: int, cell: str, name: str) -> int:
    """Put the cursor into a cell, and return its window."""
    program = actions.program(pid)
    window = actions.focus(pid)
    program.act(method(cell, "Component", "GrabFocus"))
    if not actions.desktop.wait(
        lambda: actions.has(pid, cell, ObjectState.FOCUSED, ObjectState.SELECTED), _TAKEN_SECONDS
    ):
        msg = f"the cursor does not move to cell {name}"
        raise ToolError(msg)
    return window


def _verify(actions: WindowActions, pid: int, cells: Sequence[str], cell_values: Sequence[CellValue]) -> None:
    """Wait until cells show the written values.

    Raises:
        ToolError: If they do not show them in time.
    """
    program = actions.program(pid)
    if not actions.desktop.wait(lambda: not _differences(program, cells, cell_values), _TAKEN_SECONDS):
        msg = f"the sheet did not take all values: {'; '.join(_differences(program, cells, cell_values)[:5])}"
        raise ToolError(msg)


def _differences(program: AccessibleProgram, cells: Sequence[str], cell_values: Sequence[CellValue]) -> list[str]:
    texts = _texts(program, cells)
    numbers = program.ask([attribute(cell, "Value", "CurrentValue") for cell in cells])
    differences = []
    for (row, column, content), text, number in zip(cell_values, texts, numbers, strict=True):
        if isinstance(content, str):
            right = bool(text) if content.startswith("=") else text == content
        else:
            right = value(number) == float(content)
        if not right:
            differences.append(f"{_name(row, column)} shows {text!r}, not {content!r}")
    return differences


def _cells(program: AccessibleProgram, path: str, places: Sequence[tuple[int, int]]) -> list[str]:
    asks = [method(path, "Table", "GetAccessibleAt", "ii", row, column) for row, column in places]
    return [NOTHING if isinstance(answer, BusError) else str(answer[0][1]) for answer in program.ask(asks)]


def _texts(program: AccessibleProgram, cells: Sequence[str]) -> list[str]:
    """Read cells' texts: their own, else their paragraphs', else their names."""
    text_answers = program.ask([method(cell, "Text", "GetText", "ii", 0, -1) for cell in cells])
    names = program.ask([attribute(cell, "Accessible", "Name") for cell in cells])
    texts = [_text(answer) for answer in text_answers]
    if not any(texts) and program.draws_itself:
        listed = program.ask([method(cell, "Accessible", "GetChildren") for cell in cells])
        below = [[] if isinstance(answer, BusError) else [path for _, path in answer[0]] for answer in listed]
        asks = [method(path, "Text", "GetText", "ii", 0, -1) for paths in below for path in paths]
        answers = iter(program.ask(asks))
        return ["\n".join(_text(next(answers)) for _ in paths) for paths in below]
    if program.draws_itself:  # in LibreOffice, a cell's name is its address
        return texts
    return [text or str(value(name) or "") for text, name in zip(texts, names, strict=True)]


def _text(answer: Answer | BusError) -> str:
    return "" if isinstance(answer, BusError) else str(answer[0])


def _set(cell: str, number: float) -> Ask:
    return Ask(cell, f"{BUS}.Properties", "Set", "ssv", (f"{ATSPI}Value", "CurrentValue", ("d", number)))


def _row_and_column(cell: str) -> tuple[int, int]:
    """Parse a cell's name into its row and column, counted from 0."""
    letters, digits = re.fullmatch(r"([A-Za-z]+)(\d+)", cell).groups()  # type: ignore[union-attr]  # by the tool's schema
    column = 0
    for letter in letters.upper():
        column = 26 * column + ord(letter) - ord("A") + 1
    return int(digits) - 1, column - 1


def _name(row: int, column: int) -> str:
    """Return the name of a cell, such as B2 for (1, 1)."""
    letters, column = "", column + 1
    while column:
        column, digit = divmod(column - 1, 26)
        letters = chr(ord("A") + digit) + letters
    return f"{letters}{row + 1}"


_SIZE = ("NRows", "NColumns")
