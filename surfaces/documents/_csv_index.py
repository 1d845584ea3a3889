"""The rows of a large CSV file, read in parts."""

from __future__ import annotations

import bisect
import contextlib
import csv
import io
import itertools
from collections import deque
from dataclasses import dataclass, field, replace
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._csv_dialect import LONGEST_CELL, delimiter_of, naming_line
from callboard.surfaces.documents._encodings import MARKS, detect_encoding
from callboard.surfaces.documents._text_tools import Decoded, declared_encoding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from callboard.surfaces.documents._large_file import LargeFile
    from callboard.surfaces.documents._workspace import Snapshot

PIECE_BYTES = 1 << 18
"""The bytes that are read at once."""
LONGEST_ROW = 16_000_000
"""The most characters of a row."""
_MOST_CHARACTERS = 50_000_000
"""The most characters of the rows that are read together."""
_START_BYTES = 150
"""The memory of the place of a row, about."""
_LONGEST_MARK = 4
_MOST_MISALIGNED = 4096
"""The most line breaks within two characters of UTF-16 that are looked at in a piece."""
_STATEFUL = ("iso2022", "utf-7", "hz")
"""Encodings whose bytes can't be read from the middle of a file."""


@dataclass
class CsvIndex:
    """The number of a file's rows, and places of some.

    Threads may share it once it is complete.
    """

    file: LargeFile
    coding: Decoded
    """The encoding, without a text."""
    delimiter: str = ","
    row_count: int = 0
    width: int = 0
    """The number of cells in the longest row."""
    cell_count: int = 0
    starts: list[tuple[int, int]] = field(default_factory=list)
    """A row, from 0, and the offset in the file at which it begins."""
    open_row: str = ""
    """The beginning of a row whose last cell has a line break."""

    @property
    def size_bytes(self) -> int:
        """The memory that it takes, about."""
        return 1000 + _START_BYTES * len(self.starts)

    def read(self, start: int, limit: int, most_cells: int) -> list[list[str]]:
        """Read some rows; the first row is 0.

        Raises:
            ToolError: If they have too many cells or characters, or the file was changed.
        """
        if start >= self.row_count or limit < 1:
            return []
        number, offset = self.starts[bisect.bisect_right(self.starts, start, key=itemgetter(0)) - 1]
        rows: list[list[str]] = []
        cells = characters = 0
        with self.file.open() as stream:
            lines = (line for piece in self._texts(stream, offset) for line in io.StringIO(piece, newline=""))
            reader = filter(None, csv.reader(lines, delimiter=self.delimiter))
            for row in itertools.islice(reader, start - number, start - number + limit):
                rows.append(row)
                cells += len(row)
                characters += sum(map(len, row))
                if cells > most_cells or characters > _MOST_CHARACTERS:
                    msg = (
                        f"{self.file.document!r} is too large for this: from row {start + 1}, {limit} rows have more "
                        f"than {most_cells} cells (documents.max_csv_cells) or {_MOST_CHARACTERS} characters; "
                        "read fewer rows at once"
                    )
                    raise ToolError(msg)
        return rows

    def count(self, stream: BinaryIO, delimiter: str) -> None:
        """Count the rows of an open file.

        Raises:
            ToolError: If a part is not in the encoding, or a row or cell is too long.
        """
        offset = len(self.coding.mark)
        for piece_offset, data in self._pieces(stream, offset):
            text = self._decode(piece_offset, data)
            if piece_offset == offset:
                named = naming_line(text)
                self.delimiter = delimiter_of(text, self.file.path.suffix) if delimiter == "auto" else delimiter
                text = text[named.end() :] if named else text
                self.starts.append((0, offset + (len(named[0].encode(self.coding.encoding)) if named else 0)))
            self._add(text, data, piece_offset)
        if self.open_row:
            self._add_widths(list(map(len, self._reader(self.open_row))))
        self.open_row = ""

    def _add(self, text: str, data: bytes, offset: int) -> None:
        """Count the rows of a piece, behind an open row."""
        text = self.open_row + text
        self.open_row = ""
        plain = text.replace("\r\n", "\n") if "\r" in text else text
        if '"' not in text and "\r" not in plain and len(text) <= LONGEST_CELL:
            self._add_plain(plain)
        else:
            self._add_quoted(text)
        place: int | None = offset + len(data)
        if self.open_row:
            with contextlib.suppress(UnicodeError):
                rest = self.open_row.encode(self.coding.encoding)
                place = offset + len(data) - len(rest) if data.endswith(rest) else None
        if place is not None:
            self.starts.append((self.row_count, place))

    def _add_plain(self, text: str) -> None:
        """Count rows without quotation marks; each is a line."""
        lines = text.split("\n")
        empty = lines.count("")
        self.row_count += len(lines) - empty
        if len(lines) > empty:
            self.width = max(self.width, 1 + max(map(methodcaller("count", self.delimiter), lines)))
            self.cell_count += text.count(self.delimiter) + len(lines) - empty

    def _add_quoted(self, text: str) -> None:
        """Count rows as the csv module does; keep an open one."""
        # A row of more cells than any other: it is a row of its own unless the last cell of the text is open.
        width = text.count(self.delimiter) + 2
        lines = itertools.chain(io.StringIO(text, newline=""), [self.delimiter * (width - 1)])
        try:
            widths = list(map(len, csv.reader(lines, delimiter=self.delimiter)))
        except csv.Error as error:
            row = self._row_number(text)
            msg = f"{self.file.document!r} can't be read as a table: row {row}: {error}"
            raise ToolError(msg) from error
        if widths.pop() != width:
            again = io.StringIO(text, newline="")
            deque(itertools.islice(csv.reader(again, delimiter=self.delimiter), len(widths)), maxlen=0)
            self.open_row = again.read()
            self._check_length(self.open_row, self.row_count + len(widths) - widths.count(0) + 1)
        self._add_widths(widths)

    def _add_widths(self, widths: list[int]) -> None:
        self.row_count += len(widths) - widths.count(0)  # an empty line is no row
        self.width = max(self.width, max(widths, default=0))
        self.cell_count += sum(widths)

    def _reader(self, text: str) -> Iterator[list[str]]:
        return csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter)

    def _row_number(self, text: str) -> int:
        """Return the number of the row at which reading fails."""
        number = self.row_count + 1
        with contextlib.suppress(csv.Error):
            for row in self._reader(text):
                number += bool(row)
        return number

    def _check_length(self, text: str | bytes, row: int) -> None:
        if len(text) > LONGEST_ROW:
            msg = f"{self.file.document!r} can't be read as a table: row {row} has more than {LONGEST_ROW} characters"
            raise ToolError(msg)

    def _texts(self, stream: BinaryIO, offset: int) -> Iterator[str]:
        return (data.decode(self.coding.encoding) for _, data in self._pieces(stream, offset))

    def _pieces(self, stream: BinaryIO, offset: int) -> Iterator[tuple[int, bytes]]:
        """Yield the bytes behind an offset in pieces of whole lines."""
        stream.seek(offset)
        rest = b""
        while block := stream.read(PIECE_BYTES):
            rest += block
            if end := _end_of_lines(rest, self.coding.encoding):
                yield offset, rest[:end]
                offset, rest = offset + end, rest[end:]
            self._check_length(rest, self.row_count + 1)
        if rest:
            yield offset, rest

    def _decode(self, offset: int, data: bytes) -> str:
        encoding = self.coding.encoding
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as error:
            row = self._row_number(self.open_row + data[: error.start].decode(encoding) + "x") - 1
            msg = (
                f"{self.file.document!r} is damaged, or not in {encoding}: byte {offset + error.start + 1}, in row "
                f"{row}, fits no character; pass its encoding, such as cp1252"
            )
            raise ToolError(msg) from None


