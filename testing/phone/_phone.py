"""A small phone: one state, which is shown, touched, and asked by the programs of its shell."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.testing._adb_device import AdbDevice
from callboard.testing.phone._applications import ALL, Application, Home
from callboard.testing.phone._programs import PROGRAMS, Programs
from callboard.testing.phone._screen import HEIGHT, KEYBOARD, ROW, WIDTH, View, hierarchy, hit, picture

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from callboard.testing.phone._applications import Field

_PROGRAM = """#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/{port}
printf '%s\\0' {token} {name} "$#" "$@" >&3
read -r code out err <&3
head -c "$out" <&3
head -c "$err" <&3 >&2
exit "$code"
"""
"""A program of the phone's shell: it passes its arguments on, and what comes back. It starts in 3 ms."""
_LATE = 10.0


class Phone:
    """A phone of Android 16 for tests: home, contacts, notes, settings, a form, a browser and a dialler.

    Args:
        model: What it calls itself.
        keyboard: Whether ADBKeyBoard is installed, which types any letters.
        asks_permission: Whether its contacts ask for a permission first.
    """

    def __init__(self, model: str = "Stand-in", *, keyboard: bool = True, asks_permission: bool = False) -> None:
        self.model = model
        self.asks_permission = asks_permission
        self.awake = True
        self.locked = False
        self.rotation = 0
        """In turns of 90 degrees."""
        self.moving = 0
        """The number of times that `uiautomator` finds the screen moving."""
        self.done: list[tuple[str, str]] = []
        """What it has done that others notice: ``("call", "555-0100")``."""
        self.inputs: list[str] = []
        """The touches, keys and texts that it has got."""
        self.ime = "com.android.inputmethod.latin/.LatinIME"
        """The keyboard that is set."""
        self.imes = [self.ime, *(["com.android.adbkeyboard/.AdbIME"] if keyboard else [])]
        self.settings: dict[str, str] = {}
        self.field: Field | None = None
        """The text field that has the focus."""
        self.cursor = 0
        self.apps: dict[str, Application] = {}
        for kind in ALL:
            self.apps[kind.package] = kind(self)
        self.others = ["android", "com.android.systemui", *(["com.android.adbkeyboard"] if keyboard else [])]
        """Packages that nobody can start."""
        self._stack = [Home.package]
        self._programs = Programs(self)
        self._folder: Path | None = None
        self._server: asyncio.Server | None = None
        self._token = secrets.token_hex(16)

    @property
    def app(self) -> Application:
        """The application in front."""
        return self.apps[self._stack[-1]]

    @property
    def width(self) -> int:
        """Of its screen as it is held, in pixels."""
        return HEIGHT if self.rotation % 2 else WIDTH

    @property
    def height(self) -> int:
        """Of its screen as it is held, in pixels."""
        return WIDTH if self.rotation % 2 else HEIGHT

    @property
    def keyboard(self) -> bool:
        """Whether its keyboard is shown."""
        return self.field is not None and self.awake and "adbkeyboard" not in self.ime

    # What is seen

    def views(self) -> list[View]:
        """Make the screen."""
        if self.locked:
            return [View("TextView", (0, 0, self.width, 400), "Swipe up to unlock", id="keyguard")]
        return self.app.views()

    def hierarchy(self) -> str:
        """Tell the screen as `uiautomator dump` does."""
        return hierarchy("com.android.systemui" if self.locked else self.app.package, self.views(), self.rotation)

    def picture(self) -> bytes:
        """Draw the screen, as PNG."""
        return picture(self.views(), self.rotation, keyboard=self.keyboard, awake=self.awake)

    # What is done

    def tap(self, x: int, y: int, *, long: bool = False) -> None:
        """Touch a point; a screen that is off or locked does nothing."""
        if not self.awake or self.locked or (self.keyboard and y >= self.height - KEYBOARD):
            return
        view = hit(self.views(), x, y)
        if view is None or not view.enabled:
            self.focus(None)
            return
        act = view.hold if long else view.tap
        if act is not None:
            act()

    def swipe(self, x: int, y: int, to_x: int, to_y: int, *, milliseconds: int = 300) -> None:
        """Move a finger: a list scrolls, a locked phone is unlocked, and no way at all is a long touch."""
        if abs(to_x - x) + abs(to_y - y) < 20:  # noqa: PLR2004 - what Android takes for no movement
            self.tap(x, y, long=milliseconds >= 500)  # noqa: PLR2004 - as above
        elif self.awake and self.locked:
            self.locked = to_y >= y
        elif self.awake:
            self.app.scrolled = max(0, self.app.scrolled + round((y - to_y) / ROW))
            self.views()  # which keeps it in the list

    def focus(self, field: Field | None) -> None:
        """Give a text field the focus; the cursor is at its end."""
        self.field, self.cursor = field, len(field.text) if field is not None else 0

    def type(self, text: str) -> None:
        """Put a text where the cursor is."""
        if self.field is not None and self.awake and not self.locked:
            now, at = self.field.text, self.cursor
            self.field.text, self.cursor = now[:at] + text + now[at:], at + len(text)

    def erase(self) -> None:
        """Delete the character before the cursor."""
        if self.field is not None and self.cursor:
            now, at = self.field.text, self.cursor
            self.field.text, self.cursor = now[: at - 1] + now[at:], at - 1

    def start(self, package: str, url: str = "") -> None:
        """Bring an application to the front."""
        self.focus(None)
        self._stack = [Home.package, *(each for each in self._stack[1:] if each != package)]
        if package != Home.package:
            self._stack.append(package)
        else:
            self._stack = [Home.package]
        if url:
            self.app.open(url)

    def end(self, package: str) -> None:
        """End an application: what it has not kept is gone."""
        self._stack = [each for each in self._stack if each != package or each == Home.package]
        self.focus(None)
        self.apps[package].to("list")

    def back(self) -> None:
        """Hide the keyboard, or go to where one came from."""
        if self.field is not None:
            self.focus(None)
        elif not self.app.back() and len(self._stack) > 1:
            self._stack.pop()

    # Its shell

    @property
    def programs(self) -> Path:
        """The folder with the programs of its shell, once it is open: to be put first on a path."""
        if self._folder is None:
            msg = "the phone is not open: use `async with phone.opened()`"
            raise RuntimeError(msg)
        return self._folder / "bin"

    async def run(self, command: str, data: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run a command in its shell: a real one, whose programs are the phone's.

        ``/data/local/tmp`` in it stands for a folder of the phone's own.
        """
        folder = self.programs.parent
        process = await asyncio.create_subprocess_exec(
            "sh",
            "-c",
            command.replace("/data/local/tmp", str(folder / "tmp")),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "TMPDIR": str(folder / "tmp"), "HOME": str(folder)},
        )
        try:
            out, err = await process.communicate(data)
        finally:
            if process.returncode is None:  # the device was pulled off
                process.kill()
                await process.communicate()
        return process.returncode or 0, out, err

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Phone]:
        """Give it a shell, in a folder that only this user can read; its programs ask on loopback, with a secret."""
        self._folder = Path(tempfile.mkdtemp(prefix="callboard-phone-"))
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            port = self._server.sockets[0].getsockname()[1]
            (self._folder / "bin").mkdir()
            (self._folder / "tmp").mkdir()
            for name in PROGRAMS:
                program = self._folder / "bin" / name
                program.write_text(_PROGRAM.format(port=port, token=self._token, name=name), encoding="ascii")
                program.chmod(0o700)
            yield self
        finally:
            if self._server is not None:
                self._server.close()
                await self._server.wait_closed()
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def word() -> str:
            return (await reader.readuntil(b"\0"))[:-1].decode(errors="surrogateescape")

        try:
            async with asyncio.timeout(_LATE):
                if not secrets.compare_digest((await word()).encode(errors="replace"), self._token.encode()):
                    return
                name, count = await word(), int(await word())
                words = [await word() for _ in range(count)]
            code, out, err = self._programs.run(name, words)
            writer.write(f"{code} {len(out)} {len(err)}\n".encode() + out + err)
            await writer.drain()
        except (OSError, EOFError, ValueError, TimeoutError) as error:
            print(f"a program of the phone was broken off: {error!r}", file=sys.stderr)  # noqa: T201 - a test's output
        finally:
            writer.close()


@contextlib.contextmanager
def plugged_in(phone: Phone) -> Iterator[AdbDevice]:
    """Let adb servers connect to a phone, from a thread of its own: ``settings.android.devices`` names its `serial`.

    Raises:
        TimeoutError: If it can't be opened in time.
    """
    loop, device = asyncio.new_event_loop(), AdbDevice(phone.run, phone.model)
    ready, over = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with phone.opened():
            await device.start()
            ready.set()
            await over.wait()
            await device.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), name="callboard-phone", daemon=True)
    thread.start()
    try:
        if not ready.wait(_LATE):
            msg = "the phone does not open"
            raise TimeoutError(msg)
        yield device
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(_LATE)
        loop.close()
