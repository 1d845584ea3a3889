"""Files of the engine: their digests, and checked copies of them."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import uuid
from typing import TYPE_CHECKING

from callboard.fleet._engine import DamagedFileError, StoredFile
from callboard.surfaces import publish_file

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


def describe_file(path: Path, owner: str, writer: str, reader: str) -> StoredFile:
    """Return the name, digest and size of a file."""
    digest, size = digest_of(path)
    return StoredFile(name=path.name, sha256=digest, size=size, owner=owner, writer=writer, reader=reader)


def digest_of(path: Path) -> tuple[str, int]:
    """Return the digest and size of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest(), stream.tell()


async def write_checked(file: StoredFile, path: Path, write: Callable[[Path], Awaitable[None]]) -> None:
    """Write a file to a new path, once its contents are checked.

    Args:
        file: The expected contents.
        path: The path. Its folder is created.
        write: Writes the contents to a path.

    Raises:
        DamagedFileError: If the contents are others; nothing is left.
        FileExistsError: If the path exists; it is not changed.
    """
    await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
    spare = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        await write(spare)
        if await asyncio.to_thread(digest_of, spare) != (file.sha256, file.size):
            raise DamagedFileError.changed(file.name)
        await asyncio.to_thread(publish_file, spare, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            await asyncio.to_thread(spare.unlink)
