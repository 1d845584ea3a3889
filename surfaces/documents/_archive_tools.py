"""Tools for .zip files in the workspace."""

from __future__ import annotations

import fnmatch
import functools
import io
import stat
import time
import zipfile
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, JsonValue

from callboard.messages import Effect
from callboard.surfaces import open_file
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._archive_entries import (
    ArchiveEntry,
    entries_of,
    opened_archive,
    tested,
)
from callboard.surfaces.documents._folder_tools import HOST, NewPath, visible_files
from callboard.surfaces.documents._office import UNPACKED
from callboard.surfaces.documents._tables import Answer  # noqa: TC001 - schemas are made of it
from callboard.surfaces.documents._workspace import path_fault

if TYPE_CHECKING:
    from pathlib import Path

    from callboard.surfaces.documents._workspace import Workspace

_SUFFIX = ".zip"
_MOST_FILES = 1_000
"""The most files that are extracted or packed in one call."""
_LISTED = 500
_FIRST_YEAR = 1980
"""The format knows no earlier times."""

ArchivePath = Annotated[str, Field(description="The path of a .zip file within the workspace.")]


class ArchiveTools:
    """The tools of HostAgents for .zip files.

    Nothing is overwritten. Extracted files are ordinary ones: they are no links, and no file of them can be started.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @tool(effect=Effect.READ, agents=HOST)
    def list_archive(self, path: ArchivePath) -> Answer:
        """List the files of a .zip file, with their sizes."""
        with opened_archive(path, self._workspace.resolve(path)) as archive:
            entries = entries_of(archive)
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

        A file that is there with the same content stays. If another one has the name, nothing is extracted. Files that
        can't be extracted are left out, and the answer names them.
        """
        self._workspace.resolve(folder)
        self._workspace.check_name(folder)
        with opened_archive(path, self._workspace.resolve(path)) as archive:
            matches = [
                replace(entry, refusal=entry.refusal or path_fault(f"{folder}/{entry.name}"))
                for entry in entries_of(archive)
                if fnmatch.fnmatchcase(entry.name.casefold(), pattern.casefold())
            ]
            self._check_amount(path, [entry.info.file_size for entry in matches if not entry.refusal], "extracted")
            matches = [entry if entry.refusal else tested(archive, entry) for entry in matches]
            readings = {
                f"{folder}/{entry.name}": functools.partial(archive.read, entry.info)
                for entry in matches
                if not entry.refusal
            }
            left_out: list[JsonValue] = [_facts_of(entry) for entry in matches if entry.refusal]
            answer: Answer = {"folder": folder, "files": list(readings), "left_out": left_out[:_LISTED]}
            if len(left_out) > _LISTED:
                answer["more_left_out"] = len(left_out) - _LISTED
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


def _facts_of(entry: ArchiveEntry) -> JsonValue:
    facts: dict[str, JsonValue] = {"path": entry.name, "bytes": entry.info.file_size}
    return {**facts, "not_extracted_because": entry.refusal} if entry.refusal else facts


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
