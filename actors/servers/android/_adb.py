"""A client of the adb server, the program through which all programs of a machine reach its Android devices.

It speaks the server's own protocol on a socket (``docs/dev/services.md`` and ``protocol.txt`` of Android's platform
tools): a command costs a connection, and no process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from callboard.actors.servers._server import InDoubtError, ToolError
from callboard.actors.servers.android._adb_process import AdbProcess
from callboard.messages import reason_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    Commit = Callable[[], AbstractContextManager[None]]

PORT = 5037
"""Where the adb server listens, unless something else is set."""
_POLL_SECONDS = 0.02
_CONNECT_SECONDS = 5.0
_ASK_SECONDS = 15.0
"""The longest that the server may take to answer: it tries for 10 s to reach a device over the network."""
MOST_BYTES = 50_000_000
"""The most bytes that a command on a device may print."""
_LONGEST = 0xFFFF
"""The longest request, in bytes: its length has four hexadecimal digits."""
_CLOSED = "closed"
"""The server's answer if the connection to a device ends while a command is handed over to it."""
_MOST_SAID = 500
"""The characters of an error of the device that are told."""
_STDIN, _STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = range(5)
_LISTED = re.compile(
    r"^(?P<serial>\S.*?)\s+(?P<state>device|offline|unauthorized|authorizing|connecting|bootloader|host|recovery|rescue"
    r"|sideload|detached|no permissions|unknown)(?P<rest>(?:\s.*|;.*|\(.*)?)$"
)
"""A line of the list of devices. A serial may have blanks: ``adb-29241JEG (2)._adb-tls-connect._tcp``."""
_THROWN = re.compile(r"^(?:[\w.$]+\.)?\w*(?:Exception|Error)\b")


class DeviceState(StrEnum):
    """The states of a device in which it can't be used, and the one in which it can."""

    DEVICE = "device"
    """It can be used."""
    OFFLINE = "offline"
    UNAUTHORIZED = "unauthorized"
    OTHER = "other"

    @classmethod
    def _missing_(cls, value: object) -> DeviceState:
        return cls.OTHER


@dataclass(frozen=True)
class Listed:
    """A device that the adb server knows."""

    serial: str
    state: DeviceState
    told: str
    """The state, as the server calls it."""
    model: str = ""


@dataclass(frozen=True)
class Ran:
    """What a command on a device has printed, and its exit code."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """What it has printed on its standard output."""
        return self.out.decode(errors="replace")

    @property
    def error(self) -> str:
        """The line of its standard error that says most: what was thrown, else the last one."""
        lines = [line.strip() for line in self.err.decode(errors="replace").splitlines()]
        said = [line for line in lines if line and not line.startswith(("at ", "Exception occurred while executing"))]
        return next(filter(_THROWN.match, said), said[-1] if said else "")[:_MOST_SAID]


class AdbError(ToolError):
    """The adb server refuses, or can't be reached; nothing was done on a device."""


class _RefusedError(AdbError):
    """No server listens."""


class _UnansweredError(AdbError):
    """The server has broken off before it answered: what it was asked for may have been begun."""


