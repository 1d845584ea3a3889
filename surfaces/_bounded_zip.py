"""Archives of others, read with bounded memory."""

from __future__ import annotations

import zipfile
from typing import IO, Literal

_MOST_LIST_BYTES = 8_000_000
"""The most bytes of an archive's own list of files. It is read whole before it can be counted."""


class BoundedZipFile(zipfile.ZipFile):
    """An archive whose list and compressions can't fill the memory.

    bzip2 and LZMA are not read: the library unpacks the first in whole blocks, so that 1 kB takes 2 GB, and the second
    takes the memory that a file asks for.
    """

    METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})

    def __init__(self, file: IO[bytes]) -> None:
        """Read the list.

        Raises:
            zipfile.BadZipFile: If it is no archive.
            NotImplementedError: If its list is too long.
        """
        reader = _ArchiveFile(file)
        super().__init__(reader)
        reader.is_opened = True

    def open(
        self,
        name: str | zipfile.ZipInfo,
        mode: Literal["r", "w"] = "r",
        pwd: bytes | None = None,
        *,
        force_zip64: bool = False,
    ) -> IO[bytes]:
        """Open an entry.

        Raises:
            NotImplementedError: If its compression is not read.
        """
        entry = self.getinfo(name) if isinstance(name, str) else name
        if entry.compress_type not in self.METHODS:
            msg = f"the compression of {entry.filename!r} is not read"
            raise NotImplementedError(msg)
        return super().open(entry, mode, pwd, force_zip64=force_zip64)


class _ArchiveFile:
    """The file of an archive."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable
        self.is_opened = False

    def read(self, size: int = -1) -> bytes:
        if size > _MOST_LIST_BYTES and not self.is_opened:
            msg = f"its list of files is larger than {_MOST_LIST_BYTES} bytes"
            raise NotImplementedError(msg)
        return self._file.read(size)
