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
from callboard.network import ProxyCredentials
from callboard.surfaces.browser._holder_connection import HolderConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from callboard.network import NetworkRules, Refusal

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
        on_refusal: Called with a context's name, and a request of it that the network rules refused.
    """

    def __init__(self, record: Path, on_refusal: Callable[[str, Refusal], None]) -> None:
        self._record = record
        self._on_refusal = on_refusal
        self._holder: subprocess.Popen[bytes] | None = None
        self._connection: HolderConnection | None = None
        self._runtime = ""
        self.adopted = False
        """True if an earlier program has left it."""
        self.endpoint = ""
        """The address for Playwright's `connect`."""

    async def open(self, options: Mapping[str, Any], grace: float) -> None:
        """Take over the browser of an earlier program, or start one.

        One that has network rules is never taken over in place of one without, or the other way round: it is ended.

        Args:
            options: The options of a start.
            grace: The seconds for which it stays after this program is killed.

        Raises:
            RuntimeError: If it can't be started; the text gives the reason.
        """
        facts = _recorded(self._record)
        self.adopted = facts is not None and await self._connect(facts, grace)
        if facts is not None and self.adopted and facts.get("guarded") is not ("network" in options):
            self.adopted = False
            await self.end()
        elif facts is not None and not self.adopted:
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
        return {"runtime": runtime, "endpoint": line, "pid": holder.pid, "guarded": "network" in options}

    async def _connect(self, facts: Mapping[str, Any], grace: float) -> bool:
        """Connect to a browser's holder; return False if it has ended."""
        try:
            connection = await HolderConnection.open(Path(facts["runtime"], "holder"), self._on_refusal)
            await connection.ask(f"grace {grace}")
        except OSError:  # it has ended, or is ending
            return False
        self._connection, self.endpoint, self._runtime = connection, facts["endpoint"], facts["runtime"]
        return True

    async def admit(self, name: str, rules: NetworkRules) -> ProxyCredentials:
        """Return the credentials of a context at the browser's proxy.

        Raises:
            OSError: If the browser has ended.
        """
        context = {"name": name, "allow": rules.allow, "deny": rules.deny}
        answer = await self._ask(f"admit {json.dumps(context)}")
        return ProxyCredentials(**json.loads(answer.removeprefix("access ")))

    async def withdraw(self, name: str) -> None:
        """Void the credentials of a context.

        Raises:
            OSError: If the browser has ended.
        """
        await self._ask(f"withdraw {json.dumps(name)}")

    async def _ask(self, line: str) -> str:
        if self._connection is None:
            msg = "the browser has ended"
            raise ConnectionError(msg)
        return await self._connection.ask(line)

    async def end(self) -> None:
        """End the browser, and wait until its processes have ended."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.end()
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
