"""Client of the adb server, which connects programs to Android devices.

It uses the server's protocol on a socket (``docs/dev/services.md`` and ``protocol.txt`` of Android's platform tools): a
command costs a connection, but no process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from callboard.messages import reason_of
from callboard.surfaces._tool_function import InDoubtError, ToolError
from callboard.surfaces.android._adb_process import AdbProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    Commit = Callable[[], AbstractContextManager[None]]

PORT = 5037
"""The default port of the adb server."""
_POLL_SECONDS = 0.02
_CONNECT_SECONDS = 5.0
_ASK_SECONDS = 15.0
"""The time limit for the server's answer: it tries for 10 s to reach a device over the network."""
MOST_BYTES = 50_000_000
"""The most bytes that a command on a device may print."""
_LONGEST = 0xFFFF
"""The longest request, in bytes: its length is sent as four hexadecimal digits."""
_CLOSED = "closed"
"""The server's answer if the connection to a device ends while a command is being sent to it."""
_LONGEST_ERROR = 500
"""The longest error message from a device, in characters; more is cut off."""
_STDIN, _STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = range(5)
_LISTED = re.compile(
    r"^(?P<serial>\S.*?)\s+(?P<state>device|offline|unauthorized|authorizing|connecting|bootloader|host|recovery|rescue"
    r"|sideload|detached|no permissions|unknown)(?P<rest>(?:\s.*|;.*|\(.*)?)$"
)
"""A line of the list of devices. A serial may contain blanks: ``adb-29241JEG (2)._adb-tls-connect._tcp``."""
_THROWN = re.compile(r"^(?:[\w.$]+\.)?\w*(?:Exception|Error)\b")


class DeviceState(StrEnum):
    """The states of a device; it can be used only in `DEVICE`."""

    DEVICE = "device"
    """Ready for use."""
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
    text: str
    """The state in the server's words."""
    model: str = ""


@dataclass(frozen=True)
class Ran:
    """The output and the exit code of a command on a device."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """The standard output as text."""
        return self.out.decode(errors="replace")

    @property
    def error(self) -> str:
        """The exception in the standard error, else its last line."""
        lines = [line.strip() for line in self.err.decode(errors="replace").splitlines()]
        errors = [line for line in lines if line and not line.startswith(("at ", "Exception occurred while executing"))]
        return next(filter(_THROWN.match, errors), errors[-1] if errors else "")[:_LONGEST_ERROR]


class AdbError(ToolError):
    """The adb server refused or can't be reached; nothing was done."""


class _RefusedError(AdbError):
    """No server listens on the port."""


class _UnansweredError(AdbError):
    """The server closed the connection; the request may have been begun."""


