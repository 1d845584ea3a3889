"""Tools for .zip files in the workspace."""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import io
import stat
import time
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, JsonValue

from callboard.messages import Effect
from callboard.surfaces import open_file
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._folder_tools import HOST, NewPath, is_hidden, visible_files
from callboard.surfaces.documents._office import UNPACKED, damaged
from callboard.surfaces.documents._tables import Answer  # noqa: TC001 - schemas are made of it

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from callboard.surfaces.documents._workspace import Workspace

_SUFFIX = ".zip"
_MOST_FILES = 1_000
"""The most files that are extracted or packed in one call."""
_MOST_ENTRIES = 20_000
"""The most entries of an archive that is opened."""
_LISTED = 500
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2})
"""The compressions that need little memory, whatever a file says."""
_ENCRYPTED, _UTF_8 = 0x1, 0x800
"""The marks of an entry that is protected, and of one whose name is in UTF-8."""
_FIRST_YEAR = 1980
"""The format knows no earlier times."""

ArchivePath = Annotated[str, Field(description="The path of a .zip file within the workspace.")]


@dataclass(frozen=True)
class _Entry:
    """A file in an archive."""

    info: zipfile.ZipInfo
    name: str
    """Its path in the archive, separated by ``/``."""
    refusal: str = ""
    """Why it is not extracted; empty if it is."""


class ArchiveTools:
    """The tools of HostAgents for .zip files.

    Nothing is overwritten. Extracted files are ordinary ones: they are no links, and no file of them can be started.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @tool(effect=Effect.READ, agents=HOST)
    def list_archive(self, path: ArchivePath) -> Answer:
        """List the files of a .zip file, with their sizes."""
        with self._opened(path) as archive:
            entries = _entries(archive, path)
        files = [_facts_of(entry) for entry in entries[:_LISTED]]
        return {"files": files, "left_out": len(entries) - len(files)}

    @tool(effect=Effect.IDEMPOTENT, agents=HOST)
    def extract_archive(
        self,
        path: ArchivePath,
        folder: Annotated[str, Field(description="The folder within the workspace that the files go to; it is made.")],
        *,
        pattern: Annotated[str, Field(description="A glob for paths in the archive, such as *.xlsx.")] = "*",
    ) -> Answer:
        """Extract the files of a .zip file; nothing is overwritten.

        A file that is there with the same content stays. If another one has the name, nothing is extracted.
        """
        with self._opened(path) as archive:
            entries = _entries(archive, path)
            matches = [entry for entry in entries if fnmatch.fnmatchcase(entry.name.casefold(), pattern.casefold())]
            usable = [entry for entry in matches if not entry.refusal]
            self._check_amount(path, [entry.info.file_size for entry in usable], "extracted")
            _check_names(path, [entry.name.casefold() for entry in usable])
            readings = {f"{folder}/{entry.name}": functools.partial(_read, archive, path, entry) for entry in usable}
            left_out: list[JsonValue] = [_facts_of(entry) for entry in matches if entry.refusal]
            answer: Answer = {"folder": folder, "files": list(readings), "left_out": left_out}
            self._workspace.write_all_new(readings, answer)
        return answer

    @tool(effect=Effect.ONCE, agents=HOST)
    def make_archive(
        self,
        path: NewPath,
        files: Annotated[
            list[str],
            Field(min_length=1, max_length=_MOST_FILES, description="Files and folders within the workspace."),
        ],
    ) -> Answer:
        """Pack files and folders into a new .zip file.

        They keep their paths within the workspace. Hidden files are left out.
        """
        if PurePosixPath(path).suffix.lower() != _SUFFIX:
            msg = f"{path!r} is refused: the name of an archive ends with {_SUFFIX}"
            raise ToolError(msg)
        goal = self._workspace.resolve_new(path)
        names = dict.fromkeys(name for file in files for name in self._files_at(file))
        paths = {name: self._workspace.resolve(name) for name in names}
        try:
            self._check_amount(path, [file.stat().st_size for file in paths.values()], "packed")
            data = _packed(paths)
        except OSError as error:
            msg = f"{path!r} is not made: a file can't be read: {error.strerror}"
            raise ToolError(msg) from error
        answer: Answer = {"path": path, "files": list(paths), "bytes": len(data)}
        self._workspace.write_new(path, goal, data, answer)
        return answer

    def _files_at(self, name: str) -> list[str]:
        """List the file at a path, or those of a folder."""
        path = self._workspace.resolve(name)
        if path.is_dir():
            return [file.relative_to(self._workspace.folder).as_posix() for file in visible_files(path)]
        if not path.is_file():
            msg = f"there is no file {name!r} in the workspace; list_files shows which there are"
            raise ToolError(msg)
        return [name]

    def _check_amount(self, path: str, sizes: list[int], done: str) -> None:
        """Refuse more, or larger, files than a call may write or pack.

        Raises:
            ToolError: If they are.
        """
        most_bytes = self._workspace.max_bytes * UNPACKED
        if len(sizes) > _MOST_FILES or sum(sizes) > most_bytes:
            msg = (
                f"{path!r}: {len(sizes)} files of {sum(sizes)} bytes are too much for one call; at most {_MOST_FILES} "
                f"files and {most_bytes} bytes ({UNPACKED} times documents.max_bytes) are {done} at once"
            )
            raise ToolError(msg)

    @contextlib.contextmanager
    def _opened(self, path: str) -> Iterator[zipfile.ZipFile]:
        """Open an archive.

        Raises:
            ToolError: If it is missing, too large or damaged.
        """
        absolute_path = self._workspace.resolve(path)
        try:
            if not absolute_path.is_file():
                msg = f"there is no file {path!r} in the workspace; list_files shows which there are"
                raise ToolError(msg)
            with open_file(absolute_path) as file, zipfile.ZipFile(file) as archive:
                if len(archive.infolist()) > _MOST_ENTRIES:
                    msg = f"{path!r} has more than {_MOST_ENTRIES} entries; it is not opened"
                    raise ToolError(msg)
                yield archive
        except zipfile.BadZipFile as error:
            raise damaged(path, "it is not a .zip file, or is truncated") from error
        except (zlib.error, EOFError, OSError, NotImplementedError, ValueError) as error:
            raise damaged(path, error) from error


def _entries(archive: zipfile.ZipFile, path: str) -> list[_Entry]:
    """List the files of an archive, in its order.

    Raises:
        ToolError: If a path in it leads out of the folder that it is extracted to.
    """
    entries = []
    for info in archive.infolist():
        name = _name_of(info)
        parts = name.split("/")
        if ".." in parts or name.startswith("/") or ":" in parts[0]:
            msg = f"{path!r} is refused: its entry {name!r} leads out of the folder that it is extracted to"
            raise ToolError(msg)
        if not name.endswith("/"):
            entries.append(_Entry(info, name, _refusal(info, parts)))
    return entries


def _name_of(info: zipfile.ZipInfo) -> str:
    """Return an entry's path, separated by ``/``.

    Names without the mark for UTF-8 are in code page 437 by the format's rules. But macOS and Linux write UTF-8 there,
    and some programs on Windows separate folders by a backslash.
    """
    name = info.filename
    if not info.flag_bits & _UTF_8:
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return name.replace("\\", "/")


def _refusal(info: zipfile.ZipInfo, parts: list[str]) -> str:
    """Explain why an entry is not extracted; empty if it is."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    reasons = (
        (kind not in {0, stat.S_IFREG}, "it is a link or a device"),
        (any(is_hidden(part) or part in {"", "__MACOSX"} for part in parts), "it is hidden, or its name is unusable"),
        (info.flag_bits & _ENCRYPTED, "it is protected with a password"),
        (info.compress_type not in _METHODS, "its compression can't be read"),
    )
    return next((reason for refused, reason in reasons if refused), "")


