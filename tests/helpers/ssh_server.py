"""A remote machine: an SSH server on loopback, with its own home."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import asyncssh

USER = "worker"
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "SECRET_OF_THE_LOGIN": "hidden"}


class SshServer:
    """The server. It takes one user with one key.

    Args:
        folder: Where its keys and the user's home are.
    """

    def __init__(self, folder: Path) -> None:
        import asyncssh

        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.key = folder / "key"
        self.known_hosts = folder / "known_hosts"
        self._host_key = asyncssh.generate_private_key("ssh-ed25519")
        users_key = asyncssh.generate_private_key("ssh-ed25519")
        users_key.write_private_key(str(self.key))
        self.key.chmod(0o600)
        self._authorized = folder / "authorized"
        users_key.write_public_key(str(self._authorized))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server: asyncssh.SSHAcceptor | None = None
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self.port = 0
        self.login: tuple[str, ...] = ("sh", "-c")
        """The user's login shell, before the command."""
        self.logins = 0
        """The number of times that the login shell was started."""
        self.start()
        host_key = self._host_key.export_public_key().decode().strip()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {host_key}\n", encoding="ascii")

    @property
    def section(self) -> dict[str, Any]:
        """The settings of a shell on this machine."""
        return {"ssh": f"{USER}@127.0.0.1:{self.port}", "known_hosts": self.known_hosts, "key": self.key}

    def start(self) -> None:
        """Start to accept connections, again on the same port."""
        self._do(self._start())

    def stop(self) -> None:
        """Cut all connections and accept no more; commands keep running."""
        self._do(self._stop())

    def close(self) -> None:
        """Stop the server."""
        self.stop()
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _start(self) -> None:
        import asyncssh

        machine = self

        class Server(asyncssh.SSHServer):
            def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
                machine._connections.add(conn)

        self._server = await asyncssh.listen(
            "127.0.0.1",
            self.port,
            server_factory=Server,
            server_host_keys=[self._host_key],
            authorized_client_keys=str(self._authorized),
            process_factory=self._run,
            encoding=None,
            reuse_address=True,
        )
        self.port = self._server.get_port()

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None
        for connection in self._connections:
            connection.abort()
        self._connections.clear()

    @staticmethod
    async def _end() -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _run(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        pipe = asyncio.subprocess.PIPE
        environment = {**_ENVIRONMENT, "HOME": str(self.home)}
        command = await asyncio.create_subprocess_exec(
            *self.login, process.command or "", stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd=self.home
        )
        self.logins += 1
        given = asyncio.create_task(_copy(process.stdin, command.stdin))
        try:
            await asyncio.gather(_copy(command.stdout, process.stdout), _copy(command.stderr, process.stderr))
            code = await command.wait()
            process.exit(code) if code >= 0 else process.exit_with_signal("KILL")
        finally:
            given.cancel()
            command._transport.close()  # noqa: SLF001 - a cut connection: children get SIGPIPE, or the end of input
            await command.wait()


async def _copy(source: Any, sink: Any) -> None:
    """Copy a stream as it arrives, and end the other one at its end."""
    with contextlib.suppress(OSError):  # the reader has ended
        while part := await source.read(1 << 16):
            sink.write(part)
            await sink.drain()
        sink.write_eof()


@contextlib.contextmanager
def ssh_server(folder: Path) -> Iterator[SshServer]:
    """Serve for a while."""
    server = SshServer(folder)
    try:
        yield server
    finally:
        server.close()


def alive(mark: str) -> list[int]:
    """Give the local processes with a mark in their command line."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark.encode() in place.read_bytes():
                found.append(int(place.parent.name))
    return found
