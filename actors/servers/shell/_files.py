"""The files of this machine, as the tools of shells use them."""

from __future__ import annotations

import fnmatch
import hashlib
import itertools
import os
import re
import stat
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from callboard.actors.runtime import committing, foresee
from callboard.actors.servers._server import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import JsonValue

MOST_BYTES = 10_000_000
"""The most bytes of a file that is read or written."""
LONGEST_LINE = 500
"""The most characters of a line that a search shows."""


class Match(NamedTuple):
    """A line that a search has found."""

    file: str
    line: int
    text: str


class Files(ABC):
    """The files of a machine. Paths are absolute. All methods raise `ToolError` with a text that says why."""

    @abstractmethod
    def real(self, path: Path) -> Path:
        """Follow all links of a path, of which not all has to be there."""

    @abstractmethod
    def is_folder(self, path: Path) -> bool:
        """Return whether there is a folder."""

    @abstractmethod
    def exists(self, path: Path) -> bool:
        """Return whether there is anything."""

    @abstractmethod
    def read(self, path: Path) -> bytes:
        """Read a file of at most `MOST_BYTES`."""

    def digest(self, path: Path) -> str:
        """Give the fingerprint of a file's bytes; empty where there is none."""
        return mark(self.read(path) if self.exists(path) and not self.is_folder(path) else None)

    @abstractmethod
    def replace(self, path: Path, data: bytes, before: bytes | None, answer: dict[str, JsonValue]) -> None:
        """Replace a file at once, if it is still what it was; a crash leaves the old one or the new one.

        Args:
            path: The file.
            data: All its bytes.
            before: Those that it has now; None where there is no file.
            answer: The tool's answer once that is done.
        """

    @abstractmethod
    def entries(self, path: Path, most: int) -> tuple[list[str], int]:
        """List a folder: folders with a slash, files with sizes, where links lead; and how many more there are."""

    @abstractmethod
    def find(self, path: Path, pattern: str) -> Iterator[str]:
        """Give the paths below a folder, from there, whose name fits a pattern. Links are not followed."""

    @abstractmethod
    def search(self, path: Path, text: str, names: str, *, ignore_case: bool) -> Iterator[Match]:
        """Give lines that contain a text, in text files below a folder whose name fits, or in one file."""


class LocalFiles(Files):
    """The files of this machine."""

    def real(self, path: Path) -> Path:
        return Path(os.path.realpath(path))

    def is_folder(self, path: Path) -> bool:
        return path.is_dir()

    def exists(self, path: Path) -> bool:
        return path.exists()

    def read(self, path: Path) -> bytes:
        try:
            if not path.is_file():
                what = "a folder" if path.is_dir() else "no file" if path.exists() else "not there"
                msg = f"{path} is {what}"
                raise ToolError(msg)
            if path.stat().st_size > MOST_BYTES:
                msg = f"{path} has {path.stat().st_size:,} bytes; {MOST_BYTES:,} can be read: use `run`"
                raise ToolError(msg)
            return path.read_bytes()
        except OSError as error:
            raise ToolError(_why(error, str(path))) from error

    def replace(self, path: Path, data: bytes, before: bytes | None, answer: dict[str, JsonValue]) -> None:
        try:
            descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        except OSError as error:
            raise ToolError(_why(error, str(path))) from error
        new = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            new.chmod(stat.S_IMODE(path.stat().st_mode) if before is not None else 0o644)
            foresee(path, mark(before), mark(data), answer)
            with committing(path):
                if (path.read_bytes() if path.is_file() else None) != before:
                    msg = f"{path} was changed by somebody else meanwhile; nothing was written"
                    raise ToolError(msg)
                new.replace(path)
        finally:
            new.unlink(missing_ok=True)

    def entries(self, path: Path, most: int) -> tuple[list[str], int]:
        try:
            found = sorted(os.scandir(path), key=lambda entry: entry.name)
        except OSError as error:
            raise ToolError(_why(error, str(path))) from error
        return [_entry(each) for each in found[:most]], max(0, len(found) - most)

    def find(self, path: Path, pattern: str) -> Iterator[str]:
        return (str(each.relative_to(path)) for each in _below(path) if fnmatch.fnmatch(each.name, pattern))

    def search(self, path: Path, text: str, names: str, *, ignore_case: bool) -> Iterator[Match]:
        wanted = re.compile(re.escape(text), re.IGNORECASE if ignore_case else 0)
        below: Iterable[Path] = (each for each in _below(path) if fnmatch.fnmatch(each.name, names))
        for file in itertools.filterfalse(_is_no_text, [path] if path.is_file() else below):
            with file.open(encoding="utf-8", errors="replace") as lines:
                for number, line in enumerate(lines, 1):
                    if wanted.search(line):
                        name = file.name if file == path else str(file.relative_to(path))
                        yield Match(name, number, line.rstrip("\n")[:LONGEST_LINE])


def mark(data: bytes | None) -> str:
    """Give the fingerprint of a file's bytes; empty for no file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _below(place: Path) -> Iterator[Path]:
    """Give all files and folders below one; links are not followed."""
    for folder, folders, files in os.walk(place):
        folders.sort()
        for name in sorted((*folders, *files)):
            yield Path(folder, name)


def _is_no_text(path: Path) -> bool:
    """Return whether a file is none that this user may read, or has a null byte at its beginning."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return True
        with path.open("rb") as file:
            return b"\0" in file.read(4096)
    except OSError:
        return True


def _entry(entry: os.DirEntry[str]) -> str:
    try:
        if entry.is_symlink():
            return f"{entry.name} -> {os.readlink(entry.path)}"  # noqa: PTH115 - it is no `Path`
        if entry.is_dir():
            return f"{entry.name}/"
        return f"{entry.name} ({entry.stat().st_size})"
    except OSError:
        return entry.name


def _why(error: OSError, path: str) -> str:
    return f"{path}: {error.strerror}"
