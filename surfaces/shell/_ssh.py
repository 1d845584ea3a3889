"""An SSH connection with host key checks and without forwarding."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import asyncssh

from callboard.messages import reason_of
from callboard.surfaces._tool_function import InDoubtError, ToolError
from callboard.surfaces.shell._ssh_channel import ScriptChannel

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from callboard.config import ShellSettings

_T = TypeVar("_T")
_CONNECT_SECONDS = 15.0
_KEEPALIVE_SECONDS = 5.0
_CLOSE_SECONDS = 2.0
_ONCE = frozenset({"begin", "put", "place"})
"""Operations that are not retried after a lost connection; the others are idempotent."""
_REFUSED = 3
"""The exit code of the script for an operation that can't be done."""


class RemoteFolder(NamedTuple):
    """A folder below Callboard's folder on the machine."""

    name: str


class UnreachableError(ToolError):
    """The machine can't be reached; no request was sent."""


class LinkLostError(InDoubtError):
    """The connection was lost during a request; its outcome is unknown."""


class Link:
    """A connection to one machine, made on demand and after losses.

    Any thread may call its methods, which block.

    Args:
        settings: The shell's settings.
    """

    def __init__(self, settings: ShellSettings) -> None:
        assert settings.ssh is not None  # noqa: S101 - for the type checker
        self.host = settings.ssh
        user, _, machine = settings.ssh.rpartition("@")
        name, _, port = machine.rpartition(":") if machine.count(":") == 1 else (machine, "", "")
        self._options: dict[str, Any] = {
            "host": name,
            "port": int(port or 22),
            "username": user,
            "known_hosts": str(settings.known_hosts),
            "client_keys": [str(settings.key)] if settings.key is not None else (),
            "config": None,  # no ProxyCommand, and no options of the user's own logins
            "agent_forwarding": False,
            "preferred_auth": "publickey",
            "disable_trivial_auth": True,
            "connect_timeout": _CONNECT_SECONDS,
            "keepalive_interval": _KEEPALIVE_SECONDS,
        }
        self._lock = threading.Lock()
        self.closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connecting: asyncio.Task[asyncssh.SSHClientConnection] | None = None
        self._channels: list[ScriptChannel] = []
        self.remote_folder = self.home = ""
        """Callboard's folder and the user's home on the machine; empty before the first connection."""

    def run(self, *words: str | RemoteFolder, data: bytes = b"", seconds: float = 30.0) -> bytes:
        """Run an operation of the script, and return its output.

        Args:
            words: The operation and its arguments.
            data: The operation's input.
            seconds: The time limit.

        Raises:
            ToolError: If the operation can't be done; the text gives the reason.
            UnreachableError: If the machine can't be reached.
            LinkLostError: If the connection was lost meanwhile.
        """
        try:
            return self._submit(self._run(words, data, seconds)).result()
        except concurrent.futures.CancelledError:
            raise self._gone() from None

    async def ask(self, *words: str | RemoteFolder, seconds: float = 30.0) -> bytes:
        """Run an operation like `run`, from a coroutine."""
        work = self._submit(self._run(words, b"", seconds))
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise self._gone() from None

    def connect(self) -> None:
        """Connect, unless there is a connection.

        Raises:
            UnreachableError: If the machine can't be reached, or refuses.
        """
        try:
            self._submit(self._connected()).result()
        except concurrent.futures.CancelledError:
            raise UnreachableError(str(self._gone())) from None

    @property
    def connected(self) -> bool:
        """True while there is a connection."""
        task = self._connecting
        if task is None or not task.done() or task.cancelled():
            return False
        return task.exception() is None and not task.result().is_closed()

    def close(self) -> None:
        """Disconnect and end the thread; pending and later requests fail."""
        with self._lock:
            self.closed = True
            loop, self._loop = self._loop, None
        if loop is not None:
            with contextlib.suppress(OSError, asyncssh.Error, TimeoutError):
                asyncio.run_coroutine_threadsafe(self._disconnect(), loop).result(_KEEPALIVE_SECONDS)
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join(_KEEPALIVE_SECONDS)

    def _submit(self, work: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        with self._lock:
            if self.closed:
                work.close()
                msg = f"{self.host} can't be reached: its shell was closed"
                raise UnreachableError(msg)
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._serve, args=(self._loop,), daemon=True)
                self._thread.name = f"callboard-ssh-{self.host}"
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    async def _run(self, words: tuple[str | RemoteFolder, ...], data: bytes, seconds: float) -> bytes:
        """Run an operation, with a retry on a new connection."""
        try:
            return await self._run_once(words, data, seconds)
        except LinkLostError:
            if words[0] in _ONCE:
                raise
        return await self._run_once(words, data, seconds)

    async def _run_once(self, words: tuple[str | RemoteFolder, ...], data: bytes, seconds: float) -> bytes:
        connection = await self._connected()
        arguments = [f"{self.remote_folder}/{word.name}" if isinstance(word, RemoteFolder) else word for word in words]
        try:
            async with asyncio.timeout(seconds):
                channel = await self._idle(connection)
                status, out, err = await channel.run(arguments, data)
        except (OSError, asyncssh.Error, TimeoutError) as error:
            connection.abort()
            self._forget(connection)
            msg = f"the connection to {self.host} was lost: {self._why(error)}"
            raise LinkLostError(msg) from error
        if status:
            message = err.decode(errors="replace").strip()[-1000:]
            msg = message if status == _REFUSED else f"{arguments[0]} failed on {self.host}: {message}"
            raise ToolError(msg)
        return out

    async def _idle(self, connection: asyncssh.SSHClientConnection) -> ScriptChannel:
        """Return a channel on which an operation begins soon.

        Another one, which starts the login shell again, is opened only if slow operations are pending on all.
        """
        channels = self._channels
        channel = min(channels, key=lambda candidate: candidate.slow)
        if channel.slow:
            with contextlib.suppress(asyncssh.ChannelOpenError):  # such as by OpenSSH's MaxSessions
                channel = await ScriptChannel.open(connection)
                channels.append(channel)
        return channel

    def _forget(self, connection: asyncssh.SSHClientConnection) -> None:
        """Drop a lost connection, which may not report its loss itself."""
        task = self._connecting
        if task is not None and task.done() and not task.cancelled() and task.exception() is None:
            self._connecting = None if task.result() is connection else task

    async def _connected(self) -> asyncssh.SSHClientConnection:
        """Return the connection, or make one that all waiting calls share."""
        task = self._connecting
        if task is None or (task.done() and not self.connected):
            task = self._connecting = asyncio.ensure_future(self._connect())
        try:
            return await asyncio.shield(task)
        except (OSError, asyncssh.Error, TimeoutError, ValueError) as error:
            msg = f"{self.host} can't be reached: {self._why(error)}"
            raise UnreachableError(msg) from error

    async def _connect(self) -> asyncssh.SSHClientConnection:
        connection = await asyncssh.connect(**self._options)
        try:
            channel = await ScriptChannel.open(connection)
        except BaseException:
            connection.abort()
            raise
        self._channels = [channel]
        self.remote_folder, self.home = channel.remote_folder, channel.home
        return connection

    async def _disconnect(self) -> None:
        if self.connected and self._connecting is not None:
            connection = self._connecting.result()
            connection.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await connection.wait_closed()
            connection.abort()
        pending_tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in pending_tasks:  # they would never finish
            task.cancel()
        await asyncio.gather(*pending_tasks, return_exceptions=True)

    def _gone(self) -> LinkLostError:
        return LinkLostError(f"the connection to {self.host} was closed")

    def _why(self, error: BaseException) -> str:
        if isinstance(error, asyncssh.HostKeyNotVerifiable):
            return (
                f"{reason_of(error)}: its key is not in {self._options['known_hosts']}; compare it with the one that "
                "the machine's operator tells you, and add it there (ssh-keyscan)"
            )
        if isinstance(error, asyncssh.PermissionDenied):
            return f"it refuses the user {self._options['username']!r} with the available keys"
        if isinstance(error, FileNotFoundError) and error.filename == self._options["known_hosts"]:
            return f"there is no file {error.filename} with the keys of known machines"
        return "it does not answer" if isinstance(error, TimeoutError) else reason_of(error)