class Adb:
    """An adb server. For coroutines; it keeps no connection between two calls.

    Args:
        program: The program adb, which starts a server where there is none. None: one has to run.
        port: Where the server listens on this machine.
        environment: The environment of a server that is started; this program's by default.
    """

    def __init__(self, program: Path | None, port: int = PORT, environment: Mapping[str, str] | None = None) -> None:
        self._program = program
        self.port = port
        self._environment = environment
        self._process = AdbProcess()
        """The server, if this program has started it; only then it may end it."""
        self._turn = asyncio.Lock()
        self._open = False

    @property
    def started(self) -> bool:
        """Whether this program has started the server, and it still runs."""
        return self._process.runs

    async def start(self) -> None:
        """See to it that a server runs, until `stop`. One that runs is used, of whatever version it is.

        Raises:
            AdbError: If there is none, and none can be started; or if it does not answer.
        """
        async with self._turn:
            try:
                await self._ask("host:version")
            except _RefusedError:
                await self._launch()
            self._open = True

    async def stop(self) -> None:
        """End the server, if this program has started it."""
        self._open = False
        await self._process.end()

    async def _launch(self) -> None:
        if self._program is None:
            msg = f"no adb server listens on port {self.port}, and there is no program adb: apt-get install adb"
            raise AdbError(msg)
        try:
            if await self._process.start(self._program, self.port, self._environment):
                return
        except OSError as error:
            msg = f"the program {str(self._program)!r} does not run: {reason_of(error)}"
            raise AdbError(msg) from error
        try:
            await self._ask("host:version")  # another program was faster
        except AdbError as error:
            msg = f"the adb server does not start on port {self.port}; its log is adb.{os.getuid()}.log in /tmp"
            raise AdbError(msg) from error

    async def ask(self, service: str) -> str:
        """Ask the server for something that it answers with a text.

        Raises:
            AdbError: If it refuses, can't be reached, or takes longer than 15 s.
        """
        try:
            return await self._ask(service)
        except _RefusedError:
            await self._revive()
            return await self._ask(service)

    async def _revive(self) -> None:
        """Start a server again: the one that was used has ended. To be called while an error is handled."""
        if not self._open:
            raise  # noqa: PLE0704 - that of the caller
        await self.start()

    async def _ask(self, service: str) -> str:
        try:
            async with asyncio.timeout(_ASK_SECONDS), self._opened(service) as (reader, _):
                try:
                    size = int(await reader.readexactly(4), 16)
                    return (await reader.readexactly(size)).decode(errors="replace")
                except (OSError, asyncio.IncompleteReadError, ValueError):
                    return ""  # it answers nothing but that it is done
        except TimeoutError as error:
            msg = f"the adb server on port {self.port} gives no answer to {service.partition(':')[2]!r}"
            raise AdbError(msg) from error

    async def devices(self) -> tuple[Listed, ...]:
        """List the devices that the server knows, in the order of their serials."""
        found = []
        for line in (await self.ask("host:devices-l")).splitlines():
            match = _LISTED.match(line)
            if match is not None:
                facts = dict(each.split(":", 1) for each in match["rest"].split() if ":" in each)
                told = match["state"]
                found.append(Listed(match["serial"], DeviceState(told), told, facts.get("model", "").replace("_", " ")))
        return tuple(sorted(found, key=lambda each: each.serial))

    async def connect(self, address: str) -> None:
        """Connect to a device over the network, and wait for some seconds until it can be used.

        A server goes on calling one connected that was lost, even for a moment after it was told to disconnect it. Its
        connection is given up then, and made again.

        Raises:
            AdbError: If it can't be reached.
        """
        told = await self.ask(f"host:connect:{address}")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CONNECT_SECONDS):
                while (state := await self._state(address)) not in {DeviceState.DEVICE, DeviceState.UNAUTHORIZED}:
                    if told.startswith("already connected"):
                        if state is DeviceState.OFFLINE:
                            with contextlib.suppress(AdbError):  # it is gone already
                                await self.ask(f"host:disconnect:{address}")
                        told = await self.ask(f"host:connect:{address}")
                    elif not told.startswith("connected"):
                        break
                    await asyncio.sleep(_POLL_SECONDS)
        if not told.startswith(("connected", "already connected")):
            raise AdbError(told or f"{address} can't be reached")

    async def _state(self, serial: str) -> DeviceState:
        return next((each.state for each in await self.devices() if each.serial == serial), DeviceState.OTHER)

    async def shell(
        self,
        serial: str,
        command: str,
        data: bytes = b"",
        seconds: float = 30.0,
        commit: Commit = contextlib.nullcontext,
    ) -> Ran:
        """Run a command on a device, and wait for its end.

        Args:
            serial: The device's.
            command: For the device's shell.
            data: What it reads.
            seconds: The time limit.
            commit: Gives the context in which the command is sent. What it raises is raised, and nothing is sent.

        Raises:
            AdbError: If the device can't be used; nothing was done on it.
            InDoubtError: If the connection was lost in the middle, or it took too long.
        """
        try:
            async with asyncio.timeout(seconds):
                try:
                    return await self._shell(serial, command, data, commit)
                except _RefusedError:
                    await self._revive()
                    return await self._shell(serial, command, data, commit)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            why = f"it took longer than {seconds:g} s" if isinstance(error, TimeoutError) else "it is gone"
            msg = f"the device {serial!r} was lost while it was asked for something: {why}"
            raise InDoubtError(msg) from error

    async def _shell(self, serial: str, command: str, data: bytes, commit: Commit) -> Ran:
        async with self._opened(f"host:transport:{serial}") as streams:
            try:
                await _request(*streams, f"shell,v2,raw:{command}", commit)
            except AdbError as error:
                if isinstance(error, _UnansweredError) or str(error) == _CLOSED:
                    raise ConnectionResetError from error  # the device may have begun
                raise
            return await _ran(*streams, data)

    @contextlib.asynccontextmanager
    async def _opened(self, *services: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Open a connection to the server, and to what it is to pass on."""
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except (OSError, TimeoutError) as error:
            msg = f"the adb server on port {self.port} can't be reached: {reason_of(error)}"
            raise (_RefusedError if isinstance(error, ConnectionRefusedError) else AdbError)(msg) from error
        try:
            for service in services:
                await _request(reader, writer, service)
            yield reader, writer
        finally:
            writer.transport.abort()  # what was not sent yet must not be sent any more
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def _request(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    service: str,
    commit: Commit = contextlib.nullcontext,
) -> None:
    data = service.encode()
    if len(data) > _LONGEST:
        msg = f"{len(data):,} bytes are too many for one command of a device"
        raise AdbError(msg)
    try:
        with commit():
            writer.write(f"{len(data):04x}".encode() + data)
        await writer.drain()
        answer = await reader.readexactly(4)
        if answer == b"OKAY":
            return
        size = int(await reader.readexactly(4), 16)
        told = (await reader.readexactly(size)).decode(errors="replace")
    except (OSError, asyncio.IncompleteReadError, ValueError) as error:
        msg = f"the adb server gives no answer to {service.partition(':')[0]!r}"
        raise _UnansweredError(msg) from error
    raise AdbError(told)


async def _ran(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> Ran:
    """Speak the shell protocol: packets of a kind, a length, and bytes."""
    for start in range(0, len(data), 1 << 16):
        part = data[start : start + (1 << 16)]
        writer.write(bytes([_STDIN]) + len(part).to_bytes(4, "little") + part)
        await writer.drain()
    writer.write(bytes([_CLOSE_STDIN]) + bytes(4))
    outputs = {_STDOUT: bytearray(), _STDERR: bytearray()}
    while True:
        head = await reader.readexactly(5)
        size = int.from_bytes(head[1:], "little")
        if size + sum(map(len, outputs.values())) > MOST_BYTES:
            msg = f"the device printed more than {MOST_BYTES:,} bytes"
            raise InDoubtError(msg)
        part = await reader.readexactly(size)
        if head[0] == _EXIT:
            return Ran(part[0] if part else 0, bytes(outputs[_STDOUT]), bytes(outputs[_STDERR]))
        if head[0] in outputs:
            outputs[head[0]] += part
