"""The pictures of a journal: files named by what is in them, in a folder beside it.

A row holds the digest where the message has a picture. Which fields those are is read from the messages' types, once a
class, so that a message that can't have a picture costs nothing.
"""

from __future__ import annotations

import functools
import hashlib
import os
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import BaseModel

from callboard.actors.journal._failures import beside

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from callboard.messages import Message

_M = TypeVar("_M", bound="Message")


class Pictures:
    """A journal's pictures. One thread's, as the journal is."""

    def __init__(self, journal: Path, *, durable: bool = True) -> None:
        self.folder = _folder(journal)
        self._durable = durable
        self._unsynced: set[Path] = set()

    def put_away(self, message: _M, kept: Callable[[str, int], None]) -> _M:
        """Write the pictures of a message to files, and give the message with their digests in their place.

        Args:
            message: The message.
            kept: Is told the name and the size of each picture.
        """

        def put(picture: bytes) -> bytes:
            digest = hashlib.sha256(picture).digest()
            self._write(digest.hex(), picture)
            kept(digest.hex(), len(picture))
            return digest

        if not _holders(type(message)):
            return message
        changed: _M = _exchanged(message, put)
        return changed

    def bring_back(self, message: _M) -> _M:
        """Give a message that was read with its pictures; without those whose file is lost or damaged."""
        changed: _M = _exchanged(message, self._read)
        return changed

    def sync(self) -> None:
        """Have the names of what was written on the disk, too; the pictures themselves are there already."""
        for folder in self._unsynced:
            sync_folder(folder)
        self._unsynced.clear()

    def sweep(self, named: Collection[str]) -> None:
        """Delete all files but the pictures that are named."""
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
            if not folder.is_dir():
                folder.mkdir(mode=0o700)
                self._to_sync(folder.parent)
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(picture)
            if self._durable:
                file.flush()
                os.fsync(descriptor)
        part.replace(path)
        self._to_sync(path.parent)

    def _read(self, digest: bytes) -> bytes | None:
        try:
            picture = self._path(digest.hex()).read_bytes()
        except OSError:
            return None
        return picture if hashlib.sha256(picture).digest() == digest else None

    def _path(self, name: str) -> Path:
        return _at(self.folder, name)

    def _to_sync(self, folder: Path) -> None:
        if self._durable:
            self._unsynced.add(folder)


def picture_path(journal: Path, picture: bytes) -> Path:
    """Tell where a journal keeps a picture."""
    return _at(_folder(journal), hashlib.sha256(picture).hexdigest())


def without_pictures(message: _M) -> _M:
    """Give a message without its pictures."""
    bare: _M = _exchanged(message, lambda _: None)
    return bare


def _folder(journal: Path) -> Path:
    return beside(journal, ".pictures")


def _at(folder: Path, name: str) -> Path:
    return folder / name[:2] / f"{name}.png"


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk; Windows does so by itself."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _exchanged(value: Any, exchange: Callable[[bytes], bytes | None]) -> Any:  # noqa: ANN401 - any part of a message
    """Give a value with all bytes in it exchanged; the same object where there are none."""
    match value:
        case bytes():
            return exchange(value)
        case BaseModel():
            parts = ((name, getattr(value, name)) for name in _holders(type(value)))
            after = [(name, part, _exchanged(part, exchange)) for name, part in parts if part is not None]
            changes = {name: new for name, old, new in after if new is not old}
            return value.model_copy(update=changes) if changes else value
        case tuple():
            items = tuple(_exchanged(item, exchange) for item in value)
            if all(new is old for new, old in zip(items, value, strict=True)):
                return value
            return tuple(new for new, old in zip(items, value, strict=True) if new is not None or old is None)
        case _:
            return value


@functools.cache
def _holders(model: type[BaseModel]) -> tuple[str, ...]:
    """Name the fields of a model that can have bytes in them, at whatever depth."""
    return tuple(name for name, field in model.model_fields.items() if _can_hold(field.annotation, frozenset()))


def _can_hold(annotation: object, within: frozenset[object]) -> bool:
    if annotation is bytes:
        return True
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = [] if annotation in within else annotation.model_fields.values()
        return any(_can_hold(field.annotation, within | {annotation}) for field in fields)
    return any(_can_hold(argument, within) for argument in get_args(annotation))
