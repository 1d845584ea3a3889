"""The rows and cells of a large sheet, parsed on use."""

from __future__ import annotations

import bisect
import itertools
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from lxml import etree
from openpyxl.utils import column_index_from_string
from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces.documents._office import READING
from callboard.surfaces.documents.excel._block_facts import facts_of_elements, parse_block
from callboard.surfaces.documents.excel._block_mappings import BlockMapping, CellMapping, ParsedBlock
from callboard.surfaces.documents.excel._block_values import BlockValues, LiveValues
from callboard.surfaces.documents.excel._cell_elements import (
    FORMULA,
    ROW,
    area_of,
    drop_placeholders,
    holds,
    index_rows,
)
from callboard.surfaces.documents.excel._formula_text import LAST_ROW
from callboard.surfaces.documents.excel._plain_cells import PlainCell, plain_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from callboard.surfaces.documents._package import Element, Package
    from callboard.surfaces.documents.excel._block_facts import BlockFacts
    from callboard.surfaces.documents.excel._sheet_index import SheetIndex

_MOST_PARSED = 4
"""The most blocks that are kept parsed; changed ones come on top."""
_MOST_VALUES = 2_000_000
"""The most cells whose values are kept. Others are read again."""


def _rows_of(block: ParsedBlock) -> dict[int, Element]:
    return block.rows


def _cells_of(block: ParsedBlock) -> dict[tuple[int, int], Element]:
    return block.cells


def _row_of(position: tuple[int, int]) -> int:
    return position[0]


def _nothing(_: Element | None) -> tuple[Any, str]:
    return None, "empty"


