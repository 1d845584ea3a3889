"""Requirements of surfaces on a machine, with the commands that install them."""

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
    """One requirement: a package, a program, a display, a folder."""

    what: str
    """The name of the requirement, such as "the program 'adb'"."""
    met: bool
    """Whether it is available."""
    command: str = ""
    """The command that installs it; empty if there is none."""
    optional: bool = False
    """Whether the surface works without it, with fewer features."""

    @classmethod
    def package(cls, module: str, command: str, *, optional: bool = False) -> Self:
        """Require a Python module. It is looked up, but not imported."""
        try:
            met = importlib.util.find_spec(module) is not None
        except ImportError:  # a module within a missing package
            met = False
        return cls(what=f"the package {module!r}", met=met, command=command, optional=optional)

    @classmethod
    def program(cls, name: str, command: str = "", *, optional: bool = False) -> Self:
        """Require a program that can be started by its name."""
        return cls(what=f"the program {name!r}", met=shutil.which(name) is not None, command=command, optional=optional)

    @property
    def told(self) -> str:
        """The error message for a missing requirement, with its install command."""
        return f"{self.what} is missing{f': {self.command}' if self.command else ''}"


def check_needs(needs: Iterable[tuple[str, Need]]) -> None:
    """Check that all requirements are met.

    Args:
        needs: The requirements, each with the place in the settings that has it.

    Raises:
        SettingsError: If a requirement that is not optional is missing. It names all of these, with the commands.
    """
    missing = [(where, need) for where, need in needs if not need.met and not need.optional]
    if missing:
        commands = dict.fromkeys(need.command for _, need in missing if need.command)
        raise SettingsError("\n".join(f"{where}: {need.told}" for where, need in missing), tuple(commands))