def _check_names(path: str, names: list[str]) -> None:
    """Refuse names that can't all be those of files.

    Raises:
        ToolError: If one comes twice, or is that of a folder, too.
    """
    folders = {parent.as_posix() for name in names for parent in PurePosixPath(name).parents}
    if len(set(names)) != len(names) or not folders.isdisjoint(names):
        msg = f"{path!r} has several files, or a file and a folder, of one name; nothing was extracted"
        raise ToolError(msg)


def _facts_of(entry: _Entry) -> JsonValue:
    facts: dict[str, JsonValue] = {"path": entry.name, "bytes": entry.info.file_size}
    return {**facts, "not_extracted_because": entry.refusal} if entry.refusal else facts


def _read(archive: zipfile.ZipFile, path: str, entry: _Entry) -> bytes:
    """Read a file, which must be as large as its archive says.

    Raises:
        ToolError: If it is larger. The library checks its sum.
    """
    with archive.open(entry.info) as file:
        data = file.read(entry.info.file_size + 1)
    if len(data) > entry.info.file_size:
        raise damaged(path, f"{entry.name!r} is larger than the archive says")
    return data


def _packed(paths: dict[str, Path]) -> bytes:
    """Pack files into an archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in paths.items():
            with open_file(path) as file:
                modified = time.localtime(path.stat().st_mtime)[:6]
                info = zipfile.ZipInfo(name, max(modified, (_FIRST_YEAR, 1, 1, 0, 0, 0)))
                info.external_attr = (stat.S_IFREG | 0o644) << 16
                archive.writestr(info, file.read(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
