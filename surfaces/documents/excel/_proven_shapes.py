"""The shapes of formulas on which IronCalc was found to be right.

A shape is a function with the kinds of its arguments. Kinds are letters. Capitals stand for values, which a formula
holds or another function gives; small letters for cells:

- ``S``: whole numbers from 1 to 31; ``J``: years from 1901 to 2199; ``I``: other whole numbers up to 99,999; ``N``:
  other numbers; ``B``: truth values;
- ``0``: zero, and ``O``: false, as they stand in the formula;
- ``W``: texts of letters and spaces; ``D``: those that may be read as a number, date or truth value; ``Y``: the empty
  one; ``C``: comparisons with a number, such as ``>5``; ``X``: those with other characters of
  ASCII; ``U``: others;
- ``z``: an empty cell; ``e``: an error; ``M``: an argument that is left out; ``*``: a whole column.
- ``F``: an error that IronCalc gives exactly where it should; ``E``: one that it may also give elsewhere.

The kinds of a range are those of its cells. An error as the result is never believed.
"""

from __future__ import annotations

import bisect
import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.surfaces.documents.excel._cell_references import bounds_of
from callboard.surfaces.documents.excel._formula_tree import FormulaCall, Literal, NotParsedError, Reference, parsed
from callboard.surfaces.documents.excel._named_tables import tables_of
from callboard.surfaces.documents.excel._proven_functions import ALIKE, PROVEN, SPILLS

if TYPE_CHECKING:
    from collections.abc import Collection

    from callboard.surfaces.documents.excel._formula_tree import Node
    from callboard.surfaces.documents.excel._outdated_results import CellPosition, Formulas
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

Kinds = frozenset[str]

TEXTS = frozenset("WDYCXU")
_ALL_CELLS = frozenset("nsjibwdycxu")
_SMALL, _FIRST_YEAR, _LAST_YEAR, _LARGE = 31, 1901, 2199, 100_000
_LONG = 100_000
"""From this number of rows on, a range counts as a whole column."""
_NEVER = frozenset("!")
"""The kind of what is never proven."""
_WORD = re.compile(r"[A-Za-z]+(?: [A-Za-z]+)*")
_COMPARISON = re.compile(r"[<>]=?-?[0-9]+(\.[0-9]+)?")
_TRUTHS = frozenset({"true", "false"})
_CELL = re.compile(r"\$?[A-Za-z]{1,3}\$?[0-9]{1,7}")
_AREA = re.compile(rf"{_CELL.pattern}:{_CELL.pattern}|\$?[A-Za-z]{{1,3}}:\$?[A-Za-z]{{1,3}}|\$?[0-9]+:\$?[0-9]+")
_COLUMN = re.compile(r"(?P<table>[^\W\d][\w.]*)\[(?P<row>\[#This Row\],)?(?P<column>[^\[\]#@']+|\[[^\[\]#@']+\])\]")
_FORCING = frozenset({"AGGREGATE", "FREQUENCY", "INDEX", "LOOKUP", "MMULT", "SUMPRODUCT", "XLOOKUP", "XMATCH"})
"""Functions that compute their arguments as arrays."""
_FROM_CELLS = {**dict.fromkeys("bde", "!"), "z": "!"}
"""A cell that a function returns may count as the cell or as its value; for these kinds this makes a difference."""


@dataclass(frozen=True)
class Position:
    """The proven kinds of an argument."""

    values: Kinds
    """Of a value or a single cell."""
    cells: Kinds
    """Of the cells of a range."""


@dataclass(frozen=True)
class ProvenFunction:
    """The proven kinds of a function's arguments and results."""

    least: int
    """The smallest number of arguments."""
    positions: tuple[Position, ...]
    repeats: bool
    """Whether further arguments are like the last one."""
    results: Kinds
    passed: tuple[int, ...]
    """The arguments that it may return."""
    errs_exactly: bool
    """Whether it gives an error exactly where it should."""


@functools.cache
def proven_functions() -> dict[str, ProvenFunction]:
    """Read the table of proven functions."""
    return {line.split()[0]: read_line(line) for line in PROVEN.strip().splitlines()}


