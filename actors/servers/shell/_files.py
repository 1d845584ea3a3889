"""The files of this machine, as the tools of shells use them."""

from __future__ import annotations

import contextlib
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

_MOST_OF_LINE = 1_000_000


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
        found = os.path.realpath(path)
        if _text(found) != found:
            msg = f"{path} leads to {_text(found)!r}, a name that is no text in UTF-8"
            raise ToolError(msg)
        return Path(found)

    def is_folder(self, path: Path) -> bool:
        return os.path.isdir(path)  # noqa: PTH112 - also for a name that is too long

    def exists(self, path: Path) -> bool:
        return os.path.exists(path)  # noqa: PTH110 - as above

    def read(self, path: Path) -> bytes:
        try:
            if not path.is_file():
                what = "a folder" if path.is_dir() else "no file" if path.exists() else "not there"
                msg = f"{path} is {what}"
                raise ToolError(msg)
            if path.stat().st_size > MOST_BYTES:
                msg = f"{path} has {path.stat().st_size:,} bytes; {MOST_BYTES:,} can be read: use `run`"
                raise ToolError(msg)
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # it may be another one by now, or have no end
            with os.fdopen(descriptor, "rb") as file:
                return file.read(MOST_BYTES) or b""
        except OSError as error:
            raise ToolError(_why(error, str(path))) from error

    def replace(self, path: Path, data: bytes, before: bytes | None, answer: dict[str, JsonValue]) -> None:
        try:
            descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".callboard.")
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
        except OSError as error:
            raise ToolError(_why(error, str(path))) from error
        finally:
            new.unlink(missing_ok=True)

    def entries(self, path: Path, most: int) -> tuple[list[str], int]:
        try:
            found = sorted(os.scandir(path), key=lambda entry: entry.name)
        except OSError as error:
            raise ToolError(_why(error, str(path))) from error
        return [_entry(each) for each in found[:most]], max(0, len(found) - most)

    def find(self, path: Path, pattern: str) -> Iterator[str]:
        return (_text(each.relative_to(path)) for each in _below(path) if fnmatch.fnmatch(each.name, pattern))

    def search(self, path: Path, text: str, names: str, *, ignore_case: bool) -> Iterator[Match]:
        wanted = re.compile(re.escape(text), re.IGNORECASE if ignore_case else 0)
        below: Iterable[Path] = (each for each in _below(path) if fnmatch.fnmatch(each.name, names))
        alone = os.path.isfile(path)  # noqa: PTH113 - as in `is_folder`
        for file in itertools.filterfalse(_is_no_text, [path] if alone else below):
            name = _text(file.name if alone else file.relative_to(path))
            found = 0
            for number, line in _lines(file):
                if number != found and wanted.search(line):
                    found = number
                    yield Match(name, number, line.rstrip("\n")[:LONGEST_LINE])


def mark(data: bytes | None) -> str:
    """Give the fingerprint of a file's bytes; empty for no file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _below(place: Path) -> Iterator[Path]:
    """Give all files and folders below one; links are not followed.

    Raises:
        ToolError: If there is none.
    """
    if not os.path.isdir(place):  # noqa: PTH112 - as in `is_folder`
        msg = f"there is no folder {place}"
        raise ToolError(msg)
    for folder, folders, files in os.walk(place):
        folders.sort()
        for name in sorted((*folders, *files)):
            yield Path(folder, name)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Give the lines of a file with their numbers, a long one in parts; nothing of a file that is gone."""
    number = 1
    with contextlib.suppress(OSError), path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        while line := file.readline(_MOST_OF_LINE):
            yield number, line
            number += line.endswith("\n")


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
    name = _text(entry.name)
    try:
        if entry.is_symlink():
            return f"{name} -> {_text(os.readlink(entry.path))}"  # noqa: PTH115 - it is no `Path`
        if entry.is_dir():
            return f"{name}/"
        return f"{name} ({entry.stat().st_size})"
    except OSError:
        return name


def _text(name: str | Path) -> str:
    """Give a name as it can be told: those on a disk may be no UTF-8."""
    return os.fsencode(name).decode(errors="replace")


def _why(error: OSError, path: str) -> str:
    return f"{path}: {error.strerror}"
