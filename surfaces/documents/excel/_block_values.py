"""The values of a block of cells, in little memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.surfaces.documents.excel._cell_elements import FORMULA, holds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from callboard.surfaces.documents._package import Element

_KINDS = ("empty", "number", "text", "truth", "error", "date")
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_FILLED = 8
"""Added to the kind of a cell that holds something."""
_NOTHING = (None, "empty")


class BlockValues:
    """The values and kinds of a block's cells, by column and row.

    A value takes about 40 bytes. Only for reading: values are those at the time when they were read.

    Args:
        cells: The rows, columns and cells, row by row.
        read: Reads a cell's value and kind.
    """

    def __init__(
        self, cells: Iterable[tuple[int, int, Element]], read: Callable[[Element | None], tuple[Any, str]]
    ) -> None:
        self.count = 0
        self.formulas: dict[tuple[int, int], Element] = {}
        """The formulas of the cells that have one."""
        self._rows: dict[int, int] = {}
        self._values: dict[int, list[Any]] = {}
        self._kinds: dict[int, bytearray] = {}
        for row, column, cell in cells:
            self.count += 1
            index = self._rows.setdefault(row, len(self._rows))
            values = self._values.setdefault(column, [])
            if len(values) <= index:
                more = index + 1 - len(values)
                values += [None] * more
                self._kinds.setdefault(column, bytearray()).extend(bytes(more))
            value, kind = read(cell)
            values[index] = value
            formula = cell.find(FORMULA)
            if formula is not None:
                self.formulas[row, column] = formula
            else:
                self.formulas.pop((row, column), None)  # the last of two cells of a name counts
            self._kinds[column][index] = _NUMBERS[kind] + _FILLED * holds(cell)

    def get(self, row: int, column: int) -> tuple[Any, Any]:
        """Return a cell's value and kind."""
        index = self._rows.get(row)
        values = self._values.get(column)
        if index is None or values is None or index >= len(values):
            return _NOTHING
        return values[index], _KINDS[self._kinds[column][index] % _FILLED]

    def holds(self, row: int, column: int) -> bool:
        """Return whether a cell holds something."""
        index, kinds = self._rows.get(row), self._kinds.get(column, b"")
        return index is not None and index < len(kinds) and kinds[index] >= _FILLED

    def formula(self, row: int, column: int) -> Element | None:
        """Return a cell's formula, if any."""
        return self.formulas.get((row, column))

    def filled(self) -> Iterator[tuple[int, int]]:
        """Yield the cells that hold something, by row."""
        columns = sorted(self._kinds.items())
        for row, index in self._rows.items():
            for column, kinds in columns:
                if index < len(kinds) and kinds[index] >= _FILLED:
                    yield row, column


class LiveValues:
    """The values of a block that an edit changes."""

    def __init__(
        self, cells: Mapping[tuple[int, int], Element], read: Callable[[Element | None], tuple[Any, str]]
    ) -> None:
        self._cells = cells
        self._read = read

    def get(self, row: int, column: int) -> tuple[Any, Any]:
        """Return a cell's value and kind, as they are now."""
        return self._read(self._cells.get((row, column)))

    def holds(self, row: int, column: int) -> bool:
        """Return whether a cell holds something now."""
        cell = self._cells.get((row, column))
        return cell is not None and holds(cell)

    def formula(self, row: int, column: int) -> Element | None:
        """Return a cell's present formula, if any."""
        cell = self._cells.get((row, column))
        return None if cell is None else cell.find(FORMULA)

    def filled(self) -> Iterator[tuple[int, int]]:
        """Yield the cells that hold something now, by row."""
        return (position for position, cell in self._cells.items() if holds(cell))

    @property
    def formulas(self) -> Mapping[tuple[int, int], Element]:
        """The formulas of the cells that have one now."""
        formulas = {position: cell.find(FORMULA) for position, cell in self._cells.items()}
        return {position: formula for position, formula in formulas.items() if formula is not None}
