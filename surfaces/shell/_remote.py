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

from callboard.config import HostLog, own_folder, write_own
from callboard.surfaces._tool_function import InDoubtError, ToolError
from callboard.surfaces.shell._base_shell import KEPT_DAYS, BaseShell, FinalState, exports_of
from callboard.surfaces.shell._command_process import (
    MOST_BYTES,
    TAIL_BYTES,
    CommandEnd,
    CommandProcess,
    CommandStage,
    Output,
    folder_of,
)
from callboard.surfaces.shell._remote_files import RemoteFiles
from callboard.surfaces.shell._ssh import Link, LinkLostError, RemoteFolder, UnreachableError
from callboard.surfaces.shell.judging import UnclearError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from callboard.config import ShellSettings
    from callboard.surfaces.shell.judging import Disk

_log = HostLog()
_T = TypeVar("_T")
_WAIT_SECONDS = 5
_RETRY_SECONDS = 0.5
_DISK_SECONDS = 2.0
"""The lifetime of the cached file list: long enough for the analysis of one command."""
_THREADS = 4
_SO_FAR = 16_000
"""The number of first bytes of an output that are fetched while a command runs."""
_SIZES = 8
"""The number of sizes in the answer of `look`."""
_SCRIPT = """\
rm -f -- "$0"
{exports}
cd -- {cwd} || exit 1
trap '__code=$?; trap - EXIT
{{ builtin pwd -P >{folder}/cwd; env -0 >{folder}/env; }} 2>/dev/null
exit "$__code"' EXIT
eval {command}
"""


class RemoteProcess(CommandProcess):
    """The process of a command on another machine, with a runner there.

    Args:
        link: The connection to the machine.
        folder: The command's folder on the machine.
        output_folder: The folder of its output on this machine.
        patience: Seconds of a lost connection after which the outcome is in doubt.
    """

    def __init__(self, link: Link, folder: RemoteFolder, output_folder: Path, patience: float) -> None:
        self.folder = folder
        self._link = link
        self._output_folder = output_folder
        self._patience = patience
        self.final_state: FinalState | None = None
        """The command's final state, once it has ended."""

    def stage(self) -> CommandStage:
        return _RemoteReport(self._link.run("look", self.folder, "0", "0")).stage

    def call_off(self) -> bool:
        return self._link.run("call_off", self.folder, "called off").strip() == b"yes"

    def cancel(self) -> None:
        try:
            self._link.run("cancel", self.folder)
        except (UnreachableError, LinkLostError) as error:
            msg = f"the end of the command is not confirmed: {error}"
            raise InDoubtError(msg) from error

    def output(self) -> tuple[Output, Output]:
        return _RemoteReport(self._link.run("look", self.folder, str(_SO_FAR), str(TAIL_BYTES))).outputs(
            self._output_folder
        )

    async def ended(self) -> CommandEnd:
        words = ("wait", self.folder, str(_WAIT_SECONDS), str(MOST_BYTES), str(TAIL_BYTES))
        lost_at = 0.0
        while True:
            try:
                report = _RemoteReport(await self._link.ask(*words, seconds=300))
            except (UnreachableError, LinkLostError) as error:
                lost_at = lost_at or time.monotonic()
                if time.monotonic() - lost_at > self._patience or self._link.closed:
                    msg = f"it is unknown whether the command is still running: {error}"
                    raise InDoubtError(msg) from error
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            lost_at = 0.0
            if report.stage is CommandStage.ABSENT:
                answer = await self._link.ask("call_off", self.folder, "cancelled")
                if answer.strip() != b"yes":  # it has started meanwhile
                    continue
                msg = "the connection was lost before the command began; it was not run"
                raise ToolError(msg)
            if report.stage is CommandStage.LOST:
                await self._link.ask("cancel", self.folder)  # kill its remaining processes
                msg = f"the command's runner process on {self._link.host} was killed; its outcome is unknown"
                raise InDoubtError(msg)
            if report.stage is CommandStage.ENDED:
                self.final_state = report.final_state
                return report.ended(self._output_folder)


class _RemoteReport:
    """A machine's report about a command, as `look` prints it."""

    def __init__(self, data: bytes) -> None:
        try:
            stage, ended, sizes, self._payload = data.split(b"\n", 3)
            self.stage = CommandStage(stage.decode())
            self._sizes = _sizes_of(sizes)
            if self.stage is CommandStage.ENDED:
                code, self._why, killed_count, seconds = ended.decode().split("|")
                self._code = int(code) if code else None
                self._killed_count, self._seconds = int(killed_count), float(seconds)
        except ValueError as error:
            msg = f"the machine's report about a command can't be parsed: {data[:100]!r}"
            raise InDoubtError(msg) from error

    def outputs(self, folder: Path) -> tuple[Output, Output]:
        """Return both outputs, with their first bytes in files."""
        own_folder(folder)
        streams, at = [], 0
        for name, (head, tail, total) in zip(("out", "err"), (self._sizes[:3], self._sizes[3:6]), strict=True):
            write_own(folder / name, self._payload[at : at + head])
            streams.append(Output(folder / name, total, self._payload[at + head : at + head + tail]))
            at += head + tail
        return streams[0], streams[1]

    def ended(self, folder: Path) -> CommandEnd:
        """Return the command's outcome."""
        return CommandEnd(self._code, self._why, "", self._killed_count, self._seconds, *self.outputs(folder))

    @property
    def final_state(self) -> FinalState | None:
        """The command's final state."""
        cwd, environment = self._sizes[6:]
        at = len(self._payload) - cwd - environment
        return FinalState(self._payload[at : at + cwd], self._payload[at + cwd :]) if cwd else None


