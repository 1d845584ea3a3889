"""Client of the program that holds a browser."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard.config import write_own

if TYPE_CHECKING:
    from collections.abc import Mapping

_HOLDER = Path(__file__).with_name("_browser_holder.py")
_RUNTIME = "callboard-browser-"
"""The prefix of the name of a browser's runtime folder."""
_LONGEST_FOLDER = 40
"""The longest folder for temporary files in which the names of sockets are short enough for the kernel."""
_FOLDERS = ("TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
"""The variables for the folders in which Playwright records the browser, and has its socket."""
_START_SECONDS, _END_SECONDS = 60.0, 20.0
_REMOVE_SECONDS, _POLL_SECONDS = 2.0, 0.02


class HeldBrowser:
    """A browser that a separate program holds.

    Args:
        record: The file that records how to reach it.
    """

    def __init__(self, record: Path) -> None:
        self._record = record
        self._holder: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reader: asyncio.StreamReader | None = None
        self._runtime = ""
        self.adopted = False
        """True if an earlier program has left it."""
        self.endpoint = ""
        """The address for Playwright's `connect`."""

    async def open(self, options: Mapping[str, Any], grace: float) -> None:
        """Take over the browser of an earlier program, or start one.

        Args:
            options: The options of a start.
            grace: The seconds for which it stays after this program is killed.

        Raises:
            RuntimeError: If it can't be started; the text gives the reason.
        """
        facts = _recorded(self._record)
        if facts is not None:
            self.adopted = await self._connect(facts, grace)
            if not self.adopted:
                await _remove(facts["runtime"])
        if not self.adopted:
            facts = await self._start(options, grace)
            write_own(self._record, json.dumps(facts))
            if not await self._connect(facts, grace):
                msg = "the browser ended right after its start"
                raise RuntimeError(msg)

    async def _start(self, options: Mapping[str, Any], grace: float) -> dict[str, Any]:
        folder = tempfile.gettempdir()
        runtime = tempfile.mkdtemp(prefix=_RUNTIME, dir=folder if len(folder) <= _LONGEST_FOLDER else "/tmp")  # noqa: S108 - private, and short
        holder = self._holder = subprocess.Popen(  # noqa: ASYNC220 - it outlives the loop
            [sys.executable, "-P", str(_HOLDER), runtime, str(max(grace, _START_SECONDS))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **dict.fromkeys(_FOLDERS, runtime)},
            cwd="/",
            start_new_session=True,
        )
        assert holder.stdin is not None  # noqa: S101 - for the type checker
        assert holder.stdout is not None  # noqa: S101 - as above
        with holder.stdin as requests, holder.stdout as answers:
            requests.write(json.dumps(dict(options)).encode() + b"\n")
            requests.flush()
            line = await _line(answers.fileno())
        if not line.startswith("/"):
            holder.terminate()
            holder.wait()
            await _remove(runtime)
            msg = f"the browser does not start: {line.removeprefix('error ') or 'its holder ended'}"
            raise RuntimeError(msg)
        return {"runtime": runtime, "endpoint": line, "pid": holder.pid}

    async def _connect(self, facts: Mapping[str, Any], grace: float) -> bool:
        """Connect to a browser's holder; return False if it has ended."""
        try:
            self._reader, self._writer = await asyncio.open_unix_connection(Path(facts["runtime"], "holder"))
            self._writer.write(f"grace {grace}\n".encode())
            answer = await asyncio.wait_for(self._reader.readline(), _END_SECONDS)
        except (OSError, TimeoutError):
            return False
        if not answer:  # it is ending
            self._writer.close()
            self._reader = self._writer = None
            return False
        self.endpoint, self._runtime = facts["endpoint"], facts["runtime"]
        return True

    async def end(self) -> None:
        """End the browser, and wait until its processes have ended."""
        if self._writer is not None and self._reader is not None:
            with contextlib.suppress(OSError, TimeoutError):
                self._writer.write(b"end\n")
                await asyncio.wait_for(self._reader.read(), _END_SECONDS)
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()
            self._record.unlink(missing_ok=True)
        if self._holder is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._holder.wait, _END_SECONDS)
            if self._holder.poll() is None:
                self._holder.kill()
                self._holder.wait()
        if self._runtime:
            await _remove(self._runtime)


async def _remove(runtime: str) -> None:
    """Remove the folder of a browser whose processes end just now."""
    end = time.monotonic() + _REMOVE_SECONDS
    while Path(runtime).exists() and time.monotonic() < end:  # noqa: ASYNC240 - one look at a local folder
        shutil.rmtree(runtime, ignore_errors=True)
        await asyncio.sleep(_POLL_SECONDS)


def _recorded(record: Path) -> dict[str, Any] | None:
    """Read a browser's record; None if it is missing or invalid."""
    try:
        facts: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        runtime = Path(facts["runtime"])
        is_valid = runtime.name.startswith(_RUNTIME) and Path(facts["endpoint"]).is_relative_to(runtime)
        return facts if is_valid and runtime.lstat().st_uid == os.getuid() and not runtime.is_symlink() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


async def _line(descriptor: int) -> str:
    """Read a line from a pipe.

    Empty if its other end is closed, or after a time limit.
    """
    loop, line = asyncio.get_running_loop(), bytearray()
    answer: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        part = os.read(descriptor, 1 << 16)
        line.extend(part)
        if (not part or b"\n" in line) and not answer.done():
            answer.set_result(line.decode(errors="replace").strip())

    loop.add_reader(descriptor, read)
    try:
        return await asyncio.wait_for(answer, _START_SECONDS)
    except TimeoutError:
        return ""
    finally:
        loop.remove_reader(descriptor)
