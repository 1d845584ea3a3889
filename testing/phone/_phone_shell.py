"""The shell of a phone.

It is a real one, whose programs ask the phone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import shlex
import shutil
import signal
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.testing._adb_device import AdbDevice
from callboard.testing.phone._phone_programs import PhonePrograms

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from callboard.testing.phone._phone import Phone

_PROGRAM = """#!{bash}
exec 3<>/dev/tcp/127.0.0.1/{port} || exit 255
printf '%s\\0' {token} {name} "$#" "$@" >&3
read -r code out err <&3 || exit 255
head -c "$out" <&3
head -c "$err" <&3 >&2
exit "$code"
"""
"""A program: it forwards its arguments, and prints the reply. It starts in 4 ms; an interpreter of Python in 15."""
_FOLDERS = {"/data/local/tmp": "tmp", "/sdcard": "sdcard"}
"""The folders of a device that its shell may write into, and the phone's own folders for them."""
_FOLDER = re.compile(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, _FOLDERS))})(?![\w-])")
_PLAIN = re.compile(r"[\w ./:=@%+,'-]+", re.ASCII)
_LATE = 10.0
_POLL = 0.01


class PhoneShell:
    """Runs commands.

    Args:
        phone: The phone that the programs ask.
    """

    def __init__(self, phone: Phone) -> None:
        self._phone = phone
        self._programs = PhonePrograms(phone, self.place)
        self._folder: Path | None = None
        self._token = secrets.token_hex(16)
        self._asking: set[asyncio.Task[None]] = set()
        self._running: dict[asyncio.Future[tuple[int, bytes, bytes]], asyncio.Future[asyncio.subprocess.Process]] = {}
        """The running commands, each with its process, including those whose connection was lost."""

    @property
    def programs(self) -> Path:
        """The folder with the programs.

        Raises:
            RuntimeError: If the phone is not open.
        """
        if self._folder is None:
            msg = "the phone is not open: use `async with phone.opened()`, or `with plugged_in(phone)`"
            raise RuntimeError(msg)
        return self._folder / "bin"

    async def run(self, command: str, data: bytes | asyncio.StreamReader) -> tuple[int, bytes, bytes]:
        """Run a command; the arguments are those of `Phone.run`."""
        folder = self.programs.parent
        words = _words(command)
        if words and words[0] in self._programs.names:  # this needs no shell
            return self._answer(words[0], words[1:])
        command = _FOLDER.sub(lambda match: str(folder / _FOLDERS[match[0]]), command)
        started: asyncio.Future[asyncio.subprocess.Process] = asyncio.get_running_loop().create_future()
        running = asyncio.ensure_future(self._run(command, data, started))
        self._running[running] = started
        running.add_done_callback(self._running.pop)
        try:
            return await asyncio.shield(running)  # Python hangs if a process is cancelled while it starts
        finally:
            if not running.done():
                started.add_done_callback(_hang_up)

    async def _run(
        self, command: str, data: bytes | asyncio.StreamReader, started: asyncio.Future[asyncio.subprocess.Process]
    ) -> tuple[int, bytes, bytes]:
        folder = self.programs.parent
        ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # as under nohup: a shell could not change that
        process = await asyncio.create_subprocess_exec(
            *(("env", "--default-signal=HUP") if ignored else ()),
            "sh",
            "-c",
            command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder / "tmp",
            env={"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "TMPDIR": str(folder / "tmp"), "HOME": str(folder)},
            start_new_session=True,
        )
        started.set_result(process)
        feeding = asyncio.ensure_future(_feed(process, data))
        try:
            out, err = await process.communicate()
        finally:
            feeding.cancel()
        code = process.returncode or 0
        return code if code >= 0 else 128 - code, out, err  # as a shell reports a process that a signal has ended

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Phone]:
        """Open it."""
        bash = shutil.which("bash", path=os.defpath) or shutil.which("bash")
        if bash is None:
            msg = "the programs of the phone need bash: apt-get install bash"
            raise RuntimeError(msg)
        if self._folder is not None:
            msg = "the phone is open already"
            raise RuntimeError(msg)
        folder = self._folder = Path(tempfile.mkdtemp(prefix="callboard-phone-"))
        try:
            async with await asyncio.start_server(self._take, "127.0.0.1", 0) as server:
                port = server.sockets[0].getsockname()[1]
                for name in ("bin", "tmp", "sdcard"):
                    (folder / name).mkdir()
                for name in self._programs.names:
                    program = folder / "bin" / name
                    program.write_text(_PROGRAM.format(bash=bash, port=port, token=self._token, name=name))
                    program.chmod(0o700)
                try:
                    yield self._phone
                finally:
                    for task in self._asking:
                        task.cancel()
                    await self._end()
                    await asyncio.gather(*self._asking, return_exceptions=True)
        finally:
            self._folder = None
            shutil.rmtree(folder, ignore_errors=True)

    async def _end(self) -> None:
        """End the remaining processes of commands."""
        while self._kill() or not all(started.done() for started in self._running.values()):  # noqa: ASYNC110 - others' end
            await asyncio.sleep(_POLL)
        if self._running:
            await asyncio.wait(self._running, timeout=_LATE)
        for task in self._running:  # a process without the phone's folder in its environment holds its outputs
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _kill(self) -> bool:
        """Kill the processes of commands.

        They are found by the phone's folder in their environment. Returns whether there was one.
        """
        variable = f"TMPDIR={self.programs.parent / 'tmp'}".encode()
        any_killed = False
        for file in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):  # it has ended, or is another user's
                if variable in file.read_bytes().split(b"\0"):
                    os.kill(int(file.parent.name), signal.SIGKILL)
                    any_killed = True
        return any_killed

    def _answer(self, name: str, words: list[str]) -> tuple[int, bytes, bytes]:
        """Ask the phone.

        It knows only the folders of a device, which replace those of this machine in the arguments.
        """
        folder = str(self.programs.parent)
        for theirs, ours in _FOLDERS.items():
            words = [word.replace(f"{folder}/{ours}", theirs) for word in words]
        return self._programs.run(name, words)

    def place(self, path: str) -> Path | None:
        """Return the file for a path of the device.

        None if its shell may not write there.
        """
        for theirs, ours in _FOLDERS.items():
            if f"{path}/".startswith(f"{theirs}/") and ".." not in path.split("/"):
                return self.programs.parent / ours / path.removeprefix(theirs).lstrip("/")
        return None

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def word() -> str:
            return (await reader.readuntil(b"\0"))[:-1].decode(errors="surrogateescape")

        try:
            async with asyncio.timeout(_LATE):
                if not secrets.compare_digest((await word()).encode(errors="replace"), self._token.encode()):
                    return
                name, count = await word(), int(await word())
                words = [await word() for _ in range(count)]
            code, out, err = self._answer(name, words)
            writer.write(f"{code} {len(out)} {len(err)}\n".encode() + out + err)
            await writer.drain()
        except (OSError, EOFError, ValueError, TimeoutError):
            return  # the program has ended, and no longer needs the reply
        finally:
            writer.close()