class Adb:
    """A client of an adb server, for coroutines.

    It keeps no connection between two calls.

    Args:
        program: The program adb, which starts a server if none runs. None: a server has to run already.
        port: The server's port on this machine.
        environment: The environment of a server that it starts; by default this program's.
    """

    def __init__(self, program: Path | None, port: int = PORT, environment: Mapping[str, str] | None = None) -> None:
        self._program = program
        self.port = port
        self._environment = environment
        self._process = AdbProcess()
        """The server, if this program has started it; only such a server is stopped."""
        self._turn = asyncio.Lock()
        self._open = False

    @property
    def started(self) -> bool:
        """True if this program has started the server, and it still runs."""
        return self._process.runs

    async def start(self) -> None:
        """Ensure that a server runs until `stop`.

        A running server of any version is used.

        Raises:
            AdbError: If none runs and none can be started, or if the server does not answer.
        """
        async with self._turn:
            try:
                await self._ask("host:version")
            except _RefusedError:
                await self._launch()
            self._open = True

    async def stop(self) -> None:
        """Stop the server, if this program has started it."""
        self._open = False
        await self._process.end()

    async def _launch(self) -> None:
        if self._program is None:
            msg = f"no adb server listens on port {self.port}, and the program adb is missing: apt-get install adb"
            raise AdbError(msg)
        try:
            if await self._process.start(self._program, self.port, self._environment):
                return
        except OSError as error:
            msg = f"the program {str(self._program)!r} can't be started: {reason_of(error)}"
            raise AdbError(msg) from error
        try:
            await self._ask("host:version")  # another program may have started one first
        except AdbError as error:
            msg = f"the adb server does not start on port {self.port}; its log is adb.{os.getuid()}.log in /tmp"
            raise AdbError(msg) from error

    async def ask(self, service: str) -> str:
        """Send a request whose answer is a text.

        Raises:
            AdbError: If the server refuses, can't be reached, or takes longer than 15 s.
        """
        try:
            return await self._ask(service)
        except _RefusedError:
            await self._revive()
            return await self._ask(service)

    async def _revive(self) -> None:
        """Start a server again after the previous one has ended.

        It has to be called in an ``except`` block.
        """
        if not self._open:
            raise  # noqa: PLE0704 - the caller's exception
        await self.start()

    async def _ask(self, service: str) -> str:
        try:
            async with asyncio.timeout(_ASK_SECONDS), self._open_connection(service) as (reader, _):
                try:
                    size = int(await reader.readexactly(4), 16)
                    return (await reader.readexactly(size)).decode(errors="replace")
                except (OSError, asyncio.IncompleteReadError, ValueError):
                    return ""  # the answer is OKAY alone
        except TimeoutError as error:
            msg = f"the adb server on port {self.port} does not answer {service.partition(':')[2]!r}"
            raise AdbError(msg) from error

    async def devices(self) -> tuple[Listed, ...]:
        """List the devices that the server knows, sorted by serial."""
        entries = []
        for line in (await self.ask("host:devices-l")).splitlines():
            match = _LISTED.match(line)
            if match is not None:
                facts = dict(fact.split(":", 1) for fact in match["rest"].split() if ":" in fact)
                text = match["state"]
                entries.append(
                    Listed(match["serial"], DeviceState(text), text, facts.get("model", "").replace("_", " "))
                )
        return tuple(sorted(entries, key=lambda device: device.serial))

    async def connect(self, address: str) -> None:
        """Connect to a device over the network, and wait until ready.

        It waits for up to 5 s. A server keeps reporting a lost device as connected, even for a moment after a
        disconnect. In that case the device is disconnected, and connected again.

        Raises:
            AdbError: If the device can't be reached.
        """
        text = await self.ask(f"host:connect:{address}")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CONNECT_SECONDS):
                while (state := await self._state(address)) not in {DeviceState.DEVICE, DeviceState.UNAUTHORIZED}:
                    if text.startswith("already connected"):
                        if state is DeviceState.OFFLINE:
                            with contextlib.suppress(AdbError):  # it may be disconnected already
                                await self.ask(f"host:disconnect:{address}")
                        text = await self.ask(f"host:connect:{address}")
                    elif not text.startswith("connected"):
                        break
                    await asyncio.sleep(_POLL_SECONDS)
        if not text.startswith(("connected", "already connected")):
            raise AdbError(text or f"{address} can't be reached")

    async def _state(self, serial: str) -> DeviceState:
        return next((device.state for device in await self.devices() if device.serial == serial), DeviceState.OTHER)

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
            serial: The device's serial.
            command: The command for the device's shell.
            data: The standard input.
            seconds: The time limit.
            commit: Returns the context manager in which the command is sent. If it raises, nothing is sent, and the
                exception is passed on.

        Raises:
            AdbError: If the device can't be used; nothing was done on it.
            InDoubtError: If the connection was lost during the command, or the command took too long.
        """
        try:
            async with asyncio.timeout(seconds):
                try:
                    return await self._shell(serial, command, data, commit)
                except _RefusedError:
                    await self._revive()
                    return await self._shell(serial, command, data, commit)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            reason = (
                f"it took longer than {seconds:g} s" if isinstance(error, TimeoutError) else "the connection was lost"
            )
            msg = f"a command on the device {serial!r} was interrupted: {reason}"
            raise InDoubtError(msg) from error

    async def _shell(self, serial: str, command: str, data: bytes, commit: Commit) -> Ran:
        async with self._open_connection(f"host:transport:{serial}") as streams:
            try:
                await _request(*streams, f"shell,v2,raw:{command}", commit)
            except AdbError as error:
                if isinstance(error, _UnansweredError) or str(error) == _CLOSED:
                    raise ConnectionResetError from error  # the device may have begun the command
                raise
            return await _ran(*streams, data)

    @contextlib.asynccontextmanager
    async def _open_connection(
        self, *services: str
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Open a connection to the server, and request services on it."""
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
            writer.transport.abort()  # unsent data must not be sent
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
        msg = f"a command for a device has {len(data):,} bytes; at most {_LONGEST:,} are possible"
        raise AdbError(msg)
    try:
        with commit():
            writer.write(f"{len(data):04x}".encode() + data)
        await writer.drain()
        answer = await reader.readexactly(4)
        if answer == b"OKAY":
            return
        size = int(await reader.readexactly(4), 16)
        text = (await reader.readexactly(size)).decode(errors="replace")
    except (OSError, asyncio.IncompleteReadError, ValueError) as error:
        msg = f"the adb server does not answer {service.partition(':')[0]!r}"
        raise _UnansweredError(msg) from error
    raise AdbError(text)


async def _ran(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> Ran:
    """Run the shell protocol: packets of a kind, a length, and bytes."""
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
