"""The rows and cells of a large sheet, parsed on use."""

from __future__ import annotations

import bisect
import itertools
from collections import OrderedDict
from collections.abc import ItemsView, Mapping, MutableMapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lxml import etree
from openpyxl.utils import column_index_from_string
from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces.documents._office import READING
from callboard.surfaces.documents.excel._block_facts import facts_of_elements, parse_block
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
    from collections.abc import Callable, Iterator

    from callboard.surfaces.documents._package import Element, Package
    from callboard.surfaces.documents.excel._block_facts import BlockFacts
    from callboard.surfaces.documents.excel._sheet_index import SheetIndex

_K = TypeVar("_K", int, tuple[int, int])
_MOST_PARSED = 4
"""The most blocks that are kept parsed; changed ones come on top."""
_MOST_VALUES = 2_000_000
"""The most cells whose values are kept. Others are read again."""


@dataclass
class _ParsedBlock:
    rows: dict[int, Element]
    cells: dict[tuple[int, int], Element]

    @property
    def root(self) -> Element:
        """The element around the rows."""
        return next(iter(self.rows.values())).getparent()


def _rows_of(block: _ParsedBlock) -> dict[int, Element]:
    return block.rows


def _cells_of(block: _ParsedBlock) -> dict[tuple[int, int], Element]:
    return block.cells


def _row_of(position: tuple[int, int]) -> int:
    return position[0]


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
        self._parsed: OrderedDict[int, _ParsedBlock] = OrderedDict()
        self._changed: dict[int, _ParsedBlock] = {}
        self._readable: OrderedDict[int, Mapping[tuple[int, int], Any]] = OrderedDict()
        self.cells: CellMapping = CellMapping(self, _cells_of, _row_of)
        """The elements of the stored cells, by row and column."""
        self._read_values: OrderedDict[int, BlockValues] = OrderedDict()
        self._value_count = 0
        self._values: BlockValues | LiveValues = BlockValues((), lambda _: (None, "empty"))
        self._first = self._end = 0
        self.rows: BlockMapping[int] = BlockMapping(self, _rows_of, int)
        """The elements of the rows that the file has."""

    def __len__(self) -> int:
        return len(self._index.facts)

    @property
    def is_changed(self) -> bool:
        """Return whether an edit may have changed a cell."""
        return bool(self._changed)

    def with_row(self, row: int) -> _ParsedBlock:
        """Parse the block that has a row, or would have it."""
        return self.parsed(max(bisect.bisect(self._index.firsts, row) - 1, 0))

    def parsed(self, number: int) -> _ParsedBlock:
        """Parse a block."""
        if number in self._changed:
            return self._changed[number]
        if number in self._parsed:
            self._parsed.move_to_end(number)
            return self._parsed[number]
        READING.set((self._package.document, self._name))
        part, facts = self._index.part, self._index.facts[number]
        lines = parse_block(part.read(self._data, number), part.head)
        block = _ParsedBlock(*index_rows(lines, facts.before, self._package.damaged))
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

    def value(self, row: int, column: int, read: Callable[[Element | None], tuple[Any, str]]) -> tuple[Any, Any]:
        """Return a cell's value and kind.

        Args:
            row: The row's number.
            column: The column's number.
            read: Reads the value and the kind of a cell's element.
        """
        if not self._first <= row < self._end:
            number, self._first, self._end = self.bounds(row)
            self._values = self._values_of(number, read)
        return self._values.get(row, column)

    def _values_of(self, number: int, read: Callable[[Element | None], tuple[Any, str]]) -> BlockValues | LiveValues:
        if number in self._changed:
            return LiveValues(self._changed[number].cells, read)
        if number in self._read_values:
            self._read_values.move_to_end(number)
            return self._read_values[number]
        values = BlockValues(self._plain(number), read)
        if values.count != self._index.facts[number].cells:
            cells = self.parsed(number).cells
            values = BlockValues(((*position, cell) for position, cell in cells.items()), read)
        self._read_values[number] = values
        self._value_count += values.count
        while self._value_count > _MOST_VALUES and len(self._read_values) > 1:
            self._value_count -= self._read_values.popitem(last=False)[1].count
        return values

    def may_have_formula(self, row: int) -> bool:
        """Return whether a cell of a row may hold a formula."""
        number = self.bounds(row)[0]
        return number in self._changed or self._index.facts[number].has_formulas

    def _plain(self, number: int) -> Iterator[tuple[int, int, PlainCell]]:
        """Yield the cells of a block except those of unusual form."""
        if not self._index.facts[number].is_plain:
            return iter(())
        READING.set((self._package.document, self._name))
        return plain_cells(self._index.part.read(self._data, number), placeholders=self._placeholders)

    def change(self, row: int) -> _ParsedBlock:
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
            after = min((number for number in block.rows if number > row), default=None)
            if after is None:
                block.root.append(line)
            else:
                block.rows[after].addprevious(line)
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
        return [
            (row, column)
            for (row, column), _ in self.formula_cells(cells.min_row, cells.max_row)
            if cells.min_row <= row <= cells.max_row and column in columns
        ]

    def formula_cells(self, first: int = 1, last: int = LAST_ROW) -> Iterator[tuple[tuple[int, int], Element]]:
        """Yield the cells that hold a formula, by row.

        Cells outside of the given rows may be among them.
        """
        begin, end = (bisect.bisect(self._index.firsts, row) for row in (first, last))
        for number in range(max(begin - 1, 0), end):
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
            if number in self._read_values:
                yield from self._read_values[number].filled()
            elif self._facts(number).filled:
                yield from [position for position, cell in self.readable(number).items() if holds(cell)]