def _sizes_of(line: bytes) -> list[int]:
    sizes = [int(number) for number in line.split()]
    if len(sizes) != _SIZES or min(sizes) < 0:
        raise ValueError(line)
    return sizes


class RemoteShell(BaseShell):
    """A shell on another machine.

    Args:
        name: The shell's name.
        data_folder: The folder of its state on this machine.
        settings: The shell's settings, with `ssh`.
        lasting: Whether the folder is kept for the next program.
    """

    def __init__(self, name: str, data_folder: Path, settings: ShellSettings, *, lasting: bool) -> None:
        super().__init__(name, data_folder, {key: value.get_secret_value() for key, value in settings.env.items()})
        self._link = Link(settings)
        self.host = self._link.host
        self.files: RemoteFiles = RemoteFiles(self._link)
        self.why_not_isolated = f"on {self.host} they run as its user"
        self._settings = settings
        self._lasting = lasting
        self._threads = concurrent.futures.ThreadPoolExecutor(_THREADS, f"callboard-shell-{name}")
        self._running: set[str] = set()
        """The started commands whose outcome is not known."""
        self._workspace: Path | None = None
        self._disk: Disk | None = None
        self._looked = 0.0
        id_file = data_folder / "remote"
        if not id_file.exists():
            write_own(id_file, uuid.uuid4().hex)
        self._folder = RemoteFolder(id_file.read_text(encoding="ascii"))
        """The folder of the shell's commands on the machine."""

    @property
    def workspace(self) -> Path:
        if self._workspace is None:
            self._link.connect()
            self._base["HOME"] = self._link.home
            self._workspace = self.files.real(Path(self._link.home, self.expanded(str(self._settings.cwd))))
            self._link.run("forget", self._folder, str(KEPT_DAYS))
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

    def begin(self, call: str, command: str, cwd: Path, seconds: float, *, exported: Mapping[str, str]) -> None:
        process = self.process(call)
        self._disk = None
        self._running.add(process.folder.name)
        self._link.connect()  # an error here means that nothing was sent to the machine
        exports = exports_of({**self._base, **exported})
        folder = shlex.quote(f"{self._link.remote_folder}/{process.folder.name}").replace("'", "'\\''")
        script = _SCRIPT.format(exports=exports, cwd=shlex.quote(str(cwd)), folder=folder, command=shlex.quote(command))
        limits = (f"{seconds:g}", str(MOST_BYTES), str(TAIL_BYTES))
        try:
            data = script.encode()
            self._link.run("begin", process.folder, *limits, uuid.uuid4().hex, str(cwd), str(len(data)), data=data)
        except LinkLostError:
            _log.warning("the connection to %s was lost while a command was started there", self.host)

    def process(self, call: str) -> RemoteProcess:
        folder = folder_of(self._data_folder / "commands", call)
        return RemoteProcess(
            self._link, RemoteFolder(f"{self._folder.name}/{folder.name}"), folder, self._settings.grace
        )

    def final_state(self, process: CommandProcess) -> FinalState | None:
        assert isinstance(process, RemoteProcess)  # noqa: S101 - for the type checker
        self._running.discard(process.folder.name)
        return process.final_state

    async def run_blocking(self, function: Callable[[], _T]) -> _T:
        work = self._threads.submit(contextvars.copy_context().run, function)
        return await asyncio.wrap_future(work)

    def cancel(self, process: CommandProcess) -> None:
        """Cancel a command, with retries while the machine can't be reached."""

        def cancel() -> None:
            end = time.monotonic() + self._settings.grace
            is_logged = False
            while True:
                try:
                    process.cancel()
                except InDoubtError as error:
                    if not is_logged:
                        _log.warning("%s", error)
                    is_logged = True
                    if time.monotonic() > end or self._link.closed:
                        return
                    time.sleep(_RETRY_SECONDS)
                else:
                    return

        with contextlib.suppress(RuntimeError):  # the shell was closed, which ends all commands
            self._threads.submit(cancel)

    def end(self, seconds: float) -> None:
        if not (self._link.connected or self._running or (self._state is not None and self.state.jobs)):
            return
        try:
            ended = self._link.run("end_all", self._folder, f"{seconds:.0f}", seconds=seconds + 2).strip() == b"yes"
            if ended and not self._lasting:
                self._link.run("forget", self._folder, "0")
        except ToolError as error:
            _log.warning("the end of the commands on %s is not confirmed: %s", self.host, error)
        else:
            if not ended:
                _log.warning("some commands on %s have not ended within %g s", self.host, seconds)

    def close(self) -> None:
        self._link.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
