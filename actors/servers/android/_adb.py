"""A client of the adb server, the program through which all programs of a machine reach its Android devices.

It speaks the server's own protocol on a socket (``docs/dev/services.md`` and ``protocol.txt`` of Android's platform
tools): a command costs a connection, and no process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.actors.servers._server import InDoubtError, ToolError
from callboard.messages import reason_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractContextManager

    Commit = Callable[[], AbstractContextManager[None]]

PORT = 5037
"""Where the adb server listens, unless something else is set."""
_START_SECONDS = 20.0
_CONNECT_SECONDS = 5.0
MOST_BYTES = 50_000_000
"""The most bytes that a command on a device may print."""
_LONGEST = 0xFFFF
"""The longest request, in bytes: its length has four hexadecimal digits."""
_STDIN, _STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = range(5)
_LISTED = re.compile(r"^(?P<serial>\S+)\s+(?P<state>no permissions|\S+)(?P<rest>.*)$")


class DeviceState(StrEnum):
    """The states of a device in which it can't be used, and the one in which it can."""

    DEVICE = "device"
    """It can be used."""
    OFFLINE = "offline"
    UNAUTHORIZED = "unauthorized"
    OTHER = "other"

    @classmethod
    def _missing_(cls, value: object) -> DeviceState:  # noqa: ARG003 - whatever it is
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
        """The last line of what it has printed on its standard error."""
        return (self.err.decode(errors="replace").strip().splitlines() or [""])[-1].strip()


class AdbError(ToolError):
    """The adb server refuses, or can't be reached; nothing was done on a device."""


def find_adb(given: Path | None = None) -> Path | None:
    """Find the program adb: where the settings say, in ``ANDROID_HOME`` or ``ANDROID_SDK_ROOT``, or on the path."""
    if given is not None:
        return given if os.access(given, os.X_OK) else None
    for variable in ("ANDROID_HOME", "ANDROID_SDK_ROOT"):
        home = os.environ.get(variable)
        if home and os.access(program := Path(home, "platform-tools", "adb"), os.X_OK):
            return program
    found = shutil.which("adb")
    return Path(found) if found else None


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
        self.started = False
        """True if this program has started the server; only then it may end it."""

    async def start(self) -> None:
        """See to it that a server runs.

        Raises:
            AdbError: If there is none, and none can be started.
        """
        with contextlib.suppress(AdbError):
            await self.ask("host:version")
            return
        if self._program is None:
            msg = f"no adb server listens on port {self.port}, and there is no program adb: apt-get install adb"
            raise AdbError(msg)
        server = await asyncio.create_subprocess_exec(
            self._program,
            "-P",
            str(self.port),
            "start-server",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment,
        )
        try:
            async with asyncio.timeout(_START_SECONDS):
                _, told = await server.communicate()
        except TimeoutError:
            server.kill()
            await server.wait()
            told = b"it took too long"
        self.started = server.returncode == 0
        if not self.started:
            msg = f"the adb server does not start: {told.decode(errors='replace').strip()}"
            raise AdbError(msg)

    async def stop(self) -> None:
        """End the server, if this program has started it."""
        if self.started:
            self.started = False
            with contextlib.suppress(AdbError):
                await self.ask("host:kill")

    async def ask(self, service: str) -> str:
        """Ask the server for something that it answers with a text.

        Raises:
            AdbError: If it refuses, or can't be reached.
        """
        async with self._opened(service) as (reader, _):
            try:
                size = int(await reader.readexactly(4), 16)
                return (await reader.readexactly(size)).decode(errors="replace")
            except (asyncio.IncompleteReadError, ValueError):
                return ""  # it answers nothing but that it is done

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
        """Connect to a device over the network.

        Raises:
            AdbError: If it can't be reached.
        """
        told = await self.ask(f"host:connect:{address}")
        if not told.startswith(("connected", "already connected")):
            raise AdbError(told or f"{address} can't be reached")

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
                async with self._opened(f"host:transport:{serial}") as streams:
                    await _request(*streams, f"shell,v2,raw:{command}", commit)
                    return await _ran(*streams, data)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            why = f"it took longer than {seconds:g} s" if isinstance(error, TimeoutError) else "it is gone"
            msg = f"the device {serial!r} was lost while it was asked for something: {why}"
            raise InDoubtError(msg) from error

    @contextlib.asynccontextmanager
    async def _opened(self, *services: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Open a connection to the server, and to what it is to pass on."""
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except (OSError, TimeoutError) as error:
            msg = f"the adb server on port {self.port} can't be reached: {reason_of(error)}"
            raise AdbError(msg) from error
        try:
            for service in services:
                await _request(reader, writer, service)
            yield reader, writer
        finally:
            writer.close()
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
        raise AdbError(msg) from error
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
