"""A shell on another machine, over SSH."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import shlex
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from callboard.actors.servers._server import InDoubtError, ToolError
from callboard.actors.servers.shell._held import MOST_BYTES, TAIL_BYTES, Ended, Held, Output, Stage, folder_of
from callboard.actors.servers.shell._remote_files import RemoteFiles
from callboard.actors.servers.shell._shell import KEPT_DAYS, Left, Shell, exports_of
from callboard.actors.servers.shell._ssh import Link, LinkLostError, There, UnreachableError
from callboard.actors.servers.shell._words import UnclearError
from callboard.config import HostLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.servers.shell._disk import Disk
    from callboard.config import ShellSettings

_log = HostLog()
_T = TypeVar("_T")
_WAIT_SECONDS = 5
_RETRY_SECONDS = 0.5
_DISK_SECONDS = 2.0
"""For how long what the machine has told of its files is taken for what is there: the questions about one command."""
_THREADS = 4
_SO_FAR = 16_000
"""The bytes of the beginning of an output that are fetched while a command runs."""
_SIZES = 8
"""The number of sizes that `look` tells."""
_SCRIPT = """\
rm -f -- "$0"
{exports}
cd -- {cwd} || exit 1
trap '__code=$?; trap - EXIT
{{ builtin pwd -P >{folder}/cwd; env -0 >{folder}/env; }} 2>/dev/null
exit "$__code"' EXIT
eval {command}
"""


class RemoteHeld(Held):
    """A command on another machine, held by a process there.

    Args:
        link: The connection to it.
        folder: The command's folder there.
        place: Where what it has printed is kept here.
        patience: How many seconds the connection may be lost until its outcome is in doubt.
    """

    def __init__(self, link: Link, folder: There, place: Path, patience: float) -> None:
        self.folder = folder
        self._link = link
        self._place = place
        self._patience = patience
        self.left: Left | None = None
        """What it has left, once it has ended."""

    def stage(self) -> Stage:
        return _Seen(self._link.run("look", self.folder, "0", "0")).stage

    def call_off(self) -> bool:
        return self._link.run("call_off", self.folder, "called off").strip() == b"yes"

    def cancel(self) -> None:
        try:
            self._link.run("cancel", self.folder)
        except (UnreachableError, LinkLostError) as error:
            msg = f"the end of the command is not confirmed: {error}"
            raise InDoubtError(msg) from error

    def output(self) -> tuple[Output, Output]:
        return _Seen(self._link.run("look", self.folder, str(_SO_FAR), str(TAIL_BYTES))).outputs(self._place)

    async def ended(self) -> Ended:
        words = ("wait", self.folder, str(_WAIT_SECONDS), str(MOST_BYTES), str(TAIL_BYTES))
        lost = 0.0
        while True:
            try:
                seen = _Seen(await self._link.ask(*words, seconds=300))
            except (UnreachableError, LinkLostError) as error:
                lost = lost or time.monotonic()
                if time.monotonic() - lost > self._patience or self._link.closed:
                    msg = f"whether the command has ended, or goes on, is in doubt: {error}"
                    raise InDoubtError(msg) from error
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            lost = 0.0
            if seen.stage is Stage.ABSENT:
                told = await self._link.ask("call_off", self.folder, "cancelled")
                if told.strip() != b"yes":  # it has begun meanwhile
                    continue
                msg = "the connection was lost before the command began; it was not run"
                raise ToolError(msg)
            if seen.stage is Stage.LOST:
                await self._link.ask("cancel", self.folder)  # what is left of it
                msg = f"the process that held the command on {self._link.host} was killed: nothing tells how it ended"
                raise InDoubtError(msg)
            if seen.stage is Stage.ENDED:
                self.left = seen.left
                return seen.ended(self._place)


class _Seen:
    """What the machine tells of a command; its parts are those that `look` in the script names."""

    def __init__(self, told: bytes) -> None:
        try:
            stage, ended, sizes, self._rest = told.split(b"\n", 3)
            self.stage = Stage(stage.decode())
            self._sizes = _sizes_of(sizes)
            if self.stage is Stage.ENDED:
                code, self._why, left, seconds = ended.decode().split("|")
                self._code = int(code) if code else None
                self._left, self._seconds = int(left), float(seconds)
        except ValueError as error:
            msg = f"the machine's answer about a command is not understood: {told[:100]!r}"
            raise InDoubtError(msg) from error

    def outputs(self, place: Path) -> tuple[Output, Output]:
        """Give both outputs, whose beginnings are written into files of a folder."""
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        found, at = [], 0
        for name, (head, tail, total) in zip(("out", "err"), (self._sizes[:3], self._sizes[3:6]), strict=True):
            (place / name).write_bytes(self._rest[at : at + head])
            found.append(Output(place / name, total, self._rest[at + head : at + head + tail]))
            at += head + tail
        return found[0], found[1]

    def ended(self, place: Path) -> Ended:
        """Say how it has ended."""
        return Ended(self._code, self._why, "", self._left, self._seconds, *self.outputs(place))

    @property
    def left(self) -> Left | None:
        """What it has left."""
        cwd, environment = self._sizes[6:]
        at = len(self._rest) - cwd - environment
        return Left(self._rest[at : at + cwd], self._rest[at + cwd :]) if cwd else None


def _sizes_of(line: bytes) -> list[int]:
    found = [int(each) for each in line.split()]
    if len(found) != _SIZES or min(found) < 0:
        raise ValueError(line)
    return found


class RemoteShell(Shell):
    """A shell on another machine.

    Args:
        name: Its name.
        place: Where its state is kept on this machine.
        settings: Its settings, with `ssh`.
        lasting: Whether the next program finds the same place.
    """

    def __init__(self, name: str, place: Path, settings: ShellSettings, *, lasting: bool) -> None:
        super().__init__(name, place, {key: value.get_secret_value() for key, value in settings.env.items()})
        self._link = Link(settings)
        self.host = self._link.host
        self.files: RemoteFiles = RemoteFiles(self._link)
        self.why_not_isolated = f"on {self.host} they run as its user"
        self._settings = settings
        self._lasting = lasting
        self._threads = concurrent.futures.ThreadPoolExecutor(_THREADS, f"callboard-shell-{name}")
        self._running: set[str] = set()
        """The commands that were begun, and whose end is not known."""
        self._workspace: Path | None = None
        self._disk: Disk | None = None
        self._looked = 0.0
        kept = place / "remote"
        if not kept.exists():
            kept.write_text(uuid.uuid4().hex, encoding="ascii")
        self._there = There(kept.read_text(encoding="ascii"))
        """The folder of its commands on the machine."""

    @property
    def workspace(self) -> Path:
        if self._workspace is None:
            self._link.connect()
            self._base["HOME"] = self._link.home
            self._workspace = self.files.real(Path(self._link.home, self.expanded(str(self._settings.cwd))))
            self._link.run("forget", self._there, str(KEPT_DAYS))
        return self._workspace

    def disk(self) -> Disk:
        if self._disk is None or time.monotonic() - self._looked > _DISK_SECONDS:
            self._looked = time.monotonic()
            self._disk = self.files.disk(self.workspace)
        return self._disk

    def may_be_folder(self, path: str) -> bool:
        try:
            return self._disk is None or self._disk.is_folder(path)
        except UnclearError:
            return True

    def expanded(self, path: str) -> str:
        self._link.connect()
        return f"{self._link.home}{path[1:]}" if path == "~" or path.startswith("~/") else path

    def begin(self, call: str, command: str, cwd: Path, seconds: float) -> None:
        held = self.held(call)
        self._disk = None
        self._running.add(held.folder.name)
        self._link.connect()  # else nothing would have been asked of the machine
        exports = exports_of(self.environment)
        folder = shlex.quote(f"{self._link.place}/{held.folder.name}").replace("'", "'\\''")
        script = _SCRIPT.format(exports=exports, cwd=shlex.quote(str(cwd)), folder=folder, command=shlex.quote(command))
        limits = (f"{seconds:g}", str(MOST_BYTES), str(TAIL_BYTES))
        try:
            data = script.encode()
            self._link.run("begin", held.folder, *limits, uuid.uuid4().hex, str(cwd), str(len(data)), data=data)
        except LinkLostError:
            _log.warning("the connection to %s was lost while a command was begun there", self.host)

    def held(self, call: str) -> RemoteHeld:
        folder = folder_of(self._place / "commands", call)
        return RemoteHeld(self._link, There(f"{self._there.name}/{folder.name}"), folder, self._settings.grace)

    def left_by(self, held: Held) -> Left | None:
        assert isinstance(held, RemoteHeld)  # noqa: S101 - for the type checker
        self._running.discard(held.folder.name)
        return held.left

    async def off(self, function: Callable[[], _T]) -> _T:
        work = self._threads.submit(contextvars.copy_context().run, function)
        return await asyncio.wrap_future(work)

    def cancel(self, held: Held) -> None:
        """Have a command ended; while the machine can't be reached, that is tried again and again."""

        def cancel() -> None:
            end = time.monotonic() + self._settings.grace
            told = False
            while True:
                try:
                    held.cancel()
                except InDoubtError as error:
                    if not told:
                        _log.warning("%s", error)
                    told = True
                    if time.monotonic() > end or self._link.closed:
                        return
                    time.sleep(_RETRY_SECONDS)
                else:
                    return

        with contextlib.suppress(RuntimeError):  # it was closed, which has them all ended
            self._threads.submit(cancel)

    def end(self, seconds: float) -> None:
        if not (self._link.connected or self._running or (self._known is not None and self.state.jobs)):
            return
        try:
            ended = self._link.run("end_all", self._there, f"{seconds:.0f}", seconds=seconds + 2).strip() == b"yes"
            if ended and not self._lasting:
                self._link.run("forget", self._there, "0")
        except ToolError as error:
            _log.warning("the end of the commands on %s is not confirmed: %s", self.host, error)
        else:
            if not ended:
                _log.warning("some commands on %s have not ended within %g s", self.host, seconds)

    def close(self) -> None:
        self._link.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
