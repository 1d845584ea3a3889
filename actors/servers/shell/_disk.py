"""The files of a machine, by which a command is judged: looked at on the spot, or as another machine told them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from callboard.actors.servers.shell._words import UnclearError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SPECIAL = frozenset({"/proc", "/dev", "/sys"})
_MOST_LINKS = 40


class Entry(NamedTuple):
    """Something in a folder."""

    name: str
    path: str
    is_link: bool
    is_folder: bool
    """Whether it is a folder itself, and no link to one."""

    @classmethod
    def of(cls, found: os.DirEntry[str]) -> Entry:
        """Take what a folder of this machine has."""
        return cls(found.name, found.path, found.is_symlink(), found.is_dir(follow_symlinks=False))


class Disk(ABC):
    """The files of a machine. Paths are absolute texts; all methods but `is_link` and `target` follow links.

    Args:
        workspace: The folder that the shell may change, with links followed.
    """

    local = True
    """Whether they are those of this machine."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace

    @abstractmethod
    def is_link(self, path: str) -> bool:
        """Return whether there is a link."""

    @abstractmethod
    def target(self, path: str) -> str:
        """Give what a link says."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Return whether there is anything."""

    @abstractmethod
    def is_file(self, path: str) -> bool:
        """Return whether there is a plain file."""

    @abstractmethod
    def is_folder(self, path: str) -> bool:
        """Return whether there is a folder."""

    @abstractmethod
    def is_open(self, path: str) -> bool:
        """Return whether there is a folder that can be entered."""

    @abstractmethod
    def entries(self, folder: str) -> Sequence[Entry]:
        """Give what is in a folder; nothing where it can't be read."""

    def followed(self, path: str) -> Path | None:
        """Follow the links of a path; None for what is another file for each process, or no file.

        What does not exist is taken as it is written.
        """
        left = path.split("/")[::-1]
        here, links = "/", 0
        while left:
            part = left.pop()
            if part in {"", "."}:
                continue
            here = os.path.dirname(here) if part == ".." else os.path.join(here, part)  # noqa: PTH118, PTH120 - by text
            if here in _SPECIAL or links > _MOST_LINKS:
                return None
            if part != ".." and self.is_link(here):
                target, links = self.target(here), links + 1
                here = "/" if target.startswith("/") else os.path.dirname(here)  # noqa: PTH120 - a text
                left += target.split("/")[::-1]
        return Path(here)


class LocalDisk(Disk):
    """The files of this machine."""

    def is_link(self, path: str) -> bool:
        return os.path.islink(path)  # noqa: PTH114 - a text

    def target(self, path: str) -> str:
        return os.readlink(path)  # noqa: PTH115 - a text

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def is_file(self, path: str) -> bool:
        return Path(path).is_file()

    def is_folder(self, path: str) -> bool:
        return Path(path).is_dir()

    def is_open(self, path: str) -> bool:
        return os.access(path, os.X_OK) and Path(path).is_dir()

    def entries(self, folder: str) -> Sequence[Entry]:
        try:
            with os.scandir(folder) as found:
                return [Entry.of(each) for each in found]
        except OSError:
            return ()


class ToldDisk(Disk):
    """The files of another machine, as it has told them.

    Args:
        workspace: As for `Disk`; all that is in it is known.
        kinds: What is there by path: ``d`` for a folder, ``f`` for a plain file, ``l`` for a link, or another letter.
        links: What links say, by their paths.
    """

    local = False

    def __init__(self, workspace: Path, kinds: Mapping[str, str], links: Mapping[str, str]) -> None:
        super().__init__(workspace)
        self._kinds = {**kinds, str(workspace): "d"}
        self._links = links
        self._inside: dict[str, list[Entry]] = {}
        for path, kind in self._kinds.items():
            folder, _, name = path.rpartition("/")
            self._inside.setdefault(folder or "/", []).append(Entry(name, path, kind == "l", kind == "d"))
        self._above = {str(each) for path in self._kinds for each in Path(path).parents}

    def is_link(self, path: str) -> bool:
        return self._kind(path) == "l"

    def target(self, path: str) -> str:
        return self._links[path]

    def exists(self, path: str) -> bool:
        return self._found(path) is not None

    def is_file(self, path: str) -> bool:
        return self._found(path) == "f"

    def is_folder(self, path: str) -> bool:
        return self._found(path) == "d"

    def is_open(self, path: str) -> bool:
        return False

    def entries(self, folder: str) -> Sequence[Entry]:
        found = self.followed(folder)
        if found is None or self._kind(str(found)) != "d":
            return ()
        if not found.is_relative_to(self.workspace):
            raise UnclearError(_not_known(folder))
        return [each._replace(path=os.path.join(folder, each.name)) for each in self._inside.get(str(found), ())]  # noqa: PTH118

    def _found(self, path: str) -> str | None:
        found = self.followed(path)
        return None if found is None else self._kind(str(found))

    def _kind(self, path: str) -> str | None:
        if path in self._kinds:
            return self._kinds[path]
        if path in self._above:
            return "d"
        if not Path(path).is_relative_to(self.workspace):
            raise UnclearError(_not_known(path))
        return None


def _not_known(path: str) -> str:
    return f"it is not known what is at {path} on the other machine"
