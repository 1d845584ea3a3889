"""A large XML part of an Office file, unpacked block by block.

The part is unpacked once, checked, and cut into blocks of whole items, such as the rows of a sheet. Checkpoints in the
packed bytes let a reader unpack any block again, without what precedes it.
"""

from __future__ import annotations

import bisect
import re
import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from callboard.surfaces.documents._office import MAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from zipfile import ZipInfo

STREAMED_BYTES = 8_000_000
"""The least unpacked size of a part that is read in blocks."""
BLOCK_BYTES = 1 << 18
"""The least unpacked size of a block."""
_STEP = 1 << 14
"""The packed bytes that are unpacked at once."""
_MOST_HEAD = 1 << 24
_CHECKPOINT_BYTES = 48_000
"""The memory of a checkpoint: the state of zlib, with its window."""
_DEFLATED = 8
_LOCAL_HEADER = struct.Struct("<26xHH")
_ENCODING = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"'](?!utf-?8[\"'])", re.IGNORECASE)


class IrregularPartError(Exception):
    """A part can't be read in blocks, but only whole."""


@dataclass(frozen=True)
class Shape:
    """The tags between which the items of a part stand."""

    opening: re.Pattern[bytes]
    """The last tag before the first item."""
    item: bytes
    """The beginning of an item's tag."""
    closing: bytes
    """The tag behind the last item."""


@dataclass(frozen=True)
class _Checkpoint:
    """A place in a part from which it can be unpacked."""

    offset: int
    """In the unpacked part."""
    position: int
    """In the file."""
    unpacker: Any


@dataclass
class StreamedPart:
    """The text around a part's items, and the places of its blocks.

    It holds no bytes of the items. Threads may share it.
    """

    head: bytes = b""
    tail: bytes = b""
    blocks: list[tuple[int, int]] = field(default_factory=list)
    """The beginning and end of each block in the unpacked part."""
    _checkpoints: list[_Checkpoint] = field(default_factory=list)

    @classmethod
    def scan(cls, data: bytes, entry: ZipInfo, shape: Shape, visit: Callable[[bytes, bytes], None]) -> StreamedPart:
        """Unpack and check a part once.

        `visit` gets the head and each block.

        Raises:
            IrregularPartError: If it is damaged, or does not have the usual form.
        """
        part = cls()
        checker = expat.ParserCreate()
        pending, offset = b"", 0
        try:
            for segment in part._segments(data, entry):
                checker.Parse(segment)
                if part.tail:
                    part.tail += segment
                    continue
                pending += segment
                if not part.head:
                    opening = shape.opening.search(pending)
                    if opening is None:
                        _require(len(pending) < _MOST_HEAD)
                        continue
                    offset = opening.end()
                    part.head, pending = pending[:offset], pending[offset:]
                stop = pending.find(shape.closing)
                end = stop if stop >= 0 else pending.rfind(shape.item)
                if end > 0:
                    visit(part.head, pending[:end])
                    part.blocks.append((offset, offset + end))
                    pending, offset = pending[end:], offset + end
                part.tail = pending if stop >= 0 else b""
            checker.Parse(b"", True)  # noqa: FBT003 - expat takes no keyword
        except (expat.ExpatError, zlib.error) as error:
            raise IrregularPartError from error
        _require(bool(part.tail and part.blocks) and not _ENCODING.match(part.head))
        _require(b"<!" not in part.head and b"<!" not in part.tail)
        return part

    @property
    def size_bytes(self) -> int:
        """The memory that it takes, about."""
        return len(self.head) + len(self.tail) + len(self._checkpoints) * _CHECKPOINT_BYTES

    def read(self, data: bytes, number: int) -> bytes:
        """Unpack one block from the bytes of the file."""
        start, end = self.blocks[number]
        checkpoint = self._checkpoints[
            bisect.bisect(self._checkpoints, start, key=lambda checkpoint: checkpoint.offset) - 1
        ]
        unpacker, position, left = checkpoint.unpacker.copy(), checkpoint.position, end - checkpoint.offset
        view, pieces = memoryview(data), []
        while left > 0:
            step = view[position : position + _STEP]
            piece = unpacker.decompress(step, left)
            position += len(step) - len(unpacker.unconsumed_tail)
            left -= len(piece)
            pieces.append(piece)
            _require(bool(step or piece))
        return b"".join(pieces)[start - checkpoint.offset :]

    def _segments(self, data: bytes, entry: ZipInfo) -> Iterator[bytes]:
        """Unpack a part in pieces, each with a checkpoint before it."""
        _require(entry.compress_type == _DEFLATED)
        names, extra = _LOCAL_HEADER.unpack_from(data, entry.header_offset)
        position = entry.header_offset + 30 + names + extra
        end, view = position + entry.compress_size, memoryview(data)
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        offset = checksum = 0
        while not unpacker.eof:
            self._checkpoints.append(_Checkpoint(offset, position, unpacker.copy()))
            pieces, length = [], 0
            while length < BLOCK_BYTES and not unpacker.eof:
                step = view[position : min(position + _STEP, end)]
                piece = unpacker.decompress(step, BLOCK_BYTES)
                _require(bool(step or piece))
                position += len(step) - len(unpacker.unconsumed_tail)
                length += len(piece)
                pieces.append(piece)
            segment = b"".join(pieces)
            checksum = zlib.crc32(segment, checksum)
            offset += len(segment)
            _require(offset <= entry.file_size)
            yield segment
        _require(offset == entry.file_size and checksum == entry.CRC)


def require_default_namespace(part: StreamedPart) -> None:
    """Refuse a part whose names have, or may have, a prefix.

    Raises:
        IrregularPartError: If it has one.
    """
    namespace = MAIN.encode()
    _require(part.head.count(namespace) == 1 and b'xmlns="' + namespace + b'"' in part.head)


def _require(condition: bool) -> None:  # noqa: FBT001 - a condition
    if not condition:
        raise IrregularPartError
