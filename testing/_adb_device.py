"""The device's side of adb.

A real adb server connects to it over TCP.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import struct
from typing import TYPE_CHECKING

from callboard.testing._adb_services import AdbStream, FileService, ShellService

if TYPE_CHECKING:
    from callboard.testing._adb_services import Place, Run

_HEAD = struct.Struct("<6I")
_CONNECT, _OPEN, _OKAY, _CLOSE, _WRITE, _AUTH = (
    int.from_bytes(name, "little") for name in (b"CNXN", b"OPEN", b"OKAY", b"CLSE", b"WRTE", b"AUTH")
)
_VERSION = 0x01000001
"""The first version whose messages need no checksum."""
_MOST = 256 * 1024
_TOKEN, _SIGNATURE = 1, 2
_ROUNDS = 4
"""Rounds of the event loop from an accepted connection to the start of its task."""


class AdbDevice:
    """A device on loopback for an adb server.

    It serves ``adb shell``, ``exec-out``, ``push`` and ``pull``.

    Args:
        run: Runs a command of the device's shell: it gets the command and its input, and returns the exit code and
            both outputs.
        model: The model that the device reports.
        place: Returns the file of this machine for a path of the device; None where files can't be reached.
    """

    def __init__(self, run: Run, model: str = "Stand-in", place: Place = lambda _path: None) -> None:
        self._run = run
        self._model = model
        self._local_path = place
        self._server: asyncio.Server | None = None
        self._links: dict[_Link, asyncio.Task[None] | None] = {}
        self.port = 0
        self.authorized = True
        """False for a device on which this machine was not allowed yet."""

    @property
    def serial(self) -> str:
        """The serial in an adb server's list.

        It is the address to connect to.
        """
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start to accept connections; again on the same port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Cut all connections and accept no more.

        This is like a device whose cable is pulled.
        """
        if self._server is not None:
            await self._accept_no_more(self._server)
            self._server.close()
            await self._server.wait_closed()
            self._server = None
            links = dict(self._links)
            for link in links:
                link.cut()
            await asyncio.gather(*filter(None, links.values()), return_exceptions=True)

    async def _accept_no_more(self, server: asyncio.Server) -> None:
        """Stop listening; connections that were just accepted become links first.

        The event loop accepts a connection in one round and starts its task some rounds later. A server that closes
        in between never starts it, and its connection would stay open for ever.
        """
        loop = asyncio.get_running_loop()
        for listening in server.sockets:
            loop.remove_reader(listening.fileno())
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(reader, writer, self, f"device::ro.product.model={self._model};features=shell_v2,cmd")
        self._links[link] = asyncio.current_task()
        try:
            await link.serve(authorized=self.authorized)
        finally:
            del self._links[link]

    def service(self, name: str) -> ShellService | FileService | None:
        """Return the service for a stream; None where the device has none."""
        kind, _, command = name.partition(":")
        options = kind.split(",")
        if options[0] == "shell":
            return ShellService(self._run, command, packets="v2" in options)
        if kind == "exec":
            return ShellService(self._run, command, packets=False)
        return FileService(self._local_path) if kind == "sync" else None


class _Link:
    """A connection of an adb server."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, device: AdbDevice, banner: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._device = device
        self._banner = banner.encode()
        self._streams: dict[int, AdbStream] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._ids = itertools.count(1)

    def send(self, what: int, first: int, second: int, data: bytes = b"") -> None:
        """Send a message."""
        self._writer.write(_HEAD.pack(what, first, second, len(data), 0, what ^ 0xFFFFFFFF) + data)

    def cut(self) -> None:
        """Break the connection."""
        self._writer.transport.abort()

    async def serve(self, *, authorized: bool) -> None:
        """Serve the connection to its end."""
        try:
            while True:
                what, first, second, size, _, _ = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
                data = await self._reader.readexactly(size)
                if what == _CONNECT and authorized:
                    self.send(_CONNECT, _VERSION, _MOST, self._banner)
                elif what == _CONNECT or (what == _AUTH and first == _SIGNATURE):
                    self.send(_AUTH, _TOKEN, 0, bytes(20))  # unknown key; a real device would ask a person
                else:
                    self._take(what, first, second, data)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    def _take(self, what: int, first: int, second: int, data: bytes) -> None:
        stream = self._streams.get(second)
        if what == _OPEN:
            self._open(first, data.rstrip(b"\0").decode(errors="replace"))
        elif stream is not None and what == _OKAY:
            stream.acknowledged.set()
        elif stream is not None and what == _WRITE:
            stream.arrived.put_nowait(data)
        elif stream is not None and what == _CLOSE:
            del self._streams[second]
            self._tasks.pop(second).cancel()

    def _open(self, theirs: int, name: str) -> None:
        service = self._device.service(name)
        if service is None:
            self.send(_CLOSE, 0, theirs)
            return
        mine = next(self._ids)

        def write(data: bytes) -> None:
            self.send(_WRITE, mine, theirs, data)

        stream = self._streams[mine] = AdbStream(write, lambda: self.send(_OKAY, mine, theirs))
        self.send(_OKAY, mine, theirs)
        task = self._tasks[mine] = asyncio.ensure_future(self._serve(service, stream, mine, theirs))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _serve(self, service: ShellService | FileService, stream: AdbStream, mine: int, theirs: int) -> None:
        await service.serve(stream)
        self.send(_CLOSE, mine, theirs)