def index_of(snapshot: Snapshot, file: LargeFile, delimiter: str = "auto", encoding: str = "auto") -> CsvIndex:
    """Count the rows of a version of a file, once.

    Raises:
        ToolError: If it is no text, not in the encoding, or a row or cell is too long.
    """
    name = f"csv {delimiter} {encoding}"
    index: CsvIndex | None = snapshot.cache.get(snapshot.fingerprint, name)
    if index is None:
        csv.field_size_limit(LONGEST_CELL)
        with file.open() as stream:
            index = CsvIndex(file, _coding_of(file.document, stream, encoding))
            index.count(stream, delimiter)
        snapshot.cache.keep(snapshot.fingerprint, name, index, index.size_bytes)
    return replace(index, file=file)  # a copy elsewhere has the same fingerprint


def _coding_of(document: str, stream: BinaryIO, encoding: str) -> Decoded:
    """Detect the encoding by the mark or the first special letters.

    Raises:
        ToolError: If it is no text, or the encoding has states.
    """
    head = stream.read(max(PIECE_BYTES, _LONGEST_MARK))
    mark, marked = next(((mark, marked) for mark, marked in MARKS if head.startswith(mark)), (b"", ""))
    name, guessed = marked, False
    if encoding != "auto":
        name = declared_encoding(encoding, marked) or _detect(head, stream)[0]
        mark = mark if name == marked else b""
    elif not marked:
        name, guessed = _detect(head, stream)
    if not name:
        msg = f"{document!r} is not a text: it has zero bytes"
        raise ToolError(msg)
    if name.startswith(_STATEFUL):
        msg = f"{document!r} is in {name}, in which no large file is read in parts; save it as UTF-8"
        raise ToolError(msg)
    return Decoded("", name, mark, guessed)


def _detect(head: bytes, stream: BinaryIO) -> tuple[str, bool]:
    rest = b""
    while head:
        piece = rest + head
        end = piece.rfind(b"\n")
        end += end % 2  # before a break of UTF-16 with the low byte first, behind one with the high byte first
        sample, rest = (piece[:end], piece[end:]) if end > 0 else (piece, b"")
        if b"\0" in sample or b"\x1b" in sample or not sample.isascii():
            return detect_encoding(sample)
        head = stream.read(PIECE_BYTES)
    return detect_encoding(rest)


def _end_of_lines(data: bytes, encoding: str) -> int:
    """Return the end of the last line; 0 if no line ends."""
    ends = []
    for sign in ("\n", "\r"):
        line_break = sign.encode(encoding)
        unit = len(line_break)
        # A carriage return at the end may be half of a line break.
        stop = len(data) - (unit if sign == "\r" else 0)
        position = data.rfind(line_break, 0, stop)
        for _ in range(_MOST_MISALIGNED):
            if position < 0 or position % unit == 0:
                break
            position = data.rfind(line_break, 0, position + unit - 1)
        ends.append(position + unit if position >= 0 and position % unit == 0 else 0)
    return max(ends)
