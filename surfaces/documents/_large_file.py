"""A file that is read in parts, and not held in memory."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.surfaces import open_file
from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator
    from pathlib import Path

    from callboard.surfaces.documents._version_cache import VersionCache

_SETTLED_NS = 2_000_000_000
"""The age from which a file's times tell its versions apart; file systems round them, some to two seconds."""
_DIGEST_BYTES = 200
"""The memory of a kept fingerprint, about."""


@dataclass(frozen=True)
class LargeFile:
    """One version of a file on the disk.

    Threads may share it: each call opens the file for itself.
    """

    document: str
    path: Path
    size_bytes: int
    max_bytes: int
    """The most bytes that may be held in memory."""
    version: tuple[int, ...]
    """Its device, inode, size and times; another version has others."""

    @classmethod
    def of(cls, document: str, path: Path, status: os.stat_result, max_bytes: int) -> LargeFile:
        """Make one of a file's present version."""
        return cls(document, path, status.st_size, max_bytes, _version_of(status))

    @contextlib.contextmanager
    def open(self) -> Iterator[io.BufferedReader]:
        """Open the file for reading.

        Raises:
            ToolError: If it can't be read, or another program changed it since, or changes it meanwhile.
        """
        try:
            with open_file(self.path) as file:
                self._check(os.fstat(file.fileno()))
                yield file
                self._check(os.fstat(file.fileno()))
        except OSError as error:
            msg = f"{self.document!r} can't be read: {error.strerror}"
            raise ToolError(msg) from error

    def fingerprint(self, cache: VersionCache) -> str:
        """Return the SHA-256 of the file's bytes, in hexadecimal.

        It is kept as long as the file has the same inode, size and times.
        """
        version = str(self.version)
        digest: str | None = cache.get(version, "sha256")
        if digest is None:
            start_ns = time.time_ns()
            with self.open() as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if start_ns - max(self.version[-2:]) > _SETTLED_NS:
                cache.keep(version, "sha256", digest, _DIGEST_BYTES)
        return digest

    def read_whole(self) -> bytes:
        """Read all bytes.

        Raises:
            ToolError: If there are too many of them.
        """
        check_size(self.document, self.size_bytes, self.max_bytes)
        with self.open() as file:
            return file.read()

    def _check(self, status: os.stat_result) -> None:
        if _version_of(status) != self.version:
            msg = f"{self.document!r} was changed by another program while it was read; observe it again"
            raise ToolError(msg)


def _version_of(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def check_size(document: str, size_bytes: int, limit: int, setting: str = "documents.max_bytes") -> None:
    """Refuse a file that is too large.

    Raises:
        ToolError: If it is; the text names the setting.
    """
    if size_bytes > limit:
        msg = (
            f"{document!r} is too large: {size_bytes} bytes, and at most {limit} are read "
            f"({setting}); split it, or ask a person to raise the limit"
        )
        raise ToolError(msg)
