"""Content-addressed storage of a journal's pictures, as files beside it.

In a row, the digest of a picture replaces it.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, TypeVar

from callboard.config import create_own, own_folder
from callboard.journal._failures import beside
from callboard.journal._parts import exchanged

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from callboard.messages import Value

_M = TypeVar("_M", bound="Value")


class Pictures:
    """The pictures of a journal. Not thread-safe."""

    def __init__(self, journal: Path, *, durable: bool = True) -> None:
        self.folder = _folder(journal)
        self._durable = durable
        self.unsynced: set[Path] = set()
        """Folders with new entries that are not synced to the disk yet."""

    def write(self, picture: bytes) -> bytes:
        """Write a picture to its file, and return its digest."""
        digest = hashlib.sha256(picture).digest()
        self._write(digest.hex(), picture)
        return digest

    def read(self, digest: bytes) -> bytes | None:
        """Read a picture; None if its file is lost or damaged."""
        try:
            picture = self._path(digest.hex()).read_bytes()
        except OSError:
            return None
        return picture if hashlib.sha256(picture).digest() == digest else None

    def sync(self) -> None:
        """Sync the folders of new files; their contents are synced already."""
        for folder in self.unsynced:
            sync_folder(folder)
        self.unsynced.clear()

    def sweep(self, named: Collection[str]) -> None:
        """Delete all files except the named pictures."""
        if not self.folder.is_dir():
            return
        for path in self.folder.glob("*/*"):
            if path.suffix != ".png" or path.stem not in named:
                path.unlink(missing_ok=True)

    def _write(self, name: str, picture: bytes) -> None:
        path = self._path(name)
        if path.is_file() and path.stat().st_size == len(picture):
            return
        for folder in (self.folder, path.parent):
            if own_folder(folder):
                self._to_sync(folder.parent)
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        descriptor = create_own(part)
        with os.fdopen(descriptor, "wb") as file:
            file.write(picture)
            if self._durable:
                file.flush()
                os.fsync(descriptor)
        part.replace(path)
        self._to_sync(path.parent)

    def _path(self, name: str) -> Path:
        return _at(self.folder, name)

    def _to_sync(self, folder: Path) -> None:
        if self._durable:
            self.unsynced.add(folder)


class PictureDigests(Pictures):
    """The pictures of a journal, told by their digests."""

    def read(self, digest: bytes) -> bytes | None:
        """Return the digest."""
        return digest

    def picture(self, digest: bytes) -> bytes | None:
        """Read a picture; None if its file is lost or damaged."""
        return super().read(digest)


def picture_path(journal: Path, picture: bytes) -> Path:
    """Return the path of a picture's file."""
    return _at(_folder(journal), hashlib.sha256(picture).hexdigest())


def without_pictures(message: _M) -> _M:
    """Remove the pictures from a message."""
    bare: _M = exchanged(message, {bytes: lambda _: None})
    return bare


def _folder(journal: Path) -> Path:
    return beside(journal, ".pictures")


def _at(folder: Path, name: str) -> Path:
    return folder / name[:2] / f"{name}.png"


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries to the disk; Windows does so by itself."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
