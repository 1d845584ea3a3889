"""A shell: its working directory, its environment and its commands."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import shlex
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from callboard.config import HostLog, own_folder, write_own
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.shell.judging import PATH, is_special

NO_NULL = r"^[^\x00]*$"
"""Pattern of a command or a path: a null character would end it, as in C."""

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from callboard.surfaces.shell._command_process import CommandProcess
    from callboard.surfaces.shell._files import ShellFiles
    from callboard.surfaces.shell.judging import Disk

_log = HostLog()
_T = TypeVar("_T")
ENVIRONMENT = {"PATH": PATH, "LANG": "C.UTF-8", "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat"}
"""Environment variables of all commands."""
KEPT_DAYS = 7
"""Days for which the output of a command is kept."""
_OURS = ("_", "SHLVL", "PWD", "OLDPWD", "SHELLOPTS", "BASHOPTS", "CALLBOARD_COMMAND")


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass
class ShellState:
    """The state of a shell that one command leaves to the next."""

    cwd: Path
    environment: dict[str, str] = field(default_factory=dict)
    """Variables that commands have exported, in addition to those of the settings."""
    last: str = ""
    """A digest of the last command and its outcome, for the fingerprint."""
    jobs: dict[str, str] = field(default_factory=dict)
    """Background commands: call ids by handle."""


class FinalState(NamedTuple):
    """The working directory and the environment at a command's end."""

    cwd: bytes
    environment: bytes


class BaseShell(ABC):
    """The interface of shells, with the state that they share.

    Args:
        name: The shell's name.
        data_folder: The folder of its state and its commands on this machine.
        environment: Environment variables of commands, in addition to `ENVIRONMENT`.
    """

    files: ShellFiles
    """The files of the shell's machine."""
    host = ""
    """The shell's machine; empty for this one."""
    isolated = False
    """Whether commands can access only the workspace and the system's programs."""
    why_not_isolated = ""

    def __init__(self, name: str, data_folder: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self._data_folder = data_folder
        self._base = {**ENVIRONMENT, **environment}
        for folder in (data_folder, data_folder / "commands", data_folder / "states"):
            own_folder(folder)
        self._state: ShellState | None = None
        self.began_in: Path | None = None
        """The working directory in which the latest command of this process began."""

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of a command."""
        return {**self._base, **self.state.environment}

    @property
    def own_environment(self) -> dict[str, str]:
        """The environment without what commands have exported."""
        return dict(self._base)

    @abstractmethod
    def disk(self) -> Disk:
        """Return the machine's present files, for the analysis of a command.

        Raises:
            ToolError: If the files can't be listed, or there are too many.
        """

    @abstractmethod
    def may_be_folder(self, path: str) -> bool:
        """Return whether a path is a folder or unknown, without blocking."""

    @property
    @abstractmethod
    def workspace(self) -> Path:
        """The folder that commands may change, with links resolved."""

    @abstractmethod
    def begin(self, call: str, command: str, cwd: Path, seconds: float, *, exported: Mapping[str, str]) -> None:
        """Start a command, unless it was started before a crash.

        Args:
            call: The id of the call.
            command: The command line for bash.
            cwd: The working directory.
            seconds: The time limit.
            exported: The variables that earlier commands have exported.

        Raises:
            ToolError: If the command can't be started, for example because the folder does not exist.
        """

    @abstractmethod
    def process(self, call: str) -> CommandProcess:
        """Return the process of a call's command, started or not."""

    @abstractmethod
    def end(self, seconds: float) -> None:
        """End all running commands with their child processes.

        Args:
            seconds: The longest wait for their end.
        """

    @abstractmethod
    def final_state(self, process: CommandProcess) -> FinalState | None:
        """Return the final state of a finished command.

        Returns:
            None if the command was killed, or replaced its shell (``exec``).
        """

    async def run_blocking(self, function: Callable[[], _T]) -> _T:
        """Call a function that may block, without blocking the event loop."""
        return function()

    def cancel(self, process: CommandProcess) -> None:
        """Cancel the command of a cancelled call, without waiting for its end."""
        process.cancel()

    @property
    def state(self) -> ShellState:
        """The working directory, the exported variables and the background commands."""
        if self._state is None:
            self._state = self._load_state()
        return self._state

    def adopt(self, process: CommandProcess, output: bytes) -> None:
        """Adopt the working directory and the exported variables of a finished command.

        Args:
            process: The command.
            output: The command and its outcome; a digest of it is kept.
        """
        end_state = self.final_state(process)
        if end_state is not None:
            exported = end_state.environment.decode(errors="replace").split("\0")
            variables = dict(assignment.split("=", 1) for assignment in exported if "=" in assignment)
            changed = {
                name: value
                for name, value in variables.items()
                if name not in _OURS and not name.startswith("BASH_FUNC_") and self._base.get(name) != value
            }
            # the environment is empty if it was too large
            self.state.environment = changed if variables else self.state.environment
            # a name that is not UTF-8 is not found
            cwd = Path(end_state.cwd.decode(errors="replace").removesuffix("\n"))
            is_visible = cwd.is_absolute() and (not self.isolated or self.is_inside(cwd))
            if is_visible and cwd != self.state.cwd and self.files.is_folder(cwd):
                self.state.cwd = cwd
        self.state.last = hashlib.sha256(output).hexdigest()
        self.save()

    def inside(self, path: str) -> Path:
        """Resolve a path, relative to the working directory, with links followed."""
        return self.files.real(Path(posixpath.join(self.here(), self.expanded(path)))) if path else self.here()

    def here(self) -> Path:
        """Return the working directory."""
        return self.state.cwd

    def expanded(self, path: str) -> str:
        """Replace a leading tilde with the home directory."""
        return os.path.expanduser(path)  # noqa: PTH111 - the tilde of an unknown user stays

    def is_inside(self, path: Path) -> bool:
        """Return whether a resolved path belongs to the workspace.

        Virtual file systems such as ``/proc`` belong to none.
        """
        return path.is_relative_to(self.workspace) and not is_special(path)

    def job(self, handle: str) -> CommandProcess:
        """Find a background command by its handle.

        Raises:
            ToolError: If the handle is unknown.
        """
        if handle not in self.state.jobs:
            handles = ", ".join(self.state.jobs) or "none"
            msg = f"there is no background command {handle!r}; there are: {handles}"
            raise ToolError(msg)
        return self.process(self.state.jobs[handle])

    def save(self) -> None:
        """Write the state for the next process; log a failure."""
        content = {**self.state.__dict__, "cwd": str(self.state.cwd)}
        try:
            write_own(self._data_folder / "state.json", json.dumps(content))
        except OSError as error:
            _log.warning("the state of the shell %s can't be saved: %s", self.name, error.strerror)

    def close(self) -> None:  # noqa: B027 - a local shell has nothing to release
        """Release the connection to the machine."""

    def _load_state(self) -> ShellState:
        try:
            content = json.loads((self._data_folder / "state.json").read_text(encoding="utf-8"))
            state = ShellState(Path(content["cwd"]), content["environment"], content["last"], content["jobs"])
        except (OSError, ValueError, KeyError):
            return ShellState(self.workspace)
        cwd_exists = self.files.is_folder(state.cwd)
        return state if cwd_exists else ShellState(self.workspace, state.environment, state.last, state.jobs)


def exports_of(environment: Mapping[str, str]) -> str:
    """Format variables as exports for bash, without invalid names."""
    named = {name: value for name, value in environment.items() if _NAME.fullmatch(name)}
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in named.items())