class RowBlocks:
    """The blocks of a large sheet in an opened file.

    Parsed blocks are dropped again, but for those that an edit changes.
    """

    def __init__(self, index: SheetIndex, package: Package, data: bytes, name: str, *, placeholders: bool) -> None:
        self._index = index
        self._package = package
        self._data = data
        self._name = name
        self._placeholders = placeholders
        self._parsed: OrderedDict[int, ParsedBlock] = OrderedDict()
        self._changed: dict[int, ParsedBlock] = {}
        self._readable: OrderedDict[int, Mapping[tuple[int, int], Any]] = OrderedDict()
        self.cells: CellMapping = CellMapping(self, _cells_of, _row_of)
        """The elements of the stored cells, by row and column."""
        self._read_values: OrderedDict[int, BlockValues] = OrderedDict()
        self._value_count = 0
        self._values: BlockValues | LiveValues = LiveValues({}, _nothing)
        self.read: Callable[[Element | None], tuple[Any, str]] = _nothing
        """Reads the value and the kind of a cell's element; its sheet sets it."""
        self._first = self._end = 0
        self.rows: BlockMapping[int] = BlockMapping(self, _rows_of, int)
        """The elements of the rows that the file has."""

    def __len__(self) -> int:
        return len(self._index.facts)

    @property
    def is_changed(self) -> bool:
        """Return whether an edit may have changed a cell."""
        return bool(self._changed)

    def with_row(self, row: int) -> ParsedBlock:
        """Parse the block that has a row, or would have it."""
        return self.parsed(max(bisect.bisect(self._index.firsts, row) - 1, 0))

    def parsed(self, number: int) -> ParsedBlock:
        """Parse a block."""
        if number in self._changed:
            return self._changed[number]
        if number in self._parsed:
            self._parsed.move_to_end(number)
            return self._parsed[number]
        READING.set((self._package.document, self._name))
        part, facts = self._index.part, self._index.facts[number]
        lines = parse_block(part.read(self._data, number), part.head)
        block = ParsedBlock(*index_rows(lines, facts.before, self._package.damaged))
        if self._placeholders and (facts.has_formulas or self._index.arrays):
            drop_placeholders(block.cells, self._index.arrays)
        self._parsed[number] = block
        while len(self._parsed) > _MOST_PARSED:
            self._parsed.popitem(last=False)
        return block

    def readable(self, number: int) -> Mapping[tuple[int, int], Any]:
        """Return the cells of a block, for reading: plain ones, or elements."""
        if number in self._changed:
            return self._changed[number].cells
        cells = self._readable.get(number)
        if cells is None:
            plain = [((row, column), cell) for row, column, cell in self._plain(number)]
            is_complete = len(plain) == self._index.facts[number].cells
            cells = self._readable[number] = dict(plain) if is_complete else self.parsed(number).cells
            while len(self._readable) > _MOST_PARSED:
                self._readable.popitem(last=False)
        return cells

    def bounds(self, row: int) -> tuple[int, int, int]:
        """Return a row's block, its first row, and the next block's."""
        firsts = self._index.firsts
        number = max(bisect.bisect(firsts, row) - 1, 0)
        return number, firsts[number] if number else 0, firsts[number + 1] if number + 1 < len(firsts) else LAST_ROW + 1

    def values(self, row: int) -> BlockValues | LiveValues:
        """Return the values and formulas of the block that has a row."""
        if not self._first <= row < self._end:
            number, self._first, self._end = self.bounds(row)
            self._values = self._values_of(number)
        return self._values

    def _values_of(self, number: int) -> BlockValues | LiveValues:
        if number in self._changed:
            return LiveValues(self._changed[number].cells, self.read)
        if number in self._read_values:
            self._read_values.move_to_end(number)
            return self._read_values[number]
        values = BlockValues(self._plain(number), self.read)
        if values.count != self._index.facts[number].cells:
            cells = self.parsed(number).cells
            values = BlockValues(((*position, cell) for position, cell in cells.items()), self.read)
        self._read_values[number] = values
        self._value_count += values.count
        while self._value_count > _MOST_VALUES and len(self._read_values) > 1:
            self._value_count -= self._read_values.popitem(last=False)[1].count
        return values

    def _plain(self, number: int) -> Iterator[tuple[int, int, PlainCell]]:
        """Yield the cells of a block, but for unusual ones."""
        if not self._index.facts[number].is_plain:
            return iter(())
        READING.set((self._package.document, self._name))
        return plain_cells(self._index.part.read(self._data, number), placeholders=self._placeholders)

    def change(self, row: int) -> ParsedBlock:
        """Parse and keep the block of a row, for a change."""
        number = max(bisect.bisect(self._index.firsts, row) - 1, 0)
        if number not in self._changed:
            self._changed[number] = self.parsed(number)
            self._parsed.pop(number, None)
            self._readable.pop(number, None)
            if number in self._read_values:
                self._value_count -= self._read_values.pop(number).count
            self.cells.forget()
            self._first = self._end = 0
        return self._changed[number]

    def change_all(self) -> None:
        """Parse and keep all blocks, for an edit of cells anywhere."""
        for first in self._index.firsts:
            self.change(first)

    def make_row(self, row: int) -> Element:
        """Return a row's element, made if missing, for a change."""
        block = self.change(row)
        line = block.rows.get(row)
        if line is None:
            line = etree.Element(ROW)
            line.set("r", str(row))
            at = bisect.bisect(block.order, row)
            if at == len(block.order):
                block.root.append(line)
            else:
                block.rows[block.order[at]].addprevious(line)
            block.order.insert(at, row)
            block.rows[row] = line
        return line

    def filled(self) -> int:
        """Count the cells that hold something."""
        return sum(self._facts(number).filled for number in range(len(self)))

    def count(self) -> int:
        """Count the stored cells."""
        return sum(self._facts(number).cells for number in range(len(self)))

    def used(self) -> CellRange | None:
        """Measure the part of the sheet that holds something."""
        blocks = [(number, facts) for number in range(len(self)) if (facts := self._facts(number)).filled]
        if not blocks:
            return None
        columns = [
            column_index_from_string(name) for name in frozenset().union(*(facts.columns for _, facts in blocks))
        ]
        first, last = (self._filled_rows(blocks[index][0]) for index in (0, -1))
        return CellRange(min_row=min(first), max_row=max(last), min_col=min(columns), max_col=max(columns))

    def hidden_rows(self) -> Iterator[int]:
        """Yield the rows that are hidden, or have no height."""
        return itertools.chain.from_iterable(self._facts(number).hidden for number in range(len(self)))

    def formulas_in(self, cells: CellRange) -> list[tuple[int, int]]:
        """List the cells of a range that hold a formula, by row."""
        columns = range(cells.min_col, cells.max_col + 1)
        begin, end = (bisect.bisect(self._index.firsts, row) for row in (cells.min_row, cells.max_row))
        return [
            (row, column)
            for number in range(max(begin - 1, 0), end)
            if number in self._changed or self._index.facts[number].has_formulas
            for row, column in self._values_of(number).formulas
            if cells.min_row <= row <= cells.max_row and column in columns
        ]

    def formula_cells(self) -> Iterator[tuple[tuple[int, int], Element]]:
        """Yield the cells that hold a formula, by row."""
        for number in range(len(self)):
            if number in self._changed or self._index.facts[number].has_formulas:
                for position, cell in self.readable(number).items():
                    if cell.find(FORMULA) is not None:
                        yield position, cell

    def arrays(self) -> list[CellRange]:
        """Return the ranges of array formulas and data tables."""
        return [area_of(text) for number in range(len(self)) for text in self._facts(number).arrays]

    def shared(self) -> dict[str, tuple[str, str]]:
        """Return the cell and the text of each formula that cells share."""
        return {name: (cell, text) for number in range(len(self)) for name, cell, text in self._facts(number).shared}

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes of the rows, as they would be written now."""
        for number in range(len(self)):
            if number in self._changed:
                xml = etree.tostring(self._changed[number].root, encoding="UTF-8", xml_declaration=False)
                yield xml[xml.index(b">") + 1 : xml.rindex(b"</")]
            else:
                yield self._index.part.read(self._data, number)

    def _facts(self, number: int) -> BlockFacts:
        if number in self._changed:
            block = self._changed[number]
            lines = block.root.iterchildren(ROW)
            return facts_of_elements(lines, 0, [], placeholders=False)
        return self._index.facts[number]

    def _filled_rows(self, number: int) -> list[int]:
        return [row for (row, _), cell in self.readable(number).items() if holds(cell)]

    def filled_positions(self) -> Iterator[tuple[int, int]]:
        """Yield the cells that hold something, by row."""
        for number in range(len(self)):
            if self._facts(number).filled:
                yield from self._values_of(number).filled()
