"""A machine's files for the analysis of commands, live or listed."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from callboard.surfaces.shell.judging._word_expansion import UnclearError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SPECIAL = frozenset({"/proc", "/dev", "/sys"})
"""The virtual file systems. They show processes and devices, so they count as outside of any workspace."""
_MOST_LINKS = 40


def is_special(path: Path) -> bool:
    """Return whether a resolved path is in a virtual file system."""
    return any(path.is_relative_to(special) for special in _SPECIAL)


class DiskEntry(NamedTuple):
    """An entry of a folder."""

    name: str
    path: str
    is_link: bool
    is_folder: bool
    """Whether the entry is a folder, not a link to one."""

    @classmethod
    def of(cls, entry: os.DirEntry[str]) -> DiskEntry:
        """Make an entry from one of this machine."""
        return cls(entry.name, entry.path, entry.is_symlink(), entry.is_dir(follow_symlinks=False))


class Disk(ABC):
    """The interface of a machine's files.

    Paths are absolute strings. All methods except `is_link` and `target` follow links.

    Args:
        workspace: The folder that the shell may change, with links resolved.
    """

    local = True
    """Whether the files are those of this machine."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace

    @abstractmethod
    def is_link(self, path: str) -> bool:
        """Return whether a path is a link."""

    @abstractmethod
    def target(self, path: str) -> str:
        """Return the text of a link."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Return whether a path exists."""

    @abstractmethod
    def is_file(self, path: str) -> bool:
        """Return whether a path is a regular file."""

    @abstractmethod
    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder."""

    @abstractmethod
    def is_open(self, path: str) -> bool:
        """Return whether a path is a folder that can be entered."""

    @abstractmethod
    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return the entries of a folder; none if it can't be read."""

    def followed(self, path: str) -> Path | None:
        """Resolve the links of a path; parts that do not exist stay.

        Returns:
            None for a path in a virtual file system such as ``/proc``, or with too many links.
        """
        parts = path.split("/")[::-1]
        here, links = "/", 0
        while parts:
            part = parts.pop()
            if part in {"", "."}:
                continue
            here = os.path.dirname(here) if part == ".." else os.path.join(here, part)  # noqa: PTH118, PTH120 - by text
            if here in _SPECIAL or links > _MOST_LINKS:
                return None
            if part != ".." and self.is_link(here):
                target, links = self.target(here), links + 1
                here = "/" if target.startswith("/") else os.path.dirname(here)  # noqa: PTH120 - a text
                parts += target.split("/")[::-1]
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

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        try:
            with os.scandir(folder) as scan:
                return [DiskEntry.of(entry) for entry in scan]
        except OSError:
            return ()


class RemoteDisk(Disk):
    """The files of another machine, from its list of the workspace.

    Args:
        workspace: The shell's workspace, whose files are all known.
        kinds: Kinds by path: ``d`` for a folder, ``f`` for a regular file, ``l`` for a link, or another letter.
        links: The texts of links by path.
    """

    local = False

    def __init__(self, workspace: Path, kinds: Mapping[str, str], links: Mapping[str, str]) -> None:
        super().__init__(workspace)
        self._kinds = {**kinds, str(workspace): "d"}
        self._links = links
        self._inside: dict[str, list[DiskEntry]] = {}
        for path, kind in self._kinds.items():
            folder, _, name = path.rpartition("/")
            self._inside.setdefault(folder or "/", []).append(DiskEntry(name, path, kind == "l", kind == "d"))
        self._above = {str(parent) for path in self._kinds for parent in Path(path).parents}

    def is_link(self, path: str) -> bool:
        return self._kind(path) == "l"

    def target(self, path: str) -> str:
        return self._links[path]

    def exists(self, path: str) -> bool:
        return self._real_kind(path) is not None

    def is_file(self, path: str) -> bool:
        return self._real_kind(path) == "f"

    def is_folder(self, path: str) -> bool:
        return self._real_kind(path) == "d"

    def is_open(self, path: str) -> bool:
        return False

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        real_folder = self.followed(folder)
        if real_folder is None or self._kind(str(real_folder)) != "d":
            return ()
        if not real_folder.is_relative_to(self.workspace):
            raise UnclearError(_not_known(folder))
        entries = self._inside.get(str(real_folder), ())
        return [entry._replace(path=os.path.join(folder, entry.name)) for entry in entries]  # noqa: PTH118

    def _real_kind(self, path: str) -> str | None:
        real_path = self.followed(path)
        return None if real_path is None else self._kind(str(real_path))

    def _kind(self, path: str) -> str | None:
        if path in self._kinds:
            return self._kinds[path]
        if path in self._above:
            return "d"
        if not Path(path).is_relative_to(self.workspace):
            raise UnclearError(_not_known(path))
        return None


def _not_known(path: str) -> str:
    return f"the file {path} on the other machine is not known"
