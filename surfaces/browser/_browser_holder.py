"""Program that holds a browser with its tabs.

It is a separate program. After a crash of the program that started it, it keeps running for a grace period, so that the
next program finds the same tabs. It ends with everything that it started.

Arguments: a private folder, and the seconds to wait for the first client. Its standard input is one line of JSON: the
options of Playwright's `launch`, or with `user_data_dir` those of `launch_persistent_context`. With `network`, rules
for hosts, the browser gets a proxy, which lives as long as it. This program answers one line: the endpoint for
Playwright's `connect`, or ``error`` and the reason. Clients connect to the socket ``holder`` in the folder, and stay
connected. They send lines:

- ``grace`` and seconds, answered with ``ok``;
- ``admit`` and JSON with the `name` of a context and its rules `allow` and `deny`, answered with ``access`` and JSON
  with its credentials: those that it had, if it is admitted already;
- ``withdraw`` and a name as JSON, answered with ``ok``;
- ``end``.

They get a line ``refused`` with JSON for each request that the proxy refuses.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard.network import ContextProxy, NetworkRules

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

    from callboard.network import Refusal

_SUBREAPER = 36
_LIBC = ctypes.CDLL(None)
_CLOSE_SECONDS, _KILLED_SECONDS = 5.0, 10.0
"""The time limits for the browser to close, and for killed processes to end."""
_POLL_SECONDS = 0.02
_LINE_BYTES = 1 << 24
"""The longest line of a client: the rules of a context."""
_UNREAD_BYTES = 1 << 16
"""The most bytes of refusals that a client has not read; further ones are dropped."""


class BrowserHolder:
    """The browser, and the clients that use it.

    Args:
        runtime: The folder of its sockets and temporary files.
        grace: The seconds to wait for another client after the last one has disconnected.
    """

    def __init__(self, runtime: Path, grace: float) -> None:
        self._runtime = runtime
        self._grace = grace
        self._clients: set[asyncio.StreamWriter] = set()
        self._proxy = ContextProxy(self._refused)
        self._ended = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def hold(self, options: dict[str, Any]) -> None:
        """Keep a browser until it ends or is not used."""
        from playwright.async_api import async_playwright

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._ended.set)
        playwright = await async_playwright().start()
        try:
            options = {**options, "env": _environment(self._runtime)}
            browser = await _launch(playwright, await self._with_proxy(options))
            browser.on("disconnected", lambda _: self._ended.set())
            server = await asyncio.start_unix_server(self._serve, self._runtime / "holder", limit=_LINE_BYTES)
            endpoint = (await browser.bind("callboard"))["endpoint"]
            self._await_client()
            _say(endpoint)
            await self._ended.wait()
            server.close()
            with contextlib.suppress(Exception):  # the browser may have ended by itself
                await asyncio.wait_for(browser.close(), _CLOSE_SECONDS)
        finally:
            await playwright.stop()
            await self._proxy.close()

    async def _with_proxy(self, options: dict[str, Any]) -> dict[str, Any]:
        """Open the proxy, and return the options of a start."""
        rules = options.pop("network", None)
        if rules is None:
            return options
        await self._proxy.open()
        proxy = {**options["proxy"], "server": self._proxy.server}
        if "user_data_dir" in options:  # its only context has no name
            proxy |= await self._admit({"name": "", **rules})
        return {**options, "proxy": proxy}

    async def _admit(self, context: dict[str, Any]) -> dict[str, str]:
        rules = NetworkRules(tuple(context["allow"]), tuple(context["deny"]))
        access = await self._proxy.admit(context["name"], rules)
        return {"server": access.server, "username": access.username, "password": access.password}

    def _refused(self, name: str, refusal: Refusal) -> None:
        line = f"refused {json.dumps({'context': name, **vars(refusal)})}\n".encode()
        for client in self._clients:
            if client.transport.get_write_buffer_size() < _UNREAD_BYTES:
                client.write(line)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        if self._timer is not None:
            self._timer.cancel()
        try:
            while line := await reader.readline():
                word, _, value = line.decode().strip().partition(" ")
                if word == "end":
                    self._ended.set()
                    await reader.read()  # the client waits until this process has ended
                elif word == "grace":
                    self._grace = float(value)
                    writer.write(b"ok\n")
                elif word == "admit":
                    writer.write(f"access {json.dumps(await self._admit(json.loads(value)))}\n".encode())
                elif word == "withdraw":
                    await self._proxy.withdraw(json.loads(value))
                    writer.write(b"ok\n")
        except (OSError, ValueError):
            pass
        finally:
            writer.close()
            self._clients.discard(writer)
            self._await_client()

    def _await_client(self) -> None:
        if not self._clients:
            self._timer = asyncio.get_running_loop().call_later(self._grace, self._ended.set)


async def _launch(playwright: Playwright, options: dict[str, Any]) -> Browser:
    if "user_data_dir" not in options:
        return await playwright.chromium.launch(**options)
    context = await playwright.chromium.launch_persistent_context(**options)
    assert context.browser is not None  # noqa: S101 - of a browser that was started
    return context.browser


def _environment(runtime: Path) -> dict[str, str]:
    """Build the browser's environment; it has a home of its own."""
    names = ("PATH", "LANG", "LC_ALL", "TZ", "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY")
    inherited_variables = {name: os.environ[name] for name in names if name in os.environ}
    return {**inherited_variables, "HOME": str(runtime), "TMPDIR": str(runtime), "XDG_RUNTIME_DIR": str(runtime)}


def _say(line: str) -> None:
    """Answer with one line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _descendants() -> list[int]:
    """List all processes below this one.

    Those whose parent has ended are its children.
    """
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    parents: list[tuple[int, int]] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                parents.append((int(entry.name), int(fields[1])))
    below = {os.getpid()}
    while more := {pid for pid, parent in parents if parent in below} - below:
        below |= more
    return sorted(below - {os.getpid()})


async def _kill_descendants() -> None:
    """Kill the processes that are left, such as the browser's crash reporter."""
    end = asyncio.get_running_loop().time() + _KILLED_SECONDS
    while (pids := _descendants()) and asyncio.get_running_loop().time() < end:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(_POLL_SECONDS)


async def main(runtime: str, grace: str) -> None:
    """Hold a browser until it ends."""
    try:
        await BrowserHolder(Path(runtime), float(grace)).hold(json.loads(sys.stdin.readline()))
    except Exception as error:  # the program that started this one reports it
        _say(f"error {str(error).strip().splitlines()[0]}")
    finally:
        await _kill_descendants()
        shutil.rmtree(runtime, ignore_errors=True)
        shutil.rmtree(runtime, ignore_errors=True)  # a process may have written meanwhile, as it ended


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    _LIBC.prctl(_SUBREAPER, 1)
    asyncio.run(main(*sys.argv[1:]))
