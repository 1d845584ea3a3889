"""Transports for MCP servers, with bounded messages.

Long messages are parsed on another thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import httpx2
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from callboard.actors.commands.mcp._pending_requests import StrayTextError, messages_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams

    from callboard.actors.commands.mcp._program_log import ProgramLog

LEAVES_SECONDS = 2.0
"""Seconds for a program to exit after its input is closed, and again after each signal."""
_LAST_WORDS = 0.5
"""Seconds to wait for the end of the outputs once the program has exited."""
_REAPS_SECONDS = 6.0
"""Seconds for the reaper to kill a program's child processes."""
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
_REAPER = str(Path(__file__).with_name("_reaper.py"))
_CAN_REAP = sys.platform == "linux" and bool(sys.executable) and not getattr(sys, "frozen", False)
_EVENTS = 10
"""The most bytes of all events that answer one call, as a multiple of the longest message."""
_LONG = 64_000
"""The size in bytes from which a message is parsed on another thread."""


class McpProgram(NamedTuple):
    """A program that speaks MCP over its standard input and output."""

    command: str
    args: Sequence[str]
    env: Mapping[str, str]
    cwd: Path | None


class RefusedMessageError(Exception):
    """A server sent a message that exceeds the limit or is compressed."""


@contextlib.asynccontextmanager
async def over_stdio(program: McpProgram, max_bytes: int, log: ProgramLog) -> AsyncGenerator[TransportStreams]:
    """Start a program and exchange messages with it, one per line.

    On exit, the program is ended together with its children. Output other than messages goes to `log`. A line of more
    than `max_bytes` ends the connection, since it is unknown which call it answers.

    Raises:
        OSError: If the program can't be started.
    """
    process, exited = await _start(program, max_bytes)
    received, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_receive(process, received, log)),
        asyncio.create_task(_send(process, outgoing, received)),
        asyncio.create_task(_after_exit(process, exited)),
    ]
    noise = [asyncio.create_task(log.read(process.stderr))] if process.stderr is not None else []
    try:
        yield read, write
    finally:
        try:
            await _ended(_end(process, exited, tasks, noise, log))
        finally:  # this task may be cancelled meanwhile
            for stream in (read, write, received, outgoing):
                stream.close()


async def _start(program: McpProgram, max_bytes: int) -> tuple[asyncio.subprocess.Process, asyncio.Event]:
    """Start a program; return it with an event for its exit.

    On Linux, it runs below a reaper of its child processes.

    Raises:
        OSError: If it can't be started.
    """
    env = {**get_default_environment(), **program.env}
    command = shutil.which(program.command) or shutil.which(program.command, path=env.get("PATH", ""))
    if command is None and not os.path.dirname(program.command):  # noqa: PTH120 - ./server
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program.command)
    reaper = (sys.executable, "-I", "-S", _REAPER, str(LEAVES_SECONDS)) if _CAN_REAP else ()
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.subprocess_exec(
        lambda: _ProgramProtocol(limit=max_bytes, loop=loop),
        *reaper,
        command or program.command,
        *program.args,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,  # the program must not write to the host program's stderr
        env=env,
        cwd=program.cwd,
        start_new_session=os.name != "nt",
    )
    return asyncio.subprocess.Process(transport, protocol, loop), protocol.exited


