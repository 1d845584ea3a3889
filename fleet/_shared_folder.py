"""Files in a folder that machines of a fleet share."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import stat
from typing import TYPE_CHECKING

from callboard.fleet._engine import DamagedFileError
from callboard.fleet._stored_files import describe_file, write_checked
from callboard.surfaces import is_link, open_file

if TYPE_CHECKING:
    from io import BufferedReader
    from pathlib import Path

    from callboard.fleet._engine import StoredFile

_CHUNK_BYTES = 1024 * 1024


class SharedFolder:
    """Copies of files, each under its writer, its task and its digest.

    Machines may have the folder at different paths. No name in it comes from another machine's message: a path is made
    of a checked name, a digest of the task's id and a checked digest. No link within it is followed.
    """

    def __init__(self, folder: Path, name: str) -> None:
        """Create it for the machine of a name."""
        self._folder = folder
        self._name = name

    async def store(self, path: Path, owner: str, reader: str = "") -> StoredFile:
        """Copy a file for another machine, unless its copy is there.

        Raises:
            DamagedFileError: If it changes meanwhile, or something else stands in the place of its copy.
            OSError: If it can't be copied.
        """
        file = await asyncio.to_thread(describe_file, path, owner, self._name, reader)
        file = file.model_copy(update={"shared": True})
        copy = await asyncio.to_thread(self._new_path, file)

        async def write(spare: Path) -> None:
            await asyncio.to_thread(lambda: _copy(path.resolve(), spare, file))

        try:
            await write_checked(file, copy, write)
        except FileExistsError:
            if await asyncio.to_thread(_digest, copy, file) != file.sha256:
                raise DamagedFileError.changed(file.name) from None
        return file

    async def load(self, file: StoredFile, path: Path) -> None:
        """Write a file's copy to a new path.

        Raises:
            DamagedFileError: If it is missing, or its contents do not match its digest.
            FileExistsError: If the path exists.
            OSError: If it can't be copied.
        """
        copy = self._path(file)

        async def write(spare: Path) -> None:
            await asyncio.to_thread(_copy, copy, spare, file)

        if not await asyncio.to_thread(self._is_real, copy.parent):
            raise DamagedFileError.missing(file.name)
        await write_checked(file, path, write)

    async def discard(self, file: StoredFile) -> None:
        """Delete a file's copy, with its task's empty folder.

        Raises:
            OSError: If it can't be deleted.
        """
        await asyncio.to_thread(self._delete, self._path(file))

    def _delete(self, copy: Path) -> None:
        if not self._is_real(copy.parent):
            return
        copy.unlink(missing_ok=True)
        for spare in copy.parent.glob(".*.part"):  # of a killed process
            spare.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it has other files
            copy.parent.rmdir()

    def _path(self, file: StoredFile) -> Path:
        owner = hashlib.sha256(file.owner.encode()).hexdigest()[:24]
        return self._folder / file.writer / owner / file.sha256

    def _new_path(self, file: StoredFile) -> Path:
        """Return a copy's path, whose folders are made.

        The shared folder itself is not: one that is not mounted is missing.

        Raises:
            DamagedFileError: If something else stands in the place of one of them.
            OSError: If one can't be made.
        """
        path = self._path(file)
        for folder in (path.parent.parent, path.parent):
            folder.mkdir(exist_ok=True)
            if not self._is_real(folder):
                raise DamagedFileError.changed(file.name)
        return path

    def _is_real(self, folder: Path) -> bool:
        """Return whether a path leads through folders only, and no link."""
        for path in (folder, *folder.parents):
            if path == self._folder:
                return True
            if is_link(path) or not path.is_dir():
                return False
        return False


def _copy(source: Path, spare: Path, file: StoredFile) -> None:
    """Copy the contents of a file that has the expected size.

    Raises:
        DamagedFileError: If it is missing, no file, or of another size.
    """
    with _opened(source, file) as stream, spare.open("xb") as copy:
        while copy.tell() < file.size and (chunk := stream.read(min(_CHUNK_BYTES, file.size - copy.tell()))):
            copy.write(chunk)


def _digest(path: Path, file: StoredFile) -> str:
    with _opened(path, file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _opened(path: Path, file: StoredFile) -> BufferedReader:
    """Open a regular file that has the expected size.

    Raises:
        DamagedFileError: If it is missing, no file, or of another size.
    """
    try:
        stream = open_file(path)
    except (FileNotFoundError, NotADirectoryError):
        raise DamagedFileError.missing(file.name) from None
    except OSError:
        if is_link(path):
            raise DamagedFileError.changed(file.name) from None
        raise
    status = os.fstat(stream.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_size != file.size or is_link(path):
        stream.close()
        raise DamagedFileError.changed(file.name)
    return stream