def _hang_up(started: asyncio.Future[asyncio.subprocess.Process]) -> None:
    """Hang up a shell as adbd does on a lost connection.

    Its processes continue.
    """
    process = started.result()
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGHUP)  # `send_signal` could take its exit code away from the event loop
    assert process.stdin is not None
    process.stdin.close()


async def _feed(process: asyncio.subprocess.Process, data: bytes | asyncio.StreamReader) -> None:
    """Write a process's input, as long as it reads."""
    stdin = process.stdin
    assert stdin is not None
    with contextlib.suppress(OSError):
        if isinstance(data, bytes):
            stdin.write(data)
            await stdin.drain()
        else:
            while part := await data.read(1 << 16):
                stdin.write(part)
                await stdin.drain()
    stdin.close()


def _words(command: str) -> list[str]:
    """Split a command into words as a shell does.

    None if a shell would do more with it.
    """
    if not _PLAIN.fullmatch(command) or command.count("'") % 2:
        return []
    return shlex.split(command)


@contextlib.contextmanager
def plugged_in(phone: Phone) -> Iterator[AdbDevice]:
    """Let adb servers connect to a phone.

    The phone has a thread of its own. Put its `serial` into ``settings.android.devices``.

    Raises:
        RuntimeError: If it can't be opened: there is no `bash`, or it is open already.
    """
    device = AdbDevice(phone.run, phone.model, phone.place)
    ready, end = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    failed: list[Exception] = []

    async def serve() -> None:
        try:
            async with phone.opened():
                await device.start()
                try:
                    loops.append(asyncio.get_running_loop())
                    ready.set()
                    await end.wait()
                finally:
                    await device.stop()
        except Exception as error:  # it is raised in the other thread
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="callboard-phone", daemon=True)
    thread.start()
    ready.wait()
    try:
        if failed:
            msg = f"the phone can't be plugged in: {failed[0]}"
            raise RuntimeError(msg) from failed[0]
        yield device
    finally:
        for loop in loops:
            loop.call_soon_threadsafe(end.set)
        thread.join()