class _ProgramProtocol(asyncio.subprocess.SubprocessStreamProtocol):
    """Reports the exit of a program at once.

    `Process.wait` also waits for its output, which a child may hold open.
    """

    def __init__(self, *, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=limit, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


async def _after_exit(process: asyncio.subprocess.Process, exited: asyncio.Event) -> None:
    """Close an exited program's output, even if a child has it."""
    await exited.wait()
    _signal_group(process, _KILL)
    await asyncio.sleep(_LAST_WORDS)
    transport: Any = process._transport  # type: ignore[attr-defined]  # noqa: SLF001 - there is no public name
    transport.get_pipe_transport(1).close()


async def _ended(ending: Any) -> None:
    """Finish `ending` even if this task is cancelled.

    Then no program is left running.
    """
    work = asyncio.ensure_future(ending)
    cancelled = None
    while not work.done():
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def _receive(
    process: asyncio.subprocess.Process, received: MemoryObjectSendStream[SessionMessage | Exception], log: ProgramLog
) -> None:
    """Forward a program's messages.

    Ends with its output, or at a line that is too long.
    """
    if process.stdout is None:
        return
    async with received:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
            while line := await _line_of(process.stdout, log):
                messages = messages_of(line) if len(line) < _LONG else await asyncio.to_thread(messages_of, line)
                for message in messages:
                    if isinstance(message, StrayTextError):
                        log.strayed(line)
                    await received.send(message)


async def _line_of(stream: asyncio.StreamReader, log: ProgramLog) -> bytes:
    """Read a line.

    One that is too long is recorded and treated as the end.
    """
    try:
        return await stream.readline()
    except ValueError:
        log.too_long = True
        return b""


async def _send(
    process: asyncio.subprocess.Process,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    received: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """Write messages to the program.

    If it no longer reads, the connection is closed.
    """
    if process.stdin is None:
        return
    try:
        async for message in outgoing:
            process.stdin.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            await process.stdin.drain()
    except (ConnectionError, anyio.ClosedResourceError):
        received.close()


async def _end(
    process: asyncio.subprocess.Process,
    exited: asyncio.Event,
    tasks: Sequence[asyncio.Task[None]],
    noise: Sequence[asyncio.Task[None]],
    log: ProgramLog,
) -> None:
    """Close a program's input and wait for its exit.

    Then terminate it with its children, then kill them.
    """
    if process.stdin is not None:
        process.stdin.close()
    for ask, seconds in ((None, LEAVES_SECONDS), (signal.SIGTERM, LEAVES_SECONDS + _REAPS_SECONDS), (_KILL, 1.0)):
        if ask is not None:
            _signal_group(process, ask)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await exited.wait()
                log.exit_code = process.returncode if ask is None else None
                break
    _signal_group(process, _KILL)  # without a reaper, children outlive a program that has exited by itself
    if noise:
        await asyncio.wait(noise, timeout=_LAST_WORDS)  # a surviving child may keep the pipe open
    for task in (*tasks, *noise):
        task.cancel()
    await asyncio.gather(*tasks, *noise, return_exceptions=True)
    transport = getattr(process, "_transport", None)  # a child that inherited the pipe keeps it open
    if transport is not None:
        transport.close()


def _signal_group(process: asyncio.subprocess.Process, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "nt":
            process.terminate()
        else:
            os.killpg(process.pid, which)


not_sent: contextvars.ContextVar[list[Exception] | None] = contextvars.ContextVar("not_sent", default=None)
"""A list that collects errors of HTTP requests that could not be sent, if the caller has set one."""


class BoundedTransport(httpx2.AsyncBaseTransport):
    """HTTP with bounded bodies.

    It reports requests that could not be sent in `not_sent`.
    """

    def __init__(self, max_bytes: int) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self._max_bytes = max_bytes
        self.refusal = ""
        """The status of the last answer to a message, if it was an error."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        Raises:
            RefusedMessageError: If the answer is compressed: its size would be unknown.
        """
        request.headers["accept-encoding"] = "identity"
        if request.method == "DELETE":  # the end of a session: no caller needs the answer
            request.extensions["timeout"] = {**request.extensions.get("timeout", {}), "read": LEAVES_SECONDS}
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            failed = not_sent.get()
            if failed is not None:
                failed.append(error)
            raise
        if request.method == "POST":
            self.refusal = f"{response.status_code} {response.reason_phrase}" if response.is_error else ""
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            msg = "it sent a compressed answer, which was not asked for"
            raise RefusedMessageError(msg)
        streamed = response.headers.get("content-type", "").startswith("text/event-stream")
        if isinstance(response.stream, httpx2.AsyncByteStream) and not (streamed and request.method == "GET"):
            # the client bounds each event; this bounds all events that answer one call
            response.stream = _Bounded(response.stream, self._max_bytes * (_EVENTS if streamed else 1))
        return response

    async def aclose(self) -> None:
        """Close its connections."""
        await self._inner.aclose()


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._inner = inner
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        remaining_bytes = self._max_bytes
        async for part in self._inner:
            remaining_bytes -= len(part)
            if remaining_bytes < 0:
                msg = f"it sent a message of more than {self._max_bytes} bytes"
                raise RefusedMessageError(msg)
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()
