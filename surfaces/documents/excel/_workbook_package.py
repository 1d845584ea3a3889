"""The parts of a workbook; large ones are read in blocks."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, TypeAlias

from callboard.surfaces import BoundedZipFile
from callboard.surfaces.documents import _office, _streamed_part
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import CONTENT_TYPES, Package
from callboard.surfaces.documents._streamed_part import IrregularPartError
from callboard.surfaces.documents.excel._row_blocks import RowBlocks
from callboard.surfaces.documents.excel._shared_texts import SharedTexts, TextIndex
from callboard.surfaces.documents.excel._sheet_index import SheetIndex

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents._workspace import Snapshot

Index: TypeAlias = SheetIndex | TextIndex
_PLACEHOLDER_ID = "124519"
_NO_ROWS = b"<sheetData/>"


class WorkbookPackage(Package):
    """The parts of a workbook.

    The tree of a large sheet has no rows: `rows` gives them. An edit of its rows changes their blocks.
    """

    def __init__(self, document: str, parts: dict[str, bytes], data: bytes, indexes: Mapping[str, Index]) -> None:
        super().__init__(document, parts)
        self._data = data
        self._indexes = dict(indexes)
        self._rows: dict[str, RowBlocks] = {}

    @classmethod
    def load_streamed(cls, snapshot: Snapshot, max_bytes: int) -> Package:
        """Unpack a file, but for its large sheets and shared texts.

        Raises:
            ToolError: As `load` does.
        """
        large_parts = _large_parts(snapshot)
        if not large_parts:
            return Package.load(snapshot, max_bytes)
        indexes = snapshot.cache.get(snapshot.fingerprint, "indexes")
        if indexes is None:
            small_parts = _office.parts(snapshot, max_bytes, dict.fromkeys(large_parts, b""))
            indexes = _scan(Package(snapshot.document, small_parts), snapshot.data, large_parts)
            size_bytes = sum(index.size_bytes for index in indexes.values())
            snapshot.cache.keep(snapshot.fingerprint, "indexes", indexes, size_bytes)
        stand_ins = {name: index.skeleton for name, index in indexes.items()}
        return cls(snapshot.document, _office.parts(snapshot, max_bytes, stand_ins), snapshot.data, indexes)

    def rows(self, name: str, *, placeholders: bool) -> RowBlocks | None:
        """Return the rows of a large sheet; None for others."""
        index = self._indexes.get(name)
        if isinstance(index, SheetIndex) and name not in self._rows:
            self._rows[name] = RowBlocks(index, self, self._data, name, placeholders=placeholders)
        return self._rows.get(name)

    def texts(self, name: str) -> SharedTexts | None:
        """Return the texts of a large part; None for others."""
        index = self._indexes.get(name)
        return SharedTexts(index, self._data, (self.document, name)) if isinstance(index, TextIndex) else None

    def whole(self, name: str) -> Element:
        """Parse a part with all of its items."""
        if isinstance(self._indexes.get(name), TextIndex):
            self.replace(name, b"".join(self._chunks(name)))
        return self.tree(name)

    def bytes_of(self, name: str) -> bytes:
        """Return a part's bytes as they would be written now."""
        return b"".join(self._chunks(name)) if name in self._indexes else super().bytes_of(name)

    def replace(self, name: str, content: bytes) -> None:
        """Put other bytes in a part's place."""
        super().replace(name, content)
        self._indexes.pop(name, None)

    def _chunks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a part, piece by piece."""
        index = self._indexes.get(name)
        if index is None:
            yield super().bytes_of(name)
            return
        head, tail = index.part.head, index.part.tail
        if name in self._edited:
            head, mark, tail = super().bytes_of(name).partition(_NO_ROWS)
            head, tail = head + b"<sheetData>", b"</sheetData>" + tail
            if not mark:
                msg = f"its part {name} has no rows"
                raise self.damaged(msg)
        yield head
        rows = self._rows.get(name)
        if rows is not None:
            yield from rows.chunks()
        else:
            yield from (index.part.read(self._data, number) for number in range(len(index.part.blocks)))
        yield tail

    def _write(self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
        if entry.filename not in self._indexes:
            super()._write(archive, entry)
            return
        with archive.open(entry, "w") as part:
            for chunk in self._chunks(entry.filename):
                part.write(chunk)

    def _drop(self, name: str) -> None:
        super()._drop(name)
        self._indexes.pop(name, None)


def has_placeholders(root: Element) -> bool:
    """Return whether zeros may stand for results that were never computed.

    XlsxWriter, and libraries like it, store 0 as the result of each formula, with these settings of the workbook.
    """
    calculation = root.find(q("calcPr"))
    computed = calculation is None or calculation.get("fullCalcOnLoad") not in {"1", "true"}
    return not computed and calculation.get("calcId") == _PLACEHOLDER_ID


def _large_parts(snapshot: Snapshot) -> dict[str, zipfile.ZipInfo]:
    """Find the parts to read in blocks; none in a damaged file."""
    try:
        with BoundedZipFile(io.BytesIO(snapshot.data)) as archive:
            entries = {entry.filename: entry for entry in archive.infolist() if entry.filename.endswith(".xml")}
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError):
        return {}  # the caller reports it
    sheets = {
        name: entry
        for name, entry in entries.items()
        if "/worksheets/" in name and entry.file_size >= _streamed_part.STREAMED_BYTES
    }
    texts = {
        name: entry
        for name, entry in entries.items()
        if name.endswith("/sharedStrings.xml") and entry.file_size >= _streamed_part.BLOCK_BYTES
    }
    return sheets | texts if sheets else {}


def _scan(package: Package, data: bytes, large_parts: Mapping[str, zipfile.ZipInfo]) -> dict[str, Index]:
    """Read large sheets and shared texts once; unusual ones are left out."""
    package.tree(CONTENT_TYPES)
    part = next(iter(package.related("", "officeDocument")), "xl/workbook.xml")
    placeholders = has_placeholders(package.tree(part))
    sheets, texts = package.related(part, "worksheet"), package.related(part, "sharedStrings")
    indexes: dict[str, Index] = {}
    for name, entry in large_parts.items():
        try:
            if name in sheets:
                indexes[name] = SheetIndex.scan(data, entry, placeholders=placeholders)
            elif texts == [name]:
                indexes[name] = TextIndex.scan(data, entry)
        except IrregularPartError:
            continue  # it is read whole
    return indexes
