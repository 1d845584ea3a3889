"""The tools for files of the workspace. Others are read and written too, if a person or a rule allows it."""

from __future__ import annotations

import fnmatch
import hashlib
import itertools
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from callboard.actors.runtime import committing, foresee
from callboard.actors.servers._server import ToolError, tool
from callboard.messages import AgentKind, Effect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import JsonValue

    from callboard.actors.servers.shell._shell import Shell

LINUX = (AgentKind.LINUX,)
MOST_BYTES = 10_000_000
"""The most bytes of a file that is read or written."""
_LINES = 2_000
_ENTRIES = 1_000
_LONGEST_LINE = 500

ShellName = Annotated[str, Field(description="The shell.")]
PathName = Annotated[str, Field(min_length=1, description="From where the shell is, or absolute.")]
Folder = Annotated[str, Field(description="From where the shell is, or absolute; empty: where it is.")]
Answer = dict[str, Any]


class FileTools:
    """Read, write, edit and find files.

    Args:
        shell: Gives a shell by its name.
    """

    def __init__(self, shell: Callable[[str], Shell]) -> None:
        self._shell = shell

    @tool(effect=Effect.READ, agents=LINUX)
    def read_file(
        self,
        shell: ShellName,
        path: PathName,
        *,
        first_line: Annotated[int, Field(ge=1, description="From 1.")] = 1,
        lines: Annotated[int, Field(ge=1, le=_LINES)] = 400,
    ) -> Answer:
        """Read lines of a text file."""
        text = _text_of(_read(self._shell(shell).inside(path)), path)
        every = text.splitlines()
        shown = every[first_line - 1 : first_line - 1 + lines]
        left = len(every) - (first_line - 1) - len(shown)
        return {"text": "\n".join(shown), "lines": len(every), **({"more_lines": left} if left > 0 else {})}

    @tool(effect=Effect.IDEMPOTENT, agents=LINUX)
    def write_file(self, shell: ShellName, path: PathName, text: str) -> Answer:
        """Write a text file, in place of the one that is there."""
        place = self._shell(shell).inside(path)
        if place.is_dir():
            msg = f"{path!r} is a folder"
            raise ToolError(msg)
        return _write(place, text.encode(), _read(place) if place.exists() else None)

    @tool(effect=Effect.ONCE, agents=LINUX)
    def edit_file(
        self,
        shell: ShellName,
        path: PathName,
        old: Annotated[str, Field(min_length=1, description="What stands there once, exactly, with line breaks.")],
        new: str,
    ) -> Answer:
        """Replace a part of a text file that stands there exactly once."""
        place = self._shell(shell).inside(path)
        before = _read(place)
        text = _text_of(before, path)
        count = text.count(old)
        if count != 1:
            why = f"stands there {count} times: give more of what is around it" if count else "does not stand there"
            msg = f"nothing was replaced in {path!r}: the text {why}"
            raise ToolError(msg)
        return _write(place, text.replace(old, new).encode(), before)

    @tool(effect=Effect.READ, agents=LINUX)
    def list_dir(self, shell: ShellName, path: Folder = "") -> Answer:
        """List a folder: its folders with a slash, its files with their sizes in bytes."""
        place = self._shell(shell).inside(path)
        try:
            entries = sorted(os.scandir(place), key=lambda entry: entry.name)
        except OSError as error:
            raise ToolError(_why(error, path or ".")) from error
        shown = [_entry(entry) for entry in entries[:_ENTRIES]]
        left = len(entries) - len(shown)
        return {"path": str(place), "entries": shown, **({"more_entries": left} if left else {})}

    @tool(effect=Effect.READ, agents=LINUX)
    def find(
        self,
        shell: ShellName,
        pattern: Annotated[str, Field(min_length=1, description="Of names, such as *.log.")],
        *,
        path: Folder = "",
    ) -> Answer:
        """Find files and folders by their names, in a folder and all below it."""
        place = self._shell(shell).inside(path)
        found = (each for each in _below(place) if fnmatch.fnmatch(each.name, pattern))
        shown = [str(each.relative_to(place)) for each in itertools.islice(found, _ENTRIES + 1)]
        return {"paths": sorted(shown[:_ENTRIES]), **({"more": True} if len(shown) > _ENTRIES else {})}

    @tool(effect=Effect.READ, agents=LINUX)
    def search(
        self,
        shell: ShellName,
        text: Annotated[str, Field(min_length=1, description="What a line contains, as it is written.")],
        *,
        path: Folder = "",
        names: Annotated[str, Field(description="The names of the files that are searched, such as *.py.")] = "*",
        ignore_case: bool = False,
    ) -> Answer:
        """Find lines that contain a text, in a folder and all below it."""
        place = self._shell(shell).inside(path)
        wanted = re.compile(re.escape(text), re.IGNORECASE if ignore_case else 0)
        files = [place] if place.is_file() else (each for each in _below(place) if fnmatch.fnmatch(each.name, names))
        found = list(itertools.islice(_matches(files, place, wanted), _ENTRIES + 1))
        return {"matches": found[:_ENTRIES], **({"more": True} if len(found) > _ENTRIES else {})}


def _below(place: Path) -> Iterator[Path]:
    """Give all files and folders below one; links are not followed."""
    for folder, folders, files in os.walk(place):
        folders.sort()
        for name in sorted((*folders, *files)):
            yield Path(folder, name)


def _matches(files: Any, place: Path, wanted: re.Pattern[str]) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - paths
    for file in files:
        if not _is_text(file):
            continue
        with file.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                if wanted.search(line):
                    name = file.name if file == place else str(file.relative_to(place))
                    yield {"file": name, "line": number, "text": line.rstrip("\n")[:_LONGEST_LINE]}


def _is_text(path: Path) -> bool:
    """Return whether a file is a plain one that this user may read, without a null byte at its beginning."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with path.open("rb") as file:
            return b"\0" not in file.read(4096)
    except OSError:
        return False


def _entry(entry: os.DirEntry[str]) -> str:
    try:
        if entry.is_symlink():
            return f"{entry.name} -> {os.readlink(entry.path)}"  # noqa: PTH115 - it is no `Path`
        if entry.is_dir():
            return f"{entry.name}/"
        return f"{entry.name} ({entry.stat().st_size})"
    except OSError:
        return entry.name


def _read(path: Path) -> bytes:
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


def _text_of(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        msg = f"{path!r} is no text in UTF-8 (byte {error.start})"
        raise ToolError(msg) from error


def _write(path: Path, data: bytes, before: bytes | None) -> Answer:
    """Replace a file at once, if it is still what it was; a crash leaves the old one or the new one."""
    if len(data) > MOST_BYTES:
        msg = f"{len(data):,} bytes are too many for one file; {MOST_BYTES:,} can be written"
        raise ToolError(msg)
    answer: dict[str, JsonValue] = {"path": str(path), "bytes": len(data)}
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
    return answer


def mark(data: bytes | None) -> str:
    """Give the fingerprint of a file's bytes; empty for no file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _why(error: OSError, path: str) -> str:
    return f"{path}: {error.strerror}"
