"""The services of a device on adb's streams: shell commands and files.

Source: SYNC.TXT, and shell_protocol.h of Android's adb.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Run = Callable[[str, asyncio.StreamReader], Awaitable[tuple[int, bytes, bytes]]]
Place = Callable[[str], Path | None]
_CHUNK = 32 * 1024
_STDIN, _STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = range(5)
_LONGEST_PATH = 1024
_PERMISSIONS = 0o777


class AdbStream:
    """One service that the other side has opened.

    Args:
        write: Sends a message to the other side, which acknowledges it.
        take: Acknowledges a message of the other side, so that it may send the next one.
    """

    def __init__(self, write: Callable[[bytes], None], take: Callable[[], None]) -> None:
        self._write = write
        self._take = take
        self.arrived: asyncio.Queue[bytes] = asyncio.Queue()
        self.acknowledged = asyncio.Event()
        self._buffer = b""

    async def part(self) -> bytes:
        """Read the data that has arrived."""
        data, self._buffer = self._buffer, b""
        if not data:
            data = await self.arrived.get()
            self._take()
        return data

    async def read(self, size: int) -> bytes:
        """Read a number of bytes."""
        data = b""
        while len(data) < size:
            data += await self.part()
        data, self._buffer = data[:size], data[size:]
        return data

    async def write(self, data: bytes) -> None:
        """Write; each message waits for the acknowledgement of the previous one."""
        for start in range(0, len(data), _CHUNK):
            self.acknowledged.clear()
            self._write(data[start : start + _CHUNK])
            await self.acknowledged.wait()


class ShellService:
    """A command of the device's shell.

    Args:
        run: Runs it.
        command: The command.
        packets: Whether the protocol separates both outputs and the exit code, and marks the end of the input.
    """

    def __init__(self, run: Run, command: str, *, packets: bool) -> None:
        self._run = run
        self._command = command
        self._packets = packets

    async def serve(self, stream: AdbStream) -> None:
        """Run it to its end. Its input may come later, or never."""
        input_stream = asyncio.StreamReader()
        feeding = asyncio.ensure_future(self._feed(stream, input_stream))
        try:
            code, out, err = await self._run(self._command, input_stream)
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
        if not self._packets:
            await stream.write(out + err)
            return
        for kind, data in ((_STDOUT, out), (_STDERR, err), (_EXIT, bytes([code]))):
            if data:
                await stream.write(bytes([kind]) + len(data).to_bytes(4, "little") + data)

    async def _feed(self, stream: AdbStream, input_stream: asyncio.StreamReader) -> None:
        while not self._packets:
            input_stream.feed_data(await stream.part())
        while (head := await stream.read(5))[0] != _CLOSE_STDIN:
            data = await stream.read(int.from_bytes(head[1:], "little"))
            if head[0] == _STDIN:
                input_stream.feed_data(data)
        input_stream.feed_eof()


class FileService:
    """The device's files.

    Args:
        local_path: Returns the file of this machine for a path of the device.
    """

    def __init__(self, local_path: Place) -> None:
        self._local_path = local_path

    async def serve(self, stream: AdbStream) -> None:
        """Answer requests until the last one."""
        while True:
            request, size = struct.unpack("<4sI", await stream.read(8))
            if request == b"QUIT":
                return
            if size > _LONGEST_PATH:
                await stream.write(_failed("the path is too long"))
                return
            path = (await stream.read(size)).decode(errors="surrogateescape")
            if request == b"SEND":
                await self._send(stream, *path.rsplit(",", 1))
                continue
            answers = {b"STAT": self._stat, b"LIST": self._list, b"RECV": self._receive}.get(request)
            if answers is None:
                await stream.write(_failed("the request is not known"))
                return
            for answer in answers(path):
                await stream.write(answer)

    def _local_file(self, path: str) -> Path:
        file = self._local_path(path)
        if file is None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return file

    def _stat(self, path: str) -> Iterator[bytes]:
        with contextlib.suppress(OSError):
            yield b"STAT" + _stat_bytes(self._local_file(path))
            return
        yield b"STAT" + bytes(12)

    def _list(self, path: str) -> Iterator[bytes]:
        with contextlib.suppress(OSError):
            for entry in sorted(self._local_file(path).iterdir()):
                name = os.fsencode(entry.name)
                yield b"DENT" + _stat_bytes(entry) + struct.pack("<I", len(name)) + name
        yield b"DONE" + bytes(16)

    def _receive(self, path: str) -> Iterator[bytes]:
        try:
            with self._local_file(path).open("rb") as file:
                while data := file.read(_CHUNK):
                    yield struct.pack("<4sI", b"DATA", len(data)) + data
        except OSError as error:
            yield _failed(f"open failed: {error.strerror}")
            return
        yield b"DONE" + bytes(4)

    async def _send(self, stream: AdbStream, path: str, mode: str = "644") -> None:
        """Receive a file.

        Read all its data, even if it can't be written.
        """
        failed, parts = "", list[bytes]()
        while (head := struct.unpack("<4sI", await stream.read(8)))[0] == b"DATA":
            parts.append(await stream.read(head[1]))
        try:
            if path.endswith("/"):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            file = self._local_file(path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"".join(parts))
            file.chmod((int(mode, 0) if mode.isalnum() else 0o644) & _PERMISSIONS)
            os.utime(file, (head[1], head[1]))
        except (OSError, ValueError) as error:
            failed = f"couldn't create file: {error}"
        await stream.write(_failed(failed) if failed else b"OKAY" + bytes(4))


def _stat_bytes(file: Path) -> bytes:
    status = file.lstat()
    mode = stat.S_IFMT(status.st_mode) | stat.S_IMODE(status.st_mode)
    return struct.pack("<3I", mode, status.st_size & 0xFFFFFFFF, int(status.st_mtime) & 0xFFFFFFFF)


def _failed(why: str) -> bytes:
    text = why.encode(errors="replace")
    return struct.pack("<4sI", b"FAIL", len(text)) + text
