"""The index of a large sheet: its blocks and their facts."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.surfaces.documents._streamed_part import Shape, StreamedPart, require_default_namespace
from callboard.surfaces.documents.excel._block_facts import array_areas, facts_of, root_tag_of

if TYPE_CHECKING:
    from zipfile import ZipInfo

    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents.excel._block_facts import BlockFacts

_SHEET = Shape(re.compile(rb"<sheetData>"), b"<row", b"</sheetData>")
_FACT_BYTES = 500
"""The memory of a block's facts, about."""


@dataclass(frozen=True)
class SheetIndex:
    """The blocks of a sheet and their facts. Threads may share it."""

    part: StreamedPart
    facts: list[BlockFacts]

    @classmethod
    def scan(cls, data: bytes, entry: ZipInfo, *, placeholders: bool) -> SheetIndex:
        """Read a sheet once.

        Raises:
            IrregularPartError: If the part is damaged, no sheet, or has an unusual form.
        """
        facts: list[BlockFacts] = []
        arrays: list[CellRange] = []
        heads: list[bytes] = []

        def visit(head: bytes, block: bytes) -> None:
            if not heads:
                heads.append(root_tag_of(head))
            before = facts[-1].last if facts else 0
            facts.append(facts_of(block, before, heads[0], arrays, placeholders=placeholders))
            arrays.extend(array_areas(facts[-1]))

        part = StreamedPart.scan(data, entry, _SHEET, visit)
        require_default_namespace(part)
        return cls(part, facts)

    @functools.cached_property
    def firsts(self) -> list[int]:
        """The first row of each block."""
        return [facts.first for facts in self.facts]

    @functools.cached_property
    def arrays(self) -> list[CellRange]:
        """The ranges of array formulas and data tables."""
        return [area for facts in self.facts for area in array_areas(facts)]

    @property
    def skeleton(self) -> bytes:
        """The sheet without its rows."""
        return self.part.head + self.part.tail

    @property
    def size_bytes(self) -> int:
        """The memory that it takes, about."""
        hidden = sum(len(facts.hidden) for facts in self.facts)
        return self.part.size_bytes + len(self.facts) * _FACT_BYTES + hidden * 40
