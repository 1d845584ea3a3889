"""Files of the engine: described by their contents, and written where none is."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import uuid
from typing import TYPE_CHECKING

from callboard.fleet._engine import DamagedFileError, StoredFile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


def describe_file(path: Path) -> StoredFile:
    """Return the name, the digest and the size of a file; it is read in parts."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return StoredFile(name=path.name, sha256=digest, size=stream.tell())


async def write_checked(file: StoredFile, path: Path, write: Callable[[Path], Awaitable[None]]) -> None:
    """Have a file written beside a path, and give it its name once its contents are right.

    Args:
        file: What the contents must be.
        path: The path. Its folder is made.
        write: Writes the contents to a path.

    Raises:
        DamagedFileError: If the contents are others; nothing is left.
        FileExistsError: If the path exists; it is not changed.
    """
    await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
    spare = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        await write(spare)
        written = await asyncio.to_thread(describe_file, spare)
        if (written.sha256, written.size) != (file.sha256, file.size):
            raise DamagedFileError.changed(file.name)
        await asyncio.to_thread(os.link, spare, path)  # unlike a rename, it replaces nothing
    finally:
        with contextlib.suppress(FileNotFoundError):
            await asyncio.to_thread(spare.unlink)
