"""One shell: where it is, what it has in its environment, and the commands that it runs."""

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

from callboard.actors.servers._server import ToolError
from callboard.config import HostLog

NO_NULL = r"^[^\x00]*$"
"""What a command or a path may hold: the character that ends texts in C would cut it."""

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from callboard.actors.servers.shell._disk import Disk
    from callboard.actors.servers.shell._files import Files
    from callboard.actors.servers.shell._held import Held

_log = HostLog()
_T = TypeVar("_T")
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
"""Where programs are looked for."""
ENVIRONMENT = {"PATH": PATH, "LANG": "C.UTF-8", "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat"}
"""What all commands have in their environment."""
KEPT_DAYS = 7
"""For how many days the output of a command is kept."""
_OURS = ("_", "SHLVL", "PWD", "OLDPWD", "SHELLOPTS", "BASHOPTS", "CALLBOARD_COMMAND")


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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


class Left(NamedTuple):
    """What a command has left: the folder in which it ended, and its environment."""

    cwd: bytes
    environment: bytes


class Shell(ABC):
    """A shell.

    Args:
        name: Its name.
        place: Where its state and its commands are kept on this machine.
        environment: What commands have in their environment, beside `ENVIRONMENT`.
    """

    files: Files
    """The files of its machine."""
    host = ""
    """The machine on which it is; empty for this one."""
    isolated = False
    """Whether commands see the workspace and the system's programs alone."""
    why_not_isolated = ""

    def __init__(self, name: str, place: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self._place = place
        self._base = {**ENVIRONMENT, **environment}
        for folder in ("commands", "states"):
            (place / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._known: State | None = None

    @property
    def environment(self) -> dict[str, str]:
        """All that a command has in its environment."""
        return {**self._base, **self.state.environment}

    @abstractmethod
    def disk(self) -> Disk:
        """Give the files of its machine, as they are now, to judge a command by.

        Raises:
            ToolError: If they can't be looked at, or there are too many.
        """

    @abstractmethod
    def may_be_folder(self, path: str) -> bool:
        """Return whether something is a folder, or that is not known. Does not wait."""

    @property
    @abstractmethod
    def workspace(self) -> Path:
        """The folder that commands may change, with links followed."""

    @abstractmethod
    def begin(self, call: str, command: str, cwd: Path, seconds: float) -> None:
        """Begin a command, unless it was begun before a crash.

        Args:
            call: The id of the call.
            command: For bash.
            cwd: Where it starts.
            seconds: How long it may take.

        Raises:
            ToolError: If it can't be begun, for example because there is no such folder.
        """

    @abstractmethod
    def held(self, call: str) -> Held:
        """Give what holds the command of a call, whether or not there is one."""

    @abstractmethod
    def end(self, seconds: float) -> None:
        """End all commands that run, with everything that they have started; wait for that so long at most."""

    @abstractmethod
    def left_by(self, held: Held) -> Left | None:
        """Give what a command that has ended has left; None if it was ended, or has replaced its shell."""

    async def off(self, function: Callable[[], _T]) -> _T:
        """Call what may wait for the machine, without holding up the event loop."""
        return function()

    def cancel(self, held: Held) -> None:
        """Have a command ended whose call is stopped; does not wait."""
        held.cancel()

    @property
    def state(self) -> State:
        """Where it is, and what commands have exported."""
        if self._known is None:
            self._known = self._loaded()
        return self._known

    def took(self, held: Held, told: bytes) -> None:
        """Take over where a command that has ended has led to, and what it has exported.

        Args:
            held: The command.
            told: What tells it, and how it ended, from others; of it a digest is kept.
        """
        left = self.left_by(held)
        if left is not None:
            exported = left.environment.decode(errors="replace").split("\0")
            found = dict(each.split("=", 1) for each in exported if "=" in each)
            changed = {
                name: value
                for name, value in found.items()
                if name not in _OURS and not name.startswith("BASH_FUNC_") and self._base.get(name) != value
            }
            self.state.environment = changed if found else self.state.environment  # none: too large to be told
            cwd = Path(left.cwd.decode(errors="replace").removesuffix("\n"))  # such a folder is not there
            seen = cwd.is_absolute() and (not self.isolated or self.is_inside(cwd))
            if seen and cwd != self.state.cwd and self.files.is_folder(cwd):
                self.state.cwd = cwd
        self.state.last = hashlib.sha256(told).hexdigest()
        self.save()

    def inside(self, path: str) -> Path:
        """Give the absolute path of a name that counts from where the shell is, with links followed."""
        return self.files.real(Path(posixpath.join(self.here(), self.expanded(path)))) if path else self.here()

    def here(self) -> Path:
        """Give the folder in which it is."""
        return self.state.cwd

    def expanded(self, path: str) -> str:
        """Write the home in place of a tilde."""
        return os.path.expanduser(path)  # noqa: PTH111 - one of an unknown user is a name

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

    def save(self) -> None:
        """Keep the state for the next process. On a full disk this one goes on without."""
        told = {**self.state.__dict__, "cwd": str(self.state.cwd)}
        new = self._place / "state.new"
        try:
            new.write_text(json.dumps(told), encoding="utf-8")
            new.replace(self._place / "state.json")
        except OSError as error:
            _log.warning("the state of the shell %s can't be kept: %s", self.name, error.strerror)

    def close(self) -> None:  # noqa: B027 - there is nothing to let go of on this machine
        """Let go of its machine."""

    def _loaded(self) -> State:
        try:
            told = json.loads((self._place / "state.json").read_text(encoding="utf-8"))
            state = State(Path(told["cwd"]), told["environment"], told["last"], told["jobs"])
        except (OSError, ValueError, KeyError):
            return State(self.workspace)
        known = self.files.is_folder(state.cwd)
        return state if known else State(self.workspace, state.environment, state.last, state.jobs)


def exports_of(environment: Mapping[str, str]) -> str:
    """Give lines for bash that export variables, but those that it can't name."""
    named = {name: value for name, value in environment.items() if _NAME.fullmatch(name)}
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in named.items())
