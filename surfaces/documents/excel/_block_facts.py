"""Facts about a block of rows, without an object for each cell."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lxml import etree
from openpyxl.utils import get_column_letter

from callboard.surfaces.documents._streamed_part import IrregularPartError
from callboard.surfaces.documents.excel._cell_elements import (
    FORMULA,
    ROW,
    area_of,
    drop_placeholders,
    holds,
    index_rows,
    is_hidden,
)
from callboard.surfaces.documents.excel._formula_text import LAST_COLUMN, LAST_ROW

if TYPE_CHECKING:
    from collections.abc import Iterable

    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents._package import Element

_ATTRIBUTES = rb'(?: [A-Za-z][A-Za-z0-9:.]*="[^"<>]*")*'
_ROWS = re.compile(rb'<row r="([0-9]{1,7})"(' + _ATTRIBUTES + rb") ?/?>")
_NUMBERS = re.compile(rb'<row r="([0-9]{1,7})"' + _ATTRIBUTES + rb" ?/?>")
_FILLED = re.compile(rb'<c r="([A-Z]{1,3})[0-9]{1,7}"' + _ATTRIBUTES + rb">(?:<v>[^<]|<f[ >]|<is>)")
_EMPTY = re.compile(rb'<c r="[A-Z]{1,3}[0-9]{1,7}"' + _ATTRIBUTES + rb" ?/>")
_FORMULA_WITH_ATTRIBUTES = re.compile(rb"<f\s[^>]*[^/>]>|<f\s[^>]*ref=")
_HIDDEN = re.compile(rb' (?:hidden="(?:1|true)"|ht="0(?:\.0)?")')
_LAST_LETTERS = get_column_letter(LAST_COLUMN)
_UNUSUAL = (b"<!", b"<?", b"xmlns")


@dataclass(frozen=True)
class BlockFacts:
    """A block's rows, filled cells and formulas."""

    before: int
    """The number of the row before the block; 0 for none."""
    first: int
    last: int
    cells: int
    filled: int
    """The number of cells that hold something."""
    columns: frozenset[str]
    """The letters of the columns in which a cell holds something."""
    hidden: tuple[int, ...]
    """The rows that are hidden, or have no height."""
    has_formulas: bool
    is_plain: bool = False
    """Whether the facts were read from the text, so that the rows have the form that programs write."""
    arrays: tuple[str, ...] = ()
    """The ranges of array formulas and data tables."""
    shared: tuple[tuple[str, str, str], ...] = ()
    """Formulas that cells share: the name, the cell and the text."""


def facts_of(block: bytes, before: int, head: bytes, arrays: list[CellRange], *, placeholders: bool) -> BlockFacts:
    """Read a block's facts.

    Args:
        block: The rows, as in the file.
        before: The number of the row before them.
        head: The text of the part before its rows.
        arrays: The ranges of array formulas before the block.
        placeholders: Whether zeros stand for results that were never computed.

    Raises:
        IrregularPartError: If the rows do not ascend, or have an unusual form.
    """
    return _quick_facts(block, before, arrays if placeholders else []) or facts_of_elements(
        parse_block(block, head), before, arrays, placeholders=placeholders
    )


def _quick_facts(block: bytes, before: int, arrays: list[CellRange]) -> BlockFacts | None:
    """Read the facts from the text; None if its form is unusual.

    Each row and each cell has to match a pattern, so that nothing is missed.
    """
    rows = [*map(int, _NUMBERS.findall(block))]
    if not rows or len(rows) != block.count(b"<row") or any(word in block for word in _UNUSUAL):
        return None
    filled = _FILLED.findall(block)
    cells = block.count(b"<c")
    if cells != len(filled) and cells != len(filled) + len(_EMPTY.findall(block)):
        return None
    has_formulas = b"<f" in block
    if has_formulas and _FORMULA_WITH_ATTRIBUTES.search(block):
        return None
    if any(area.min_row <= rows[-1] and rows[0] <= area.max_row for area in arrays):
        return None
    _check_order(rows, before)
    hidden: tuple[int, ...] = ()
    if b' hidden="' in block or b' ht="' in block:
        hidden = tuple(int(number) for number, attributes in _ROWS.findall(block) if _HIDDEN.search(attributes))
    columns = frozenset(name.decode() for name in {*filled})
    if any(len(name) == len(_LAST_LETTERS) and name > _LAST_LETTERS for name in columns):
        raise IrregularPartError
    return BlockFacts(before, rows[0], rows[-1], cells, len(filled), columns, hidden, has_formulas, is_plain=True)


def parse_block(block: bytes, head: bytes) -> list[Element]:
    """Parse the rows of a block, with the namespaces of the part.

    Raises:
        IrregularPartError: If they can't be parsed.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_pis=False)
    root_tag = root_tag_of(head)
    try:
        root = etree.fromstring(root_tag + block + b"</worksheet>", parser)
    except etree.XMLSyntaxError as error:
        raise IrregularPartError from error
    return list(root.iterchildren(ROW))


def root_tag_of(head: bytes) -> bytes:
    """Return the tag of a sheet's root, with its namespaces.

    Raises:
        IrregularPartError: If it has a prefix.
    """
    begin = head.find(b"<worksheet")
    end = head.find(b">", begin) + 1
    if begin < 0 or not end:
        raise IrregularPartError
    return head[begin:end]


def facts_of_elements(
    lines: Iterable[Element], before: int, arrays: list[CellRange], *, placeholders: bool
) -> BlockFacts:
    """Read the facts from the elements of rows."""
    lines = [*lines]
    rows, cells = index_rows(lines, before, lambda _: IrregularPartError())
    if len(rows) != len(lines) or not rows:
        raise IrregularPartError
    numbers = [*rows]
    _check_order(numbers, before)
    if placeholders:
        drop_placeholders(cells, arrays)
    filled = [position for position, cell in cells.items() if holds(cell)]
    formulas = [(cell, formula) for cell in cells.values() if (formula := cell.find(FORMULA)) is not None]
    return BlockFacts(
        before,
        numbers[0],
        numbers[-1],
        len(cells),
        len(filled),
        frozenset(map(get_column_letter, {column for _, column in filled})),
        tuple(number for number, line in rows.items() if is_hidden(line, "ht")),
        bool(formulas),
        False,  # noqa: FBT003 - is_plain
        tuple(
            formula.get("ref")
            for _, formula in formulas
            if formula.get("t") in {"array", "dataTable"} and formula.get("ref")
        ),
        tuple(
            (formula.get("si", ""), cell.get("r"), formula.text)
            for cell, formula in formulas
            if formula.get("t") == "shared" and formula.text
        ),
    )


def array_areas(facts: BlockFacts) -> list[CellRange]:
    """Return the ranges of a block's array formulas."""
    return [area_of(text) for text in facts.arrays]


def _check_order(rows: list[int], before: int) -> None:
    if rows[0] <= before or rows[-1] > LAST_ROW or not all(map(operator.lt, rows, rows[1:])):
        raise IrregularPartError
