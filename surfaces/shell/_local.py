"""A shell on this machine."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.config import own_folder, write_own
from callboard.messages import SettingsError
from callboard.surfaces import delete_stale_spares
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.shell._base_shell import ENVIRONMENT, KEPT_DAYS, BaseShell, FinalState, exports_of
from callboard.surfaces.shell._command_process import CommandStage, LocalProcess, folder_of
from callboard.surfaces.shell._files import LocalFiles
from callboard.surfaces.shell._isolation import sandbox, why_not
from callboard.surfaces.shell._runner import start_of
from callboard.surfaces.shell.judging import LocalDisk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callboard.surfaces.shell._command_process import CommandProcess

_SCRIPT = """\
. {place}/exports 2>/dev/null; /bin/rm -f -- {place}/exports
command=$1; shift
trap '__code=$?; trap - EXIT
{{ builtin pwd -P >{quoted}/cwd; /usr/bin/env -0 >{quoted}/env; }} 2>/dev/null
exit "$__code"' EXIT
eval "$command"
"""
_MOST_LEFT = 4_000_000
"""The most bytes of a working directory's name or an environment."""
_POLL_SECONDS = 0.02


class LocalShell(BaseShell):
    """A shell whose workspace is a folder of this machine.

    Args:
        name: The shell's name.
        data_folder: The folder of its state and its commands.
        workspace: The folder that commands may change.
        environment: Environment variables of commands, in addition to `ENVIRONMENT`.
        network: Whether isolated commands can use the network.
        isolated: Whether commands are isolated; None to isolate them where possible.
        grace: Seconds for which commands run on after this program is killed.

    Raises:
        SettingsError: If isolated commands could change the journal's folder.
    """

    def __init__(
        self,
        name: str,
        data_folder: Path,
        workspace: Path,
        *,
        environment: Mapping[str, str],
        network: bool,
        isolated: bool | None,
        grace: float,
    ) -> None:
        self.files = LocalFiles()
        self._workspace = workspace.resolve()
        delete_stale_spares(self._workspace)
        self.isolated = not why_not() if isolated is None else isolated
        self.why_not_isolated = "" if self.isolated else why_not() or "switched off"
        if self.isolated and data_folder.resolve().is_relative_to(self._workspace):
            msg = (
                f"the shell {name!r} has the workspace {self._workspace}, and {data_folder} with the journal is in it: "
                "its commands are isolated, and could change that; set another `cwd`, or another `journal.path`"
            )
            raise SettingsError(msg)
        home = "/tmp" if self.isolated else str(data_folder / "home")  # noqa: S108 - private in the sandbox
        super().__init__(name, data_folder, {"HOME": home, **environment})
        own_folder(data_folder / "home")
        self._network = network
        self._grace = grace
        write_own(data_folder / "commands" / "host", f"{os.getpid()} {start_of(os.getpid())}")
        self._forget()

    @property
    def workspace(self) -> Path:
        return self._workspace

    def disk(self) -> LocalDisk:
        return LocalDisk(self.workspace)

    def may_be_folder(self, path: str) -> bool:
        return Path(path).is_dir()

    def begin(self, call: str, command: str, cwd: Path, seconds: float, *, exported: Mapping[str, str]) -> None:
        process = self.process(call)
        if process.stage() is not CommandStage.ABSENT:
            return
        if not cwd.is_dir():
            msg = f"there is no folder {cwd}"
            raise ToolError(msg)
        try:
            self._begin(process, command, cwd, seconds, exported)
        except OSError as error:  # the runner is started last
            msg = f"the command can't be started, and was not run: {error.strerror}"
            raise ToolError(msg) from error

    def _begin(
        self, process: LocalProcess, command: str, cwd: Path, seconds: float, exported: Mapping[str, str]
    ) -> None:
        state_folder = self._data_folder / "states" / process.folder.name
        own_folder(state_folder)
        environment = self._base
        if self.isolated:  # set inside the sandbox alone: they could inject code into bwrap, or select another one
            environment, exported = ENVIRONMENT, {**self._base, **exported}
        write_own(state_folder / "exports", exports_of(exported))
        name = shlex.quote(str(state_folder))
        script = _SCRIPT.format(place=name, quoted=name.replace("'", "'\\''"))
        words = ["/bin/bash", "--noprofile", "--norc", "-c", script, "bash", command]
        if self.isolated:
            words = [
                *sandbox(self.workspace, cwd, (state_folder,), network=self._network, folder=self._data_folder),
                *words,
            ]
        process.begin(words, cwd=cwd, environment=environment, seconds=seconds, grace=self._grace)

    def process(self, call: str) -> LocalProcess:
        return LocalProcess(folder_of(self._data_folder / "commands", call))

    def final_state(self, process: CommandProcess) -> FinalState | None:
        assert isinstance(process, LocalProcess)  # noqa: S101 - for the type checker
        state_folder = self._data_folder / "states" / process.folder.name
        try:
            return FinalState(_plain(state_folder / "cwd"), _plain(state_folder / "env"))
        except OSError:
            return None
        finally:
            shutil.rmtree(state_folder, ignore_errors=True)

    def here(self) -> Path:
        cwd = self.files.real(self.state.cwd)
        is_visible = not self.isolated or self.is_inside(cwd)
        return cwd if is_visible and self.files.is_folder(cwd) else self.workspace

    def end(self, seconds: float) -> None:
        running = [
            process
            for process in map(LocalProcess, self._folders())
            if process.stage() in {CommandStage.RUNNING, CommandStage.ABSENT}
        ]
        for process in running:  # also those that are about to start
            process.cancel()
        end = time.monotonic() + seconds
        while any(process.stage() is CommandStage.RUNNING for process in running) and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)

    def _folders(self) -> list[Path]:
        return [path for path in (self._data_folder / "commands").iterdir() if path.is_dir()]

    def _forget(self) -> None:
        """Delete the output and the state of commands that ended long ago."""
        running = {folder.name for folder in self._folders() if LocalProcess(folder).stage() is CommandStage.RUNNING}
        for folder in (*self._folders(), *(self._data_folder / "states").iterdir()):
            old = time.time() - folder.stat().st_mtime > KEPT_DAYS * 86_400
            if old and folder.name not in running:
                shutil.rmtree(folder, ignore_errors=True)
        jobs = {handle: call for handle, call in self.state.jobs.items() if self.process(call).folder.exists()}
        if jobs != self.state.jobs:
            self.state.jobs = jobs
            self.save()


def _plain(path: Path) -> bytes:
    """Read a regular file that a command has written.

    A command could also create a link that leads out of its sandbox, or a pipe without an end.

    Raises:
        OSError: If the path is not a regular file, or the file is too long.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_LEFT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path))
        return file.read(_MOST_LEFT)
