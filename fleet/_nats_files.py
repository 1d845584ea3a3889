"""Files in a stream of JetStream.

JetStream's object store is not used: it tells all machines the names of all files, and lets each of them delete all.
"""

from __future__ import annotations

import asyncio
import hashlib
import weakref
from typing import TYPE_CHECKING

from nats.js.api import DeliverPolicy, DiscardPolicy, StreamConfig
from nats.js.errors import BadRequestError, NotFoundError

from callboard.fleet._engine import DamagedFileError
from callboard.fleet._nats_reader import StreamReader
from callboard.fleet._permissions import ALL_MACHINES, FILE_SUBJECT, FILES
from callboard.fleet._stored_files import describe_file, write_checked

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BufferedReader
    from pathlib import Path

    from callboard.fleet._engine import StoredFile
    from callboard.fleet._nats_reader import JetStream

_CHUNK_BYTES = 128 * 1024
_FETCH_SECONDS = 30.0
_BYTES_A_SECOND = 1_000_000
"""The slowest transfer of a file that counts as one that goes on."""
MARKER_SECONDS = 600.0
"""The time that a server keeps the marker of something deleted; one before 2.11 keeps it for ever."""
_PART = "Callboard-Part"
_MORE, _LAST = "more", "last"
_ROLLUP = {"Nats-Rollup": "sub"}
"""The header of a message that replaces the earlier ones of its subject."""

FILES_CONFIG = StreamConfig(
    name=FILES,
    subjects=[f"{FILE_SUBJECT}.>"],
    discard=DiscardPolicy.NEW,
    allow_rollup_hdrs=True,
    allow_direct=True,
    allow_msg_ttl=True,
)


class NatsFiles:
    """The files of a fleet, each the messages of one subject.

    The subject names the machine that reads it, and the one that has written it. Both may delete it.
    """

    def __init__(self, stream: JetStream, name: str) -> None:
        self._stream = stream
        self._context = stream.context
        self._name = name
        self._locks: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()
        """Held while a file is stored, by its subject."""

    async def store(self, path: Path, owner: str, reader: str) -> StoredFile:
        """Store a file, unless it is."""
        file = await asyncio.to_thread(describe_file, path, owner, self._name, reader)
        subject = _subject(file)
        async with self._locks.setdefault(subject, asyncio.Lock()):
            if not await self._is_stored(subject):
                with await asyncio.to_thread(path.open, "rb") as stream:
                    await self._write(subject, stream)
        return file

    async def _is_stored(self, subject: str) -> bool:
        try:
            message = await self._context.get_msg(FILES, subject=subject, direct=True)
        except NotFoundError:
            return False
        return (message.headers or {}).get(_PART) == _LAST

    async def _write(self, subject: str, stream: BufferedReader) -> None:
        chunk, headers = await asyncio.to_thread(stream.read, _CHUNK_BYTES), dict(_ROLLUP)
        while True:
            following = await asyncio.to_thread(stream.read, _CHUNK_BYTES)
            headers[_PART] = _MORE if following else _LAST
            await self._context.publish(subject, chunk, headers=headers)
            if not following:
                return
            chunk, headers = following, {}

    async def load(self, file: StoredFile, path: Path) -> None:
        """Write a stored file to a new path.

        Raises:
            DamagedFileError: If its contents do not match its digest, or it is no longer stored.
            FileExistsError: If the path exists.
        """

        async def write(spare: Path) -> None:
            with await asyncio.to_thread(spare.open, "xb") as stream:
                async with asyncio.timeout(_FETCH_SECONDS + file.size / _BYTES_A_SECOND):
                    await self._read(file, stream.write)

        await write_checked(file, path, write)

    async def _read(self, file: StoredFile, write: Callable[[bytes], object]) -> None:
        part = ""
        reader = await StreamReader.begin(self._stream, FILES, _subject(file), DeliverPolicy.ALL)
        try:
            async for message in reader.read_pending():
                part = (message.headers or {}).get(_PART, "")
                await asyncio.to_thread(write, message.data)
        finally:
            await reader.end()
        if part != _LAST:
            raise DamagedFileError.missing(file.name)

    async def discard(self, file: StoredFile) -> None:
        """Delete a stored file."""
        try:
            await self._context.publish(_subject(file), headers=dict(_ROLLUP), msg_ttl=MARKER_SECONDS)
        except BadRequestError:  # an older server made the stream: `set_up` changes it
            await self._context.publish(_subject(file), headers=dict(_ROLLUP))


def _subject(file: StoredFile) -> str:
    digest = hashlib.sha256(f"{file.owner}/{file.sha256}".encode()).hexdigest()
    return f"{FILE_SUBJECT}.{file.reader or ALL_MACHINES}.{file.writer}.{digest}"
