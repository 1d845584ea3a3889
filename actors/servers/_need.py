"""The things that a surface needs on a machine, each with the command that brings it."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from callboard.messages import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, kw_only=True)
class Need:
    """One thing that is needed here: a package, a program, a display, a folder."""

    what: str
    """What it is, as in "the program 'adb'"."""
    met: bool
    """Whether it is there."""
    command: str = ""
    """The command that brings it; empty if there is none."""
    optional: bool = False
    """Whether the surface works without it, with less."""

    @classmethod
    def package(cls, module: str, command: str, *, optional: bool = False) -> Self:
        """Need a Python module, which is looked for without an import of it."""
        try:
            met = importlib.util.find_spec(module) is not None
        except ImportError:  # a module within a package that is not there
            met = False
        return cls(what=f"the package {module!r}", met=met, command=command, optional=optional)

    @classmethod
    def program(cls, name: str, command: str = "", *, optional: bool = False) -> Self:
        """Need a program that can be started by its name."""
        return cls(what=f"the program {name!r}", met=shutil.which(name) is not None, command=command, optional=optional)

    @property
    def told(self) -> str:
        """Say that it is missing, with the command that brings it."""
        return f"{self.what} is missing{f': {self.command}' if self.command else ''}"


def check_needs(needs: Iterable[tuple[str, Need]]) -> None:
    """Refuse to go on without what is needed.

    Args:
        needs: What is needed, each with the place in the settings that needs it.

    Raises:
        SettingsError: If something is missing that is not optional; it names all of that, with the commands.
    """
    missing = [(where, need) for where, need in needs if not need.met and not need.optional]
    if missing:
        commands = dict.fromkeys(need.command for _, need in missing if need.command)
        raise SettingsError("\n".join(f"{where}: {need.told}" for where, need in missing), tuple(commands))
