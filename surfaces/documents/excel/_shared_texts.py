"""The shared texts of a large workbook, parsed on use."""

from __future__ import annotations

import bisect
import itertools
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from lxml import etree

from callboard.surfaces.documents._office import MAIN, READING, q
from callboard.surfaces.documents._streamed_part import (
    IrregularPartError,
    Shape,
    StreamedPart,
    require_default_namespace,
)
from callboard.surfaces.documents.excel._cell_values import unescape

if TYPE_CHECKING:
    from zipfile import ZipInfo

    from callboard.surfaces.documents._package import Element

_TEXTS = Shape(re.compile(rb"<sst [^>]*>"), b"<si", b"</sst>")
_MOST_PARSED = 32
"""The most blocks whose texts are kept."""
_MOST_MISSES = 4
"""All texts are kept once so many blocks were parsed for each that there is."""


def text_of(entry: Element) -> str:
    """Return the text of a shared text, without its reading aids."""
    return unescape("".join(part.text or "" for part in entry.iter(q("t")) if part.getparent().tag != q("rPh")))


@dataclass(frozen=True)
class TextIndex:
    """The blocks of the shared texts. Threads may share it."""

    part: StreamedPart
    firsts: list[int]
    """The number of the first text of each block, and the number of all."""

    @classmethod
    def scan(cls, data: bytes, entry: ZipInfo) -> TextIndex:
        """Read the part once.

        Raises:
            IrregularPartError: If it is damaged, or has an unusual form.
        """
        counts = [0]

        def visit(_: bytes, block: bytes) -> None:
            count = block.count(b"<si>")
            if count != block.count(b"<si") or any(word in block for word in (b"<!", b"<?", b"xmlns")):
                raise IrregularPartError
            counts.append(count)

        part = StreamedPart.scan(data, entry, _TEXTS, visit)
        require_default_namespace(part)
        return cls(part, [*itertools.accumulate(counts)])

    @property
    def skeleton(self) -> bytes:
        """The part without its texts."""
        return self.part.head + self.part.tail

    @property
    def size_bytes(self) -> int:
        """The memory that it takes, about."""
        return self.part.size_bytes + len(self.firsts) * 40


class SharedTexts(Sequence[str]):
    """The shared texts of an opened file."""

    def __init__(self, index: TextIndex, data: bytes, name: tuple[str, str]) -> None:
        self._index = index
        self._data = data
        self._name = name
        self._parsed: OrderedDict[int, list[str]] = OrderedDict()
        self._misses = 0

    def __len__(self) -> int:
        return self._index.firsts[-1]

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        block = bisect.bisect(self._index.firsts, index) - 1
        texts = self._parsed.get(block)
        if texts is None:
            texts = self._parse(block)
        return texts[index - self._index.firsts[block]]

    def _parse(self, number: int) -> list[str]:
        READING.set(self._name)
        part = self._index.part
        xml = b'<sst xmlns="%s">%s</sst>' % (MAIN.encode(), part.read(self._data, number))
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
        texts = [text_of(entry) for entry in etree.fromstring(xml, parser).iterchildren(q("si"))]
        self._parsed[number] = texts
        self._misses += 1
        if len(self._parsed) > _MOST_PARSED and self._misses < _MOST_MISSES * len(part.blocks):
            self._parsed.popitem(last=False)
        return texts
