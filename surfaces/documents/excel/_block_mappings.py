"""Mappings of the rows and cells of a large sheet."""

from __future__ import annotations

import functools
from collections.abc import ItemsView, Mapping, MutableMapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.excel._row_blocks import RowBlocks

_K = TypeVar("_K", int, tuple[int, int])


@dataclass
class ParsedBlock:
    """The elements of a block's rows and cells."""

    rows: dict[int, Element]
    cells: dict[tuple[int, int], Element]

    @functools.cached_property
    def order(self) -> list[int]:
        """The numbers of the rows, sorted."""
        return sorted(self.rows)

    @property
    def root(self) -> Element:
        """The element around the rows."""
        return next(iter(self.rows.values())).getparent()


class BlockMapping(MutableMapping[_K, "Element"], Generic[_K]):
    """Rows or cells of a large sheet by their numbers."""

    def __init__(
        self,
        blocks: RowBlocks,
        entries: Callable[[ParsedBlock], dict[_K, Element]],
        row_of: Callable[[_K], int],
    ) -> None:
        self._blocks = blocks
        self._entries: Callable[[ParsedBlock], dict[_K, Element]] = entries
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