def read_line(line: str) -> ProvenFunction:
    """Read a line of the table: ``name results least positions…``."""
    _, results, least, *position_texts = line.split()
    repeats = position_texts[-1:] == ["*"]
    position_texts = position_texts[:-1] if repeats else position_texts
    kinds, _, passed = results.partition("=")
    positions = tuple(
        Position(frozenset(text.partition("|")[0]), frozenset(text.partition("|")[2])) for text in position_texts
    )
    letters = frozenset(kinds.replace("T", "".join(TEXTS)).replace("N", "NSJI").replace("B", "BO"))
    exact = "!" in letters
    return ProvenFunction(int(least), positions, repeats, letters - {"!"}, tuple(map(int, passed)), exact)


def kind_of(value: object) -> str:
    """Return the kind of a value, as a small letter."""
    if value is None:
        return "z"
    if isinstance(value, bool):
        return "b"
    if isinstance(value, int | float):
        if not (1 <= value < _LARGE and value == int(value)):
            return "n"
        return "s" if value <= _SMALL else "j" if _FIRST_YEAR <= value <= _LAST_YEAR else "i"
    if not isinstance(value, str):
        return "!"
    if not value:
        return "y"
    if not value.isascii():
        return "u"
    if value.strip().casefold() in _TRUTHS or any(letter.isdigit() for letter in value):
        if _COMPARISON.fullmatch(value):
            return "c"
        return "d" if not set(value) & set("<>=*?~") else "x"
    return "w" if _WORD.fullmatch(value) else "x"


_COMPARING = frozenset({"=", "<>", "<", "<=", ">", ">="})
_NUMBERS, _WORDS = frozenset("nsji*"), frozenset("w*")
_KEPT = frozenset("nsjiwdxu*")
"""The kinds of cells that a filter keeps as they are; an empty one would become 0."""


