"""Files of shells' machines, for the file tools."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import itertools
import os
import re
import stat
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from callboard.surfaces import committing, delete_stale_spares, foresee, replace_file, spare_file, write_lock
from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import JsonValue

MOST_BYTES = 10_000_000
"""The most bytes of a file that is read or written."""
LONGEST_LINE = 500
"""The most characters of a line that a search shows."""

_MOST_OF_LINE = 1_000_000


class Match(NamedTuple):
    """A line that matches a search."""

    file: str
    line: int
    text: str


class ShellFiles(ABC):
    """The interface of a machine's files.

    Paths are absolute. All methods raise `ToolError`, whose text gives the reason.
    """

    @abstractmethod
    def real(self, path: Path) -> Path:
        """Resolve all links of a path, which need not exist."""

    @abstractmethod
    def is_folder(self, path: Path) -> bool:
        """Return whether a path is a folder."""

    @abstractmethod
    def exists(self, path: Path) -> bool:
        """Return whether a path exists."""

    @abstractmethod
    def read(self, path: Path) -> bytes:
        """Read a file of at most `MOST_BYTES`."""

    def digest(self, path: Path) -> str:
        """Return the fingerprint of a file's bytes; empty for no file."""
        return mark(self.read(path) if self.exists(path) and not self.is_folder(path) else None)

    @abstractmethod
    def replace(self, path: Path, data: bytes, old_data: bytes | None, answer: dict[str, JsonValue]) -> None:
        """Replace an unchanged file atomically.

        A crash leaves the old or the new file.

        Args:
            path: The file.
            data: The new bytes.
            old_data: The present bytes; None if the file must not exist.
            answer: The tool's answer after the replacement.
        """

    @abstractmethod
    def entries(self, path: Path, most: int) -> tuple[list[str], int]:
        """List a folder, and count the entries beyond the first `most`.

        Folders end with a slash, files have their sizes, links have their targets.
        """

    @abstractmethod
    def find(self, path: Path, pattern: str) -> Iterator[str]:
        """Yield the relative paths below a folder whose names match a pattern.

        Links are not followed.
        """

    @abstractmethod
    def search(self, path: Path, text: str, names: str, *, ignore_case: bool) -> Iterator[Match]:
        """Yield lines with a text, in one file or below a folder.

        Below a folder, text files whose names match `names` are searched.
        """


class LocalFiles(ShellFiles):
    """The files of this machine."""

    def real(self, path: Path) -> Path:
        real_path = os.path.realpath(path)
        if _text(real_path) != real_path:
            msg = f"{path} leads to {_text(real_path)!r}, a name that is not UTF-8"
            raise ToolError(msg)
        return Path(real_path)

    def is_folder(self, path: Path) -> bool:
        return os.path.isdir(path)  # noqa: PTH112 - also for a name that is too long

    def exists(self, path: Path) -> bool:
        return os.path.exists(path)  # noqa: PTH110 - as above

    def read(self, path: Path) -> bytes:
        try:
            if not path.is_file():
                what = "a folder" if path.is_dir() else "not a file" if path.exists() else "not there"
                msg = f"{path} is {what}"
                raise ToolError(msg)
            if path.stat().st_size > MOST_BYTES:
                msg = f"{path} has {path.stat().st_size:,} bytes; {MOST_BYTES:,} can be read: use `run`"
                raise ToolError(msg)
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # it may be a pipe by now
            with os.fdopen(descriptor, "rb") as file:
                return file.read(MOST_BYTES) or b""
        except OSError as error:
            raise ToolError(_why(error, str(path))) from error

    def replace(self, path: Path, data: bytes, old_data: bytes | None, answer: dict[str, JsonValue]) -> None:
        try:
            mode = stat.S_IMODE(path.stat().st_mode) if old_data is not None else 0o644
            delete_stale_spares(path.parent)
            with spare_file(path, data, mode) as spare:
                foresee(path, mark(old_data), mark(data), answer)
                with write_lock(path), committing(path):
                    if (path.read_bytes() if path.is_file() else None) != old_data:
                        msg = f"{path} was changed by another program meanwhile; nothing was written"
                        raise ToolError(msg)
                    replace_file(spare, path)
        except OSError as error:
            raise ToolError(_why(error, str(path))) from error

    def entries(self, path: Path, most: int) -> tuple[list[str], int]:
        try:
            disk_entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        except OSError as error:
            raise ToolError(_why(error, str(path))) from error
        return [_entry(entry) for entry in disk_entries[:most]], max(0, len(disk_entries) - most)

    def find(self, path: Path, pattern: str) -> Iterator[str]:
        return (
            _text(candidate.relative_to(path)) for candidate in _below(path) if fnmatch.fnmatch(candidate.name, pattern)
        )

    def search(self, path: Path, text: str, names: str, *, ignore_case: bool) -> Iterator[Match]:
        pattern = re.compile(re.escape(text), re.IGNORECASE if ignore_case else 0)
        below: Iterable[Path] = (candidate for candidate in _below(path) if fnmatch.fnmatch(candidate.name, names))
        is_file = os.path.isfile(path)  # noqa: PTH113 - as in `is_folder`
        for file in itertools.filterfalse(_is_no_text, [path] if is_file else below):
            name = _text(file.name if is_file else file.relative_to(path))
            last_number = 0
            for number, line in _lines(file):
                if number != last_number and pattern.search(line):
                    last_number = number
                    yield Match(name, number, line.rstrip("\n")[:LONGEST_LINE])


def mark(data: bytes | None) -> str:
    """Return the fingerprint of bytes; empty for no file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _below(root: Path) -> Iterator[Path]:
    """Yield all files and folders below a folder, without following links.

    Raises:
        ToolError: If the folder does not exist.
    """
    if not os.path.isdir(root):  # noqa: PTH112 - as in `is_folder`
        msg = f"there is no folder {root}"
        raise ToolError(msg)
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted((*folders, *files)):
            yield Path(folder, name)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield numbered lines of a file, long ones in parts.

    A deleted file has none.
    """
    number = 1
    with contextlib.suppress(OSError), path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        while line := file.readline(_MOST_OF_LINE):
            yield number, line
            number += line.endswith("\n")


def _is_no_text(path: Path) -> bool:
    """Return whether a file is unreadable, special or binary.

    A binary file has a null byte at its beginning.
    """
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return True
        with path.open("rb") as file:
            return b"\0" in file.read(4096)
    except OSError:
        return True


def _entry(entry: os.DirEntry[str]) -> str:
    name = _text(entry.name)
    try:
        if entry.is_symlink():
            return f"{name} -> {_text(os.readlink(entry.path))}"  # noqa: PTH115 - not a `Path`
        if entry.is_dir():
            return f"{name}/"
        return f"{name} ({entry.stat().st_size})"
    except OSError:
        return name


def _text(name: str | Path) -> str:
    """Return a name as UTF-8; on disk it may have other bytes."""
    return os.fsencode(name).decode(errors="replace")


def _why(error: OSError, path: str) -> str:
    return f"{path}: {error.strerror}"
