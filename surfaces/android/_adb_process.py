"""The adb server as a process that this program starts and stops."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_START_SECONDS = 20.0
_END_SECONDS = 5.0
_POLL_SECONDS = 0.02


def find_adb(configured_program: Path | None = None) -> Path | None:
    """Find the program adb; None if it is missing.

    It is taken from the settings, ``ANDROID_HOME``, ``ANDROID_SDK_ROOT``, or the path, in this order.

    Args:
        configured_program: The program in the settings. If it is not None, only this program is checked.
    """
    if configured_program is not None:
        program = configured_program.expanduser().absolute()
        return program if _runs(program) else None
    for variable in ("ANDROID_HOME", "ANDROID_SDK_ROOT"):
        home = os.environ.get(variable)
        if home and _runs(program := Path(home, "platform-tools", "adb").absolute()):
            return program
    path = shutil.which("adb")
    return Path(path).absolute() if path else None


def _runs(program: Path) -> bool:
    return program.is_file() and os.access(program, os.X_OK)


class AdbProcess:
    """An adb server that this program starts, for coroutines."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        """True while the process runs."""
        return self._server is not None and self._server.poll() is None

    async def start(self, program: Path, port: int, environment: Mapping[str, str] | None) -> bool:
        """Start a server, and return whether it listens.

        If it does not listen, it has ended: another server may have the port.

        Args:
            program: The program adb.
            port: The port to listen on.
            environment: Its environment; None for this program's.

        Raises:
            OSError: If the program can't be started.
        """
        await self.end()
        reads, writes = os.pipe()
        with FileIO(reads) as pipe:
            try:
                # `adb start-server` runs this too, but before that it stops a running server of another version
                self._server = subprocess.Popen(  # noqa: ASYNC220 - asyncio's would end with its loop; no shell
                    [program, "-P", str(port), "fork-server", "server", "--reply-fd", str(writes)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                    cwd="/",
                    start_new_session=True,
                    pass_fds=(writes,),
                )
            finally:
                os.close(writes)
            os.set_blocking(reads, False)
            listens = await _listens(pipe)
        if not listens:
            await self.end()
        return listens

    async def end(self) -> None:
        """Stop the process, and wait for its end."""
        server, self._server = self._server, None
        for end in (subprocess.Popen.terminate, subprocess.Popen.kill):
            if server is not None and server.poll() is None:
                end(server)
                for _ in range(round(_END_SECONDS / _POLL_SECONDS)):
                    if server.poll() is not None:
                        return
                    await asyncio.sleep(_POLL_SECONDS)


async def _listens(pipe: FileIO) -> bool:
    """Wait until a started server reports that it listens, or ends."""
    for _ in range(round(_START_SECONDS / _POLL_SECONDS)):
        answer = pipe.read(3)
        if answer is not None:
            return answer == b"OK\n"
        await asyncio.sleep(_POLL_SECONDS)
    return False