class Shapes:
    """The shapes of formulas that are to be computed."""

    def __init__(self, file: ExcelFile, formulas: Formulas, live: Collection[CellPosition]) -> None:
        self._formulas = formulas
        self._live = live
        self._sheets = {sheet.title.casefold(): sheet for sheet in file.worksheets}
        self._columns: dict[str, dict[int, dict[str, list[int]]]] = {}
        self._tables = {table.name.casefold(): table for sheet in file.worksheets for table in tables_of(sheet)}
        self._names: dict[str, str] = {}
        for name, _, element in file.names():
            is_duplicate = name.casefold() in self._names  # a sheet's own name may hide the workbook's
            self._names[name.casefold()] = "" if is_duplicate else element.text or ""

    def are_proven(self, cell: CellPosition) -> bool:
        """Return whether a formula has only proven shapes."""
        node = self._parsed(cell)
        if node is None:
            return False
        if self._sheets[cell[0]].is_array(*cell[1:]):
            return self._sheets[cell[0]].is_spill(*cell[1:]) and self._is_proven_spill(node, cell)
        if isinstance(node, Reference):
            node = FormulaCall("VALUE_OF", (node,))
        return "!" not in self._kinds(node, cell)

    def _is_proven_spill(self, node: Node, cell: CellPosition) -> bool:
        """Return whether a spill is proven: of one column, or a filter."""
        if isinstance(node, FormulaCall) and node.name == "FILTER" and len(node.arguments) == 2:
            return self._is_proven_filter(*node.arguments, cell)
        if not isinstance(node, FormulaCall) or len(node.arguments) != 1 or node.name not in SPILLS:
            return False
        (column,) = node.arguments
        area = self._area(column.text, cell) if isinstance(column, Reference) else None
        if area is None or area[1][1] != area[1][3]:
            return False
        return self._cell_kinds(*area, deep=True) <= SPILLS[node.name]

    def _is_proven_filter(self, data: Node, condition: Node, cell: CellPosition) -> bool:
        """Return whether a filter compares a column with a number or word."""
        if not (isinstance(condition, FormulaCall) and condition.name in _COMPARING and isinstance(data, Reference)):
            return False
        column, value = condition.arguments
        area = self._area(data.text, cell)
        tested = self._area(column.text, cell) if isinstance(column, Reference) else None
        if area is None or tested is None or not isinstance(value, Literal):
            return False
        (top, left, bottom, right), is_number = tested[1], isinstance(value.value, float)
        if (
            left != right
            or (top, bottom) != (area[1][0], area[1][2])
            or not self._cell_kinds(*area, deep=True) <= _KEPT
        ):
            return False
        is_word = isinstance(value.value, str) and kind_of(value.value) == "w" and condition.name in {"=", "<>"}
        return (is_number or is_word) and self._cell_kinds(*tested, deep=True) <= (_NUMBERS if is_number else _WORDS)

    def _parsed(self, cell: CellPosition) -> Node | None:
        try:
            return parsed(self._formulas.texts[cell])
        except NotParsedError:
            return None

    def _kinds(self, node: Node, cell: CellPosition, *, deep: bool = True) -> Kinds:
        """Return the kinds of an expression; `_NEVER` if it is not proven."""
        if isinstance(node, Literal):
            return literal_kinds(node.value)
        if isinstance(node, Reference):
            area = self._area(node.text, cell)
            return self._cell_kinds(*area, deep=deep) if area and _is_single_cell(area) else _NEVER
        function = proven_functions().get(node.name)
        count = len(node.arguments)
        if function is None or count < function.least or not (function.repeats or count <= len(function.positions)):
            return _NEVER
        if deep and node.name in ALIKE and len(self._forms(node, cell)) > 1:
            return _NEVER
        results = function.results | (frozenset("F") if function.errs_exactly else frozenset("E"))
        for number, argument in enumerate(node.arguments):
            kinds, is_range = self._argument(argument, cell, deep=deep)
            position = function.positions[min(number, len(function.positions) - 1)]
            if deep and not fits(kinds, position, is_range=is_range):
                return _NEVER
            results |= kinds & {"E"}
            if number + 1 in function.passed:
                results |= frozenset(_FROM_CELLS.get(kind, kind.upper()) for kind in kinds)
        return results

    def _forms(self, node: FormulaCall, cell: CellPosition) -> set[tuple[int, int]]:
        """Return the numbers of rows and columns of a call's ranges."""
        texts = [argument.text for argument in node.arguments if isinstance(argument, Reference)]
        areas = [area[1] for text in texts if (area := self._area(text, cell)) and not _is_single_cell(area)]
        return {(bottom - top, right - left) for top, left, bottom, right in areas}

    def _argument(self, node: Node, cell: CellPosition, *, deep: bool) -> tuple[Kinds, bool]:
        area = self._area(node.text, cell) if isinstance(node, Reference) else None
        if area and not _is_single_cell(area):
            return self._cell_kinds(*area, deep=deep), True
        return self._kinds(node, cell, deep=deep), False

    def _area(self, text: str, cell: CellPosition) -> tuple[str, tuple[int, int, int, int]] | None:
        """Return the sheet and cells of a reference.

        None for a rare form, and for a name of one cell.
        """
        sheet, _, cells = text.rpartition("!")
        title = sheet[1:-1].replace("''", "'") if sheet.startswith("'") else sheet
        title = title.casefold() or cell[0]
        if title in self._sheets and (_CELL.fullmatch(cells) or _AREA.fullmatch(cells)):
            bounds = bounds_of(cells)
            return (title, bounds) if ":" not in cells or not _is_single_cell((title, bounds)) else None
        if sheet:
            return None
        if match := _COLUMN.fullmatch(text):
            return self._column(match, cell)
        meaning = self._names.get(text.casefold(), "")
        area = self._area(meaning, cell) if "!" in meaning and text != meaning else None
        return area if area and not _is_single_cell(area) else None

    def _column(self, match: re.Match[str], cell: CellPosition) -> tuple[str, tuple[int, int, int, int]] | None:
        """Return a table's column, or its cell in a formula's row."""
        table = self._tables.get(match["table"].casefold())
        name = match["column"].strip("[]").casefold()
        titles = [column.casefold() for column in table.columns] if table else []
        if table is None or name not in titles:
            return None
        cells = table.cells
        column = cells.min_col + titles.index(name)
        first, last = cells.min_row + table.has_header, cells.max_row - table.totals
        title = table.sheet.title.casefold()
        if match["row"]:
            row = cell[1]
            return (title, (row, column, row, column)) if title == cell[0] and first <= row <= last else None
        return (title, (first, column, last, column)) if first < last else None

    def _cell_kinds(self, title: str, bounds: tuple[int, int, int, int], *, deep: bool) -> Kinds:
        """Return the kinds of some cells."""
        top, left, bottom, right = bounds
        columns = self._columns.get(title) or self._index(title)
        kinds: set[str] = set()
        filled_count = 0
        for column in columns if right - left >= len(columns) else range(left, right + 1):
            for kind, rows in columns.get(column, {}).items() if left <= column <= right else ():
                first, last = bisect.bisect_left(rows, top), bisect.bisect_right(rows, bottom)
                if first < last and kind == "f":
                    for row in rows[first:last] if deep else ():
                        kinds |= self._result_kinds((title, row, column))
                    kinds |= set() if deep else _ALL_CELLS
                elif first < last:
                    kinds.add(kind)
                filled_count += last - first
        if bottom - top >= _LONG:
            kinds.add("*")
        if filled_count < (bottom - top + 1) * (right - left + 1):
            kinds.add("z")
        return frozenset(kinds)

    def _index(self, title: str) -> dict[int, dict[str, list[int]]]:
        """Sort a sheet's cells by column and kind; ``f`` are live formulas."""
        sheet = self._sheets[title]
        columns: dict[int, dict[str, list[int]]] = {}
        for row, column in sorted(sheet.filled()):
            kind = "f" if (title, row, column) in self._live else kind_in(sheet, row, column)
            columns.setdefault(column, {}).setdefault(kind, []).append(row)
        self._columns[title] = columns
        return columns

    @functools.cached_property
    def _results(self) -> dict[CellPosition, Kinds]:
        return {}

    def _result_kinds(self, cell: CellPosition) -> Kinds:
        """Return the kinds of a formula's result by its text alone."""
        if cell not in self._results:
            node = self._parsed(cell)
            kinds = self._kinds(node, cell, deep=False) if node is not None else _NEVER
            is_proven = "!" not in kinds
            self._results[cell] = frozenset(map(str.lower, kinds - {"E", "F"})) if is_proven else _ALL_CELLS
        return self._results[cell]