class BlockMapping(MutableMapping[_K, "Element"], Generic[_K]):
    """Rows or cells of a large sheet by their numbers."""

    def __init__(
        self,
        blocks: RowBlocks,
        entries: Callable[[_ParsedBlock], dict[_K, Element]],
        row_of: Callable[[_K], int],
    ) -> None:
        self._blocks = blocks
        self._entries: Callable[[_ParsedBlock], dict[_K, Element]] = entries
        self._row_of: Callable[[_K], int] = row_of

    def __getitem__(self, key: _K) -> Element:
        return self._entries(self._blocks.with_row(self._row_of(key)))[key]

    def get(self, key: _K, default: Element = None) -> Element:
        """Return an element, or the default."""
        return self._entries(self._blocks.with_row(self._row_of(key))).get(key, default)

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None  # type: ignore[arg-type]

    def __setitem__(self, key: _K, element: Element) -> None:
        self._entries(self._blocks.change(self._row_of(key)))[key] = element

    def __delitem__(self, key: _K) -> None:
        del self._entries(self._blocks.change(self._row_of(key)))[key]

    def __iter__(self) -> Iterator[_K]:
        for number in range(len(self._blocks)):
            yield from self._entries(self._blocks.parsed(number))

    def __len__(self) -> int:
        return self._blocks.count()

    def items(self) -> ItemsView[_K, Element]:
        """Return the numbers and elements, by row."""
        return _BlockItems(self)


class CellMapping(BlockMapping[tuple[int, int]]):
    """Cells of a large sheet; `get` returns those for reading."""

    _cells: Mapping[tuple[int, int], Any] = MappingProxyType({})
    _first = _end = 0

    def get(self, key: tuple[int, int], default: Element = None) -> Element:
        """Return a cell for reading, or the default."""
        if not self._first <= key[0] < self._end:
            number, self._first, self._end = self._blocks.bounds(key[0])
            self._cells = self._blocks.readable(number)
        return self._cells.get(key, default)

    def forget(self) -> None:
        """Look up the next cell's block again."""
        self._first = self._end = 0


class _BlockItems(ItemsView[_K, "Element"]):
    """Pairs of a mapping; each block is parsed once."""

    _mapping: BlockMapping[_K]

    def __iter__(self) -> Iterator[tuple[_K, Element]]:
        mapping = self._mapping
        for number in range(len(mapping._blocks)):
            yield from list(mapping._entries(mapping._blocks.parsed(number)).items())
