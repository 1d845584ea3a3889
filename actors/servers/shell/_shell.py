"""One shell on this machine: where it is, what it has in its environment, and the commands that it runs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.shell._held import Held, Stage, folder_of
from callboard.actors.servers.shell._isolation import sandbox, why_not
from callboard.actors.servers.shell._runner import start_of

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
"""Where programs are looked for."""
_SCRIPT = r"""
command=$1 place=$2; shift 2
trap '__code=$?; trap - EXIT; pwd -P > "$place/cwd"; /usr/bin/env -0 > "$place/env"; exit "$__code"' EXIT
eval "$command"
"""
_OURS = ("_", "SHLVL", "PWD", "OLDPWD")
_KEPT_SECONDS = 7 * 86_400.0
"""The time for which the output of a command is kept."""


@dataclass
class State:
    """The state that lasts from one command to the next."""

    cwd: Path
    environment: dict[str, str] = field(default_factory=dict)
    """Variables that commands have exported, beside those of the settings."""
    last: str = ""
    """A digest of the last command and of how it ended, for the fingerprint."""
    jobs: dict[str, str] = field(default_factory=dict)
    """The commands in the background: the id of the call by the handle."""


class Shell:
    """A shell whose workspace is a folder of this machine.

    Args:
        name: Its name.
        place: Where its state and its commands are kept.
        workspace: The folder that commands may change.
        environment: What commands have in their environment, beside the path and the language.
        network: Whether isolated commands have the network.
        isolated: Whether commands are isolated: None if that is possible here.
        grace: How many seconds commands go on when this program is killed.
    """

    def __init__(  # noqa: PLR0913 - the section of the settings
        self,
        name: str,
        place: Path,
        workspace: Path,
        *,
        environment: Mapping[str, str],
        network: bool,
        isolated: bool | None,
        grace: float,
    ) -> None:
        self.name = name
        self.workspace = workspace.resolve()
        self._place = place
        self.isolated = not why_not() if isolated is None else isolated
        self._base = {
            "PATH": PATH,
            "HOME": "/tmp" if self.isolated else str(place / "home"),  # noqa: S108 - its own there
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "PAGER": "cat",
            "GIT_PAGER": "cat",
            **environment,
        }
        self._network = network
        self._grace = grace
        for folder in ("commands", "states", "home"):
            (place / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        (place / "commands" / "host").write_text(f"{os.getpid()} {start_of(os.getpid())}", encoding="utf-8")
        self.state = self._loaded()
        self._forget()

    def begin(self, call: str, command: str, cwd: Path, seconds: float) -> Held:
        """Begin a command, and give what holds it.

        Args:
            call: The id of the call.
            command: For bash.
            cwd: Where it starts.
            seconds: How long it may take.
        """
        held = self.held(call)
        place = self._place / "states" / held.folder.name
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        words = ["/bin/bash", "--noprofile", "--norc", "-c", _SCRIPT, "bash", command, str(place)]
        if self.isolated:
            words = [*sandbox(self.workspace, cwd, (place,), network=self._network), *words]
        environment = {**self._base, **self.state.environment}
        held.begin(words, cwd=cwd, environment=environment, seconds=seconds, grace=self._grace)
        return held

    def held(self, call: str) -> Held:
        """Give what holds the command of a call, whether or not there is one."""
        return Held(folder_of(self._place / "commands", call))

    def took(self, held: Held, told: bytes) -> None:
        """Take over where a command that has ended has led to, and what it has exported.

        Args:
            held: The command.
            told: What tells it, and how it ended, from others; of it a digest is kept.
        """
        place = self._place / "states" / held.folder.name
        try:
            cwd = Path((place / "cwd").read_text(encoding="utf-8").removesuffix("\n"))
            exported = (place / "env").read_bytes().decode(errors="replace").split("\0")
        except FileNotFoundError:  # it was ended, or has replaced its shell
            cwd, exported = self.state.cwd, []
        if exported:
            found = dict(each.split("=", 1) for each in exported if "=" in each)
            self.state.environment = {
                name: value
                for name, value in found.items()
                if name not in _OURS and not name.startswith("BASH_FUNC_") and self._base.get(name) != value
            }
        if cwd.is_dir():
            self.state.cwd = cwd
        shutil.rmtree(place, ignore_errors=True)
        self.state.last = hashlib.sha256(told).hexdigest()
        self.save()

    def inside(self, path: str) -> Path:
        """Give the absolute path of a name that counts from where the shell is, with links followed."""
        return Path(os.path.realpath(self.state.cwd / Path(path).expanduser() if path else self.state.cwd))

    def is_inside(self, path: Path) -> bool:
        """Return whether a path is the workspace, or in it."""
        return path.is_relative_to(self.workspace)

    def job(self, handle: str) -> Held:
        """Find a command in the background.

        Raises:
            ToolError: If there is none.
        """
        if handle not in self.state.jobs:
            known = ", ".join(self.state.jobs) or "none"
            msg = f"there is no background command {handle!r}; there are: {known}"
            raise ToolError(msg)
        return self.held(self.state.jobs[handle])

    def running(self) -> list[Held]:
        """Give the commands that run."""
        return [held for held in map(Held, self._folders()) if held.stage() is Stage.RUNNING]

    def save(self) -> None:
        """Keep the state for the next process."""
        told = {**self.state.__dict__, "cwd": str(self.state.cwd)}
        new = self._place / "state.new"
        new.write_text(json.dumps(told), encoding="utf-8")
        new.replace(self._place / "state.json")

    def _loaded(self) -> State:
        try:
            told = json.loads((self._place / "state.json").read_text(encoding="utf-8"))
            state = State(Path(told["cwd"]), told["environment"], told["last"], told["jobs"])
        except (OSError, ValueError, KeyError):
            return State(self.workspace)
        return state if state.cwd.is_dir() else State(self.workspace, state.environment, state.last, state.jobs)

    def _folders(self) -> list[Path]:
        return [path for path in (self._place / "commands").iterdir() if path.is_dir()]

    def _forget(self) -> None:
        """Remove what commands have printed that ended long ago."""
        for folder in self._folders():
            if time.time() - folder.stat().st_mtime > _KEPT_SECONDS and Held(folder).stage() is not Stage.RUNNING:
                shutil.rmtree(folder, ignore_errors=True)