def single_range(formula: str) -> str:
    """Find a range where a formula expects one value, if any.

    Arguments of functions that compute arrays do not count.
    """
    try:
        return _single_range(parsed(formula.removeprefix("=")))
    except NotParsedError:
        return ""


def _single_range(node: Node) -> str:
    if not isinstance(node, FormulaCall) or node.name in _FORCING:
        return ""
    function = proven_functions().get(node.name)
    for number, argument in enumerate(node.arguments):
        position = function.positions[min(number, len(function.positions) - 1)] if function else None
        text = argument.text if isinstance(argument, Reference) else ""
        if _AREA.fullmatch(text.rpartition("!")[2]) and position and not position.cells:
            return text
        if text := _single_range(argument):
            return text
    return ""


def kind_in(sheet: Sheet, row: int, column: int) -> str:
    """Return the kind of a cell's value."""
    stored = sheet.stored(row, column)
    if stored is None:
        return "z"
    return "e" if stored[1] else kind_of(stored[0])


def literal_kinds(value: object) -> Kinds:
    """Return the kinds of a value that stands in a formula."""
    if value is None:
        return frozenset("M")
    return frozenset("O" if value is False else "0" if value == 0 else kind_of(value).upper())


def fits(kinds: Kinds, position: Position, *, is_range: bool) -> bool:
    """Return whether all kinds of an argument are proven at a position."""
    if is_range:
        return bool(kinds) and kinds <= position.cells
    return kinds <= position.values


def _is_single_cell(area: tuple[str, tuple[int, int, int, int]]) -> bool:
    top, left, bottom, right = area[1]
    return top == bottom and left == right
