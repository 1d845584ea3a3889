"""The adb server as a process that this program starts and ends."""

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


def find_adb(given: Path | None = None) -> Path | None:
    """Find the program adb: where the settings say, in ``ANDROID_HOME`` or ``ANDROID_SDK_ROOT``, or on the path."""
    if given is not None:
        program = given.expanduser().absolute()
        return program if _runs(program) else None
    for variable in ("ANDROID_HOME", "ANDROID_SDK_ROOT"):
        home = os.environ.get(variable)
        if home and _runs(program := Path(home, "platform-tools", "adb").absolute()):
            return program
    found = shutil.which("adb")
    return Path(found).absolute() if found else None


def _runs(program: Path) -> bool:
    return program.is_file() and os.access(program, os.X_OK)


class AdbProcess:
    """An adb server that this program starts. For coroutines."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        """Whether it was started, and has not ended."""
        return self._server is not None and self._server.poll() is None

    async def start(self, program: Path, port: int, environment: Mapping[str, str] | None) -> bool:
        """Start a server; return whether it listens. If not, it has ended: another one may have the port.

        Args:
            program: The program adb.
            port: Where it is to listen.
            environment: Its environment; None: this program's.

        Raises:
            OSError: If the program does not run.
        """
        await self.end()
        reads, writes = os.pipe()
        with FileIO(reads) as told:
            try:
                # `adb start-server` runs this, but first ends a server of another version that has started meanwhile
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
            listens = await _listens(told)
        if not listens:
            await self.end()
        return listens

    async def end(self) -> None:
        """End it, and wait for its end."""
        server, self._server = self._server, None
        for end in (subprocess.Popen.terminate, subprocess.Popen.kill):
            if server is not None and server.poll() is None:
                end(server)
                for _ in range(round(_END_SECONDS / _POLL_SECONDS)):
                    if server.poll() is not None:
                        return
                    await asyncio.sleep(_POLL_SECONDS)


async def _listens(told: FileIO) -> bool:
    """Wait until a server that was started says that it listens, or ends."""
    for _ in range(round(_START_SECONDS / _POLL_SECONDS)):
        said = told.read(3)
        if said is not None:
            return said == b"OK\n"
        await asyncio.sleep(_POLL_SECONDS)
    return False
